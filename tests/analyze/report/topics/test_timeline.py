"""The encoding of the timeline, and its sentence."""

from dataclasses import replace

import polars as pl
import pytest

from analyze.report.contexts import context_of
from analyze.report.reading import plain, unpack
from roast_analyze.report.topics import timeline
from roast_analyze.report.topics.timeline import lanes
from roast_analyze.report.topics.timeline.task_stream import TaskStream

COLORS = timeline.Colors({"load": "#111111", "sum": "#222222"}, {"Z": "#333333"})
LOAD = pl.DataFrame({
    "t": [100.0, 105.0], "seconds": [5.0, 5.0],
    "executing": [1.5, 0.25], "nthreads": [2.0, 2.0],
})  # fmt: skip
UTILIZATION = pl.DataFrame({
    "row": [0, 0], "worker": ["tcp://a:1", "tcp://a:1"], "name": ["0", "0"], "workers": [1, 1],
    "bucket": [0, 1], "share": [0.75, 0.125],
})  # fmt: skip


def of_kinds(*kinds):
    """Return kinds from ``(prefix, dataset, attempts, seconds)``; ``...`` is several."""
    names = ("prefix", "dataset", "attempts", "seconds")
    rows = [
        [
            *(None if part is ... else part for part in kind),
            *(part is not ... for part in kind[:2]),
        ]
        for kind in kinds
    ]
    schema = dict(zip(names, (pl.String, pl.String, pl.Int64, pl.Float64), strict=True))
    schema |= {"of_prefix": pl.Boolean, "of_dataset": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row").with_row_index("kind")


#: Two workers, the first with two threads, and at least one bar, cell, transfer and mark.
STREAM = TaskStream(
    workers=pl.DataFrame(
        {"worker": ["tcp://a:1", "tcp://b:1"], "name": ["0", "<b>"], "lanes": [2, 1]}
    ),
    presence=pl.DataFrame({
        "row": [0, 1], "added_t": [100.0, 104.0], "removed_t": [None, 109.0],
        "lost": [False, True],
    }),
    kinds=of_kinds(("load", "Z", 2, 4.0), ("sum", None, 3, 1.0)),
    bars=pl.DataFrame({
        "lane": [1, 0], "kind": [0, 0], "start_t": [103.0, 101.0], "stop_t": [103.5, 104.5],
        "outcome": ["erred", "memory"], "key": ["load-2", "load-\x00 1"], "attempt": [2, 1],
        "filename": ["z.root", None], "entry_start": [0, None], "entry_stop": [10, None],
    }),
    cells=pl.DataFrame({"lane": [0, 2], "kind": [1, 1], "cell": [1, 4], "seconds": [0.5, 1.0]}),
    transfers=pl.DataFrame({"lane": [2], "start_t": [105.0], "stop_t": [105.25]}),
    transfer_cells=pl.DataFrame(
        schema={"lane": pl.Int32, "kind": pl.Int32, "cell": pl.Int32, "seconds": pl.Float64}
    ),
    marks=pl.DataFrame({
        "lane": [1], "kind": [0], "t": [103.5], "outcome": ["erred"], "key": ["load-2"],
        "attempt": [2],
    }),
    begin_t=100.0, bucket_seconds=2.0, runs=5, transfer_runs=1, failures=1,
    hidden_rows=0, hidden_runs=0,
)  # fmt: skip


PATH = pl.DataFrame({"key": ["load-2"], "attempt": [2]})
MORE = {
    "statuses": pl.DataFrame({
        "worker": ["tcp://b:1"], "status": ["paused"], "start_t": [105.0], "stop_t": [None],
    }),
    "dependencies": pl.DataFrame({"key": ["load-2"], "dependency": ["load-1"]}),
}  # fmt: skip


def encode(stream, **more):
    """Return a timeline, and its unpacked data."""
    texts = dict.fromkeys(("description", "note", "query", "command"), "")
    times = {"stop_t": 110.0, "utc_offset_seconds": 3600.0}
    drawn = lanes.build(
        stream, LOAD, UTILIZATION, PATH, COLORS, **{**MORE, **more}, **times, **texts
    )
    return drawn, unpack(drawn.above) | unpack(drawn.lanes)


def test_the_data_of_a_timeline():
    drawn, data = encode(STREAM)

    # Sorted by start: microseconds, as deltas.
    assert data["bars"] == {
        "lanes": [0, 1],
        "starts": [1_000_000, 2_000_000],
        "lengths": [3_500_000, 500_000],
        "kinds": [0, 0],
        "outcomes": [0, 1],
        "attempts": [1, 2],
        "keys": ["load-␀ 1", "load-2"],
        "path": [1],
        "filenames": ["z.root"],
        "files": [-1, 0],
        "entryStarts": [None, 0],
        "entryStops": [None, 10],
    }
    assert data["marks"] == {
        "lanes": [1], "starts": [3_500_000], "kinds": [0], "outcomes": [1], "attempts": [2],
        "keys": ["load-2"],
    }  # fmt: skip
    assert data["transfers"] == {"lanes": [2], "starts": [5_000_000], "lengths": [250_000]}
    # Lane and bucket are one number: a lane has 6 buckets, the last one incomplete.
    assert (data["cellsALane"], data["stretch"], data["steps"]) == (6, 2.0, 1000)
    assert data["cells"] == {"at": [1, 2 * 6 + 4 - 1], "kinds": [1, 1], "steps": [250, 500]}
    assert data["transferCells"] == {"at": [], "kinds": [], "steps": []}
    assert data["prefixes"] == [["load", "#111111"], ["sum", "#222222"]]
    assert data["datasets"] == [["Z", "#333333"]]
    assert data["kinds"] == [[0, 0, 2, 4.0], [1, -1, 3, 1.0]]
    assert (data["workers"], data["lanes"]) == (["worker 0", "<b>"], [2, 1])
    assert data["processes"] == [[0, 0, 10_000_000, 0, 0], [1, 4_000_000, 9_000_000, 1, 2]]
    assert data["curve"] == {
        "begin": 0.0, "seconds": 5.0, "computing": [1.5, 0.25], "threads": [2.0, 2.0]
    }  # fmt: skip
    assert data["map"] == [{"name": "worker 0", "workers": 1, "shares": [75, 12]}]
    assert data["statuses"] == [[1, 1, 5_000_000, 10_000_000]]
    legends = {name: [c.text for c in choices] for name, choices in drawn.legends.items()}
    assert legends == {
        "prefix": ["load", "sum"], "dataset": ["Z"], "outcome": ["succeeded", "erred"],
        "status": ["running", "paused"],
    }  # fmt: skip
    assert drawn.color == "prefix"
    assert drawn.marks == ("erred", "joined", "worker lost")
    assert (drawn.has_transfers, drawn.has_cells) == (True, True)
    # A single dataset cannot be selected.
    assert [choice.text for choice in drawn.prefixes] == ["load", "sum"]
    assert drawn.datasets == ()
    assert [choice.text for choice in drawn.workers] == ["worker 0", "<b>"]


def test_datasets_are_colors_if_one_prefix_has_most_of_the_time():
    of = {
        seconds: encode(replace(STREAM, kinds=of_kinds(
            ("load", "Y", 1, 5.0), ("load", "Z", 1, 4.0), ("sum", None, 1, seconds),
        )))[0].color
        for seconds in (0.9, 1.1)
    }  # fmt: skip
    assert of == {0.9: "dataset", 1.1: "prefix"}


def test_a_dependency_is_the_last_attempt_that_ended_before():
    """Of the attempts at `a`, the second one was lost, and the third ended too late."""
    bars = pl.DataFrame({
        "lane": [0] * 4, "kind": [0] * 4, "start_t": [100.0, 101.0, 103.0, 102.5],
        "stop_t": [101.0, 102.0, 105.0, 104.0], "key": ["a", "a", "a", "b"],
        "attempt": [1, 2, 3, 1], "outcome": ["memory", "lost", "memory", "memory"],
    })  # fmt: skip
    needed = pl.DataFrame({"key": ["b"], "dependency": ["a"]})
    _, data = encode(replace(STREAM, bars=bars), dependencies=needed)

    # In order of start, b is the third bar.
    assert data["dependencies"] == {"targets": [2], "sources": [0]}


def test_chunks_without_tasks_have_the_colors_of_their_datasets():
    kinds = of_kinds((None, "Y", 1, 1.0), (None, "Z", 1, 0.5))
    drawn, data = encode(replace(STREAM, kinds=kinds))

    assert drawn.legends["prefix"] == ()
    assert [(c.text, c.color) for c in drawn.legends["dataset"]] == [("Z", "#333333")]
    assert [name for name, _ in data["datasets"]] == ["Z", "Y"]
    assert data["prefixes"] == []
    # Tasks without a prefix have a name.
    _, data = encode(replace(STREAM, kinds=of_kinds((None, None, 1, 1.0))))
    assert [name for name, _ in data["prefixes"]] == ["(no prefix)"]


def test_kinds_of_several_prefixes_or_datasets_have_numbers_of_their_own():
    kinds = of_kinds(("load", "Z", 2, 4.0), ("load", ..., 3, 2.0), (..., ..., 4, 1.0))
    _, data = encode(replace(STREAM, kinds=kinds))

    assert data["kinds"] == [[0, 0, 2, 4.0], [0, -2, 3, 2.0], [-2, -2, 4, 1.0]]
    assert [name for name, _ in data["prefixes"]] == ["load"]


def test_the_note_counts_what_is_not_drawn():
    stream = replace(STREAM, hidden_rows=1, hidden_runs=2, failures=2, transfer_runs=3)

    found = timeline.Timeline(stream, UTILIZATION, PATH, None, **MORE)
    drawn = timeline.section(found, context_of(load=LOAD), COLORS).timeline

    assert plain(drawn.note) == (
        "The 2 longest of 5 computations have their own bars; the others are added up in "
        "buckets of 2 s, drawn as high as their share of the bucket. The 1 longest of 3 "
        "transfers are drawn individually, the others in buckets of 2 s. Left out: 1 worker "
        "with 2 computations. Workers with failures are shown first, then the busiest. 1 more "
        "failed attempt is not marked. All of them: roast-analyze view trace.jsonl chunks"
    )


def test_sentence(sentences, worker, task, run):
    assert sentences(
        "timeline",
        worker("w1"), task("a-1"), task("a-2"), *run("a-1", 1.0, 2.0), *run("a-2", 6.0, 8.0),
    ) == (
        "Each lane is a thread of a worker, each bar is a task in the color of its prefix. "
        "From the first task to the last, 0.429 of up to 1 thread computed on average. The "
        "longest gap in which nothing computed was 4 s, 2 s after the start."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("times", "gap"),
    [
        ([(0.0, 5.0), (1.0, 2.0), (6.0, 7.0), (8.5, 9.5)], (7.0, 8.5)),
        ([(0.0, 5.0), (1.0, 6.0)], None),
    ],
)
@pytest.mark.exhaustive
def test_the_longest_gap_over_all_threads(opened, run, times, gap):
    records = [
        line
        for number, (start, stop) in enumerate(times)
        for line in run(f"a-{number}", start, stop, thread=number)
    ]

    assert timeline.query(*opened(*records)).longest_gap == gap


@pytest.mark.parametrize(
    ("attempt", "gap"),
    [
        ({"stop": 8.0, "outcome": "lost"}, (8.0, 9.0)),
        # By its heartbeat, the worker began the attempt later.
        ({"stop": 8.0, "outcome": "lost", "start_t": 6.0}, (2.0, 6.0)),
        ({}, None),
    ],
)
@pytest.mark.exhaustive
def test_attempts_without_times_are_not_in_a_gap(opened, run, attempt, gap):
    records = [
        *run("a-1", 1.0, 2.0),
        *run("b-1", 2.0, **attempt, worker="w2"),
        *run("c-1", 9.0, 10.0),
    ]

    assert timeline.query(*opened(*records)).longest_gap == gap


def test_utilization_by_worker_and_bucket(opened, worker, task, run):
    trace, about = opened(
        worker("w2", name="10", nthreads=1),
        worker("w1", name="9", nthreads=2),
        task("a-1"),
        *run("a-1", 1.0, 5.0, worker="w1"),
    )

    found = timeline.query(trace, about).utilization

    rows = found.select("row", "worker", "name", "workers").unique().sort("row").rows()
    assert rows == [(0, "w1", "9", 1), (1, "w2", "10", 1)]
    busy = found.filter(pl.col("share") > 0)
    assert busy["share"].to_list() == pytest.approx([0.5] * busy.height)
    assert busy["worker"].unique().to_list() == ["w1"]
    assert about.load["t"][busy["bucket"].min()] == pytest.approx(1.0)
