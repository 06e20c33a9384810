"""Rows to records: one small row, the record that it must become."""

from roast_recorder import expand
from roast_recorder.rows import RECORD, TASK, TRANSITION, WORKER_SAMPLE
from roast_recorder.sampler import SAMPLE_FIELDS


def test_a_transition_to_processing():
    row = [TRANSITION, 1.5, ["x", [0, "a"]], "waiting", "processing", "s-1", "tcp://w", 3, None]

    assert list(expand.records([row])) == [
        {
            "kind": "transition",
            "t": 1.5,
            "key": "('x', (0, 'a'))",
            "start": "waiting",
            "finish": "processing",
            "stimulus_id": "s-1",
            "worker": "tcp://w",
            "run_id": 3,
        }
    ]


def test_the_end_of_an_attempt_keeps_what_the_schema_names():
    details = {
        "worker": "tcp://w",
        "nbytes": 0,
        "typename": "int",
        "type": "pickled",
        "metadata": {},
        "thread": 9,
        "startstops": [{"action": "compute", "start": 1.0, "stop": 2.0}],
        "status": "OK",
    }

    [record] = expand.records(
        [[TRANSITION, 2.5, "k", "processing", "memory", "s-2", None, 3, details]]
    )

    assert record == {
        "kind": "transition",
        "t": 2.5,
        "key": "k",
        "start": "processing",
        "finish": "memory",
        "stimulus_id": "s-2",
        "worker": "tcp://w",
        "run_id": 3,
        "thread": 9,
        "nbytes": 0,
        "typename": "int",
        "startstops": [{"action": "compute", "start": 1.0, "stop": 2.0}],
    }


def test_a_task_with_tuple_keys():
    row = [
        TASK,
        1.0,
        ["x", 1],
        "x",
        "x",
        [["y", 0], "z"],
        [0, 1, 2],
        None,
        "span",
        "c",
        "s",
        None,
    ]

    assert list(expand.records([row])) == [
        {
            "kind": "task",
            "t": 1.0,
            "key": "('x', 1)",
            "prefix": "x",
            "group": "x",
            "dependencies": ["('y', 0)", "z"],
            "priority": [0, 1, 2],
            "span_id": "span",
            "client": "c",
            "stimulus_id": "s",
        }
    ]


def test_a_sample_names_its_fields():
    row = [WORKER_SAMPLE, 1.0, "tcp://w", "Worker-1", 12.5, *[None] * (len(SAMPLE_FIELDS) - 3)]

    assert list(expand.records([row])) == [
        {
            "kind": "worker_sample",
            "t": 1.0,
            "worker": "tcp://w",
            "server_id": "Worker-1",
            "cpu": 12.5,
        }
    ]


def test_any_other_record():
    row = [RECORD, 1.0, "chunk", {"key": ["c", 1], "dataset": "ttbar", "usermeta": None}]

    assert list(expand.records([row])) == [
        {"kind": "chunk", "t": 1.0, "key": "('c', 1)", "dataset": "ttbar"}
    ]
