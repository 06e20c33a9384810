"""Scrubbing of the sample traces: the same views, and a report."""

from pathlib import Path

import pytest

from roast_analyze import Trace
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
