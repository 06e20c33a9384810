"""The trace contains all transitions of the scheduler, in order and unchanged."""

import os
import random
import signal
import time
from pathlib import Path
from typing import NamedTuple

import dask
import distributed
import pytest
from distributed import SchedulerPlugin, get_worker, wait

import roast_recorder

pytestmark = pytest.mark.cluster


class Recorded(NamedTuple):
    trace: Path
    records: dict[str, list[dict]]
    expected: list[tuple]
    killed: str

    def ended(self, cause):
        """Return attempts without a result whose stimulus ID begins with `cause`."""
        moves = self.records["transition"]
        lost = [m for m in moves if (m["start"], m["finish"]) == ("processing", "released")]
        return [move for move in lost if move["stimulus_id"].startswith(cause)]


class Independent(SchedulerPlugin):
    """A minimal plugin, independent of the recorder, to compare with."""

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
    """Return a local function, which is pickled by value: workers cannot import this module."""

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
def recorded(own_cluster, tmp_path_factory, by_kind):
    """Record 600 tasks with retries, an error and a worker that is killed."""
    trace = tmp_path_factory.mktemp("transitions") / "trace.jsonl.zst"
    with own_cluster(3) as (cluster, client), roast_recorder.record(client, trace):
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
    return Recorded(trace, by_kind(trace), expected, address)


def test_transitions_equal_those_of_an_independent_plugin(recorded):
    records, ours = recorded.records, []
    for line, (*_, facts, parts) in zip(records["transition"], recorded.expected, strict=False):
        change = (line["key"], line["start"], line["finish"], line["stimulus_id"])
        known = {name: line.get(name) for name in facts}
        ours.append((*change, known, line.get("startstops", []) if parts else []))

    assert len(recorded.expected) > 2_400
    assert ours == recorded.expected
    [trailer] = records["trailer"]
    counts = {kind: len(lines) for kind, lines in records.items() if kind != "trailer"}
    assert (trailer["records_by_kind"], trailer["dropped_by_kind"]) == (counts, {})


def test_a_lost_attempt_has_the_worker_that_died(recorded):
    records, killed = recorded.records, recorded.killed
    of_all = [line["payload"] for line in records["event"] if line["topic"] == "all"]
    [event] = [payload for payload in of_all if payload["action"] == "remove-worker"]
    lost = recorded.ended(event["stimulus_id"])
    begun = [line for line in records["transition"] if line["finish"] == "processing"]

    assert all("worker" in line and "run_id" in line for line in begun)
    assert killed in {line["worker"] for line in begun}
    assert sorted(line["key"] for line in lost) == sorted(event["processing-tasks"])
    assert {line["worker"] for line in lost} == {killed}
    [removed] = records["worker_removed"]
    joined = {line["server_id"] for line in records["worker_added"]}
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
    """It has the worker of every attempt, and the error of failed attempts."""
    pytest.importorskip("duckdb")
    roast_analyze = pytest.importorskip("roast_analyze")
    begun = [line for line in recorded.records["transition"] if line["finish"] == "processing"]
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


@pytest.mark.exhaustive
def test_a_released_attempt_has_the_time_at_which_it_began(
    own_cluster, tmp_path, trace, by_kind
):
    """One that is rescheduled, one that is cancelled, and one that a restart ends."""

    def note_the_time_and_wait(name):
        (tmp_path / name).write_text(f"{time.time()}")
        while not (tmp_path / f"{name} ends").exists():
            time.sleep(0.05)
        raise distributed.Reschedule

    def attempt_again(name):
        is_first = not (tmp_path / f"{name} first").exists()
        return note_the_time_and_wait(f"{name} first" if is_first else f"{name} again")

    with own_cluster(1) as (_, client), roast_recorder.record(client, trace):

        def wait_until_reported(name, key):
            """Wait until a heartbeat has reported that the attempt is executed."""
            while not (tmp_path / name).exists() or not client.run_on_scheduler(
                lambda dask_scheduler: any(
                    worker.last_seen - seconds > float((tmp_path / name).read_text()) - 0.1
                    for worker in dask_scheduler.workers.values()
                    for state, seconds in worker.executing.items()
                    if state.key == key
                )
            ):
                time.sleep(0.05)
            time.sleep(0.5)

        running = client.submit(attempt_again, "a", key="cancelled")
        queued = client.submit(abs, 1, key="behind cancelled")
        wait_until_reported("a first", "cancelled")
        (tmp_path / "a first ends").touch()
        wait_until_reported("a again", "cancelled")
        client.cancel([running, queued])
        (tmp_path / "a again ends").touch()
        running = client.submit(note_the_time_and_wait, "b", key="restarted")
        queued = client.submit(abs, 1, key="behind restarted")
        wait_until_reported("b", "restarted")
        client.restart(wait_for_workers=False)

    ended = [line for line in by_kind(trace)["transition"] if line["start"] == "processing"]
    began = [float((tmp_path / name).read_text()) for name in ("a first", "a again", "b")]
    assert [line["start_t"] for line in ended if "start_t" in line] == pytest.approx(
        began, abs=0.3
    )
    # Queued behind one that ends, a task can begin.
    assert {line["key"] for line in ended if "start_t" not in line} <= {
        "behind cancelled", "behind restarted",
    }  # fmt: skip


@pytest.mark.parametrize("worker_transitions", [False, True])
def test_a_task_that_secedes(own_cluster, trace, by_kind, worker_transitions):
    def wait_outside():
        time.sleep(0.5)
        worker = distributed.get_worker()
        before, delays = time.time(), [worker.scheduler_delay]
        distributed.secede()
        for _ in range(20):
            time.sleep(0.05)
            delays.append(worker.scheduler_delay)
        return before, delays

    options = {"worker_transitions": worker_transitions}
    with own_cluster(1) as (_, client), roast_recorder.record(client, trace, **options):
        before, delays = client.submit(wait_outside, key=("outside", 1)).result()
    records = by_kind(trace)
    [secession] = [
        line for line in records["worker_transition"] if line["finish"] == "long-running"
    ]
    [end] = [line for line in records["transition"] if line["finish"] == "memory"]
    [compute] = [part for part in end["startstops"] if part["action"] == "compute"]
    assert secession["key"] == end["key"] == "('outside', 1)"
    assert secession["worker"] == end["worker"]
    # The worker's records are converted with its estimate, which a heartbeat can change
    # meanwhile; without them, the scheduler's own clock counts.
    earliest = before + min(delays) if worker_transitions else before
    assert earliest <= secession["t"] < compute["stop"]


def test_a_lost_attempt_has_the_time_at_which_it_began(own_cluster, tmp_path, trace, by_kind):
    def note_the_time_and_wait(path):
        with Path(path).open("a") as file:
            file.write(f"{time.time()} {os.getpid()}\n")
        time.sleep(60)

    begins = tmp_path / "begins"
    begins.touch()
    with (
        # The first attempt is repeated, the second one fails with KilledWorker.
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        own_cluster(1) as (_, client),
        roast_recorder.record(client, trace),
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

    ended = [line for line in by_kind(trace)["transition"] if line["start"] == "processing"]
    lost = [line for line in ended if line["finish"] != "memory"]
    found = [line["start_t"] for line in lost if line["key"] == "long"]
    assert found == pytest.approx([float(line.split()[0]) for line in noted], abs=0.3)
    assert all("start_t" not in line for line in lost if line["key"] != "long")
