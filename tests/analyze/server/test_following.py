"""The progress of a run that is being recorded."""

import json

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
