"""Activities: the time of workers from Dask's fine performance metrics.

The names of contexts and activities are those of Dask. Time in the context execute is that of
tasks, which occupy a thread; time in other contexts, such as transfers, overlaps with it.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_query
from roast_analyze.report.section import Plot, Section
from roast_analyze.report.topics.activities import figures
from roast_analyze.safe_text import named

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of rows of each table.
ROWS: Final = 100
#: Maximum number of activities in the first sentence, and minimum share of all but the first.
NAMED: Final = 4
LEAST_NAMED_SHARE: Final = 0.01

_TOTALS: Final = (
    "SELECT context, activity, sum(delta) FILTER (unit = 'seconds') AS seconds, "
    "seconds / (SELECT sum(threads.seconds) FROM _task_threads AS threads "
    "WHERE context = 'execute') "
    "AS thread_share, "
    "try_cast(sum(delta) FILTER (unit = 'bytes') AS BIGINT) AS bytes, "
    "try_cast(sum(delta) FILTER (unit = 'count') AS BIGINT) AS count "
    "FROM _activity_deltas GROUP BY context, activity"
)
#: Columns of view ``activities`` that are added up.
_SUMS: Final = columns(
    "seconds cpu_seconds noncpu_seconds serialize_seconds deserialize_seconds "
    "(compress_seconds) (decompress_seconds) disk_seconds network_seconds failed_seconds "
    "(other_seconds) (memory_read_bytes) (disk_read_bytes) (disk_write_bytes)"
)
_SUMMED: Final = ", ".join(
    f"sum({column.name}){'::BIGINT' if column.kind == 'bytes' else ''} AS {column.name}"
    for column in _SUMS
)
_PREFIXES: Final = (
    f"SELECT prefix, {_SUMMED} FROM activities WHERE context = 'execute' GROUP BY prefix"
)
_WORKERS: Final = f"SELECT worker, {_SUMMED} FROM activities GROUP BY worker"
_BY_PREFIX: Final = (
    "SELECT prefix, context, activity, sum(delta) AS seconds FROM _activity_deltas "
    "WHERE unit = 'seconds' AND context = 'execute' GROUP BY ALL ORDER BY ALL"
)
_BY_WORKER: Final = (
    "SELECT worker, context, activity, sum(delta) AS seconds FROM _activity_deltas "
    "WHERE unit = 'seconds' GROUP BY ALL ORDER BY ALL"
)

_CONTEXTS: Final = {
    "gather-dep": "receiving results (gather-dep)",
    "get-data": "sending results (get-data)",
    "p2p": "shuffling (p2p)",
    "memory-monitor": "spilling results (memory-monitor)",
}
_TOTALS_COLUMNS: Final = columns(
    "context activity seconds thread_share bytes count",
    descriptions={
        "seconds": "Time of all workers.",
        "thread_share": "Share of the thread time of all workers and of seceded tasks. "
        "Empty for work outside of tasks.",
        "bytes": "Sum of the metrics in bytes.",
        "count": "Sum of the metrics that are counts.",
    },
)


@dataclass(frozen=True)
class Activities:
    """Time of workers by activity; the frames have the columns of :mod:`.figures`."""

    #: context, activity, seconds, thread_share (of the thread time of all workers), bytes and
    #: count; the most time first.
    totals: Listing
    #: View ``activities``, added up by prefix of tasks and by worker.
    prefixes: Listing
    workers: Listing
    by_prefix: pl.DataFrame
    by_worker: pl.DataFrame


def query(trace: Session) -> Activities:
    """Query the activities of a run."""
    order = "seconds DESC NULLS LAST"
    return Activities(
        totals=list_query(trace, "fine_metrics", _TOTALS, f"{order}, context, activity", ROWS),
        prefixes=list_query(trace, "activities", _PREFIXES, f"{order}, prefix", ROWS),
        workers=list_query(trace, "activities", _WORKERS, f"{order}, worker", ROWS),
        by_prefix=trace.sql(_BY_PREFIX).pl(),
        by_worker=trace.sql(_BY_WORKER).pl(),
    )


def section(found: Activities, context: Context) -> Section:
    """Build the section."""
    section = Section("activities", "Activities", "Activities")
    if found.by_worker.is_empty():
        return context.absent(
            section,
            "No fine performance metrics were recorded: no task ended, or the settings "
            "excluded them (kind fine_metric).",
        )
    kinds = figures.rank(found.by_worker)
    plots = []
    for spent, column, name, whose, query in (
        (found.by_prefix, "prefix", "activity-prefixes", "the tasks of each prefix",
         _BY_PREFIX),
        (found.by_worker, "worker", "activity-workers", "each worker", _BY_WORKER),
    ):  # fmt: skip
        if spent.height:
            plots.append(
                Plot(
                    figures.by_name(spent, column, kinds, context.worker_names),
                    name=name,
                    title=f"Activities by {column}",
                    description=f"Stacked bars: the time of {whose} by activity.",
                    query=query,
                    command=context.view_command("fine_metrics"),
                )
            )
    of_prefix, of_worker = ((*columns(name), *_SUMS) for name in ("prefix", "worker"))
    chosen = "those with the most time"
    tables = context.tables(
        ("activities", "Activities", found.totals, _TOTALS_COLUMNS, chosen),
        ("activity-prefixes", "Activities by prefix", found.prefixes, of_prefix, chosen),
        ("activity-workers", "Activities by worker", found.workers, of_worker, chosen),
        has_view=False,
    )
    return replace(
        section,
        sentences=_sentences(found.totals.rows),
        plots=plots,
        tables=tables,
    )


def _sentences(totals: pl.DataFrame) -> list[str]:
    """Describe the time of tasks by activity, and that outside of tasks by context."""
    sentences = []
    spent = totals.filter(pl.col("seconds") > 0)
    tasks = spent.filter(pl.col("context") == "execute")
    if tasks.height:
        seconds, shares, of_threads = tasks["seconds"], tasks["thread_share"], ""
        if shares.null_count() == 0:
            of_threads = f", {q.share(float(shares.sum()))} of the thread time of all workers"
        else:
            shares = seconds / seconds.sum()
        largest = [
            f"{named(activity, '(unknown)')} {q.share(share)}"
            for n, (activity, share) in enumerate(zip(tasks["activity"], shares, strict=True))
            if n == 0 or (n < NAMED and share >= LEAST_NAMED_SHARE)
        ]
        more = q.and_more(tasks.height, len(largest))
        sentences.append(
            f"Dask's fine performance metrics report {q.seconds(float(seconds.sum()))} in "
            f"tasks{of_threads}: {q.series(largest)}{more}. In Dask's names, thread-cpu is CPU "
            "time of tasks, thread-noncpu their other time (input and output, locks, the "
            "GIL); executor, offload and other are its overhead."
        )
    others = (
        spent.filter(pl.col("context") != "execute")
        .group_by("context")
        .agg(pl.col("seconds").sum())
        .sort("seconds", "context", descending=[True, False])
    )
    if others.height:
        parts = [
            f"{_CONTEXTS.get(context, named(context, '(unknown)'))} for {q.seconds(seconds)}"
            for context, seconds in others.iter_rows()
        ]
        sentences.append(f"Outside of tasks, workers were {q.series(parts)}.")
    return sentences
