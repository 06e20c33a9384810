"""The progress of a run that is being recorded."""

import json
from socket import gethostname

import pytest

from roast_analyze.errors import TraceError
from roast_analyze.server.following import Following
from roast_recorder.writer.trace_file import TraceFile


def test_records_are_counted_in_parts(write_trace, task):
    path = write_trace(*(task(f"a-{number}") for number in range(100)))
    following = Following(path)
    calls = 0
    while not following.read(0.0):  # at least one record a call
        calls += 1
    assert calls > 50
    assert following.progress.tasks.total == 100
    assert following.has_ended


def test_label_and_program(write_trace):
    about = {"kind": "environment", "t": 0.0, "section": "client", "name": "program"}
    path = write_trace({**about, "value": "roast-record"}, {**about, "value": "fit.py"})
    following = Following(path)
    assert following.read(10.0)
    assert following.progress.program == "fit.py"


def test_a_trace_that_is_being_written_is_locked(tmp_path):
    path = tmp_path / "a.jsonl"
    file = TraceFile(path)
    file.append(json.dumps({"kind": "event", "t": 1.0}).encode() + b"\n")
    assert Following(path).is_locked()
    assert Following(tmp_path).is_locked()
    file.close()
    assert not Following(path).is_locked()
    assert not Following(tmp_path / "nowhere").is_locked()


def test_a_damaged_trace(tmp_path):
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfdnothing of the kind")
    following = Following(path)
    for _ in range(3):  # it may have been replaced
        assert following.read(1.0)
    with pytest.raises(TraceError, match="cannot follow"):
        following.read(1.0)


def process(host: str, role: str = "scheduler") -> dict:
    value = {"role": role, "pid": 1, "machine": {"host": host}}
    about = {"section": "process", "name": role, "value": value}
    return {"kind": "environment", "t": 1.0, **about}


@pytest.mark.parametrize(
    ("processes", "has_writer"),
    [
        ([process(gethostname()), process("far", "worker")], False),
        ([process(gethostname()), process("far", "client")], None),
        ([process("far")], None),
        ([], None),
    ],
)
def test_the_process_that_wrote_a_trace_of_this_host_has_gone(tmp_path, processes, has_writer):
    """A lock that was taken on another host is not seen on all file systems."""
    path = tmp_path / "a.jsonl"
    file = TraceFile(path)
    file.append(b"".join(json.dumps(record).encode() + b"\n" for record in processes))
    file.append(json.dumps({"kind": "event", "t": 1.0}).encode() + b"\n")
    following = Following(path)
    assert following.read(10.0)
    assert following.silence(600.0).has_writer
    file.close()
    following = Following(path)
    assert following.read(10.0)
    assert following.silence(600.0).has_writer is has_writer
    assert following.silence(1.0).has_writer  # between two segments, none is locked


def test_the_lock_is_tested_every_other_second(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("roast_analyze.server.following.time.monotonic", lambda: now)
    path = tmp_path / "a.jsonl"
    file = TraceFile(path)
    file.append(json.dumps({"kind": "event", "t": 1.0}).encode() + b"\n")
    following = Following(path)
    assert following.is_locked()
    file.close()
    assert following.is_locked()
    now += 2.0
    assert following.is_locked() is False
