"""Workers tell of all their transfers and transitions, held against witnesses of their own.

A witness stands at another place of the worker than the recorder, and forgets nothing.
"""

import contextlib
import logging
import os
import signal
import sys
import time
from collections import Counter, defaultdict

import cloudpickle
import dask
import pytest
from distributed import Client, LocalCluster, WorkerPlugin, wait

import roast_recorder
from roast_recorder.worker import log_observer as worker_logs

pytestmark = pytest.mark.cluster

# Workers can't import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

#: Splits of each part, and so parts of each split, of a shuffle. Two of three splits move,
#: a third of these to each worker: more than the 1,000 that its log holds.
PARTS = 72


@contextlib.contextmanager
def cluster_of(n_workers, configuration=(), **options):
    """A cluster whose workers begin with a configuration."""
    with (
        dask.config.set(dict(configuration)),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            **options,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


class Witness(WorkerPlugin):
    """Notes what a worker does, where the recorder does not look."""

    name = "witness"

    def setup(self, worker):
        self.transitions, self.received, self.asked = [], [], []
        self.worker = worker
        receive = worker._update_metrics_received_data
        give = worker.handlers["get_data"]

        def received(*, data, worker, **others):
            receive(data=data, worker=worker, **others)
            self.received.append((worker, sorted(map(str, data))))

        async def get_data(comm, keys, who=None, **others):
            answer = await give(comm, keys=keys, who=who, **others)
            if not isinstance(answer, dict):  # busy
                self.asked.append((who, sorted(map(str, keys))))
            return answer

        worker._update_metrics_received_data = received
        worker.handlers["get_data"] = get_data

    def transition(self, key, start, finish, **_others):
        self.transitions.append((str(key), start, finish))


def said_by_witnesses(client):
    """What the witnesses have noted: of each worker transitions, received, asked."""

    def on_worker(dask_worker):
        witness = dask_worker.plugins["witness"]
        return witness.transitions, witness.received, witness.asked

    return client.run(on_worker)


def settled(client):
    """Wait until workers have let go of everything."""
    while any(client.run(lambda dask_worker: len(dask_worker.state.tasks)).values()):
        time.sleep(0.05)


def shuffle(client):
    """Move parts of everything to everywhere."""

    def split(part, number):
        return (part, number, b"x" * 100)

    def merge(pieces):
        return len(pieces)

    parts = client.map(lambda number: number, range(PARTS), pure=False)
    pieces = [
        [client.submit(split, part, number, pure=False) for part in parts]
        for number in range(PARTS)
    ]
    merged = [client.submit(merge, some, pure=False) for some in pieces]
    assert client.gather(merged) == [PARTS] * PARTS


def of(lines, kind):
    return [line for line in lines if line["kind"] == kind]


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory, read_lines):
    """A shuffle of more transfers than logs hold: the lines, and what the witnesses say."""
    trace = tmp_path_factory.mktemp("shuffle") / "trace.jsonl"
    # One result a transfer.
    small = {"distributed.worker.transfer.message-bytes-limit": 1}
    with cluster_of(3, small) as client:
        client.register_plugin(Witness())
        with roast_recorder.record(client, trace, transfers=True, worker_transitions=True):
            shuffle(client)
            settled(client)
            said = said_by_witnesses(client)
        lengths = client.run(lambda dask_worker: dask_worker.transfer_incoming_log.maxlen)
    assert set(lengths.values()) == {1000}
    return read_lines(trace), said


def test_every_transfer_is_told_of_by_both_ends(shuffled):
    lines, said = shuffled
    words = of(lines, "transfer")

    received = Counter(
        (source, here, *keys) for here, (_, got, _) in said.items() for source, keys in got
    )
    asked = Counter(
        (here, who, *keys) for here, (*_, gave) in said.items() for who, keys in gave if who
    )
    by_receivers = Counter(
        (word["source"], word["destination"], *sorted(word["keys"]))
        for word in words
        if word["worker"] == word.get("destination")
    )
    by_senders = Counter(
        (word["source"], word["destination"], *sorted(word["keys"]))
        for word in words
        if word["worker"] == word.get("source") and "destination" in word
    )
    assert received.total() > 2000
    assert min(Counter(here for _, here, *_ in received.elements()).values()) > 1000
    assert by_receivers == received
    assert by_senders == asked == received


def test_sums_by_pair_are_those_of_both_ends(shuffled):
    lines, _ = shuffled
    sums = defaultdict(int)
    for word in of(lines, "transfer"):
        if {"source", "destination"} <= word.keys():
            assert word["nbytes"] == sum(word["keys"].values())
            ends = word["source"], word["destination"]
            sums[ends, word["worker"] == word["source"]] += word["nbytes"]

    assert len(sums) == 2 * 3 * 2
    for ends, _ in list(sums):
        assert sums[ends, True] == sums[ends, False] > 0


def test_what_was_sent_is_told_by_who_sent_it(shuffled):
    lines, _ = shuffled
    for word in of(lines, "transfer"):
        assert word["start_t"] <= word["stop_t"]
        assert ("measured" in word) == (word["worker"] == word.get("source"))


def test_every_transition_is_told_of_in_order(shuffled):
    lines, said = shuffled
    told = defaultdict(list)
    for line in of(lines, "worker_transition"):
        told[line["worker"]].append((line["key"], line["start"], line["finish"]))

    for here, (transitions, *_) in said.items():
        assert len(transitions) > 10_000
        assert told[here] == transitions
    assert of(lines, "loss") == []


def test_a_task_comes_with_the_schedulers_own_time(shuffled):
    lines, _ = shuffled
    ends = {line["key"]: line["t"] for line in of(lines, "transition")}
    came = [
        line
        for line in of(lines, "worker_transition")
        if line["finish"] == "waiting" and line["stimulus_id"].startswith("compute-task-")
    ]

    assert {line["key"] for line in came} == ends.keys()
    for line in came:
        assert float(line["stimulus_id"].removeprefix("compute-task-")) < ends[line["key"]]


def test_a_client_takes_and_gives(tmp_path, client, read_lines):
    with roast_recorder.record(client, tmp_path / "t.jsonl", transfers=True):
        future = client.scatter({"given": b"x" * 1000})["given"]
        taken = client.submit(lambda _: b"y" * 2000, future, key="taken")
        assert len(taken.result()) == 2000

    words = of(read_lines(tmp_path / "t.jsonl"), "transfer")
    [given] = [word for word in words if "source" not in word]
    [took] = [word for word in words if "destination" not in word]
    assert given["keys"].keys() == {"given"}
    assert given["keys"]["given"] == given["nbytes"] >= 1000
    assert given["worker"] == given["destination"]
    assert "start_t" not in given
    assert took["keys"].keys() == {"taken"}
    assert took["measured"]["sent_bytes"] > 0


def test_keys_that_cannot_travel_are_told_as_text(tmp_path, client, read_lines):
    odd = ("x", 3, 1.5)
    with roast_recorder.record(
        client, tmp_path / "t.jsonl", transfers=True, worker_transitions=True
    ):
        client.get({odd: (lambda: 1,), ("y", 1): (len, [odd])}, ("y", 1), sync=True)

    lines = read_lines(tmp_path / "t.jsonl")
    changed = {line["key"] for line in of(lines, "worker_transition")}
    assert (
        changed == {line["key"] for line in of(lines, "transition")} == {str(odd), "('y', 1)"}
    )
    assert of(lines, "transfer")[-1]["keys"].keys() == {"('y', 1)"}


def test_the_word_of_the_other_end_stays_when_a_worker_is_killed(tmp_path, read_lines):
    with cluster_of(2) as client:
        first, second = client.scheduler_info()["workers"]
        with roast_recorder.record(client, tmp_path / "t.jsonl", transfers=True):
            made = client.submit(lambda: b"x" * 1000, workers=[first], key="made")
            wait(made)
            moved = client.submit(len, made, workers=[second], key="moved")
            assert moved.result() == 1000
            [pid] = client.run(os.getpid, workers=[first]).values()
            os.kill(pid, signal.SIGKILL)
            while first in client.scheduler_info()["workers"]:
                time.sleep(0.05)

    words = of(read_lines(tmp_path / "t.jsonl"), "transfer")
    by_receiver = [word for word in words if word["worker"] == second and "source" in word]
    assert (by_receiver[0]["source"], *by_receiver[0]["keys"]) == (first, "made")


def test_what_goes_to_disk_and_comes_back_is_told(tmp_path, read_lines):
    memory = {
        "distributed.worker.memory.target": 0.01,
        "distributed.worker.memory.spill": False,
    }
    with cluster_of(1, memory, memory_limit="1GB") as client:
        with roast_recorder.record(client, tmp_path / "t.jsonl", worker_transitions=True):
            first = client.submit(os.urandom, 4_000_000, key="first")
            wait(first)
            others = client.map(os.urandom, [4_000_000] * 3, pure=False)
            wait(others)
            assert client.submit(len, first).result() == 4_000_000
        callbacks = client.run(
            lambda dask_worker: [
                dask_worker.data.fast_to_slow_callbacks,
                dask_worker.data.slow_to_fast_callbacks,
            ]
        )

    moves = of(read_lines(tmp_path / "t.jsonl"), "spill")
    [went, came, *_] = [line for line in moves if line["key"] == "first"]
    assert (went["start"], went["finish"]) == ("memory", "disk")
    assert went["nbytes"] >= 4_000_000
    assert went["measured"]["disk_bytes"] >= 4_000_000
    assert (came["start"], came["finish"]) == ("disk", "memory")
    assert went["t"] < came["t"]
    assert list(callbacks.values()) == [[[], []]]


def objects(dask_worker):
    """What the recorder would replace on a worker."""
    # A bound method is made anew at each look.
    heartbeat = dask_worker.periodic_callbacks["heartbeat"].callback
    return (
        [
            id(one)
            for one in (
                dask_worker.state.log,
                dask_worker.transfer_incoming_log,
                dask_worker.transfer_outgoing_log,
                dask_worker.handlers["update_data"].__func__,
                heartbeat.__func__,
            )
        ],
        [type(dask_worker.state.log).__name__, dask_worker.state.log.maxlen],
        list(dask_worker.data.fast_to_slow_callbacks),
        [name for name in dask_worker.plugins if "roast" in name],
    )


def test_without_the_settings_a_worker_has_the_very_same_objects(tmp_path, client):
    before = client.run(objects)
    others = {"measure_chunks": False, "kinds": ["transition", "task"]}
    with roast_recorder.record(client, tmp_path / "t.jsonl", **others):
        client.gather(client.map(len, ["a"] * 10, pure=False))
        assert client.run(objects) == before
    with roast_recorder.record(client, tmp_path / "u.jsonl"):
        # What measures chunks and reads profiles leaves these alone as well.
        during = client.run(objects)
        assert [some[:3] for some in during.values()] == [some[:3] for some in before.values()]


def kinds_of(dask_worker):
    """What kind of things the recorder would replace on a worker."""
    heartbeat = dask_worker.periodic_callbacks["heartbeat"].callback
    return (
        type(dask_worker.state.log).__name__,
        type(dask_worker.transfer_incoming_log).__name__,
        hasattr(heartbeat, "roast_original"),
        hasattr(dask_worker.handlers["update_data"], "roast_handler"),
    )


def test_two_recorders_each_have_all_and_the_last_one_tidies_up(tmp_path, client, read_lines):
    asked = {"transfers": True, "worker_transitions": True}
    with roast_recorder.record(client, tmp_path / "outer.jsonl", **asked):
        with roast_recorder.record(client, tmp_path / "inner.jsonl", **asked):
            client.submit(len, "a", key="both").result()
        assert set(client.run(kinds_of).values()) == {
            ("ObservedLog", "ObservedLog", True, True)
        }
        client.submit(len, "a", key="outer").result()
    assert set(client.run(kinds_of).values()) == {("deque", "deque", False, False)}

    inner, outer = (
        {line["key"] for line in of(read_lines(tmp_path / name), "worker_transition")}
        for name in ("inner.jsonl", "outer.jsonl")
    )
    assert inner == {"both"}
    assert outer == {"both", "outer"}


def test_what_a_worker_could_not_keep_is_counted(tmp_path, read_lines, monkeypatch):
    # Few enough that more come between two heartbeats on the slowest machine.
    monkeypatch.setattr(worker_logs, "MAX_PENDING", 50)
    with cluster_of(1, {"distributed.admin.low-level-log-length": 100}) as client:
        client.register_plugin(Witness())
        with roast_recorder.record(client, tmp_path / "t.jsonl", worker_transitions=True):
            futures = client.map(len, ["a"] * 2000, pure=False)
            wait(futures)
            [(transitions, *_)] = said_by_witnesses(client).values()

    lines = read_lines(tmp_path / "t.jsonl")
    lost = sum(line["records"] for line in of(lines, "loss"))
    assert lost > 0
    assert {line["record_kind"] for line in of(lines, "loss")} == {"worker_transition"}
    assert len(of(lines, "worker_transition")) + lost == len(transitions)


def test_the_state_of_a_worker_can_be_dumped_meanwhile(tmp_path, client):
    with roast_recorder.record(
        client, tmp_path / "t.jsonl", transfers=True, worker_transitions=True
    ):
        client.submit(len, "a", key="dumped").result()
        dumped = client.run(lambda dask_worker: dask_worker._to_dict())

    logs = [worker["log"] for worker in dumped.values()]
    assert any("dumped" in str(entry) for log in logs for entry in log)
