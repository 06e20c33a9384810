"""Every orderly end writes a trailer with record counts, and no transition is missing.

An independent plugin, loaded by the scheduler itself, writes each transition to a log,
including those after the scheduler has called the `close` hook of its plugins.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from distributed import Client, LocalCluster

import roast_recorder
from roast_recorder.scheduler.plugin import CLOSE_TIMEOUT_SECONDS

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
def start_logged(tmp_path, start_scheduler):
    """Return a function that starts a scheduler with the plugin, and a worker, as processes."""

    def start(*arguments, **options):
        preload, log = tmp_path / "independent.py", tmp_path / "transitions.log"
        preload.write_text(INDEPENDENT.format(log=str(log)))
        started = start_scheduler("--preload", str(preload), *arguments, workers=1, **options)
        return Logged(*started, log)

    return start


@pytest.fixture
def logged(start_logged) -> Logged:
    return start_logged()


def transitions(lines):
    names = ("key", "start", "finish", "stimulus_id")
    return [[line[name] for name in names] for line in lines if line["kind"] == "transition"]


def counted(lines):
    return Counter(line["kind"] for line in lines)


def is_whole(lines):
    *others, trailer = lines
    return (
        trailer["kind"] == "trailer"
        and trailer["records_by_kind"] == counted(others)
        and trailer["dropped_by_kind"] == {}
    )


def is_whole_until(lines, logged):
    """Return whether a trace is complete up to its last transition."""
    seen = transitions(lines)
    return is_whole(lines) and seen == logged.transitions()[: len(seen)]


def work(client):
    """Leave results in memory and tasks running, which the scheduler then releases."""
    client.wait_for_workers(1, timeout=60)
    done = client.map(abs, range(200), pure=False)
    client.gather(done)
    return done, client.map(time.sleep, [0.2] * 50, pure=False)


@pytest.mark.parametrize(
    "how",
    ["shutdown", *(pytest.param(sig, marks=pytest.mark.exhaustive) for sig in ("INT", "TERM"))],
)
def test_a_closing_scheduler(logged, trace, read_lines, how):
    client = Client(logged.address)
    recording = roast_recorder.record(client, trace)
    recording.start()
    futures = work(client)

    if how == "shutdown":
        client.shutdown()
    else:
        logged.process.send_signal(getattr(signal, f"SIG{how}"))
    logged.process.wait(30)
    recording.stop()
    client.close(timeout=2)
    del futures

    lines = read_lines(trace)
    assert is_whole(lines)
    assert lines[-1]["reason"] == "the scheduler closed"
    assert transitions(lines) == logged.transitions()
    assert {"worker_removed", "client_removed"} <= set(counted(lines))


@pytest.mark.exhaustive
def test_a_scheduler_that_closes_long_after_the_last_flush(logged, trace, read_lines):
    client = Client(logged.address)
    recording = roast_recorder.record(client, trace, flush_interval_seconds=60)
    recording.start()
    time.sleep(CLOSE_TIMEOUT_SECONDS + 0.5)

    client.shutdown()
    logged.process.wait(30)
    recording.stop()

    lines = read_lines(trace)
    assert is_whole(lines)
    assert lines[-1]["reason"] == "the scheduler closed"
    assert "client_removed" in counted(lines)


def test_the_end_of_the_block(logged, trace, read_lines):
    """The last 0.5 s of work are in no heartbeat yet, but must be in the trace."""

    def burn():
        until = time.thread_time() + 0.5
        while time.thread_time() < until:
            pass

    with Client(logged.address) as client:
        with roast_recorder.record(client, trace):
            futures = work(client)
            client.submit(burn, priority=10).result()
        del futures

    lines = read_lines(trace)
    assert is_whole_until(lines, logged)
    assert len(transitions(lines)) > 500
    metrics = [line for line in lines if line.get("activity") == "thread-cpu"]
    assert sum(line["delta"] for line in metrics if line["prefix"] == "burn") > 0.45


CLIENT = """
import asyncio, os, sys
from distributed import Client
import roast_recorder

address, trace, how = sys.argv[1:]

async def run_async():
    client = await Client(address, asynchronous=True)
    await roast_recorder.record(client, trace).start()
    await client.gather(client.map(abs, range(300), pure=False))
    if how == "closes":
        await client.close()

if how in ("closes", "its loop ends"):
    asyncio.run(run_async())
else:
    client = Client(address)
    recording = roast_recorder.record(client, trace)
    recording.start()
    client.gather(client.map(abs, range(300), pure=False))
    if how != "exits":
        os.kill(os.getpid(), {"SIGHUP": 1, "SIGKILL": 9, "SIGTERM": 15}[how])
"""


@pytest.mark.parametrize(
    "how",
    [
        "SIGKILL",
        *(
            pytest.param(how, marks=pytest.mark.exhaustive)
            for how in ("SIGTERM", "SIGHUP", "exits", "its loop ends", "closes")
        ),
    ],
)
def test_a_client_that_has_gone(logged, trace, read_lines, how):
    """If the client did not close, its writing process fetches the remaining records."""
    subprocess.run([sys.executable, "-c", CLIENT, logged.address, str(trace), how], timeout=60)
    until = time.monotonic() + 30
    while '"kind":"trailer"' not in trace.read_text():
        assert time.monotonic() < until, "there is no trailer"
        time.sleep(0.1)

    lines = read_lines(trace)
    assert is_whole_until(lines, logged)
    assert counted(lines)["task"] == 300
    assert [finish for *_, finish, _ in transitions(lines)].count("memory") == 300


@pytest.fixture
def self_recording(start_logged, tmp_path, monkeypatch):
    """Start a scheduler that records itself; return it and a function for its trace's path."""
    (tmp_path / "traces").mkdir()
    monkeypatch.setenv("DASK_ROAST__RECORDER__DIRECTORY", str(tmp_path / "traces"))
    logged = start_logged("--preload", "roast_recorder.preload", bare=False)
    return logged, lambda: next((tmp_path / "traces").glob("*/000001.jsonl.zst"))


def test_the_scheduler_records_itself(self_recording, read_lines):
    """With the preload, nothing after `close` is missing either."""
    logged, trace = self_recording
    with Client(logged.address) as client:
        futures = work(client)
        logged.process.send_signal(signal.SIGTERM)
        logged.process.wait(30)
        del futures

    lines = read_lines(trace())
    assert is_whole(lines)
    assert transitions(lines) == logged.transitions()


def test_a_scheduler_that_is_killed_leaves_what_was_flushed(self_recording, read_lines):
    logged, trace = self_recording
    with Client(logged.address) as client:
        client.gather(client.map(abs, range(100), pure=False))
        time.sleep(1.2)
        os.kill(logged.process.pid, signal.SIGKILL)
        logged.process.wait(10)

    lines = read_lines(trace())
    assert counted(lines)["task"] == 100
    assert lines[-1]["kind"] != "trailer"


EXIT = """
import sys
import dask
from distributed import Client, LocalCluster

dask.config.set({
    "distributed.scheduler.preload": ["roast_recorder.preload"],
    "roast.recorder.directory": sys.argv[1],
})
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    client = Client(cluster)
    client.gather(client.map(abs, range(50), pure=False))
"""


@pytest.mark.exhaustive
def test_a_program_that_exits_without_closing_its_cluster(tmp_path, read_lines):
    (tmp_path / "script.py").write_text(EXIT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)

    assert "Traceback" not in done.stderr
    [trace] = tmp_path.glob("*/000001.jsonl.zst")
    lines = read_lines(trace)
    assert is_whole(lines)
    assert counted(lines)["task"] == 50
    assert {"worker_removed", "client_removed"} <= set(counted(lines))


ABRUPT = """
import os, sys, time
from distributed import Client
import roast_recorder

with Client(n_workers=1, processes=False, dashboard_address=None) as client:
    roast_recorder.record(client, sys.argv[1], flush_interval_seconds=60).start()
    client.gather(client.map(abs, range(50), pure=False))
    time.sleep(0.5)
    os._exit(0)
"""


@pytest.mark.exhaustive
def test_a_short_program_whose_scheduler_ends_with_it(trace, read_lines):
    """The first results are flushed without waiting for the interval."""
    subprocess.run([sys.executable, "-c", ABRUPT, str(trace)], timeout=60, check=True)

    lines = read_lines(trace)
    assert counted(lines)["task"] == 50
    assert [finish for *_, finish, _ in transitions(lines)].count("memory") == 50


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


@pytest.mark.parametrize("how", ["run", pytest.param("attach", marks=pytest.mark.exhaustive)])
def test_commands_record_the_transitions_of_an_independent_plugin(
    logged, tmp_path, trace, read_lines, how
):
    """The processes of the cluster cannot import roast."""
    (tmp_path / "script.py").write_text(SCRIPT)
    program = [sys.executable, str(tmp_path / "script.py"), logged.address]
    record = [sys.executable, "-m", "roast_recorder", how, "-o", str(trace)]

    if how == "run":
        subprocess.run([*record, "--", *program], check=True, timeout=90)
    else:
        attached = subprocess.Popen([*record, logged.address], stderr=subprocess.PIPE)
        attached.stderr.readline()  # printed when it has started
        subprocess.run(program, check=True, timeout=90)
        attached.send_signal(signal.SIGINT)
        attached.communicate(timeout=60)

    lines = read_lines(trace)
    seen = transitions(lines)
    assert is_whole_until(lines, logged)
    assert len(seen) > 1_500
    assert [key for key, _, finish, _ in seen if finish == "erred"] == ["fails"]


def record_in_this_process(trace):
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        with roast_recorder.record(client, trace):
            client.submit(sum, [1, 2]).result()

        assert cluster.loop.asyncio_loop._default_executor is None


@pytest.mark.exhaustive
def test_event_loops_get_no_default_executor(trace, by_kind, in_another_process):
    """With Python 3.12, Dask's exit handler cannot shut it down, and prints a traceback."""
    in_another_process(record_in_this_process, trace)

    assert by_kind(trace)["environment"]
