"""Whatever a hook is handed becomes JSON; a batch survives one odd row."""

import sys

import numpy as np
import pytest

from roast_recorder import rows


def through(batch):
    encoded, left_out = rows.encode(batch)
    assert not left_out
    return rows.decode(encoded)


class Rude:
    def __str__(self):
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b", "a"}, ["a", "b"]),
        (b"\x80bytes", "b'\\x80bytes'"),
        (("a", ("b", 1)), ["a", ["b", 1]]),
        (np.float64(1.5), 1.5),
        (np.int32(7), 7),
        (np.array([1, 2]), [1, 2]),
        (float("nan"), None),
        (np.zeros((200, 200)), "<ndarray of shape (200, 200)>"),
        ({(1, 2): "tuple key", 3: "number"}, {"(1, 2)": "tuple key", "3": "number"}),
        (2**80, str(2**80)),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        (Rude(), "<Rude>"),
        (ValueError("text"), "text"),
    ],
)
def test_odd_values(value, expected):
    [row] = through([(rows.RECORD, 1.0, "event", {"payload": value})])

    assert row == [rows.RECORD, 1.0, "event", {"payload": expected}]


def test_a_value_that_holds_itself_ends():
    loop = []
    loop.append(loop)

    [[_, _, _, fields]] = through([(rows.RECORD, 1.0, "event", {"p": loop})])

    assert fields["p"] == ["…"]


def test_what_is_too_deep_is_cut_where_it_can_be_seen():
    nested = {2**70: 1}
    for _ in range(50):
        nested = [nested]

    [[_, _, _, fields]] = through([(rows.RECORD, 1.0, "event", {"p": nested})])

    depth = 0
    while (inner := fields["p"]) != "…":
        fields, depth = {"p": inner[0]}, depth + 1
    assert 10 < depth < 30


def test_a_row_too_large_to_rebuild_is_left_out_and_counted(monkeypatch):
    monkeypatch.setattr(rows, "MAX_CONTAINERS", 1_000)
    doubling = [2**70]
    for _ in range(15):
        doubling = [doubling, doubling]

    encoded, left_out = rows.encode(
        [(rows.RECORD, t, "event", {"p": p}) for t, p in enumerate([1, doubling, 3])]
    )

    assert [row[1] for row in rows.decode(encoded)] == [0, 2]
    assert left_out == {"event": 1}


@pytest.mark.parametrize("orjson", [True, False])
@pytest.mark.parametrize("annotations", [None, {"odd": 2**70}])
def test_a_task_keeps_every_dependency(monkeypatch, orjson, annotations):
    dependencies = [("part", number) for number in range(30_000)]
    row = (rows.TASK, 1.0, "sum", "sum", "sum", dependencies, (0,), annotations, None, "c", "s")

    if not orjson:
        monkeypatch.setitem(sys.modules, "orjson", None)
    encoded, left_out = rows.encode([row])
    monkeypatch.undo()

    assert not left_out
    assert rows.decode(encoded)[0][5] == [["part", number] for number in range(30_000)]


def test_a_row_that_cannot_be_encoded_is_counted_and_its_neighbours_are_kept():
    class Impossible:
        @property
        def __class__(self):
            raise RuntimeError("not even its class")

    encoded, left_out = rows.encode(
        [(rows.RECORD, t, "event", {"p": p}) for t, p in enumerate([1, Impossible(), 3])]
    )

    assert [row[1] for row in rows.decode(encoded)] == [0, 2]
    assert left_out == {"event": 1}


def test_an_odd_row_leaves_its_neighbours_alone():
    batch = [(0, 1.0, "before"), (0, 2.0, {(1,): 2**70}), (0, 3.0, "after")]

    assert [row[1] for row in through(batch)] == [1.0, 2.0, 3.0]


def test_without_orjson_the_rows_are_the_same(monkeypatch):
    batch = [(0, 1.25, "key", None, {"startstops": ({"action": "compute"},), "s": {1}})]
    expected = through(batch)

    monkeypatch.setitem(sys.modules, "orjson", None)
    encoded, _ = rows.encode(batch)
    monkeypatch.undo()

    assert rows.decode(encoded) == expected
