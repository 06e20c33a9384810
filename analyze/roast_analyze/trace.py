"""The public class :class:`Trace`: an opened trace with its report and its flame graphs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, overload

from roast_analyze.errors import TraceError
from roast_analyze.flamegraph import Flamegraph, stacks_of
from roast_analyze.open.session import Session
from roast_schemas.urls import safe_message

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

    from roast_analyze.notebook import InlineReport

#: Workers of a timeline: those with failures, then the busiest.
_TIMELINE_WORKERS = 100


class Trace(Session):
    """One or more recorded traces, opened for queries from any thread.

    A trace is parsed once: the tables of a large trace are kept in a cache, are reused when it
    is opened again, and grow as the trace grows. Queries cannot access files or the network
    unless `unsafe` is true.

    Parameters
    ----------
    *paths : path-like
        Trace files (``.jsonl``, ``.jsonl.zst``, ``.jsonl.gz``), folders of segments,
        patterns for either, or URLs (docs: how-to/remote). The column ``trace_id``
        identifies the trace of a row.
    cache : bool, optional
        Whether to keep the tables of a large trace for the next time.
    memory_limit : str or int, optional
        Memory limit of the database, such as ``"1GiB"``; it spills to disk beyond it. The
        default is 60 % of the free memory, at most 4 GiB.
    views : path-like or sequence of path-like, optional
        Folders whose ``.sql`` files become views; a broken file is an error. The default is
        the environment variable ``ROAST_VIEWS``, or ``~/.config/roast/views``; a broken file
        there is skipped with a warning.
    unsafe : bool
        Whether queries may read and write files, use the network, load extensions and change
        the database. Use it only for queries that you trust.
    start, stop : float or str, optional
        Time range to read: seconds after the start of the run, or before its end if negative;
        or a text such as ``"90s"``, ``"1h30m"``, ``"1:30:00"``, ``"-10m"`` (before the end)
        or ``"2026-08-31T14:05"`` (in the cluster's time zone). Attempts that cross an end of
        the range are cut there (docs: how-to/time-ranges). The views ``loss``, ``trace_info``
        and ``environment`` are not limited.
    session : int, optional
        Number of a row of the view ``sessions``, from 1, whose time range is read; instead of
        `start` and `stop`.
    progress : callable, optional
        Called with the name of a stage, when the trace is read and when a query needs tables
        that must be computed. It returns a context manager that yields a function, which is
        called with the stage and its finished share, from 0 to 1.

    Attributes
    ----------
    path : Path
        The first of `paths`.
    paths : tuple of Path
        Those of copies for URLs.
    time_ranges : tuple of TimeRange
        Time range of each trace, in the order of ``trace_id``; empty without `start`, `stop`
        and `session`.

    Raises
    ------
    TraceError
        If there is no readable trace; :mod:`roast_analyze.errors` lists the subclasses.
    """

    def core_time(self) -> pl.DataFrame:
        """Return the view ``core_time``: the use of every thread-second."""
        return self.frame("core_time")

    def critical_path(self) -> pl.DataFrame:
        """Return the view ``critical_path``: what the run waited for from start to end."""
        return self.frame("critical_path")

    def findings(self) -> pl.DataFrame:
        """Return the view ``findings``: what made the run slow, and what to change."""
        from roast_analyze.notebook import DisplayedFrame, findings_to_html

        return DisplayedFrame(self.frame("findings"), partial(findings_to_html, self))

    def flamegraph(
        self,
        worker: str | None = None,
        prefix: str | None = None,
        start: float | str | None = None,
        stop: float | str | None = None,
        baseline: Flamegraph | None = None,
        profiler: Literal["dask", "yappi"] = "dask",
    ) -> Flamegraph:
        """Return a flame graph of the time inside tasks: its `stacks` and their `figure`.

        Parameters
        ----------
        worker : str, optional
            Address or name of a worker, or ``scheduler`` for the scheduler's event loop.
        prefix : str, optional
            Key prefix of the tasks.
        start, stop : float or str, optional
            Time range, as for :class:`Trace`. A slice of the profile belongs to it if the
            middle of the slice does.
        baseline : Flamegraph, optional
            Flame graph of another trace, worker or time range to compare with.
        profiler : {'dask', 'yappi'}
            Samples of Dask's profiler, or functions imported from Yappi, which have neither
            a time nor a prefix.

        Raises
        ------
        TraceError
            If there is no such worker, prefix or time range.
        """
        stacks = stacks_of(
            self, worker=worker, prefix=prefix, start=start, stop=stop, profiler=profiler
        )
        return Flamegraph(stacks, None if baseline is None else baseline.stacks)

    def why(self, *bases: Session, details: bool = False) -> pl.DataFrame:
        """Return the terms that add up to the difference between this run and others.

        Parameters
        ----------
        *bases : Trace
            One run, or several runs of the same program, with whose mean this one is compared.
            The spread between several shows what is noise.
        details : bool
            Whether to return one row per dataset, detail of computing a chunk and branch,
            without what is significant.

        Returns
        -------
        pl.DataFrame
            The largest wall time first; see
            :func:`roast_analyze.algorithms.decomposition.summarize` and
            :func:`~roast_analyze.algorithms.decomposition.decompose` for the columns.

        Raises
        ------
        TraceError
            If there is no base, or if one of them consists of several traces.
        TypeError
            If a base is not an opened trace.
        """
        from roast_analyze.notebook import DisplayedFrame, reasons_to_html
        from roast_analyze.report.comparison.reasons import Reasons
        from roast_analyze.run_amounts import query_amounts

        if not bases:
            raise TraceError("no base given: trace.why(other_trace)")
        for base in bases:
            if not isinstance(base, Session):
                message = f"invalid base {base!r}: open it, as with Trace({base!r})"
                raise TypeError(safe_message(message))
        *compared, new = [(run.path.name, query_amounts(run)) for run in (*bases, self)]
        found = Reasons.of(compared, new)
        if details:
            return found.details
        return DisplayedFrame(found.terms, partial(reasons_to_html, found))

    @overload
    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path: ...

    @overload
    def report(self, path: None = None, *, title: str | None = None) -> InlineReport: ...

    def report(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None
    ) -> Path | InlineReport:
        """Write the report, a self-contained HTML page, or display it in a notebook.

        Parameters
        ----------
        path : path-like, optional
            File to write; an existing file is replaced. Without it, an object is returned that
            a notebook displays, and the page becomes a part of the notebook.
        title : str, optional
            Heading of the page; the default is the name of the trace.

        Raises
        ------
        TraceError
            If several traces are open: ``roast-analyze TRACE TRACE --html FILE`` compares them.
        """
        from roast_analyze.report import write_report

        if path is not None:
            return write_report(self, Path(path), title=title)
        from roast_analyze.notebook import InlineReport

        with TemporaryDirectory(prefix="roast-") as folder:
            page = write_report(self, Path(folder) / "report.html", title=title)
            return InlineReport(page.read_text("utf-8"))

    def timeline(self) -> Figure:
        """Return a figure of the computations of a trace by thread over time.

        The longest computations are drawn one by one; all others are added up by thread and
        bucket, so that the size of the figure does not depend on the run.

        Returns
        -------
        plotly.graph_objects.Figure

        Raises
        ------
        TraceError
            If several traces are open.
        """
        from roast_analyze.figures.timeline import timeline
        from roast_analyze.report import context
        from roast_analyze.report.topics.timeline import task_stream

        found = context.query(self)
        stream = task_stream.query(
            self, found, most_bars=2000, most_cells=4000, most_rows=_TIMELINE_WORKERS
        )
        return timeline(
            workers=stream.workers,
            kinds=stream.kinds,
            bars=stream.bars,
            cells=stream.cells,
            marks=stream.marks,
            bucket_seconds=stream.bucket_seconds,
            note=task_stream.describe_omissions(stream, with_transfers=False),
            time=found.axis,
        )

    def what_if(
        self,
        *,
        workers: int | Sequence[int] = (),
        threads: int | Sequence[int] = (),
        chunk_sizes: int | Literal["auto"] | Sequence[int | Literal["auto"]] = (),
        without: str | Sequence[str] = (),
    ) -> pl.DataFrame:
        """Predict the wall time under other conditions, by simulating the recorded run.

        Every combination of the parameters is a scenario, each also with nothing removed.
        Without parameters, 1/4 to 4 times the number of workers are predicted.

        Parameters
        ----------
        workers, threads : int or sequence of int
            Numbers of workers, and of threads per worker.
        chunk_sizes : int, 'auto' or sequence of these
            Events per chunk of a coffea Runner; ``"auto"`` is the recommendation of the view
            ``chunk_costs``. If it has none, a row without a prediction has a note.
        without : str or sequence of str
            What to remove: ``stragglers``, ``failures``, ``transfers``, ``scheduler`` or
            ``client-gaps``; several joined by ``+`` are removed together.

        Returns
        -------
        polars.DataFrame
            One row per trace and scenario, the replay of the recorded run first: workers,
            threads, chunk_size, without, wall_seconds (the most probable one; that of the
            replay has the recorded placement), wall_seconds_min and wall_seconds_max (in which
            a run under these conditions should be; of the replay, a repetition of the run),
            core_seconds, change (relative to the recorded wall time), critical_path_seconds and
            total_work_seconds (lower bounds of the wall time), replay_error (relative
            difference of the replay to the recorded wall time) and placement_error (that of the
            nearest simulation without recorded placement, 0 within these), note, trace_id. If
            only a lower bound is known, wall_seconds and wall_seconds_max are null; if an error
            is above 0.1, nothing is predicted. The note has the reason.

        Raises
        ------
        TraceError
            If a parameter is invalid, or chunk sizes do not apply to the trace.
        """
        from roast_analyze.notebook import DisplayedFrame, predictions_to_html
        from roast_analyze.what_if import predict

        given = (workers, threads, chunk_sizes, without)
        changes: list[Any] = [[it] if isinstance(it, int | str) else it for it in given]
        predictions = predict(self, *changes)
        return DisplayedFrame(predictions, partial(predictions_to_html, predictions))

    def _repr_html_(self) -> str:
        from roast_analyze.notebook import to_html

        return to_html(self)
