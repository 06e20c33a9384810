"""A trace, opened: named views over its records, and answers to queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import duckdb

from roast_analyze.errors import NotATrace, QueryError, one_line
from roast_analyze.load import create_tables, read_trace
from roast_analyze.views import create_views, describe_views, known_view

if TYPE_CHECKING:
    from types import TracebackType

    import polars as pl

    from roast_analyze.flamegraph import Flamegraph
    from roast_analyze.views import View


class Trace:
    """A recorded trace, open for questions.

    The whole trace is read into memory when it is opened. After that nothing that is asked
    can touch a file: the database is closed to the outside.

    Parameters
    ----------
    path : path-like
        A trace file (``.jsonl``, ``.jsonl.zst``, ``.jsonl.gz``) or a folder of segments.

    Attributes
    ----------
    path : Path

    Raises
    ------
    TraceError
        If there is no trace, or none that can be read; the subclasses in
        :mod:`roast_analyze.errors` tell which.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection = _connect()
        try:
            _read(self._connection, self.path)
            create_views(self._connection)
            self._close_to_the_outside()
        except BaseException:
            self._connection.close()
            raise

    def _close_to_the_outside(self) -> None:
        """Let queries see the trace and nothing else: no files, no Python variables."""
        for setting in (
            "enable_external_access = false",
            "python_enable_replacements = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")

    def sql(
        self,
        query: str,
        parameters: Mapping[str, object] | Sequence[object] | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Ask a question in DuckDB's SQL.

        Parameters
        ----------
        query : str
            A statement that gives rows, such as ``SELECT … FROM task_runs``.
        parameters : mapping or sequence, optional
            Values for ``$name`` or ``?`` in the query.

        Returns
        -------
        duckdb.DuckDBPyRelation
            Turn it into what you need: ``.pl()``, ``.df()``, ``.fetchall()``, ….

        Raises
        ------
        QueryError
            If it is not one query, or DuckDB refuses it.
        """
        try:
            _refuse_what_is_no_query(self._connection.extract_statements(query))
            relation = self._connection.sql(query, params=parameters)
        except duckdb.Error as error:
            raise QueryError(one_line(error)) from None
        if relation is None:
            raise QueryError(f"the query gives no rows: {query[:100]!r}")
        return relation

    def view(self, name: str) -> duckdb.DuckDBPyRelation:
        """Give a view as a relation.

        Raises
        ------
        UnknownView
            If no view has the name.
        """
        return self.sql(f"FROM {known_view(name)}")

    def frame(self, view: str) -> pl.DataFrame:
        """Give a view as a polars frame.

        Raises
        ------
        UnknownView
            If no view has the name.
        """
        frame: pl.DataFrame = self.view(view).pl()
        return frame

    def views(self) -> list[View]:
        """List the public views with what they mean."""
        return describe_views(self._connection)

    def flamegraph(
        self,
        worker: str | None = None,
        prefix: str | None = None,
        start: float | None = None,
        stop: float | None = None,
        baseline: Flamegraph | None = None,
    ) -> Flamegraph:
        """Show where the time went inside tasks, by the samples of Dask's profiler.

        Parameters
        ----------
        worker : str, optional
            Address or name of a worker, or ``scheduler`` for the scheduler's own event loop.
        prefix : str, optional
            Key prefix of the tasks.
        start, stop : float, optional
            Stretch of time in seconds since the start of the recording. A slice of the
            profile belongs to it if its middle does.
        baseline : Flamegraph, optional
            One to compare with: of another trace, worker or stretch of time.

        Returns
        -------
        Flamegraph
            ``.stacks`` is a polars frame, ``.figure`` a plotly figure.

        Raises
        ------
        TraceError
            If there is no such worker, prefix or stretch of time.
        """
        from roast_analyze.flamegraph import Flamegraph, stacks_of

        stacks = stacks_of(self, worker=worker, prefix=prefix, start=start, stop=stop)
        return Flamegraph(stacks, None if baseline is None else baseline.stacks)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the report: one HTML page that needs nothing else.

        Parameters
        ----------
        path : path-like
            File to write; an older one is replaced.
        title : str, optional
            Heading of the page; the name of the trace if not given.

        Returns
        -------
        Path
            Where the page lies.
        """
        from roast_analyze.report import write_report

        return write_report(self, Path(path), title=title)

    def close(self) -> None:
        """Let go of the memory. Relations of this trace can no longer be used."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Trace({str(self.path)!r})"


def documented_views() -> list[View]:
    """List the public views with what they mean, without a trace."""
    with _connect() as connection:
        create_tables(connection)
        create_views(connection)
        return describe_views(connection)


def _refuse_what_is_no_query(statements: list[duckdb.Statement]) -> None:
    if len(statements) > 1:
        raise QueryError(f"one query at a time, not {len(statements)}")
    # DESCRIBE, SHOW and the like count as SELECT, PIVOT as MULTI.
    queries = (
        duckdb.StatementType.SELECT,
        duckdb.StatementType.EXPLAIN,
        duckdb.StatementType.MULTI,
    )
    for statement in statements:
        if statement.type not in queries:
            name = statement.type.name.replace("_", " ")
            raise QueryError(f"{name} is no query; ask with SELECT, DESCRIBE or SUMMARIZE")


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute("SET enable_progress_bar = false")
    # This rewrite of `row_number() … = 1` fails on rowid in 2.0.0, and loses rows in other
    # versions (duckdb/duckdb#23677, #24363, #24710).
    connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    return connection


def _read(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        read_trace(connection, path)
    except duckdb.Error as error:
        raise NotATrace(f"{str(path)!r} cannot be read: {one_line(error)}") from None
