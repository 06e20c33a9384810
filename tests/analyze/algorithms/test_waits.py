"""Waits of task attempts."""

import polars as pl
import pytest

from roast_analyze.algorithms.waits import find_waits


def attempt(number: int, **columns) -> dict:
    """Return an attempt of one second on its own thread, with some columns replaced."""
    return {
        "id": number, "previous": None, "outcome": "memory", "is_wanted": False,
        "is_running": False, "process": 1, "thread": number, "submitted_t": 0.0,
        "waiting_t": 0.0, "processing_t": float(number), "transferred_t": None,
        "compute_start_t": float(number), "compute_stop_t": number + 1.0, "end_t": number + 1.0,
        "removed_t": None, **columns,
    }  # fmt: skip


@pytest.mark.parametrize("factor", [1, 1000])
def test_attempts_are_found_by_ids_that_are_close_or_far_apart(factor):
    """Attempt 3 needs results 1 and 2, and failed once; result 9 is not in the trace."""
    attempts = pl.DataFrame(
        [attempt(1), attempt(2), attempt(3, outcome="retried"), attempt(4, previous=3)],
        schema_overrides={"transferred_t": pl.Float64, "removed_t": pl.Float64},
    ).with_columns(pl.col("id", "previous") * factor)
    dependencies = pl.DataFrame({"id": [3, 3, 4], "dependency": [1, 2, 9]}) * factor

    waits = find_waits(attempts, dependencies, 0.0, 5.0)

    found = {
        kind.kind: [*zip(kind.before, kind.after, strict=True)] for kind in waits.constraints
    }
    assert found["result"] == [(0, 2), (1, 2)]
    assert found["failure"] == [(2, 3)]
