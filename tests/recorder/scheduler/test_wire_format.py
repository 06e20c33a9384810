"""Encoding of rows in batches and decoding to records, odd values included."""

import json
import marshal
import sys
from collections import Counter, deque
from enum import StrEnum
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

from roast_recorder.probes.profiles import packed
from roast_recorder.probes.samples import WORKER_METRICS
from roast_recorder.probes.worker_logs import pack_log
from roast_recorder.scheduler import wire_format
from roast_recorder.scheduler.wire_format import decode, encode, pack, plain, unpack
from roast_schemas.describe import json_schema

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


def through(transitions=(), rows=(), **options):
    """Encode and decode a batch; return its records, validated, and the lost rows."""
    lost = []
    flat = [value for transition in transitions for value in transition]
    batch = encode(flat, rows, lambda *loss: lost.append(loss), **options)
    found = list(wire_format.records(batch))
    for record in found:
        VALIDATOR.validate(json.loads(json.dumps(record)))
    return found, lost


def records_of(*rows):
    found, lost = through(rows=rows)
    assert not lost
    return found


def event(value, t=1.0):
    return ("event", t, 1, {"topic": "x", "payload": value})


def task_values(key="k", dependencies=(), annotations=None, prefix="k", existing=None):
    return (key, prefix, "g", dependencies, (0, 1), annotations, "span", None, existing)


def tasks(*each):
    values = [value for arguments in each for value in task_values(*arguments)]
    return ("task", 1.0, len(each), ("c", "s", values))


def log(kind, values):
    return (kind, 5.0, 1, pack_log("tcp://w", "Worker-1", 0.5, values))


def nested(depth, core, make=list):
    for _ in range(depth):
        core = make((core,))
    return core


# -- records --------------------------------------------------------------------------------

PARTS = ({"action": "compute", "start": 1.0, "stop": 2.0},)
FAILURE = {"exception": "E('lone \ud800')", "traceback": "", "cause": None}
# fmt: off
ENDED = ("k", "processing", "erred", "s", "tcp://w", 3, 9, 0, "int")
ATTEMPT = {"key": "k", "start": "processing", "finish": "erred", "stimulus_id": "s",
           "worker": "tcp://w", "run_id": 3, "thread": 9, "nbytes": 0, "typename": "int"}

#: Transitions, whose length depends on their states only, and their records.
TRANSITIONS = [
    ((1.5, ("x", (0, "a")), "waiting", "processing", "s", "tcp://w", 3),
     {"t": 1.5, "key": "('x', (0, 'a'))", "start": "waiting", "finish": "processing",
      "stimulus_id": "s", "worker": "tcp://w", "run_id": 3}),
    ((1.5, "k", "processing", "processing", "s", None, 3),
     {"t": 1.5, "key": "k", "start": "processing", "finish": "processing",
      "stimulus_id": "s", "run_id": 3}),
    ((1.5, *ENDED, PARTS, None, None), {"t": 1.5, **ATTEMPT, "startstops": PARTS}),
    ((1.5, *ENDED, (), FAILURE, 1.25),
     {"t": 1.5, **ATTEMPT, "exception": "E('lone ?')", "traceback": "", "start_t": 1.25}),
    # A float of epoch seconds has no more than six decimal places.
    ((1_800_000_000.1234567, "lone \ud800", "memory", "released", "s"),
     {"t": 1_800_000_000.123457, "key": "lone ?", "start": "memory", "finish": "released",
      "stimulus_id": "s"}),
    (("processing", "processing", "waiting", "released", "processing"), None),
]

DELTAS = {
    ("execute", "span", "x", "compute", "seconds"): 1.5,
    ("execute", None, "x", ("odd", 1), "bytes"): 2,
    ("get-data", "lone \ud800", "count"): 3,
}
NUMBERS = list(range(1, 22))
WORKER = {"worker": "tcp://w", "server_id": "Worker-1"}
SPLIT = {"reason": "too large", "record_kind": "profile", "records": 1}
SECTIONS = [{"key": "k", "name": "cuts"}, {"key": "k", "name": "fit", "worker": None}]

#: Rows and their records.
ROWS = [
    (tasks((("x", 1), [("y", 0), "z"]),
           ("k", (), {"retries": 2}, "k\ud800", ("processing", "tcp://w", 7)),
           ("l", (), None, "l", ("memory",))),
     [{"kind": "task", "t": 1.0, "key": "('x', 1)", "prefix": "k", "group": "g",
       "dependencies": ["('y', 0)", "z"], "priority": (0, 1), "span_id": "span",
       "client": "c", "stimulus_id": "s"},
      {"kind": "task", "t": 1.0, "key": "k", "prefix": "k?", "group": "g",
       "dependencies": [], "priority": (0, 1), "span_id": "span", "client": "c",
       "stimulus_id": "s", "annotations": {"retries": 2}, "state": "processing",
       "worker": "tcp://w", "run_id": 7},
      {"kind": "task", "t": 1.0, "key": "l", "prefix": "l", "group": "g",
       "dependencies": [], "priority": (0, 1), "span_id": "span", "client": "c",
       "stimulus_id": "s", "state": "memory"}]),
    (("fine_metric", 1.0, 3, ("tcp://w", None, DELTAS)),
     [{"kind": "fine_metric", "t": 1.0, "worker": "tcp://w", **fields} for fields in (
      {"context": "execute", "span_id": "span", "prefix": "x", "activity": "compute",
       "unit": "seconds", "delta": 1.5},
      {"context": "execute", "prefix": "x", "activity": "('odd', 1)", "unit": "bytes",
       "delta": 2},
      {"context": "get-data", "activity": "lone ?", "unit": "count", "delta": 3})]),
    (("worker_sample", 2.0, 2, [
      ("tcp://w", "Worker-1", *NUMBERS),
      ("tcp://w", "Worker-1", *[None] * 7, 12.5, *[None] * 13)]),
     [{"kind": "worker_sample", "t": 2.0, **WORKER, "memory_limit": 1, "nthreads": 2,
       "processing": 3, "executing": 4, "occupancy": 5, "nbytes": 6, "last_seen": 7,
       "metrics": dict(zip(WORKER_METRICS, NUMBERS[7:], strict=True))},
      {"kind": "worker_sample", "t": 2.0, **WORKER, "metrics": {"cpu": 12.5}}]),
    (("chunk", 1.0, 1, {"key": "c", "dataset": "tt", "usermeta": None}),
     [{"kind": "chunk", "t": 1.0, "key": "c", "dataset": "tt"}]),
    (("section", 2.0, 2, pack(SECTIONS)),
     [{"kind": "section", "t": 2.0, "key": "k", "name": name} for name in ("cuts", "fit")]),
    (("profile", 3.0, 2, packed([{"prefix": "x"}, {"kind": "loss", **SPLIT}], "tcp://w", None)),
     [{"kind": "profile", "t": 3.0, "worker": "tcp://w", "prefix": "x"},
      {"kind": "loss", "t": 3.0, **SPLIT}]),
    # Times are converted to the scheduler's clock; Dask has converted those of transfers.
    (log("worker_transition", [("x", 0), "executing", "released", "cancelled", "\ud800", 1.25]),
     [{"kind": "worker_transition", "t": 1.75, **WORKER, "key": "('x', 0)",
       "start": "executing", "finish": "released", "state": "cancelled",
       "stimulus_id": "?"}]),
    (log("transfer", [True, 1.0, 2.0, "tcp://v", 30, {"a": 10, "b\ud800": 20}, None,
                      False, 1.0, 2.0, None, 10, {"a": 10}, 7,
                      True, None, 2.0, None, 10, {"a": 10}, None]),
     [{"kind": "transfer", "t": 2.0, **WORKER, "stop_t": 2.0, **fields} for fields in (
      {"start_t": 1.0, "source": "tcp://v", "destination": "tcp://w", "nbytes": 30,
       "keys": {"a": 10, "b?": 20}},
      {"start_t": 1.0, "source": "tcp://w", "nbytes": 10, "keys": {"a": 10},
       "measured": {"sent_bytes": 7}},
      {"destination": "tcp://w", "nbytes": 10, "keys": {"a": 10}})]),
    (log("spill", ["a", "memory", "disk", 10, 7, 1.0, "a", "disk", "memory", None, None, 2.0]),
     [{"kind": "spill", "t": 1.5, **WORKER, "key": "a", "start": "memory", "finish": "disk",
       "nbytes": 10, "measured": {"disk_bytes": 7}},
      {"kind": "spill", "t": 2.5, **WORKER, "key": "a", "start": "disk",
       "finish": "memory"}]),
]
# fmt: on


def test_transitions():
    flat = [value for transition, _ in TRANSITIONS for value in transition]
    assert list(wire_format.split_transitions(flat)) == [moved for moved, _ in TRANSITIONS]
    for transition, expected in TRANSITIONS[:-1]:
        assert through([transition]) == ([{"kind": "transition", **expected}], [])


@pytest.mark.parametrize(("row", "expected"), ROWS, ids=[row[0] for row, _ in ROWS])
def test_rows(row, expected):
    assert records_of(row) == expected


def test_records_are_merged_by_time_and_keep_their_order():
    for moved, others, expected in [
        ([], [], ""),
        ([1, 3], [2, 4], "k0 c0 k1 c1"),
        ([1, 1], [1, 1], "k0 k1 c0 c1"),  # transitions first
        # The clock was set back.
        ([5, 1, 2], [], "k0 k1 k2"),
        ([5, 1, 2], [3, 6], "c0 k0 k1 k2 c1"),
        ([2, 4], [5, 1, 3], "k0 k1 c0 c1 c2"),
    ]:
        transitions = [(t, f"k{n}", "a", "b", "s") for n, t in enumerate(moved)]
        rows = [("client_added", t, 1, {"client": f"c{n}"}) for n, t in enumerate(others)]
        found, _ = through(transitions, rows)
        assert " ".join(line.get("key") or line["client"] for line in found) == expected


def test_worker_transitions_are_those_that_dask_passes_to_plugins():
    """A transition by way of ``released`` is logged twice: in steps, and as a whole."""
    from distributed import worker_state_machine as machine

    seen = []
    witness = SimpleNamespace(transition=lambda *change, **_: seen.append(change))
    state = machine.WorkerState(address="127.0.0.1:1", plugins={"witness": witness})
    state.log = deque()
    there = {"who_has": {"x": ["127.0.0.1:2"]}, "nbytes": {"x": 1}}
    for stimulus in (
        machine.AcquireReplicasEvent(**there, stimulus_id="s1"),
        machine.ComputeTaskEvent.dummy("x", stimulus_id="s2"),
        machine.ComputeTaskEvent.dummy("z", stimulus_id="s3"),
        machine.FreeKeysEvent(keys=["x", "z"], stimulus_id="s4"),
        machine.GatherDepNetworkFailureEvent(
            worker="127.0.0.1:2", total_nbytes=1, stimulus_id="s5"
        ),
        machine.AcquireReplicasEvent(**there, stimulus_id="s6"),
    ):
        state.handle_stimulus(stimulus)
    logged = [entry for entry in state.log if len(entry) == 7]
    values = [v for key, a, b, state, _, s, t in logged for v in (key, a, b, state, s, t)]

    found = records_of(log("worker_transition", values))

    assert [(line["key"], line["start"], line["finish"]) for line in found] == seen
    assert len(logged) == len(seen) + 1


def test_a_row_that_cannot_be_read_becomes_a_loss():
    added = ("client_added", 1.0, 1, {"client": "c"})

    first, metrics, spill, last = records_of(
        added,
        ("fine_metric", 2.0, 2, ("w", "id", {**DELTAS, ("seconds",): 2.0})),
        ("spill", 3.0, 3, pack_log("w", "id", 0.0, [1])),
        added,
    )

    assert metrics == {
        "kind": "loss", "t": 2.0, "reason": "impossible to read: ValueError",
        "record_kind": "fine_metric", "records": 2, "start_t": 2.0, "stop_t": 2.0,
    }  # fmt: skip
    assert (spill["record_kind"], spill["records"]) == ("spill", 3)
    assert first["kind"] == last["kind"] == "client_added"


def test_bytes_that_are_not_a_batch_are_rejected():
    odd = [marshal.dumps(5), marshal.dumps((1, 2, 3)), marshal.dumps(([], []))[:-1]]
    for content in (b"", b"junk", b"xyz", *odd):
        with pytest.raises(ValueError):  # noqa: PT011 - marshal's messages differ
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
    batch = encode(transitions, [event(1), event(2), ("section", 1.0, 5, pack([]))], None)

    assert wire_format.count_records(batch) == Counter(transition=2, event=2, section=5)


# -- odd values -----------------------------------------------------------------------------


#: Values and their JSON equivalents.
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


def test_values_become_json_values():
    failures = []
    for value, expected in ODD_VALUES:
        found = plain(value)
        beside_an_odd_one = records_of(event([value, NoText()]))[0]["payload"][0]
        if found != expected or not same_types(found, expected):
            failures.append((type(value), found, expected))
        if "…" not in str(expected) and beside_an_odd_one != expected:
            failures.append((type(value), beside_an_odd_one, expected))
    assert failures == []


def test_recursive_containers_are_truncated():
    loop = {"odd": NoText()}
    loop["self"] = [loop]

    assert records_of(event(loop))[0]["payload"] == {"odd": "<NoText>", "self": ["…"]}


def test_packed_records_are_json():
    odd = [{"set": {1}, "name": "lone \ud800", "nan": float("nan"), "inf": [float("inf")]}]

    assert unpack(pack(odd)) == [{"set": "{1}", "name": "lone ?", "nan": None, "inf": [None]}]


def test_keys_have_the_text_that_dask_displays():
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
        (of_transition, of_task), lost = through(
            [(1.0, key, "memory", "released", "s")], [tasks((key, [key]))]
        )
        assert of_transition["key"] == of_task["key"] == expected
        assert (of_task["dependencies"], lost) == ([expected], [])


def test_keys_with_numpy_numbers_become_texts():
    odd = (1.0, ODD_KEY, "waiting", "processing", "s", "tcp://w", 7)

    found, lost = through([odd, (2.0, ("y", 1), "a", "b", "s")], keys_as_text=True)

    assert [record["key"] for record in found] == [str(ODD_KEY), "('y', 1)"]
    assert (found[0]["run_id"], lost) == (7, [])
    odd_or_not = [
        wire_format.need_text(["x", key]) for key in (ODD_KEY, 17, ("x", 1.5), ("x", 1), "y")
    ]
    assert odd_or_not == [True, True, True, False, False]


def test_an_odd_value_leaves_the_rest_of_the_batch_unchanged():
    other = (1.0, ("x", 1), "released", "waiting", "s-1")
    odd = (2.0, ("x", ("y", 1)), "processing", "erred", "s-2", "tcp://w", 7, 1, 8,
           Text("int"), PARTS, {"exception": Text("E()"), "cause": "c"})  # fmt: skip
    deltas = {("execute", "span", "x", Color.RED, "seconds"): 2.0}
    dependencies = [*(("part", number) for number in range(3_000)), ("part", Text("x"))]
    rows = [
        tasks((("x", 1), dependencies, {"odd": "plain"})),
        ("fine_metric", 3.0, 1, ("w", "id", deltas)),
        event({"x": [1, 2]}, 4.0),
    ]

    moved, entered, ended, metric, last = through([other, odd], rows)[0]

    assert moved["key"] == "('x', 1)"
    assert entered["dependencies"][2_999:] == ["('part', 2999)", "('part', 'x')"]
    assert (ended["typename"], ended["exception"], ended["cause"]) == ("int", "E()", "c")
    assert (ended["key"], ended["startstops"]) == ("('x', ('y', 1))", PARTS)
    assert (metric["activity"], metric["delta"]) == ("red", 2.0)
    assert last["payload"] == {"x": [1, 2]}


def test_rows_that_cannot_be_encoded_are_reported_and_the_rest_is_kept():
    moved = [(t, "k", "a", "b", s) for t, s in enumerate(["s", NoClass(), "s"])]
    metrics = [("fine_metric", 11.0, 1, ("w", "id", NoClass()))]

    found, lost = through(moved, [event(1, 10.0), *metrics, event(5, 13.0)])

    assert [record["t"] for record in found] == [0, 2, 10, 13]
    assert sorted(lost) == [("fine_metric", 11, 1), ("transition", 1, 1)]


def test_a_value_that_raises_does_not_affect_those_beside_it():
    payload = {"first": NoClass(), "second": {NoText(): 1}, "third": {NoText()}, "last": 5}

    [record] = records_of(event(payload))

    assert record["payload"] == {
        "first": "<NoClass>", "second": "<dict>", "third": "<set>", "last": 5,
    }  # fmt: skip


def test_a_large_value_is_truncated_and_the_rest_is_counted():
    doubling = ["leaf"]
    for _ in range(30):
        doubling = [doubling, doubling]

    for value, beginning, end in (
        ("x" * 20_000_000, '"xxx', '… (20,000,000 characters)"'),
        (["first", "x" * 20_000_000], '["first","xxx', '… (20,000,000 characters)"]'),
        (list(range(1_000_000)), "[0,1,2,", ',"… 900,002 more"]'),
        (dict.fromkeys(range(300_000)), '{"0":null,"1":null,', '"…":"219,557 more"}'),
        (doubling, "[[[", "]"),
    ):
        payload = json.dumps(
            records_of(event(value))[0]["payload"], separators=(",", ":"), ensure_ascii=False
        )

        assert (payload[: len(beginning)], payload[-len(end) :]) == (beginning, end)
        assert len(payload) < 4_000_000


def test_deep_nesting_does_not_affect_other_rows():
    depth, core = 0, 1
    while True:  # the deepest nesting that marshal permits depends on the platform
        try:
            marshal.dumps(core)
        except ValueError:
            break
        depth, core = depth + 1, [core]
    for tried in range(depth - 8, depth + 3):
        name = ("execute", None, "x", nested(tried, 1, tuple), "seconds")
        lost = []
        rows = [event(1), ("fine_metric", 2.0, 1, ("w", "id", {name: 1.0}))]
        batch = encode([], rows, lambda *loss, lost=lost: lost.append(loss))
        assert [row[0] for row in decode(batch)[1]] + [kind for kind, *_ in lost] == [
            "event",
            "fine_metric",
        ]


def in_steps(value):
    """Return the value, the number of steps, and the most characters of one."""
    steps = wire_format.plain_in_steps(value, room=(room := [wire_format.MAX_CHARACTERS]))
    taken, before = [], room[0]
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, len(taken) + 1, max([*taken, before - room[0]])
        taken.append(before - room[0])
        before = room[0]


KEYS = [("key", number) for number in range(20_000)]


@pytest.mark.parametrize(
    ("value", "is_long"),
    [
        ({"action": "scatter", "keys": KEYS}, True),
        ({"workers": {f"tcp://{n}": {"a": [n] * 10, "b": None} for n in range(5_000)}}, True),
        ([{"n": n, "v": float("nan")} for n in range(30_000)], True),
        ({"x": {1, 2}, (1, 2): b"12", "n": 2**70, "\ud800": "\ud800"}, False),
        (list(range(200_000)), True),
        ("text", False),
    ],
)
def test_large_values_are_made_plain_in_steps(value, is_long):
    found, steps, characters = in_steps({"payload": value})

    expected = wire_format.plain({"payload": value})
    size = len(str(expected))
    assert found == expected or "more" in str(found)[-20:]
    assert abs(len(str(found)) - size) < size / 50 + 20
    assert (steps > 5) == is_long
    assert characters < 2 * wire_format.CHARACTERS_PER_STEP


def test_large_sets_and_values_that_contain_themselves_are_made_plain_in_steps():
    found, *_ = in_steps({"keys": set(KEYS)})
    assert {tuple(key) for key in found["keys"]} == set(KEYS)
    itself = {"a": 1}
    itself["itself"] = itself
    assert in_steps(itself)[0]["a"] == 1
