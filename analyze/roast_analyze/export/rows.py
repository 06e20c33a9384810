"""Query results in batches of rows, so that memory does not grow with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import duckdb

from roast_analyze.errors import QueryError, first_paragraph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from roast_analyze.open.session import Session

BATCH_ROWS: Final = 10_000


def batches(
    trace: Session, query: str, parameters: Mapping[str, object] | None = None
) -> pa.RecordBatchReader:
    """Run a query whose result is computed while it is read.

    Raises
    ------
    QueryError
        If DuckDB rejects the query.
    """
    try:
        return trace.sql(query, parameters or None).to_arrow_reader(BATCH_ROWS)
    except duckdb.Error as error:
        raise QueryError(first_paragraph(error)) from None


def rows(
    trace: Session, query: str, parameters: Mapping[str, object] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of :func:`batches` as dicts."""
    for batch in batches(trace, query, parameters):
        yield from batch.to_pylist()
