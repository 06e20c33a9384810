"""The table of the analysis benchmark: what it says of costs that are known."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
analyze_speed = importlib.import_module("analyze_speed")
synthetic = importlib.import_module("synthetic")

Cost = analyze_speed.Cost


def test_growth_is_the_slope_of_the_logarithms():
    seconds = {100_000: 3.0, 1_000_000: 3.0 * 10**1.1, 10_000_000: 3.0 * 10**2.2}

    assert analyze_speed.growth(seconds) == pytest.approx(1.1)


def test_growth_leaves_out_what_is_mostly_the_start_of_python():
    linear = {100_000: 1.0, 1_000_000: 10.0}

    assert analyze_speed.growth({10_000: 0.9, **linear}) == pytest.approx(1.0)
    assert analyze_speed.growth({10_000: 0.9, 100_000: 1.0}) is None


def test_the_table_compares_with_its_first_row():
    costs = {
        100_000: {"a": Cost(2.0, 4.0, 9 * 2**20), "ours": Cost(3.0, 3.5, 2**23)},
        1_000_000: {
            "a": Cost(20.0, 8.0, 9 * 2**20),
            "ours": Cost(1.0, 1.0, 0, "", "no room"),
        },
    }

    assert list(analyze_speed.table(costs, ["a", "ours"])) == [
        "| | 100,000 tasks | 1,000,000 tasks | growth |",
        "| --- | ---: | ---: | ---: |",
        "| a | 2.00 s, 1.00 ×, 4.0 s CPU, 9 MiB | 20.00 s, 1.00 ×, 8.0 s CPU, 9 MiB | n^1.00 |",
        "| ours | 3.00 s, 1.50 ×, 3.5 s CPU, 8 MiB | failed: no room | – |",
    ]


def test_every_row_is_measured(tmp_path):
    """Each reader reads a small trace in its own process, and each of our commands."""
    trace = tmp_path / "small.jsonl"
    synthetic.make_trace(trace, tasks=300, workers=5)
    rows = analyze_speed.rows(memory_limit="1GiB")

    costs = analyze_speed.measured(trace, rows, 1, tmp_path)

    assert {name: cost.failure for name, cost in costs.items() if cost.failure} == {}
    assert len(costs) == len(rows) + 1
    assert all(cost.peak_bytes > 2**24 for name, cost in costs.items() if "alone" not in name)


def test_a_row_that_fails_says_why(tmp_path):
    rows = analyze_speed.rows(memory_limit=None)
    missing = tmp_path / "no.jsonl"
    missing.write_text("no trace\n")

    cost = analyze_speed.measured(missing, rows[-1:], 1, tmp_path)[rows[-1].name]

    assert "no.jsonl" in cost.failure
