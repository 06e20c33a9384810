"""Each cycle of Dask's profiler is recorded once, with Dask's own counts."""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from types import SimpleNamespace

import cloudpickle
import psutil
import pytest
from distributed import profile

import roast_recorder
from roast_recorder.probes import profiles
from roast_recorder.probes.profiles import MergedTrees, ProfileReader
from roast_recorder.process_state import here
from roast_recorder.worker.innermost import (
    INNERMOST,
    count_innermost,
    stop_counting_innermost,
)

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def tree(count, *children, name="root", line=1, seen=2):
    """Return a tree as Dask builds it, with a function's first line and the sampled one."""
    return {
        "count": count,
        "identifier": "root" if name == "root" else f"{name};m.py;{line}",
        "description": {"name": name, "filename": "m.py", "line_number": seen, "line": "x"},
        "children": {child["identifier"]: child for child in children},
    }


def reader(cycles, since=0.0):
    """Return a reader of a history that grows with the list."""
    return ProfileReader(lambda: reversed(cycles), 1.0, 0.01, since)


def samples_in(records):
    return sum(cycle["counts"][0] for record in records for cycle in record["tree"]["slices"])


def innermost(records):
    """Return the number of samples that ended in each function."""
    found = Counter()
    for tree in (record["tree"] for record in records):
        for cycle in tree["slices"]:
            for node, samples in zip(cycle["nodes"], cycle.get("innermost", ()), strict=False):
                if samples:
                    found[tree["frames"][tree["node_frames"][node]]["name"]] += samples
    return found


def test_trees_are_merged_and_their_counts_are_separate():
    merged = MergedTrees()

    merged.add(tree(3, tree(3, tree(1, name="g"), name="f", seen=4)), 0.0, 1.0)
    merged.add(tree(2, tree(2, tree(0, name="h"), tree(1, name="f"), name="f")), 1.0, 2.0)

    [record] = merged.records(0.01)
    assert record == {
        "start_t": 0.0,
        "stop_t": 2.0,
        "interval_seconds": 0.01,
        "tree": {
            "frames": [
                {"name": "f", "filename": "m.py", "line_number": 1},
                {"name": "g", "filename": "m.py", "line_number": 1},
                {"name": "h", "filename": "m.py", "line_number": 1},
            ],
            # The recursive call of f is another node with the same frame.
            "parents": [None, 0, 1, 1, 1],
            "node_frames": [None, 0, 1, 0, 2],
            "line_numbers": [None, 4, 2, 2, 2],
            "calls": [],
            "slices": [
                {"start_t": 0.0, "stop_t": 1.0, "nodes": [0, 1, 2], "counts": [3, 3, 1]},
                {"start_t": 1.0, "stop_t": 2.0, "nodes": [0, 1, 3, 4], "counts": [2, 2, 1, 0]},
            ],
        },
    }


def test_each_cycle_is_returned_once():
    cycles = [(1.0, {"x": tree(1)}), (2.0, {"x": tree(2), "y": tree(4)})]
    found = reader(cycles)

    first = found.take()
    nothing = found.take()
    cycles += [(3.0, {"x": tree(8)}), (4.0, {"x": tree(0)})]
    second = found.take()
    cycles += [(2.5, {"x": tree(16)})]  # the clock was set back
    third = found.take()

    assert [(r["prefix"], samples_in([r])) for r in first] == [("x", 3), ("y", 4)]
    assert nothing == []
    assert [(r["prefix"], r["start_t"], r["stop_t"], samples_in([r])) for r in second] == [
        ("x", 2.0, 3.0, 8)
    ]
    assert samples_in(third) == 16


@pytest.mark.parametrize(
    ("ends", "since", "running", "expected"),
    [
        ([1.0, 2.0], 1.5, None, [(1.5, 2.0)]),
        ([1.0], 0.0, 1.5, [(0.0, 1.0), (1.0, 1.5)]),
        ([1.0, 60.0], 0.0, None, [(0.0, 1.0), (59.0, 60.0)]),
        ([1.0, 2.0, 0.5], 0.0, None, [(0.0, 1.0), (1.0, 2.0), (-0.5, 0.5)]),
    ],
    ids=["before the recording", "the running cycle", "after a pause", "a clock set back"],
)
def test_times_of_cycles(ends, since, running, expected):
    found = reader([(end, {"x": tree(1)}) for end in ends], since)

    [record] = found.take(running and (running, {"x": tree(2)}))

    slices = record["tree"]["slices"]
    assert [(cycle["start_t"], cycle["stop_t"]) for cycle in slices] == expected


def test_trees_with_too_many_nodes_are_dropped_and_counted(monkeypatch):
    monkeypatch.setattr(profiles, "MAX_NODES", 3)
    small = tree(1, tree(1, name="f"))
    large = tree(7, *[tree(1, name=f"f{number}") for number in range(7)])

    record, loss = reader([(1.0, {"x": small}), (2.0, {"x": large})]).take()

    assert samples_in([record]) == 1
    assert loss == {
        "kind": "loss",
        "prefix": "x",
        "reason": "the profile of a cycle had more than 3 nodes",
        "record_kind": "profile",
        "records": 1,
        "start_t": 1.0,
        "stop_t": 2.0,
    }


def test_innermost_functions_are_counted_while_any_recording_runs():
    original = profile.process
    state = profile.create()

    def inner():
        profile.process(sys._getframe(), True, state)

    def outer():
        inner()
        profile.process(sys._getframe(), True, state)

    count_innermost("one")
    count_innermost("two")
    stop_counting_innermost("one")
    outer()
    stop_counting_innermost("two")
    restored = profile.process
    [record] = reader([(1.0, {"x": state})]).take()

    assert innermost([record]) == {"inner": 1, "outer": 1}
    assert restored is original


def test_compiled_functions_that_innermost_functions_call_and_the_time_before_samples():
    state, shared = profile.create(), here()

    def waiting():
        return time.sleep(0.2)

    def sample(after):
        thread = threading.Thread(target=waiting)
        thread.start()
        while (frame := sys._current_frames()[thread.ident]).f_code is not waiting.__code__:
            time.sleep(0.001)
        shared.sampled_seconds = after
        profile.process(frame, True, state)
        shared.sampled_seconds = None
        thread.join()

    count_innermost("one")
    sample(0.01)
    sample(0.5)
    profile.process(sys._getframe(), True, state)
    stop_counting_innermost("one")

    [record] = reader([(1.0, {"x": state})]).take()

    [cycle] = record["tree"]["slices"]
    names = [
        record["tree"]["frames"][record["tree"]["node_frames"][node]]["name"]
        for node in cycle["call_nodes"]
    ]
    calls = [record["tree"]["calls"][number] for number in cycle["call_names"]]
    called = dict(zip(names, zip(calls, cycle["call_samples"], strict=True), strict=True))
    assert called["waiting"] == ("time.sleep", 2)
    spent = dict(zip(cycle["call_nodes"], cycle["call_seconds"], strict=True))
    by_node = dict(zip(cycle["nodes"], cycle["innermost_seconds"], strict=True))
    assert sum(by_node.values()) == 0.51
    assert all(by_node[node] == seconds for node, seconds in spent.items())


@pytest.mark.cluster
def test_samples_of_a_worker_have_the_time_since_the_samples_before(own_cluster, tmp_path):
    path = tmp_path / "trace.jsonl"
    with own_cluster(1) as (_, client), roast_recorder.record(client, path):
        client.submit(time.sleep, 1.5, key="nap").result()

    records = [json.loads(line) for line in path.open()]
    cycles = [
        cycle
        for record in records
        if record["kind"] == "profile" and record.get("prefix") == "nap"
        for cycle in record["tree"]["slices"]
    ]
    assert sum(sum(cycle["innermost_seconds"]) for cycle in cycles) == pytest.approx(
        1.5, abs=0.3
    )


def test_innermost_counts_are_left_out_of_a_cycle_that_began_before_the_recording():
    counted = {**tree(0, name="f"), INNERMOST: 1}

    [record] = reader([(1.0, {"x": tree(2, counted)}), (2.0, {"x": tree(1, counted)})]).take()

    cycles = record["tree"]["slices"]
    assert [cycle.get("innermost") for cycle in cycles] == [None, [0, 1]]


def test_the_profile_of_a_scheduler_without_its_newest_sample():
    log = [(time.time() - 5, tree(1)), (time.time(), tree(1))]
    scheduler = SimpleNamespace(io_loop=SimpleNamespace(profile=log))

    [record] = ProfileReader.of_scheduler(scheduler, 0.0).take()

    assert (record["prefix"], samples_in([record])) == (None, 1)
    without = SimpleNamespace(io_loop=SimpleNamespace())
    assert ProfileReader.of_scheduler(without, 0.0) is None


# -- real workers ----------------------------------------------------------------------------


def spin_a(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(1_000))


def spin_b(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(1_000))


def spin(seconds):
    spin_a(seconds)
    spin_b(seconds / 3)


def history(dask_worker):
    """Return the samples in the profiler's closed cycles; None if another cycle is open."""
    if dask_worker.profile_recent["count"]:
        return None
    return sum(tree["count"] for _, tree in dask_worker.profile_history)


def worker_profiles(path):
    """Return the workers' profiles in the complete lines of a trace, even during recording."""
    lines = path.read_bytes().rpartition(b"\n")[0].splitlines()
    records = map(json.loads, (line for line in lines if b'"kind":"profile"' in line))
    return [record for record in records if "worker" in record]


def samples_by_worker(records):
    found = Counter()
    for record in records:
        found[record["worker"]] += samples_in([record])
    return found


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_samples_are_those_of_the_workers_histories(own_cluster, tmp_path):
    """Two intervals, and workers that stay, that retire and that are killed."""
    paths = {interval: tmp_path / f"{interval}.jsonl" for interval in (0.5, 10.0)}
    with (
        own_cluster(3) as (cluster, client),
        roast_recorder.record(client, paths[0.5], profile_interval_seconds=0.5),
        roast_recorder.record(client, paths[10.0]),
    ):
        _, retired, killed = list(cluster.scheduler.workers.values())
        client.gather(client.map(spin, [0.9] * 9, pure=False))
        wait_until(lambda: None not in client.run(history).values())
        expected = client.run(history)
        wait_until(lambda: samples_by_worker(worker_profiles(paths[0.5])) == expected)
        os.kill(killed.pid, signal.SIGKILL)
        client.retire_workers([retired.address])
        # A retired worker sends its profiles while it closes; wait for it.
        wait_until(lambda: not psutil.pid_exists(retired.pid))

    frequent, rare = map(worker_profiles, paths.values())
    assert samples_by_worker(frequent) == expected
    assert min(expected.values()) > 50
    expected.pop(killed.address)
    by_worker = samples_by_worker(rare)
    assert {worker: by_worker[worker] for worker in expected} == expected
    assert {line["prefix"] for line in frequent} == {"spin"}
    ended = innermost(frequent)
    assert ended["spin_a"] / ended.total() == pytest.approx(0.75, abs=0.06)
    assert ended["spin_b"] / ended.total() == pytest.approx(0.25, abs=0.06)
