"""Queries that run concurrently or one by one."""

import threading

import pytest

from roast_analyze.errors import NoRoom
from roast_analyze.open import concurrent_queries


@pytest.mark.parametrize(
    ("most_transitions", "memory_suffices", "expected"),
    [
        (1_000, True, [False]),
        (1_000, False, [False, True]),
        (1, True, [True]),
    ],
)
def test_queries_run_one_by_one_for_long_runs_or_if_memory_does_not_suffice(
    open_trace, run, monkeypatch, most_transitions, memory_suffices, expected
):
    monkeypatch.setattr(concurrent_queries, "_MOST_TRANSITIONS", most_transitions)
    calls = []

    def query(submit):
        released = threading.Event()
        is_one_by_one = submit(released.wait, 0.5).done()
        released.set()
        calls.append(is_one_by_one)
        if not memory_suffices and not is_one_by_one:
            raise NoRoom("out of memory")
        return "rows"

    trace = open_trace(*run("a-1", 1.0, 2.0))
    assert concurrent_queries.run_concurrently(trace, query) == "rows"
    assert calls == expected
