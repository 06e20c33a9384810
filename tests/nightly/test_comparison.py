"""What the comparison of views with plain Python notices."""

import duckdb
import pytest

from nightly.comparison import Answer, differences

ROWS = [
    {"key": "a", "t": 1795278774.25, "seconds": 0.1 + 0.2, "n": 10_000_000_001, "it": {"b": 1}},
    {"key": "b", "t": 1795278775.25, "seconds": None, "n": None, "it": None},
]


@pytest.fixture
def answer():
    relation = duckdb.sql(
        "SELECT * FROM (VALUES ('a', 1795278774.25::DOUBLE, 0.3::DOUBLE, 10000000001, "
        """'{"b": 1}'::JSON), ('b', 1795278775.25, NULL, NULL, NULL)) """
        "AS rows (key, t, seconds, n, it)"
    )
    return Answer.of(relation)


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]], ids=["in order", "in another order"])
def test_what_is_the_same(answer, rows):
    assert differences(answer, rows) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"key": "c"}, "key is 'a', not 'c'"),
        ({"t": 1795278774.2500002}, "t is 1795278774.25, not 1795278774.2500002"),
        ({"seconds": 0.300000001}, "seconds is 0.3, not 0.300000001"),
        ({"seconds": None}, "seconds is 0.3, not None"),
        ({"n": 10_000_000_002}, "n is 10000000001, not 10000000002"),
        ({"n": 10_000_000_001.0}, "n is 10000000001, not 10000000001.0"),
        ({"it": {"b": 2}}, "it is {'b': 1}, not {'b': 2}"),
    ],
    ids=lambda change: str(change) if isinstance(change, dict) else "",
)
def test_what_differs(answer, change, expected):
    rows = [ROWS[0] | change, ROWS[1]]

    assert differences(answer, rows, in_order=True) == [f"row 0: {expected}"]


def test_rows_that_are_missing(answer):
    assert differences(answer, ROWS[:1])[0] == "2 rows, not 1"
    assert differences(answer, [*ROWS, ROWS[1]])[0] == "2 rows, not 3"


def test_columns_that_are_missing_or_are_none_of_the_views(answer):
    expected = ["columns are not the same: ['m', 'n']"]
    row = {"m" if name == "n" else name: value for name, value in ROWS[0].items()}

    assert differences(answer, [row]) == expected


def test_the_order_of_rows_if_it_matters(answer):
    assert differences(answer, ROWS, in_order=True) == []
    assert "row 0: key is 'a', not 'b'" in differences(answer, ROWS[::-1], in_order=True)


def test_rows_of_one_kind(answer):
    assert answer.by("key")["b"].rows == [answer.rows[1]]
    assert differences(answer.by("key")["b"], ROWS[1:]) == []
