"""View loss; damaged files are tested in test_load.py."""

import json

import pytest

from roast_analyze import Trace
from sealing import sealed

LATE = {"kind": "loss", "t": 3.0, "reason": "late", "record_kind": "task", "records": 5}
DROPPED = "dropped while recording"


@pytest.fixture
def losses(write_trace):
    """Return the losses of a trace whose lines were changed, with a new checksum if `seal`."""

    def losses(*records, change, seal=False):
        path = write_trace(*records)
        text = "\n".join(change(path.read_text().splitlines())) + "\n"
        path.write_bytes(sealed(text.encode()) if seal else text.encode())
        return loss_of(path)

    return losses


def loss_of(path):
    with Trace(path) as trace:
        return trace.rows("SELECT reason, records, detail FROM loss")


def test_columns_of_a_loss(rows, task, run):
    assert rows("FROM loss", task("a"), *run("a", 1.0, 2.0)) == []
    assert rows("FROM loss", {**LATE, "detail": "batch 7"}) == [
        ("late", 5, "task: batch 7", 3.0, "T")
    ]


def test_losses_of_one_reason_and_kind_add_up(tmp_path, lines):
    for number in (1, 2):
        late = [{**LATE, "t": number, "records": n} for n in (number, 10)]
        event = {**LATE, "record_kind": "event"}
        (tmp_path / f"{number}.jsonl").write_bytes(lines(*late, event, segment=number))

    assert loss_of(tmp_path) == [("late", 23, "task"), ("late", 10, "event")]


REMOVED = "an older segment was removed to keep within retain_limit_bytes"


@pytest.mark.parametrize(
    ("reason", "dropped", "expected"),
    [
        ("late", {"task": 5}, []),
        ("late", {"task": 0}, []),
        ("late", {"task": 7}, [(DROPPED, 2, "task")]),
        ("late", {"task": 5, "event": 1}, [(DROPPED, 1, "event")]),
        # The trailer does not count the records of a removed segment.
        (REMOVED, {"task": 2}, [(DROPPED, 2, "task")]),
    ],
)
def test_drops_in_the_trailer_count_once(losses, reason, dropped, expected):
    def change(lines):
        trailer = json.loads(lines[-1]) | {"dropped_by_kind": dropped}
        return [*lines[:-1], json.dumps(trailer)]

    found = losses({**LATE, "reason": reason}, change=change, seal=True)
    assert found == [(reason, 5, "task"), *expected]


JOINED = "the file contains 2 traces; surplus records: "
SURPLUS = "the file has more records than its trailer counts: "
NO_TRAILER = (
    "the recording did not end cleanly: it was killed, the scheduler "
    "died, its plugin was removed, or it is still running; later records are unknown"
)
CHANGED = "the checksum in the trailer does not match: any value may have changed"
DAMAGES = {
    "no trailer": (lambda lines: lines[:-1], [("no trailer", None, NO_TRAILER)]),
    "records missing": (
        lambda lines: [lines[0], *lines[2:4], *lines[5:]],
        [
            ("changed content", None, CHANGED),
            (
                "records missing",
                2,
                "the trailer counts more records than the file has: task 1, transition 1",
            ),
        ],
    ),
    "concatenated with itself": (
        lambda lines: lines * 2,
        [
            (
                "more records than were written",
                6,
                JOINED + "header 1, task 2, trailer 1, transition 2",
            )
        ],
    ),
    "records after the trailer": (
        lambda lines: [*lines, lines[1]],
        [("more records than were written", 1, SURPLUS + "task 1")],
    ),
    "second header without a trailer": (
        lambda lines: lines[:1] * 2,
        [
            ("more records than were written", 1, JOINED + "header 1"),
            ("no trailer", None, NO_TRAILER),
        ],
    ),
    "unreadable line counts once": (
        lambda lines: [lines[0], "garbage", *lines[2:]],
        [("unreadable lines", 1, "the first is line 2, not counting blank lines")],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_segment(losses, task, run, damage):
    change, expected = DAMAGES[damage]

    assert losses(task("a"), task("b"), *run("a", 1.0, 2.0), change=change) == expected


def test_a_trailer_that_could_not_be_written(losses):
    full = "the trace could not be written: No space left on device"

    found = losses({**LATE, "reason": full}, change=lambda lines: lines[:-1])

    detail = "the trailer could probably not be written either; later records are unknown"
    assert found == [("no trailer", None, detail), (full, 5, "task")]


def test_surplus_records_are_not_lost(write_trace, task):
    path = write_trace(task("a"))
    path.write_text(path.read_text() * 2)

    with Trace(path) as trace:
        assert trace.rows("SELECT records, lost_records FROM loss, run") == [(3, 0)]


def test_an_ongoing_recording_ends_with_its_last_record(write_trace, task):
    path = write_trace(task("a", 3.0))
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")

    with Trace(path) as trace:
        assert trace.rows("SELECT reason, t FROM loss") == [("no trailer", 3.0)]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((1, 3), "segment 3: segment 2"),
        ((2, 3), "segment 2: segment 1"),
        ((1, 5), "segment 5: segments 2 to 4"),
    ],
)
def test_missing_segment(tmp_path, lines, numbers, expected):
    for number in numbers:
        (tmp_path / f"{number}.jsonl").write_bytes(lines(segment=number))

    assert loss_of(tmp_path) == [("segment missing", None, expected)]


def test_the_first_header_counts_the_records_of_removed_segments(tmp_path, lines, task):
    for number, records in ((4, 30), (5, 40)):
        counts = {"header": 3, "event": 2, "task": records, "trailer": 3}
        earlier = {"records_by_kind": counts, "dropped_by_kind": {"event": records}}
        text = lines(task("a"), {**LATE, "record_kind": "event"}, segment=number)
        header, rest = text.split(b"\n", 1)
        changed = json.dumps({**json.loads(header), **earlier}).encode() + b"\n" + rest
        (tmp_path / f"{number}.jsonl").write_bytes(sealed(changed))

    assert loss_of(tmp_path) == [
        ("dropped while recording", 30, "segment 4: event, in missing segments"),
        ("segment missing", 32, "segment 4: segments 1 to 3: event 2, task 30"),
        ("late", 10, "event"),
    ]


def test_damage_names_the_segment(tmp_path, lines):
    (tmp_path / "1.jsonl").write_bytes(lines(segment=1))
    (tmp_path / "2.jsonl").write_bytes(lines(segment=2).replace(b'"trailer"', b'"fancy"'))

    assert loss_of(tmp_path) == [
        ("no trailer", None, f"segment 2: {NO_TRAILER}"),
        ("unknown kind", 1, "segment 2: kind 'fancy'"),
    ]
