"""A trace, opened: named views over its records, and answers to queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import duckdb

from roast_analyze.database import documented_database, open_database
from roast_analyze.errors import NoRoom, NotATrace, QueryError, TraceNotFound, one_line
from roast_analyze.memory import limit_bytes
from roast_analyze.views import describe_views, known_view

if TYPE_CHECKING:
    from types import TracebackType

    import polars as pl

    from roast_analyze.database import Listener
    from roast_analyze.flamegraph import Flamegraph
    from roast_analyze.views import View


class Trace:
    """A recorded trace, or several, open for questions.

    A trace is parsed once: typed tables of a large one lie in a cache, where the next
    opening finds them, and grow as the trace grows. Once it is open nothing that is asked
    can touch a file: the database is closed to the outside.

    Parameters
    ----------
    *paths : path-like
        Trace files (``.jsonl``, ``.jsonl.zst``, ``.jsonl.gz``), folders of segments, or
        patterns for either. Several traces are told apart by the column ``trace_id``.
    cache : bool, optional
        Keep the tables of a large trace for the next time.
    memory_limit : str or int, optional
        What the database may take of the memory, such as ``"1GiB"``; it uses the disk for
        more. If not given, 60 % of what is free, and at most 4 GiB.
    listener : callable, optional
        Is told while the trace is read what is being done, and how much of that, from 0
        to 1.

    Attributes
    ----------
    path : Path
        The first of the paths.
    paths : tuple of Path

    Raises
    ------
    TraceError
        If there is no trace, or none that can be read; the subclasses in
        :mod:`roast_analyze.errors` tell which.
    """

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        cache: bool = True,
        memory_limit: str | int | None = None,
        listener: Listener = lambda _stage, _share: None,
    ) -> None:
        if not paths:
            raise TraceNotFound("no trace is named; name a trace file or a folder of segments")
        self.paths = tuple(Path(path) for path in paths)
        self.path = self.paths[0]
        self._connection = _opened(self.paths, cache, limit_bytes(memory_limit), listener)
        try:
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
        return f"Trace({', '.join(repr(str(path)) for path in self.paths)})"


def documented_views() -> list[View]:
    """List the public views with what they mean, without a trace."""
    with documented_database() as connection:
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


def _opened(
    paths: tuple[Path, ...], cache: bool, memory_bytes: int, listener: Listener
) -> duckdb.DuckDBPyConnection:
    try:
        return open_database(paths, cache=cache, memory_bytes=memory_bytes, listener=listener)
    except duckdb.OutOfMemoryException as error:
        raise NoRoom(
            f"reading {str(paths[0])!r} takes more than {memory_bytes / 2**20:.0f} MiB of "
            f"memory: {one_line(error)}; allow more with --memory-limit"
        ) from None
    except duckdb.Error as error:
        raise NotATrace(f"{str(paths[0])!r} cannot be read: {one_line(error)}") from None
