"""Samples counted as Dask does, on large and deep trees of Dask's profiler."""

import random
import sys

import pytest
from distributed import profile

from roast_analyze.algorithms.profiles import counted


def exclusive_samples(root):
    """Return exclusive samples by stack: a node's count minus those of its children."""
    found = {}
    waiting = [(root, ())]
    while waiting:
        node, above = waiting.pop()
        about = node["description"]
        line = about["line_number"] or 0
        path = (*above, f"{about['name']}@{about['filename']}:{line}")
        below = list(node["children"].values())
        exclusive = node["count"] - sum(child["count"] for child in below)
        if exclusive > 0:
            found[path] = found.get(path, 0) + exclusive
        waiting += [(child, path) for child in below]
    return found


def as_record(root):
    """Return Dask's tree as a record with one slice."""
    frames, parents, node_frames, lines, counts = {}, [None], [None], [None], [root["count"]]
    waiting = [(0, child) for child in root["children"].values()]
    while waiting:
        parent, node = waiting.pop()
        waiting += [(len(parents), child) for child in node["children"].values()]
        parents.append(parent)
        number, _ = frames.setdefault(node["identifier"], (len(frames), node))
        node_frames.append(number)
        lines.append(node["description"]["line_number"])
        counts.append(node["count"])
    functions = [
        {
            "name": node["description"]["name"],
            "filename": node["description"]["filename"],
            "line_number": int(node["identifier"].split(";")[2]),
        }
        for _, node in frames.values()
    ]
    tree = {
        "frames": functions,
        "parents": parents,
        "node_frames": node_frames,
        "line_numbers": lines,
        "slices": [
            {"start_t": 0.0, "stop_t": 1.0, "nodes": list(range(len(counts))), "counts": counts}
        ],
    }
    times = {"start_t": 0.0, "stop_t": 1.0, "interval_seconds": 0.01}
    return {
        "kind": "profile",
        "t": 1.0,
        "worker": "w1",
        "prefix": "load",
        **times,
        "tree": tree,
    }


def sample(state, stop=None):
    profile.process(sys._getframe(1), True, state, stop=stop)


def wander(rng, state, depth):
    """Recurse through three functions and from several lines."""
    if depth == 0 or rng.random() < 0.05:
        sample(state)
        return
    step = rng.randrange(4)
    if step == 0:
        wander(rng, state, depth - 1)
    elif step == 1:
        left(rng, state, depth - 1)
    elif step == 2:
        sorted([1], key=lambda _: wander(rng, state, depth - 1) or 0)
    else:
        right(rng, state, depth - 1)


def left(rng, state, depth):
    if rng.random() < 0.5:
        wander(rng, state, depth)
    else:
        right(rng, state, depth)


def right(rng, state, depth):
    if rng.random() < 0.1:
        sample(state)
    wander(rng, state, depth)


def dive(state, depth):
    if depth:
        dive(state, depth - 1)
    else:
        sample(state)


def nodes_of(node):
    return 1 + sum(map(nodes_of, node["children"].values()))


def depth_of(node):
    return 1 + max(map(depth_of, node["children"].values()), default=0)


def varied():
    rng, state = random.Random(5), profile.create()
    for _ in range(400):
        wander(rng, state, rng.randrange(1, 40))
    assert nodes_of(state) >= 1000
    return state


def deep():
    state = profile.create()
    for depth in (150, 200, 150):
        dive(state, depth)
    assert depth_of(state) >= 100
    return state


@pytest.mark.parametrize("make", [varied, deep])
def test_samples_are_counted_as_dask_does(open_trace, make):
    root = make()
    trace = open_trace(as_record(root))

    expected = exclusive_samples(root)
    for frame in (trace.frame("profile_stacks"), trace.flamegraph().stacks):
        found = counted(frame)
        assert {tuple(row["stack"]): row["samples"] for row in found.to_dicts()} == expected
        assert found["samples"].sum() == root["count"]
        assert found["seconds"].sum() == pytest.approx(root["count"] * 0.01)
        assert found["share"].sum() == pytest.approx(1)
        assert found["depth"].to_list() == found["stack"].list.len().to_list()


def test_no_sample_is_lost(open_trace):
    root = varied()

    frame = open_trace(as_record(root)).frame("profile_stacks")
    assert frame["samples"].sum() + frame["ambiguous_samples"].sum() == root["count"]
    assert frame["samples"].min() >= 0
