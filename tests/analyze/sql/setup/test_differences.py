"""Differences between the set-ups of runs."""

import pytest

from roast_analyze import Trace

DEFAULTS = {"a.b": 0.7, "a.c": 1, "temporary-directory": None}
EVERYWHERE = ["client", "scheduler", "worker"]


@pytest.fixture
def compare(write_traces):
    """Return the differences between traces with these facts."""

    def compare(*traces):
        with Trace(*write_traces(*traces)) as opened:
            return opened.rows("FROM differences")

    return compare


@pytest.fixture
def run(process_facts):
    """Return the facts of a run with a configuration and packages of its workers."""

    def run(configuration, packages=(), pid=1, workers=2):
        ours = [["dask", "1"]]
        alike = [configuration, DEFAULTS]
        facts = process_facts("scheduler", *alike, ours, pid=pid) + process_facts(
            "client", *alike, ours, pid=pid
        )
        for n in range(workers):
            theirs = [*ours, *packages]
            facts += process_facts("worker", *alike, theirs, f"tcp://w:{pid}{n}", pid=pid)
        return facts

    return run


def test_options_packages_and_arguments_of_the_cluster(compare, run):
    """Process IDs, addresses, worker counts and temporary directories do not count."""
    cores = {"kind": "environment", "t": 0.0, "section": "cluster", "name": "cores"}
    one = [
        *run({"temporary-directory": "/tmp/1", "mine": 3}, [["x", "1"], ["y", "1"]]),
        {**cores, "value": 8},
    ]
    other = [
        *run({"a.b": 0.8, "a.c": None, "temporary-directory": "/tmp/2"}, [["x", "2"]], 2, 3),
        {**cores, "value": 16},
    ]

    assert compare(one, other) == [
        ("cluster", "cores", "8", "16", ["client"], "T1"),
        ("configuration", "a.b", "0.7", "0.8", EVERYWHERE, "T1"),
        ("configuration", "a.c", "1", "None", EVERYWHERE, "T1"),
        ("configuration", "mine", "3", None, EVERYWHERE, "T1"),
        ("package", "x", "1", "2", ["worker"], "T1"),
        ("package", "y", "1", None, ["worker"], "T1"),
    ]


def test_each_run_is_compared_with_the_first(compare, run):
    runs = [run({"a.b": spill}) for spill in (0.1, 0.2, 0.1)]

    assert compare(*runs) == [("configuration", "a.b", "0.1", "0.2", EVERYWHERE, "T1")]
    assert compare(runs[0]) == []


def test_facts_that_only_one_recorder_records_are_no_difference(compare, run, worker):
    """An older recorder records two packages of the worker and no options."""
    older = [worker("w0", versions={"dask": "2", "msgpack": "1"})]

    assert compare(run({"a.b": 1}, [["x", "1"]]), older) == [
        ("package", "dask", "1", "2", ["worker"], "T1")
    ]
