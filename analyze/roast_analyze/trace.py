"""A trace, opened: named views over its records, and answers to queries.

The views are the files ``sql/<topic>/<name>.sql``. Each begins with a line
``-- Needs: a, b`` that names the files that must come before it. Names that begin with
``_`` are building blocks that only other files use; the others are public, and their
columns and comments are an interface.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Self

import duckdb

from roast_analyze.errors import NotATrace, QueryError, UnknownView, one_line
from roast_analyze.load import create_tables, read_trace

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from types import TracebackType

    import polars as pl

    from roast_analyze.flamegraph import Flamegraph

#: Topics, in the order in which views are listed.
TOPICS = ("trace", "tasks", "workers", "coffea", "spans", "profiles")

_NEEDS = "-- Needs: "


@dataclass(frozen=True)
class Column:
    """A column of a view: its name, its DuckDB type and what it means."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True)
class View:
    """A public view: its name, what a row of it is, and its columns in order."""

    name: str
    comment: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class _Definition:
    """A file below ``sql/``."""

    name: str
    sql: str
    needs: tuple[str, ...]


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
            _create_views(self._connection)
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
        return self.sql(f"FROM {_known(name)}")

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
        return _views(self._connection)

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
        _create_views(connection)
        return _views(connection)


@cache
def view_names() -> tuple[str, ...]:
    """Name the public views, in the order in which they are listed."""
    return tuple(Path(file.name).stem for file in _sql_files() if not file.name.startswith("_"))


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


def _create_views(connection: duckdb.DuckDBPyConnection) -> None:
    for definition in _definitions():
        connection.execute(definition.sql)


def _views(connection: duckdb.DuckDBPyConnection) -> list[View]:
    comments = dict(
        connection.execute(
            "SELECT view_name, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    )
    columns: dict[str, list[Column]] = {name: [] for name in comments}
    for view, *column in connection.execute(
        "SELECT table_name, column_name, data_type, coalesce(comment, '') "
        "FROM duckdb_columns() WHERE list_contains($views, table_name) "
        "AND schema_name = 'main' ORDER BY table_name, column_index",
        {"views": list(comments)},
    ).fetchall():
        columns[view].append(Column(*column))
    return [View(name, comments[name], tuple(columns[name])) for name in view_names()]


def _known(view: str) -> str:
    if view in view_names():
        return view
    near = difflib.get_close_matches(view, view_names(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(view_names())}"
    raise UnknownView(f"no view is named {view!r}; {hint}")


@cache
def _definitions() -> tuple[_Definition, ...]:
    """Read the files below ``sql/``, each after those that it needs."""
    definitions = {d.name: d for d in map(_read_definition, _sql_files())}
    graph = {name: definition.needs for name, definition in definitions.items()}
    return tuple(definitions[name] for name in TopologicalSorter(graph).static_order())


def _sql_files() -> list[Traversable]:
    folder = files("roast_analyze").joinpath("sql")
    return [
        file
        for topic in TOPICS
        for file in sorted(folder.joinpath(topic).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    ]


def _read_definition(file: Traversable) -> _Definition:
    sql = file.read_text(encoding="utf-8")
    needs = sql.partition("\n")[0].removeprefix(_NEEDS)
    names = () if needs == "nothing" else tuple(needs.split(", "))
    return _Definition(Path(file.name).stem, sql, names)
