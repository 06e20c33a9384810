"""Scrubbing of the sample traces: the same views, and a report."""

import math
import random
import sqlite3
from collections import defaultdict
from pathlib import Path

import orjson
import pytest

from roast_analyze import Trace
from roast_analyze.open.discover import find_inputs
from roast_analyze.scrub.files import scrub
from roast_analyze.scrub.words import WORD

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl.zst"))


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.name.partition(".")[0])
def test_all_views_are_the_same_and_there_is_a_report(tmp_path, trace):
    shared, names = tmp_path / "shared.jsonl.zst", tmp_path / "names.db"

    scrub(trace, shared, names=names)

    back = names_by_pseudonym(names)
    with Trace(trace, cache=False) as before, Trace(shared, cache=False) as after:
        for view in before.views():
            query = (
                f"SELECT * {'EXCLUDE (path)' * (view.name == 'trace_info')} FROM {view.name}"
            )
            rows = floats_by_row(before.rows(query), {})
            others = floats_by_row(after.rows(query), back)
            assert rows.keys() == others.keys(), view.name
            for row, floats in rows.items():
                # Sums depend on the order of groups, and so on names, in the last digits.
                expected = [
                    pytest.approx(numbers, rel=1e-9, abs=1e-9) for numbers in sorted(floats)
                ]
                assert sorted(others[row]) == expected, view.name
        after.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 100_000


def names_by_pseudonym(path):
    with sqlite3.connect(path) as connection:
        return {p: n for n, p in connection.execute("SELECT name, pseudonym FROM names")}


def floats_by_row(rows, back):
    """Group the floats of rows by all other values, with names restored."""
    found = defaultdict(list)
    for row in rows:
        floats = []
        found[hashable(row, back, floats)].append(floats)
    return found


def hashable(value, back, floats):
    match value:
        case str():
            return restored(value, back)
        case float() if math.isfinite(value):
            floats.append(value)
            return float
        case dict():
            return tuple(hashable(item, back, floats) for item in value.items())
        case list() | tuple():
            return tuple(hashable(item, back, floats) for item in value)
    return value


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.name.partition(".")[0])
def test_a_canary_in_every_text_is_removed(tmp_path, trace):
    planted, shared = tmp_path / "planted.jsonl", tmp_path / "shared.jsonl"
    [segment] = find_inputs([trace]).segments
    with planted.open("wb") as file:
        for line in b"".join(segment.content()).splitlines():
            record = orjson.loads(line)
            kind = record.pop("kind")
            changed = record if kind == "header" else with_canary(record)
            file.write(orjson.dumps({"kind": kind, **changed}) + b"\n")
    assert planted.read_bytes().lower().count(b"canary") > 1_000

    scrub(planted, shared)

    assert b"canary" not in shared.read_bytes().lower()


def with_canary(value):
    """Return a JSON value with a canary in every text, names of fields included."""
    match value:
        case str():
            return f"Canary-{value}/Canary_{len(value)}"
        case dict():
            return {name: with_canary(item) for name, item in value.items()} | {
                f"Canary{name}": with_canary(item) for name, item in value.items()
            }
        case list():
            return [with_canary(item) for item in value]
    return value


@pytest.mark.parametrize("seed", range(50))
def test_any_text_can_be_restored_with_the_map(tmp_path, seed):
    draw = random.Random(seed)

    def text():
        return "".join(draw.choice(PIECES) for _ in range(draw.randint(0, 12)))

    def value(depth=0):
        match draw.randint(0, 4 if depth < 3 else 2):
            case 0:
                return draw.randint(-9, 10**12)
            case 1 | 2:
                return text()
            case 3:
                return [value(depth + 1) for _ in range(3)]
        return {text(): value(depth + 1) for _ in range(3)}

    records = [
        {
            "kind": draw.choice(["task", "event", "environment", "chunk", text()]),
            "key": text(), "value": value(), "payload": value(), "traceback": text(),
            "measured": {"columns": [text()], text(): text()}, text(): value(),
        }
        for _ in range(30)
    ]  # fmt: skip
    trace, shared, names = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "names.db"))
    trace.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))

    scrub(trace, shared, names=names)

    back = names_by_pseudonym(names)
    found = [orjson.loads(line) for line in shared.read_bytes().splitlines()]
    assert [restored(record, back) for record in found] == records


#: Letters, and words that are hard to distinguish from pseudonyms and numbers.
PIECES = [
    *"abcdef0123456789_-.:/ ()'\",\n\t\x00é🚀e\u0301١%=+#@[]", "127.0.0.1", "10.0.0.1",
    "bababa", "fd00:0:0:0:0:0:0:1", "1e-05", "2024-01-01T00:00:00Z", "bababa0", "max 100000",
    "\r\n", "afeceb66-ffc8-6f38-d952-786c6d696c79", "bb86b273", "100000", "worker",
    "memory", "alice",
]  # fmt: skip


def restored(value, back):
    """Return a JSON value with names in place of pseudonyms."""
    match value:
        case str():
            return WORD.sub(lambda match: back.get(match[0], match[0]), value)
        case dict():
            return {restored(k, back): restored(v, back) for k, v in value.items()}
        case list():
            return [restored(item, back) for item in value]
    return value
