"""Data that several topics of the report share: totals, workers, load and samples over time.

:func:`query` is the only function here that queries the trace.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

from roast_analyze.errors import TraceError
from roast_analyze.figures.labels import worker_name
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import POINT_LIMIT
from roast_analyze.report import run as runs
from roast_analyze.report.tables import Source
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.open.session import Session
    from roast_analyze.open.time_range import TimeRange
    from roast_analyze.report.section import Section

#: View ``workers``, and whether a worker was lost.
WORKERS_QUERY: Final = (
    # A worker process that restarts under its old address was lost only once. The failure
    # and the removal carry times of different hooks, a little apart.
    "SELECT workers.*, EXISTS (FROM failures WHERE what = 'worker lost' "
    "AND failures.worker = workers.worker "
    "AND failures.t >= coalesce(workers.added_t, '-infinity') "
    "AND abs(failures.t - workers.removed_t) < 1) AS lost FROM workers"
)
#: Dask's numeric names in their order, then other names by time.
WORKERS_ORDER: Final = "try_cast(name AS BIGINT) NULLS LAST, added_t, worker"
#: Means of quantities that fluctuate, maxima of those whose peaks matter.
_WORKER_SAMPLES: Final = (
    "SELECT worker, server_id, min(t) AS t, count(*) AS samples, "
    "avg(cpu_percent) AS cpu_percent, avg(executing) AS executing, "
    "max(memory_bytes) AS memory_bytes, max(memory_limit_bytes) AS memory_limit_bytes, "
    "max(spilled_bytes) AS spilled_bytes FROM worker_samples "
    "GROUP BY worker, server_id, floor((t - $start_t) / $width) ORDER BY t, worker"
)


@dataclass(frozen=True)
class Context(Source):
    """Data that several topics share."""

    chosen: ClassVar[str] = "those with the most compute time"

    #: Name of the file or folder, without its parent.
    trace_name: str
    run: runs.Run
    recording: runs.Recording
    #: View ``workers`` with one more column, ``lost``.
    workers: pl.DataFrame
    #: View ``concurrency``: t, seconds, executing, nthreads, ready and waiting.
    load: pl.DataFrame
    #: Some columns of this view.
    cluster_samples: pl.DataFrame
    #: View ``worker_samples`` by buckets of equal length; ``samples`` is their number in the
    #: bucket.
    worker_samples: pl.DataFrame
    #: The time range that the report covers, if it is not the whole run.
    time_range: TimeRange | None = None

    @property
    def start_t(self) -> float:
        """Start of the recording or of the time range, seconds since the epoch."""
        return self.run.start_t or 0.0

    @property
    def axis(self) -> TimeAxis:
        """Time axis of the figures."""
        return TimeAxis(self.start_t, self.run.stop_t or 0.0)

    @property
    def buckets(self) -> dict[str, float]:
        """Start and width of the buckets of :attr:`load`, and the number of the last one."""
        if self.load.is_empty():
            return {"begin_t": 0.0, "width": 1.0, "last": 0}
        begin_t, seconds = self.load.select("t", "seconds").row(0)
        return {"begin_t": begin_t, "width": seconds, "last": self.load.height - 1}

    @property
    def options(self) -> str:
        """Options that restrict a command to the same time range."""
        options = self.time_range.options if self.time_range else ""
        return f" {options}" if options else ""

    @cached_property
    def worker_names(self) -> dict[str, str]:
        """Addresses of workers and the names shown for them, in the order of the table."""
        return {row["worker"]: worker_name(row) for row in self.workers.iter_rows(named=True)}

    def absent(self, section: Section, text: str, hint: str = "") -> Section:
        """Return a section without records: with the reason, and the code that records them.

        In a time range, there can be such records outside of it.
        """
        if self.time_range:
            text, hint = "The time range contains no records for this section.", ""
        return replace(section, empty=text, hint=hint)

    def view_command(self, view: str) -> str:
        """Return the command that shows a view in a terminal."""
        return (
            f"roast-analyze view {shlex.quote(visible(self.trace_name))} {view}{self.options}"
        )


def query(trace: Session) -> Context:
    """Query the shared data.

    Raises
    ------
    TraceError
        If several traces are open, whose numbers cannot be those of one run.
    """
    [(traces,)] = trace.rows("SELECT count(DISTINCT trace_id) FROM trace_info")
    if traces > 1:
        raise TraceError(
            f"a report and a timeline describe one run, and {traces} traces are open: open "
            "one, or compare them with roast-analyze TRACE TRACE --html FILE"
        )
    run = runs.query_run(trace)
    axis = TimeAxis(run.start_t or 0.0, run.stop_t or 0.0)
    return Context(
        trace_name=trace.path.name or str(trace.path),
        time_range=next(iter(trace.time_ranges), None),
        run=run,
        recording=runs.query_recording(trace),
        workers=trace.sql(f"{WORKERS_QUERY} ORDER BY {WORKERS_ORDER}").pl(),
        load=trace.sql(
            "SELECT t, seconds, executing, nthreads, queued + no_worker AS ready, waiting "
            "FROM concurrency ORDER BY t"
        ).pl(),
        cluster_samples=trace.sql(
            "SELECT t, nthreads, cpu_percent, memory_bytes, memory_limit_bytes, managed_bytes, "
            "spilled_bytes FROM cluster_samples ORDER BY t"
        ).pl(),
        # The buckets are those of the curves, so that no more rows leave the database than
        # points are drawn.
        worker_samples=trace.sql(
            _WORKER_SAMPLES,
            {"start_t": axis.start_t, "width": axis.span_seconds / POINT_LIMIT},
        ).pl(),
    )
