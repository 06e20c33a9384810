"""Tables that are derived from the records: each is filled when a query first refers to it.

Most are building blocks of the views, in SQL. Computed tables come after them: those that
Python computes, and those in SQL that read such tables. The names are views of empty tables at
first. A query refers to a derived table if its text, apart from comments and sentences,
contains the name of the table, or of a view that needs it.

The tables are filled in memory. If they are kept beside a database, their rows are also written
to a file, which later sessions attach before their first query. A second instance of DuckDB
writes the file, because queries run in the first one, which has no access to files. The file
gets its final name when it is complete and is never modified, so several processes can fill the
same table at the same time.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from contextlib import closing, suppress
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import CacheNotUsed, first_paragraph
from roast_analyze.open import user_kinds
from roast_analyze.open.cache import keep_tables, kept_tables, unfinished
from roast_analyze.open.database import attach_file, connect_writer
from roast_analyze.open.tables import quoted, transaction
from roast_analyze.open.views import (
    DERIVED,
    FILLED,
    NAME,
    VIEWS_NAME,
    computed_tables,
    create_in,
    derived_tables,
    needs,
    read_by_time_range,
    tables_by_records,
    view_of_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import polars as pl

    from roast_analyze.open.database import Listener
    from roast_analyze.open.session import Session

#: Functions of DuckDB whose arguments are names or queries, which can refer to any table.
INDIRECT: Final = {"query", "query_table"}

#: Name of the file that is written, within the connection that writes it.
_DRAFT: Final = "draft"

#: Schema of the tables that are filled in memory.
_IN_MEMORY: Final = f"{VIEWS_NAME}.in_memory"

#: Computed tables that the current thread, or the one that started it, is filling.
_filling: ContextVar[frozenset[tuple[DerivedTables, str]]] = ContextVar(
    "filling", default=frozenset()
)


class DerivedTables:
    """The derived tables of a session.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Connection of :func:`roast_analyze.open.database.open_database`.
    progress : callable
        Returns a context manager that shows the progress of a stage, and yields its listener.
    stored : sequence of str
        Names of views that need no other table.
    database : Path, optional
        Path of the database beside which the tables are kept. The default is memory.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        progress: Callable[[str], AbstractContextManager[Listener]],
        stored: Sequence[str],
        database: Path | None,
    ) -> None:
        self._connection = connection
        self._progress = progress
        self._stored: dict[str, set[str]] = {name: set() for name in stored}
        self._database = database
        self._writer: duckdb.DuckDBPyConnection | None = None
        #: Words in the definition of each view of the user.
        self.users_views: dict[str, set[str]] = {}
        self._empty = set(derived_tables())
        #: Tables that are not written to a file. Kept ones do not depend on the user's files.
        self._not_kept: set[str] = {user_kinds.TABLE} if user_kinds.user_file() else set()
        self._lock = threading.Lock()
        # Computing a table can query others, in the same thread. Dependencies between tables
        # have no cycles, so threads that wait for each other's tables cannot deadlock.
        self._computing = {name: threading.RLock() for name in computed_tables()}
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {FILLED}; CREATE SCHEMA {_IN_MEMORY}")
        for name in self._empty:
            connection.execute(view_of_table(FILLED, name, f"{NAME}.{DERIVED}"))
        if database is not None:
            for number, path in enumerate(kept_tables(database)):
                # The file is damaged, or was just removed with a database that another process
                # replaced.
                with suppress(duckdb.Error):
                    self._attach(path, f"derived_{number}")

    @property
    def unchanged(self) -> AbstractContextManager[object]:
        """Context in which no table is filled, to read the catalog of all databases."""
        return self._lock

    def limit_to_time_range(self, trace: Session) -> None:
        """Fill the tables from which a time range takes its rows.

        The computed tables are those of the time range from then on.
        """
        self._not_kept = set(computed_tables())
        self._empty |= self._not_kept
        for name in self._not_kept:
            self._connection.execute(view_of_table(FILLED, name, f"{NAME}.{DERIVED}"))
        self._fill(self._names(" ".join(read_by_time_range())), trace)
        # The time range has its own tables in SQL.
        self._empty &= self._not_kept

    def fill(self, query: str, trace: Session) -> None:
        """Fill the tables that a query refers to, unless they are filled."""
        if self._empty and (names := self._names(query)):
            self._fill(names, trace)

    def _names(self, query: str) -> set[str]:
        """Return the empty tables that a query refers to, also by views of the user."""
        words = words_of(query)
        if words & INDIRECT:
            return set(self._empty)
        return self._empty & with_definitions(words, self.users_views | needs() | self._stored)

    def read_users_views(self) -> None:
        """Read the definitions of the views that the user has created."""
        found = self._connection.execute(
            "SELECT view_name, sql FROM duckdb_views() "
            "WHERE database_name = ? AND schema_name = 'main' AND NOT internal",
            [VIEWS_NAME],
        ).fetchall()
        self.users_views = {name.casefold(): words_of(sql) for name, sql in found}

    def _fill(self, names: set[str], trace: Session) -> None:
        with self._progress("computing tables") as listener:
            with self._lock, closing(self._cursor()) as cursor:
                self._skip(cursor, names)
                self._create(cursor, names & self._empty - computed_tables().keys(), listener)
            # Without the lock, so that other threads can fill and query other tables.
            for name in sorted(names & computed_tables().keys()):
                # Queries that fill a table can contain its name, for example as a column.
                filling = _filling.get()
                if (self, name) in filling:
                    continue
                with self._computing[name]:
                    # Meanwhile, this or another thread may have filled the table.
                    if name in self._empty:
                        token = _filling.set(filling | {(self, name)})
                        try:
                            self._compute(name, listener, trace)
                        finally:
                            _filling.reset(token)

    def _skip(self, cursor: duckdb.DuckDBPyConnection, names: set[str]) -> None:
        """Leave tables empty that need records of a kind that the trace lacks.

        Planning their statements takes longer than running them.
        """
        for kind, tables in tables_by_records().items():
            if skipped := names & tables & self._empty:
                [(is_recorded,)] = cursor.execute(
                    f"SELECT EXISTS (FROM {NAME}.raw.{kind})"
                ).fetchall()
                if not is_recorded:
                    self._empty -= skipped

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute(f"SET search_path = '{NAME},{VIEWS_NAME}'")
        return cursor

    def _compute(self, name: str, listener: Listener, trace: Session) -> None:
        rows: pl.DataFrame
        if query := computed_tables()[name]:
            rows = trace.sql(query).pl()
        else:
            # Imported here, because Polars and numpy take long to import.
            from roast_analyze.computed.tables import TABLES

            rows = TABLES[name](trace)
        with self._lock, closing(self._cursor()) as cursor:
            # A query of the computation can have attached the table of another process.
            self._create(cursor, {name} & self._empty, listener, rows)

    def _create(
        self,
        cursor: duckdb.DuckDBPyConnection,
        names: set[str],
        listener: Listener,
        rows: pl.DataFrame | None = None,
    ) -> None:
        """Fill tables by their own statements, or one with `rows`."""
        if not names:
            return
        if rows is not None and not rows.is_empty():
            cursor.register("_rows", rows)
        created = [name for name in derived_tables() if name in names]
        # All or none, so that the next query that needs them begins anew after an error.
        with transaction(cursor):
            for i, name in enumerate(created):
                listener("computing tables", i / len(created))
                if rows is None:
                    cursor.execute(create_in(_IN_MEMORY, derived_tables()[name]))
                else:
                    empty = f"{NAME}.{DERIVED}.{name}"
                    cursor.execute(f"CREATE TABLE {_IN_MEMORY}.{name} AS FROM {empty} LIMIT 0")
                    if not rows.is_empty():  # it has no columns then
                        cursor.execute(f"INSERT INTO {_IN_MEMORY}.{name} BY NAME FROM _rows")
                cursor.execute(view_of_table(FILLED, name, _IN_MEMORY))
        self._empty -= names
        if self._database is not None and names.isdisjoint(self._not_kept):
            try:
                self._keep(cursor, created, self._database)
            except (OSError, duckdb.Error) as error:
                warnings.warn(
                    f"cannot write to {str(self._database.parent)!r} "
                    f"({first_paragraph(error)}); the tables are computed again next time",
                    CacheNotUsed,
                    stacklevel=2,
                )

    def _keep(
        self, cursor: duckdb.DuckDBPyConnection, names: Sequence[str], database: Path
    ) -> None:
        """Write tables in memory to a file beside the database."""
        writer = self._writer = self._writer or connect_writer(cursor)
        with unfinished(database.parent) as draft:
            attach_file(writer, draft, _DRAFT)
            try:
                with transaction(writer):
                    for name in names:
                        rows = cursor.sql(f"FROM {_IN_MEMORY}.{name}")
                        # Arrow lacks some types of DuckDB.
                        columns = ", ".join(
                            f"{quoted(column)}::{type_} AS {quoted(column)}"
                            for column, type_ in zip(rows.columns, rows.types, strict=True)
                        )
                        writer.register("_rows", rows.to_arrow_reader())
                        writer.execute(
                            f"CREATE TABLE {_DRAFT}.{name} AS SELECT {columns} FROM _rows"  # noqa: S608 - fixed names
                        )
                        writer.unregister("_rows")
                # Detaching would write the file too, but without an error on a full disk.
                writer.execute(f"CHECKPOINT {_DRAFT}")
            finally:
                writer.execute(f"DETACH {_DRAFT}")
            keep_tables(draft, database)

    def _attach(self, path: Path, alias: str) -> None:
        """Use the tables of a file."""
        # The cache removes what was not used for the longest time.
        with suppress(OSError):
            os.utime(path)
        attach_file(self._connection, path, alias, read_only=True)
        for (name,) in self._connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [alias]
        ).fetchall():
            if name in self._empty - self._not_kept:
                self._connection.execute(view_of_table(FILLED, name, f"{alias}.main"))
                self._empty.discard(name)


def words_of(query: str) -> set[str]:
    """Return the words of a query that can name a table, in lower case.

    Comments and strings cannot, except for strings of one word: ``FROM 'tasks'`` is a table.
    """
    content = query.encode()
    strings, texts = set(), []
    tokens = [*duckdb.tokenize(query), (len(content), None)]
    for (start, kind), (stop, _) in pairwise(tokens):
        text = content[start:stop].decode().strip().casefold()
        if kind == duckdb.token_type.string_const:
            strings.add(text.strip("'"))
        elif kind != duckdb.token_type.comment:
            texts.append(text)
    return strings.union(re.findall(r"\w+", " ".join(texts)))


def with_definitions(words: set[str], definitions: Mapping[str, set[str]]) -> set[str]:
    """Return words and, recursively, the words of their definitions."""
    found: set[str] = set()
    while words:
        found |= words
        words = set().union(*(definitions.get(word, set()) for word in words)) - found
    return found
