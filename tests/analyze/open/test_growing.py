"""Records of a trace that is being written, as they are appended."""

import gzip
import json
from pathlib import Path

import pytest

from roast_analyze.errors import TraceError
from roast_analyze.open.growing import GrowingTrace
from roast_recorder.writer.trace_file import FRAME_BYTES, TraceFile


def record(number: int, size: int = 0) -> bytes:
    return json.dumps({"kind": "event", "t": number, "payload": "x" * size}).encode() + b"\n"


def numbers(trace: GrowingTrace) -> list[float | None]:
    return [found and found["t"] for found in trace.records()]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst", ".jsonl.gz"])
def test_each_append_is_read_once(tmp_path, ending):
    """As the recorder appends: also when it extends a frame, and when it begins another."""
    path = tmp_path / f"a{ending}"
    trace = GrowingTrace(path)
    assert numbers(trace) == []  # it does not exist yet
    file = TraceFile(path)
    for number in range(20):
        file.append(record(number, FRAME_BYTES // 4))
        assert numbers(trace) == [number]
        assert numbers(trace) == []


def test_part_of_a_line_is_read_with_its_rest(tmp_path):
    path = tmp_path / "a.jsonl"
    whole = record(1) + record(2)
    trace = GrowingTrace(path)
    path.write_bytes(whole[:-5])
    assert numbers(trace) == [1]
    path.write_bytes(whole)
    assert numbers(trace) == [2]


def test_segments(tmp_path):
    """The next segment begins before the end of this one is read."""
    trace = GrowingTrace(tmp_path)
    first = TraceFile(tmp_path / "000001.jsonl.zst")
    first.append(record(1))
    assert numbers(trace) == [1]
    first.append(record(2))
    second = TraceFile(tmp_path / "000002.jsonl.zst")
    second.append(record(3))
    assert numbers(trace) == [2, 3]
    second.append(record(4))
    assert numbers(trace) == [4]


def test_an_append_that_was_cut_off_and_a_file_that_was_replaced(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    trace = GrowingTrace(path)
    path.write_bytes(gzip.compress(record(1)) + gzip.compress(record(2)))
    assert numbers(trace) == [1, 2]
    path.write_bytes(gzip.compress(record(3)))
    assert numbers(trace) == [None]
    assert numbers(trace) == [3]


def test_a_damaged_file(tmp_path: Path):
    (tmp_path / "a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"\xff" * 100)
    trace = GrowingTrace(tmp_path / "a.jsonl.zst")
    assert [numbers(trace) for _ in range(3)] == [[None]] * 3
    with pytest.raises(TraceError, match=r"cannot follow: .* cannot be decompressed"):
        numbers(trace)
