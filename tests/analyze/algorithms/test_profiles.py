"""Stacks put together; and counted as seed 002 does, on trees that Dask made."""

import random
import sys

import polars as pl
import pytest
from distributed import profile

from roast_analyze.algorithms.profiles import counted, difference, flame_nodes, merge_stacks

FRAME = pl.Struct({"name": pl.String, "filename": pl.String, "line_number": pl.Int64})
STACKS = {
    "stack": pl.List(pl.String),
    "frames": pl.List(FRAME),
    "samples": pl.Int64,
    "ambiguous_samples": pl.Int64,
    "seconds": pl.Float64,
}


def stacks(*rows):
    """A frame of stacks from ``("f/a", samples, undecided)``."""
    told = [
        {
            "stack": [f"{name} (a.py:1)" for name in path.split("/") if name],
            "frames": [
                {"name": name, "filename": "a.py", "line_number": 1}
                for name in path.split("/")
                if name
            ],
            "samples": samples,
            "ambiguous_samples": undecided,
            "seconds": (samples + undecided) / 100,
        }
        for path, samples, undecided in rows
    ]
    return pl.DataFrame(told, schema=STACKS)


def test_the_same_stacks_are_added_up():
    merged = merge_stacks(stacks(("f/a", 1, 2), ("f", 4, 0), ("f/a", 3, 0)))

    assert merged.select(pl.col("stack").list.last(), pl.exclude("stack", "frames")).rows() == [
        ("a (a.py:1)", 4, 2, pytest.approx(0.06)),
        ("f (a.py:1)", 4, 0, pytest.approx(0.04)),
    ]


def test_nodes_come_depth_first_with_the_widest_first():
    nodes = flame_nodes(stacks(("f/a", 1, 0), ("f/b/x", 3, 0), ("g", 2, 1), ("", 0, 5)))

    assert nodes.drop("filename", "line_number", "self_seconds").rows() == [
        (0, None, 0, None, 0, 5, 12, pytest.approx(0.12)),
        (1, 0, 1, "f", 0, 0, 4, pytest.approx(0.04)),
        (2, 1, 2, "b", 0, 0, 3, pytest.approx(0.03)),
        (3, 2, 3, "x", 3, 0, 3, pytest.approx(0.03)),
        (4, 1, 2, "a", 1, 0, 1, pytest.approx(0.01)),
        (5, 0, 1, "g", 2, 1, 3, pytest.approx(0.03)),
    ]
    assert nodes["self_seconds"].to_list() == pytest.approx([0, 0, 0, 0.03, 0.01, 0.02])


def test_what_became_slower_comes_first_however_long_the_runs_are():
    now = stacks(("f/a", 30, 0), ("f/b", 10, 0))
    before = stacks(("f/a", 400, 0), ("f/b", 500, 0), ("g", 100, 0))

    by_stack = difference(now, before)
    assert by_stack.select(
        pl.col("stack").list.last(), pl.exclude("stack", "frames")
    ).rows() == [
        ("a (a.py:1)", 0.75, 0.4, pytest.approx(0.35)),
        ("g (a.py:1)", 0.0, 0.1, pytest.approx(-0.1)),
        ("b (a.py:1)", 0.25, 0.5, pytest.approx(-0.25)),
    ]
    by_function = difference(now, before, by="function")
    assert by_function.select("function", "difference", "self_difference").rows() == [
        ("a (a.py:1)", pytest.approx(0.35), pytest.approx(0.35)),
        ("f (a.py:1)", pytest.approx(0.1), 0.0),
        ("g (a.py:1)", pytest.approx(-0.1), pytest.approx(-0.1)),
        ("b (a.py:1)", pytest.approx(-0.25), pytest.approx(-0.25)),
    ]


def test_a_function_that_calls_itself_counts_once():
    told = difference(stacks(("f/f/f", 4, 0)), stacks(("f", 0, 4)), by="function")

    assert told.select(
        "share", "baseline_share", "self_share", "baseline_self_share"
    ).rows() == [(1.0, 1.0, 1.0, 0.0)]


def test_nothing_gives_nothing():
    empty = stacks()

    assert merge_stacks(empty).height == 0
    assert flame_nodes(empty)["total_samples"].to_list() == [0]
    assert (
        difference(empty, empty).height == difference(empty, empty, by="function").height == 0
    )


# -- seed 002's counting -----------------------------------------------------------------


def seed_rows(root):
    """Seed 002's rules, on their own: exclusive is a node's count minus its children's."""
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
    """Dask's tree as a record of one slice."""
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
    """Call one's way down, by three functions and from several lines."""
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
def test_seeds_counting_is_that_of_its_own_rules(open_trace, make):
    root = make()
    trace = open_trace(as_record(root))

    expected = seed_rows(root)
    for frame in (trace.frame("profile_stacks"), trace.flamegraph().stacks):
        found = counted(frame)
        assert {tuple(row["stack"]): row["samples"] for row in found.to_dicts()} == expected
        assert found["samples"].sum() == root["count"]
        assert found["seconds"].sum() == pytest.approx(root["count"] * 0.01)
        assert found["share"].sum() == pytest.approx(1)
        assert found["depth"].to_list() == found["stack"].list.len().to_list()


def test_corrected_counting_of_the_same_trees_loses_no_sample(open_trace):
    root = varied()

    frame = open_trace(as_record(root)).frame("profile_stacks")
    assert frame["samples"].sum() + frame["ambiguous_samples"].sum() == root["count"]
    assert frame["samples"].min() >= 0


def test_the_line_is_that_of_the_first_record():
    told = stacks(("f/a", 0, 0), ("f/b", 0, 0)).with_columns(
        counted_samples=pl.Series([1, 2]),
        interval_seconds=0.01,
        lines=pl.Series([[7, None], [8, 9]]),
        start_t=pl.Series([2.0, 1.0]),
    )

    assert counted(told)["stack"].to_list() == [
        ["@:0", "f@a.py:8", "b@a.py:9"],
        ["@:0", "f@a.py:8", "a@a.py:1"],
    ]
