"""Comparison of a scrubbed trace with the trace that it was made from."""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from roast_analyze import Trace
from roast_analyze.scrub.words import WORD


def differing_views(
    trace: Path, shared: Path, names: Path, views: Iterable[str] = ()
) -> dict[str, tuple]:
    """Return the views, of all by default, that still differ when names are restored.

    Sums of floats depend on the order of groups and so on names, beyond the ninth digit.
    """
    with sqlite3.connect(names) as connection:
        back = {p: n for n, p in connection.execute("SELECT name, pseudonym FROM names")}
    differing = {}
    with Trace(trace, cache=False) as before, Trace(shared, cache=False) as after:
        for view in views or [view.name for view in before.views()]:
            query = f"SELECT * {'EXCLUDE (path)' if view == 'trace_info' else ''} FROM {view}"
            rows = Counter(_restored(row, {}) for row in before.sql(query).fetchall())
            others = Counter(_restored(row, back) for row in after.sql(query).fetchall())
            if rows != others:
                differing[view] = (rows - others, others - rows)
    return differing


def _restored(value: object, back: dict[str, str]) -> object:
    match value:
        case str():
            return WORD.sub(lambda match: back.get(match[0], match[0]), value)
        case float():
            return float(f"{value:.9g}")
        case dict():
            return tuple((_restored(k, back), _restored(v, back)) for k, v in value.items())
        case list() | tuple():
            return tuple(_restored(item, back) for item in value)
    return value
