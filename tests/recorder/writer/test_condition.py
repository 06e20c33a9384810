"""The condition of traces on disk, from their ends."""

import fcntl
import gzip
import json
import os
import socket
import time
from pathlib import Path

import pytest
import zstandard

from roast_recorder.cli import main
from roast_recorder.scheduler.health import write_note
from roast_recorder.writer import condition as module
from roast_recorder.writer.condition import condition, conditions

HEADER = {"kind": "header", "t": 1.0, "segment": 1, "dropped_by_kind": {"event": 2}}
LOSS = {"kind": "loss", "t": 2.0, "records": 3}
TRAILER = {
    "kind": "trailer",
    "t": 9.0,
    "reason": "the scheduler closed",
    "dropped_by_kind": {"task": 3},
}


def encoded(name: str, *records: dict) -> bytes:
    """Return records as a file of this name, each appended by itself."""
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    if name.endswith(".zst"):
        return b"".join(map(zstandard.compress, lines))
    return b"".join(map(gzip.compress, lines) if name.endswith(".gz") else lines)


def written(path: Path, *records: dict) -> Path:
    path.write_bytes(encoded(path.name, *records))
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst", ".jsonl.gz"])
def test_ends_of_files(tmp_path, ending):
    ended = condition(written(tmp_path / f"a{ending}", HEADER, LOSS, TRAILER))
    assert (ended.state, ended.detail, ended.dropped) == ("ended", "the scheduler closed", 5)
    assert (ended.start_t, ended.written_t) == (1.0, 9.0)
    stopped = condition(written(tmp_path / f"b{ending}", HEADER, LOSS))
    assert (stopped.state, stopped.detail) == ("failing", "stopped without a trailer")
    assert stopped.dropped == 5
    imported = condition(written(tmp_path / f"c{ending}", HEADER, TRAILER, {"kind": "import"}))
    assert imported.state == "ended"


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst", ".jsonl.gz"])
def test_an_incomplete_end(tmp_path, ending):
    """A killed writer leaves a part of its last append."""
    path = tmp_path / f"a{ending}"
    whole = encoded(path.name, HEADER, LOSS)
    path.write_bytes(whole + encoded(path.name, TRAILER)[:-20])

    assert condition(path).state == "failing"


def test_a_large_end(tmp_path):
    filler = {"kind": "event", "payload": os.urandom(400_000).hex()}
    path = written(tmp_path / "a.jsonl", HEADER, TRAILER, filler, TRAILER | {"t": 10.0})
    assert condition(path).written_t == 10.0


def test_a_file_that_is_being_written(tmp_path):
    kinds = {"kinds": ["scheduler_sample"], "flush_interval_seconds": 0.5}
    path = written(tmp_path / "a.jsonl", HEADER | {"settings": kinds})
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert condition(path).state == "recording"
        os.utime(path, (time.time() - 100,) * 2)
        assert condition(path).detail == "nothing was written for 100 s"
        # An idle scheduler has nothing to write.
        written(path, HEADER | {"settings": {"kinds": ["task"]}})
        os.utime(path, (time.time() - 100,) * 2)
        assert condition(path).state == "recording"
    assert condition(path).state == "failing"


def test_a_folder_of_traces_and_notes(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").touch()
    for number in (1, 2):
        rotated = TRAILER | {"reason": "rotated"}
        path = tmp_path / "run" / f"00000{number}.jsonl.zst"
        written(path, HEADER | {"t": float(number)}, *[rotated] * (number == 1))
    (tmp_path / "other").mkdir()
    written(tmp_path / "single.jsonl.gz", HEADER, TRAILER)
    write_note(str(tmp_path / "gone"), "no space", "tcp://1.2.3.4:5")
    (tmp_path / "empty.not-recorded.json").touch()

    found = {Path(one.path).name: one for one in conditions(tmp_path)}

    assert {name: (one.state, one.start_t) for name, one in found.items() if one.start_t} == {
        "run": ("failing", 1.0), "single.jsonl.gz": ("ended", 1.0),
        "gone": ("not recorded", found["gone"].start_t),
    }  # fmt: skip
    assert found["gone"].detail.startswith("no space (tcp://1.2.3.4:5 on ")
    assert found["empty"].detail == "the note cannot be read"
    assert [one.path for one in conditions(tmp_path / "run")] == [str(tmp_path / "run")]


@pytest.mark.parametrize("text", [b"", b"[1]\n", b"{}\n", b"no\n", b"\x28\xb5\x2f\xfd"])
def test_other_contents(tmp_path, text):
    for ending in (".jsonl", ".jsonl.zst"):
        path = tmp_path / f"a{ending}"
        path.write_bytes(text)
        assert condition(path).state == "failing"


#: Contents of a note, and whether its problem can be read.
NOTES = {
    '{"t":1e400,"problem":"x"}': False,
    '{"t":NaN,"problem":"x"}': False,
    '{"t":1e20,"problem":"x"}': True,
    '{"t":"abc","problem":"x"}': True,
    '{"t":-1e12,"problem":"x"}': True,
    '{"t":true,"problem":"x","scheduler":[1],"host":7}': True,
    '{"problem":{"a":1}}': False,
    "[" * 100_000: False,
    " " * 10**6 + '{"problem":"x"}': False,
}


def test_no_content_of_a_note_hides_other_traces(tmp_path, capsys):
    written(tmp_path / "z.jsonl", HEADER, TRAILER)
    for number, text in enumerate(NOTES):
        (tmp_path / f"{number}.not-recorded.json").write_text(text)
    (tmp_path / ".not-recorded.json").write_text("{}")

    *found, ended = conditions(tmp_path)

    assert ended.state == "ended"
    assert [one.detail.partition(" (")[0] for one in found] == [
        "x" if is_read else "the note cannot be read" for is_read in NOTES.values()
    ]
    assert [one.start_t for one in found] == [None] * len(NOTES)
    assert main(["status", str(tmp_path)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == len(NOTES) + 2
    assert main(["status", str(tmp_path), "--json"]) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"t": 1e300}, {"t": "abc"}, {"t": -1e12}, {"t": None}, {"t": [1]}, {"settings": [1]},
        {"settings": {"kinds": 5, "flush_interval_seconds": "x"}}, {"dropped_by_kind": "x"},
        {"dropped_by_kind": {"event": "x"}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("last", [LOSS | {"records": "x"}, TRAILER])
def test_no_value_of_a_trace_hides_other_traces(tmp_path, capsys, fields, last):
    path = written(tmp_path / "a.jsonl", HEADER | fields, last | fields)
    written(tmp_path / "z.jsonl", HEADER, TRAILER)
    os.utime(path, (0, 2**33 * 100))

    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = list(conditions(tmp_path))
        main(["status", str(tmp_path)])

    assert [Path(one.path).name for one in found] == ["a.jsonl", "z.jsonl"]
    assert found[0].start_t in (None, 1.0)
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_only_regular_files_are_opened(tmp_path, monkeypatch):
    """A FIFO would block, /dev/zero would not end, and a socket or a folder is no file."""
    ended = written(tmp_path / "z.jsonl", HEADER, TRAILER)
    for name in ("a.jsonl.zst", "note.not-recorded.json", "z.jsonl.not-recorded.json"):
        os.mkfifo(tmp_path / name)
    for name in ("fifo", "first", "folder", "link"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "fifo" / "000001.jsonl.zst")
    os.mkfifo(tmp_path / "first" / "000001.jsonl")
    written(tmp_path / "first" / "000002.jsonl", HEADER, TRAILER)
    (tmp_path / "folder" / "000001.jsonl").mkdir()
    (tmp_path / "link" / "000001.jsonl").symlink_to("/dev/zero")
    (tmp_path / "b.jsonl").symlink_to("/dev/zero")
    (tmp_path / "c.jsonl").mkdir()
    (tmp_path / "d.jsonl").symlink_to(ended)
    monkeypatch.chdir(tmp_path)
    socket.socket(socket.AF_UNIX).bind("e.jsonl")

    found = {Path(one.path).name: (one.state, one.detail) for one in conditions(tmp_path)}

    unread = ("failing", "it cannot be read: it is not a regular file")
    assert found == {
        "a.jsonl.zst": unread, "b.jsonl": unread, "c.jsonl": unread, "e.jsonl": unread,
        "fifo": unread, "first": unread, "folder": unread, "link": unread,
        "d.jsonl": ("ended", "the scheduler closed"),
        "note": ("not recorded", "the note cannot be read"),
        "z.jsonl": ("ended", "the scheduler closed"),
    }  # fmt: skip
    with pytest.raises(OSError, match="not a regular file"):
        condition(tmp_path / "a.jsonl.zst")


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path, monkeypatch):
    path = written(tmp_path / "a.jsonl", HEADER, TRAILER)
    open_ = os.open

    def replace_and_open(*arguments):
        path.unlink()
        os.mkfifo(path)
        return open_(*arguments)

    monkeypatch.setattr(os, "open", replace_and_open)
    with pytest.raises(OSError, match="not a regular file"):
        condition(path)


def test_a_segment_among_traces_hides_none(tmp_path):
    for name in ("000001.jsonl", "a.jsonl"):
        written(tmp_path / name, HEADER, TRAILER)
    (tmp_path / "run").mkdir()
    written(tmp_path / "run" / "000001.jsonl", HEADER, TRAILER)

    names = [Path(one.path).name for one in conditions(tmp_path)]

    assert names == [tmp_path.name, "a.jsonl", "run"]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst", ".jsonl.gz"])
def test_reads_are_bounded(tmp_path, monkeypatch, ending):
    """A small file can have any amount of content, in one line or in many frames."""
    monkeypatch.setattr(module, "MAX_CONTENT_BYTES", 2**20)
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 2**16)
    losses = [LOSS] * 40_000
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in [HEADER, *losses])
    compress = {".zst": zstandard.compress, ".gz": gzip.compress}.get(ending[6:], bytes)
    path = tmp_path / f"a{ending}"
    for content in (lines, b"x" * 2**22, b"{" * 2**17 + b"\n" + lines[:1000]):
        path.write_bytes(compress(content) * 3)
        sizes, found = contents_read(monkeypatch, path)
        assert (found.state, found.dropped) == ("failing", None)
        assert sum(sizes) <= 2**22


def contents_read(monkeypatch, path):
    """Return the sizes of the lines that are read for the condition of a trace, and that."""
    sizes, lines = [], module._lines

    def counted(*arguments):
        for line in lines(*arguments):
            sizes.append(len(line))
            yield line

    with monkeypatch.context() as patch:
        patch.setattr(module, "_lines", counted)
        return sizes, condition(path)


def test_beginnings_of_frames_that_are_none(tmp_path):
    magic = b"\x28\xb5\x2f\xfd"
    path = written(tmp_path / "a.jsonl.zst", HEADER)
    path.write_bytes(path.read_bytes() + magic * 2**18)
    start = time.monotonic()

    assert condition(path).state == "failing"
    assert time.monotonic() - start < 5


def test_an_empty_trace(tmp_path, monkeypatch):
    """The header is written at once, so an empty file is new or cannot be written."""
    path = tmp_path / "run" / "000001.jsonl.zst"
    path.parent.mkdir()
    path.touch()
    note = tmp_path / "run.not-recorded.json"

    def found(age: float = 0) -> tuple[str, str]:
        os.utime(path, (time.time() - age,) * 2)
        [one] = conditions(tmp_path)
        return one.state, one.detail

    assert found() == ("failing", "it has no record")
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert found(20) == ("recording", "")
        assert found(100) == ("failing", "nothing was written for 100 s")
        note.touch()  # its content could not be written
        assert found() == ("failing", "the note cannot be read")
        monkeypatch.setattr(module, "MIN_FREE_BYTES", 2**70)
        monkeypatch.setattr(module, "MIN_FREE_SHARE", 2)
        assert found() == ("failing", "the disk is almost full")
        note.unlink()
        assert found(1) == ("recording", "")
        assert found(3) == ("failing", "the disk is almost full")
        assert condition(path.parent).dropped is None


def test_an_empty_note_beside_a_trace(tmp_path):
    """A note is created on a full disk as well, and then remains empty."""
    path = written(tmp_path / "a.jsonl", HEADER)
    (tmp_path / "a.jsonl.not-recorded.json").touch()
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = condition(path)
    assert (found.state, found.detail) == ("failing", "the note cannot be read")
