"""The trace holds the scheduler's transitions: all, in order, as they were."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import dask
import pytest
from distributed import Client, LocalCluster, SchedulerPlugin, get_worker, wait

import roast_recorder

pytestmark = pytest.mark.cluster


class Recorded(NamedTuple):
    trace: Path
    lines: list[dict]
    expected: list[tuple]
    killed: str

    def ended(self, cause):
        """Attempts without a result, by the beginning of their stimulus."""
        released = [line for line in self.lines if line.get("finish") == "released"]
        of_attempts = [line for line in released if line["start"] == "processing"]
        return [line for line in of_attempts if line["stimulus_id"].startswith(cause)]


class Independent(SchedulerPlugin):
    """What anybody could write to check the recorder."""

    name = "independent"

    def __init__(self):
        self.seen = []

    def transition(self, key, start, finish, *_, stimulus_id, **kwargs):
        self.seen.append((str(key), start, finish, stimulus_id, kwargs))


FACTS = {name: name for name in ("worker", "nbytes", "thread", "typename")}
FACTS |= {"exception_text": "exception"}


def seen_by_independent_plugin(dask_scheduler):
    rows = []
    for *change, kwargs in dask_scheduler.plugins["independent"].seen:
        facts = {FACTS[name]: kwargs[name] for name in FACTS if kwargs.get(name) is not None}
        parts = [dict(part) for part in kwargs.get("startstops") or ()]
        rows.append((*change, facts, parts))
    return rows


def make_work():
    """A local function travels by value; workers cannot import this module."""

    def work(number):
        if number % 50 == 7:
            seen = get_worker().__dict__.setdefault("roast_test_seen", set())
            if number not in seen:
                seen.add(number)
                raise OSError(f"the first attempt at {number} fails")
        if number == 501:
            raise ValueError("this one always fails")
        time.sleep(0.001)
        return bytes(number % 100)

    return work


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, read_lines):
    """600 tasks with retries, an error and a worker killed in the middle."""
    trace = tmp_path_factory.mktemp("transitions") / "trace.jsonl.zst"
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, trace),
    ):
        client.register_plugin(Independent())
        futures = client.map(make_work(), range(600), retries=3, pure=False)
        until = time.monotonic() + 60
        while sum(future.status == "finished" for future in futures) < 100:
            assert time.monotonic() < until
            time.sleep(0.02)
        killed = random.Random(1).choice(list(cluster.scheduler.workers.values()))
        address = killed.address
        os.kill(killed.pid, signal.SIGKILL)
        wait(futures)
        expected = client.run_on_scheduler(seen_by_independent_plugin)
        client.unregister_scheduler_plugin("independent")
    return Recorded(trace, read_lines(trace), expected, address)


def test_transitions_equal_those_of_an_independent_plugin(recorded):
    lines = [line for line in recorded.lines if line["kind"] == "transition"]

    ours = []
    for line, (*_, facts, parts) in zip(lines, recorded.expected, strict=False):
        change = (line["key"], line["start"], line["finish"], line["stimulus_id"])
        known = {name: line.get(name) for name in facts}
        ours.append((*change, known, line.get("startstops", []) if parts else []))

    assert len(recorded.expected) > 2_400
    assert ours == recorded.expected
    *others, trailer = recorded.lines
    assert trailer["kind"] == "trailer"
    assert trailer["records_by_kind"] == Counter(line["kind"] for line in others)
    assert trailer["dropped_by_kind"] == {}


def test_a_lost_attempt_has_the_worker_that_died(recorded):
    lines, killed = recorded.lines, recorded.killed
    of_all = [line["payload"] for line in lines if line.get("topic") == "all"]
    [event] = [payload for payload in of_all if payload["action"] == "remove-worker"]
    lost = recorded.ended(event["stimulus_id"])
    begun = [line for line in lines if line.get("finish") == "processing"]

    assert all("worker" in line and "run_id" in line for line in begun)
    assert killed in {line["worker"] for line in begun}
    assert sorted(line["key"] for line in lost) == sorted(event["processing-tasks"])
    assert {line["worker"] for line in lost} == {killed}
    [removed] = [line for line in lines if line["kind"] == "worker_removed"]
    joined = {line["server_id"] for line in lines if line["kind"] == "worker_added"}
    assert removed["worker"] == killed
    assert removed["server_id"] in joined


def test_a_retried_attempt_keeps_its_error(recorded):
    retried = recorded.ended("task-erred")

    assert len(retried) >= 10
    for line in retried:
        assert "fails" in line["exception"]
        assert line["traceback"]
        assert line["worker"].startswith("tcp://")
        assert any(part["action"] == "compute" for part in line["startstops"])


def test_task_runs_has_a_row_for_each_attempt(recorded):
    """With its worker, whatever became of it, and with the error of those that failed."""
    roast_analyze = pytest.importorskip("roast_analyze")
    begun = [line for line in recorded.lines if line.get("finish") == "processing"]
    lost = len(recorded.ended("handle-worker-cleanup"))

    with roast_analyze.Trace(recorded.trace) as trace:
        runs = trace.rows(
            "SELECT outcome, count(*), count(worker), count(exception), "
            "list(DISTINCT worker) FROM task_runs GROUP BY outcome"
        )

    by_outcome = {outcome: counts for outcome, *counts in runs}
    assert sum(n for n, *_ in by_outcome.values()) == len(begun)
    assert by_outcome["lost"] == [lost, lost, 0, [recorded.killed]]
    assert by_outcome["erred"][:3] == [1, 1, 1]
    retried, with_worker, with_exception, _ = by_outcome["retried"]
    assert retried == with_worker == with_exception >= 10


def test_a_lost_attempt_has_the_time_at_which_it_began(tmp_path, read_lines):
    def note_the_time_and_wait(path):
        with Path(path).open("a") as file:
            file.write(f"{time.time()} {os.getpid()}\n")
        time.sleep(60)

    path, begins = tmp_path / "trace.jsonl", tmp_path / "begins"
    begins.touch()
    with (
        # The first attempt is repeated, the second one fails with KilledWorker.
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, path),
    ):
        future = client.submit(note_the_time_and_wait, str(begins), key="long")
        waiting = client.submit(abs, 1, key="behind it")
        for attempt in range(2):
            while len(noted := begins.read_text().splitlines()) <= attempt:
                time.sleep(0.05)
            time.sleep(1.2)  # some heartbeats
            os.kill(int(noted[attempt].split()[1]), signal.SIGKILL)
        wait(future)
        wait(waiting)

    lost = [
        line
        for line in read_lines(path)
        if line.get("start") == "processing" and line.get("finish") != "memory"
    ]
    found = [line["start_t"] for line in lost if line["key"] == "long"]
    assert found == pytest.approx([float(line.split()[0]) for line in noted], abs=0.3)
    assert all("start_t" not in line for line in lost if line["key"] != "long")
