"""The critical path: what the run waited for, step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Bar, Figure

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import list_frame, list_query
from roast_analyze.report.section import Plot, Section
from roast_analyze.report.task_places import with_places

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context
    from roast_analyze.report.listing import Listing

#: Steps in the figure, the longest ones.
STEP_LIMIT: Final = 2000

#: Rows of each table.
_ROWS: Final = 12

#: Colors of the causes, in the order in which they are shown.
_CAUSES: Final = {
    "compute": palette.RANKED[0],
    "deserialize": palette.ACTIVITY["deserialize"],
    "disk": palette.ACTIVITY["disk"],
    "transfer": palette.ACTIVITY["transfer"],
    "dispatch": palette.RANKED[6],
    "scheduler": palette.RANKED[3],
    "worker": palette.RANKED[7],
    "retry": palette.FAILURE,
    "recompute": palette.RANKED[1],
    "client": palette.OTHER,
    "unknown": "#4C515A",
}

_STEPS: Final = "SELECT * FROM critical_path"
_BY_CAUSE: Final = (
    "SELECT cause, prefix, sum(seconds) AS path_seconds, sum(share) AS path_share, "
    "count(*) AS steps FROM critical_path GROUP BY cause, prefix"
)
_LONGEST: Final = with_places(_STEPS)
_CAUSE_COLUMNS: Final = columns(
    "cause prefix path_seconds path_share steps",
    descriptions={
        "path_seconds": "Seconds of the path.",
        "path_share": "Share of the wall time.",
        "steps": "Number of steps.",
    },
)
_STEP_COLUMNS: Final = columns(
    "step start_t seconds share cause task name detail (key)", {"name": "worker"}
)


@dataclass(frozen=True)
class CriticalPath:
    """The steps by time, the longest ones, and their sums by cause and prefix."""

    steps: pl.DataFrame
    longest: Listing
    by_cause: Listing


def query(trace: Session) -> CriticalPath:
    """Query the critical path."""
    steps = trace.sql(f"{_STEPS} ORDER BY step").pl()
    causes = trace.sql(f"{_BY_CAUSE} ORDER BY path_seconds DESC, cause, prefix").pl()
    return CriticalPath(
        steps=steps,
        longest=list_query(trace, "critical_path", _LONGEST, "seconds DESC, step", _ROWS),
        by_cause=list_frame(
            "critical_path", _BY_CAUSE, "path_seconds DESC, cause, prefix", _ROWS, causes
        ),
    )


def section(found: CriticalPath, context: Context) -> Section:
    """Build the section."""
    section = Section("critical-path", "Critical path", "Path")
    if found.steps.is_empty():
        return replace(section, empty="The recording has no duration.")
    drawn = found.steps.sort("seconds", descending=True).head(STEP_LIMIT)
    left_out = found.steps.height - drawn.height
    plot = Plot(
        figure(drawn, context),
        name="critical-path",
        title="Critical path over time",
        description=f"{q.counted(drawn.height, 'step')} over time, a row for each cause.",
        note=f"Left out: the shortest {q.counted(left_out, 'step')}." if left_out else "",
        query=f"{_STEPS} ORDER BY step",
        command=context.view_command("critical_path"),
    )
    return replace(
        section,
        sentences=(_sentence(found),),
        plots=(plot,),
        tables=(
            context.table(
                "critical-path-causes",
                "Critical path by cause and prefix",
                found.by_cause,
                _CAUSE_COLUMNS,
                has_view=False,
                chosen="those with the most time",
            ),
            context.table(
                "critical-path-steps",
                "Longest steps of the critical path",
                found.longest,
                _STEP_COLUMNS,
                chosen="the longest",
            ),
        ),
    )


def figure(steps: pl.DataFrame, context: Context) -> Figure:
    """Draw a bar for each step, in a row for each cause."""
    axis = context.axis
    causes = [cause for cause in _CAUSES if cause in steps["cause"]]
    drawn = layout.empty_figure(
        110 + 24 * max(len(causes), 2),
        barmode="overlay",
        bargap=0.25,
        showlegend=False,
        xaxis=layout.axis(axis.title, range=axis.range),
        yaxis=layout.names_axis(causes),
    )
    for place, cause in enumerate(causes):
        rows = steps.filter(pl.col("cause") == cause)
        drawn.add_trace(
            Bar(
                orientation="h",
                y=[place] * rows.height,
                base=axis.places(rows, "start_t", 6),
                x=[round(seconds / axis.unit_seconds, 6) for seconds in rows["seconds"]],
                name=cause,
                marker={"color": _CAUSES[cause], "line": {"width": 0}},
                customdata=[
                    [
                        label(row["key"] or row["detail"] or "", 80),
                        context.worker_names.get(row["worker"] or "", ""),
                    ]
                    for row in rows.iter_rows(named=True)
                ],
                hovertemplate=f"<b>{cause}</b> %{{x:,.4~g}} {axis.unit} from %{{base:,.4~g}} "
                f"{axis.unit}<br>%{{customdata[0]}}<br>%{{customdata[1]}}<extra></extra>",
                meta=layout.columns(
                    base=axis.column,
                    x=f"length_{axis.unit}",
                    y="rank",
                    customdata=["key", "worker"],
                ),
            )
        )
    return drawn


def _sentence(found: CriticalPath) -> str:
    """Name the largest causes of the wall time."""
    causes = (
        found.steps.group_by("cause")
        .agg(pl.col("share").sum())
        .sort("share", "cause", descending=[True, False])
        .head(3)
    )
    named = [
        f"{cause} ({q.share(share)})" for cause, share in causes.iter_rows() if share >= 0.01
    ]
    return (
        f"The critical path has {q.counted(found.steps.height, 'step')} from the start to the "
        f"end of the run. Its largest causes: {q.series(named)}. Shortening a step saves at "
        "most its duration."
    )
