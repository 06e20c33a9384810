"""Batches of rows, on their way from the scheduler to the process that writes the trace.

A hook on the scheduler's thread appends values and returns. :func:`encode` encodes a whole
batch at once, in C. In the writing process, :func:`records` turns a batch into the records
that :mod:`roast_schemas.records` declares. Both ends run the recorder's own code.

A batch has two parts:

* **Transitions** are the values of one flat list, one transition after another; a tuple for
  each would cost as much again, most of it in the garbage collector. Each begins with
  :data:`TRANSITION`. A transition to ``processing`` continues with the first two values of
  :data:`ATTEMPT`, a transition from ``processing`` with all of them.
* **Rows** of all other kinds are tuples ``(kind, t, number of records, content)``. The
  content is a dict of the fields of one record, the values that :data:`LAYOUTS` names, what
  :func:`pack_log` returns for a kind of :data:`LOG_LAYOUTS`, or what :func:`pack` returns.

The encoding is :mod:`marshal`. It is as fast as the fastest encoders of JSON, half as large
because it writes an object only once, supports sets, bytes and tuples, and every cluster
has it.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import marshal
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, Final

Record = dict[str, Any]
Row = tuple[Any, ...]

#: Called with the kind, time and number of records that could not be encoded.
Lose = Callable[[str, float, int], None]

#: Values of every transition.
TRANSITION: Final = ("t", "key", "start", "finish", "stimulus_id")

#: Values of an attempt: the first two when it starts, all when it ends. ``failure`` is a
#: dict with ``exception``, ``traceback`` and ``cause``, or None.
ATTEMPT: Final = (
    "worker", "run_id", "thread", "nbytes", "typename", "startstops", "failure",
)  # fmt: skip

#: Values of a worker sample after those of :data:`LAYOUTS`: the ``metrics`` of its record.
WORKER_METRICS: Final = (
    "cpu", "memory", "managed_bytes", "spilled_memory", "spilled_disk", "ready",
    "event_loop_interval", "num_fds", "incoming_bytes", "outgoing_bytes",
    "host_net_read_bps", "host_net_write_bps", "host_disk_read_bps", "host_disk_write_bps",
)  # fmt: skip

#: Values of rows whose kind is too frequent for a dict of fields. Samples of all workers at
#: one tick are one row: a list of such tuples.
LAYOUTS: Final = {
    "task": (
        "key", "prefix", "group", "dependencies", "priority", "annotations", "span_id",
        "client", "stimulus_id", "state", "worker", "run_id",
    ),
    "fine_metric": ("worker", "server_id", "deltas"),
    "profile": ("worker", "server_id", "packed"),
    "worker_sample": (
        "worker", "server_id", "memory_limit", "nthreads", "processing", "executing",
        "occupancy", "nbytes", "last_seen",
    ),
}  # fmt: skip

_TASK: Final = ("kind", "t", *LAYOUTS["task"])

#: Values of each entry of a worker's logs.
LOG_LAYOUTS: Final = {
    "worker_transition": ("key", "start", "finish", "state", "stimulus_id", "t"),
    "transfer": ("incoming", "start_t", "t", "peer", "nbytes", "keys", "sent_bytes"),
    "spill": ("key", "start", "finish", "nbytes", "disk_bytes", "t"),
}

#: Supported by every Python since 3.4.
MARSHAL_VERSION: Final = 4

#: The text of an object that no other rule covers is cut at this length.
MAX_TEXT_LENGTH: Final = 1000

#: A larger array of numbers is replaced by its shape.
MAX_ARRAY_SIZE: Final = 10_000

#: Deeper nesting is replaced by "…".
MAX_DEPTH: Final = 20

#: Rebuilding a row of more containers would block the scheduler for too long.
MAX_CONTAINERS: Final = 200_000

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZLIB_MAGIC: Final = b"\x78"


# -- encoding, on the scheduler ----------------------------------------------------------


def encode(
    transitions: list[Any], rows: Iterable[Row], lose: Lose, *, keys_as_text: bool = False
) -> bytes:
    """Encode a batch.

    Parameters
    ----------
    transitions : list
        A flat list, as described above.
    rows : iterable of tuple
        Dicts of fields may contain anything: sets, numpy scalars, users' objects. Values
        that JSON lacks are replaced by the nearest plain value or by their text.
    lose : callable
        Called for each row that cannot be encoded and is left out.
    keys_as_text : bool
        Whether some keys :func:`need text <needs_text>`.
    """
    if keys_as_text:
        transitions = [
            value
            for t, key, *others in split_transitions(transitions)
            for value in (t, str(key), *others)
        ]
    sound = []
    for row in rows:
        if type(row[3]) is dict:
            kind, t, count, content = row
            try:
                row = (kind, t, count, plain(content))  # noqa: PLW2901
            except Exception:  # noqa: BLE001 - users' objects may raise anything
                lose(kind, t, count)
                continue
        sound.append(row)
    # One odd value makes marshal refuse the whole batch, so check each row only then.
    with contextlib.suppress(Exception):
        return marshal.dumps((transitions, sound), MARSHAL_VERSION)
    return _encode_one_by_one(transitions, sound, lose)


def _encode_one_by_one(transitions: list[Any], rows: list[Row], lose: Lose) -> bytes:
    """Encode a batch that has values which marshal refuses."""
    kept_transitions: list[Any] = []
    for transition in split_transitions(transitions):
        copy = _encodable(transition)
        if copy is None:
            lose("transition", transition[0], 1)
        else:
            kept_transitions.extend(copy)
    kept_rows = []
    for row in rows:
        copy = _encodable(row)
        if copy is None:
            lose(*row[:3])
        else:
            kept_rows.append(copy)
    with contextlib.suppress(ValueError):
        return marshal.dumps((kept_transitions, kept_rows), MARSHAL_VERSION)
    # Each row alone is nested as deeply as marshal permits; inside a batch it is too deep.
    for counted in contents(kept_transitions, kept_rows):
        lose(*counted)
    return marshal.dumps(([], []), MARSHAL_VERSION)


def _encodable(row: Row) -> Row | None:
    """Return a row that marshal can encode, or None."""
    for candidate in (lambda: row, lambda: _rebuilt(row)):
        with contextlib.suppress(Exception):
            found: Row = candidate()
            marshal.dumps(found, MARSHAL_VERSION)
            return found
    return None


def _rebuilt(value: Any) -> Any:
    """Return a copy of what marshal can encode; tuples and keys of dicts stay as they are."""
    if isinstance(value, tuple):
        return tuple(map(_rebuilt, value))
    if isinstance(value, list):
        return list(map(_rebuilt, value))
    if isinstance(value, dict):
        return {_rebuilt(name): _rebuilt(item) for name, item in value.items()}
    return str(value) if isinstance(value, str) else plain(value)


def compress(batch: bytes) -> bytes:
    """Compress a batch, with zstandard if it is installed."""
    # Imported here because this function travels to clusters that may lack it.
    try:
        import zstandard
    except ImportError:
        return zlib.compress(batch, 1)
    return zstandard.ZstdCompressor(level=1).compress(batch)


#: Types of the elements of a tuple key that marshal keeps as they are.
_PLAIN_PARTS = frozenset({str, int})


def needs_text(key: Any) -> bool:
    """Return whether a key that is no `str` must be encoded as its text.

    marshal encodes the memory of a numpy number, which is a buffer, as bytes.
    """
    return type(key) is not tuple or not _PLAIN_PARTS.issuperset(map(type, key))


# -- content of rows that workers send ---------------------------------------------------


def pack(records: list[Record]) -> bytes:
    """Encode the fields of several records, so that the scheduler only passes on bytes."""
    text = json.dumps(records, default=str, ensure_ascii=False)
    return zlib.compress(text.encode("utf-8", "replace"), 1)


def unpack(packed: bytes) -> list[Record]:
    """Decode what :func:`pack` returned."""
    # NaN and infinity are no JSON, though Python writes them.
    records: list[Record] = json.loads(zlib.decompress(packed), parse_constant=lambda _: None)
    return records


def pack_log(worker: str, server_id: str, delay_seconds: float, values: list[Any]) -> bytes:
    """Encode entries of a worker's log.

    Parameters
    ----------
    worker, server_id : str
    delay_seconds : float
        What is to be added to times of the worker's clock for those of the scheduler's.
    values : list
        Flat: for each entry the values that :data:`LOG_LAYOUTS` names.

    Raises
    ------
    ValueError
        If a value cannot be encoded.
    """
    return marshal.dumps((worker, server_id, delay_seconds, values), MARSHAL_VERSION)


# -- decoding, in the writing process ----------------------------------------------------


def decode(batch: bytes) -> tuple[list[Any], list[Row]]:
    """Decode a batch, compressed or not, into its transitions and rows.

    Raises
    ------
    ValueError
        If these bytes are no batch.
    """
    try:
        if batch[:4] == _ZSTD_MAGIC:
            import zstandard

            batch = zstandard.ZstdDecompressor().decompress(batch)
        elif batch[:1] == _ZLIB_MAGIC:
            batch = zlib.decompress(batch)
        transitions, rows = marshal.loads(batch)  # noqa: S302 - from the recorder's plugin
    except (EOFError, TypeError, zlib.error) as error:
        raise ValueError(f"not a batch of rows: {error}") from None
    return transitions, rows


def records(batch: bytes) -> Iterator[Record]:
    """Decode a batch into records.

    Yields
    ------
    dict
        A record with ``kind`` and ``t``. Null fields are left out. Transitions keep their
        order, so do the other records, and both are merged by time. A row that cannot be
        read becomes a ``loss``.

    Raises
    ------
    ValueError
        If these bytes are no batch.
    """
    transitions, rows = decode(batch)
    moved = _decoded(
        split_transitions(transitions), _transition, lambda values: ("transition", values[0], 1)
    )
    others = _decoded(rows, _row, itemgetter(0, 1, 2))
    return heapq.merge(moved, others, key=itemgetter("t"))


def split_transitions(transitions: list[Any]) -> Iterator[Row]:
    """Split the flat list of transitions."""
    values = iter(transitions)
    for transition in zip(*[values] * len(TRANSITION), strict=True):
        _, _, start, finish, _ = transition
        if finish == "processing":
            yield (*transition, next(values), next(values))
        elif start == "processing":
            yield (*transition, *itertools.islice(values, len(ATTEMPT)))
        else:
            yield transition


def contents(transitions: list[Any], rows: Iterable[Row]) -> Iterator[tuple[str, float, int]]:
    """Yield kind, time and number of records of each transition and row."""
    for values in split_transitions(transitions):
        yield "transition", values[0], 1
    for kind, t, count, _ in rows:
        yield kind, t, count


def count_records(batch: bytes) -> Counter[str]:
    """Count the records of an encoded batch by kind."""
    counts: Counter[str] = Counter()
    for kind, _, count in contents(*decode(batch)):
        counts[kind] += count
    return counts


def key_text(key: Any) -> str:
    """Return a key as text: Dask's string, or ``str(key)`` of a tuple."""
    value = key if isinstance(key, str) else str(key)
    # Not by way of `text`: this runs for every key of a trace.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def text(value: str) -> str:
    """Return a text as valid Unicode."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _decoded(
    rows: Iterable[Row],
    decoder: Callable[[Row], Iterable[Record]],
    about: Callable[[Row], tuple[str, float, int]],
) -> Iterator[Record]:
    for row in rows:
        try:
            found = decoder(row)
        except Exception as error:  # noqa: BLE001 - users can put anything into a graph
            # One bad row must not cost the others.
            kind, t, count = about(row)
            reason = f"impossible to read: {type(error).__name__}"
            found = [{"kind": "loss", "t": t, **loss(reason, kind, count, t, t)}]
        yield from found


def loss(reason: str, record_kind: str, records: int, start_t: float, stop_t: float) -> Record:
    """Return the fields of a record of kind ``loss``."""
    return {
        "reason": reason,
        "record_kind": record_kind,
        "records": records,
        "start_t": start_t,
        "stop_t": stop_t,
    }


def _present(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}


def _transition(values: Row) -> list[Record]:
    t, key, start, finish, stimulus_id, *attempt = values
    record: Record = {
        "kind": "transition",
        # A float has no more digits for seconds since 1970.
        "t": round(t, 6),
        "key": key_text(key),
        "start": start,
        "finish": finish,
        "stimulus_id": stimulus_id,
    }
    if attempt:  # most transitions have none, and an empty loop costs a third more
        for name, value in zip(ATTEMPT, attempt, strict=False):
            if name == "failure" and value:
                record.update((part, text(of)) for part, of in value.items() if of is not None)
            elif value is not None and (value or name != "startstops"):
                record[name] = value
    return [record]


def _row(row: Row) -> Iterable[Record]:
    kind, t, _, content = row
    if decoder := _DECODERS.get(kind):
        return decoder(kind, t, content)
    if type(content) is dict:
        return [_present({"kind": kind, "t": t, **content})]
    return [_present({"kind": kind, "t": t, **fields}) for fields in unpack(content)]


def _task(kind: str, t: float, content: Row) -> list[Record]:
    values = zip(_TASK, (kind, t, *content), strict=True)
    record = {name: value for name, value in values if value is not None}
    record["key"] = key_text(record["key"])
    record["prefix"] = text(record["prefix"])
    record["group"] = key_text(record["group"])
    record["dependencies"] = list(map(key_text, record["dependencies"]))
    return [record]


def _fine_metrics(kind: str, t: float, content: Row) -> list[Record]:
    """Return a record for each delta of a heartbeat.

    A delta's name is (context, span_id, prefix, activity, unit) inside tasks and
    (context, activity, unit) outside of them.
    """
    worker, server_id, deltas = content
    found = []
    for name, delta in deltas.items():
        context, *within_task, activity, unit = name
        span_id, prefix = within_task if len(within_task) == 2 else (None, None)
        record = {
            "kind": kind,
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
        found.append(_present(record))
    return found


def _profiles(kind: str, t: float, content: Row) -> list[Record]:
    """Return a record for each prefix, and a loss for the trees that were too large."""
    worker, server_id, packed = content
    profile = {"kind": kind, "t": t, "worker": worker, "server_id": server_id}
    return [
        _present({**({"kind": "loss", "t": t} if "reason" in fields else profile), **fields})
        for fields in unpack(packed)
    ]


def _worker_samples(kind: str, t: float, content: list[Row]) -> list[Record]:
    """Return a record for each worker at one tick."""
    names = LAYOUTS[kind]
    found = []
    for values in content:
        record = {"kind": kind, "t": t, **dict(zip(names, values, strict=False))}
        metrics = zip(WORKER_METRICS, values[len(names) :], strict=True)
        record["metrics"] = {name: value for name, value in metrics if value is not None}
        found.append(_present(record))
    return found


def _log(kind: str, _: float, packed: bytes) -> list[Record]:
    """Return the records of a worker's log."""
    worker, server_id, delay, values = marshal.loads(packed)  # noqa: S302 - from its plugin
    entries = zip(*[iter(values)] * len(LOG_LAYOUTS[kind]), strict=True)
    about = {"kind": kind, "worker": worker, "server_id": server_id}
    return [
        _present({**about, **fields, "t": round(fields["t"], 6)})
        for fields in _LOG_DECODERS[kind](entries, worker, delay)
    ]


def _worker_transitions(entries: Iterable[Row], _worker: str, delay: float) -> Iterator[Record]:
    """Yield the steps of worker transitions.

    A transition by way of ``released`` is logged once more after its steps, as a whole:
    from a state that the task has left already.
    """
    before_key, before_state = None, None
    for key, start, finish, state, stimulus_id, t in entries:
        comes_back = before_state == "forgotten" and start == "released"
        is_summary = key == before_key and start != before_state and not comes_back
        before_key, before_state = key, state
        if not is_summary:
            yield {
                "t": t + delay,
                "key": key_text(key),
                "start": start,
                "finish": finish,
                "state": None if state == finish else state,
                "stimulus_id": text(stimulus_id),
            }


def _transfers(entries: Iterable[Row], worker: str, _delay: float) -> Iterator[Record]:
    """Yield transfers, whose times Dask has converted to the scheduler's clock."""
    for incoming, start_t, stop_t, peer, nbytes, keys, sent_bytes in entries:
        source, destination = (peer, worker) if incoming else (worker, peer)
        yield {
            "t": stop_t,
            "start_t": start_t,
            "stop_t": stop_t,
            "source": source,
            "destination": destination,
            "nbytes": nbytes,
            "keys": {text(key): nbytes for key, nbytes in keys.items()},
            "measured": None if sent_bytes is None else {"sent_bytes": sent_bytes},
        }


def _spills(entries: Iterable[Row], _worker: str, delay: float) -> Iterator[Record]:
    for key, start, finish, nbytes, disk_bytes, t in entries:
        yield {
            "t": t + delay,
            "key": key_text(key),
            "start": start,
            "finish": finish,
            "nbytes": nbytes,
            "measured": None if disk_bytes is None else {"disk_bytes": disk_bytes},
        }


_LOG_DECODERS: Final[dict[str, Callable[[Iterable[Row], str, float], Iterator[Record]]]] = {
    "worker_transition": _worker_transitions,
    "transfer": _transfers,
    "spill": _spills,
}

_DECODERS: Final[dict[str, Callable[[str, float, Any], list[Record]]]] = {
    "task": _task,
    "fine_metric": _fine_metrics,
    "profile": _profiles,
    "worker_sample": _worker_samples,
    **dict.fromkeys(LOG_LAYOUTS, _log),
}


# -- plain values ------------------------------------------------------------------------


def plain(
    value: Any, inside: tuple[int, ...] = (), containers: Iterator[int] | None = None
) -> Any:
    """Return a copy made of JSON's types: text keys, finite numbers, valid Unicode.

    Parameters
    ----------
    value : object
    inside : tuple of int
        Identities of the containers around the value, to end the recursion of one that
        contains itself.
    containers : iterator of int, optional
        Counts all containers.

    Raises
    ------
    ValueError
        If there are more containers than :data:`MAX_CONTAINERS`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return int(value)
        # Python refuses to convert very large numbers to text.
        bits = value.bit_length()
        return str(value)[:MAX_TEXT_LENGTH] if bits < 10_000 else f"<a number of {bits} bits>"
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if len(inside) > MAX_DEPTH or id(value) in inside:
        return "…"
    containers = itertools.count() if containers is None else containers
    if next(containers) > MAX_CONTAINERS:
        raise ValueError("too many containers")
    inside = (*inside, id(value))
    if isinstance(value, dict):
        return {
            plain(str(key)): plain(item, inside, containers)
            for key, item in list(value.items())
        }
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple)):
        return [plain(item, inside, containers) for item in list(value)]
    return plain(_nearest(value), inside, containers)


def _nearest(value: Any) -> Any:
    """Return the plain value nearest to one that JSON lacks."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        # Dask's events contain pickles of users' functions: not readable, and private.
        return f"<{len(value)} bytes>"
    if type(value).__module__ == "numpy":
        if getattr(value, "ndim", None) == 0:
            return value.item()
        if getattr(value, "size", MAX_ARRAY_SIZE + 1) > MAX_ARRAY_SIZE:
            return f"<{type(value).__name__} of shape {getattr(value, 'shape', '?')}>"
        return value.tolist()
    try:
        return str(value)[:MAX_TEXT_LENGTH]
    except Exception:  # noqa: BLE001 - a user's __str__ may do anything
        return f"<{type(value).__qualname__}>"
