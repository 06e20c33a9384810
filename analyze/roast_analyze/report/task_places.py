"""Names of tasks for people: file and entries of chunks, the key of all others."""

# ruff: noqa: S608 - every query here is put together from the report's own text

from __future__ import annotations

from typing import Final

#: Attempts that process one chunk each. A task of dask-awkward can process several.
_CHUNKS: Final = (
    "SELECT trace_id, key, attempt, "
    "any_value(regexp_extract(filename, '[^/\\\\]*$') || "
    "coalesce(format(' {:,}–{:,}', entry_start, entry_stop), '')) AS place "
    "FROM chunks GROUP BY ALL HAVING count(*) = 1"
)


def with_places(query: str) -> str:
    """Add the column ``task`` to a query of attempts: what they process, or the key."""
    return (
        f"SELECT found.*, coalesce(chunk.place, found.key) AS task FROM ({query}) AS found "
        f"LEFT JOIN ({_CHUNKS}) AS chunk USING (trace_id, key, attempt)"
    )
