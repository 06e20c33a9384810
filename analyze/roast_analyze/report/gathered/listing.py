"""The rows that a table shows: the first of a query, and how many there are in all."""

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
        The SQL that gives the rows.
    rows : polars.DataFrame
    total : int
        Rows that there are without the query's limit.
    """

    view: str
    query: str
    rows: pl.DataFrame
    total: int


def listed(trace: Session, view: str, order: str, limit: int) -> Listing:
    """Take the first rows of a view."""
    return asked(trace, view, f"SELECT * FROM {view}", order, limit)


def asked(trace: Session, view: str, query: str, order: str, limit: int) -> Listing:
    """Take the first rows of a query, and count what it gives without the limit."""
    counted = trace.sql(
        f"SELECT *, count(*) OVER () AS rows_in_all FROM ({query}) "
        f"ORDER BY {order} LIMIT {limit}"
    ).pl()
    total = int(counted["rows_in_all"][0]) if counted.height else 0
    return Listing(view, _query(query, order, limit, total), counted.drop("rows_in_all"), total)


def first(view: str, query: str, order: str, limit: int, rows: pl.DataFrame) -> Listing:
    """Take the first rows of an answer that is also needed as a whole.

    Parameters
    ----------
    view, query, order : str
        What was asked, and the order of the rows.
    limit : int
    rows : polars.DataFrame
        All rows, in order.
    """
    return Listing(
        view, _query(query, order, limit, rows.height), rows.head(limit), rows.height
    )


def _query(query: str, order: str, limit: int, total: int) -> str:
    return f"{query} ORDER BY {order}" + (f" LIMIT {limit}" if total > limit else "")
