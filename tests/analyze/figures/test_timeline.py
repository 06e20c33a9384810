import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.timeline import (
    capacity,
    lane_label,
    one_at_a_time,
    running,
    timeline,
)

AXIS = TimeAxis(0.0, 10.0)
COLOURS = {"load": "#111111", "sum": "#222222"}


def named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_a_bar_is_a_run_on_the_lane_of_its_thread(runs, workers):
    drawn = timeline(
        runs(
            ("load-1", "w1", 1, 1.0, 3.0, "memory"),
            ("load-2", "w1", 2, 1.0, 4.0, "memory"),
            ("sum-3", "w2", 1, 4.0, 4.5, "memory"),
        ),
        workers(("w1", 2, 0.0, None, False), ("w2", 1, 0.0, None, False)),
        AXIS,
        COLOURS,
    )

    load, total = named(drawn.figure, "load"), named(drawn.figure, "sum")
    assert (load.base, load.x, load.y) == ((1.0, 1.0), (2.0, 3.0), (0, 1))
    assert (total.base, total.x, total.y) == ((4.0,), (0.5,), (2,))
    assert load.customdata[0] == ["load", "load-1", 1, 2.0, "memory", "w1", "1"]
    assert load.meta["columns"]["customdata"][1] == "key"
    assert (load.marker.color, total.marker.color) == ("#111111", "#222222")
    assert drawn.figure.layout.yaxis.ticktext == ("w1", "w2")
    assert (drawn.single, drawn.merged, drawn.lanes, drawn.by_thread) == (3, 0, 3, True)


def test_failed_attempts_are_marked_where_they_ended(runs, workers):
    drawn = timeline(
        runs(
            ("load-1", "w1", 1, 1.0, 3.0, "erred"),
            ("load-2", "w1", 1, 4.0, 5.0, "retried"),
            ("load-3", "w1", None, None, 6.0, "lost"),
        ),
        workers(("w1", 1, 0.0, 6.0, True)),
        AXIS,
        COLOURS,
    )

    assert named(drawn.figure, "failed").x == (3.0,)
    assert named(drawn.figure, "failed, tried again").x == (5.0,)
    assert (named(drawn.figure, "lost with its worker").x, drawn.marks) == ((6.0,), 3)
    assert named(drawn.figure, "worker lost").x == (6.0,)


def test_workers_that_come_and_go_are_marked(runs, workers):
    drawn = timeline(
        runs(("load-1", "w1", 1, 1.0, 3.0, "memory")),
        workers(("w1", 1, 0.001, None, False), ("w2", 1, 5.0, 8.0, False)),
        AXIS,
        COLOURS,
    )

    assert named(drawn.figure, "worker arrived").x == (5.0,)
    assert named(drawn.figure, "worker left").x == (8.0,)
    present = named(drawn.figure, "worker present")
    assert sorted(zip(present.base, present.x, strict=True)) == [(0.001, 9.999), (5.0, 3.0)]


def test_many_runs_share_bars_and_none_is_lost(runs, workers):
    many = [(f"load-{i}", "w1", 1, i / 100, i / 100 + 0.005, "memory") for i in range(900)]
    long = ("sum-1", "w1", 1, 9.1, 9.9, "memory")

    drawn = timeline(
        runs(*many, long), workers(("w1", 1, 0.0, None, False)), AXIS, COLOURS, bar_limit=100
    )

    bars = [t for t in drawn.figure.data if t.type == "bar" and t.name != "worker present"]
    assert sum(len(bar.x) for bar in bars) <= 100
    assert (drawn.runs, drawn.single, drawn.merged) == (901, 50, 851)
    assert named(drawn.figure, "sum").x == (0.8,)
    told = [facts[1] for facts in named(drawn.figure, "load").customdata]
    assert sum(int(text.split()[0]) for text in told if "short runs" in text) == 851


def test_too_many_threads_become_workers_and_too_many_workers_are_left_out(runs, workers):
    rows = [
        (f"load-{w}-{t}", f"w{w}", t, 1.0, 2.0 + w, "memory")
        for w in range(6)
        for t in range(4)
    ]
    there = [(f"w{w}", 4, 0.0, None, False) for w in range(6)]

    drawn = timeline(runs(*rows), workers(*there), AXIS, COLOURS, lane_limit=4)

    assert (drawn.by_thread, drawn.lanes, drawn.hidden_lanes) == (False, 4, 2)
    assert drawn.hidden_runs == 8
    # The busiest stay.
    assert drawn.figure.layout.yaxis.ticktext == ("w2", "w3", "w4", "w5")


def test_prefixes_without_a_colour_share_one(runs, workers):
    drawn = timeline(
        runs(("a-1", "w1", 1, 1.0, 2.0, "memory"), ("b-1", "w1", 1, 2.0, 3.0, "memory")),
        workers(("w1", 1, 0.0, None, False)),
        AXIS,
        COLOURS,
    )

    assert named(drawn.figure, "2 other prefixes").marker.color == palette.OTHER


def test_markup_of_a_trace_is_no_markup_of_plotly(runs, workers):
    drawn = timeline(
        runs(("<b>x</b>-1", "<i>w</i>", 1, 1.0, 2.0, "erred")),
        workers(("<i>w</i>", 1, 0.0, None, False)),
        AXIS,
        {"<b>x</b>": "#111111"},
    )

    text = drawn.figure.to_json()
    assert "<i>w" not in text
    assert "<b>x" not in text
    assert drawn.figure.layout.yaxis.ticktext == ("&lt;i&gt;w&lt;/i&gt;",)


def test_a_timeline_without_workers_or_times(runs, workers):
    drawn = timeline(
        runs(("load-1", None, None, None, None, "unfinished")), workers(), AXIS, {}
    )

    assert (drawn.runs, drawn.lanes) == (0, 0)


def test_running_counts_the_tasks_that_overlap(runs):
    told = runs(("a-1", "w", 1, 1.0, 3.0, "memory"), ("a-2", "w", 2, 2.0, 4.0, "memory"))

    steps = running(told, 0.0, 10.0)

    assert steps.rows() == [(1.0, 1.0), (2.0, 2.0), (3.0, 1.0), (4.0, 0.0)]


def test_two_tasks_on_a_thread_do_not_overlap_however_their_clocks_differ():
    told = pl.DataFrame(
        {
            "worker": ["w1", "w1", "w1", "w1", "w2", "w2"],
            "thread": [1, 1, 2, 2, None, None],
            "compute_start_t": [0.0, 1.9, 0.0, 5.0, 0.0, 1.0],
            "compute_stop_t": [2.0, 4.0, 3.0, 6.0, 2.0, 3.0],
        }
    )

    ended = one_at_a_time(told).sort("worker", "thread", "compute_start_t")

    assert ended.select("thread", "compute_start_t", "compute_stop_t").rows() == [
        (1, 0.0, 1.9),
        (1, 1.9, 4.0),
        (2, 0.0, 3.0),
        (2, 5.0, 6.0),
        (None, 0.0, 2.0),  # nobody knows that these were on one thread
        (None, 1.0, 3.0),
    ]


def test_running_of_many_tasks_keeps_their_time(runs):
    told = runs(*((f"a-{i}", "w", 1, i * 0.01, i * 0.01 + 0.02, "memory") for i in range(500)))

    steps = running(told, 0.0, 10.0)

    assert steps.height == 300
    # 500 runs of 0.02 s in all, whatever the stretches are.
    assert abs(steps["running"].sum() * 10 / 300 - 10.0) < 1e-9


def test_capacity_follows_the_workers(workers):
    there = workers(("w1", 2, 0.0, 6.0, False), ("w2", 4, 3.0, None, False))

    assert capacity(there, 0.0, 10.0).rows() == [
        (0.0, 2.0),
        (3.0, 6.0),
        (6.0, 4.0),
        (10.0, 0.0),
    ]


def test_lane_labels():
    def told(name):
        return lane_label({"worker": "tcp://10.0.0.1:4000", "name": name})

    assert [told("3"), told("gpu-1"), told(None), told("tcp://10.0.0.1:4000")] == [
        "worker 3",
        "gpu-1",
        "10.0.0.1:4000",
        "10.0.0.1:4000",
    ]


def test_a_null_prefix_has_a_name(runs, workers):
    told = runs(("load-1", "w1", 1, 1.0, 2.0, "memory")).with_columns(
        prefix=pl.lit(None, pl.String)
    )

    drawn = timeline(told, workers(("w1", 1, 0.0, None, False)), AXIS, {None: "#333333"})

    assert named(drawn.figure, "(no prefix)").marker.color == "#333333"
