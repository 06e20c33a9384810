"""Views of a time range of the samples equal those computed in plain Python."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from nightly.comparison import Answer, differences
from nightly.recording import Recording
from nightly.test_views import SAMPLES
from nightly.time_ranges import TimeRange, records_within, run_within, task_runs_within
from roast_analyze import Trace
from roast_analyze.open.views import view_names

RANGES = [TimeRange(0, 0.4), TimeRange(0.25, 0.3), TimeRange(0.5, 1)]

#: Boundaries of adjacent ranges, as shares of the run.
TILES = [0, 0.1, 0.47, 0.83, 1]

#: Columns whose sums over adjacent ranges are those of the run.
ADDITIVE = (
    "compute_seconds", "core_seconds", "transfer_seconds", "wall_seconds", "busy_seconds",
    "output_bytes", "memory", "erred", "retried", "lost", "rescheduled", "failures", "chunks",
    "events", "bytes_read", "chunk_seconds", "process_seconds", "open_seconds", "read_seconds",
    "cpu_seconds", "wait_seconds", "merge_seconds", "failed_chunks",
)  # fmt: skip

#: Views whose rows are in exactly one of adjacent ranges.
VIEWS_OF_INSTANTS = (
    "transitions",
    "events",
    "worker_samples",
    "fine_metric_deltas",
    "failures",
)


#: Plain Python takes minutes for each range of the sample with all layers.
SMALL_SAMPLES = [path for path in SAMPLES if not path.name.startswith("metadata_map.")]


@pytest.fixture(scope="module", params=SMALL_SAMPLES, ids=lambda path: path.name.split(".")[0])
def recording(request) -> Recording:
    return Recording.read(request.param)


@pytest.fixture(scope="module")
def whole(recording) -> Iterator[Trace]:
    with Trace(recording.path) as opened:
        yield opened


@pytest.fixture(scope="module")
def tiles(recording) -> Iterator[list[Trace]]:
    opened = [open_range(recording, TimeRange(*ends)) for ends in pairwise(TILES)]
    yield opened
    for trace in opened:
        trace.close()


@pytest.fixture(scope="module", params=RANGES, ids=str)
def opened_range(request, recording) -> Iterator[tuple[Trace, TimeRange]]:
    with open_range(recording, request.param) as opened:
        yield opened, request.param


def open_range(recording: Recording, time_range: TimeRange) -> Trace:
    start, stop = time_range.seconds(recording)
    return Trace(recording.path, start=start, stop=stop)


def test_run_and_task_runs(recording, whole, opened_range):
    opened, time_range = opened_range
    failures = Answer.of(whole.view("failures")).rows

    [run] = Answer.of(opened.view("run")).rows
    expected = run_within(recording, time_range)
    expected["failures"] = sum(time_range.holds(recording, row["t"]) for row in failures)
    assert {name: run[name] for name in expected} == pytest.approx(expected)
    rows = [
        row | {"trace_id": recording.trace_id}
        for row in task_runs_within(recording, time_range)
    ]
    assert differences(Answer.of(opened.view("task_runs")), rows) == []


def test_records(recording, opened_range):
    opened, time_range = opened_range

    for view, kind in (
        ("transitions", "transition"), ("worker_samples", "worker_sample"), ("events", "event"),
        ("fine_metric_deltas", "fine_metric"),
    ):  # fmt: skip
        times = sorted(line["t"] for line in records_within(recording, kind, time_range))
        assert sorted(row["t"] for row in Answer.of(opened.view(view)).rows) == times


def test_totals_are_consistent(opened_range):
    opened, _ = opened_range

    def sum_of(view: str, column: str) -> float:
        return sum(row[column] or 0 for row in Answer.of(opened.view(view)).rows)

    [run] = Answer.of(opened.view("run")).rows
    assert run["core_efficiency"] <= 1
    assert run["busy_seconds"] <= run["wall_seconds"]
    for view in (
        "prefixes", "task_groups", "task_roles", "workers", "task_runs", "concurrency",
        "utilization",
    ):  # fmt: skip
        assert sum_of(view, "compute_seconds") == pytest.approx(run["compute_seconds"]), view
    for view in ("concurrency", "utilization"):
        assert sum_of(view, "thread_seconds") == pytest.approx(run["core_seconds"]), view
    assert sum_of("core_time", "seconds") == pytest.approx(run["core_seconds"])
    assert sum_of("critical_path", "seconds") == run["wall_seconds"]
    computed = "SELECT coalesce(sum(seconds), 0) FROM task_phases WHERE action = 'compute'"
    assert opened.sql(computed).fetchall()[0][0] == pytest.approx(run["compute_seconds"])
    assert sum_of("task_roles", "compute_share") == pytest.approx(1)


def test_adjacent_ranges_add_up(whole, tiles):
    [run] = Answer.of(whole.view("run")).rows
    runs = [Answer.of(tile.view("run")).rows[0] for tile in tiles]

    for name in ADDITIVE:
        assert sum(row[name] or 0 for row in runs) == pytest.approx(run[name] or 0), name


def test_core_time_of_adjacent_ranges_adds_up(whole, tiles):
    """Merge uses that depend on what follows a range: outcomes and the remaining work."""
    query = """
        SELECT
            if(category = 'busy' OR use IN ('tail', 'dependencies'), category, use) AS part,
            sum(seconds)
        FROM core_time
        GROUP BY part
    """
    added = Counter()
    for tile in tiles:
        added.update(dict(tile.sql(query).fetchall()))

    assert added == pytest.approx(dict(whole.sql(query).fetchall()))


@pytest.mark.parametrize("view", VIEWS_OF_INSTANTS)
def test_each_instant_is_in_one_of_adjacent_ranges(whole, tiles, view):
    parts = [row for tile in tiles for row in tile.view(view).fetchall()]

    assert sorted(map(repr, parts)) == sorted(map(repr, whole.view(view).fetchall()))


def test_profile_samples_are_in_one_of_adjacent_ranges(whole, tiles):
    query = (
        "SELECT coalesce(sum(samples + ambiguous_samples), 0) FROM profile_stacks "
        "WHERE profiler = 'dask'"  # the times of Yappi's functions are unknown
    )
    counts = [tile.sql(query).fetchall()[0][0] for tile in tiles]

    assert sum(counts) == whole.sql(query).fetchall()[0][0]


def test_range_of_the_whole_run(recording, whole):
    with Trace(recording.path, start=0) as everything:
        wrong = {
            view: found
            for view in view_names()
            if (found := _differences(everything, whole, view))
        }

    assert wrong == {}


def _differences(one: Trace, other: Trace, view: str) -> list[str]:
    rows = Answer.of(other.view(view)).rows
    return differences(Answer.of(one.view(view)), rows)
