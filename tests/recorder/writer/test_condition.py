"""The condition of traces on disk, from their ends."""

import fcntl
import gzip
import json
import os
import time
from pathlib import Path

import pytest
import zstandard

from roast_recorder.scheduler.health import write_note
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
