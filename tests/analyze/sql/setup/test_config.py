"""Dask's configuration in effect, and what of it is not the default."""

import pytest

QUERY = (
    "SELECT name, value, process, default_value, differs, varies, is_declared, processes, "
    "workers FROM config"
)
DEFAULTS = {"a.b": 0.7, "a.list": ["x"], "a.none": None}


def test_the_defaults_and_what_differs(rows, told):
    differing = {"a.b": 0.8, "mine": None}

    assert rows(QUERY, *told("scheduler", differing, DEFAULTS)) == [
        ("a.b", "0.8", "scheduler", "0.7", True, False, True, 1, None),
        ("a.list", '["x"]', "scheduler", '["x"]', False, False, True, 1, None),
        ("a.none", None, "scheduler", None, False, False, True, 1, None),
        ("mine", None, "scheduler", None, True, False, False, 1, None),
    ]


def test_an_option_that_is_set_to_none(rows, told):
    found = rows(f"{QUERY} WHERE name = 'a.b'", *told("client", {"a.b": None}, DEFAULTS))

    assert found == [("a.b", None, "client", "0.7", True, False, True, 1, None)]


def test_workers_that_are_alike_are_one_row(rows, told):
    workers = [told("worker", {}, DEFAULTS, worker=f"w{n}") for n in range(3)]
    other = told("worker", {"a.b": 0.8}, DEFAULTS, worker="w3")

    found = rows(f"{QUERY} WHERE name = 'a.b'", *sum(workers, other))

    assert found == [
        ("a.b", "0.7", "worker", "0.7", False, True, True, 3, ["w0", "w1", "w2"]),
        ("a.b", "0.8", "worker", "0.7", True, True, True, 1, ["w3"]),
    ]


def test_what_later_segments_repeat_counts_once(rows, told):
    facts = told("worker", {}, DEFAULTS, worker="w0")

    assert rows("SELECT DISTINCT processes FROM config", *facts, *facts) == [(1,)]


def test_recorders_before_told_a_few_options_of_the_scheduler(rows):
    fact = {"kind": "environment", "t": 0.0, "section": "dask configuration", "name": "a.b"}

    assert rows(QUERY, {**fact, "value": True}) == [
        ("a.b", "true", "scheduler", None, None, False, None, 1, None)
    ]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("scheduler-address", "x", True),
        ("distributed.scheduler.contact-address", None, True),
        ("temporary-directory", "/anywhere", True),
        ("a.b", "tcp://10.0.0.1:4000", True),
        ("a.b", "/tmp/xyz", True),
        ("a.b", "/tmpfs", False),
        ("a.b", "5s", False),
        ("distributed.worker.memory.spill", 0.7, False),
        ("a.transport", "tcp", False),
    ],
)
def test_what_each_run_has_its_own_of(rows, told, name, value, expected):
    query = "SELECT is_run_specific FROM config"

    assert rows(query, *told("client", {name: value}, {})) == [(expected,)]


def test_nonsense_is_no_configuration(rows, told):
    facts = told("client", ["a"], "b", {"c": 1}) + told("worker", {}, {"a": 1}, worker="w")
    nothing = {"kind": "environment", "t": 0.0, "section": "process", "name": "x", "value": 3}

    assert rows("SELECT name, process FROM config", *facts, nothing) == [("a", "worker")]
