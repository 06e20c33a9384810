"""Compare all rows and columns of a view with rows from plain Python.

Text, integers, lists and instants must be equal. Other floats may differ by 1e-9 relative or
1e-12 absolute, since sums depend on their order. Null is not 0.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from nightly.recording import Row
from nightly.totals import grouped

if TYPE_CHECKING:
    import duckdb

TOLERANCE = 1e-9

#: Absolute tolerance, for sums and differences close to 0.
NOTHING = 1e-12


@dataclass(frozen=True)
class Answer:
    """The column types and rows of a view."""

    types: dict[str, str]
    rows: list[Row]

    @classmethod
    def of(cls, relation: "duckdb.DuckDBPyRelation") -> "Answer":
        """Fetch the rows of a relation, and decode JSON."""
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        rows = [dict(zip(types, row, strict=True)) for row in relation.fetchall()]
        return cls(types, _each(rows, json.loads, [n for n in types if types[n] == "JSON"]))

    def only(self, rows: list[Row]) -> "Answer":
        """Return the columns that the rows have."""
        if not rows:
            return self
        names = [name for name in self.types if name in rows[0]]
        kept = [{name: row[name] for name in names} for row in self.rows]
        return Answer({name: self.types[name] for name in names}, kept)

    def by(self, column: str) -> "dict[str, Answer]":
        """Split the rows by the values of a column."""
        found = grouped(self.rows, lambda row: row[column])
        return {value: Answer(self.types, rows) for value, rows in found.items()}


def differences(answer: Answer, expected: list[Row], *, in_order: bool = False) -> list[str]:
    """Return the differences between a view and the expected rows.

    Without an order, each row is compared with the most similar one.
    """
    if wrong := {name for row in expected for name in row.keys() ^ answer.types.keys()}:
        return [f"columns are not the same: {sorted(wrong)}"]
    found = answer.rows
    doubles = [name for name, type_ in answer.types.items() if type_ == "DOUBLE"]
    expected = _each(expected, float, doubles)
    if not in_order:
        found, expected = (sorted(rows, key=likeness) for rows in (found, expected))
    many = [f"{len(found)} rows, not {len(expected)}"] * (len(found) != len(expected))
    return many + [
        f"row {n}: {name} is {row.get(name)!r}, not {other.get(name)!r}"
        for n, (row, other) in enumerate(zip_longest(found, expected, fillvalue={}))
        for name in row | other
        if not (row and other and is_same(name, row[name], other[name]))
    ]


def _each(rows: list[Row], convert: Callable, names: list[str]) -> list[Row]:
    """Convert the values of some columns."""
    return [
        row | {name: convert(row[name]) for name in names if row[name] is not None}
        for row in rows
    ]


def is_same(name: str, value: object, expected: object) -> bool:
    """Return whether two values of a column are equal, within the tolerance of floats."""
    if is_measure(name, value) and is_measure(name, expected):
        return math.isclose(value, expected, rel_tol=TOLERANCE, abs_tol=NOTHING)
    return value == expected and type(value) is type(expected)


def is_measure(name: str, value: object) -> bool:
    """Return whether a value may differ slightly: floats except instants."""
    return isinstance(value, float) and name != "t" and not name.endswith("_t")


def likeness(row: Row) -> tuple:
    """Return a sort key of rows: exact values first, then values that may differ slightly."""
    names = sorted(row)
    exact = [(name, str(row[name])) for name in names if not is_measure(name, row[name])]
    close = [(name, f"{row[name]:.6g}") for name in names if is_measure(name, row[name])]
    return exact, close
