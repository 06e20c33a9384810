"""Rows to records: one small row, the record that it must become."""

import json
import marshal
import random
from collections import deque
from types import SimpleNamespace

import jsonschema
import pytest

from roast_recorder.scheduler import expand
from roast_recorder.scheduler.sampler import SAMPLE_FIELDS, WORKER_METRICS
from roast_recorder.scheduler.wire_format import (
    FINE_METRICS,
    RECORD,
    TASK,
    WORKER_LOG,
    WORKER_SAMPLE,
    decode,
    encode,
    plain,
)
from roast_recorder.worker.log_observer import LogObserver
from roast_schemas.describe import json_schema
from roast_schemas.records import WorkerMetrics

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def expanded(transitions=(), rows=()):
    """What the rows become on the other side, all of which the schema declares."""
    batch, left_out = encode(list(transitions), list(rows))
    assert not left_out
    records = list(expand.records(*decode(batch)))
    for record in records:
        VALIDATOR.validate(json.loads(json.dumps(record)))
    return records


# -- transitions ----------------------------------------------------------------------------


def test_a_transition_to_processing():
    row = [1.5, ("x", (0, "a")), "waiting", "processing", "s-1", "tcp://w", 3]

    assert expanded(row) == [
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


def test_a_transition_to_processing_on_a_worker_that_is_not_known():
    [record] = expanded([1.5, "k", "waiting", "processing", "s-1", None, 3])

    assert "worker" not in record


def test_the_end_of_an_attempt_that_has_a_result():
    startstops = ({"action": "compute", "start": 1.0, "stop": 2.0},)
    row = [2.5, "k", "processing", "memory", "s-2", 3, "tcp://w", 9, 0, "int", startstops, None]

    assert expanded(row) == [
        {
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
            "startstops": startstops,
        }
    ]


@pytest.mark.parametrize(
    ("failure", "fields"),
    [
        (None, {}),
        (
            {"exception": "ValueError('no')", "traceback": "File …", "cause": "('x', 1)"},
            {"exception": "ValueError('no')", "traceback": "File …", "cause": "('x', 1)"},
        ),
        (
            {"exception": "E()", "traceback": "", "cause": None},
            {"exception": "E()", "traceback": ""},
        ),
        ({"exception": "lone \ud800"}, {"exception": "lone ?"}),
    ],
    ids=["none", "all", "some", "surrogate"],
)
def test_the_end_of_an_attempt_that_failed(failure, fields):
    row = [2.5, "k", "processing", "erred", "s-2", 3, "tcp://w", 9, None, None, (), failure]

    assert expanded(row) == [
        {
            "kind": "transition",
            "t": 2.5,
            "key": "k",
            "start": "processing",
            "finish": "erred",
            "stimulus_id": "s-2",
            "worker": "tcp://w",
            "run_id": 3,
            "thread": 9,
            **fields,
        }
    ]


def test_any_other_transition():
    assert expanded([1.0, "lone \ud800", "memory", "released", "s-3"]) == [
        {
            "kind": "transition",
            "t": 1.0,
            "key": "lone ?",
            "start": "memory",
            "finish": "released",
            "stimulus_id": "s-3",
        }
    ]


def test_a_time_has_no_more_digits_than_a_clock():
    [record] = expanded([1_800_000_000.1234567, "k", "memory", "released", "s"])

    assert record["t"] == 1_800_000_000.123457


# -- keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("sum-1", "sum-1"),
        (("x", 0, "a"), "('x', 0, 'a')"),
        (("x", ("y", 1.5)), "('x', ('y', 1.5))"),
        (b"raw", "b'raw'"),
        (17, "17"),
        ("α", "α"),
        ("\ud800", "?"),
        (("\ud800",), "('\\ud800',)"),
    ],
    ids=repr,
)
def test_a_key_is_the_text_that_dask_would_show(key, text):
    assert expand.key_text(key) == text


# -- rows of all other kinds ----------------------------------------------------------------


def test_a_task_that_enters():
    row = (TASK, 1.0, ("x", 1), "x", ("x", "g"), [("y", 0), "z"], (0, 1, 2), None)
    row += ("span", "c", "s", None, None, None)

    assert expanded(rows=[row]) == [
        {
            "kind": "task",
            "t": 1.0,
            "key": "('x', 1)",
            "prefix": "x",
            "group": "('x', 'g')",
            "dependencies": ["('y', 0)", "z"],
            "priority": (0, 1, 2),
            "span_id": "span",
            "client": "c",
            "stimulus_id": "s",
        }
    ]


def test_a_task_that_was_there_already():
    annotations = {"retries": 2, ("odd", 1): {1.5}, "nan": float("nan"), "big": 2**70}
    row = (TASK, 1.0, "k", "k\ud800", "k", (), (0,), plain(annotations))
    row += (None, None, None, "processing", "tcp://w", 7)

    assert expanded(rows=[row]) == [
        {
            "kind": "task",
            "t": 1.0,
            "key": "k",
            "prefix": "k?",
            "group": "k",
            "dependencies": [],
            "priority": (0,),
            "annotations": {"retries": 2, "('odd', 1)": [1.5], "nan": None, "big": str(2**70)},
            "state": "processing",
            "worker": "tcp://w",
            "run_id": 7,
        }
    ]


def test_a_sample_names_its_fields():
    others = [None] * (len(SAMPLE_FIELDS) - 2)
    metrics = [12.5, *[None] * (len(WORKER_METRICS) - 1)]
    row = (WORKER_SAMPLE, 1.0, "tcp://w", "Worker-1", *others, *metrics)

    assert expanded(rows=[row]) == [
        {
            "kind": "worker_sample",
            "t": 1.0,
            "worker": "tcp://w",
            "server_id": "Worker-1",
            "metrics": {"cpu": 12.5},
        }
    ]


def test_a_sample_of_every_field():
    numbers = range(len(SAMPLE_FIELDS) - 2 + len(WORKER_METRICS))
    row = (WORKER_SAMPLE, 1.0, "tcp://w", "Worker-1", *numbers)

    [record] = expanded(rows=[row])

    metrics = record.pop("metrics")
    assert list(record) == ["kind", "t", *SAMPLE_FIELDS]
    assert list(metrics) == list(WORKER_METRICS) == list(WorkerMetrics.__annotations__)
    assert [*list(record.values())[4:], *metrics.values()] == list(numbers)


def test_a_row_of_fine_metrics_becomes_a_record_for_each():
    deltas = {
        ("execute", "span", "x", "compute", "seconds"): 1.5,
        ("execute", None, "x", ("odd", 1), "bytes"): 2,
        ("gather-dep", "network", "seconds"): 0.5,
        ("get-data", "lone \ud800", "count"): 3,
    }
    both = {"kind": "fine_metric", "t": 1.0, "worker": "tcp://w", "server_id": "Worker-1"}

    assert expanded(rows=[(FINE_METRICS, 1.0, "tcp://w", "Worker-1", deltas)]) == [
        {
            **both,
            "context": "execute",
            "span_id": "span",
            "prefix": "x",
            "activity": "compute",
            "unit": "seconds",
            "delta": 1.5,
        },
        {
            **both,
            "context": "execute",
            "prefix": "x",
            "activity": "('odd', 1)",
            "unit": "bytes",
            "delta": 2,
        },
        {
            **both,
            "context": "gather-dep",
            "activity": "network",
            "unit": "seconds",
            "delta": 0.5,
        },
        {**both, "context": "get-data", "activity": "lone ?", "unit": "count", "delta": 3},
    ]


def test_fine_metrics_of_a_worker_that_is_not_known():
    deltas = {("gather-dep", "network", "seconds"): 0.5}

    [record] = expanded(rows=[(FINE_METRICS, 1.0, "tcp://w", None, deltas)])

    assert "server_id" not in record


def test_any_other_record():
    row = (RECORD, 1.0, "chunk", {"key": "('c', 1)", "dataset": "ttbar", "usermeta": None})

    assert expanded(rows=[row]) == [
        {"kind": "chunk", "t": 1.0, "key": "('c', 1)", "dataset": "ttbar"}
    ]


def test_what_json_lacks_becomes_plain():
    payload = {("tuple", 1): b"abc", "set": {1}, "nan": float("nan"), "text": "\ud800"}

    [record] = expanded(rows=[(RECORD, 1.0, "event", {"topic": "t", "payload": payload})])

    assert record["payload"] == {
        "('tuple', 1)": "<3 bytes>",
        "set": [1],
        "nan": None,
        "text": "?",
    }


def test_an_int_of_any_size_leaves_its_neighbours_alone():
    payloads = [1, 10**5_000, 3]

    records = expanded(
        rows=[(RECORD, 1.0, "event", {"topic": "t", "payload": p}) for p in payloads]
    )

    assert {1, 3} <= {record["payload"] for record in records}


@pytest.mark.parametrize(
    "deltas",
    [
        {("seconds",): 2.0},
        pytest.param(
            {("seconds",): 2.0, ("execute", "span", "x", "compute", "seconds"): 1.0},
        ),
    ],
    ids=["one", "two"],
)
def test_a_row_that_cannot_be_expanded_becomes_a_loss(deltas):
    neighbours = [(RECORD, t, "client_added", {"client": "c"}) for t in (1.0, 3.0)]

    records = expanded(
        [0.5, "k", "memory", "released", "s"],
        [neighbours[0], (FINE_METRICS, 2.0, "w", "id", deltas), neighbours[1]],
    )

    assert [record["kind"] for record in records] == [
        "transition", "client_added", "loss", "client_added",
    ]  # fmt: skip
    assert records[2] == {
        "kind": "loss",
        "t": 2.0,
        "reason": "impossible to read: ValueError",
        "record_kind": "fine_metric",
        "records": len(deltas),
        "start_t": 2.0,
        "stop_t": 2.0,
    }


# -- the order ------------------------------------------------------------------------------


def moves(*ts):
    """A transition at each of these times, numbered in the order in which they came."""
    return [
        value
        for number, t in enumerate(ts)
        for value in (t, f"k{number}", "memory", "released", "s")
    ]


def facts(*ts):
    return [(RECORD, t, "client_added", {"client": f"c{n}"}) for n, t in enumerate(ts)]


@pytest.mark.parametrize(
    ("moved", "others", "expected"),
    [
        ((), (), []),
        ((1.0, 2.0), (), ["k0", "k1"]),
        ((), (1.0, 2.0), ["c0", "c1"]),
        ((1.0, 3.0), (2.0, 4.0), ["k0", "c0", "k1", "c1"]),
        # At one time the transitions come first.
        ((1.0, 1.0), (1.0, 1.0), ["k0", "k1", "c0", "c1"]),
        # The clock jumps back.
        ((5.0, 1.0, 2.0), (), ["k0", "k1", "k2"]),
        ((5.0, 1.0, 2.0), (3.0, 6.0), ["c0", "k0", "k1", "k2", "c1"]),
        ((2.0, 4.0), (5.0, 1.0, 3.0), ["k0", "k1", "c0", "c1", "c2"]),
    ],
)
def test_both_are_merged_by_time(moved, others, expected):
    records = expanded(moves(*moved), facts(*others))

    assert [record.get("key") or record["client"] for record in records] == expected


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_clock_does_neither_is_reordered(seed):
    draw = random.Random(seed)
    moved = [draw.random() for _ in range(100)]
    others = [draw.random() for _ in range(100)]

    records = expanded(moves(*moved), facts(*others))

    assert [r["key"] for r in records if "key" in r] == [f"k{n}" for n in range(100)]
    assert [r["client"] for r in records if "client" in r] == [f"c{n}" for n in range(100)]


# -- what workers tell of their logs ---------------------------------------------------------


def worker_log(kind, told, records=1):
    return (WORKER_LOG, 5.0, "tcp://w", "Worker-1", records, marshal.dumps(told), kind)


def test_a_transition_on_a_worker_is_on_the_schedulers_clock():
    values = [("x", 0), "executing", "released", "cancelled", "free-keys-1", 1.25]

    assert expanded(rows=[worker_log("worker_transition", (0.5, values))]) == [
        {
            "kind": "worker_transition",
            "t": 1.75,
            "worker": "tcp://w",
            "server_id": "Worker-1",
            "key": "('x', 0)",
            "start": "executing",
            "finish": "released",
            "state": "cancelled",
            "stimulus_id": "free-keys-1",
        }
    ]


def test_both_words_of_a_transfer():
    told = [
        (True, 1.0, 2.0, "tcp://v", 30, {"a": 10, "b": 20}, None),
        (False, 1.0, 2.0, None, 10, {"a": 10}, 7),
        (True, None, 2.0, None, 10, {"a": 10}, None),
    ]

    received, gathered, scattered = expanded(
        rows=[worker_log("transfer", (0.5, told), records=3)]
    )

    assert received == {
        "kind": "transfer",
        "t": 2.0,
        "worker": "tcp://w",
        "server_id": "Worker-1",
        "start_t": 1.0,
        "stop_t": 2.0,
        "source": "tcp://v",
        "destination": "tcp://w",
        "nbytes": 30,
        "keys": {"a": 10, "b": 20},
    }
    assert (gathered["source"], gathered["measured"]) == ("tcp://w", {"sent_bytes": 7})
    assert "destination" not in gathered
    assert (scattered["destination"], scattered["nbytes"]) == ("tcp://w", 10)
    assert {"source", "start_t"}.isdisjoint(scattered)


def test_what_is_spilled():
    told = (
        0.5,
        [("a", "memory", "disk", 10, 7, 1.0), ("a", "disk", "memory", None, None, 2.0)],
    )

    went, came = expanded(rows=[worker_log("spill", told, records=2)])

    assert (went["t"], went["nbytes"], went["measured"]) == (1.5, 10, {"disk_bytes": 7})
    assert (came["start"], came["finish"]) == ("disk", "memory")
    assert "measured" not in came


def test_real_transitions_are_those_that_dask_tells_plugins():
    """What goes by way of released stands in the log once more, as a whole."""
    from distributed.worker_state_machine import (
        AcquireReplicasEvent,
        ComputeTaskEvent,
        FreeKeysEvent,
        GatherDepNetworkFailureEvent,
        WorkerState,
    )

    seen = []
    witness = SimpleNamespace(transition=lambda *change, **_: seen.append(change))
    state = WorkerState(address="127.0.0.1:1", plugins={"witness": witness})
    worker = SimpleNamespace(
        state=state, scheduler_delay=0.0, data={}, id="W", contact_address="tcp://w"
    )
    logs = LogObserver(worker, transitions=True, transfers=False)
    there = {"who_has": {"x": ["127.0.0.1:2"]}, "nbytes": {"x": 1}}
    for event in (
        AcquireReplicasEvent(**there, stimulus_id="s1"),
        ComputeTaskEvent.dummy("x", stimulus_id="s2"),
        ComputeTaskEvent.dummy("z", stimulus_id="s3"),
        FreeKeysEvent(keys=["x", "z"], stimulus_id="s4"),
        GatherDepNetworkFailureEvent(worker="127.0.0.1:2", total_nbytes=1, stimulus_id="s5"),
        AcquireReplicasEvent(**there, stimulus_id="s6"),
    ):
        state.handle_stimulus(event)

    [(kind, records, packed)] = logs.take()["logs"]

    row = (WORKER_LOG, 5.0, "tcp://w", "W", records, packed, kind)
    told = [(line["key"], line["start"], line["finish"]) for line in expanded(rows=[row])]
    assert told == seen
    assert ("x", "flight", "waiting") not in told
    assert records == len(told) + 1
    logs.leave()
    assert type(state.log) is deque


def test_what_cannot_be_read_of_a_workers_log_is_counted():
    [loss] = expanded(rows=[worker_log("spill", (0.5, [()]), records=3)])

    assert (loss["kind"], loss["record_kind"], loss["records"]) == ("loss", "spill", 3)
