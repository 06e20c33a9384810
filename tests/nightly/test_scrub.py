"""Scrubbing of the sample traces: the same views, and a report."""

from pathlib import Path

import orjson
import pytest

from roast_analyze import Trace
from roast_analyze.open.discover import find_inputs
from roast_analyze.scrub.files import scrub
from scrubbing import differing_views

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl.zst"))


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.name.partition(".")[0])
def test_all_views_are_the_same_and_there_is_a_report(tmp_path, trace):
    shared, names = tmp_path / "shared.jsonl.zst", tmp_path / "names.db"

    scrub(trace, shared, names=names)

    assert not differing_views(trace, shared, names)
    with Trace(shared) as opened:
        opened.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.name.partition(".")[0])
def test_no_byte_of_a_canary_in_every_text_is_left(tmp_path, trace):
    planted, shared = tmp_path / "planted.jsonl", tmp_path / "shared.jsonl"
    [segment] = find_inputs([trace]).segments
    with planted.open("wb") as file:
        for line in b"".join(segment.content()).splitlines():
            record = orjson.loads(line)
            kind = record.pop("kind")
            is_header = kind == "header"
            record = record if is_header else with_canary(record)
            file.write(orjson.dumps({"kind": kind, **record}) + b"\n")
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
