"""All transfers and transitions of workers are recorded, compared with another plugin."""

import logging
import os
import sys
import time
from collections import Counter, defaultdict, deque
from types import SimpleNamespace

import cloudpickle
import dask
import numpy as np
import pytest
from distributed import WorkerPlugin, wait

import roast_recorder
from roast_recorder.probes import worker_logs
from roast_recorder.probes.worker_logs import LOG_LAYOUTS, Pending
from roast_recorder.scheduler.tap import Tap

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

#: Entries that Dask keeps in each log, fewer than a test produces.
LOG_LENGTH = 20

#: Parts of a shuffle, and pieces of each. A third of all pieces stays on its worker.
PARTS = 15

ALL_LOGS = {"transfers": True, "worker_transitions": True}


# -- logs ------------------------------------------------------------------------------------


def observe_log(owner, attribute, listener):
    """Listen as one of several recordings; return what ends it."""
    tap = Tap(print)
    tap.log("transfer", owner, attribute, listener)
    return tap.close


def test_observed_logs_behave_as_before_and_are_restored():
    for maxlen, expected in ((3, "efg"), (None, "abcdefg")):
        owner = SimpleNamespace(log=deque("abc", maxlen=maxlen))
        first, second = [], []
        unsubscribe_first = observe_log(owner, "log", first.append)
        owner.log.extend("")
        for entry in "de":
            owner.log.append(entry)
        unsubscribe_second = observe_log(owner, "log", second.append)
        owner.log.append("f")
        unsubscribe_first()
        assert type(owner.log) is not deque
        owner.log.append("g")

        assert isinstance(owner.log, deque)
        assert (first, second) == (list("def"), list("fg"))
        assert (list(owner.log.copy()), owner.log.maxlen) == (list(expected), maxlen)
        unsubscribe_second()
        assert type(owner.log) is deque
        assert (list(owner.log), owner.log.maxlen) == (list(expected), maxlen)


def test_keys_that_cannot_be_encoded_are_sent_as_text():
    pending, odd = Pending("spill"), ("x", np.int64(1))
    names = LOG_LAYOUTS["spill"]
    for key in ("a", odd):
        pending.append(*{**dict.fromkeys(names), "key": key}.values())

    _, _, values = pending.take()

    assert values[:: len(names)] == ["a", str(odd)]


def test_a_log_that_another_library_replaced_is_left_alone():
    owner = SimpleNamespace(log=deque("abc", maxlen=3))
    unsubscribe = observe_log(owner, "log", lambda _: None)
    replacement = owner.log = deque("x")

    unsubscribe()

    assert owner.log is replacement


# -- workers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(own_cluster):
    configuration = {
        "distributed.admin.low-level-log-length": LOG_LENGTH,
        "distributed.worker.transfer.message-bytes-limit": 1,  # one result per transfer
        # Workers spill results of more than 10 MB.
        "distributed.worker.memory.target": 0.01,
        "distributed.worker.memory.spill": False,
    }
    with (
        dask.config.set(configuration),
        own_cluster(3, memory_limit="1GB", silence_logs=logging.CRITICAL) as (_, client),
    ):
        client.register_plugin(Witness())
        yield client


class Witness(WorkerPlugin):
    """Record transitions and transfers of a worker with hooks other than the recorder's."""

    name = "witness"

    def setup(self, worker):
        self.transitions, self.received, self.sent = [], [], []
        receive = worker._update_metrics_received_data
        send = worker.handlers["get_data"]

        def received(*, data, worker, **others):
            receive(data=data, worker=worker, **others)
            self.received.append((worker, sorted(map(str, data))))

        async def get_data(comm, keys, who=None, **others):
            answer = await send(comm, keys=keys, who=who, **others)
            if not isinstance(answer, dict):  # not busy
                self.sent.append((who, sorted(map(str, keys))))
            return answer

        worker._update_metrics_received_data = received
        worker.handlers["get_data"] = get_data

    def transition(self, key, start, finish, **_others):
        self.transitions.append((str(key), start, finish))


def witnessed(client):
    """Return the transitions, received and sent results of each worker."""

    def on_worker(dask_worker):
        witness = dask_worker.plugins["witness"]
        return witness.transitions, witness.received, witness.sent

    return client.run(on_worker)


def of_kind(lines, kind):
    return [line for line in lines if line["kind"] == kind]


@pytest.fixture(scope="module")
def shuffled(client, tmp_path_factory, read_lines):
    """Record a shuffle with more transfers than the logs keep; return lines and witnesses."""

    def split(part, number):
        return (part, number, b"x" * 100)

    trace = tmp_path_factory.mktemp("shuffle") / "trace.jsonl"
    with roast_recorder.record(client, trace, **ALL_LOGS):
        parts = client.map(lambda number: number, range(PARTS), pure=False)
        pieces = [
            [client.submit(split, part, number, pure=False) for part in parts]
            for number in range(PARTS)
        ]
        merged = [client.submit(len, some, pure=False) for some in pieces]
        assert client.gather(merged) == [PARTS] * PARTS
        del parts, pieces, merged
        while any(client.run(lambda dask_worker: len(dask_worker.state.tasks)).values()):
            time.sleep(0.05)
        witnesses = witnessed(client)
    return read_lines(trace), witnesses


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_both_ends_of_every_transfer_are_recorded(shuffled):
    lines, witnesses = shuffled
    ends = Counter()
    nbytes = defaultdict(int)
    for transfer in of_kind(lines, "transfer"):
        pair = transfer.get("source"), transfer.get("destination")
        is_sender = transfer["worker"] == pair[0]
        assert transfer["start_t"] <= transfer["stop_t"]
        assert transfer["nbytes"] == sum(transfer["keys"].values())
        assert ("measured" in transfer) == is_sender
        if all(pair):  # not with the client
            ends[(*pair, is_sender, *sorted(transfer["keys"]))] += 1
            nbytes[pair, is_sender] += transfer["nbytes"]

    received, sent = Counter(), Counter()
    for worker, (_, incoming, outgoing) in witnesses.items():
        received.update((source, worker, False, *keys) for source, keys in incoming)
        sent.update((worker, who, True, *keys) for who, keys in outgoing if who)
    assert min(Counter(worker for _, worker, *_ in received.elements()).values()) > LOG_LENGTH
    assert ends == received + sent
    assert len(nbytes) == 2 * 3 * 2
    for pair, is_sender in list(nbytes):
        assert nbytes[pair, is_sender] == nbytes[pair, not is_sender] > 0


@pytest.mark.cluster
def test_every_transition_is_recorded_in_order_on_the_schedulers_clock(shuffled):
    lines, witnesses = shuffled
    recorded = defaultdict(list)
    for line in of_kind(lines, "worker_transition"):
        recorded[line["worker"]].append((line["key"], line["start"], line["finish"]))

    for worker, (transitions, *_) in witnesses.items():
        assert len(transitions) > 20 * LOG_LENGTH
        assert recorded[worker] == transitions
    assert of_kind(lines, "loss") == []
    released = {line["key"]: line["t"] for line in of_kind(lines, "transition")}
    arrived = [
        line
        for line in of_kind(lines, "worker_transition")
        if line["finish"] == "waiting" and line["stimulus_id"].startswith("compute-task-")
    ]
    assert {line["key"] for line in arrived} == released.keys()
    for line in arrived:
        sent_t = float(line["stimulus_id"].removeprefix("compute-task-"))
        assert sent_t < released[line["key"]]
        assert sent_t <= line["t"] + 0.05


@pytest.mark.cluster
def test_transfers_with_the_client_and_odd_keys(tmp_path, client, read_lines):
    odd = ("x", 3, 1.5)
    with roast_recorder.record(client, tmp_path / "t.jsonl", **ALL_LOGS):
        future = client.scatter({"given": b"x" * 1000})["given"]
        taken = client.submit(lambda _: b"y" * 2000, future, key="taken")
        assert len(taken.result()) == 2000
        client.get({odd: (lambda: 1,), ("y", 1): (len, [odd])}, ("y", 1), sync=True)
        dumped = client.run(lambda dask_worker: dask_worker._to_dict())

    lines = read_lines(tmp_path / "t.jsonl")
    transfers = of_kind(lines, "transfer")
    [given] = [transfer for transfer in transfers if "source" not in transfer]
    assert given["keys"].keys() == {"given"}
    assert given["keys"]["given"] == given["nbytes"] >= 1000
    assert given["worker"] == given["destination"]
    assert "start_t" not in given
    sent = {(*t["keys"],): t for t in transfers if "destination" not in t}
    assert sent.keys() == {("taken",), ("('y', 1)",)}
    assert sent["taken",]["measured"]["sent_bytes"] > 0
    transitions = {line["key"] for line in of_kind(lines, "worker_transition")}
    assert {str(odd), "('y', 1)"} <= transitions
    # The state of a worker can be dumped during a recording.
    assert any("taken" in str(entry) for w in dumped.values() for entry in w["log"])


def replaceable(dask_worker):
    """Return identities and types of the objects that a recording may replace on a worker."""
    heartbeat = dask_worker.periodic_callbacks["heartbeat"].callback
    data = dask_worker.data
    objects = [
        dask_worker.state.log,
        dask_worker.transfer_incoming_log,
        dask_worker.transfer_outgoing_log,
        # Each access creates a new bound method.
        getattr(dask_worker.handlers["update_data"], "__func__", None),
        getattr(heartbeat, "__func__", None),
    ]
    return (
        [id(each) for each in objects],
        [type(each).__name__ for each in objects],
        [len(data.fast_to_slow_callbacks), len(data.slow_to_fast_callbacks)],
        [name for name in dask_worker.plugins if "roast" in name],
    )


@pytest.mark.cluster
def test_a_worker_is_changed_only_as_requested_and_restored(tmp_path, client, read_lines):
    before = client.run(replaceable)
    with roast_recorder.record(
        client, tmp_path / "none.jsonl", measure_chunks=False, kinds=["transition", "task"]
    ):
        assert client.run(replaceable) == before
    with roast_recorder.record(client, tmp_path / "default.jsonl"):
        during = client.run(replaceable)
        assert [each[:3] for each in during.values()] == [each[:3] for each in before.values()]
    with roast_recorder.record(client, tmp_path / "outer.jsonl", **ALL_LOGS):
        with roast_recorder.record(client, tmp_path / "inner.jsonl", **ALL_LOGS):
            client.submit(len, "a", key="both").result()
        for _, types, callbacks, _ in client.run(replaceable).values():
            assert types == ["ObservedLog"] * 3 + ["NoneType"] * 2
            assert callbacks == [1, 1]
        client.submit(len, "a", key="outer").result()

    after = client.run(replaceable)
    assert [each[1:] for each in after.values()] == [each[1:] for each in before.values()]
    inner, outer = (
        {line["key"] for line in of_kind(read_lines(tmp_path / name), "worker_transition")}
        for name in ("inner.jsonl", "outer.jsonl")
    )
    assert {"both", "outer"} & inner == {"both"}
    assert {"both", "outer"} <= outer


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_spills_and_dropped_records(tmp_path, client, read_lines, monkeypatch):
    worker = next(iter(client.scheduler_info()["workers"]))
    with roast_recorder.record(client, tmp_path / "spill.jsonl", worker_transitions=True):
        first = client.submit(os.urandom, 4_000_000, key="first", workers=[worker])
        wait(first)
        others = client.map(os.urandom, [4_000_000] * 3, pure=False, workers=[worker])
        wait(others)
        assert client.submit(len, first, workers=[worker]).result() == 4_000_000
    _, _, callbacks, _ = client.run(replaceable, workers=[worker])[worker]
    before = len(witnessed(client)[worker][0])
    # Small enough to be exceeded within a heartbeat interval on a slow machine, too.
    monkeypatch.setattr(worker_logs, "MAX_PENDING", 50)
    with roast_recorder.record(client, tmp_path / "drop.jsonl", worker_transitions=True):
        futures = client.map(len, ["a"] * 400, pure=False, workers=[worker])
        wait(futures)
        transitions, *_ = witnessed(client)[worker]

    spills = of_kind(read_lines(tmp_path / "spill.jsonl"), "spill")
    [spilled, restored, *_] = [line for line in spills if line["key"] == "first"]
    assert (spilled["start"], spilled["finish"]) == ("memory", "disk")
    assert min(spilled["nbytes"], spilled["measured"]["disk_bytes"]) >= 4_000_000
    assert (restored["start"], restored["finish"]) == ("disk", "memory")
    assert spilled["t"] < restored["t"]
    assert callbacks == [0, 0]
    lines = read_lines(tmp_path / "drop.jsonl")
    losses = of_kind(lines, "loss")
    assert {(loss["record_kind"], loss["reason"]) for loss in losses} == {
        ("worker_transition", "a worker's buffer was full")
    }
    dropped = sum(loss["records"] for loss in losses)
    recorded = [
        line for line in of_kind(lines, "worker_transition") if line["worker"] == worker
    ]
    assert len(recorded) + dropped == len(transitions) - before
