"""Rows: whatever a hook is handed gets through, and a batch survives one odd row."""

import marshal
import sys
from enum import StrEnum

import numpy as np
import pytest

from roast_recorder.scheduler import wire_format as rows
from roast_recorder.scheduler.wire_format import FINE_METRICS, RECORD, TASK, WORKER_SAMPLE


class Rude:
    def __str__(self):
        raise RuntimeError("no text for you")


class Impossible:
    @property
    def __class__(self):
        raise RuntimeError("not even its class")


class Colour(StrEnum):
    RED = "red"


class Texts(str):
    __slots__ = ()


def event(value, t=1.0):
    return (RECORD, t, "event", {"payload": value})


def task(dependencies=(), annotations=None, key="k"):
    facts = (key, "k", "k", dependencies, (0, 1, 2), annotations, None, "c", "s")
    return (TASK, 1.0, *facts, None, None, None)


def through(batch, transitions=()):
    encoded, left_out = rows.encode(list(transitions), batch)
    assert not left_out
    return rows.decode(encoded)


def payload_through(value):
    _, [(_, _, _, fields)] = through([event(value)])
    return fields["payload"]


def nested(depth, core, make=list):
    for _ in range(depth):
        core = make((core,))
    return core


# -- encode and decode ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["text", "lone \ud800 surrogate", ("x", 1), ("x", 2**80), ()], ids=repr
)
def test_a_key_comes_through_as_it_was(key):
    moved = [1.0, key, "memory", "released", "s"]

    found, [row] = through([task([key], key=key)], moved)

    assert found == moved
    assert row == task([key], key=key)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("text", "text"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        (2**80, str(2**80)),
        (10**5000, "<a number of 16610 bits>"),
        (1.5, 1.5),
        (float("inf"), None),
        (float("nan"), None),
        (b"\x80bytes", "<6 bytes>"),
        pytest.param({"b", "a"}, ["a", "b"], id="set"),
        (frozenset({("x", 1)}), [["x", 1]]),
        (("a", ("b", 1)), ["a", ["b", 1]]),
        (
            {(1, 2): "tuple key", 3: "number", None: ["list"]},
            {"(1, 2)": "tuple key", "3": "number", "None": ["list"]},
        ),
        (nested(500, "core"), nested(rows.MAX_DEPTH, "…")),
    ],
    ids=lambda value: repr(value)[:30] if not isinstance(value, int) else "an int",
)
def test_a_record_comes_through_as_json_has_it(value, expected):
    found = payload_through(value)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("beside", [None, Rude()], ids=["alone", "odd"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(1.5), 1.5),
        (np.float32(0.25), 0.25),
        (np.int32(7), 7),
        (np.int64(-7), -7),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (np.array([1, 2]), [1, 2]),
        (np.zeros((200, 200)), "<ndarray of shape (200, 200)>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_numpy_become_plain_ones(value, expected, beside):
    assert payload_through([value, beside])[0] == expected


ODD_KEY = ("x", np.int64(3))


def test_keys_that_are_odd_become_texts():
    odd = [1.0, ODD_KEY, "waiting", "processing", "s-1", "tcp://w", 7]
    sound = [2.0, ("y", 1), "memory", "released", "s-2"]

    encoded, left_out = rows.encode([*odd, *sound], [], odd_keys=True)

    assert not left_out
    assert rows.decode(encoded)[0] == [1.0, str(ODD_KEY), *odd[2:], 2.0, "('y', 1)", *sound[2:]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Rude(), "<Rude>"),
        (ValueError("text"), "text"),
        (Texts("text"), "text"),
        (Colour.RED, "red"),
        ({Texts("name"): Texts("text")}, {"name": "text"}),
        (int, "<class 'int'>"),
    ],
    ids=["rude", "error", "str subclass", "enum", "mapping", "class"],
)
def test_what_marshal_refuses_becomes_the_nearest_that_is_plain(value, expected):
    found = payload_through(value)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("odd", [None, Rude()], ids=["sound", "odd"])
@pytest.mark.parametrize("make", [dict, list])
def test_what_holds_itself_ends_there(make, odd):
    loop = make()
    if make is dict:
        loop.update(self=loop, odd=odd)
    else:
        loop += [loop, odd]

    found = payload_through(loop)

    assert (found["self"] if make is dict else found[0]) == "…"


def test_what_is_too_deep_is_cut_where_it_can_be_seen():
    found = payload_through(nested(50, Rude()))

    depth = 0
    while found != "…":
        [found] = found
        depth += 1
    assert depth == rows.MAX_DEPTH


def test_an_odd_row_leaves_its_neighbours_as_they_were():
    sound = [task([("y", 0)], key=("x", 1)), event({"x": [1, 2]}, 3.0)]

    _, found = through([sound[0], event(Rude(), 2.0), sound[1]])

    assert found == [sound[0], event("<Rude>", 2.0), sound[1]]


def test_an_odd_transition_leaves_its_neighbours_as_they_were():
    sound = [1.0, ("x", 1), "released", "waiting", "s-1"]
    odd = [2.0, ("x", ("y", 1)), "processing", "memory", "s-2", 7, "tcp://w", 1, 8, Rude()]
    odd += [({"action": "compute", "start": 1.0, "stop": 2.0},), None]

    found, _ = through([], [*sound, *odd, *sound])

    assert found == [*sound, *odd[:9], "<Rude>", odd[10], None, *sound]


@pytest.mark.parametrize("annotations", [None, {"odd": 2**70}])
def test_a_task_keeps_every_dependency(annotations):
    dependencies = [("part", number) for number in range(30_000)]

    _, [row] = through([task(dependencies, rows.plain(annotations))])

    assert row[5] == dependencies


@pytest.mark.parametrize("typename", ["int", Rude()], ids=["sound", "odd"])
def test_a_task_of_odd_annotations_keeps_the_keys_of_its_dependencies(typename):
    ending = (2.0, "k", "processing", "memory", "s", 7, "tcp://w", 1, 8, typename, (), None)

    _, [row] = through([task([("part", 1), "whole"], rows.plain({"odd": Rude()}))], ending)

    assert row == task([("part", 1), "whole"], {"odd": "<Rude>"})


def test_an_odd_chunk_keeps_its_key():
    fields = {"key": "('chunk', 1)", "usermeta": {"odd": Rude()}}

    _, [row] = through([(RECORD, 1.0, "chunk", fields)])

    assert row[3] == {"key": "('chunk', 1)", "usermeta": {"odd": "<Rude>"}}


def test_an_odd_failure_keeps_the_key_of_its_cause():
    failure = {"exception": Texts("E()"), "traceback": "…", "cause": ("x", 1)}
    ending = (1.0, "k", "processing", "erred", "s", 1, "tcp://w", 1, None, None, None, failure)

    found, _ = through([], ending)

    assert found[-1] == {"exception": "E()", "traceback": "…", "cause": ("x", 1)}


def test_fine_metrics_keep_their_names_beside_an_odd_one():
    name = ("execute", "span", "prefix", "compute", "seconds")

    deltas = {name: 1.0, ("execute", "span", "prefix", Colour.RED, "seconds"): 2.0}
    _, [row] = through([(FINE_METRICS, 1.0, "w", "id", deltas)])

    assert row[4] == {name: 1.0, ("execute", "span", "prefix", "red", "seconds"): 2.0}


@pytest.mark.parametrize("make", [Impossible, lambda: {Rude(): 1}], ids=["class", "key"])
def test_what_cannot_be_encoded_is_counted_and_its_neighbours_are_kept(make):
    moved = [[t, "k", "released", "waiting", s] for t, s in enumerate(["s", Impossible(), "s"])]

    encoded, left_out = rows.encode(
        [value for transition in moved for value in transition],
        [event(p, t) for t, p in enumerate([1, make(), 3])],
    )

    transitions, others = rows.decode(encoded)
    assert transitions == [*moved[0], *moved[2]]
    assert [row[1] for row in others] == [0, 2]
    assert left_out == {"event": [1, 1, 1], "transition": [1, 1, 1]}


def test_a_row_too_large_to_rebuild_is_left_out_and_counted(monkeypatch):
    monkeypatch.setattr(rows, "MAX_CONTAINERS", 1_000)
    doubling = [Rude()]
    for _ in range(15):
        doubling = [doubling, doubling]

    encoded, left_out = rows.encode([], [event(p, t) for t, p in enumerate([1, doubling, 3])])

    assert [row[1] for row in rows.decode(encoded)[1]] == [0, 2]
    assert left_out == {"event": [1, 1, 1]}


def marshal_depth():
    """The deepest nesting that marshal takes, which is not the same everywhere."""
    depth = 0
    try:
        while True:
            marshal.dumps(nested(depth, 1))
            depth += 1
    except ValueError:
        return depth - 1


def metric_of(activity):
    return (FINE_METRICS, 2.0, "w", "id", {("execute", None, "x", activity, "seconds"): 1.0})


@pytest.mark.parametrize(
    "make",
    [
        event,
        pytest.param(
            metric_of,
        ),
    ],
)
def test_no_depth_of_nesting_takes_the_neighbours_along(make):
    deepest = marshal_depth()
    for depth in range(deepest - 8, deepest + 3):
        encoded, left_out = rows.encode([], [event(1, 1.0), make(nested(depth, 1, tuple))])

        lost = sum(records for records, _, _ in left_out.values())
        assert len(rows.decode(encoded)[1]) + lost == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"junk", marshal.dumps(5), marshal.dumps((1, 2, 3)), marshal.dumps(([], []))[:-1]],
)
def test_what_is_no_batch_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011 - marshal's own texts differ
        rows.decode(content)


# -- compress -------------------------------------------------------------------------------


@pytest.mark.parametrize("installed", [True, False])
def test_what_was_compressed_with_or_without_zstandard_is_the_same_again(
    monkeypatch, installed
):
    content, _ = rows.encode([], [event(f"payload {number}") for number in range(1_000)])
    if not installed:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    compressed = rows.compress(content)
    monkeypatch.undo()

    assert len(compressed) < len(content) / 3
    assert rows.decompress(compressed) == content


# -- split_transitions ----------------------------------------------------------------------

STARTED = (1.0, "k", "waiting", "processing", "s-1", "tcp://w", 7)
ENDED = (2.0, "k", "processing", "memory", "s-2", 7, "tcp://w", 1, 8, "int", (), None)
OTHER = (3.0, ("x", 1), "memory", "released", "s-3")


@pytest.mark.parametrize(
    "moved",
    [
        [],
        [STARTED],
        [ENDED],
        [OTHER],
        [OTHER, STARTED, ENDED, ENDED, STARTED, OTHER],
        # What stands in the other places says nothing.
        [("processing", "processing", "waiting", "released", "processing"), STARTED],
    ],
)
def test_the_flat_list_is_taken_apart(moved):
    flat = [value for transition in moved for value in transition]

    assert list(rows.split_transitions(flat)) == moved


# -- kind_of and census ---------------------------------------------------------------------

DELTAS = {("execute", "span", "x", "compute", "seconds"): 1.0, ("gather", "a", "bytes"): 2}


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (task(), "task"),
        ((WORKER_SAMPLE, 1.0), "worker_sample"),
        ((FINE_METRICS, 1.0, "w", "id", DELTAS), "fine_metric"),
        (event(1), "event"),
        ((RECORD, 1.0, "worker_added", {}), "worker_added"),
    ],
)
def test_a_row_is_of_the_kind_that_it_becomes(row, kind):
    assert rows.kind_of(row) == kind


@pytest.mark.parametrize(
    ("moved", "others", "expected"),
    [
        ([], [], {}),
        ([OTHER, STARTED, ENDED], [], {"transition": [3, 1.0, 3.0]}),
        (
            [STARTED],
            [event(1, 5.0), event(2, 4.0), (WORKER_SAMPLE, 6.0)],
            {
                "transition": [1, 1.0, 1.0],
                "event": [2, 4.0, 5.0],
                "worker_sample": [1, 6.0, 6.0],
            },
        ),
        ([], [(FINE_METRICS, 1.0, "w", "id", DELTAS)], {"fine_metric": [2, 1.0, 1.0]}),
    ],
)
def test_a_census_counts_and_says_from_when_to_when(moved, others, expected):
    flat = [value for transition in moved for value in transition]

    assert rows.census(flat, others) == expected


# -- plain ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (2**63, str(2**63)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        (float("nan"), None),
        (float("-inf"), None),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        (b"abc", "<3 bytes>"),
        (bytearray(b"abcd"), "<4 bytes>"),
        (("a", ("b", 1)), ["a", ["b", 1]]),
        ({"one"}, ["one"]),
        ({(1, 2): "tuple key", 3: "number"}, {"(1, 2)": "tuple key", "3": "number"}),
        ({"\ud800": 1}, {"?": 1}),
        (1j, "1j"),
        (..., "Ellipsis"),
        pytest.param(Rude(), "<Rude>", id="rude"),
        (np.float64("nan"), None),
        (np.array([[1.5, float("nan")]]), [[1.5, None]]),
        (np.datetime64("2026-01-01"), "2026-01-01"),
    ],
    ids=repr,
)
def test_plain_is_what_json_has(value, expected):
    found = rows.plain(value)

    assert found == expected
    assert type(found) is type(expected)


def test_an_int_of_any_size_has_a_text():
    assert isinstance(rows.plain(10**5_000), str)


def test_a_set_is_sorted_so_that_two_traces_can_be_compared():
    letters = set("hgfedcba") | {f"name {number}" for number in range(100)}

    assert rows.plain(letters) == sorted(letters)


def test_a_long_text_of_an_object_is_cut_and_that_of_a_user_is_not():
    assert len(rows.plain(ValueError("x" * 5_000))) == rows.MAX_TEXT_LENGTH
    assert len(rows.plain("x" * 5_000)) == 5_000
