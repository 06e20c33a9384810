"""Tables that Python computes: each is filled when a query first refers to it.

They are in the in-memory database of a connection, because that of a trace may be read-only. A
query refers to a table if its text contains the name of the table, or of a view that needs it.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from roast_analyze.open.database import VIEWS_NAME
from roast_analyze.open.views import computed_tables, needs_of_computed_views

if TYPE_CHECKING:
    import duckdb

    from roast_analyze.open.session import Session


class ComputedTables:
    """The tables of a session that are not filled yet.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Connection with the views of the user.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        views = connection.execute(
            "SELECT view_name, sql FROM duckdb_views() "
            "WHERE NOT internal AND database_name = ?",
            [VIEWS_NAME],
        ).fetchall()
        self._needs = {name.casefold(): _words(sql) for name, sql in views}
        self._needs |= needs_of_computed_views()
        self._connection = connection
        self._empty = set(computed_tables())
        self._filling: set[str] = set()
        # A table can be computed from others, in the same thread.
        self._lock = threading.RLock()

    def fill(self, query: str, trace: Session) -> None:
        """Compute the tables that a query refers to, unless they are filled."""
        if not self._empty:
            return
        for table in sorted(self._names(query)):
            with self._lock:
                # Queries that fill a table can contain its name, in a comment for example.
                if table in self._empty - self._filling:
                    self._filling.add(table)
                    try:
                        self._compute(table, trace)
                        self._empty.discard(table)
                    finally:
                        self._filling.discard(table)

    def _compute(self, table: str, trace: Session) -> None:
        # Polars and numpy are not loaded before they are needed.
        from roast_analyze.computed import TABLES

        rows = TABLES[table](trace)
        if not rows.is_empty():
            with self._connection.cursor() as cursor:
                cursor.register("_rows", rows)
                cursor.execute(f"INSERT INTO {VIEWS_NAME}.{table} BY NAME FROM _rows")

    def _names(self, query: str) -> set[str]:
        """Return the names of the tables that a query refers to, also by views of the user."""
        found: set[str] = set()
        words = _words(query)
        while words:
            found |= words
            words = set().union(*(self._needs.get(word, set()) for word in words)) - found
        return self._empty & found


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
