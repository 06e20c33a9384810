"""Programs that record without a cluster and end without stopping the recording."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("coffea")

from roast_recorder.demo import files

DATASET = files.Dataset("TTbar", files=3, events=250, jets=5.0, resonance_mass=173.0)

PROGRAM = """
import os, sys, signal, time
from coffea.nanoevents import BaseSchema
from coffea.processor import IterativeExecutor, Runner
import roast_recorder

recording = roast_recorder.record(path={trace!r}, flush_interval_seconds=0.05).start()

def run(number):
    runner = Runner(executor=IterativeExecutor(status=False), schema=BaseSchema, chunksize=125)
    fileset = {{"data": [{folder!r} + f"/TTbar_{{number}}.root"]}}
    count = lambda events: {{"events": len(events)}}
    runner(fileset, treename="Events", processor_instance=count)

run(0)
{then}
"""


@pytest.fixture
def run(tmp_path, read_lines):
    """Run a program that records; return code, output, errors and the trace's lines."""

    def run(then):
        folder, temporary = tmp_path / "files", tmp_path / "temporary"
        folder.mkdir()
        temporary.mkdir()
        list(files.write_files(folder, (DATASET,)))
        trace = str(tmp_path / "trace.jsonl")
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(folder=str(folder), trace=trace, then=then)],
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        assert list(temporary.iterdir()) == []
        return done.returncode, done.stdout, done.stderr, read_lines(trace)

    return run


@pytest.mark.parametrize(
    ("then", "code", "text"),
    [
        ("", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise ValueError('mine')", 1, "ValueError: mine"),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2, "KeyboardInterrupt"),
    ],
    ids=["end", "exit", "exception", "Ctrl-C"],
)
def test_every_end_of_a_program_ends_its_trace_in_order(run, then, code, text):
    returned, _, errors, lines = run(then)

    assert returned == code
    assert text in errors
    assert "roast" not in errors
    assert sum(line["kind"] == "chunk" for line in lines) == 2
    assert lines[-1]["kind"] == "trailer"


def test_the_end_of_a_forked_child_does_not_end_the_recording(run):
    code, output, errors, lines = run(
        """
child = os.fork()
if child == 0:
    run(1)
    recording.stop()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
run(2)
print(os.getpid(), child)
"""
    )

    assert (code, errors) == (0, "")
    parent, child = output.split()[-2:]
    chunks = [line for line in lines if line["kind"] == "chunk"]
    workers = {chunk["filename"][-6]: chunk["worker"] for chunk in chunks}
    assert workers == {"0": f"pid:{parent}", "1": f"pid:{child}", "2": f"pid:{parent}"}
    assert [line["kind"] for line in lines].count("trailer") == 1
    assert lines[-1]["kind"] == "trailer"
