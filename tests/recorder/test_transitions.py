"""The trace holds the scheduler's transitions: all, in order, as they were."""

import os
import random
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from distributed import Client, LocalCluster, SchedulerPlugin, get_worker, wait

import roast_recorder

pytestmark = pytest.mark.cluster


class Recorded(NamedTuple):
    trace: Path
    lines: list[dict]
    expected: list[tuple]
    killed: str


class Independent(SchedulerPlugin):
    """What anybody could write to check the recorder."""

    name = "independent"

    def __init__(self):
        self.seen = []

    def transition(self, key, start, finish, *_, stimulus_id, **kwargs):
        self.seen.append((str(key), start, finish, stimulus_id, kwargs))


def seen_by_independent_plugin(dask_scheduler):
    rows = []
    for key, start, finish, stimulus_id, kwargs in dask_scheduler.plugins["independent"].seen:
        kept = {
            name: kwargs[name]
            for name in ("worker", "nbytes", "thread", "typename", "exception_text")
            if kwargs.get(name) is not None
        }
        kept["startstops"] = [dict(part) for part in kwargs.get("startstops") or ()]
        rows.append((key, start, finish, stimulus_id, kept))
    return rows


def make_work():
    """A local function travels by value; workers cannot import this module."""

    def work(number):
        if number % 150 == 7:
            seen = get_worker().__dict__.setdefault("roast_test_seen", set())
            if number not in seen:
                seen.add(number)
                raise OSError(f"the first attempt at {number} fails")
        if number == 1_301:
            raise ValueError("this one always fails")
        time.sleep(0.001)
        return bytes(number % 100)

    return work


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, read_lines):
    """1,500 tasks with retries, an error and a worker killed in the middle."""
    trace = tmp_path_factory.mktemp("transitions") / "trace.jsonl.zst"
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, trace),
    ):
        client.register_plugin(Independent())
        futures = client.map(make_work(), range(1_500), retries=3, pure=False)
        until = time.monotonic() + 60
        while sum(future.status == "finished" for future in futures) < 300:
            assert time.monotonic() < until
            time.sleep(0.05)
        killed = random.Random(1).choice(list(cluster.scheduler.workers.values()))
        os.kill(killed.pid, signal.SIGKILL)
        wait(futures)
        expected = client.run_on_scheduler(seen_by_independent_plugin)
        client.unregister_scheduler_plugin("independent")
        killed_address = killed.address
    return Recorded(trace, read_lines(trace), expected, killed_address)


def test_transitions_equal_those_of_an_independent_plugin(recorded):
    lines, expected = recorded.lines, recorded.expected
    transitions = [line for line in lines if line["kind"] == "transition"]

    ours = []
    for line, (*_, kept) in zip(transitions, expected, strict=False):
        facts = {
            name: line.get({"exception_text": "exception"}.get(name, name)) for name in kept
        }
        facts["startstops"] = line.get("startstops", []) if kept["startstops"] else []
        ours.append((line["key"], line["start"], line["finish"], line["stimulus_id"], facts))

    assert len(expected) > 6_000
    assert ours == expected


def test_every_attempt_tells_its_worker(recorded):
    lines, killed = recorded.lines, recorded.killed
    begun = [line for line in lines if line.get("finish") == "processing"]

    assert all("worker" in line and "run_id" in line for line in begun)
    assert any(line["worker"] == killed for line in begun)


def test_a_lost_attempt_tells_the_worker_that_died(recorded):
    lines, killed = recorded.lines, recorded.killed
    [event] = [
        line["payload"]
        for line in lines
        if line.get("topic") == "all" and line["payload"]["action"] == "remove-worker"
    ]
    lost = [
        line
        for line in lines
        if line.get("start") == "processing"
        and line["stimulus_id"] == event["stimulus_id"]
        and line["finish"] == "released"
    ]

    assert sorted(line["key"] for line in lost) == sorted(event["processing-tasks"])
    assert {line["worker"] for line in lost} == {killed}


def test_a_retried_attempt_keeps_its_error(recorded):
    lines = recorded.lines
    retried = [
        line
        for line in lines
        if line.get("start") == "processing" and line.get("finish") == "released"
        and line["stimulus_id"].startswith("task-erred")
    ]  # fmt: skip

    assert len(retried) >= 10
    for line in retried:
        assert "fails" in line["exception"]
        assert line["traceback"]
        assert line["worker"].startswith("tcp://")
        assert any(part["action"] == "compute" for part in line["startstops"])


def test_the_dead_worker_is_recorded(recorded):
    lines, killed = recorded.lines, recorded.killed
    removed = [line for line in lines if line["kind"] == "worker_removed"]

    assert [line["worker"] for line in removed] == [killed]
    assert removed[0]["server_id"] in {
        line["server_id"] for line in lines if line["kind"] == "worker_added"
    }


def test_the_trailer_counts_what_the_file_holds(recorded):
    lines = recorded.lines
    *others, trailer = lines

    counted = {}
    for line in others:
        counted[line["kind"]] = counted.get(line["kind"], 0) + 1
    assert trailer["kind"] == "trailer"
    assert trailer["records_by_kind"] == counted
    assert trailer["dropped_by_kind"] == {}


def test_task_runs_has_a_row_for_each_attempt(recorded):
    """With its worker, whatever became of it, and with the error of those that failed."""
    roast_analyze = pytest.importorskip("roast_analyze")
    begun = [line for line in recorded.lines if line.get("finish") == "processing"]
    lost = [
        line["key"]
        for line in recorded.lines
        if line.get("start") == "processing"
        and line["stimulus_id"].startswith("handle-worker-cleanup")
    ]

    with roast_analyze.Trace(recorded.trace) as trace:
        runs = trace.sql(
            "SELECT outcome, count(*), count(worker), count(exception) FROM task_runs "
            "GROUP BY outcome"
        ).fetchall()
        lost_from = trace.sql(
            "SELECT DISTINCT worker FROM task_runs WHERE outcome = 'lost'"
        ).fetchall()

    by_outcome = {outcome: counts for outcome, *counts in runs}
    assert sum(n for n, *_ in by_outcome.values()) == len(begun)
    assert by_outcome["lost"] == [len(lost), len(lost), 0]
    assert lost_from == [(recorded.killed,)]
    assert by_outcome["erred"] == [1, 1, 1]
    retried, with_worker, with_exception = by_outcome["retried"]
    assert retried == with_worker == with_exception >= 10
