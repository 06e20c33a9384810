"""Tables that are derived from the records: each is filled when a query first refers to it.

Most are building blocks of the views, in SQL. Computed tables come after them: those that
Python computes, and those in SQL that read such tables. The names are views of empty tables at
first. A query refers to a derived table if its text, apart from comments and sentences,
contains the name of the table, or of a view that needs it.

The tables are filled in memory, or, if they are kept beside a database, in a draft: a file that
gets its final name when the session ends, after all answers, and is never modified then. Later
sessions attach it before their first query. So several processes can fill the same table at the
same time, and what a killed process leaves behind is not used.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
import weakref
from contextlib import closing, suppress
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import CacheNotUsed, first_paragraph
from roast_analyze.open import user_kinds
from roast_analyze.open.cache import (
    draft_path,
    files_of_draft,
    keep_tables,
    kept_tables,
    make_private,
)
from roast_analyze.open.database import attach_file
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
    from weakref import WeakSet

    import polars as pl

    from roast_analyze.open.database import Listener
    from roast_analyze.open.session import Session

#: Functions of DuckDB whose arguments are names or queries, which can refer to any table.
INDIRECT: Final = {"query", "query_table"}

#: Schemas of the tables that are filled in a file, and of those that are filled in memory.
_IN_DRAFT: Final = "draft.main"
_IN_MEMORY: Final = f"{VIEWS_NAME}.in_memory"

#: Computed tables that the current thread, or the one that started it, is filling.
_filling: ContextVar[frozenset[tuple[DerivedTables, str]]] = ContextVar(
    "filling", default=frozenset()
)


class Draft:
    """The file in which a session fills tables, attached when the first one is filled.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    database : Path
        Path of the database beside which the tables are kept.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, database: Path) -> None:
        self._connection = connection
        self._database = database
        self._path = draft_path(database.parent)
        self._is_attached = False
        #: Whether tables can still be filled in it.
        self.is_usable = True

    @property
    def paths(self) -> list[str]:
        """Paths that DuckDB must be allowed to access."""
        return list(map(str, files_of_draft(self._path)))

    def attach(self) -> None:
        """Attach the file, unless it is attached."""
        if not self._is_attached:
            make_private(self._path.parent)
            # A draft is of no use to other processes, so a log would only take time.
            attach_file(self._connection, self._path, "draft", has_log=False)
            self._is_attached = True

    def give_up(self, error: Exception) -> None:
        """Warn that the tables are not kept."""
        self.is_usable = False
        warnings.warn(
            f"cannot write to {str(self._database.parent)!r} ({first_paragraph(error)}); "
            "the tables are computed again next time",
            CacheNotUsed,
            stacklevel=2,
        )

    def finish(self) -> None:
        """Keep the file, if it is complete, for later sessions."""
        try:
            if self._is_attached and self.is_usable:
                # Detaching would write the file too, but without an error on a full disk.
                self._connection.execute("CHECKPOINT draft; DETACH draft")
                keep_tables(self._path, self._database)
        except (OSError, duckdb.Error) as error:
            self.give_up(error)
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the file, if it was not kept."""
        self.is_usable = self._is_attached = False
        for path in map(Path, self.paths):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _finish_unless_used(draft: Draft, connections: WeakSet[duckdb.DuckDBPyConnection]) -> None:
    """Finish the draft of a session that was not closed, unless a relation of it remains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheNotUsed)
        draft.discard() if connections else draft.finish()


class DerivedTables:
    """The derived tables of a session.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Connection of :func:`roast_analyze.open.database.open_database`.
    connections : weakref.WeakSet
        Open connections of the session's queries, to which those that fill tables are added.
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
        connections: WeakSet[duckdb.DuckDBPyConnection],
        progress: Callable[[str], AbstractContextManager[Listener]],
        stored: Sequence[str],
        database: Path | None,
    ) -> None:
        self._connection = connection
        self._connections = connections
        self._progress = progress
        self._stored: dict[str, set[str]] = {name: set() for name in stored}
        #: Words in the definition of each view of the user.
        self.users_views: dict[str, set[str]] = {}
        self._empty = set(derived_tables())
        #: Tables that are not written to a file. Kept ones do not depend on the user's files.
        self._not_kept: set[str] = set(user_kinds.TABLES) if user_kinds.user_file() else set()
        self._lock = threading.Lock()
        # Computing a table can query others, in the same thread. Dependencies between tables
        # have no cycles, so threads that wait for each other's tables cannot deadlock.
        self._computing = {name: threading.RLock() for name in computed_tables()}
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {FILLED}; CREATE SCHEMA {_IN_MEMORY}")
        for number, path in enumerate(kept_tables(database) if database else ()):
            # The file is damaged, or was just removed with a database that another process
            # replaced.
            with suppress(duckdb.Error):
                self._attach(path, f"derived_{number}")
        for name in self._empty:
            connection.execute(view_of_table(FILLED, name, f"{NAME}.{DERIVED}"))
        self._draft = Draft(connection, database) if database else None
        if self._draft is not None:
            connection.execute("SET GLOBAL allowed_paths = ?", [self._draft.paths])
            # For a session that is not closed.
            self._finalizer = weakref.finalize(
                self, _finish_unless_used, self._draft, connections
            )

    def finish(self) -> None:
        """Keep the tables that were filled; no query may run, and none may follow."""
        if self._draft is not None and self._finalizer.detach():
            with self._lock:
                self._draft.finish()

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
        self._connections.add(cursor)
        cursor.execute(f"SET search_path = '{NAME},{VIEWS_NAME}'")
        return cursor

    def _compute(self, name: str, listener: Listener, trace: Session) -> None:
        rows: pl.DataFrame
        if query := computed_tables()[name]:
            rows = trace.query_frame(query)
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
        if (draft := self._draft) and draft.is_usable and names.isdisjoint(self._not_kept):
            try:
                draft.attach()
                self._create_in(_IN_DRAFT, cursor, names, listener, rows)
            except (OSError, duckdb.IOException) as error:
                draft.give_up(error)
            else:
                return
        self._create_in(_IN_MEMORY, cursor, names & self._empty, listener, rows)

    def _create_in(
        self,
        schema: str,
        cursor: duckdb.DuckDBPyConnection,
        names: set[str],
        listener: Listener,
        rows: pl.DataFrame | None,
    ) -> None:
        ordered = [name for name in derived_tables() if name in names]
        if rows is not None and not rows.is_empty():
            cursor.register("_rows", rows)
        for i, name in enumerate(ordered):
            listener("computing tables", i / len(ordered))
            table = f"{schema}.{name}"
            # It can remain of a query that was interrupted.
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            if rows is None:
                cursor.execute(create_in(schema, derived_tables()[name]))
            else:
                empty = f"{NAME}.{DERIVED}.{name}"
                cursor.execute(f"CREATE TABLE {table} AS FROM {empty} LIMIT 0")
                if not rows.is_empty():  # it has no columns then
                    cursor.execute(f"INSERT INTO {table} BY NAME FROM _rows")
            # Before the next table, which can read this one.
            cursor.execute(view_of_table(FILLED, name, schema))
            self._empty.discard(name)

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
