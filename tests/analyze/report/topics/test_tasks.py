"""Tasks by prefix, their durations, task groups and stragglers."""

import polars as pl
import pytest

from roast_analyze.figures import palette
from roast_analyze.report.topics import tasks
from roast_analyze.report.topics.tasks.figures import BAR_LIMIT, durations, seconds


@pytest.fixture
def attempts(task, run):
    """Records of attempts at ``a-0``, ``a-1``, … that took so many seconds."""

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


def test_stragglers(open_trace, attempts):
    records = attempts(*[1.0] * 40, *(3.0 + i for i in range(40, 60)))
    found = tasks.query(open_trace(*records))

    assert (found.stragglers.rows.height, found.stragglers.total) == (tasks.STRAGGLER_ROWS, 20)
    assert found.stragglers.rows["key"][0] == "a-59"
    assert found.excess_seconds == pytest.approx(sum(2.0 + i for i in range(40, 60)))


def test_sentences(sentences, attempts):
    assert sentences("tasks", *attempts(*[1.0] * 10, 4.0)) == (
        "The prefix of a task is the beginning of its key, usually a function name. a took 100 "
        "% of the compute time: 11 attempts with a median of 1 s. 1 attempt took at least "
        "twice the usual time of the prefix, 3 s more in total. The worst, a-10, took 4 s "
        "instead of 1 s, 4 times as long."
    )
    assert sentences("tasks", *attempts(1.0, 5.0, groups=("a", "a-x"))).endswith(
        "The tasks form 2 groups, the layers of the graphs. The most expensive, a-x, computed "
        "for 5 s in 1 attempt. No attempt took more than twice the usual time of its prefix."
    )


def test_compute_time_of_chunks_and_merging(sentences, task, run, chunk):
    text = sentences(
        "tasks",
        task("P-1"), chunk("P-1", entry_start=0, entry_stop=9), *run("P-1", 0.0, 6.0),
        task("reduce-1", dependencies=["P-1"]), *run("reduce-1", 6.0, 8.0),
        task("x-1"), *run("x-1", 8.0, 10.0),
    )  # fmt: skip

    assert (
        "Chunks account for 60 % of the compute time, merging for 20 %, other tasks for 20 %."
    ) in text


def test_groups_and_stragglers_have_tables_only_if_there_are_any(section, attempts):
    many = section("tasks", *attempts(*[1.0] * 7, 9.0, *[1.0] * 4, groups=("a-0", "a-1")))
    few = section("tasks", *attempts(1.0))

    assert [(table.name, [row[0].text for row in table.rows]) for table in many.tables] == [
        ("prefixes", ["a"]),
        ("task-groups", ["a-1", "a-0"]),
        ("stragglers", ["a-7"]),
    ]
    assert [table.name for table in few.tables] == ["prefixes"]


def test_prefixes_beyond_the_figure_are_counted(section, task, run):
    records = [line for i in range(25) for line in (task(f"p{i}-1"), *run(f"p{i}-1", 0.0, 1.0))]

    _, distribution = section("tasks", *records).plots
    assert distribution.note == "The 20 prefixes with the most compute time, of 25."


def test_a_prefix_without_compute_time_has_no_share(sentences, task, move, chunk):
    records = task("b-1"), move(1.0, "b-1", "waiting>processing", worker="w1")
    alone = chunk("y", run_id=4, start_t=1.0, stop_t=2.0)

    assert sentences("tasks", *records, alone).startswith(
        "The prefix of a task is the beginning of its key, usually a function name. No attempt"
    )


def prefixes(*rows):
    columns = ["prefix", "task_runs", "compute_seconds", "transfer_seconds"]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        deserialize_seconds=0.0, disk_seconds=pl.lit(None, pl.Float64)
    )


def test_bars_are_ranked_by_time():
    figure = seconds(prefixes(("sum", 3, 1.0, 5.0), ("load", 9, 4.0, 0.0)), {"load": "#111111"})

    computing, transfer = figure.data
    assert figure.layout.yaxis.ticktext == ("sum", "load")
    assert (computing.x, computing.marker.color) == ((1.0, 4.0), (palette.OTHER, "#111111"))
    assert (transfer.name, transfer.x) == ("transfer", (5.0, 0.0))


def test_prefixes_beyond_the_limit_share_a_bar():
    figure = seconds(prefixes(*((f"p{i:02}", 1, 10.0 - i / 10, 0.0) for i in range(25))), {})

    (computing,) = figure.data
    assert len(computing.x) == BAR_LIMIT + 1
    assert figure.layout.yaxis.ticktext[-1] == "5 other prefixes"
    assert computing.x[-1] == 8.0 + 7.9 + 7.8 + 7.7 + 7.6


def spread(*rows):
    places = ["p05", "p25", "median", "p75", "p95", "max"]
    columns = ["prefix", *(f"{place}_compute_seconds" for place in places)]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_a_box_shows_quartiles_and_its_mark_the_longest():
    figure = durations(spread(("sum", 0.0, 0.2, 0.5, 1.0, 2.0, 9.0)), {"sum": "#0072B2"})

    box, longest = figure.data
    # A logarithmic scale has no zero.
    assert (box.lowerfence, box.q1, box.median) == ((1e-6,), (0.2,), (0.5,))
    assert (box.q3, box.upperfence) == ((1.0,), (2.0,))
    assert (box.line.color, box.fillcolor) == ("#0072B2", "rgba(0, 114, 178, 0.22)")
    assert (longest.x, longest.customdata) == ((9.0,), (["sum", 1e-6, 0.2, 0.5, 1.0, 2.0],))
    assert figure.layout.xaxis.type == "log"


def test_boxes_of_the_first_prefixes_with_a_median():
    rows = [("never", *[None] * 6), *((f"p{i:02}", *[1.0] * 6) for i in range(25))]

    figure = durations(spread(*rows), {})

    assert len(figure.data) == BAR_LIMIT + 1
    assert figure.layout.yaxis.ticktext[0] == "p00"
