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
    """The rows of a view that a table shows.

    Parameters
    ----------
    view : str
        Name of the view.
    query : str
        SQL that returns the rows.
    rows : polars.DataFrame
    total : int
        Number of rows without the limit of the query.
    """

    view: str
    query: str
    rows: pl.DataFrame
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
    return Listing(
        view, _limited(query, order, limit, total), counted.drop("total_rows"), total
    )


def list_frame(view: str, query: str, order: str, limit: int, rows: pl.DataFrame) -> Listing:
    """Return the first rows of a result that was queried completely.

    Parameters
    ----------
    view, query, order : str
        View, query, and order of the rows.
    limit : int
    rows : polars.DataFrame
        All rows, in order.
    """
    shown = rows.head(limit)
    return Listing(view, _limited(query, order, limit, rows.height), shown, rows.height)


def _limited(query: str, order: str, limit: int, total: int) -> str:
    return f"{query} ORDER BY {order}" + (f" LIMIT {limit}" if total > limit else "")
