"""View loss; damage of files is tested in test_load.py."""

import json

import pytest

from roast_analyze import Trace
from sealing import sealed

LOSS = "SELECT reason, records, detail FROM loss"


def loss_of(path):
    with Trace(path) as trace:
        return trace.sql(LOSS).fetchall()


def test_complete_trace_has_no_loss(rows, task, run):
    assert rows(LOSS, task("a"), *run("a", 1.0, 2.0)) == []


def test_records_dropped_by_the_recorder(rows):
    assert rows(
        "SELECT * FROM loss",
        {
            "kind": "loss",
            "t": 3.0,
            "reason": "the client was late",
            "record_kind": "task",
            "records": 5,
            "detail": "batch 7",
        },
    ) == [("the client was late", 5, "task: batch 7", 3.0, "T")]


def test_records_of_a_removed_segment(write_trace):
    removed = "an older segment was removed to keep within retain_bytes"
    path = write_trace(
        {"kind": "loss", "t": 3.0, "reason": removed, "record_kind": "task", "records": 5}
    )
    *records, trailer = map(json.loads, path.read_text().splitlines())
    trailer["dropped_by_kind"] = {"task": 2}
    path.write_bytes(sealed(("\n".join(map(json.dumps, [*records, trailer])) + "\n").encode()))

    assert loss_of(path) == [(removed, 5, "task"), ("dropped while recording", 2, "task")]


@pytest.mark.parametrize(
    ("dropped", "expected"),
    [
        ({"task": 5}, [("late", 5, "task")]),
        ({"task": 7}, [("late", 5, "task"), ("dropped while recording", 2, "task")]),
        (
            {"task": 5, "event": 1},
            [("late", 5, "task"), ("dropped while recording", 1, "event")],
        ),
        ({"task": 0}, [("late", 5, "task")]),
    ],
    ids=["explained", "more than explained", "another kind", "none"],
)
def test_drops_in_the_trailer_count_once(write_trace, dropped, expected):
    path = write_trace(
        {"kind": "loss", "t": 3.0, "reason": "late", "record_kind": "task", "records": 5}
    )
    *records, trailer = map(json.loads, path.read_text().splitlines())
    trailer["dropped_by_kind"] = dropped
    path.write_bytes(sealed(("\n".join(map(json.dumps, [*records, trailer])) + "\n").encode()))

    assert loss_of(path) == expected


def test_no_trailer(write_trace, task):
    path = write_trace(task("a", 3.0))
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")

    with Trace(path) as trace:
        assert trace.sql("SELECT reason, records, t FROM loss").fetchall() == [
            ("no trailer", None, 3.0)
        ]


def test_records_missing_by_the_trailers_count(write_trace, task, run):
    path = write_trace(task("a"), task("b"), *run("a", 1.0, 2.0))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[2:4], *lines[5:]]) + "\n")

    assert loss_of(path) == [
        (
            "changed content",
            None,
            "the checksum in the trailer does not match: any value may have changed",
        ),
        (
            "records missing",
            2,
            "the trailer counts more records than the file has: task 1, transition 1",
        ),
    ]


JOINED = "the file has more records than its trailer counts, as after concatenation: "


def test_trace_concatenated_with_itself(write_trace, task):
    path = write_trace(task("a"), task("b"))
    path.write_bytes(path.read_bytes() * 2)

    assert loss_of(path) == [
        ("more records than were written", 4, JOINED + "header 1, task 2, trailer 1")
    ]


def test_records_after_the_trailer(write_trace, task):
    path = write_trace()
    path.write_text(path.read_text() + json.dumps(task("late")) + "\n")

    assert loss_of(path) == [("more records than were written", 1, JOINED + "task 1")]


def test_second_header_without_a_trailer(write_trace):
    path = write_trace()
    path.write_text((path.read_text().splitlines()[0] + "\n") * 2)

    assert [row[:2] for row in loss_of(path)] == [
        ("more records than were written", 1),
        ("no trailer", None),
    ]


def test_unreadable_line_counts_once(write_trace, task):
    path = write_trace(task("a"), task("b"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "garbage", *lines[2:]]) + "\n")

    assert loss_of(path) == [
        ("unreadable lines", 1, "the first is line 2, not counting blank lines")
    ]


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [((1, 3), "segment 2"), ((2, 3), "segment 1"), ((1, 5), "segments 2 to 4")],
)
def test_missing_segment(tmp_path, lines, numbers, missing):
    for number in numbers:
        (tmp_path / f"{number}.jsonl").write_bytes(lines(segment=number))

    later = max(numbers) if 1 in numbers else min(numbers)
    assert loss_of(tmp_path) == [("segment missing", None, f"segment {later}: {missing}")]


def test_damage_names_the_segment(tmp_path, lines):
    (tmp_path / "1.jsonl").write_bytes(lines(segment=1))
    (tmp_path / "2.jsonl").write_bytes(lines(segment=2).replace(b'"trailer"', b'"fancy"'))

    assert loss_of(tmp_path) == [
        (
            "no trailer",
            None,
            (
                "segment 2: the recording did not end in order: it was killed, its client was "
                "closed, the scheduler died, or it is still running; "
                "later records are unknown"
            ),
        ),
        ("unknown kind", 1, "segment 2: kind 'fancy'"),
    ]
