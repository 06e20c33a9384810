"""Digests of all views of a trace, which are compared with those of an older version.

A digest of a view is its number of rows, and of each column that is not null everywhere
the number of values and, for numbers, sum, minimum and maximum; for everything else, the
number of distinct values and a hash of them in sorted order.

``python tests/analyze/view_digests.py TRACE… > FILE`` prints the digests of the installed
version; see ``tests/analyze/data/README.md``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from roast_analyze import Trace

NUMBERS = ("BIGINT", "INTEGER", "HUGEINT", "DOUBLE", "FLOAT", "UBIGINT")


def digest_trace(
    trace: Trace, conditions: dict[str, str] | None = None
) -> dict[str, list[Any]]:
    """Return the digests of the views that have rows, of some views only of certain rows."""
    digests = {}
    for view in (view.name for view in trace.views()):
        rows, columns = digest_view(trace, view, (conditions or {}).get(view, "true"))
        if rows:
            digests[view] = [rows, columns]
    return digests


def digest_view(trace: Trace, view: str, condition: str) -> tuple[int, dict[str, list[Any]]]:
    """Return the number of rows of a view and the digests of its columns."""
    types = trace.rows(f'SELECT column_name, column_type FROM (DESCRIBE FROM "{view}")')
    parts = [
        f'[count("{name}"), sum("{name}"), min("{name}"), max("{name}")]::DOUBLE[]'
        if kind in NUMBERS
        else f"""[count("{name}")::VARCHAR, count(DISTINCT "{name}"::VARCHAR)::VARCHAR,
            left(md5(string_agg("{name}"::VARCHAR, chr(10) ORDER BY "{name}"::VARCHAR)), 8)]"""
        for name, kind in types
    ]
    [(rows, *values)] = trace.rows(
        f'SELECT count(*), {", ".join(parts)} FROM "{view}" WHERE {condition}'
    )
    named = zip((name for name, _ in types), values, strict=True)
    return rows, {name: [*map(_value, value)] for name, value in named if float(value[0])}


def _value(value: float | str) -> float | str | int:
    """Round numbers to 13 significant digits; return counts as integers."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < 8 else value
    return int(value) if value.is_integer() else float(f"{value:.13g}")


def main(paths: list[str]) -> None:
    """Print the digests of traces, a view per line."""
    parts = []
    for path in paths:
        with Trace(path) as trace:
            views = digest_trace(trace)
        lines = [
            f"{json.dumps(view)}: {json.dumps(value, separators=(',', ':'))}"
            for view, value in views.items()
        ]
        parts.append(f"{json.dumps(Path(path).name)}: {{\n" + ",\n".join(lines) + "\n}")
    print("{\n" + ",\n".join(parts) + "\n}")


if __name__ == "__main__":
    main(sys.argv[1:])
