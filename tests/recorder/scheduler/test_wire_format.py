"""Batches of rows: one small row in, the record that it must become; odd values survive."""

import json
import marshal
import sys
from collections import Counter, deque
from enum import StrEnum
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

from roast_recorder.scheduler import wire_format
from roast_recorder.scheduler.wire_format import (
    count_records,
    decode,
    encode,
    pack,
    pack_log,
    plain,
    records,
    unpack,
)
from roast_schemas.describe import json_schema
from roast_schemas.records import WorkerMetrics

VALIDATOR = jsonschema.Draft202012Validator(json_schema())

ODD_KEY = ("x", np.int64(3))


class NoText:
    def __str__(self):
        raise RuntimeError("no text")


class NoClass:
    @property
    def __class__(self):
        raise RuntimeError("not even its class")


class Color(StrEnum):
    RED = "red"


class Text(str):
    __slots__ = ()


def encoded(transitions=(), rows=(), **options):
    lost = []
    batch = encode(list(transitions), rows, lambda *loss: lost.append(loss), **options)
    return batch, lost


def through(transitions=(), rows=(), **options):
    """Records on the other side, all of which the schema declares, and what was lost."""
    batch, lost = encoded(transitions, rows, **options)
    found = list(records(batch))
    for record in found:
        VALIDATOR.validate(json.loads(json.dumps(record)))
    return found, lost


def record_of(*transition):
    """The record of a transition, without what every transition has."""
    [record], lost = through(transition)
    assert not lost
    assert record.pop("kind") == "transition"
    return record


def rows_through(*rows):
    found, lost = through(rows=rows)
    assert not lost
    return found


def event(value, t=1.0):
    return ("event", t, 1, {"topic": "x", "payload": value})


def task(key="k", dependencies=(), annotations=None):
    values = (
        key,
        "k",
        "g",
        dependencies,
        (0, 1),
        annotations,
        "span",
        "c",
        "s",
        None,
        None,
        None,
    )
    return ("task", 1.0, 1, values)


def nested(depth, core, make=list):
    for _ in range(depth):
        core = make((core,))
    return core


# -- transitions ----------------------------------------------------------------------------


def test_transitions():
    parts = ({"action": "compute", "start": 1.0, "stop": 2.0},)
    failure = {"exception": "E('lone \ud800')", "traceback": "", "cause": None}
    ended = ("processing", "erred", "s", "tcp://w", 3, 9, 0, "int")
    begins = {"key": "k", "start": "processing", "finish": "erred", "stimulus_id": "s"}
    attempt = {"worker": "tcp://w", "run_id": 3, "thread": 9, "nbytes": 0, "typename": "int"}

    assert record_of(1.5, ("x", (0, "a")), "waiting", "processing", "s", "tcp://w", 3) == {
        "t": 1.5, "key": "('x', (0, 'a'))", "start": "waiting", "finish": "processing",
        "stimulus_id": "s", "worker": "tcp://w", "run_id": 3,
    }  # fmt: skip
    assert "worker" not in record_of(1.5, "k", "waiting", "processing", "s", None, 3)
    assert record_of(1.5, "k", *ended, parts, None) == {
        "t": 1.5, **begins, **attempt, "startstops": parts,
    }  # fmt: skip
    assert record_of(1.5, "k", *ended, (), failure) == {
        "t": 1.5, **begins, **attempt, "exception": "E('lone ?')", "traceback": "",
    }  # fmt: skip
    # A float of today's seconds has no more digits than six.
    assert record_of(1_800_000_000.1234567, "lone \ud800", "memory", "released", "s") == {
        "t": 1_800_000_000.123457, "key": "lone ?", "start": "memory", "finish": "released",
        "stimulus_id": "s",
    }  # fmt: skip


def test_the_length_of_a_transition_depends_on_its_states_only():
    moved = [
        ("processing", "processing", "waiting", "released", "processing"),
        (1.0, "k", "waiting", "processing", "s", "tcp://w", 7),
        (2.0, "k", "processing", "memory", "s", "tcp://w", 7, 1, 8, "int", (), None),
        (3.0, "k", "processing", "processing", "s", "tcp://w", 7),
        (4.0, ("x", 1), "memory", "released", "s"),
    ]

    flat = [value for transition in moved for value in transition]

    assert list(wire_format.split_transitions(flat)) == moved
    assert list(wire_format.split_transitions([])) == []


def test_records_are_merged_by_time_and_keep_their_order():
    def merged(moved, others):
        transitions = [v for n, t in enumerate(moved) for v in (t, f"k{n}", "a", "b", "s")]
        rows = [("client_added", t, 1, {"client": f"c{n}"}) for n, t in enumerate(others)]
        found, _ = through(transitions, rows)
        return " ".join(record.get("key") or record["client"] for record in found)

    assert merged([], []) == ""
    assert merged([1, 3], [2, 4]) == "k0 c0 k1 c1"
    assert merged([1, 1], [1, 1]) == "k0 k1 c0 c1"  # transitions first
    # The clock was set back.
    assert merged([5, 1, 2], []) == "k0 k1 k2"
    assert merged([5, 1, 2], [3, 6]) == "c0 k0 k1 k2 c1"
    assert merged([2, 4], [5, 1, 3]) == "k0 k1 c0 c1 c2"


# -- rows of other kinds --------------------------------------------------------------------


def test_tasks():
    values = ("k", "k\ud800", "k", (), (0,), {"retries": 2}, None, None, None)

    entered, existing = rows_through(
        task(("x", 1), [("y", 0), "z"]),
        ("task", 2.0, 1, (*values, "processing", "tcp://w", 7)),
    )

    assert entered == {
        "kind": "task", "t": 1.0, "key": "('x', 1)", "prefix": "k", "group": "g",
        "dependencies": ["('y', 0)", "z"], "priority": (0, 1), "span_id": "span",
        "client": "c", "stimulus_id": "s",
    }  # fmt: skip
    assert existing == {
        "kind": "task", "t": 2.0, "key": "k", "prefix": "k?", "group": "k",
        "dependencies": [], "priority": (0,), "annotations": {"retries": 2},
        "state": "processing", "worker": "tcp://w", "run_id": 7,
    }  # fmt: skip


def test_fine_metrics_become_a_record_for_each_delta():
    deltas = {
        ("execute", "span", "x", "compute", "seconds"): 1.5,
        ("execute", None, "x", ("odd", 1), "bytes"): 2,
        ("get-data", "lone \ud800", "count"): 3,
    }
    both = {"kind": "fine_metric", "t": 1.0, "worker": "tcp://w"}

    assert rows_through(("fine_metric", 1.0, 3, ("tcp://w", None, deltas))) == [
        {**both, "context": "execute", "span_id": "span", "prefix": "x",
         "activity": "compute", "unit": "seconds", "delta": 1.5},
        {**both, "context": "execute", "prefix": "x", "activity": "('odd', 1)",
         "unit": "bytes", "delta": 2},
        {**both, "context": "get-data", "activity": "lone ?", "unit": "count", "delta": 3},
    ]  # fmt: skip


def test_fields_of_one_record_or_of_several_packed_ones():
    sections = [{"key": "k", "name": "cuts"}, {"key": "k", "name": "fit", "worker": None}]
    loss = {"reason": "too large", "record_kind": "profile", "records": 1}
    profile = ("tcp://w", "Worker-1", pack([{"prefix": "x"}, loss]))

    assert rows_through(
        ("chunk", 1.0, 1, {"key": "c", "dataset": "tt", "usermeta": None}),
        ("section", 2.0, 2, pack(sections)),
        ("profile", 3.0, 2, profile),
    ) == [
        {"kind": "chunk", "t": 1.0, "key": "c", "dataset": "tt"},
        {"kind": "section", "t": 2.0, "key": "k", "name": "cuts"},
        {"kind": "section", "t": 2.0, "key": "k", "name": "fit"},
        {"kind": "profile", "t": 3.0, "worker": "tcp://w", "server_id": "Worker-1",
         "prefix": "x"},
        {"kind": "loss", "t": 3.0, **loss},
    ]  # fmt: skip


def test_samples():
    numbers = list(range(1, 22))

    full, sparse = rows_through(
        (
            "worker_sample",
            2.0,
            2,
            [
                ("tcp://v", "Worker-0", *numbers),
                ("tcp://w", "Worker-1", *[None] * 7, 12.5, *[None] * 13),
            ],
        ),
    )

    metrics = full.pop("metrics")
    assert list(metrics) == list(WorkerMetrics.__annotations__)
    assert [*list(full.values())[4:], *metrics.values()] == numbers
    assert full["last_seen"] == 7
    assert sparse == {
        "kind": "worker_sample", "t": 2.0, "worker": "tcp://w", "server_id": "Worker-1",
        "metrics": {"cpu": 12.5},
    }  # fmt: skip


def test_packed_records_are_json():
    odd = [{"set": {1}, "name": "lone \ud800", "nan": float("nan"), "inf": [float("inf")]}]

    assert unpack(pack(odd)) == [{"set": "{1}", "name": "lone ?", "nan": None, "inf": [None]}]


def test_logs_of_workers_are_on_the_schedulers_clock():
    transition = [("x", 0), "executing", "released", "cancelled", "free-\ud800", 1.25]
    transfers = [
        *(True, 1.0, 2.0, "tcp://v", 30, {"a": 10, "b\ud800": 20}, None),
        *(False, 1.0, 2.0, None, 10, {"a": 10}, 7),
        *(True, None, 2.0, None, 10, {"a": 10}, None),
    ]
    spills = ["a", "memory", "disk", 10, 7, 1.0, "a", "disk", "memory", None, None, 2.0]

    def log(kind, values):
        return rows_through((kind, 5.0, 1, pack_log("tcp://w", "Worker-1", 0.5, values)))

    whose = {"worker": "tcp://w", "server_id": "Worker-1"}
    assert log("worker_transition", transition) == [
        {"kind": "worker_transition", "t": 1.75, **whose, "key": "('x', 0)",
         "start": "executing", "finish": "released", "state": "cancelled",
         "stimulus_id": "free-?"},
    ]  # fmt: skip
    received, sent, scattered = log("transfer", transfers)
    assert received == {
        "kind": "transfer", "t": 2.0, **whose, "start_t": 1.0, "stop_t": 2.0,
        "source": "tcp://v", "destination": "tcp://w", "nbytes": 30,
        "keys": {"a": 10, "b?": 20},
    }  # fmt: skip
    assert (sent["source"], sent["measured"]) == ("tcp://w", {"sent_bytes": 7})
    assert "destination" not in sent
    assert scattered["destination"] == "tcp://w"
    assert {"source", "start_t", "measured"}.isdisjoint(scattered)
    assert log("spill", spills) == [
        {"kind": "spill", "t": 1.5, **whose, "key": "a", "start": "memory", "finish": "disk",
         "nbytes": 10, "measured": {"disk_bytes": 7}},
        {"kind": "spill", "t": 2.5, **whose, "key": "a", "start": "disk", "finish": "memory"},
    ]  # fmt: skip


def test_worker_transitions_are_those_that_dask_passes_to_plugins():
    """A transition by way of ``released`` is in the log once more, as a whole."""
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
    state.log = deque()
    there = {"who_has": {"x": ["127.0.0.1:2"]}, "nbytes": {"x": 1}}
    for stimulus in (
        AcquireReplicasEvent(**there, stimulus_id="s1"),
        ComputeTaskEvent.dummy("x", stimulus_id="s2"),
        ComputeTaskEvent.dummy("z", stimulus_id="s3"),
        FreeKeysEvent(keys=["x", "z"], stimulus_id="s4"),
        GatherDepNetworkFailureEvent(worker="127.0.0.1:2", total_nbytes=1, stimulus_id="s5"),
        AcquireReplicasEvent(**there, stimulus_id="s6"),
    ):
        state.handle_stimulus(stimulus)
    logged = [entry for entry in state.log if len(entry) == 7]
    values = [v for key, a, b, state, _, s, t in logged for v in (key, a, b, state, s, t)]

    found = rows_through(("worker_transition", 5.0, 1, pack_log("w", "W", 0.0, values)))

    assert [(line["key"], line["start"], line["finish"]) for line in found] == seen
    assert len(logged) == len(seen) + 1


def test_a_row_that_cannot_be_read_becomes_a_loss():
    client = {"client": "c"}
    deltas = {("seconds",): 2.0, ("execute", "span", "x", "compute", "seconds"): 1.0}

    first, metrics, spill, last = rows_through(
        ("client_added", 1.0, 1, client),
        ("fine_metric", 2.0, 2, ("w", "id", deltas)),
        ("spill", 3.0, 3, pack_log("w", "id", 0.0, [1])),
        ("client_added", 4.0, 1, client),
    )

    assert metrics == {
        "kind": "loss", "t": 2.0, "reason": "impossible to read: ValueError",
        "record_kind": "fine_metric", "records": 2, "start_t": 2.0, "stop_t": 2.0,
    }  # fmt: skip
    assert (spill["record_kind"], spill["records"]) == ("spill", 3)
    assert first["kind"] == last["kind"] == "client_added"


def test_bytes_that_are_no_batch_are_refused():
    whole = marshal.dumps(([], []))
    for content in (
        b"",
        b"junk",
        b"xyz",
        marshal.dumps(5),
        marshal.dumps((1, 2, 3)),
        whole[:-1],
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - marshal's own texts differ
            decode(content)


@pytest.mark.parametrize("installed", [True, False])
def test_compressed_batches_decode_the_same(monkeypatch, installed):
    content = encode([], [event(f"payload {n}") for n in range(1_000)], None)
    if not installed:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    compressed = wire_format.compress(content)
    monkeypatch.undo()

    assert len(compressed) < len(content) / 3
    assert decode(compressed) == decode(content)


def test_records_are_counted_without_being_decoded():
    transitions = [1.0, "k", "a", "b", "s", 2.0, "k", "waiting", "processing", "s", "w", 1]
    rows = [event(1), event(2), ("section", 1.0, 5, pack([]))]

    assert count_records(encode(transitions, rows, None)) == Counter(
        transition=2, event=2, section=5
    )


# -- odd values -----------------------------------------------------------------------------

#: A value, and the same as JSON has it.
ODD_VALUES = [
    (None, None),
    (True, True),
    (2**63 - 1, 2**63 - 1),
    (2**63, str(2**63)),
    (-(2**63) - 1, str(-(2**63) - 1)),
    (10**5000, "<a number of 16610 bits>"),
    (1.5, 1.5),
    (float("nan"), None),
    (float("-inf"), None),
    ("lone \ud800 surrogate", "lone ? surrogate"),
    ("x" * 5_000, "x" * 5_000),
    (b"\x80bytes", "<6 bytes>"),
    (bytearray(b"abcd"), "<4 bytes>"),
    (set("hgfedcba"), list("abcdefgh")),  # sorted, so that traces can be compared
    (frozenset({("x", 1)}), [["x", 1]]),
    (("a", ("b", 1)), ["a", ["b", 1]]),
    ({(1, 2): "tuple", 3: "number", None: [1], "\ud800": 1},
     {"(1, 2)": "tuple", "3": "number", "None": [1], "?": 1}),
    (nested(500, "core"), nested(wire_format.MAX_DEPTH + 1, "…")),
    (nested(50, NoText()), nested(wire_format.MAX_DEPTH + 1, "…")),
    (1j, "1j"),
    (..., "Ellipsis"),
    (int, "<class 'int'>"),
    (NoText(), "<NoText>"),
    (ValueError("x" * 5_000), "x" * wire_format.MAX_TEXT_LENGTH),
    (Text("text"), "text"),
    (Color.RED, "red"),
    ({Text("name"): Text("text")}, {"name": "text"}),
    (np.float32(0.25), 0.25),
    (np.float64("nan"), None),
    (np.int64(-7), -7),
    (np.bool_(True), True),
    (np.str_("text"), "text"),
    (np.array([[1.5, float("nan")]]), [[1.5, None]]),
    (np.zeros((200, 200)), "<ndarray of shape (200, 200)>"),
    (np.datetime64("2026-01-01"), "2026-01-01"),
]  # fmt: skip


def same_types(one, other):
    if isinstance(one, list):
        return type(other) is list and all(map(same_types, one, other))
    return type(one) is type(other)


def test_values_become_those_that_json_has():
    failures = []
    for value, expected in ODD_VALUES:
        found = plain(value)
        beside_an_odd_one = rows_through(event([value, NoText()]))[0]["payload"][0]
        if found != expected or not same_types(found, expected):
            failures.append((type(value), found, expected))
        if "…" not in str(expected) and beside_an_odd_one != expected:
            failures.append((type(value), beside_an_odd_one, expected))
    assert failures == []


def test_containers_that_contain_themselves_end_there():
    loop = {"odd": NoText()}
    loop["self"] = [loop]

    assert rows_through(event(loop))[0]["payload"] == {"odd": "<NoText>", "self": ["…"]}


def test_keys_are_the_texts_that_dask_shows():
    for key, expected in [
        ("sum-1", "sum-1"),
        ("α", "α"),
        ("\ud800", "?"),
        (("x", ("y", 1.5)), "('x', ('y', 1.5))"),
        ((), "()"),
        (("x", 2**80), f"('x', {2**80})"),
        (("\ud800",), "('\\ud800',)"),
        (b"raw", "b'raw'"),
        (17, "17"),
    ]:
        found, lost = through([1.0, key, "memory", "released", "s"], [task(key, [key])])
        assert [record["key"] for record in found] == [expected, expected]
        assert (found[1]["dependencies"], lost) == ([expected], [])


def test_keys_with_numpy_numbers_become_texts():
    odd = [1.0, ODD_KEY, "waiting", "processing", "s", "tcp://w", 7]

    found, lost = through([*odd, 2.0, ("y", 1), "a", "b", "s"], keys_as_text=True)

    assert [record["key"] for record in found] == [str(ODD_KEY), "('y', 1)"]
    assert (found[0]["run_id"], lost) == (7, [])
    assert [wire_format.needs_text(key) for key in (ODD_KEY, 17, ("x", 1.5), ("x", 1))] == [
        True, True, True, False,
    ]  # fmt: skip


def test_an_odd_value_leaves_the_rest_of_the_batch_as_it_was():
    other = [1.0, ("x", 1), "released", "waiting", "s-1"]
    parts = ({"action": "compute", "start": 1.0, "stop": 2.0},)
    odd = [2.0, ("x", ("y", 1)), "processing", "erred", "s-2", "tcp://w", 7, 1, 8]
    odd += [Text("int"), parts, {"exception": Text("E()"), "cause": "c"}]
    deltas = {("execute", "span", "x", Color.RED, "seconds"): 2.0}
    dependencies = [("part", number) for number in range(30_000)]
    rows = [
        task(("x", 1), dependencies, {"odd": "plain"}),
        ("fine_metric", 3.0, 1, ("w", "id", deltas)),
        event({"x": [1, 2]}, 4.0),
    ]

    moved, tasks, ended, metric, last = through([*other, *odd], rows)[0]

    assert moved["key"] == "('x', 1)"
    assert len(tasks["dependencies"]) == 30_000
    assert (ended["typename"], ended["exception"], ended["cause"]) == ("int", "E()", "c")
    assert (ended["key"], ended["startstops"]) == ("('x', ('y', 1))", parts)
    assert (metric["activity"], metric["delta"]) == ("red", 2.0)
    assert last["payload"] == {"x": [1, 2]}


def test_what_cannot_be_encoded_is_reported_and_the_rest_is_kept(monkeypatch):
    monkeypatch.setattr(wire_format, "MAX_CONTAINERS", 1_000)
    doubling = [NoText()]
    for _ in range(15):
        doubling = [doubling, doubling]
    moved = [v for t, s in enumerate(["s", NoClass(), "s"]) for v in (t, "k", "a", "b", s)]
    payloads = [1, NoClass(), {NoText(): 1}, doubling, 5]

    found, lost = through(moved, [event(p, 10.0 + t) for t, p in enumerate(payloads)])

    assert [record["t"] for record in found] == [0, 2, 10, 14]
    assert sorted(lost) == [
        ("event", 11, 1), ("event", 12, 1), ("event", 13, 1), ("transition", 1, 1),
    ]  # fmt: skip


def test_no_depth_of_nesting_costs_other_rows():
    def metric(depth):
        name = ("execute", None, "x", nested(depth, 1, tuple), "seconds")
        return ("fine_metric", 2.0, 1, ("w", "id", {name: 1.0}))

    depth = 0
    while True:  # the deepest nesting that marshal permits depends on the platform
        try:
            marshal.dumps(nested(depth, 1))
        except ValueError:
            break
        depth += 1
    for tried in range(depth - 8, depth + 3):
        batch, lost = encoded(rows=[event(1), metric(tried)])
        assert len(decode(batch)[1]) + len(lost) == 2
