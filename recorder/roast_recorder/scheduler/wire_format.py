"""Batches of rows, on their way from the scheduler to the process that writes the trace.

A hook on the scheduler's thread appends values and returns. :func:`encode` encodes a whole
batch at once, in C. In the writing process, :func:`records` turns a batch into the records
that :mod:`roast_schemas.records` declares. Both ends run the recorder's own code.

A batch has two parts:

* **Transitions** are the values of one flat list, one transition after another. Each begins
  with :data:`TRANSITION`. A transition to ``processing`` continues with the first two values
  of :data:`ATTEMPT`, a transition from ``processing`` with all of them.
* **Rows** of all other kinds are tuples ``(kind, t, number of records, content)``. The
  content is a dict of the fields of one record, a tuple with a dict that is plain already, what
  :func:`pack` returns, or what a decoder of the kind takes, which is beside the code that makes
  it.

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
from collections.abc import Callable, Generator, Iterable, Iterator
from operator import itemgetter
from typing import Any, Final

from roast_recorder.probes import decoder

Record = dict[str, Any]
Row = tuple[Any, ...]

#: Takes kind, time and content of a row.
Decoder = Callable[[str, float, Any], Iterable[Record]]

#: Called with the kind, time and number of records that could not be encoded.
Lose = Callable[[str, float, int], None]

#: Supported by every Python since 3.4.
MARSHAL_VERSION: Final = 4

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZLIB_MAGIC: Final = b"\x78"


# -- batches -----------------------------------------------------------------------------


def encode(
    transitions: list[Any], rows: Iterable[Row], lose: Lose, *, keys_as_text: bool = False
) -> bytes:
    """Encode a batch; call `lose` for each row that cannot be encoded and is left out.

    `keys_as_text` means that some keys :func:`need text <need_text>`. Dicts of fields may
    contain anything: :func:`plain` replaces what JSON lacks.
    """
    if keys_as_text:
        transitions = [
            value
            for t, key, *others in split_transitions(transitions)
            for value in (t, str(key), *others)
        ]
        rows = map(_with_text_keys, rows)
    sound = [(*row[:3], plain(row[3])) if type(row[3]) is dict else row for row in rows]
    # One odd value makes marshal refuse the whole batch, so check each row only then.
    with contextlib.suppress(Exception):
        return marshal.dumps((transitions, sound), MARSHAL_VERSION)
    kept: tuple[list[Any], list[Row]] = [], []
    for row in all_rows(transitions, sound):
        encodable = _encodable(row)
        if encodable is None:
            lose(*row[:3])
        elif row[0] == "transition":
            kept[0].extend(encodable[3])
        else:
            kept[1].append(encodable)
    return marshal.dumps(kept, MARSHAL_VERSION)


def _with_text_keys(row: Row) -> Row:
    if row[0] != "task":
        return row
    client, stimulus_id, tasks = row[3]
    values = [
        value
        for key, prefix, group, dependencies, *others in split_tasks(tasks)
        for value in (str(key), prefix, group, list(map(str, dependencies)), *others)
    ]
    return (*row[:3], (client, stimulus_id, values))


def _encodable(row: Row) -> Row | None:
    """Return a row, or else a copy of it, that marshal can encode; None if it cannot."""
    for copy in (tuple, _rebuilt):
        with contextlib.suppress(Exception):
            candidate: Row = copy(row)
            # As deep as in a batch, because marshal limits the depth of nesting.
            marshal.dumps(([], [candidate]), MARSHAL_VERSION)
            return candidate
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


def decode(batch: bytes) -> tuple[list[Any], list[Row]]:
    """Decode a batch, compressed or not; raise ValueError if it is not one."""
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
    """Decode a batch into records with ``kind`` and ``t``, without null fields.

    Transitions keep their order, so do the other records, and both are merged by time. A
    row that cannot be read becomes a ``loss``.
    """
    transitions, rows = decode(batch)
    moved, others = _decoded(all_rows(transitions, ())), _decoded(rows)
    return heapq.merge(moved, others, key=itemgetter("t"))


def _decoded(rows: Iterable[Row]) -> Iterator[Record]:
    for kind, t, count, content in rows:
        try:
            if kind == "transition":
                record = _transition(kind, content)
                odd = _odd_values(record) if len(content) > len(TRANSITION) else []
                for name in odd:
                    del record[name]
                yield record
                for name in odd:
                    yield {"kind": "loss", "t": t, **loss(UNKNOWN_TYPE + name, kind, 0, t, t)}
                continue
            decode = None if type(content) is dict else _decoder(kind)
            found = list((decode or _fields)(kind, t, content))
        except Exception as error:  # noqa: BLE001 - users can put anything into a graph
            # One bad row must not affect the others.
            reason = f"impossible to read: {type(error).__name__}"
            found = [{"kind": "loss", "t": t, **loss(reason, kind, count, t, t)}]
        yield from found


def _decoder(kind: str) -> Decoder | None:
    """Return the decoder of the rows of a kind, if their content is not fields of records."""
    return _tasks if kind == "task" else decoder(kind)


def present(record: Record) -> Record:
    """Return a record without null fields."""
    return {name: value for name, value in record.items() if value is not None}


def all_rows(transitions: list[Any], rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the transitions of a batch in the form of rows, then its rows."""
    for values in split_transitions(transitions):
        yield "transition", values[0], 1, values
    yield from rows


def count_records(batch: bytes) -> Counter[str]:
    """Count the records of an encoded batch by kind."""
    counts: Counter[str] = Counter()
    for kind, _, count, _ in all_rows(*decode(batch)):
        counts[kind] += count
    return counts


# -- transitions -------------------------------------------------------------------------

#: Values of every transition.
TRANSITION: Final = ("t", "key", "start", "finish", "stimulus_id")

#: Values of an attempt: the first two when it starts, all when it ends. ``failure`` is a
#: dict with ``exception``, ``traceback`` and ``cause``, or None.
ATTEMPT: Final = (
    "worker", "run_id", "thread", "nbytes", "typename", "startstops", "failure", "start_t",
)  # fmt: skip


#: Loss of a value of an attempt that has not the type that it has with all known versions.
UNKNOWN_TYPE: Final = "null, because this version of Dask has another type of "


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and value - value == 0)


def _is_name(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _are_phases(value: Any) -> bool:
    return value is None or (
        isinstance(value, (list, tuple))
        and all(
            isinstance(phase, dict)
            and isinstance(phase.get("action"), str)
            and {"start", "stop"} <= phase.keys()
            and _is_count(phase["start"])
            and _is_count(phase["stop"])
            for phase in value
        )
    )


#: Whether a value is of the type of its field, or None.
_SOUND: Final[dict[str, Callable[[Any], bool]]] = {
    "worker": _is_name,
    "run_id": _is_count,
    "thread": _is_count,
    "nbytes": _is_count,
    "typename": _is_name,
    "startstops": _are_phases,
}


def _odd_values(record: Record) -> list[str]:
    return [name for name, is_sound in _SOUND.items() if not is_sound(record.get(name))]


def split_transitions(transitions: list[Any]) -> Iterator[Row]:
    """Split the flat list of transitions."""
    # It is flat because a tuple for each transition would double the cost of the hook, most
    # of it in the garbage collector.
    values = iter(transitions)
    for transition in zip(*[values] * len(TRANSITION), strict=True):
        _, _, start, finish, _ = transition
        if finish == "processing":
            yield (*transition, next(values), next(values))
        elif start == "processing":
            yield (*transition, *itertools.islice(values, len(ATTEMPT)))
        else:
            yield transition


def _transition(kind: str, values: Row) -> Record:
    t, key, start, finish, stimulus_id, *attempt = values
    if not (isinstance(start, str) and isinstance(finish, str)):
        raise TypeError("a transition without its states")
    record: Record = {
        "kind": kind,
        "t": round(t, 6),  # a float has no more digits for seconds since 1970
        "key": text(key),
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
    return record


_TUPLE: Final = frozenset({tuple})
_PLAIN_PARTS: Final = frozenset({str, int})


def need_text(keys: Iterable[Any]) -> bool:
    """Return whether any of some keys must be encoded as its text."""
    # marshal encodes the memory of a numpy number, which is a buffer, as bytes.
    others = [key for key in keys if key.__class__ is not str]
    return not (
        _TUPLE.issuperset(map(type, others))
        and _PLAIN_PARTS.issuperset(map(type, itertools.chain.from_iterable(others)))
    )


def text(value: Any) -> str:
    """Return the text of a key or a name as valid Unicode."""
    found = value if isinstance(value, str) else str(value)
    return found if found.isascii() else found.encode("utf-8", "replace").decode()


# -- rows of the scheduler: their values and records -------------------------------------

#: Values of a task. ``existing`` contains the values of :data:`EXISTING` if the task is older
#: than the recording, and is None otherwise.
TASK: Final = (
    "key", "prefix", "group", "dependencies", "priority", "annotations", "span_id", "value",
    "existing",
)  # fmt: skip

#: Values of an existing task. The last two are left out if no worker processes the task.
EXISTING: Final = ("state", "worker", "run_id")


def split_tasks(values: list[Any]) -> Iterator[Row]:
    """Split a flat list of values into tasks."""
    return zip(*[iter(values)] * len(TASK), strict=True)


def _tasks(kind: str, t: float, content: Row) -> Iterator[Record]:
    """Yield the tasks of a row, which have the same client and stimulus."""
    client, stimulus_id, values = content
    for task in split_tasks(values):
        record = {"kind": kind, "t": t, **dict(zip(TASK, task, strict=True))}
        for name in ("key", "prefix", "group"):
            if record[name] is not None:
                record[name] = text(record[name])
        record["dependencies"] = list(map(text, record["dependencies"]))
        record |= {"client": client, "stimulus_id": stimulus_id}
        record |= zip(EXISTING, record.pop("existing") or (), strict=False)
        yield present(record)


def loss(reason: str, record_kind: str, records: int, start_t: float, stop_t: float) -> Record:
    """Return the fields of a record of kind ``loss``; `records` is 0 if it is unknown."""
    about = {"reason": reason, "record_kind": record_kind}
    count = {"records": records} if records else {}
    return {**about, **count, "start_t": start_t, "stop_t": stop_t}


# -- rows that workers send --------------------------------------------------------------


def pack(records: list[Record]) -> bytes:
    """Encode the fields of several records, so that the scheduler only passes on bytes."""
    packed = json.dumps(records, default=str, ensure_ascii=False)
    return zlib.compress(packed.encode("utf-8", "replace"), 1)


def unpack(packed: bytes) -> list[Record]:
    """Decode what :func:`pack` returned."""
    # NaN and infinity are not JSON, though Python writes them.
    records: list[Record] = json.loads(zlib.decompress(packed), parse_constant=lambda _: None)
    return records


def _fields(kind: str, t: float, content: Any) -> Iterator[Record]:
    if type(content) is not tuple:
        content = [content] if type(content) is dict else unpack(content)
    for fields in content:
        yield present({"kind": kind, "t": t, **fields})


# -- plain values ------------------------------------------------------------------------

#: The text of an object that no other rule covers is cut at this length.
MAX_TEXT_LENGTH: Final = 1000

#: A larger array of numbers is replaced by its shape.
MAX_ARRAY_SIZE: Final = 10_000

#: Deeper nesting is replaced by "…".
MAX_DEPTH: Final = 20

#: Maximum number of characters of one record: the rest is left out and counted. DuckDB cannot
#: read a record of 16 MiB, and building a large one would block the scheduler.
MAX_CHARACTERS: Final = 2_000_000

#: A larger set is not sorted.
MAX_SORTED: Final = 1_000

#: Characters after which the conversion of a large value is interrupted: some milliseconds.
CHARACTERS_PER_STEP: Final = 50_000

#: Characters that a number or a container counts as.
_VALUE_CHARACTERS: Final = 20


def plain(value: Any, inside: tuple[int, ...] = (), room: list[int] | None = None) -> Any:
    """Return a copy made of JSON's types: text keys, finite numbers, valid Unicode.

    A value that raises, as objects of users may, is replaced by the name of its type. For the
    recursion, `inside` are the identities of the containers around the value, and `room` has
    the number of characters that are left.
    """
    room = [MAX_CHARACTERS] if room is None else room
    try:
        if isinstance(value, str):
            length = len(value)
            if length > room[0]:
                value = f"{value[: max(room[0], 0)]}… ({length:,} characters)"
            room[0] -= length
            return value.encode("utf-8", "replace").decode()
        room[0] -= _VALUE_CHARACTERS
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            if -(2**63) <= value < 2**63:
                return int(value)
            # Python refuses to convert very large numbers to text.
            if (bits := value.bit_length()) >= 10_000:
                return f"<a number of {bits} bits>"
            return str(value)[:MAX_TEXT_LENGTH]
        if isinstance(value, float):
            return float(value) if value - value == 0 else None
        # A container can contain itself.
        if len(inside) > MAX_DEPTH or id(value) in inside:
            return "…"
        inside = (*inside, id(value))
        if isinstance(value, dict):
            fields: dict[str, Any] = {}
            for key, item in list(value.items()):
                # All fields of the record itself are kept.
                if room[0] <= 0 and len(inside) > 1:
                    fields["…"] = f"{len(value) - len(fields):,} more"
                    break
                name = plain(str(key), (), room if len(inside) > 1 else None)
                fields[name] = plain(item, inside, room)
            return fields
        if isinstance(value, (set, frozenset)):
            value = sorted(value, key=str) if len(value) <= MAX_SORTED else list(value)
        if isinstance(value, (list, tuple)):
            items: list[Any] = []
            for item in list(value):
                if room[0] <= 0:
                    items.append(f"… {len(value) - len(items):,} more")
                    break
                items.append(plain(item, inside, room))
            return items
        return plain(_nearest(value), inside, room)
    except Exception:  # noqa: BLE001
        return f"<{type(value).__qualname__}>"


def plain_in_steps(
    value: Any, depth: int = 3, room: list[int] | None = None
) -> Generator[None, None, Any]:
    """Return what :func:`plain` returns for a large value, interrupted by yields of None."""
    room = [MAX_CHARACTERS] if room is None else room
    kind = type(value)
    if not depth or kind not in (dict, list, tuple, set, frozenset):
        return plain(value, (), room)
    before, total = room[0], len(value)
    room[0] -= _VALUE_CHARACTERS
    names: list[str] = []
    items: list[Any] = []
    # A copy, because it can change before the next step.
    for item in list(value.items() if kind is dict else value):
        if room[0] <= 0:
            more = f"{total - len(items):,} more"
            names.append("…")
            items.append(more if kind is dict else f"… {more}")
            break
        if kind is dict:
            names.append(plain(str(item[0]), (), room))
            item = item[1]  # noqa: PLW2901 - of a pair, the value
        items.append((yield from plain_in_steps(item, depth - 1, room)))
        if before - room[0] > CHARACTERS_PER_STEP:
            before = room[0]
            yield
    return dict(zip(names, items, strict=True)) if kind is dict else items


def _nearest(value: Any) -> Any:
    """Return the closest plain value for a value that JSON lacks."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        # Dask's events contain pickles of users' functions: not readable, and private.
        return f"<{len(value)} bytes>"
    if type(value).__module__ == "numpy":
        if getattr(value, "ndim", None) == 0:
            return value.item()
        if getattr(value, "size", MAX_ARRAY_SIZE + 1) > MAX_ARRAY_SIZE:
            return f"<{type(value).__name__} of shape {getattr(value, 'shape', '?')}>"
        return value.tolist()
    return str(value)[:MAX_TEXT_LENGTH]
