"""How the set-ups of two runs differ: that, and nothing else."""

import pytest

from roast_analyze import Trace

DEFAULTS = {"a.b": 0.7, "a.c": 1, "temporary-directory": None}


@pytest.fixture
def compare(write_trace):
    """Differences of traces of some facts, without the last column."""

    def compare(*traces):
        paths = [
            write_trace(*facts, name=f"{n}.jsonl", trace_id=f"T{n}")
            for n, facts in enumerate(traces)
        ]
        with Trace(*paths) as opened:
            found = opened.sql("SELECT * EXCLUDE (trace_id) FROM differences").fetchall()
            ids = opened.sql("SELECT DISTINCT trace_id FROM differences ORDER BY 1").fetchall()
        assert ids == sorted({(f"T{n}",) for n in range(1, len(traces))})[: len(ids)]
        return found

    return compare


@pytest.fixture
def run(told):
    """A run whose processes have some configuration and packages."""

    def run(configuration, packages, pid, workers=2):
        ours = [["dask", "1"]]
        return [
            *told("scheduler", configuration, DEFAULTS, ours, pid=pid),
            *told("client", configuration, DEFAULTS, ours, pid=pid),
            *(
                line
                for n in range(workers)
                for line in told(
                    "worker", configuration, DEFAULTS, packages, f"tcp://w:{pid}{n}", pid=pid
                )
            ),
        ]

    return run


def test_one_option_and_one_package(compare, run):
    one = run({"temporary-directory": "/tmp/1"}, [["dask", "1"], ["x", "1"]], pid=1)
    other = run(
        {"a.b": 0.8, "temporary-directory": "/tmp/2"}, [["dask", "1"], ["x", "2"]], pid=2,
        workers=3,
    )  # fmt: skip

    assert compare(one, other) == [
        ("configuration", "a.b", "0.7", "0.8", ["client", "scheduler", "worker"]),
        ("package", "x", "1", "2", ["worker"]),
    ]


def test_what_only_one_of_them_has(compare, run):
    one = run({"mine": 3}, [["dask", "1"], ["x", "1"]], pid=1)
    other = run({}, [["dask", "1"]], pid=2)

    assert compare(one, other) == [
        ("configuration", "mine", "3", None, ["client", "scheduler", "worker"]),
        ("package", "x", "1", None, ["worker"]),
    ]


def test_an_option_that_is_none_in_one(compare, run):
    one, other = run({}, [], pid=1), run({"a.b": None}, [], pid=2)

    assert [row[:4] for row in compare(one, other)] == [("configuration", "a.b", "0.7", "None")]


def test_the_same_twice(compare, run):
    assert compare(run({"a.b": 1}, [], pid=1), run({"a.b": 1}, [], pid=2)) == []


def test_one_trace(compare, run):
    assert compare(run({"a.b": 1}, [["x", "1"]], pid=1)) == []


def test_each_is_compared_with_the_first(compare, run):
    runs = [run({"a.b": spill}, [], pid=1) for spill in (0.1, 0.2, 0.1)]

    assert [row[2:4] for row in compare(*runs)] == [("0.1", "0.2")]


def test_an_argument_of_the_cluster(compare, run):
    fact = {"kind": "environment", "t": 0.0, "section": "cluster", "name": "cores"}
    one = [*run({}, [], pid=1), {**fact, "value": 8}]
    other = [*run({}, [], pid=1), {**fact, "value": 16}]

    assert compare(one, other) == [("cluster", "cores", "8", "16", ["client"])]


def test_of_what_only_one_recorded_nothing_is_said(compare, run, worker):
    """The other is of an older recorder: it knows two packages of the worker, no options."""
    older = [worker("w0", versions={"dask": "2", "msgpack": "1"})]

    assert compare(run({"a.b": 1}, [["dask", "1"], ["x", "1"]], pid=1), older) == [
        ("package", "dask", "1", "2", ["worker"])
    ]
