"""A trace, opened: named views over its records, and answers to queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import duckdb

from roast_analyze.errors import NoRoom, NotATrace, TraceNotFound, one_line
from roast_analyze.open import user_views as own_views
from roast_analyze.open.database import documented_database, open_database
from roast_analyze.open.load import quoted
from roast_analyze.open.memory_limit import limit_bytes
from roast_analyze.open.session import Queries, close_to_the_outside
from roast_analyze.open.time_range import open_excerpts
from roast_analyze.open.views import describe_views, known_view

if TYPE_CHECKING:
    from types import TracebackType

    import polars as pl

    from roast_analyze.errors import QueryError
    from roast_analyze.flamegraph import Flamegraph
    from roast_analyze.open.database import Listener
    from roast_analyze.open.time_range import Excerpt
    from roast_analyze.open.views import View


class Trace:
    """A recorded trace, or several, open for questions, from any thread.

    A trace is parsed once: typed tables of a large one lie in a cache, where the next
    opening finds them, and grow as the trace grows. Once it is open nothing that is asked
    can touch a file, unless it is `unsafe`.

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
    views : path-like or sequence of path-like, optional
        Folders whose ``.sql`` files become views beside ours; a broken one is an error. If
        not given, the user's own: those of the environment variable ``ROAST_VIEWS``, or
        ``~/.config/roast/views``; there a broken one is left out with a warning.
    unsafe : bool
        Whether queries may read and write files, use the network, load extensions and change
        what is there. For queries that you trust, such as one that joins a CSV file.
    start, stop : float or str, optional
        Tell of this stretch of the run only: seconds after its start, before its end if
        negative; or a text such as ``"90s"``, ``"1h30m"``, ``"1:30:00"``, ``"-10m"`` (before
        the end) or ``"2026-08-31T14:05"`` (in the cluster's zone). Attempts that go beyond
        its ends are cut off there; analyze/README.md says which numbers that makes what. The
        views ``loss``, ``trace_info`` and ``environment`` stay whole.
    listener : callable, optional
        Is told while the trace is read what is being done, and how much of that, from 0
        to 1.

    Attributes
    ----------
    path : Path
        The first of the paths.
    paths : tuple of Path
    excerpts : tuple of Excerpt
        Of each trace, in order of ``trace_id``, which stretch it is that is told of, and how
        much of the run lies in it; none if it is the whole.

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
        views: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        unsafe: bool = False,
        start: float | str | None = None,
        stop: float | str | None = None,
        listener: Listener = lambda _stage, _share: None,
    ) -> None:
        if not paths:
            raise TraceNotFound("no trace is named; name a trace file or a folder of segments")
        self.paths = tuple(Path(path) for path in paths)
        self.path = self.paths[0]
        self._connection = _opened(self.paths, cache, limit_bytes(memory_limit), listener)
        self.excerpts: tuple[Excerpt, ...] = ()
        try:
            if start is not None or stop is not None:
                self.excerpts = open_excerpts(self._connection, start, stop, listener)
            if not unsafe:
                close_to_the_outside(self._connection)
            self._own_views = own_views.create(self._connection, views, safe=not unsafe)
        except BaseException:
            self._connection.close()
            raise
        self._queries = Queries(self._connection, self._describe_views, safe=not unsafe)

    def sql(
        self,
        query: str,
        parameters: Mapping[str, object] | Sequence[object] | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Ask a question in DuckDB's SQL.

        The answer is computed when it is turned into something, each time anew.

        Parameters
        ----------
        query : str
            A statement that gives rows, such as ``SELECT … FROM task_runs``.
        parameters : mapping or sequence, optional
            Values for ``$name`` or ``?`` in the query, one for each.

        Returns
        -------
        duckdb.DuckDBPyRelation
            Turn it into what you need: ``.pl()``, ``.df()``, ``.to_arrow_table()``,
            ``.fetchall()``, …. If that fails or is interrupted, ask again.

        Raises
        ------
        QueryError
            If it is not one query, a parameter is missing or not used, or DuckDB refuses it.
            What goes wrong later, while the answer is computed, is a ``duckdb.Error``, of
            which :meth:`explained` makes one.
        """
        return self._queries.ask(query, parameters)

    def explained(self, error: duckdb.Error, query: str = "") -> QueryError:
        """Say of an error that came while an answer was computed what was wrong, and where.

        Parameters
        ----------
        error : duckdb.Error
        query : str, optional
            What was asked.
        """
        return self._queries.explained(error, query)

    def view(self, name: str) -> duckdb.DuckDBPyRelation:
        """Give a view as a relation.

        Raises
        ------
        UnknownView
            If no view has the name.
        """
        return self.sql(f"FROM {quoted(known_view(name, self._own_views))}")

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
        """List the public views with what they mean, ours before the user's own."""
        with self._queries.connect() as connection:
            return self._describe_views(connection)

    def flamegraph(
        self,
        worker: str | None = None,
        prefix: str | None = None,
        start: float | None = None,
        stop: float | None = None,
        baseline: Flamegraph | None = None,
        profiler: Literal["dask", "yappi"] = "dask",
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
        profiler : {'dask', 'yappi'}
            Whose: the samples of Dask's, or all that was imported from Yappi, which lies in
            no stretch of time and has no prefix.

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

        stacks = stacks_of(
            self, worker=worker, prefix=prefix, start=start, stop=stop, profiler=profiler
        )
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
        self._queries.close()

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

    def _repr_html_(self) -> str:
        from roast_analyze.notebook import page_of

        return page_of(self)

    def _describe_views(self, connection: duckdb.DuckDBPyConnection) -> list[View]:
        return describe_views(connection, self._own_views)


def documented_views() -> list[View]:
    """List the public views with what they mean, without a trace."""
    with documented_database() as connection:
        return describe_views(connection)


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
