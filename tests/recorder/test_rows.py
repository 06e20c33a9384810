"""Whatever a hook is handed becomes JSON; a batch survives one odd row."""

import sys

import numpy as np
import pytest

from roast_recorder import rows


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
        ({(1, 2): "tuple key", 3: "number"}, {"(1, 2)": "tuple key", "3": "number"}),
        (2**80, float(2**80)),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        (Rude(), "<Rude>"),
        (ValueError("text"), "text"),
    ],
)
def test_odd_values(value, expected):
    batch = rows.encode([(rows.RECORD, 1.0, "event", {"payload": value})])

    assert rows.decode(batch) == [[rows.RECORD, 1.0, "event", {"payload": expected}]]


def test_a_value_that_holds_itself_ends():
    loop = []
    loop.append(loop)

    [[_, _, _, fields]] = rows.decode(rows.encode([(rows.RECORD, 1.0, "event", {"p": loop})]))

    depth = 0
    while (inner := fields["p"]) != "…":
        fields, depth = {"p": inner[0]}, depth + 1
    assert 10 < depth < 30


def test_an_odd_row_leaves_its_neighbours_alone():
    batch = rows.encode([(0, 1.0, "before"), (0, 2.0, {(1,): 2**70}), (0, 3.0, "after")])

    assert [row[1] for row in rows.decode(batch)] == [1.0, 2.0, 3.0]


def test_without_orjson_the_rows_are_the_same(monkeypatch):
    batch = [(0, 1.25, "key", None, {"startstops": ({"action": "compute"},), "s": {1}})]
    expected = rows.decode(rows.encode(batch))

    monkeypatch.setitem(sys.modules, "orjson", None)
    encoded = rows.encode(batch)
    monkeypatch.undo()

    assert rows.decode(encoded) == expected
