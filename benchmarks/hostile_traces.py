"""Traces of valid JSON with impossible, malicious or contradictory values, by seed.

Records are those of the sample traces, and others whose values follow from the declarations in
:mod:`roast_schemas`, so that a new kind or field adds cases. A trace has some of them:

* three of the :func:`cases`, which are all combinations of a kind, a field and an impossible
  value of its type, each in a trace in turn;
* values that are replaced at random, at a rate of 0 to 40 % of all values;
* changes of the trace as a whole: records are repeated, reordered or removed, headers and
  workers contradict each other.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args, get_origin, is_typeddict

import zstandard

from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import FieldDescription, fields_of, kinds, without_null
from roast_schemas.records import Json
from roast_schemas.units import Content, Unit

Record = dict[str, Any]

SAMPLE_TRACES: Final = Path(__file__).parents[1] / "sample_traces"

#: Markup that must not reach a page unescaped.
MARKUP: Final = "<img src=x onerror=mark()>"

TEXTS: Final = (
    "", " ", "\n", "\t", "\r\n", "a\x00b", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b1m",
    "\u202egnp.exe", "\u2066a\u2069", "\ud800", "a\udfffb", "\ufeff", "\uffff", "é" * 3000,
    "x" * 10_000, "word " * 2000, "🙂", "a\u0301\u0302", MARKUP, f"</script>{MARKUP}",
    f'">{MARKUP}',
    "<!--", "]]>", "&lt;", "'; DROP TABLE raw.task; --", "' OR 1=1", '"', "\\", "$1", "?",
    "{}", "{0.__class__}", "%s", "%n", "{{7*7}}", "${HOME}", "`id`", "../../../../etc/passwd",
    "/dev/null", "C:\\x", "file:///etc/passwd", "http://[", "tcp://:::", "root://x//y::a%zz",
    "=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "NaN", "nan", "null", "Infinity", "1e999",
    "[", "(1, 2", "('a', 1)", "[bold]x[/bold]", "[/]", "*", "|", "a|b|c", "0", "a-1", "-",
    "default", "tcp://10.0.0.1:1", "99999999999999999999", "1970-01-01", "٣", "İ",
)  # fmt: skip

NUMBERS: Final = (
    0, -0.0, -1, 1, 2, 255, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 1e308,
    -1e308, 5e-324, 1e-9, 0.1, 1e15, 1e19, 1.7e18, -1e-300, 1.5, 1e100,
)  # fmt: skip

OTHER_VALUES: Final = (
    None, True, False, [], {}, [None], [[[]]], {"a": None}, {"": 1}, [1, "a"],
    {"a": {"b": [1]}},
)  # fmt: skip

#: Values of fields whose words decide how a record is read.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "start": ("released", "waiting", "queued", "no-worker", "processing", "memory", "erred"),
    "finish": (
        "released", "waiting", "queued", "no-worker", "processing", "memory", "erred",
        "forgotten", "executing", "ready", "disk",
    ),
    "state": ("waiting", "processing", "memory", "queued", "cancelled", "resumed"),
    "stimulus_id": (
        "task-finished-1.0", "task-erred-1.0", "handle-worker-cleanup-1.0", "steal-1.0",
        "update-graph-1.0", "client-releases-keys-1.0", "check-worker-ttl-1.0", "x",
    ),
    "action": (
        "compute", "transfer", "deserialize", "disk-read", "disk-write", "desires", "releases",
    ),
    "activity": (
        "own", "wait", "dask", "read", "write", "thread-cpu", "thread-noncpu", "idle", "failed",
    ),
    "context": ("execute", "get-data", "gather-dep", "p2p", "memory-monitor"),
    "unit": ("seconds", "bytes", "count"),
    "until": ("processed", "read", "metadata"),
    "section": ("process", "configuration", "defaults", "packages", "config_sources", "x"),
    "topic": ("all", "stealing", "worker-status-change", "x", "tcp://10.0.0.1:1"),
    "name": ("darshan", "yappi", "worker", "scheduler", "client", "x"),
    "module": ("POSIX", "STDIO", "MPI-IO"),
    "record_kind": tuple(kinds()),
}  # fmt: skip

#: Small pools, so that records refer to each other.
NAMES: Final[dict[Content, tuple[str, ...]]] = {
    Content.KEYS: ("a-1", "a-2", "b-1", "('c', 0)", "('c', 1)", "d"),
    Content.HOSTS: ("tcp://10.0.0.1:1", "tcp://10.0.0.2:1", "tcp://10.0.0.2:2"),
    Content.PREFIXES: ("a", "b", "c"),
    Content.IDENTITIES: ("s0", "s1", "s2", "id1"),
    Content.DATASETS: ("data", "mc"),
    Content.FILES: ("f.root", "root://host//g.root"),
    Content.BRANCHES: ("Events", "pt", "eta"),
}

#: Impossible values by the type of a field. Any field can also be absent.
ABSENT: Final = "absent"
_OF_ANY_TYPE: Final = (ABSENT, None, True, "", MARKUP, [], {}, [None], "nested 2000 list")
IMPOSSIBLE: Final[dict[type, tuple[Any, ...]]] = {
    str: (*_OF_ANY_TYPE, 0, 1e308, "\ud800", "a\x00\x1b[31mb", "x" * 3000,
          "99999999999999999999"),
    int: (*_OF_ANY_TYPE, "1", -1, 0, 0.5, 2**53, 2**63 - 1, -(2**63), 2**64, 1e308,
          float("nan")),
    float: (*_OF_ANY_TYPE, "1", -1, 0, 2**53, 2**63, -1e308, 1e308, 5e-324, float("nan"),
            float("inf")),
    list: (*_OF_ANY_TYPE, 2**63 - 1, [[[]]], [{}], [2**64, "x", None], {"a": 1}),
    dict: (*_OF_ANY_TYPE, 2**63 - 1, {"": None}, {"a": {"b": [1]}}, {"a": -1}, {"a": 2**63 - 1},
           {"a": float("nan")}),
}  # fmt: skip

#: Cases of a trace.
CASES_PER_TRACE: Final = 3

BEGIN_T: Final = 1.7e9


@dataclass(frozen=True)
class HostileTrace:
    """A generated trace.

    Attributes
    ----------
    lines : list of bytes
    sure, unsure : Counter
        Lines by kind; the unsure ones need not be accepted as records: they have numbers that
        JSON does not have, huge numbers, unpaired surrogates, deeply nested values or a kind
        that is not text.
    """

    lines: list[bytes]
    sure: Counter[str]
    unsure: Counter[str]


def hostile_trace(seed: int) -> HostileTrace:
    """Generate the trace of a seed."""
    rng = random.Random(seed)
    make = rng.choice((_from_sample, _from_sample, _from_declarations, _from_both))
    rate = rng.choice((0.0, 0.0, 0.003, 0.02, 0.1, 0.4))
    records = make(rng)
    for record in records:
        if record["kind"] == "header":
            record["trace_id"] = f"T{seed}"  # so that traces can be opened together
    for number in range(seed * CASES_PER_TRACE, (seed + 1) * CASES_PER_TRACE):
        _apply(cases()[number % len(cases())], records, rng)
    records = [_changed(record, rate, rng) for record in records]
    for change in rng.choices(CHANGES, k=rng.choice((0, 1, 1, 2, 4))):
        records = change(records, rng)
    made = HostileTrace([], Counter(), Counter())
    for record in records or [{"kind": "header", "t": 0.0}]:
        is_ascii = rng.random() < 0.7
        text = json.dumps(record)
        kind = record.get("kind")
        is_sure = isinstance(kind, str) and not _UNSURE.search(text)
        (made.sure if is_sure else made.unsure)[str(kind)] += 1
        if not is_ascii and not _SURROGATE.search(text):
            text = json.dumps(record, ensure_ascii=False)
        made.lines.append(_NESTED.sub(_nested, text).encode())
    return made


#: Stands for a value that is nested too deeply to be written with Python's json.
_NESTED: Final = re.compile(r'"nested (\d+) (list|object)"')
_SURROGATE: Final = re.compile(r"\\ud[89a-f]")
_UNSURE: Final = re.compile(
    rf"NaN|Infinity|\d{{19}}|e\+\d{{3}}|{_SURROGATE.pattern}|{_NESTED.pattern}"
)


def _nested(match: re.Match[str]) -> str:
    depth = int(match[1])
    opening, closing = ("[", "]") if match[2] == "list" else ('{"a":', "}")
    return f"{opening * depth}0{closing * depth}"


# -- records -------------------------------------------------------------------------------


@functools.cache
def samples() -> list[list[Record]]:
    """Return the records of the sample traces."""
    traces = []
    for path in sorted(SAMPLE_TRACES.glob("*.jsonl.zst")):
        with path.open("rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            traces.append([json.loads(line) for line in io.TextIOWrapper(text, "utf-8")])
    return traces


#: Kinds that most of the views are about.
_MAIN_KINDS: Final = ("header", "trailer", "task", "transition", "chunk", "worker_added")


def _from_sample(rng: random.Random) -> list[Record]:
    """Return the records of some keys of a sample trace, and others between them."""
    trace = rng.choice(samples())
    if rng.random() < 0.7:  # a trace of few kinds is opened several times as fast
        names = {record["kind"] for record in trace}
        some = {*rng.sample(sorted(names), 3), *_MAIN_KINDS}
        trace = [record for record in trace if record["kind"] in some]
    keys = [record["key"] for record in trace if record["kind"] in ("task", "chunk")]
    chosen = set(rng.sample(keys, min(len(keys), rng.randrange(1, 12))))
    others = rng.choice((0.0, 10 / len(trace), 40 / len(trace)))
    kept = ("header", "trailer", "worker_added")
    records = [
        record
        for record in trace
        if record.get("key") in chosen or record["kind"] in kept or rng.random() < others
    ]
    return copy.deepcopy(records[:100])


def _from_declarations(rng: random.Random) -> list[Record]:
    """Return records with plausible values of the declared types."""
    names = list(kinds())
    some = rng.sample(names, rng.choice((1, 3, 6, 6, len(names))))
    records = [_declared(rng.choice(some), rng) for _ in range(rng.randrange(1, 40))]
    records.sort(key=lambda record: record["t"])
    header = _declared("header", rng) | {"schema_version": SCHEMA_VERSION, "trace_id": "T"}
    return [header, *records] if rng.random() < 0.9 else records


def _from_both(rng: random.Random) -> list[Record]:
    records = [*_from_sample(rng), *_from_declarations(rng)]
    rng.shuffle(records)
    return records


def _declared(kind: str, rng: random.Random) -> Record:
    """Return a record of a kind, mostly with all of its fields."""
    optional = rng.choice((0.5, 0.9, 1.0))
    fields = [f for f in kinds()[kind].fields if f.required or rng.random() < optional]
    return {field.name: _value(field, rng) for field in fields} | {"kind": kind}


def _value(field: FieldDescription, rng: random.Random) -> Any:
    return _of_type(field.type, field, rng)


def _of_type(python_type: Any, field: FieldDescription, rng: random.Random) -> Any:
    """Return a plausible value of a declared type."""
    origin, inner = get_origin(python_type), get_args(python_type)
    if origin is UnionType:
        return None if rng.random() < 0.3 else _of_type(inner[0], field, rng)
    if origin is list:
        return [_of_type(inner[0], field, rng) for _ in range(rng.choice((0, 1, 2, 5)))]
    if origin is dict:
        names = NAMES[Content.KEYS] if field.content is Content.KEYS else list(kinds())
        return {name: rng.randrange(100) for name in rng.sample(names, rng.randrange(4))}
    if is_typeddict(python_type):
        parts = fields_of(python_type)
        return {part.name: _value(part, rng) for part in parts if rng.random() < 0.9}
    if python_type is bool:
        return rng.random() < 0.5
    if python_type is Json:
        return _json_value(field, rng)
    if python_type is str:
        return _text(field, rng)
    if field.unit is Unit.EPOCH_SECONDS:
        return BEGIN_T + rng.choice((0.0, 1.0, 50.0, rng.uniform(0, 100)))
    return rng.randrange(10) if python_type is int else rng.choice((0.0, 1.0, rng.random()))


def _text(field: FieldDescription, rng: random.Random) -> str:
    if words := WORDS.get(field.name):
        return rng.choice(words)
    return rng.choice(NAMES.get(field.content, ("x", "y")) if field.content else ("x", "y"))


def _json_value(field: FieldDescription, rng: random.Random) -> Any:
    """Return the value of such a field in a sample trace, or another one."""
    if rng.random() < 0.7:
        for record in rng.choices(rng.choice(samples()), k=50):
            if record.get(field.name) is not None:
                return copy.deepcopy(record[field.name])
    return copy.deepcopy(rng.choice((*OTHER_VALUES, *TEXTS, *NUMBERS)))


# -- values --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An impossible value of a field of a kind; the path leads into structures and lists."""

    kind: str
    path: tuple[str, ...]
    value: Any


@functools.cache
def cases() -> tuple[Case, ...]:
    """Return all combinations of a kind, a field and an impossible value, in a fixed order."""
    made = [
        Case(kind.name, path, value)
        for kind in kinds().values()
        for path, type_ in _paths(kind.fields)
        for value in IMPOSSIBLE[type_]
    ]
    random.Random(0).shuffle(made)
    return tuple(made)


def _paths(fields: Iterable[FieldDescription]) -> Iterator[tuple[tuple[str, ...], type]]:
    """Yield the paths of fields, also of those in structures, and the types of their values."""
    for field in fields:
        python_type = _value_type(field.type)
        origin = get_origin(python_type)
        if is_typeddict(python_type) or python_type is Json or origin is dict:
            yield (field.name,), dict
        elif origin is list:
            yield (field.name,), list
        else:
            yield (field.name,), int if python_type is bool else python_type
        inner = _value_type(get_args(python_type)[0]) if origin is list else python_type
        if is_typeddict(inner):
            for path, type_ in _paths(fields_of(inner)):
                yield (field.name, *path), type_


def _value_type(python_type: Any) -> Any:
    return without_null(python_type) if get_origin(python_type) is UnionType else python_type


def _apply(case: Case, records: list[Record], rng: random.Random) -> None:
    """Set the value of a case in a record of its kind, which is added if there is none."""
    found = [record for record in records if record.get("kind") == case.kind]
    if not found:
        found = [_declared(case.kind, rng)]
        records.append(found[0])
    place: Any = rng.choice(found)
    *outer, name = case.path
    for part in outer:
        if not isinstance(place.get(part), list | dict):
            place[part] = {}
        place = place[part]
        if isinstance(place, list):
            if not place or not isinstance(place[0], dict):
                place.insert(0, {})
            place = place[0]
    if case.value == ABSENT:
        place.pop(name, None)
    else:
        place[name] = copy.deepcopy(case.value)


def _changed(value: Any, rate: float, rng: random.Random, name: str = "") -> Any:
    """Replace or remove some of the values in a record."""
    if isinstance(value, dict):
        return {
            (rng.choice(TEXTS) if name and rng.random() < rate / 5 else key): _changed(
                inner, rate, rng, key
            )
            for key, inner in value.items()
            if rng.random() >= rate / 10
        }
    if isinstance(value, list):
        changed = [_changed(inner, rate, rng, name) for inner in value]
        return changed * 2 if rng.random() < rate / 10 else changed
    if rng.random() >= (rate / 10 if name == "kind" else rate):
        return value
    return _hostile(value, rng)


def _hostile(value: Any, rng: random.Random) -> Any:
    """Return another value, mostly of the same type."""
    choice = rng.random()
    if choice < 0.02:
        return f"nested {rng.choice((10, 200, 2000))} {rng.choice(('list', 'object'))}"
    if choice < 0.03:
        return rng.choice((float("nan"), float("inf"), -float("inf")))
    if choice < 0.12:
        return copy.deepcopy(rng.choice(OTHER_VALUES))
    if isinstance(value, str) == (choice < 0.9):
        return rng.choice(TEXTS)
    if isinstance(value, int | float) and choice < 0.3:
        return value * rng.choice((-1, 1000, 1e9)) + rng.choice((0, 1, -1))
    return rng.choice(NUMBERS)


# -- the whole trace -----------------------------------------------------------------------


def _shuffled(records: list[Record], rng: random.Random) -> list[Record]:
    return rng.sample(records, len(records))


def _reversed(records: list[Record], _rng: random.Random) -> list[Record]:
    return records[::-1]


def _repeated(records: list[Record], rng: random.Random) -> list[Record]:
    begin = rng.randrange(len(records) + 1)
    return records + records[begin : begin + 50]


def _cut(records: list[Record], rng: random.Random) -> list[Record]:
    return records[: rng.randrange(1, len(records) + 1)]


def _without_a_kind(records: list[Record], rng: random.Random) -> list[Record]:
    kind = rng.choice(records).get("kind") if records else None
    return [record for record in records if record.get("kind") != kind]


def _another_trace(records: list[Record], rng: random.Random) -> list[Record]:
    """Append the trace, under another name or with another version."""
    versions = (SCHEMA_VERSION, "3.0", "2.99", "1.0", "", "x", "99999999999999999999.1")
    header = {
        "kind": "header", "t": BEGIN_T, "schema_version": rng.choice(versions),
        "trace_id": rng.choice(("other", "", MARKUP)), "segment": rng.choice((1, 2, 0, -1, 9)),
    }  # fmt: skip
    place = rng.choice((0, len(records)))
    return [*records[:place], header, *records[place:]]


def _times_swapped(records: list[Record], rng: random.Random) -> list[Record]:
    """Let things stop before they start."""
    for record in records:
        if "start_t" in record and "stop_t" in record:
            record["start_t"], record["stop_t"] = record["stop_t"], record["start_t"]
        if isinstance(phases := record.get("startstops"), list):
            for phase in phases:
                if isinstance(phase, dict) and rng.random() < 0.5:
                    phase["start"], phase["stop"] = phase.get("stop"), phase.get("start")
        if "entry_start" in record and "entry_stop" in record:
            record["entry_stop"] = record["entry_start"]
    return records


def _times_scaled(records: list[Record], rng: random.Random) -> list[Record]:
    """Write all times in another unit, or those of some records."""
    factor, share = rng.choice((1e9, 1e3, 0, -1, 1e290)), rng.choice((0.1, 1.0))
    for record in records:
        if isinstance(t := record.get("t"), int | float) and rng.random() < share:
            record["t"] = t * factor
    return records


def _one_name(records: list[Record], rng: random.Random) -> list[Record]:
    """Write one value to a field of all records."""
    name = rng.choice(("key", "worker", "run_id", "span_id", "server_id", "prefix", "client"))
    value = rng.choice(("x", MARKUP, 1, None, 2**63 - 1))
    return [record | {name: value} if name in record else record for record in records]


def _cyclic(records: list[Record], rng: random.Random) -> list[Record]:
    """Let tasks depend on each other, and spans contain each other."""
    tasks = [record for record in records if "dependencies" in record or "key" in record]
    keys = [record.get("key") for record in tasks]
    spans = [record for record in records if record.get("kind") == "span"]
    for record in tasks:
        if record.get("kind") == "task":
            record["dependencies"] = rng.choices(keys, k=3)
    for span in spans:
        span["parent_id"] = rng.choice(spans).get("span_id")
    return records


def _restarts(records: list[Record], rng: random.Random) -> list[Record]:
    """Let workers leave before they join, or several times."""
    workers = [record for record in records if record.get("kind") == "worker_added"]
    gone = [
        {
            "kind": "worker_removed", "t": rng.choice((0.0, BEGIN_T, BEGIN_T + 60)),
            "worker": record.get("worker"), "stimulus_id": "handle-worker-cleanup-1.0",
        }
        for record in workers
    ]  # fmt: skip
    return [*gone, *records, *rng.choices([*workers, *gone], k=5)] if workers else records


CHANGES: Final[tuple[Callable[[list[Record], random.Random], list[Record]], ...]] = (
    _shuffled, _reversed, _repeated, _cut, _without_a_kind, _another_trace, _times_swapped,
    _times_scaled, _one_name, _cyclic, _restarts,
)  # fmt: skip
