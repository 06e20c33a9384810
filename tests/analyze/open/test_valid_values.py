"""Values that cannot be true: read as null, and counted in the view ``loss``."""

import json
from collections import defaultdict
from itertools import cycle, islice
from pathlib import Path
from typing import get_args, get_origin, is_typeddict

import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import NotATrace
from roast_schemas.describe import fields_of, kinds, without_null
from roast_schemas.units import LARGEST

SAMPLES = Path(__file__).parents[3] / "sample_traces"

#: Kinds whose records a trace has once, in an order of their own.
ENDS = ("header", "trailer", "import")


def leaves(field, python_type=None):
    """Yield a type, range and a function that wraps a value, for each number in a field."""
    python_type = python_type or field.type
    inner = get_args(python_type)
    if python_type in (int, float):
        yield field.name, python_type, field.valid, lambda value: value
    elif type(None) in inner:
        yield from leaves(field, without_null(python_type))
    elif is_typeddict(python_type):
        for part in fields_of(python_type):
            for name, kind, valid, wrap in leaves(part):
                yield (
                    f"{field.name}.{name}",
                    kind,
                    valid,
                    lambda value, wrap=wrap, part=part: {part.name: wrap(value)},
                )
    elif get_origin(python_type) is list:
        for name, kind, valid, wrap in leaves(field, inner[0]):
            yield name, kind, valid, lambda value, wrap=wrap: [wrap(value)]
    elif get_origin(python_type) is dict:
        for name, kind, valid, wrap in leaves(field, inner[1]):
            yield name, kind, valid, lambda value, wrap=wrap: {"x": wrap(value)}


def plain(kind):
    """Return a record of a kind with only its required fields."""
    required = [field for field in kind.fields if field.required]
    values = {str: "x", float: 1.0, int: 1}
    record = {f.name: values.get(f.type, {}) for f in required}
    return {**record, "kind": kind.name, "t": 1.0}


NUMBERS = [
    (kind, name, python_type, valid, field, wrap)
    for kind in kinds().values()
    if kind.name not in ENDS
    for field in kind.fields
    for name, python_type, valid, wrap in leaves(field)
    if name != "t"
]


def impossible(python_type, valid):
    """Return values that are not valid, as JSON; Python and DuckDB read NaN and Infinity."""
    low, high = valid
    if python_type is float:
        outside = [low * 2 - 1e9, high * 2 + 1e9, 1e308, 1e999, float("nan"), float("-inf")]
    else:
        outside = [low - 1, high + 1, 10**30, 1e308, -(2**63) - 1]
    return [*outside, "soon", [1], {"a": 1}]


def impossible_records():
    """Return records with each impossible value of each number, and how many by number."""
    records, expected = [], {}
    for kind, name, python_type, valid, field, wrap in NUMBERS:
        values = impossible(python_type, valid)
        records += [{**plain(kind), field.name: wrap(value)} for value in values]
        # The limits themselves are valid.
        records += [{**plain(kind), field.name: wrap(value)} for value in valid]
        expected[f"kind '{kind.name}': {name}"] = len(values)
    return records, expected


def test_every_number_that_is_not_valid_is_null_and_a_loss(write_trace):
    records, expected = impossible_records()

    with Trace(write_trace(*records, stop_t=2.0)) as trace:
        rows = trace.rows("SELECT detail, records FROM loss WHERE reason = 'impossible values'")

    assert {detail.partition(" cannot be ")[0]: n for detail, n in rows} == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        [],
        ["explain"],
        ["metrics"],
        ["--html", "report.html"],
        ["export", "--duckdb", "x.duckdb"],
    ],
)
def test_no_command_fails(write_trace, analyze, monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    path = write_trace(*impossible_records()[0], stop_t=2.0)

    code, _, errors = (
        analyze(*words[:1], path, *words[1:])
        if words[:1] != ["--html"]
        else analyze(path, *words)
    )

    assert code == (words == ["check"])
    assert errors == ""


@pytest.mark.exhaustive
def test_every_view_can_be_queried(write_trace):
    with Trace(write_trace(*impossible_records()[0], stop_t=2.0)) as trace:
        for view in trace.views():
            trace.rows(f"FROM {view.name}")


def test_sums_of_the_largest_sizes_are_null(open_trace, run):
    trace = open_trace(
        *(record for n in range(1100) for record in run(f"a-{n}", 1, 2, nbytes=LARGEST))
    )

    for view in ("run", "prefixes", "task_groups"):
        assert trace.rows(f"SELECT output_bytes FROM {view}") == [(None,)]


def with_largest(value, python_type, valid):
    """Return a value of a field in which each size and number of objects is the largest."""
    inner = get_args(python_type)
    if type(None) in inner:
        return with_largest(value, without_null(python_type), valid)
    if is_typeddict(python_type) and isinstance(value, dict):
        parts = {part.name: (part.type, part.valid) for part in fields_of(python_type)}
        return {name: with_largest(part, *parts[name]) for name, part in value.items()}
    if get_origin(python_type) is list and isinstance(value, list):
        return [with_largest(item, inner[0], valid) for item in value]
    return LARGEST if python_type in (int, float) and valid[1] == LARGEST else value


@pytest.mark.exhaustive
def test_every_view_of_the_largest_sizes_can_be_queried(tmp_path):
    by_kind = defaultdict(list)
    for path in sorted(SAMPLES.glob("*.jsonl.zst")):
        for line in zstandard.open(path, "rt", encoding="utf-8"):
            record = json.loads(line)
            by_kind[record["kind"]].append(record)
    with (tmp_path / "largest.jsonl").open("w") as file:
        for kind, records in by_kind.items():
            fields = {field.name: field for field in kinds()[kind].fields}
            number = 1 if kind in ENDS else max(1100, len(records))
            for n, record in enumerate(islice(cycle(records), number)):
                changed = {
                    name: with_largest(value, fields[name].type, fields[name].valid)
                    for name, value in record.items()
                }
                if kind == "task":
                    changed["key"] += str(n)
                file.write(json.dumps(changed) + "\n")

    with Trace(tmp_path / "largest.jsonl") as trace:
        for view in trace.views():
            trace.rows(f"FROM {view.name}")


def test_valid_traces_have_no_loss(open_trace):
    records = [
        {**plain(kind), field.name: wrap(value)}
        for kind, _, _, valid, field, wrap in NUMBERS
        for value in (*valid, None)
        if kind.name != "loss"
    ]

    assert open_trace(*records).rows("SELECT * FROM loss WHERE reason LIKE 'impossible%'") == []


def test_the_other_values_and_the_order_of_the_records_stay(open_trace, task):
    keys = [f"a-{n}" for n in range(9)]
    trace = open_trace(
        *(task(key, priority=[n, 1e300 if n == 4 else 1]) for n, key in enumerate(keys))
    )

    rows = trace.rows("SELECT key, priority FROM raw.task ORDER BY rowid")
    assert rows == [(key, [n, None if n == 4 else 1.0]) for n, key in enumerate(keys)]


@pytest.mark.parametrize("value", [-1e18, 1e10, 1e308, "soon", None, True])
def test_a_record_without_a_possible_time_is_lost(open_trace, task, value):
    trace = open_trace(task("a"), task("b", value), task("c"))

    expected = [] if value is True else ["incomplete records"]
    kept = ["a", "b", "c"] if value is True else ["a", "c"]
    assert [key for (key,) in trace.rows("SELECT key FROM tasks")] == kept
    assert [reason for (reason,) in trace.rows("SELECT reason FROM loss")][:1] == expected


def test_times_in_nanoseconds(write_trace, run):
    path = write_trace(*run("a", 1.0, 2.0))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line["t"] = 1_700_000_000_000_000_000 + line["t"] * 1e9
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    with pytest.raises(NotATrace, match="since t cannot be 17"):
        Trace(path)


def test_two_of_the_largest_sizes(open_trace, run):
    trace = open_trace(*run("a", 1, 2, nbytes=2**63 - 1), *run("b", 2, 3, nbytes=2**63 - 1))

    assert trace.rows("SELECT reason, records, detail FROM loss") == [
        (
            "impossible values",
            2,
            "kind 'transition': nbytes cannot be 9223372036854775807",
        )
    ]
    assert trace.rows("SELECT output_bytes FROM run") == [(None,)]
