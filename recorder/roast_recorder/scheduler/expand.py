"""Rows to records: what the schema declares, built where it is written."""

from __future__ import annotations

import heapq
import marshal
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from roast_recorder.scheduler.sampler import SAMPLE_FIELDS, WORKER_METRICS
from roast_recorder.scheduler.wire_format import (
    FINE_METRICS,
    PROFILES,
    RECORD,
    TASK,
    WORKER_LOG,
    WORKER_SAMPLE,
    Row,
    kind_of,
    records_in,
    split_transitions,
    unpack,
)
from roast_recorder.worker.log_observer import TRANSITION_VALUES

Record = dict[str, Any]


def records(transitions: list[Any], rows: list[Row]) -> Iterator[Record]:
    """Turn a decoded batch into records.

    Parameters
    ----------
    transitions, rows
        As :func:`roast_recorder.scheduler.wire_format.decode` gives them.

    Yields
    ------
    dict
        A record with ``kind`` and ``t``; fields that are null are left out. Transitions
        stay in the order in which they came, the others too, and both are merged by time.
    """
    moved = (
        record
        for row in split_transitions(transitions)
        for record in _expanded(_transition, row, "transition", row[0])
    )
    if not rows:
        return moved
    others = (
        record
        for row in rows
        for record in _expanded(_EXPANDERS[row[0]], row, kind_of(row), row[1], records_in(row))
    )
    return heapq.merge(moved, others, key=itemgetter("t"))


def _expanded(
    expander: Callable[[Row], Iterable[Record]], row: Row, kind: str, t: float, records: int = 1
) -> Iterable[Record]:
    """Give the records of a row, or the loss of them: one row must not cost the others."""
    try:
        return list(expander(row))
    except Exception as error:  # noqa: BLE001 - whatever a user put into a graph
        reason = f"impossible to read: {type(error).__name__}"
        return [
            {
                "kind": "loss",
                "t": t,
                "reason": reason,
                "record_kind": kind,
                "records": records,
                "start_t": t,
                "stop_t": t,
            }
        ]


def key_text(key: Any) -> str:
    """Give a key as text: Dask's string, or ``str(key)`` of a tuple."""
    return text(key if isinstance(key, str) else str(key))


def text(value: str) -> str:
    """Give a text that is valid Unicode."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _present(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}


def _transition(row: Row) -> Iterable[Record]:
    t, key, start, finish, stimulus_id, *processing = row
    record: Record = {
        "kind": "transition",
        # A float of today's seconds has no more than these digits.
        "t": round(t, 6),
        "key": key_text(key),
        "start": start,
        "finish": finish,
        "stimulus_id": stimulus_id,
    }
    if finish == "processing":
        worker, record["run_id"] = processing
        if worker is not None:
            record["worker"] = worker
    elif start == "processing":
        record.update(_ending(*processing))
    return (record,)


def _ending(
    run_id: int,
    worker: str | None,
    thread: int | None,
    nbytes: int | None,
    typename: str | None,
    startstops: Any,
    failure: Record | None,
) -> Record:
    """Give the fields that end an attempt."""
    fields = {
        "worker": worker,
        "run_id": run_id,
        "thread": thread,
        "nbytes": nbytes,
        "typename": typename,
        "startstops": startstops or None,
    }
    if failure:
        exception, traceback, cause = (
            failure.get(name) for name in ("exception", "traceback", "cause")
        )
        fields["cause"] = cause and text(cause)
        fields["exception"] = exception and text(exception)
        fields["traceback"] = traceback and text(traceback)
    return _present(fields)


def _task(row: Row) -> Iterable[Record]:
    (
        _,
        t,
        key,
        prefix,
        group,
        dependencies,
        priority,
        annotations,
        span_id,
        client,
        stimulus_id,
        state,
        worker,
        run_id,
    ) = row
    record = {
        "kind": "task",
        "t": t,
        "key": key_text(key),
        "prefix": text(prefix),
        "group": key_text(group),
        "dependencies": [key_text(dependency) for dependency in dependencies],
        "priority": priority,
        "annotations": annotations,
        "span_id": span_id,
        "client": client,
        "stimulus_id": stimulus_id,
        "state": state,
        "worker": worker,
        "run_id": run_id,
    }
    return (_present(record),)


def _worker_sample(row: Row) -> Iterable[Record]:
    split = 2 + len(SAMPLE_FIELDS)
    fields = zip(SAMPLE_FIELDS, row[2:split], strict=True)
    metrics = _present(dict(zip(WORKER_METRICS, row[split:], strict=True)))
    record = {"kind": "worker_sample", "t": row[1], **dict(fields), "metrics": metrics}
    return (_present(record),)


def _fine_metrics(row: Row) -> Iterator[Record]:
    """Give a record for each delta of a heartbeat.

    The name of one is (context, span_id, prefix, activity, unit) for tasks and (context,
    activity, unit) for what a worker does beside them. Other shapes are no fine metrics.
    """
    _, t, worker, server_id, deltas = row
    for name, delta in deltas.items():
        context, *within_task, activity, unit = name
        span_id, prefix = within_task if len(within_task) == 2 else (None, None)
        yield _present(
            {
                "kind": "fine_metric",
                "t": t,
                "worker": worker,
                "server_id": server_id,
                "context": str(context),
                "span_id": span_id,
                "prefix": prefix and text(str(prefix)),
                "activity": text(str(activity)),
                "unit": str(unit),
                "delta": delta,
            }
        )


def _profiles(row: Row) -> Iterator[Record]:
    """Give a record for each prefix, and of what was left out."""
    _, t, worker, server_id, _, packed = row
    for fields in unpack(packed):
        kind = "loss" if "reason" in fields else "profile"
        about = {"kind": kind, "t": t}
        if kind == "profile":
            about |= {"worker": worker, "server_id": server_id}
        yield _present({**about, **fields})


def _worker_log(row: Row) -> Iterator[Record]:
    """Give the records of one kind that a worker has told of its logs."""
    _, _, worker, server_id, _, packed, kind = row
    told = marshal.loads(packed)  # noqa: S302 - from our own plugin
    about = {"kind": kind, "worker": worker, "server_id": server_id}
    for fields in _OF_LOGS[kind](told, worker):
        yield _present({**about, **fields})


def _worker_transitions(told: Any, _worker: str) -> Iterator[Record]:
    """Give what came about, one change after the other.

    What goes by way of released is logged once more when it has arrived: as a change from
    a state that the task has left already.
    """
    delay, values = told
    columns = (values[place::TRANSITION_VALUES] for place in range(TRANSITION_VALUES))
    before_key, before_state = None, None
    for key, start, finish, state, stimulus_id, t in zip(*columns, strict=True):
        comes_back = before_state == "forgotten" and start == "released"
        is_summary = key == before_key and start != before_state and not comes_back
        before_key, before_state = key, state
        if not is_summary:
            yield {
                "t": round(t + delay, 6),
                "key": key_text(key),
                "start": start,
                "finish": finish,
                "state": None if state == finish else state,
                "stimulus_id": text(stimulus_id),
            }


def _transfers(told: Any, worker: str) -> Iterator[Record]:
    _, entries = told  # Dask has told the times on the scheduler's clock
    for incoming, start, stop, who, nbytes, sizes, sent_bytes in entries:
        source, destination = (who, worker) if incoming else (worker, who)
        yield {
            "t": round(stop, 6),
            "start_t": start,
            "stop_t": stop,
            "source": source,
            "destination": destination,
            "nbytes": nbytes,
            "keys": {text(key): nbytes for key, nbytes in sizes.items()},
            "measured": None if sent_bytes is None else {"sent_bytes": sent_bytes},
        }


def _spills(told: Any, _worker: str) -> Iterator[Record]:
    delay, entries = told
    for key, start, finish, nbytes, disk_bytes, t in entries:
        yield {
            "t": round(t + delay, 6),
            "key": key_text(key),
            "start": start,
            "finish": finish,
            "nbytes": nbytes,
            "measured": None if disk_bytes is None else {"disk_bytes": disk_bytes},
        }


#: Makes the fields of records of what a worker has told, by kind.
_OF_LOGS: dict[str, Callable[[Any, str], Iterator[Record]]] = {
    "worker_transition": _worker_transitions,
    "transfer": _transfers,
    "spill": _spills,
}


def _record(row: Row) -> Iterable[Record]:
    _, t, kind, fields = row
    return (_present({"kind": kind, "t": t, **fields}),)


_EXPANDERS: dict[int, Callable[[Row], Iterable[Record]]] = {
    TASK: _task,
    WORKER_SAMPLE: _worker_sample,
    FINE_METRICS: _fine_metrics,
    PROFILES: _profiles,
    WORKER_LOG: _worker_log,
    RECORD: _record,
}
