"""Aggregation, trees and comparison of profiler stacks."""

import polars as pl
import pytest

from roast_analyze.algorithms.profiles import difference, flame_nodes, merge_stacks
from roast_analyze.flamegraph import Flamegraph

FRAME = pl.Struct({"name": pl.String, "filename": pl.String, "line_number": pl.Int64})
STACKS = {
    "stack": pl.List(pl.String),
    "frames": pl.List(FRAME),
    "samples": pl.Int64,
    "ambiguous_samples": pl.Int64,
    "seconds": pl.Float64,
}


def stacks(*rows):
    """Return a frame of stacks from ``("f/a", samples, ambiguous)``."""
    records = [
        {
            "stack": [f"{name} (a.py:1)" for name in path.split("/") if name],
            "frames": [
                {"name": name, "filename": "a.py", "line_number": 1}
                for name in path.split("/")
                if name
            ],
            "samples": samples,
            "ambiguous_samples": ambiguous,
            "seconds": (samples + ambiguous) / 100,
        }
        for path, samples, ambiguous in rows
    ]
    return pl.DataFrame(records, schema=STACKS)


def test_equal_stacks_are_added_up():
    merged = merge_stacks(stacks(("f/a", 1, 2), ("f", 4, 0), ("f/a", 3, 0)))

    assert merged.select(pl.col("stack").list.last(), pl.exclude("stack", "frames")).rows() == [
        ("a (a.py:1)", 4, 2, pytest.approx(0.06)),
        ("f (a.py:1)", 4, 0, pytest.approx(0.04)),
    ]


def test_order_of_nodes():
    nodes = flame_nodes(stacks(("f/a", 1, 0), ("f/b/x", 3, 0), ("g", 2, 1), ("", 0, 5)))

    assert nodes.drop("filename", "line_number", "self_seconds").rows() == [
        (0, None, 0, None, 0, 5, 12, pytest.approx(0.12)),
        (1, 0, 1, "f", 0, 0, 4, pytest.approx(0.04)),
        (2, 1, 2, "b", 0, 0, 3, pytest.approx(0.03)),
        (3, 2, 3, "x", 3, 0, 3, pytest.approx(0.03)),
        (4, 1, 2, "a", 1, 0, 1, pytest.approx(0.01)),
        (5, 0, 1, "g", 2, 1, 3, pytest.approx(0.03)),
    ]
    assert nodes["self_seconds"].to_list() == pytest.approx([0, 0, 0, 0.03, 0.01, 0.02])


def test_a_stack_of_less_than_half_a_microsecond():
    yappi = stacks(("f/a", 1, 0), ("g", 0, 0)).with_columns(seconds=pl.Series([1e-6, 3e-7]))
    folded = yappi.with_columns(folded_stack="stack", folded_frames="frames")

    nodes = Flamegraph(folded).nodes

    assert nodes.select("name", "total_seconds").rows() == [
        (None, pytest.approx(1.3e-6)),
        ("f", 1e-6),
        ("a", 1e-6),
        ("g", 3e-7),
    ]
    assert nodes["self_seconds"].to_list() == [0.0, 0.0, 1e-6, 3e-7]


def test_differences_of_shares():
    now = stacks(("f/a", 30, 0), ("f/b", 10, 0))
    before = stacks(("f/a", 400, 0), ("f/b", 500, 0), ("g", 100, 0))

    by_stack = difference(now, before)
    assert by_stack.select(
        pl.col("stack").list.last(), pl.exclude("stack", "frames")
    ).rows() == [
        ("a (a.py:1)", 0.75, 0.4, pytest.approx(0.35)),
        ("g (a.py:1)", 0.0, 0.1, pytest.approx(-0.1)),
        ("b (a.py:1)", 0.25, 0.5, pytest.approx(-0.25)),
    ]
    by_function = difference(now, before, by="function")
    assert by_function.select("function", "difference", "self_difference").rows() == [
        ("a (a.py:1)", pytest.approx(0.35), pytest.approx(0.35)),
        ("f (a.py:1)", pytest.approx(0.1), 0.0),
        ("g (a.py:1)", pytest.approx(-0.1), pytest.approx(-0.1)),
        ("b (a.py:1)", pytest.approx(-0.25), pytest.approx(-0.25)),
    ]


def test_a_function_that_calls_itself_counts_once():
    now = stacks(("f/f/f", 4, 0), ("f", 0, 0))

    compared = difference(now, stacks(("f", 0, 4)), by="function")

    assert compared.select(
        "share", "baseline_share", "self_share", "baseline_self_share"
    ).rows() == [(1.0, 1.0, 1.0, 0.0)]


def test_empty_profiles():
    empty = stacks()

    assert merge_stacks(empty).height == 0
    assert flame_nodes(empty)["total_samples"].to_list() == [0]
    assert (
        difference(empty, empty).height == difference(empty, empty, by="function").height == 0
    )
