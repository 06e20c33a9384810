import pytest
from roast_analyze.report.gathered import tasks


def test_the_times_of_a_prefix_and_how_they_are_spread(open_trace, task, run):
    attempts = []
    for i in range(101):
        attempts += [task(f"a-{i}"), *run(f"a-{i}", 0.0, float(i), run_id=i)]

    listing = tasks.prefixes(open_trace(*attempts, task("b-1")), 10)

    spread = listing.rows.select(
        "prefix", "p05_compute_seconds", "p25_compute_seconds", "median_compute_seconds",
        "p75_compute_seconds", "p95_compute_seconds", "max_compute_seconds",
    ).rows()  # fmt: skip
    assert spread == [
        ("a", 5.0, 25.0, 50.0, 75.0, 95.0, 100.0),
        ("b", None, None, None, None, None, None),
    ]


def test_tasks_without_a_prefix_have_a_spread_as_well(open_trace, run):
    listing = tasks.prefixes(open_trace(*run("x", 0.0, 2.0)), 10)

    assert listing.rows.select("prefix", "p95_compute_seconds").rows() == [(None, 2.0)]


def test_stragglers_are_listed_and_what_all_took_longer_is_added_up(open_trace, task, run):
    attempts = []
    for i in range(60):
        stop = 1.0 if i < 40 else 3.0 + i
        attempts += [task(f"a-{i}"), *run(f"a-{i}", 0.0, stop, run_id=i)]

    found = tasks.stragglers(open_trace(*attempts))

    assert (found.listing.rows.height, found.listing.total) == (tasks.STRAGGLER_ROWS, 20)
    assert found.listing.rows["key"][0] == "a-59"
    assert found.excess_seconds == pytest.approx(sum(2.0 + i for i in range(40, 60)))


def test_no_stragglers(open_trace, task, run):
    found = tasks.stragglers(open_trace(task("a-1"), *run("a-1", 0.0, 1.0)))

    assert (found.listing.total, found.excess_seconds) == (0, 0.0)
