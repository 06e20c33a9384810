"""Rows to records: what the schema declares, built on the client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from roast_recorder.rows import RECORD, TASK, TRANSITION, WORKER_SAMPLE
from roast_recorder.sampler import SAMPLE_FIELDS

Record = dict[str, Any]


def records(rows: list[list[Any]]) -> Iterator[Record]:
    """Turn decoded rows into records, in order.

    Parameters
    ----------
    rows : list of list
        As :func:`roast_recorder.rows.decode` gives them.

    Yields
    ------
    dict
        A record with ``kind`` and ``t``; fields that are null are left out.
    """
    for row in rows:
        yield _EXPANDERS[row[0]](row)


def key_text(key: Any) -> str:
    """Give a key as text: Dask's string, or ``str(key)`` of a tuple.

    Tuples have become lists on their way here; nested ones too.
    """
    return key if isinstance(key, str) else str(_as_tuple(key))


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _present(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}


def _transition(row: list[Any]) -> Record:
    _, t, key, start, finish, stimulus_id, worker, run_id, details = row
    record = {
        "kind": "transition",
        "t": t,
        "key": key_text(key),
        "start": start,
        "finish": finish,
        "stimulus_id": stimulus_id,
        "worker": worker,
        "run_id": run_id,
    }
    if details:
        cause = details.get("cause")
        record |= {
            "worker": details.get("worker", worker),
            "thread": details.get("thread"),
            "nbytes": details.get("nbytes"),
            "typename": details.get("typename"),
            "startstops": details.get("startstops"),
            "cause": None if cause is None else key_text(cause),
            "exception": details.get("exception_text"),
            "traceback": details.get("traceback_text"),
        }
    return _present(record)


def _task(row: list[Any]) -> Record:
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
    ) = row
    return _present(
        {
            "kind": "task",
            "t": t,
            "key": key_text(key),
            "prefix": prefix,
            "group": key_text(group),
            "dependencies": [key_text(dependency) for dependency in dependencies],
            "priority": priority,
            "annotations": annotations,
            "span_id": span_id,
            "client": client,
            "stimulus_id": stimulus_id,
            "state": state,
        }
    )


def _worker_sample(row: list[Any]) -> Record:
    return _present(
        {"kind": "worker_sample", "t": row[1], **dict(zip(SAMPLE_FIELDS, row[2:], strict=True))}
    )


def _record(row: list[Any]) -> Record:
    _, t, kind, fields = row
    if "key" in fields:
        fields["key"] = key_text(fields["key"])
    return _present({"kind": kind, "t": t, **fields})


_EXPANDERS: dict[int, Callable[[list[Any]], Record]] = {
    TRANSITION: _transition,
    TASK: _task,
    WORKER_SAMPLE: _worker_sample,
    RECORD: _record,
}
