"""Profiles: every cycle of every worker once, and none twice."""

import os
import signal
import sys
import time
from collections import Counter
from types import SimpleNamespace

import cloudpickle
import pytest
from distributed import Client, LocalCluster, profile

import roast_recorder
from roast_recorder.scheduler.wire_format import pack, unpack
from roast_recorder.worker import profiler as profiles
from roast_recorder.worker.profiler import (
    INNERMOST,
    MergedTrees,
    ProfileReader,
    count_innermost,
    stop_counting_innermost,
)

# Workers can't import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def tree(count, *children, name="root", line=1, seen=2):
    """A tree as Dask writes it; `line` is where the function begins."""
    return {
        "count": count,
        "identifier": "root" if name == "root" else f"{name};m.py;{line}",
        "description": {"name": name, "filename": "m.py", "line_number": seen, "line": "x"},
        "children": {child["identifier"]: child for child in children},
    }


def profiler(cycles, since=0.0):
    """One whose history grows with the list."""
    return ProfileReader(
        lambda: reversed(cycles), cycle_seconds=1.0, interval_seconds=0.01, since=since
    )


def samples_in(records):
    return sum(piece["counts"][0] for record in records for piece in record["tree"]["slices"])


# -- cycles ----------------------------------------------------------------------------------


def test_trees_are_laid_over_each_other_and_stay_apart():
    layers = MergedTrees()

    layers.add(tree(3, tree(3, tree(1, name="g"), name="f", seen=4)), 0.0, 1.0)
    layers.add(tree(2, tree(2, tree(0, name="h"), name="f", seen=5)), 1.0, 2.0)

    assert layers.as_record(0.01) == {
        "start_t": 0.0,
        "stop_t": 2.0,
        "interval_seconds": 0.01,
        "tree": {
            "frames": [
                {"name": "f", "filename": "m.py", "line_number": 1},
                {"name": "g", "filename": "m.py", "line_number": 1},
                {"name": "h", "filename": "m.py", "line_number": 1},
            ],
            "parents": [None, 0, 1, 1],
            "node_frames": [None, 0, 1, 2],
            "line_numbers": [None, 4, 2, 2],
            "slices": [
                {"start_t": 0.0, "stop_t": 1.0, "nodes": [0, 1, 2], "counts": [3, 3, 1]},
                {"start_t": 1.0, "stop_t": 2.0, "nodes": [0, 1, 3], "counts": [2, 2, 0]},
            ],
        },
    }


def test_a_function_that_calls_itself_is_one_frame_and_several_nodes():
    layers = MergedTrees()

    layers.add(tree(2, tree(2, tree(1, tree(0, name="f"), name="f"), name="f")), 0.0, 1.0)

    record = layers.as_record(0.01)["tree"]
    assert len(record["frames"]) == 1
    assert (record["parents"], record["node_frames"]) == ([None, 0, 1, 2], [None, 0, 0, 0])


def test_a_cycle_is_taken_once():
    cycles = [(1.0, {"x": tree(1)}), (2.0, {"x": tree(2), "y": tree(4)})]
    some = profiler(cycles)

    first = some.take()
    nothing = some.take()
    cycles.append((3.0, {"x": tree(8)}))
    second = some.take()

    assert [(record["prefix"], samples_in([record])) for record in first] == [
        ("x", 3),
        ("y", 4),
    ]
    assert nothing == []
    assert [(r["prefix"], r["start_t"], r["stop_t"], samples_in([r])) for r in second] == [
        ("x", 2.0, 3.0, 8)
    ]


def test_what_ended_before_the_recording_is_left_alone():
    assert samples_in(profiler([(1.0, {"x": tree(1)}), (2.0, {"x": tree(2)})], 1.5).take()) == 2


def test_the_cycle_that_goes_on_is_the_last_that_is_taken():
    some = profiler([(1.0, {"x": tree(1)})])

    [record] = some.take(running=(1.5, {"x": tree(2)}))

    assert [(s["start_t"], s["stop_t"]) for s in record["tree"]["slices"]] == [
        (0.0, 1.0),
        (1.0, 1.5),
    ]


def test_a_cycle_after_a_pause_does_not_begin_before_it():
    some = profiler([(1.0, {"x": tree(1)}), (60.0, {"x": tree(1)})])

    [record] = some.take()

    assert [s["start_t"] for s in record["tree"]["slices"]] == [0.0, 59.0]


def test_nothing_is_told_of_cycles_in_which_nothing_ran():
    assert profiler([(1.0, {}), (2.0, {"x": tree(0)})]).take() == []


def test_trees_with_too_many_nodes_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr(profiles, "MAX_NODES", 3)
    small = tree(1, tree(1, name="f"))
    large = tree(7, *[tree(1, name=f"f{number}") for number in range(7)])

    record, loss = profiler([(1.0, {"x": small}), (2.0, {"x": large})]).take()

    assert samples_in([record]) == 1
    assert loss == {
        "prefix": "x",
        "reason": "the profile of a cycle had more than 3 nodes",
        "record_kind": "profile",
        "records": 1,
        "detail": "7 samples",
        "start_t": 1.0,
        "stop_t": 2.0,
    }


def test_packing_and_unpacking():
    records = profiler([(1.0, {"x": tree(1, tree(0, name="µ\ud800\n"))})]).take()

    assert unpack(pack(records)) == records


def test_real_stacks_of_dasks_profiler_are_kept_count_by_count():
    trees = [profile.create() for _ in range(3)]

    def look(depth, state):
        if depth:
            look(depth - 1, state)
        else:
            profile.process(sys._getframe(), True, state)

    for number, state in enumerate(trees):
        for depth in range(0, 90, number + 1):
            look(depth, state)

    [record] = profiler([(float(n + 1), {"x": t}) for n, t in enumerate(trees)]).take()

    told = record["tree"]
    for piece, state in zip(told["slices"], trees, strict=True):
        counts = dict(zip(piece["nodes"], piece["counts"], strict=True))
        assert paths_of(told, counts) == paths_in(state)


def paths_of(told, counts):
    """Counts by the functions on the way to a node, named as Dask identifies them."""

    def path(node):
        if told["parents"][node] is None:
            return ()
        frame = told["frames"][told["node_frames"][node]]
        identifier = f"{frame['name']};{frame['filename']};{frame['line_number']}"
        return (*path(told["parents"][node]), identifier)

    return {path(node): count for node, count in counts.items()}


def paths_in(state, path=()):
    found = {path: state["count"]}
    for child in state["children"].values():
        found |= paths_in(child, (*path, child["identifier"]))
    return found


def test_where_samples_end_is_noted_while_anybody_records():
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
    left = profile.process
    [record] = profiler([(1.0, {"x": state})]).take()

    told = record["tree"]
    [piece] = told["slices"]
    named = {
        told["frames"][told["node_frames"][node]]["name"]: samples
        for node, samples in zip(piece["nodes"], piece["innermost"], strict=True)
        if samples
    }
    assert named == {"inner": 1, "outer": 1}
    assert left is original


def test_a_cycle_with_samples_of_before_does_not_say_where_they_ended():
    known = {**tree(0, name="f"), INNERMOST: 1}

    [record] = profiler([(1.0, {"x": tree(2, known)}), (2.0, {"x": tree(1, known)})]).take()

    assert [piece.get("innermost") for piece in record["tree"]["slices"]] == [None, [0, 1]]


def test_a_scheduler_without_a_profiler_has_no_profile():
    scheduler = SimpleNamespace(io_loop=SimpleNamespace())

    assert ProfileReader.of_scheduler(scheduler, 0.0) is None


def test_of_a_schedulers_profile_the_newest_look_is_left_for_later():
    log = [(time.time() - 5, tree(1)), (time.time(), tree(1))]
    scheduler = SimpleNamespace(io_loop=SimpleNamespace(profile=log))

    [record] = ProfileReader.of_scheduler(scheduler, 0.0).take()

    assert (record["prefix"], samples_in([record])) == (None, 1)


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
    """Samples that the profiler of a worker has counted."""
    return sum(tree["count"] for _, tree in dask_worker.profile_history)


def samples_by_worker(lines):
    found = Counter()
    for line in lines:
        if line["kind"] == "profile" and "worker" in line:
            found[line["worker"]] += samples_in([line])
    return dict(found)


def shares_of(lines):
    """By the function in which samples ended, where that is known."""
    found = Counter()
    for line in lines:
        told = line["tree"]
        for piece in told["slices"]:
            for node, samples in zip(
                piece["nodes"], piece.get("innermost") or [0] * len(piece["nodes"]), strict=True
            ):
                if samples:
                    found[told["frames"][told["node_frames"][node]]["name"]] += samples
    return {name: found[name] / found.total() for name in ("spin_a", "spin_b")}


@pytest.mark.cluster
def test_samples_are_those_of_the_workers_own_history_however_often_they_are_read(
    tmp_path, read_lines
):
    paths = {interval: tmp_path / f"{interval}.jsonl" for interval in (0.5, 1.0, 10.0)}
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, paths[0.5], profile_interval_seconds=0.5),
        roast_recorder.record(client, paths[1.0], profile_interval_seconds=1.0),
        roast_recorder.record(client, paths[10.0]),
    ):
        client.gather(client.map(spin, [0.9] * 12, pure=False))
        time.sleep(1.5)  # until the last cycle is closed
        expected = client.run(history)

    for path in paths.values():
        assert samples_by_worker(read_lines(path)) == expected
    assert min(expected.values()) > 50
    lines = [
        line
        for line in read_lines(paths[1.0])
        # Beside the workers, the scheduler's own loop may have been caught at work.
        if line["kind"] == "profile" and "worker" in line
    ]
    assert {line["prefix"] for line in lines} == {"spin"}
    assert shares_of(lines) == pytest.approx({"spin_a": 0.75, "spin_b": 0.25}, abs=0.06)
    names = {frame["name"] for line in lines for frame in line["tree"]["frames"]}
    assert {"spin", "spin_a", "spin_b"} <= names


@pytest.mark.cluster
def test_a_dead_worker_loses_little_and_one_that_retires_nothing(tmp_path, read_lines):
    path = tmp_path / "t.jsonl"
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, path, profile_interval_seconds=0.5),
    ):
        dead, retired = list(cluster.scheduler.workers.values())
        futures = [
            client.submit(spin, 2.5, pure=False, workers=[worker.address])
            for worker in (dead, retired)
        ]
        time.sleep(3.0)
        os.kill(dead.pid, signal.SIGKILL)
        futures[1].result()
        time.sleep(1.1)
        [expected] = client.run(history, workers=[retired.address]).values()
        client.retire_workers([retired.address])
        futures[0].cancel()

    found = samples_by_worker(read_lines(path))
    assert found[retired.address] == expected
    assert found[dead.address] > 50


@pytest.mark.cluster
def test_without_the_kind_no_worker_gathers(tmp_path, read_lines):
    path = tmp_path / "t.jsonl"
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, path, kinds=("task",), profile_interval_seconds=0.1),
    ):
        client.submit(spin, 0.3).result()
        plugins = client.run(lambda dask_worker: [*dask_worker.plugins])

    assert not any("roast" in name for names in plugins.values() for name in names)
    assert samples_by_worker(read_lines(path)) == {}
