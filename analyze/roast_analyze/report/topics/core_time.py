"""The use of the core time: over the run, and by worker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Bar, Figure

from roast_analyze.figures import layout
from roast_analyze.figures.bars import Part, stacked
from roast_analyze.figures.labels import label
from roast_analyze.report import quantities as q
from roast_analyze.report import wall_time
from roast_analyze.report.columns import columns
from roast_analyze.report.core_time_uses import USES
from roast_analyze.report.listing import list_query
from roast_analyze.report.run import (
    WithoutWorkers,
    describe_without_workers,
    query_without_workers,
)
from roast_analyze.report.section import Plot, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context
    from roast_analyze.report.listing import Listing

#: Workers in the figure; the table of workers has all of them.
WORKER_LIMIT: Final = 30

TOTALS: Final = (
    "SELECT category, use, sum(seconds) AS seconds FROM core_time GROUP BY ALL ORDER BY ALL"
)
_OVER_TIME: Final = (
    "SELECT t, use, sum(seconds) AS seconds FROM _core_time GROUP BY ALL ORDER BY ALL"
)
_BY_WORKER: Final = (
    "SELECT worker, category, use, sum(seconds) AS seconds FROM core_time "
    "GROUP BY ALL ORDER BY ALL"
)
_BY_PREFIX: Final = (
    "SELECT prefix, sum(seconds) AS thread_seconds, "
    "thread_seconds / (SELECT sum(seconds) FROM core_time) AS share, "
    "sum(seconds) FILTER (use = 'kept result') AS kept_seconds, "
    "sum(seconds) FILTER (category = 'busy' AND use <> 'kept result') AS other_busy_seconds, "
    "sum(seconds) FILTER (use = 'transfer') AS transfer_seconds, "
    "sum(seconds) FILTER (use = 'dispatch') AS dispatch_seconds "
    "FROM core_time WHERE prefix IS NOT NULL GROUP BY prefix"
)
_COLUMNS: Final = columns(
    "prefix thread_seconds share kept_seconds other_busy_seconds transfer_seconds "
    "dispatch_seconds",
    descriptions={
        "thread_seconds": "Thread time of its tasks.",
        "share": "Share of the core time.",
        "kept_seconds": "Results that were kept.",
        "other_busy_seconds": "Attempts whose result was not kept, deserialization and disk.",
        "transfer_seconds": "Threads that waited for its inputs.",
        "dispatch_seconds": "Threads that waited for it to begin.",
    },
)


@dataclass(frozen=True)
class CoreTime:
    """Totals, and the same by time bucket, worker and prefix."""

    totals: pl.DataFrame
    over_time: pl.DataFrame
    bucket_seconds: float
    by_worker: pl.DataFrame
    by_prefix: Listing
    without_workers: WithoutWorkers
    #: Wall time by state.
    wall_time: Mapping[str, float] = field(default_factory=dict)


def query(trace: Session) -> CoreTime:
    """Query the uses of the core time."""
    widths = trace.rows("SELECT width FROM _core_time_buckets")
    return CoreTime(
        totals=trace.sql(TOTALS).pl(),
        over_time=trace.sql(_OVER_TIME).pl(),
        bucket_seconds=widths[0][0] if widths else 1.0,
        by_worker=trace.sql(_BY_WORKER).pl(),
        by_prefix=list_query(trace, "core_time", _BY_PREFIX, "thread_seconds DESC, prefix", 20),
        without_workers=query_without_workers(trace),
        wall_time=wall_time.query(trace),
    )


def unknown(context: Context) -> str:
    """Explain why the core time is unknown."""
    if not context.run.workers:
        when = "in the time range" if context.time_range else "while this was recorded"
        return f"No worker joined {when}: the core time is unknown."
    if not context.run.wall_seconds:
        return "The recording has no duration, so it has no core time."
    return "The numbers of threads were not recorded: the core time is unknown."


def section(found: CoreTime, context: Context) -> Section:
    """Build the section."""
    section = Section("core-time", "Core time", "Core time")
    if found.totals.is_empty():
        return replace(section, empty=unknown(context))
    workers = found.by_worker["worker"].n_unique()
    without = describe_without_workers(found.without_workers)
    few = f"The {WORKER_LIMIT} workers with the most idle time, of {q.count(workers)}. "
    return replace(
        section,
        sentences=(_sentence(found), *([without] if without else [])),
        plots=(
            Plot(
                over_time(found, context),
                name="core-time",
                title="Use of the threads over time",
                description="Stacked bars over time: the number of threads by what they were "
                "used for.",
                query=_OVER_TIME,
                command=context.view_command("core_time"),
            ),
            Plot(
                by_worker(found, context),
                name="core-time-workers",
                title="Use of the threads by worker",
                description="A stacked bar for each worker: seconds of its threads by what "
                "they were used for.",
                note=f"{few if workers > WORKER_LIMIT else ''}Colors as above.",
                query=_BY_WORKER,
                command=context.view_command("core_time"),
            ),
        ),
        # Without a cluster, chunks have no prefix.
        tables=(
            context.table(
                "core-time",
                "Core time by prefix",
                found.by_prefix,
                _COLUMNS,
                chosen="those with the most thread time",
            ),
        )
        if found.by_prefix.total
        else (),
    )


def over_time(found: CoreTime, context: Context) -> Figure:
    """Draw the number of threads by use, stacked, over time."""
    axis, width = context.axis, found.bucket_seconds
    # The last bucket can end with the recording.
    inside = pl.min_horizontal(width, (context.run.stop_t or 0.0) - pl.col("t"))
    drawn = layout.stacked_threads(axis)
    for use, (words, color) in USES.items():
        rows = found.over_time.filter(pl.col("use") == use)
        if rows.is_empty():
            continue
        drawn.add_trace(
            Bar(
                # The middle of each bucket.
                x=axis.places(rows.with_columns(pl.col("t") + width / 2), "t", 6),
                y=rows.select((pl.col("seconds") / inside).round(4)).to_series().to_list(),
                width=width / axis.unit_seconds,
                name=words,
                marker={"color": color, "line": {"width": 0}},
                hovertemplate=f"%{{y:,.3~g}} threads<br>{words}<br>at %{{x:,.4~g}} {axis.unit}"
                "<extra></extra>",
                meta=layout.columns(x=axis.column, y="threads"),
            )
        )
    return drawn


def by_worker(found: CoreTime, context: Context) -> Figure:
    """Draw a bar of seconds by use for each worker, the one with the most idle time first."""
    idle = pl.col("seconds").filter(pl.col("category") == "idle").sum()
    wide = (
        found.by_worker.pivot("use", index="worker", values="seconds", aggregate_function="sum")
        .fill_null(0.0)
        .join(found.by_worker.group_by("worker").agg(idle.alias("idle seconds")), on="worker")
        .sort("idle seconds", "worker", descending=[True, False])
        .head(WORKER_LIMIT)
    )
    names = context.worker_names
    return stacked(
        [names.get(worker, label(worker)) for worker in wide["worker"]],
        [
            Part(words, wide[use].to_list(), color)
            for use, (words, color) in USES.items()
            if use in wide.columns
        ],
        "thread time (s)",
        90 + 24 * max(wide.height, 2),
        column="worker",
    ).update_layout(showlegend=False)


def _sentence(found: CoreTime) -> str:
    """Name the largest uses other than computing results that were kept."""
    seconds: dict[str, float] = dict(found.totals.select("use", "seconds").iter_rows())
    total = sum(seconds.values())
    kept = seconds.pop("kept result", 0.0)
    named = [
        f"{USES[use].words} ({q.share(part / total)})"
        for use, part in sorted(seconds.items(), key=lambda item: -item[1])[:3]
        if part >= 0.01 * total
    ]
    text = f"{q.share(kept / total)} of the thread time was spent on results that were kept."
    return f"{text} The largest other uses: {q.series(named)}." if named else text
