"""A trace in segments: what each holds, what is lost, and going on after a kill."""

import contextlib
import errno
import gzip
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zlib
from collections import Counter

import duckdb
import pytest

from roast_recorder.writer.segments import Segments
from roast_recorder.writer.sink import ENDINGS, TraceFile

HEADER = {"kind": "header", "schema_version": "1.0", "trace_id": "abc", "segment": 1}
FULL = "the trace could not be written: No space left on device"


def events(start: int, stop: int, kind: str = "event") -> list[dict]:
    return [{"kind": kind, "t": float(t), "topic": f"x{t}"} for t in range(start, stop)]


def worker(happens: str, name: str, t: float) -> dict:
    return {"kind": f"worker_{happens}", "t": t, "worker": "tcp://a", "server_id": name}


class Clock:
    def __init__(self):
        self.t = 1000.0

    def __call__(self) -> float:
        return self.t


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def warnings():
    return []


@pytest.fixture
def begin(tmp_path, clock, warnings):
    """Begin a trace in tmp_path, or go on with one."""

    def begin(name="trace", **changes) -> Segments:
        arguments = {
            "limit_bytes": 10**9,
            "limit_seconds": 10**9,
            "retain_bytes": None,
            "level": 6,
            "warn": warnings.append,
            "clock": clock,
        }
        return Segments(os.path.join(tmp_path, name), HEADER, **arguments | changes)  # noqa: PTH118

    return begin


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture
def full(monkeypatch):
    """Makes appends fail as on a full disk while it holds True."""
    append, is_full = TraceFile.append, []

    def fail(file, data):
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(file, data)

    monkeypatch.setattr(TraceFile, "append", fail)
    return is_full


@pytest.fixture
def read(read_lines):
    """Read a segment, after asking whether DuckDB finds as many records in it."""

    def read(path) -> list[dict]:
        if path.suffix == ".gz":
            lines = gzip.decompress(path.read_bytes()).splitlines()
            records = [json.loads(line) for line in lines]
        else:
            records = read_lines(path)
        query = f"SELECT count(*) FROM read_json('{path}', format = 'newline_delimited')"
        assert duckdb.sql(query).fetchall() == [(len(records),)]
        return records

    return read


def kinds(records: list[dict]) -> list[str]:
    return [record["kind"] for record in records]


def assert_counted(records: list[dict]) -> None:
    """The trailer's counts are those of the file."""
    *before, trailer = records
    assert trailer["kind"] == "trailer"
    assert trailer["records_by_kind"] == Counter(kinds(before))


# -- one file, or a folder ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "files"),
    [
        ("trace.jsonl", ["trace.jsonl"]),
        ("trace.jsonl.zst", ["trace.jsonl.zst"]),
        ("trace", ["trace/000001.jsonl.zst", "trace/000002.jsonl.zst"]),
        ("trace.jsonl/", ["trace.jsonl/000001.jsonl.zst", "trace.jsonl/000002.jsonl.zst"]),
        ("new/run", ["new/run/000001.jsonl.zst", "new/run/000002.jsonl.zst"]),
        (".", ["000001.jsonl.zst", "000002.jsonl.zst"]),
    ],
)
def test_what_is_written_where(begin, tmp_path, target, files):
    segments = begin(target, limit_bytes=1)
    segments.write(events(0, 2))
    segments.write(events(2, 4))
    segments.finish(9.0, "done")

    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path)) for path in found) == files
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    assert segments.nbytes == sum(path.stat().st_size for path in found)


def test_folders_are_private(begin, tmp_path):
    begin("new/run")

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new" / "run").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("held", ValueError, "held' already holds the segments of a trace; choose another"),
        ("new/new/run", FileNotFoundError, "new/new"),
        ("new/trace.jsonl", FileNotFoundError, "new/trace.jsonl"),
        ("file/run", OSError, "file"),
    ],
)
def test_what_cannot_be_begun(begin, tmp_path, target, error, message):
    before = begin("held")
    before.write(events(0, 1))
    before.abandon()
    (tmp_path / "file").touch()

    with pytest.raises(error, match=message) as raised:
        begin(target)
    assert "\n" not in str(raised.value)


def test_a_file_is_written_once(begin, read, tmp_path, warnings):
    segments = begin("trace.jsonl")
    segments.write(events(0, 2))
    segments.finish(9.0, "done")

    segments.write(events(2, 4))
    segments.abandon()

    assert kinds(read(tmp_path / "trace.jsonl")) == ["header", "event", "event", "trailer"]
    assert segments.dropped_by_kind == {"event": 2}
    assert "the trace has ended" in warnings[0]
    with pytest.raises(ValueError, match="the trace has ended"):
        begin("trace.jsonl", resume=segments.state)


def test_nothing_is_left_of_what_never_began(begin, tmp_path):
    segments = begin("trace.jsonl")
    segments.write([])
    segments.abandon()

    assert not (tmp_path / "trace.jsonl").exists()


# -- a segment ---------------------------------------------------------------------------


def test_header_and_trailer(begin, read, tmp_path):
    segments = begin("trace.jsonl")
    segments.write(events(0, 2))
    segments.lose("not fetched in time", "transition", 7, 0.5, 0.75)
    segments.finish(9.0, "done", exit_code=3)

    header, *middle, loss, trailer = read(tmp_path / "trace.jsonl")
    before, _, _ = (tmp_path / "trace.jsonl").read_bytes().partition(b',"crc32":')
    assert header == {**HEADER, "t": 1000.0}
    assert middle == events(0, 2)
    assert loss == {
        "kind": "loss",
        "t": 1000.0,
        "reason": "not fetched in time",
        "record_kind": "transition",
        "records": 7,
        "start_t": 0.5,
        "stop_t": 0.75,
    }
    assert trailer == {
        "kind": "trailer",
        "t": 9.0,
        "segment": 1,
        "reason": "done",
        "records_by_kind": {"header": 1, "event": 2, "loss": 1},
        "dropped_by_kind": {"transition": 7},
        "exit_code": 3,
        "crc32": zlib.crc32(before),
    }
    assert segments.records_by_kind == {"header": 1, "event": 2, "loss": 1, "trailer": 1}
    assert segments.dropped_by_kind == {"transition": 7}


@pytest.mark.parametrize("ending", ENDINGS)
def test_all_is_readable_after_each_call(begin, read, tmp_path, ending):
    segments = begin(f"trace{ending}")

    for n in range(20):
        segments.write(events(10 * n, 10 * n + 10))

        assert read(tmp_path / f"trace{ending}")[1:] == events(0, 10 * n + 10)


@pytest.mark.parametrize(
    ("limits", "seconds_between", "per_segment"),
    [
        ({"limit_bytes": 1}, 0, [1, 1, 1, 1]),
        ({"limit_seconds": 10}, 5, [2, 2]),
        ({"limit_seconds": 10}, 1, [4]),
        ({}, 0, [4]),
    ],
)
def test_rotation(begin, read, clock, tmp_path, limits, seconds_between, per_segment):
    segments = begin(**limits)
    for n in range(4):
        segments.write(events(n, n + 1))
        clock.t += seconds_between
    segments.finish(9.0, "done")

    paths = sorted((tmp_path / "trace").iterdir())
    read_back = [read(path) for path in paths]
    assert [Counter(kinds(records))["event"] for records in read_back] == per_segment
    reasons = [records[-1]["reason"] for records in read_back]
    assert reasons == ["rotated"] * (len(paths) - 1) + ["done"]
    for number, records in enumerate(read_back, start=1):
        assert records[0]["kind"] == "header"
        assert records[0]["segment"] == records[-1]["segment"] == number
        assert_counted(records)
    assert segments.records_by_kind["event"] == 4


def test_a_later_segment_is_readable_alone(begin, read, clock, tmp_path):
    """Workers a and c are there when segment 2 begins, b is not; d comes with it."""
    facts = [
        {"kind": "environment", "t": 0.5, "section": "host", "name": "cpus", "value": 4},
        {"kind": "environment", "t": 0.5, "section": "host", "name": "os", "value": None},
    ]
    there = [worker("added", name, 1.0) for name in "abc"]
    segments = begin(limit_seconds=10)
    segments.write([*facts, *there, worker("removed", "b", 2.0), *events(3, 4)])
    clock.t += 10
    segments.write([worker("added", "d", 4.0), worker("removed", "a", 5.0)])
    clock.t += 10
    segments.write(events(6, 7))
    segments.finish(9.0, "done")

    a, _, c = there
    d = worker("added", "d", 4.0)
    second, third = (read(tmp_path / "trace" / f"00000{n}.jsonl.zst") for n in (2, 3))
    assert second[0] == {**HEADER, "t": 1010.0, "segment": 2}
    assert second[1:-1] == [*facts, a, c, d, worker("removed", "a", 5.0)]
    assert third[1:-1] == [*facts, c, d, *events(6, 7)]
    assert_counted(second)
    assert_counted(third)
    assert segments.records_by_kind["worker_added"] == 4  # each once


# -- what cannot be written --------------------------------------------------------------


def test_what_cannot_be_written_is_counted_and_said(begin, read, full, warnings, tmp_path):
    segments = begin("trace.jsonl")
    segments.write(events(0, 2))
    full.append(True)
    segments.write(events(2, 5) + events(5, 6, "task"))
    segments.write(events(6, 8))
    full.clear()
    segments.write(events(8, 9))
    segments.finish(9.0, "done")

    *_, lost_events, lost_tasks, last, trailer = read(tmp_path / "trace.jsonl")
    loss = {"kind": "loss", "t": 1000.0, "reason": FULL}
    assert lost_events == {
        **loss, "record_kind": "event", "records": 5, "start_t": 2.0, "stop_t": 7.0
    }  # fmt: skip
    assert lost_tasks == {
        **loss, "record_kind": "task", "records": 1, "start_t": 5.0, "stop_t": 5.0
    }  # fmt: skip
    assert [last] == events(8, 9)
    assert trailer["dropped_by_kind"] == segments.dropped_by_kind == {"event": 5, "task": 1}
    assert_counted(read(tmp_path / "trace.jsonl"))
    assert warnings == [
        f"{tmp_path}/trace.jsonl cannot be written (No space left on device); the run goes on"
    ]


def test_what_cannot_be_encoded_is_left_out(begin, read, warnings, tmp_path):
    segments = begin("trace.jsonl")
    segments.write([*events(0, 1), {"kind": "task", "t": 1.5, "key": {1, 2}}, *events(2, 3)])
    segments.finish(9.0, "done")

    _, loss, first, second, _ = records = read(tmp_path / "trace.jsonl")
    assert loss["reason"] == "a record could not be encoded: Type is not JSON serializable: set"
    assert (loss["record_kind"], loss["records"], loss["start_t"]) == ("task", 1, 1.5)
    assert [first, second] == events(0, 1) + events(2, 3)
    assert segments.dropped_by_kind == {"task": 1}
    assert_counted(records)
    assert len(warnings) == 1


def test_a_full_disk_does_not_end_a_segment(begin, read, full, clock, tmp_path):
    segments = begin(limit_seconds=10)
    segments.write(events(0, 1))
    clock.t += 10
    full.append(True)
    segments.write(events(1, 2))
    full.clear()
    segments.write(events(2, 3))
    segments.finish(9.0, "done")

    first, second = (read(path) for path in sorted((tmp_path / "trace").iterdir()))
    assert kinds(first) == ["header", "event", "loss", "trailer"]
    assert first[-1]["dropped_by_kind"] == {"event": 1}
    assert kinds(second) == ["header", "event", "trailer"]
    assert second[-1]["dropped_by_kind"] == {}


def test_a_folder_that_is_away_for_a_while(begin, read, clock, warnings, tmp_path):
    segments = begin(limit_seconds=10)
    segments.write([*events(0, 1), worker("added", "a", 0.5)])
    (tmp_path / "trace").rename(tmp_path / "away")
    clock.t += 10
    segments.write([*events(1, 2), worker("added", "b", 1.5)])
    (tmp_path / "away").rename(tmp_path / "trace")
    segments.write(events(2, 3))
    segments.finish(9.0, "done")

    second = read(tmp_path / "trace" / "000002.jsonl.zst")
    names = [record.get("server_id") for record in second[1:3]]
    assert names == ["a", "b"], "b is there, though the record of its coming was lost"
    assert Counter(kinds(second))["loss"] == 2
    assert_counted(second)
    assert "No such file or directory" in warnings[0]


def fill(disk) -> None:
    with contextlib.suppress(OSError), (disk / "other").open("wb", buffering=0) as other:
        while True:
            other.write(b"x" * 4096)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.zst", "trace.jsonl.gz", "trace"])
def test_a_full_disk_still_gets_its_trailer(begin, read, small_disk, warnings, name):
    segments = begin(f"{small_disk}/{name}")
    batches = [
        [
            {"kind": kind, "t": float(n), "topic": os.urandom(50).hex()}
            for n in range(20 * batch, 20 * batch + 20)
            for kind in ("event", "task")
        ]
        for batch in range(40)
    ]
    for number, batch in enumerate(batches):
        segments.write(batch)
        if number == 5:
            fill(small_disk)
    segments.finish(9.0, "done")

    path = small_disk / (f"{name}/000001.jsonl.zst" if name == "trace" else name)
    records = read(path)
    by_kind = Counter(kinds(records))
    assert 0 < by_kind["event"] == by_kind["task"] < 800
    assert_counted(records)
    dropped = records[-1]["dropped_by_kind"]
    assert segments.dropped_by_kind == dropped
    assert dropped == {"event": 800 - by_kind["event"], "task": 800 - by_kind["task"]}
    told = Counter()
    for loss in records:
        if loss["kind"] == "loss":
            assert loss["reason"] == FULL
            told[loss["record_kind"]] += loss["records"]
    assert told == dropped
    kept = [record for record in records if record["kind"] in ("event", "task")]
    assert kept == [record for batch in batches for record in batch][: len(kept)]
    assert +segments.records_by_kind == by_kind
    assert len(warnings) == 1


def test_all_can_be_given_back_for_the_trailer(begin, read, monkeypatch, tmp_path):
    """The disk takes 700 bytes: one flush, or its losses and a trailer."""
    append = TraceFile.append

    def fail(file, data):
        if file.nbytes + len(data) > 700:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(file, data)

    monkeypatch.setattr(TraceFile, "append", fail)
    segments = begin("trace.jsonl")
    segments.write(events(0, 14))
    segments.finish(9.0, "done")

    records = read(tmp_path / "trace.jsonl")
    assert kinds(records) == ["header", "loss", "trailer"]
    assert_counted(records)
    assert records[-1]["dropped_by_kind"] == {"event": 14}
    assert +segments.records_by_kind == Counter(kinds(records))


# -- going on after a kill ---------------------------------------------------------------


def handed_over(state: dict) -> dict:
    """What another process gets of a state."""
    return json.loads(json.dumps(state))


@pytest.mark.parametrize("garbage", [b"", b"torn", b"\xff" * 5000])
@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.zst", "trace.jsonl.gz", "trace"])
def test_another_process_goes_on(begin, read, full, tmp_path, name, garbage):
    killed = begin(name)
    killed.write(events(0, 5))
    killed.write(events(5, 10))
    full.append(True)
    killed.write(events(10, 15))
    full.clear()
    state = handed_over(killed.state)
    killed.write(events(15, 20))  # nobody heard of it
    del killed
    path = tmp_path / (f"{name}/000001.jsonl.zst" if name == "trace" else name)
    with path.open("ab") as file:
        file.write(garbage)

    segments = begin(name, resume=state)
    assert kinds(read(path)) == ["header"] + ["event"] * 10
    segments.write(events(15, 25))
    segments.finish(9.0, "done")

    records = read(path)
    assert [r for r in records if r["kind"] == "event"] == events(0, 10) + events(15, 25)
    assert_counted(records)
    assert records[-1]["dropped_by_kind"] == {"event": 5}
    assert segments.records_by_kind == Counter(kinds(records))


@pytest.mark.parametrize("killed_after_calls", range(5))
def test_killed_while_it_rotated(begin, read, tmp_path, killed_after_calls):
    """The writer did one call more than is known, and each call begins a segment."""
    killed = begin(limit_bytes=1)
    batches = [[worker("added", f"w{n}", float(n)), *events(n, n + 1)] for n in range(6)]
    for batch in batches[:killed_after_calls]:
        killed.write(batch)
    state = handed_over(killed.state)
    killed.write(batches[killed_after_calls])
    del killed

    segments = begin(limit_bytes=1, resume=state)
    for batch in batches[killed_after_calls:]:
        segments.write(batch)
    segments.finish(9.0, "done")

    paths = sorted((tmp_path / "trace").iterdir())
    assert len(paths) == 6
    for number, path in enumerate(paths):
        records = read(path)
        assert kinds(records) == ["header"] + ["worker_added"] * (number + 1) + [
            "event",
            "trailer",
        ]
        assert_counted(records)


WRITER = """
import json, sys
from roast_recorder.writer.segments import Segments
target, begin, resume = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
segments = Segments(target, {"kind": "header"}, limit_bytes=4000, limit_seconds=1e9,
                    retain_bytes=None, level=6, resume=resume, warn=print)
for n in range(begin, 100_000):
    segments.write({"kind": "event", "t": float(n), "part": part} for part in range(50))
    print(json.dumps([n + 1, segments.state]), flush=True)
"""


@pytest.mark.parametrize("name", ["trace.jsonl.zst", "trace"])
def test_killed_for_real(begin, read, tmp_path, name):
    """Three writers are killed, the fourth ends in order: each batch is there once."""
    done, state = 0, None
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path / name, str(done), json.dumps(state)],
            stdout=subprocess.PIPE,
        )
        answer = process.stdout.readline()  # imports are done
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        with process:
            answers = [answer, *process.stdout.readlines()]
        done, state = json.loads([line for line in answers if line.endswith(b"\n")][-1])

    segments = begin(name, resume=state)
    segments.finish(9.0, "done")

    paths = sorted((tmp_path / "trace").iterdir()) if name == "trace" else [tmp_path / name]
    read_back = [read(path) for path in paths]
    for records in read_back:
        assert_counted(records)
    parts = [
        (record["t"], record["part"])
        for records in read_back
        for record in records
        if record["kind"] == "event"
    ]
    assert parts == [(float(n), part) for n in range(done) for part in range(50)]
    assert done > 20


def test_a_state_may_be_used_again(begin):
    killed = begin("trace.jsonl")
    killed.write(events(0, 5))
    state = killed.state
    del killed

    for _ in range(2):
        segments = begin("trace.jsonl", resume=state)
        segments.write(events(5, 6))
        assert segments.records_by_kind == {"header": 1, "event": 6}
        del segments


# -- retention and upload ----------------------------------------------------------------


def noise(n: int, nbytes: int = 2000) -> dict:
    """A record that takes as many bytes on disk."""
    return {"kind": "event", "t": float(n), "payload": os.urandom(nbytes // 2).hex()}


@pytest.mark.parametrize("resumed", [False, True])
def test_the_oldest_segments_are_removed(begin, read, warnings, tmp_path, resumed):
    folder, limits = tmp_path / "trace", {"limit_bytes": 1, "retain_bytes": 6000}
    (tmp_path / "trace").mkdir()
    (folder / "notes.txt").write_text("x" * 10_000)  # is not ours
    segments = begin(**limits)
    for n in range(10):
        segments.write([noise(n), noise(n)])
        if resumed:
            state = segments.state
            segments.write([noise(99)])
            del segments
            segments = begin(resume=state, **limits)
    segments.finish(9.0, "done")

    paths = sorted(folder.glob("*.zst"))
    first = int(paths[0].name[:6])
    assert 3 < first < 10
    assert [int(path.name[:6]) for path in paths] == list(range(first, 11))
    assert sum(path.stat().st_size for path in paths) < 6000 + 3000
    assert segments.dropped_by_kind == {}
    assert segments.records_by_kind["event"] == 20
    assert (folder / "notes.txt").exists()
    losses = [r for path in paths for r in read(path) if r["kind"] == "loss"]
    assert losses[-1] == {
        "kind": "loss",
        "t": 1000.0,
        "reason": "an older segment was removed to keep within retain_bytes",
        "record_kind": "event",
        "records": 2,
        "start_t": float(first - 2),
        "stop_t": float(first - 2),
        "detail": f"segment {first - 1}",
    }
    (warning,) = set(warnings)
    assert "older segments are removed, retain_bytes=6000" in warning


def test_older_traces_go_first(begin, tmp_path):
    """What is written to, what is no segment and what is behind a link stays."""
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

    segments = begin("root/mine", retain_bytes=3000, retain_root=str(root))
    for n in range(3):
        segments.write([noise(n)])
    segments.finish(9.0, "done")

    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl*"))
    assert left == [
        "elsewhere/000001.jsonl",
        "root/kept/000001.jsonl.zst.bak",
        "root/mine/000001.jsonl.zst",
        "root/running/000001.jsonl.zst",
    ]
    assert not (root / "finished").exists()


@pytest.fixture
def storage():
    """A storage of fsspec's, which must be empty again afterwards."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    yield memory
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.mark.parametrize(
    ("name", "uploaded"),
    [
        ("trace.jsonl", ["/there/trace.jsonl"]),
        ("trace", ["/there/trace/000001.jsonl.zst", "/there/trace/000002.jsonl.zst"]),
    ],
)
def test_finished_segments_are_uploaded(begin, read, storage, tmp_path, name, uploaded):
    segments = begin(name, limit_bytes=1, upload_url="memory://there")
    segments.write(events(0, 2))
    segments.write(events(2, 4))
    assert storage.find("/there") == []  # its state may not have been taken yet
    segments.write([])
    assert storage.find("/there") == uploaded[:-1]
    segments.finish(9.0, "done")

    assert storage.find("/there") == uploaded
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    for number, there in enumerate(uploaded):
        here = tmp_path / f"{number}-{there.rpartition('/')[2]}"
        storage.get_file(there, here)
        assert_counted(read(here))


def test_an_upload_that_fails_is_tried_again(begin, storage, monkeypatch, warnings, tmp_path):
    def refuse(*_, **__):
        raise PermissionError("who are you?")

    segments = begin(limit_bytes=1, upload_url="memory://there")
    with monkeypatch.context() as broken:
        broken.setattr(type(storage), "put_file", refuse)
        for n in range(4):
            segments.write(events(n, n + 1))
    assert len(list((tmp_path / "trace").iterdir())) == 4
    (warning,) = warnings
    assert warning == (
        f"{tmp_path}/trace/000001.jsonl.zst cannot be uploaded to memory://there "
        "(who are you?), is kept and tried again; the run goes on"
    )

    segments.finish(9.0, "done")

    assert len(storage.find("/there")) == 4
    assert list((tmp_path / "trace").iterdir()) == []


def test_an_upload_that_arrives_cut_is_no_upload(begin, storage, monkeypatch, tmp_path):
    monkeypatch.setattr(type(storage), "size", lambda *_: 3)
    segments = begin("trace.jsonl", upload_url="memory://there")
    segments.finish(9.0, "done")

    assert (tmp_path / "trace.jsonl").exists()


def test_killed_after_an_upload(begin, storage):
    limits = {"limit_bytes": 1, "upload_url": "memory://there"}
    killed = begin(**limits)
    killed.write(events(0, 1))
    killed.write(events(1, 2))
    state = handed_over(killed.state)
    killed.write(events(2, 3))  # uploads the first
    del killed

    segments = begin(resume=state, **limits)
    segments.write(events(2, 3))
    segments.finish(9.0, "done")

    assert len(storage.find("/there")) == 3


def test_an_unknown_storage_is_said_at_once(begin):
    with pytest.raises(ValueError, match="nowhere"):
        begin(upload_url="nowhere://there")
