"""The rows that a table shows: the first rows of a query, and the number of all its rows."""

# ruff: noqa: S608 - every query here is put together from the report's own text

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.open.session import Session


@dataclass(frozen=True)
class Listing:
    """The rows of a view that a table shows, and the SQL that returns them."""

    view: str
    query: str
    rows: pl.DataFrame
    #: Number of rows without the limit of the query.
    total: int


def list_view(trace: Session, view: str, order: str, limit: int) -> Listing:
    """Return the first rows of a view."""
    return list_query(trace, view, f"SELECT * FROM {view}", order, limit)


def list_query(trace: Session, view: str, query: str, order: str, limit: int) -> Listing:
    """Return the first rows of a query, and count its rows without the limit."""
    # One query for both, because some views take seconds on a large trace.
    counted = trace.sql(
        f"SELECT *, count(*) OVER () AS total_rows FROM ({query}) "
        f"ORDER BY {order} LIMIT {limit}"
    ).pl()
    total = int(counted["total_rows"][0]) if counted.height else 0
    return _listing(view, query, order, limit, counted.drop("total_rows"), total)


def list_frame(view: str, query: str, order: str, limit: int, rows: pl.DataFrame) -> Listing:
    """Return the first rows of a result that was queried completely and is in order."""
    return _listing(view, query, order, limit, rows.head(limit), rows.height)


def _listing(
    view: str, query: str, order: str, limit: int, shown: pl.DataFrame, total: int
) -> Listing:
    # Users copy the query, so it only has a limit if the limit omits rows.
    limited = f" LIMIT {limit}" if total > limit else ""
    return Listing(view, f"{query} ORDER BY {order}{limited}", shown, total)
