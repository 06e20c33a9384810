"""Every orderly end leaves a trailer that counts the file, and no transition is missing.

An independent plugin, loaded by the scheduler itself, writes each transition into a log,
also those after the scheduler has called the `close` hook of its plugins.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from distributed import Client

import roast_recorder

pytestmark = pytest.mark.cluster

INDEPENDENT = """
import json, os
from distributed import SchedulerPlugin

class Independent(SchedulerPlugin):
    name = "independent"
    log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    def transition(self, key, start, finish, *_, stimulus_id, **kwargs):
        line = json.dumps([str(key), start, finish, stimulus_id]) + chr(10)
        os.write(self.log, line.encode())

async def dask_setup(scheduler):
    scheduler.add_plugin(Independent())
"""


class Logged(NamedTuple):
    process: subprocess.Popen
    address: str
    log: Path

    def transitions(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def logged(tmp_path, start_scheduler) -> Logged:
    """A scheduler with the independent plugin, and a worker, in processes of their own."""
    preload = tmp_path / "independent.py"
    log = tmp_path / "transitions.log"
    preload.write_text(INDEPENDENT.format(log=str(log)))
    process, address = start_scheduler("--preload", str(preload), workers=1)
    return Logged(process, address, log)


def transitions(lines):
    return [
        [line["key"], line["start"], line["finish"], line["stimulus_id"]]
        for line in lines
        if line["kind"] == "transition"
    ]


def counted(lines):
    counts = {}
    for line in lines:
        counts[line["kind"]] = counts.get(line["kind"], 0) + 1
    return counts


def is_whole(lines):
    *others, trailer = lines
    return (
        trailer["kind"] == "trailer"
        and trailer["records_by_kind"] == counted(others)
        and trailer["dropped_by_kind"] == {}
    )


def work(client):
    """Leave results in memory and tasks at work, so that there is something to release."""
    client.wait_for_workers(1, timeout=60)
    done = client.map(abs, range(200), pure=False)
    client.gather(done)
    return done, client.map(time.sleep, [0.2] * 50, pure=False)


@pytest.mark.parametrize("how", ["shutdown", "SIGTERM"])
def test_a_closing_scheduler(logged, tmp_path, read_lines, how):
    client = Client(logged.address)
    recording = roast_recorder.record(client, tmp_path / "trace.jsonl.zst")
    recording.start()
    futures = work(client)

    if how == "shutdown":
        client.shutdown()
    else:
        logged.process.send_signal(getattr(signal, how))
    logged.process.wait(30)
    recording.stop()
    client.close(timeout=2)
    del futures

    lines = read_lines(tmp_path / "trace.jsonl.zst")
    assert is_whole(lines)
    assert lines[-1]["reason"] == "the scheduler closed"
    assert transitions(lines) == logged.transitions()
    assert {"worker_removed", "client_removed"} <= set(counted(lines))


def test_the_end_of_the_block(logged, tmp_path, read_lines):
    """Half a second of work just before the end is in no heartbeat yet, but in the trace."""

    def burn():
        until = time.thread_time() + 0.5
        while time.thread_time() < until:
            pass

    with Client(logged.address) as client:
        with roast_recorder.record(client, tmp_path / "trace.jsonl"):
            futures = work(client)
            client.submit(burn, priority=10).result()
        so_far = logged.transitions()
        del futures

    lines = read_lines(tmp_path / "trace.jsonl")
    assert is_whole(lines)
    assert len(so_far) > 500
    assert transitions(lines) == logged.transitions()[: len(transitions(lines))]
    metrics = [line for line in lines if line.get("activity") == "thread-cpu"]
    assert sum(line["delta"] for line in metrics if line["prefix"] == "burn") > 0.45


def test_a_client_that_is_closed_first(logged, tmp_path, read_lines):
    async def run():
        client = await Client(logged.address, asynchronous=True)
        await roast_recorder.record(client, tmp_path / "trace.jsonl").start()
        await client.gather(client.map(abs, range(200), pure=False))
        await client.close()

    asyncio.run(run())

    lines = read_lines(tmp_path / "trace.jsonl")
    assert is_whole(lines)
    assert counted(lines)["task"] == 200
    assert transitions(lines) == logged.transitions()[: len(transitions(lines))]


CLIENT = """
import asyncio, os, signal, sys, time
from distributed import Client
import roast_recorder

address, trace, how = sys.argv[1:]

async def run_async():
    client = await Client(address, asynchronous=True)
    await roast_recorder.record(client, trace).start()
    await client.gather(client.map(abs, range(300), pure=False))

def run():
    client = Client(address)
    recording = roast_recorder.record(client, trace)
    recording.start()
    client.gather(client.map(abs, range(300), pure=False))
    os.kill(os.getpid(), signal.SIGKILL)

if how == "its loop ends":
    asyncio.run(run_async())
else:
    run()
"""


@pytest.mark.parametrize("how", ["SIGKILL", "its loop ends"])
def test_a_client_that_has_gone(logged, tmp_path, read_lines, how):
    """Its writing process fetches the rest: everything before is in the trace."""
    trace = tmp_path / "trace.jsonl.zst"

    subprocess.run([sys.executable, "-c", CLIENT, logged.address, str(trace), how], timeout=60)
    lines = when_closed(trace, read_lines)

    assert is_whole(lines)
    assert counted(lines)["task"] == 300
    assert transitions(lines) == logged.transitions()[: len(transitions(lines))]
    finished = [line for line in transitions(lines) if line[2] == "memory"]
    assert len(finished) == 300


def when_closed(trace, read_lines, timeout_seconds=30):
    """Read a trace once its writing process has closed it."""
    until = time.monotonic() + timeout_seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError, ValueError):
            if (lines := read_lines(trace)) and lines[-1]["kind"] == "trailer":
                return lines
        time.sleep(0.1)
    raise AssertionError(f"{trace} has no trailer")


def test_the_scheduler_records_itself(tmp_path, start_scheduler, read_lines, monkeypatch):
    """With the preload, nothing after `close` is missing either."""
    log, preload = tmp_path / "transitions.log", tmp_path / "independent.py"
    preload.write_text(INDEPENDENT.format(log=str(log)))
    (tmp_path / "traces").mkdir()
    monkeypatch.setenv("DASK_ROAST__RECORDER__DIRECTORY", str(tmp_path / "traces"))
    process, address = start_scheduler(
        "--preload", str(preload), "--preload", "roast_recorder.preload", workers=1, bare=False
    )
    with Client(address) as client:
        futures = work(client)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        del futures

    [trace] = (tmp_path / "traces").glob("*/000001.jsonl.zst")
    lines = read_lines(trace)
    assert is_whole(lines)
    assert transitions(lines) == Logged(process, address, log).transitions()


def test_a_scheduler_that_is_killed_leaves_what_was_flushed(
    tmp_path, start_scheduler, read_lines, monkeypatch
):
    (tmp_path / "traces").mkdir()
    monkeypatch.setenv("DASK_ROAST__RECORDER__DIRECTORY", str(tmp_path / "traces"))
    process, address = start_scheduler(
        "--preload", "roast_recorder.preload", workers=1, bare=False
    )
    with Client(address) as client:
        client.gather(client.map(abs, range(100), pure=False))
        time.sleep(1.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)

    [trace] = (tmp_path / "traces").glob("*/000001.jsonl.zst")
    lines = read_lines(trace)
    assert counted(lines)["task"] == 100
    assert lines[-1]["kind"] != "trailer"


SCRIPT = """
import sys
from distributed import Client

def fail(number):
    raise ValueError(number)

with Client(sys.argv[1]) as client:
    client.wait_for_workers(1, timeout=60)
    client.gather(client.map(abs, range(300), pure=False))
    client.submit(fail, 1, retries=2, key="fails").exception()
    client.submit(sum, client.map(abs, range(20))).result()
"""


def test_run_records_what_an_independent_plugin_sees(logged, tmp_path, read_lines):
    """On a cluster that has distributed alone."""
    (tmp_path / "script.py").write_text(SCRIPT)
    trace = tmp_path / "trace.jsonl"
    program = [sys.executable, str(tmp_path / "script.py"), logged.address]
    record = [sys.executable, "-m", "roast_recorder", "run", "-o", str(trace), "--"]

    subprocess.run([*record, *program], check=True, timeout=90)

    lines = read_lines(trace)
    seen = transitions(lines)
    assert is_whole(lines)
    assert len(seen) > 1_500
    assert seen == logged.transitions()[: len(seen)]
    assert [key for key, _, finish, _ in seen if finish == "erred"] == ["fails"]
