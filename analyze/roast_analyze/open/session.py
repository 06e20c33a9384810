"""An opened trace: one connection per query, each of which can only read the trace.

DuckDB enforces what a query may do: external access is off and the configuration is locked
before the first query, and each query runs in a read-only transaction.

DuckDB refuses a second call on a connection that is busy or whose result has not been read to
its end. So each query gets its own connection to the same database, which lives as long as
its result. That makes a session safe to use from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar
from weakref import WeakSet

import duckdb

from roast_analyze.errors import NoRoom, NotATrace, QueryError, TraceNotFound, first_paragraph
from roast_analyze.open import user_views
from roast_analyze.open.database import as_trace_error, open_database
from roast_analyze.open.derived_tables import DerivedTables
from roast_analyze.open.memory_limit import limit_bytes
from roast_analyze.open.queries import check_query, explain_error
from roast_analyze.open.remote import at_hand, shown_name
from roast_analyze.open.tables import quoted
from roast_analyze.open.time_range import limit_to_time_range
from roast_analyze.open.views import NAME, check_view_name, describe_views
from roast_schemas.documentation import docs

if TYPE_CHECKING:
    import os

    import polars as pl

    from roast_analyze.open.database import Listener
    from roast_analyze.open.time_range import TimeRange
    from roast_analyze.open.views import View

#: Set for the whole database, because connections do not inherit local settings.
_RESTRICTIONS: Final = (
    "SET GLOBAL python_enable_replacements = false",  # no variables of the caller
    "SET GLOBAL enable_external_access = false",  # no files, network, extensions
    "SET GLOBAL lock_configuration = true",
)

#: Time between attempts to close a connection whose query was interrupted.
_POLL_SECONDS: Final = 0.01


_Result = TypeVar("_Result")

#: Names of columns, and rows.
ColumnsAndRows = tuple[list[str], list[tuple[Any, ...]]]


def _close(connection: duckdb.DuckDBPyConnection) -> None:
    """Close a connection after interrupting its query."""
    while True:
        try:
            connection.close()
        except duckdb.ResourceInUseException:
            connection.interrupt()
            time.sleep(_POLL_SECONDS)
        else:
            return


class Session:
    """One or more opened traces; the parameters are those of :class:`roast_analyze.Trace`."""

    #: Names of views that are stored, so that they need no other table.
    _stored: ClassVar[Sequence[str]] = ()

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        cache: bool = True,
        memory_limit: str | int | None = None,
        views: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        unsafe: bool = False,
        start: float | str | None = None,
        stop: float | str | None = None,
        session: int | None = None,
        progress: Callable[[str], AbstractContextManager[Listener]] = (
            lambda _stage: nullcontext(lambda _stage, _share: None)
        ),
    ) -> None:
        if not paths:
            raise TraceNotFound("no trace given: name a trace file or a folder of segments")
        memory_bytes = limit_bytes(memory_limit)
        try:
            with (
                progress("reading") as listener,
                at_hand(paths, cache=cache, listener=listener) as self.paths,
            ):
                self.path = self.paths[0]
                self._shown_names = [shown_name(path) for path in self.paths]
                self._connection = self._open(self.paths, cache, memory_bytes, listener)
        except duckdb.OutOfMemoryException as error:
            raise NoRoom(
                f"cannot read {self._shown_names[0]!r} in {memory_bytes / 2**20:.0f} MiB of "
                f"memory ({first_paragraph(error)}): allow more with --memory-limit "
                f"{docs('reference/cache')}"
            ) from None
        except duckdb.Error as error:
            raise NotATrace(
                f"cannot read {self._shown_names[0]!r}: {first_paragraph(error)} "
                f"{docs('reference/trace-format')}"
            ) from None
        self._safe = not unsafe
        # Weak, so that a connection is closed as soon as its result is no longer used.
        self._connections: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()
        self._lock = threading.Lock()
        self.time_ranges: tuple[TimeRange, ...] = ()
        try:
            self._derived = DerivedTables(
                self._connection, self._connections, progress, self._stored, self._database()
            )
            if start is not None or stop is not None or session is not None:
                self._derived.limit_to_time_range(self)
                with progress("selecting the range") as listener:
                    self.time_ranges = limit_to_time_range(
                        self._connection, start, stop, listener, session=session, cache=cache
                    )
            if self._safe:
                for statement in _RESTRICTIONS:
                    self._connection.execute(statement)
            created = user_views.create(self._connection, views, safe=self._safe)
            self._user_views = tuple(name for name in created if not name.startswith("_"))
            if created:
                self._derived.read_users_views()
            [(self._search_path,)] = self._connection.execute(
                "SELECT current_setting('search_path')"
            ).fetchall()
        except BaseException:
            self._connection.close()
            raise

    def _open(
        self, paths: Sequence[Path], cache: bool, memory_bytes: int, listener: Listener
    ) -> duckdb.DuckDBPyConnection:
        """Open the database with the views; a subclass can open another one."""
        return open_database(paths, cache=cache, memory_bytes=memory_bytes, listener=listener)

    def _database(self) -> Path | None:
        """Return the path beside which derived tables are kept; None for memory."""
        [(path,)] = self._connection.execute(
            "SELECT path FROM duckdb_databases() WHERE database_name = ?", [NAME]
        ).fetchall()
        return Path(path) if path else None

    def sql(
        self, query: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Run a query in DuckDB's SQL.

        The result is computed each time it is converted.

        Parameters
        ----------
        query : str
            A statement that returns rows, such as ``SELECT … FROM task_runs``.
        parameters : mapping or sequence, optional
            Values of ``$name`` or ``?`` in the query.

        Returns
        -------
        duckdb.DuckDBPyRelation
            Convert it with ``.pl()``, ``.df()``, ``.to_arrow_table()``, ``.fetchall()``, ….
            If that fails or is interrupted, run the query again.

        Raises
        ------
        QueryError
            If it is not one query, if parameters are missing or unused, or if DuckDB refuses
            it. Errors while the result is computed are ``duckdb.Error``; :meth:`explain`
            converts them.
        NoRoom
            If a table that the query needs takes more memory than the limit.
        """
        relation = self._run(
            query,
            parameters,
            lambda connection, _: connection.sql(query, params=parameters),
        )
        if relation is None:
            raise QueryError(f"not a query: {query[:100]!r}; use SELECT or FROM")
        return relation

    def rows(
        self, query: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run a query once, and return its rows.

        The result is that of ``sql(query, parameters).fetchall()``, which plans the query
        twice; planning takes longer than running most queries of a small trace.

        Parameters
        ----------
        query, parameters
            As for :meth:`sql`.

        Raises
        ------
        QueryError
            As for :meth:`sql`, and if the result cannot be computed.
        NoRoom
            If the query takes more memory than the limit.
        """
        return self.columns_and_rows(query, parameters)[1]

    def columns_and_rows(
        self, query: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> ColumnsAndRows:
        """Run a query once, as :meth:`rows`; return its column names and rows."""

        def run(
            connection: duckdb.DuckDBPyConnection, parsed: str | duckdb.Statement
        ) -> ColumnsAndRows:
            rows = connection.execute(parsed, parameters).fetchall()
            return [name for name, *_ in connection.description or ()], rows

        return self._run(query, parameters, run)

    def query_frame(
        self, query: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> pl.DataFrame:
        """Return the rows of a query as a Polars frame.

        The result is that of ``sql(query, parameters).pl()``, which imports pyarrow.
        """
        import polars as pl

        return pl.DataFrame(self.sql(query, parameters))

    def _run(
        self,
        query: str,
        parameters: Mapping[str, object] | Sequence[object] | None,
        run: Callable[[duckdb.DuckDBPyConnection, str | duckdb.Statement], _Result],
    ) -> _Result:
        """Run a query that is allowed, after filling the tables that it needs.

        `run` gets the parsed query, or its text if that is several statements.
        """
        connection = self._connect()
        try:
            statements = connection.extract_statements(query)
            check_query(statements, parameters, safe=self._safe)
            self._fill_tables(query)
            if self._safe:
                connection.execute("BEGIN TRANSACTION READ ONLY")
            return run(connection, statements[0] if len(statements) == 1 else query)
        except duckdb.OutOfMemoryException as error:
            raise as_trace_error(error) from None
        except duckdb.Error as error:
            raise self.explain(error, query) from None

    def _fill_tables(self, query: str) -> None:
        """Fill the tables that a query refers to."""
        self._derived.fill(query, self)

    def explain(self, error: duckdb.Error, query: str = "") -> QueryError:
        """Return an error with the problem of a query, and its place in the text.

        Parameters
        ----------
        error : duckdb.Error
            Raised while a result was computed.
        query : str, optional
            Text of the query.
        """
        with self._connect() as connection:
            lines_before = 0
            if "\n\nLINE " not in str(error):
                # Errors of relations do not contain the place; those of prepared statements do.
                try:
                    if len(connection.extract_statements(query)) == 1:
                        # The query begins on the second line, so that columns are counted from
                        # its start.
                        connection.execute(f"PREPARE placed AS\n{query}")
                except duckdb.Error as placed:
                    if str(placed).startswith(str(error)):
                        error, lines_before = placed, 1
            with self._derived.unchanged:
                views = describe_views(connection, self._user_views)
        return explain_error(error, query, views, safe=self._safe, lines_before=lines_before)

    def view(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return a view as a relation; raise UnknownView if no view has this name."""
        check_view_name(name, self._user_views)
        return self.sql(f"FROM {quoted(name)}")

    def frame(self, view: str) -> pl.DataFrame:
        """Return a view as a Polars frame; raise UnknownView if no view has this name."""
        import polars as pl

        return pl.DataFrame(self.view(view))

    def views(self) -> list[View]:
        """Return the public views with their descriptions, the user's own views last."""
        with self._connect() as connection, self._derived.unchanged:
            return describe_views(connection, self._user_views)

    def close(self) -> None:
        """Close the trace, and keep the tables that were filled in the cache.

        Running queries are interrupted; relations become unusable.
        """
        with self._lock:
            for connection in [*self._connections]:
                _close(connection)
            self._derived.finish()
            _close(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Trace({', '.join(map(repr, self._shown_names))})"

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """Return a new connection to the database; raise QueryError if it is closed."""
        with self._lock:
            try:
                connection = self._connection.cursor()
            except duckdb.ConnectionException:
                raise QueryError("the trace is closed: open it again") from None
            self._connections.add(connection)
        # A cursor does not inherit the search path.
        connection.execute(f"SET search_path = '{self._search_path}'")
        return connection
