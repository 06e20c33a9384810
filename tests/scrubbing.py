"""Comparison of a scrubbed trace with the trace that it was made from."""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from roast_analyze import Trace
from roast_analyze.scrub.words import WORD


def differing_views(
    trace: Path, shared: Path, names: Path, views: Iterable[str] = ()
) -> list[str]:
    """Return the views, of all by default, that still differ when names are restored.

    Sums of floats depend on the order of groups and so on names, in the last digits.
    """
    with sqlite3.connect(names) as connection:
        back = {p: n for n, p in connection.execute("SELECT name, pseudonym FROM names")}
    with Trace(trace, cache=False) as before, Trace(shared, cache=False) as after:
        differing = []
        for view in views or [view.name for view in before.views()]:
            query = f"SELECT * {'EXCLUDE (path)' if view == 'trace_info' else ''} FROM {view}"
            rows = _floats_by_row(before.sql(query).fetchall(), {})
            others = _floats_by_row(after.sql(query).fetchall(), back)
            if rows.keys() != others.keys() or not all(
                len(rows[row]) == len(others[row])
                and all(map(_are_close, sorted(rows[row]), sorted(others[row])))
                for row in rows
            ):
                differing.append(view)
    return differing


def _are_close(one: list[float], other: list[float]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)


def _floats_by_row(rows: list[tuple], back: dict[str, str]) -> dict[object, list[list[float]]]:
    """Return the floats in the rows by all other values, with names restored."""
    found = defaultdict(list)
    for row in rows:
        floats: list[float] = []
        found[_restored(row, back, floats)].append(floats)
    return found


def _restored(value: object, back: dict[str, str], floats: list[float]) -> object:
    match value:
        case str():
            return WORD.sub(lambda match: back.get(match[0], match[0]), value)
        case float() if math.isfinite(value):
            floats.append(value)
            return float
        case dict():
            return tuple(_restored(item, back, floats) for item in value.items())
        case list() | tuple():
            return tuple(_restored(item, back, floats) for item in value)
    return value
