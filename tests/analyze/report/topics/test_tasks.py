"""Tasks by prefix, their durations, task groups and stragglers."""

import polars as pl
import pytest

from analyze.report.reading import plain, texts
from roast_analyze import Trace
from roast_analyze.figures import palette
from roast_analyze.report.topics import tasks
from roast_analyze.report.topics.tasks.figures import BAR_LIMIT, durations, seconds
from roast_analyze.report.topics.tasks.sentences import stragglers

PREFIX = "The prefix of a task is the beginning of its key, usually a function name."


@pytest.fixture
def attempts(task, run):
    """Return records of attempts at ``a-0``, ``a-1``, …, from their durations."""

    def attempts(*durations, groups=("a",)):
        for i, duration in enumerate(durations):
            yield task(f"a-{i}", group=groups[i % len(groups)])
            yield from run(f"a-{i}", 0.0, duration, run_id=i)

    return attempts


def test_quantiles_of_the_compute_times_of_a_prefix(open_trace, task, run, attempts):
    records = *attempts(*map(float, range(101))), task("b-1"), *run("", 0.0, 2.0)

    assert tasks.query(open_trace(*records)).prefixes.rows.select(
        "prefix", "p05_compute_seconds", "p25_compute_seconds", "median_compute_seconds",
        "p75_compute_seconds", "p95_compute_seconds", "max_compute_seconds",
    ).rows() == [
        ("a", 5.0, 25.0, 50.0, 75.0, 95.0, 100.0),
        (None, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0),
        ("b", None, None, None, None, None, None),
    ]  # fmt: skip


def test_quantiles_in_a_time_range_are_those_of_whole_attempts(write_trace, attempts):
    with Trace(write_trace(*attempts(4.0, 6.0, 8.0)), start=3.0, stop=5.0) as trace:
        [row] = tasks.query(trace).prefixes.rows.to_dicts()

    names = ("p25", "median", "p75", "max")
    assert [row[f"{name}_compute_seconds"] for name in names] == [5.0, 6.0, 7.0, 8.0]


@pytest.mark.exhaustive
def test_groups_and_stragglers(section, sentences, attempts):
    durations = *[1.0] * 7, 9.0, *[1.0] * 3, 3.0
    found = section("tasks", *attempts(*durations, groups=("a-0", "a-1")))

    assert plain(" ".join(filter(None, found.sentences))) == (
        f"{PREFIX} a took 100 % of the compute time: 12 attempts with a median of 1 s. The "
        "tasks form 2 groups, the layers of the graphs. The most expensive, a-1, computed for "
        "16 s in 6 attempts. 2 attempts took at least twice the usual time of the prefix, 10 s "
        "more in total. The worst, a-7, took 9 s instead of 1 s, 9 times as long."
    )
    assert [(table.name, [row[0] for row in texts(table)]) for table in found.tables] == [
        ("prefixes", ["a"]),
        ("task-groups", ["a-1", "a-0"]),
        ("stragglers", ["a-7", "a-11"]),
    ]
    assert (
        "5 attempts took at least twice the usual time of the prefix, all of them on worker "
    ) in sentences("tasks", *attempts(*[1.0] * 12, *[3.0] * 5))


def test_a_straggler_is_named_by_file_and_entries(open_trace, attempts, chunk):
    place = {"dataset": "Z", "filename": "root://x/z.root", "entry_start": 0}
    records = (
        *attempts(*[1.0] * 10, 9.0, 8.0),
        chunk("a-10", **place, entry_stop=20_000),
        # A task of two chunks has no place.
        *(chunk("a-11", **place, entry_stop=stop) for stop in (10, 20)),
    )

    found = tasks.query(open_trace(*records)).stragglers

    assert found.rows["task"].to_list() == ["z.root 0–20,000", "a-11"]


def test_only_prefixes_with_ten_attempts_have_stragglers(sentences, open_trace, attempts):
    text = (
        "Of the prefixes with at least 10 successful attempts, none has an attempt that took "
        "at least twice the usual time."
    )

    assert sentences("tasks", *attempts(*[1.0] * 10)).endswith(text)
    nine = tasks.query(open_trace(*attempts(*[1.0] * 8, 9.0)))
    assert stragglers(nine.stragglers, nine.prefixes) == ""


def test_stragglers_that_are_not_listed_are_counted(open_trace, attempts):
    found = tasks.query(open_trace(*attempts(*[1.0] * 40, *range(43, 63)))).stragglers

    assert (found.rows.height, found.total) == (tasks.STRAGGLER_ROWS, 20)
    assert found.rows.select("key", "all_excess_seconds").row(0) == ("a-59", sum(range(42, 62)))


@pytest.mark.exhaustive
def test_without_groups_stragglers_and_compute_time(section, task, move, chunk):
    records = task("b-1"), move(1.0, "b-1", "waiting>processing", worker="w1")
    alone = chunk("y", run_id=4, start_t=1.0, stop_t=2.0)

    found = section("tasks", *records, alone)

    assert [part.name for part in (*found.tables, *found.plots)] == [
        "prefixes", "prefix-seconds",
    ]  # fmt: skip
    assert list(filter(None, found.sentences)) == [PREFIX]
    # Without a cluster, chunks are not tasks.
    assert section("tasks", alone).empty == (
        "No task was recorded. Without a cluster, chunks are not tasks."
    )


@pytest.mark.exhaustive
def test_compute_time_of_chunks_and_merging(section, task, run, chunk):
    found = section(
        "tasks",
        task("P-1"), chunk("P-1", entry_start=0, entry_stop=9), *run("P-1", 0.0, 6.0),
        task("reduce-1", dependencies=["P-1"]), *run("reduce-1", 6.0, 8.0),
        task("x-1"), *run("x-1", 8.0, 10.0),
    )  # fmt: skip

    assert found.tables[0].name == "roles"
    assert plain(found.sentences[1]) == (
        "Chunks account for 60 % of the compute time, merging for 20 %, other tasks for 20 %."
    )


def test_prefixes_beyond_the_figures(section, task, run):
    times = {f"p{i:02}": 5.0 - i / 10 for i in range(25)}
    records = [
        line
        for prefix, time in times.items()
        for line in (task(f"{prefix}-1"), *run(f"{prefix}-1", 0.0, time))
    ]

    bars, boxes = section("tasks", task("never-1"), *records).plots

    [computing] = bars.figure.data
    assert len(computing.x) == BAR_LIMIT + 1
    assert bars.figure.layout.yaxis.ticktext[-1] == "6\N{NO-BREAK SPACE}other prefixes"
    assert computing.x[-1] == 14.0  # 3.0 + 2.9 + 2.8 + 2.7 + 2.6, and none
    assert len(boxes.figure.data) == BAR_LIMIT + 1
    assert boxes.figure.layout.yaxis.ticktext[0] == "p00"
    assert boxes.note == "The 20 prefixes with the most compute time, of 26."


def test_bars_are_ranked_by_time():
    columns = ["prefix", "task_runs", "compute_seconds", "transfer_seconds"]
    prefixes = pl.DataFrame(
        [("sum", 3, 1.0, 5.0), ("load", 9, 4.0, 0.0)], schema=columns, orient="row"
    ).with_columns(deserialize_seconds=0.0, disk_seconds=pl.lit(None, pl.Float64))

    figure = seconds(prefixes, {"load": "#111111"})
    computing, transfer = figure.data
    assert figure.layout.yaxis.ticktext == ("sum", "load")
    assert figure.layout.yaxis.range == (1.5, -0.5)  # the first on top
    assert (computing.x, computing.marker.color) == ((1.0, 4.0), (palette.OTHER, "#111111"))
    assert computing.customdata == (["sum", 3], ["load", 9])
    assert (transfer.name, transfer.x) == ("transfer", (5.0, 0.0))


def test_a_box_shows_quartiles_and_its_mark_the_longest():
    places = ["p05", "p25", "median", "p75", "p95", "max"]
    columns = ["prefix", *(f"{place}_compute_seconds" for place in places)]
    spread = pl.DataFrame([("sum", 0.0, 0.2, 0.5, 1.0, 2.0, 9.0)], schema=columns, orient="row")

    figure = durations(spread, {"sum": "#0072B2"})

    box, longest = figure.data
    # A logarithmic scale has no zero.
    assert (box.lowerfence, box.q1, box.median) == ((1e-6,), (0.2,), (0.5,))
    assert (box.q3, box.upperfence) == ((1.0,), (2.0,))
    assert (box.line.color, box.fillcolor) == ("#0072B2", "rgba(0, 114, 178, 0.22)")
    assert (longest.x, longest.customdata) == ((9.0,), (["sum", 1e-6, 0.2, 0.5, 1.0, 2.0],))
    assert figure.layout.xaxis.type == "log"


@pytest.mark.parametrize(
    ("shortest", "longest", "visible"),
    [
        (0.01, 9.0, None),
        (0.3, 0.9, ["200 ms", "500 ms", "1 s"]),
        (0.03, 2.5, ["20 ms", "50 ms", "100 ms", "200 ms", "500 ms", "1 s", "2 s", "5 s"]),
        (0.6, 0.6, ["500 ms", "1 s"]),
    ],
)
def test_ticks_of_similar_times(shortest, longest, visible):
    places = ["p05", "p25", "median", "p75", "p95", "max"]
    spread = pl.DataFrame(
        {f"{place}_compute_seconds": [shortest] for place in places}
    ).with_columns(prefix=pl.lit("sum"), max_compute_seconds=pl.lit(longest))

    axis = durations(spread, {}).layout.xaxis

    if visible is None:
        assert axis.range is None
        assert axis.ticktext[:3] == ("1 µs", "10 µs", "100 µs")
    else:
        low, high = (10**end for end in axis.range)
        ticks = zip(axis.tickvals, axis.ticktext, strict=True)
        assert [text for value, text in ticks if low < value < high] == visible
