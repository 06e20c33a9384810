"""Traces in segments: content, losses, retention, and resuming after a kill."""

import contextlib
import copy
import errno
import os
import pickle
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import zlib
from collections import Counter

import pytest

from roast_recorder.scheduler import wire_format
from roast_recorder.settings import Settings
from roast_recorder.writer import segments as segments_module
from roast_recorder.writer.segments import MIN_FREE_BYTES, RESERVE_BYTES, Segments
from roast_recorder.writer.trace_file import TraceFile

HEADER = {"kind": "header", "schema_version": "1.0", "trace_id": "abc", "segment": 1}
SECRET = "postgres://me:hunter2hunter2@db/x"
FULL = "the trace could not be written: No space left on device"
ALMOST_FULL = "the trace could not be written: the disk is almost full"


def events(start: int, stop: int, kind: str = "event") -> list[dict]:
    return [{"kind": kind, "t": float(t), "topic": f"x{t}"} for t in range(start, stop)]


def worker(change: str, server_id: str, t: float) -> dict:
    return {"kind": f"worker_{change}", "t": t, "worker": "tcp://a", "server_id": server_id}


def loss(kind: str, records: int, start_t: float, stop_t: float, reason: str = FULL) -> dict:
    fields = {"kind": "loss", "t": 1000.0, "reason": reason, "record_kind": kind}
    return {**fields, "records": records, "start_t": start_t, "stop_t": stop_t}


def noise(n: int) -> dict:
    """Return a record of about 1 kB after compression."""
    return {"kind": "event", "t": float(n), "payload": os.urandom(1000).hex()}


class Clock:
    t = 1000.0

    def __call__(self) -> float:
        return self.t


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def begin(tmp_path, clock):
    """Begin a trace in tmp_path, or resume one."""

    def begin(
        name="trace", *, header=HEADER, retain_root=None, resume=None, **settings
    ) -> Segments:
        return Segments(
            os.path.join(tmp_path, name),  # noqa: PTH118 - a final slash has a meaning
            header,
            {**Settings().as_dict(), "segment_limit_seconds": 10**9, **settings},
            retain_root=retain_root,
            resume=copy.deepcopy(resume),
            clock=clock,
        )

    return begin


@pytest.fixture
def full(monkeypatch):
    """Return a list; while it is not empty, appends fail as on a full disk."""
    append, is_full = TraceFile.append, []

    def fail(file, data):
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(file, data)

    monkeypatch.setattr(TraceFile, "append", fail)
    return is_full


@pytest.fixture
def read(tmp_path, read_lines):
    """Read the segments of a trace; check the record counts of their trailers."""

    def read(name="trace") -> list[list[dict]]:
        path = tmp_path / name
        files = sorted(path.glob("*.zst")) if path.is_dir() else [path]
        segments = [read_lines(file) for file in files]
        for *before, last in segments:
            if last["kind"] == "trailer":
                assert last["records_by_kind"] == Counter(kinds(before))
        return segments

    return read


def kinds(records: list[dict]) -> list[str]:
    return [record["kind"] for record in records]


# -- targets -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "files"),
    [
        ("trace.jsonl", ["trace.jsonl"]),
        ("trace.jsonl.zst", ["trace.jsonl.zst"]),
        ("trace.jsonl.gz", ["trace.jsonl.gz"]),
        ("trace.jsonl/", ["trace.jsonl/000001.jsonl.zst", "trace.jsonl/000002.jsonl.zst"]),
        ("new/run", ["new/run/000001.jsonl.zst", "new/run/000002.jsonl.zst"]),
        (".", ["000001.jsonl.zst", "000002.jsonl.zst"]),
    ],
)
def test_files_of_a_target_are_private(begin, tmp_path, target, files):
    segments = begin(target, segment_limit_bytes=1)
    segments.write(events(0, 2))
    segments.write(events(2, 4))
    segments.finish(9.0, "done")

    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path)) for path in found) == files
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} <= {0o700}
    assert segments.state.nbytes == sum(path.stat().st_size for path in found)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("held", ValueError, "held' already holds the segments of a trace; choose another"),
        ("t.json", ValueError, "invalid trace name '.*t.json': use .jsonl, .jsonl.zst, .jso"),
        ("new/new/run", FileNotFoundError, "new' does not exist: create it, or name"),
        ("new/trace.jsonl", FileNotFoundError, "new' does not exist: create it"),
        ("file/run", OSError, "file"),
    ],
)
def test_invalid_targets(begin, tmp_path, target, error, message):
    before = begin("held")
    before.write(events(0, 1))
    before.abandon()
    (tmp_path / "file").touch()

    with pytest.raises(error, match=message) as raised:
        begin(target)
    assert "\n" not in str(raised.value)


def test_a_trace_without_records_leaves_no_folder(begin, tmp_path):
    (tmp_path / "users").mkdir()
    for name in ("new", "users"):
        begin(name).abandon()

    assert [path.name for path in tmp_path.iterdir()] == ["users"]


def test_the_header_before_the_first_record(begin, full, read):
    segments = begin("trace.jsonl")
    full.append(True)
    segments.begin()
    assert not segments.state.nbytes
    full.clear()
    segments.begin()
    segments.begin()
    assert kinds(read("trace.jsonl")[0]) == ["header"]
    segments.write(events(1, 2))
    segments.finish(2.0, "it was stopped")

    assert kinds(read("trace.jsonl")[0]) == ["header", "event", "trailer"]


def test_records_after_the_end_are_dropped(begin, read):
    segments = begin("trace.jsonl")
    segments.write(events(0, 2))
    segments.finish(9.0, "done")

    segments.write(events(2, 4))
    segments.abandon()

    assert kinds(*read("trace.jsonl")) == ["header", "event", "event", "trailer"]
    assert segments.state.dropped_by_kind == {"event": 2}
    assert "the trace has ended" in segments.warnings[0]
    with pytest.raises(ValueError, match="the trace has ended"):
        begin("trace.jsonl", resume=segments.state)


@pytest.mark.parametrize(
    "calls",
    [
        [[1, 2, 3]],
        [[1], [], [1], [2, 3]],
        [[1, 2], [1, 2, 3]],
        [[1, 2, 3], [1, 2], [3]],
        [[1], [1, 3], [3]],  # the buffer dropped batch 2
    ],
)
def test_a_batch_is_written_once(begin, read, calls):
    segments = begin("trace.jsonl")
    for numbers in calls:
        rows = {n: [("event", float(n), 1, {"topic": "t", "payload": n})] for n in numbers}
        segments.write_batches([(n, wire_format.encode([], rows[n], None)) for n in numbers])

    [[_, *written]] = read("trace.jsonl")
    assert [record["payload"] for record in written] == sorted({n for c in calls for n in c})


def test_the_state_does_not_grow_with_the_trace(begin):
    segments, nbytes = begin("trace.jsonl"), []
    for n in range(300):
        segments.write(events(n, n + 1))
        nbytes.append(len(pickle.dumps(segments.state)))

    assert nbytes[299] <= nbytes[149] + 100


# -- content of a segment ----------------------------------------------------------------


def test_header_losses_and_trailer(begin, tmp_path, read):
    segments = begin("trace.jsonl")
    segments.write(events(0, 2))
    segments.write(
        [
            loss("transition", 7, 0.5, 0.75, "not fetched in time"),
            loss("transition", 2, 0.25, 0.5, "not fetched in time"),
            loss("event", 1, 4.0, 4.0, "invalid"),
        ]
    )
    segments.finish(9.0, "done")

    [[header, *middle, transitions, event, trailer]] = read("trace.jsonl")
    before, _, _ = (tmp_path / "trace.jsonl").read_bytes().partition(b',"crc32":')
    assert header == {**HEADER, "t": 1000.0}
    assert middle == events(0, 2)
    assert transitions == loss("transition", 9, 0.25, 0.75, "not fetched in time")
    assert event == loss("event", 1, 4.0, 4.0, "invalid")
    assert trailer == {
        "kind": "trailer",
        "t": 9.0,
        "segment": 1,
        "reason": "done",
        "records_by_kind": {"header": 1, "event": 2, "loss": 2},
        "dropped_by_kind": {"transition": 9, "event": 1},
        "redacted_values": 0,
        "crc32": zlib.crc32(before),
    }
    in_trace = {"header": 1, "event": 2, "loss": 2, "trailer": 1}
    assert segments.state.records_by_kind == in_trace
    assert segments.state.dropped_by_kind == {"transition": 9, "event": 1}


@pytest.mark.parametrize(
    ("limits", "seconds_between", "per_segment"),
    [
        ({"segment_limit_bytes": 1}, 0, [1, 1, 1, 1]),
        ({"segment_limit_seconds": 10}, 5, [2, 2]),
        ({"segment_limit_seconds": 10}, 1, [4]),
        ({}, 0, [4]),
    ],
)
def test_rotation(begin, clock, read, limits, seconds_between, per_segment):
    segments = begin(**limits)
    for n in range(4):
        segments.write(events(n, n + 1))
        clock.t += seconds_between
    segments.finish(9.0, "done")

    in_segments = read()
    assert [kinds(records).count("event") for records in in_segments] == per_segment
    reasons = [records[-1]["reason"] for records in in_segments]
    assert reasons == ["rotated"] * (len(per_segment) - 1) + ["done"]
    for number, records in enumerate(in_segments, start=1):
        assert records[0]["kind"] == "header"
        assert records[0]["segment"] == records[-1]["segment"] == number
    assert segments.state.records_by_kind["event"] == 4


def test_a_later_segment_is_readable_alone(begin, clock, read):
    """Workers a and c are connected when segment 2 begins, b has left; d joins in it."""
    facts = [
        {"kind": "environment", "t": 0.5, "section": "host", "name": "cpus", "value": 4},
        {"kind": "environment", "t": 0.5, "section": "host", "name": "os", "value": None},
    ]
    on_worker = {"kind": "environment", "t": 1.0, "section": "process", "name": "worker"}
    on_b, on_c = ({**on_worker, "server_id": name} for name in "bc")
    a, b, c = (worker("added", name, 1.0) for name in "abc")
    d = worker("added", "d", 4.0)
    segments = begin(segment_limit_seconds=10)
    segments.write([*facts, a, b, c, on_b, on_c, worker("removed", "b", 2.0), *events(3, 4)])
    clock.t += 10
    segments.write([d, worker("removed", "a", 5.0)])
    clock.t += 10
    segments.write(events(6, 7))
    segments.finish(9.0, "done")

    first, second, third = read()
    earlier = Counter(kinds(first))
    counts = {"records_by_kind": earlier, "dropped_by_kind": {}}
    assert second[0] == {**HEADER, "t": 1010.0, "segment": 2, **counts}
    assert second[1:-1] == [*facts, on_c, a, c, d, worker("removed", "a", 5.0)]
    assert third[1:-1] == [*facts, on_c, c, d, *events(6, 7)]
    assert segments.state.records_by_kind["worker_added"] == 4  # without repetitions


@pytest.mark.parametrize(
    ("settings", "expected", "replaced"),
    [
        ({}, "postgres://<redacted>@db/x", 4),
        ({"redact": False}, SECRET, 0),
        ({"redact_patterns": ["db/x"]}, "postgres://<redacted>@<redacted>", 8),
    ],
    ids=["redact", "off", "patterns"],
)
@pytest.mark.parametrize("resumed", [False, True], ids=["one process", "resumed"])
def test_secrets_are_redacted(begin, read, settings, expected, replaced, resumed):
    header = {**HEADER, "scheduler": SECRET}
    segments = begin("trace.jsonl", header=header, **settings)
    segments.write([loss("event", 1, 1.0, 1.0, SECRET), {**events(1, 2)[0], "payload": SECRET}])
    if resumed:
        state = segments.state
        del segments
        segments = begin("trace.jsonl", header=header, resume=state, **settings)
    segments.write([{"kind": "environment", "t": 1.0, "value": SECRET}])
    segments.finish(2.0, "end")

    [[header, lost, event, environment, trailer]] = read("trace.jsonl")
    redacted = [header["scheduler"], lost["reason"], event["payload"], environment["value"]]
    # Equal secrets have equal marks, also in the lines of two writing processes.
    assert redacted == [redacted[0]] * 4
    assert re.sub("<redacted:[0-9a-f]{10}>", "<redacted>", redacted[0]) == expected
    assert trailer["redacted_values"] == replaced


# -- records that cannot be written ------------------------------------------------------


def test_unwritten_records_are_counted_and_reported(begin, full, read, tmp_path):
    segments = begin("trace.jsonl")
    segments.write(events(0, 2))
    full.append(True)
    segments.write(events(2, 5) + events(5, 6, "task"))
    segments.write(events(6, 8))
    full.clear()
    segments.write(events(8, 9))
    segments.finish(9.0, "done")

    [[*_, lost_events, lost_tasks, last, trailer]] = read("trace.jsonl")
    assert lost_events == loss("event", 5, 2.0, 7.0)
    assert lost_tasks == loss("task", 1, 5.0, 5.0)
    assert [last] == events(8, 9)
    assert trailer["dropped_by_kind"] == {"event": 5, "task": 1}
    assert segments.state.dropped_by_kind == {"event": 5, "task": 1}
    problem = f"{tmp_path}/trace.jsonl cannot be written (No space left on device)"
    reference = "(docs: reference/trace-format)"
    assert segments.warnings == [f"{problem}; the run continues {reference}"]


def test_a_record_that_cannot_be_encoded_is_dropped_alone(begin, read):
    segments = begin("trace.jsonl")
    segments.write([*events(0, 1), {"kind": "task", "t": 1.5, "nbytes": 2**70}, *events(2, 3)])
    segments.finish(9.0, "done")

    [[_, lost, first, second, _]] = read("trace.jsonl")
    reason = "a record could not be encoded: Integer exceeds 64-bit range"
    assert lost == loss("task", 1, 1.5, 1.5, reason)
    assert [first, second] == events(0, 1) + events(2, 3)
    assert segments.state.dropped_by_kind == {"task": 1}
    assert len(segments.warnings) == 1


def test_a_segment_continues_while_its_disk_is_full(begin, full, clock, read):
    segments = begin(segment_limit_seconds=10)
    segments.write(events(0, 1))
    clock.t += 10
    full.append(True)
    segments.write(events(1, 2))
    full.clear()
    segments.write(events(2, 3))
    segments.finish(9.0, "done")

    first, second = read()
    assert kinds(first) == ["header", "event", "loss", "trailer"]
    assert first[-1]["dropped_by_kind"] == {"event": 1}
    assert kinds(second) == ["header", "event", "trailer"]
    assert second[-1]["dropped_by_kind"] == {}


def test_a_folder_that_is_unavailable_for_a_while(begin, clock, read, tmp_path):
    segments = begin(segment_limit_seconds=10)
    segments.write([*events(0, 1), worker("added", "a", 0.5)])
    (tmp_path / "trace").rename(tmp_path / "away")
    clock.t += 10
    segments.write([*events(1, 2), worker("added", "b", 1.5)])
    (tmp_path / "away").rename(tmp_path / "trace")
    segments.write(events(2, 3))
    segments.finish(9.0, "done")

    first, second = read()
    names = [record.get("server_id") for record in second[1:3]]
    assert names == ["a", "b"], "a worker is missing whose record was lost"
    assert kinds(first)[-3:] == ["loss", "loss", "trailer"]
    [warning] = segments.warnings
    assert "it was removed or replaced while it was recorded" in warning


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 256 kB in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize("resumed", [False, True], ids=["one process", "resumed"])
@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.zst", "trace"])
def test_a_trace_on_a_full_disk_ends_with_its_losses_and_trailer(
    begin, small_disk, read_lines, name, resumed
):
    # Finally, small batches leave no room for a trailer in the last page of the disk.
    batches = [
        [
            {"kind": kind, "t": float(n), "topic": os.urandom(50).hex()}
            for kind in ("event", "task")
            for n in range(count)
        ]
        for count in [20] * 6 + [1] * 80
    ]
    segments, warnings = begin(f"{small_disk}/{name}"), []
    for number, batch in enumerate(batches):
        segments.write(batch)
        if number == 5:
            with contextlib.suppress(OSError), (small_disk / "other").open("wb", 0) as other:
                while True:
                    other.write(b"x" * 4096)
            if resumed:
                # The reserve of the killed process is taken over, and not available to others.
                warnings = segments.warnings
                segments._file._file.close()
                segments._reserve.close()
                segments = begin(f"{small_disk}/{name}", resume=segments.state)
    segments.finish(9.0, "done")

    path = small_disk / (f"{name}/000001.jsonl.zst" if name == "trace" else name)
    *records, trailer = read_lines(path)
    by_kind = Counter(kinds(records))
    assert 0 < by_kind["event"] == by_kind["task"] < 200
    assert trailer["records_by_kind"] == by_kind
    dropped = {"event": 200 - by_kind["event"], "task": 200 - by_kind["task"]}
    assert trailer["dropped_by_kind"] == segments.state.dropped_by_kind == dropped
    reported = Counter()
    for record in records:
        if record["kind"] == "loss":
            assert record["reason"] in (FULL, ALMOST_FULL)
            reported[record["record_kind"]] += record["records"]
    assert reported == dropped
    kept = [record for record in records if record["kind"] in ("event", "task")]
    assert kept == [record for batch in batches for record in batch][: len(kept)]
    assert segments.state.records_by_kind == by_kind + Counter(trailer=1)
    assert len(warnings + segments.warnings) == 1


def test_the_reserve_is_free_again_after_the_end(begin, small_disk):
    def free() -> int:
        status = os.statvfs(small_disk)
        return status.f_bavail * status.f_frsize

    before = free()
    segments = begin(f"{small_disk}/trace.jsonl")
    assert free() == before - RESERVE_BYTES
    segments.abandon()

    assert free() == before
    assert list(small_disk.iterdir()) == []


# -- resuming after a kill ---------------------------------------------------------------


@pytest.mark.parametrize("garbage", [b"", b"torn", b"\xff" * 5000])
@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.zst", "trace"])
def test_another_process_resumes_a_trace(begin, full, read, tmp_path, name, garbage):
    killed = begin(name)
    killed.write(events(0, 5))
    killed.write(events(5, 10))
    full.append(True)
    killed.write(events(10, 15))
    full.clear()
    state = copy.deepcopy(killed.state)
    killed.write(events(15, 20))  # was not answered
    del killed
    path = tmp_path / (f"{name}/000001.jsonl.zst" if name == "trace" else name)
    with path.open("ab") as file:
        file.write(garbage)

    segments = None
    for _ in range(2):  # a state can be used again
        del segments
        segments = begin(name, resume=state)
        assert kinds(*read(name)) == ["header"] + ["event"] * 10
        segments.write(events(15, 25))
    segments.finish(9.0, "done")

    [records] = read(name)
    assert [r for r in records if r["kind"] == "event"] == events(0, 10) + events(15, 25)
    assert records[-1]["dropped_by_kind"] == {"event": 5}
    assert segments.state.records_by_kind == Counter(kinds(records))


@pytest.mark.parametrize("answered_calls", range(5))
def test_a_kill_during_rotation(begin, read, answered_calls):
    """Each call begins a segment, and the last call was not answered."""
    killed = begin(segment_limit_bytes=1)
    batches = [[worker("added", f"w{n}", float(n)), *events(n, n + 1)] for n in range(6)]
    for batch in batches[:answered_calls]:
        killed.write(batch)
    state = copy.deepcopy(killed.state)
    killed.write(batches[answered_calls])
    del killed

    segments = begin(segment_limit_bytes=1, resume=state)
    for batch in batches[answered_calls:]:
        segments.write(batch)
    segments.finish(9.0, "done")

    assert [kinds(records) for records in read()] == [
        ["header", *["worker_added"] * workers, "event", "trailer"] for workers in range(1, 7)
    ]


WRITER = """
import pickle, sys
from roast_recorder.settings import Settings
from roast_recorder.writer.segments import Segments
begin, resume = pickle.load(sys.stdin.buffer)
settings = {**Settings().as_dict(), "segment_limit_bytes": 4000}
segments = Segments(sys.argv[1], {"kind": "header"}, settings, resume=resume)
for n in range(begin, 100_000):
    segments.write({"kind": "event", "t": float(n), "part": part} for part in range(50))
    pickle.dump((n + 1, segments.state), sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["trace.jsonl.zst", "trace"])
def test_processes_killed_at_any_moment(begin, read, tmp_path, name):
    """Three writers are killed and the fourth ends in order: each batch is written once."""
    done, state = 0, None
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path / name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            pickle.dump((done, state), process.stdin)
            process.stdin.close()
            done, state = pickle.load(process.stdout)
            time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
            with contextlib.suppress(EOFError, pickle.UnpicklingError):
                while True:
                    done, state = pickle.load(process.stdout)

    segments = begin(name, resume=state, segment_limit_bytes=4000)
    segments.finish(9.0, "done")

    events = [record for records in read(name) for record in records if "part" in record]
    parts = [(record["t"], record["part"]) for record in events]
    assert parts == [(float(n), part) for n in range(done) for part in range(50)]
    assert done > 20


# -- retention ---------------------------------------------------------------------------


@pytest.mark.parametrize("resumed", [False, True])
def test_the_oldest_segments_are_removed(begin, read, tmp_path, resumed):
    folder, limits = tmp_path / "trace", {"segment_limit_bytes": 1, "retain_limit_bytes": 6000}
    folder.mkdir()
    (folder / "notes.txt").write_text("x" * 10_000)  # not a segment
    segments, warnings = begin(**limits), []
    for n in range(10):
        segments.write([noise(n), noise(n)])
        if resumed:
            state = copy.deepcopy(segments.state)
            segments.write([noise(99)])
            warnings += segments.warnings
            del segments
            segments = begin(resume=state, **limits)
    segments.finish(9.0, "done")

    paths = sorted(folder.glob("*.zst"))
    first = int(paths[0].name[:6])
    assert 3 < first < 10
    assert [int(path.name[:6]) for path in paths] == list(range(first, 11))
    assert sum(path.stat().st_size for path in paths) < 6000 + 3000
    assert segments.state.dropped_by_kind == {}
    assert segments.state.records_by_kind["event"] == 20
    assert (folder / "notes.txt").exists()
    removed = [records[0]["records_by_kind"]["event"] for records in read()]
    assert removed == [2 * (n - 1) for n in range(first, 11)]
    [warning] = {*warnings, *segments.warnings}
    assert "older segments are removed, retain_limit_bytes=6000" in warning


def test_a_header_counts_the_dropped_records_of_earlier_segments(begin, read, full):
    segments = begin(segment_limit_bytes=1)
    for n in range(4):
        if n != 2:  # in this segment, nothing is dropped
            full.append(True)
            segments.write(events(0, 3))
            full.clear()
        segments.write(events(n, n + 1))
    segments.finish(9.0, "done")

    headers = [records[0] for records in read()]
    assert "dropped_by_kind" not in headers[0]
    dropped = [records[-1]["dropped_by_kind"].get("event", 0) for records in read()]
    earlier = [header["dropped_by_kind"].get("event", 0) for header in headers[1:]]
    assert earlier == [sum(dropped[: n + 1]) for n in range(len(dropped) - 1)]
    assert sum(dropped) == 9


def test_segments_are_smaller_than_the_retained_size(begin, tmp_path):
    """With the default, one segment would have all records, and be removed as a whole."""
    segments = begin("trace", retain_limit_bytes=12_000)
    for n in range(20):
        segments.write([noise(n)])
    segments.finish(9.0, "done")

    left = sum(path.stat().st_size for path in (tmp_path / "trace").iterdir())
    assert 6_000 < left < 12_000 + 4_000


def test_segments_of_older_traces_are_removed_first(begin, tmp_path):
    """Traces being written, other files and files behind links are kept."""
    root = tmp_path / "root"
    root.mkdir()
    finished, running = begin("root/finished"), begin("root/running")
    finished.write([noise(1), noise(2)])
    finished.finish(9.0, "done")
    running.write([noise(1)])
    (root / "kept").mkdir()
    (root / "kept" / "000001.jsonl.zst.bak").write_bytes(b"x" * 5000)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "000001.jsonl").write_bytes(b"x" * 5000)
    (root / "link").symlink_to(tmp_path / "elsewhere")

    segments = begin("root/mine", retain_limit_bytes=3000, retain_root=str(root))
    segments.write([noise(n) for n in range(3)])
    segments.finish(9.0, "done")

    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl*"))
    assert left == [
        "elsewhere/000001.jsonl",
        "root/kept/000001.jsonl.zst.bak",
        "root/mine/000001.jsonl.zst",
        "root/running/000001.jsonl.zst",
    ]
    assert not (root / "finished").exists()


def test_with_the_preload_traces_use_at_most_half_of_the_space(begin, tmp_path, monkeypatch):
    """Without a limit of its own: of the space that they and the free disk have together."""
    root, free = tmp_path / "root", [40_000]
    root.mkdir()

    def disk(_):
        used = sum(path.stat().st_size for path in root.rglob("*.zst"))
        return os.statvfs_result((1, 1, 10**6, 0, free[0] - used, 0, 0, 0, 0, 255))

    monkeypatch.setattr(segments_module.os, "statvfs", disk)
    segments = begin("root/mine", retain_root=str(root))
    for n in range(60):
        segments.write([noise(n)])
    in_half = sum(path.stat().st_size for path in root.rglob("*.zst"))
    assert 13_000 < in_half < 20_000 + 5_000
    free[0] = 25_000  # other programs use more; 1 % of the disk stays free
    for n in range(60):
        segments.write([noise(n)])
    segments.finish(9.0, "done")
    assert 5_000 < sum(path.stat().st_size for path in root.rglob("*.zst")) < 12_500 + 5_000
    assert segments.state.dropped_by_kind == {}
    [warning] = segments.warnings
    assert "older segments are removed" in warning

    monkeypatch.setattr(segments_module, "PRELOAD_LIMIT_BYTES", 6_000)
    segments = begin("root/next", retain_root=str(root))
    for n in range(20):
        segments.write([noise(n)])
    segments.finish(9.0, "done")
    assert sum(path.stat().st_size for path in root.rglob("*.zst")) < 6_000 + 3_000


@pytest.mark.parametrize("name", ["trace.jsonl", "trace"])
def test_records_are_dropped_while_a_disk_is_almost_full(begin, read, monkeypatch, name):
    free = [MIN_FREE_BYTES]
    monkeypatch.setattr(
        segments_module.os,
        "statvfs",
        lambda _: os.statvfs_result((1, 1, 2**50, 0, free[0], 0, 0, 0, 0, 255)),
    )
    segments = begin(name)
    segments.write(events(0, 2))
    free[0] -= 1
    segments.write(events(2, 5))
    free[0] += 1
    segments.write(events(5, 6))
    free[0] = 0
    segments.write(events(6, 8))
    segments.finish(9.0, "done")

    [records] = read(name)
    assert [r["t"] for r in records if r["kind"] == "event"] == [0, 1, 5]
    assert [r for r in records if r["kind"] == "loss"] == [
        loss("event", 3, 2.0, 4.0, ALMOST_FULL),
        loss("event", 2, 6.0, 7.0, ALMOST_FULL),
    ]
    assert records[-1]["dropped_by_kind"] == {"event": 5}
    assert len(segments.warnings) == 1


# -- removed traces ------------------------------------------------------------------------


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def move(path):
    path.rename(path.with_name("moved"))


def replace(path):
    new = path.with_name("new")
    new.write_bytes(b"x")
    new.replace(path)


def replace_folder(path):
    shutil.rmtree(path)
    path.write_bytes(b"x")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *(
            (name, change)
            for name in ("in/trace.jsonl", "in/trace")
            for change in (remove, move)
        ),
        ("in/trace.jsonl", replace),
        ("in/trace", replace_folder),
        ("in/trace", lambda path: replace(path / "000001.jsonl.zst")),
        ("in/trace", lambda path: remove(path.parent)),
        ("in/trace.jsonl", lambda path: remove(path.parent)),
    ],
)
def test_records_are_counted_as_lost_after_a_trace_was_removed(begin, tmp_path, name, change):
    (tmp_path / "in").mkdir()
    segments = begin(name)
    segments.write(events(0, 3))
    change(tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    for n in (3, 4):
        segments.write(events(n, n + 1))
    assert segments.state.removed
    segments.finish(9.0, "done")

    assert not segments.state.closed
    assert segments.state.records_by_kind["event"] == 3
    assert segments.state.dropped_by_kind["event"] == 2
    [warning] = segments.warnings
    assert f"{tmp_path / name} cannot be written (" in warning
    assert sorted(tmp_path.rglob("*")) == before, "something was created or removed"


def test_a_trace_that_comes_back_is_continued(begin, read, tmp_path):
    segments, path = begin("trace.jsonl.zst"), tmp_path / "trace.jsonl.zst"
    segments.write(events(0, 3))
    path.rename(tmp_path / "away")
    segments.write(events(3, 4))
    (tmp_path / "away").rename(path)
    segments.write(events(4, 5))
    segments.finish(9.0, "done")

    [records] = read("trace.jsonl.zst")
    assert kinds(records)[1:] == [*["event"] * 3, "loss", "event", "trailer"]
    assert segments.state.closed
    assert not segments.state.removed
