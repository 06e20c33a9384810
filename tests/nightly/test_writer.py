"""Writing processes that are killed at arbitrary moments: each batch is written once."""

import asyncio
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from roast_recorder.scheduler import wire_format
from roast_recorder.settings import Settings
from roast_recorder.writer.client import Writer
from roast_recorder.writer.segments import Segments


def event(number):
    return ("event", float(number), 1, {"topic": "t", "payload": number})


@pytest.mark.parametrize("name", ["trace.jsonl.zst", "folder"])
def test_processes_killed_while_they_write_and_while_they_read(tmp_path, read_lines, name):
    target = tmp_path / name
    writer = Writer(str(target), {"kind": "header", "t": 0.0}, Settings().as_dict())
    batches = [
        (
            number,
            wire_format.encode([], [event(3_000 * number + n) for n in range(3_000)], None),
        )
        for number in range(9)
    ]

    async def run():
        await writer.open()
        for first, signals in ((1, []), (4, []), (7, [signal.SIGSTOP])):
            for number in signals:
                os.kill(writer._process.pid, number)
            writing = asyncio.create_task(writer.write_batches(batches[first : first + 3]))
            await asyncio.sleep(0.03)
            os.kill(writer._process.pid, signal.SIGKILL)
            await writing
        await writer.finish(9.0, "end")

    asyncio.run(run())

    files = sorted(target.iterdir()) if target.is_dir() else [target]
    lines = [line for file in files for line in read_lines(file)]
    payloads = [line["payload"] for line in lines if line["kind"] == "event"]
    assert payloads == list(range(3_000, 27_000))


WRITER = """
import pickle, sys
from roast_recorder.settings import Settings
from roast_recorder.writer.segments import Segments
begin, resume = pickle.load(sys.stdin.buffer)
settings = Settings(segment_limit_bytes=4000).as_dict()
segments = Segments(sys.argv[1], {"kind": "header"}, settings, resume=resume)
for n in range(begin, 100_000):
    segments.write({"kind": "event", "t": float(n), "part": part} for part in range(50))
    pickle.dump((n + 1, segments.state), sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize("name", ["trace.jsonl.zst", "trace"])
def test_processes_killed_at_any_moment(tmp_path, read_lines, name):
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

    settings = Settings(segment_limit_bytes=4000).as_dict()
    segments = Segments(str(tmp_path / name), {"kind": "header"}, settings, resume=state)
    segments.finish(9.0, "done")

    paths = sorted((tmp_path / "trace").iterdir()) if name == "trace" else [tmp_path / name]
    read_back = [read_lines(path) for path in paths]
    for records in read_back:
        *before, trailer = records
        assert trailer["records_by_kind"] == Counter(record["kind"] for record in before)
    parts = [
        (record["t"], record["part"])
        for records in read_back
        for record in records
        if record["kind"] == "event"
    ]
    assert parts == [(float(n), part) for n in range(done) for part in range(50)]
    assert done > 20
