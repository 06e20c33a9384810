"""What the timeline is made of: a task stream in, small whole numbers out."""

import base64
import gzip
import json

import polars as pl
import pytest
from roast_analyze.report.gathered.task_stream import TaskStream

from roast_analyze.report import timeline

COLOURS = timeline.Colours({"load": "#111111", "sum": "#222222"}, {"Z": "#333333"})
STRETCHES = pl.DataFrame({
    "t": [100.0, 105.0], "seconds": [5.0, 5.0],
    "executing": [1.5, 0.25], "nthreads": [2.0, 2.0],
})  # fmt: skip
BUSY = pl.DataFrame({
    "row": [0, 0], "worker": ["tcp://a:1", "tcp://a:1"], "name": ["0", "0"], "workers": [1, 1],
    "stretch": [0, 1], "share": [0.75, 0.125],
})  # fmt: skip


def of_kinds(*kinds):
    names = ("kind", "prefix", "dataset", "runs", "seconds")
    rows = [(number, *kind) for number, kind in enumerate(kinds)]
    return pl.DataFrame(
        rows,
        schema={**dict.fromkeys(names, pl.Int64), "prefix": pl.String, "dataset": pl.String,
                "seconds": pl.Float64},
        orient="row",
    )  # fmt: skip


@pytest.fixture
def stream():
    """Two workers, the first with two threads, and something of everything."""
    return TaskStream(
        workers=pl.DataFrame(
            {"worker": ["tcp://a:1", "tcp://b:1"], "name": ["0", "<b>"], "lanes": [2, 1]}
        ),
        presence=pl.DataFrame(
            {
                "row": [0, 1],
                "added_t": [100.0, 104.0],
                "removed_t": [None, 109.0],
                "lost": [False, True],
            }
        ),
        kinds=of_kinds(("load", "Z", 2, 4.0), ("sum", None, 3, 1.0)),
        bars=pl.DataFrame(
            {
                "lane": [1, 0],
                "kind": [0, 0],
                "start_t": [103.0, 101.0],
                "stop_t": [103.5, 104.5],
                "outcome": ["erred", "memory"],
                "key": ["load-2", "load-\x00 1"],
                "attempt": [2, 1],
                "filename": ["z.root", None],
                "entry_start": [0, None],
                "entry_stop": [10, None],
            }
        ),
        cells=pl.DataFrame(
            {"lane": [0, 2], "kind": [1, 1], "cell": [1, 4], "seconds": [0.5, 1.0]}
        ),
        transfers=pl.DataFrame({"lane": [2], "start_t": [105.0], "stop_t": [105.25]}),
        marks=pl.DataFrame(
            {"lane": [1], "kind": [0], "t": [103.5], "outcome": ["erred"], "key": ["load-2"],
             "attempt": [2]}
        ),
        begin_t=100.0,
        stretch_seconds=2.0,
        runs=5,
        transfer_runs=1,
        failures=1,
    )  # fmt: skip


def built(stream, **changes):
    told = {"spoken": "s", "note": "n", "query": "q", "command": "c"} | changes
    return timeline.build(
        stream, STRETCHES, BUSY, COLOURS, stop_t=110.0, utc_offset_seconds=3600.0, **told
    )


def embedded(drawn):
    above, lanes = (
        json.loads(gzip.decompress(base64.b64decode(part)))
        for part in (drawn.above, drawn.lanes)
    )
    assert not above.keys() & lanes.keys()
    return above | lanes


def test_computations_are_in_order_of_time_in_microseconds_since_the_start(stream):
    bars = embedded(built(stream))["bars"]

    assert bars["lanes"] == [0, 1]
    assert bars["starts"] == [1_000_000, 2_000_000]  # the second: two seconds after the first
    assert bars["lengths"] == [3_500_000, 500_000]
    assert (bars["kinds"], bars["outcomes"], bars["attempts"]) == ([0, 0], [0, 1], [1, 2])
    assert bars["keys"] == ["load-␀ 1", "load-2"]
    assert (bars["filenames"], bars["files"]) == (["z.root"], [-1, 0])
    assert (bars["entryStarts"], bars["entryStops"]) == ([None, 0], [None, 10])


def test_what_is_put_together_is_told_in_steps_of_a_stretch(stream):
    page = embedded(built(stream))

    # Lane and stretch are one number, told as differences: 6 stretches fit, the last not whole.
    assert (page["cellsALane"], page["stretch"], page["steps"]) == (6, 2.0, 1000)
    assert page["cells"] == {"at": [1, 2 * 6 + 4 - 1], "kinds": [1, 1], "steps": [250, 500]}
    assert page["transferCells"] == {"at": [], "kinds": [], "steps": []}


def test_kinds_refer_to_prefixes_and_datasets_and_these_to_their_colours(stream):
    page = embedded(built(stream))

    assert page["prefixes"] == [["load", "#111111"], ["sum", "#222222"]]
    assert page["datasets"] == [["Z", "#333333"]]
    assert page["kinds"] == [[0, 0, 2, 4.0], [1, -1, 3, 1.0]]


def test_workers_come_and_go(stream):
    page = embedded(built(stream))

    assert page["workers"] == ["worker 0", "<b>"]
    assert page["lanes"] == [2, 1]
    assert page["processes"] == [[0, 0, 10_000_000, 0, 0], [1, 4_000_000, 9_000_000, 1, 2]]


def test_the_curve_and_the_map_have_the_same_stretches(stream):
    page = embedded(built(stream))

    assert page["curve"] == {
        "begin": 0.0, "seconds": 5.0, "computing": [1.5, 0.25], "threads": [2.0, 2.0]
    }  # fmt: skip
    assert page["map"] == [{"name": "worker 0", "workers": 1, "shares": [75, 12]}]


def test_only_what_is_drawn_is_in_the_legend(stream):
    drawn = built(stream)

    assert [choice.text for choice in drawn.legend] == ["load", "sum"]
    assert drawn.marks == ("erred", "joined", "worker lost")
    assert (drawn.has_transfers, drawn.has_cells) == (True, True)


def test_there_is_a_choice_only_where_there_are_several(stream):
    drawn = built(stream)

    assert [choice.text for choice in drawn.prefixes] == ["load", "sum"]
    assert drawn.datasets == ()
    assert [choice.text for choice in drawn.workers] == ["worker 0", "<b>"]


def test_chunks_without_tasks_have_the_colours_of_their_datasets():
    drawn = built(TaskStream(
        workers=pl.DataFrame({"worker": ["h:1"], "name": [None], "lanes": [1]}),
        kinds=of_kinds((None, "Z", 1, 1.0), (None, "Y", 1, 0.5)),
    ))  # fmt: skip

    assert [(choice.text, choice.colour) for choice in drawn.legend] == [("Z", "#333333")]
    assert embedded(drawn)["prefixes"] == []


def test_tasks_without_a_prefix_are_named_so():
    drawn = built(TaskStream(
        workers=pl.DataFrame({"worker": ["h:1"], "name": [None], "lanes": [1]}),
        kinds=of_kinds((None, None, 1, 1.0)),
    ))  # fmt: skip

    assert [name for name, _ in embedded(drawn)["prefixes"]] == ["(no prefix)"]
