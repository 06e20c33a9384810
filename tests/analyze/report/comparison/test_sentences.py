"""Sentences about totals, without traces."""

import polars as pl
import pytest

from analyze.report.reading import plain
from roast_analyze.algorithms.decomposition import RunAmounts
from roast_analyze.report.comparison import sentences
from roast_analyze.report.comparison.data import DIFFERENCE, Comparison, TraceTotals, seconds_in
from roast_analyze.report.listing import Listing
from roast_analyze.report.run import Recording, Run

NO_WORK = RunAmounts(0.0, pl.DataFrame(), pl.DataFrame(), pl.DataFrame())
NOTHING = Listing("", "", pl.DataFrame(), 0)
GIB = 1024**3


def totals(label, losses=0, wasted=0.0, **run) -> TraceTotals:
    run, rows = {"compute_seconds": wasted, **run}, NOTHING.rows
    return TraceTotals(
        label,
        label,
        (),
        Run(**run),
        Recording(),
        losses,
        rows,
        rows,
        {},
        {},
        NO_WORK,
        {},
    )


def compared(*traces, left_out=(), facts=NOTHING, in_common=0, in_some=0) -> Comparison:
    return Comparison(traces, left_out, NOTHING, {}, facts, in_common, in_some)


@pytest.mark.parametrize(
    ("walls", "text"),
    [
        ({"a": 10.0, "b": 15.0}, "b took 15 s, 1.5 times as long as a (10 s)."),
        ({"a": 10.0, "b": 10.01}, "b took 10 s, as long as a (10 s)."),
        ({"a": 0.0, "b": 2.0}, "b took 2 s, not as long as a (0 s)."),
        ({"a": 0.0, "b": 0.0}, "b took 0 s, as long as a (0 s)."),
        (
            {"a": 10.0, "b": 5.0, "c": 20.0},
            "Of 3 traces, c took the longest, 20 s: 4 times as long as b (5 s).",
        ),
    ],
)
def test_verdict(walls, text):
    traces = [totals(name, wall_seconds=wall) for name, wall in walls.items()]

    assert plain(sentences.verdict(compared(*traces))) == text


def test_core_time():
    a, b = totals("a", core_efficiency=0.2), totals("b", core_efficiency=0.6, wasted=3.0)

    def core_time(*traces) -> str:
        return plain(sentences.core_time(compared(*traces)))

    assert core_time(a, b, totals("without workers")) == (
        "The share of the core time spent computing was 20 % in a and 60 % in b. Attempts "
        "whose result was not kept computed for 3 s in b."
    )
    # Of many traces, only the extremes are named.
    assert core_time(a, a, a, a, b).startswith(
        "The share of the core time spent computing was 20 % in a to 60 % in b."
    )
    assert core_time(a, a, a, a, a) == (
        "The share of the core time spent computing was 20 % in each of 5 traces."
    )
    assert core_time(totals("c")) == (
        "No worker was recorded in any trace, so the core time is unknown."
    )


def test_incomplete_and_omitted_traces():
    a, b = totals("a"), totals("b", losses=1)

    assert sentences.completeness(compared(a)) == "All traces are complete."
    assert sentences.completeness(compared(a, b)) == (
        "b is incomplete: lost records are missing in all numbers."
    )
    assert sentences.left_out(compared(a)) == ""
    assert plain(sentences.left_out(compared(a, left_out=tuple("stuvwx")))) == (
        "6 more traces are left out, because the limit is 24: s, t, u and 3 more."
    )


def test_over_time():
    run = {"peak_nthreads": 4, "busy_seconds": 2.0}
    traces = [totals("a", compute_seconds=2.0, **run), totals("b", compute_seconds=7.0, **run)]
    comparison = compared(*traces, totals("idle"))

    text = plain(sentences.over_time(comparison, with_limit=False))

    assert text.endswith("from the first task to the last: 1 of 4 in a and 3.5 of 4 in b.")
    assert "memory limit" not in text
    assert "memory limit" in sentences.over_time(comparison, with_limit=True)


def test_memory():
    a, b = totals("a", peak_memory_bytes=GIB), totals("b", peak_memory_bytes=3 * GIB)

    assert sentences.memory(compared(a, totals("unknown"))) == ""
    assert plain(sentences.memory(compared(a, b))) == (
        "b had the highest peak memory, 3 GiB: 3 times as much as a (1 GiB)."
    )


def test_difference():
    def difference(change: float, *rows: tuple) -> str:
        columns = ["prefix", *map(seconds_in, "abc"), DIFFERENCE]
        found = pl.DataFrame([(*row, change) for row in rows], schema=columns, orient="row")
        listing = Listing("prefixes", "", found, len(rows))
        comparison = compared(*map(totals, "abc"))
        return plain(sentences.difference(comparison, listing, "prefix"))

    assert difference(-2.0, ("x", 2.0, 3.0, None)) == (
        "Of the prefixes, x differs most in compute time: none in c, 2 s in a."
    )
    assert difference(1.0, (None, 2.0, 3.0, None)) == (
        "Of the prefixes, (no prefix) differs most in compute time: 3 s in b, 2 s in a."
    )
    assert difference(0.0, ("x", 2.0, 2.0, 2.0)) == (
        "The compute time by prefix is the same in all traces."
    )


@pytest.mark.parametrize(
    ("sections", "in_common", "in_some", "text"),
    [
        (
            "s",
            1,
            0,
            "1 recorded fact {} differs, in s; 1 is the same. Identifiers and addresses, ",
        ),
        (
            "sts",
            2,
            9,
            "3 recorded facts {} differ, in s and t; 2 are the same. 9 facts are missing in ",
        ),
        ("", 1, 0, "1 recorded fact {} is the same in all traces."),
        ("", 0, 0, "No facts {} were recorded."),
        ("", 0, 1, "No facts {} were recorded in all traces. 1 fact is missing in some of "),
    ],
)
def test_facts(sections, in_common, in_some, text):
    rows = pl.DataFrame({"section": list(sections)})
    listing = Listing("", "", rows, len(sections))
    facts = compared(facts=listing, in_common=in_common, in_some=in_some)

    expected = text.format("about software, machines and settings")
    assert plain(sentences.facts(facts)).startswith(expected)
