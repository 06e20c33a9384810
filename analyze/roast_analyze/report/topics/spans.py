"""Spans: named parts of the work over time, and how they used the threads of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Bar, Figure

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_query
from roast_analyze.report.section import Plot, Section
from roast_analyze.safe_text import named

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of rows of the table, and of bars.
ROWS: Final = 100
BAR_LIMIT: Final = 30
#: Name of the spans that Dask creates for work outside of the user's spans.
DEFAULT: Final = "default"

_SPANS: Final = (
    "SELECT array_to_string(totals.path, ' / ') AS path, totals.name, totals.span_id, "
    "totals.parent_id, len(totals.path) AS depth, "
    # A span can begin before the time range of the report.
    "idle.start_t + greatest(recording.start_t - idle.start_t, 0) AS start_t, idle.stop_t, "
    # A worker's clock can be behind the scheduler's.
    "CASE WHEN idle.stop_t >= idle.start_t THEN "
    "idle.stop_t - idle.start_t - greatest(recording.start_t - idle.start_t, 0) "
    "END AS wall_seconds, "
    "total_tasks, total_task_runs, total_failed_attempts, total_compute_seconds, "
    "thread_seconds, "
    "total_compute_seconds / nullif(thread_seconds, 0) AS compute_share, "
    "idle.idle_share, "
    "total_cpu_seconds, total_noncpu_seconds, total_transfer_seconds, total_output_bytes "
    "FROM span_totals AS totals LEFT JOIN span_idle AS idle USING (trace_id, span_id) "
    "LEFT JOIN _trace_range AS recording USING (trace_id) "
    "WHERE totals.span_id IS NOT NULL "
    # Without spans of the user, those of Dask mean nothing.
    "AND EXISTS (FROM _named_spans)"
)
#: A span has at least the compute time of those below it, so that these follow it.
_ORDER: Final = "total_compute_seconds DESC NULLS LAST, depth, start_t, span_id"


def query(trace: Session) -> Listing:
    """Query the spans, those with the most compute time first."""
    return list_query(trace, "span_totals", _SPANS, _ORDER, ROWS)


def section(found: Listing, context: Context) -> Section:
    """Build the section."""
    section = Section("spans", "Spans", "Spans")
    if not found.total:
        return context.absent(
            section,
            "The program named no spans, or the settings excluded them. To name parts of "
            "the work:",
            _HINT,
        )
    drawn = nested(found.rows)
    few = f"The {q.count(len(drawn))} spans with the most compute time, of "
    plot = Plot(
        figure(drawn, context.axis),
        name="spans",
        title="Spans over time",
        description=f"{q.counted(len(drawn), 'bar')} over time, one for each span, with the "
        "shares of the thread time that its tasks computed, that Dask needed for them, and "
        "that was idle or spent on other spans.",
        note=(f"{few}{q.count(found.total)}. " if len(drawn) < found.total else "")
        + "A bar lasts from the first submission to the end of the last computation. Its "
        "colors are shares of the thread time of all workers during the span, not times within "
        "it.",
        query=found.query,
        command=context.view_command("span_idle"),
    )
    return replace(
        section,
        sentences=(_sentence(found),),
        plots=(plot,) if drawn else (),
        tables=(context.table("spans", "Spans", found, _COLUMNS, has_view=False),),
    )


def nested(spans: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the spans to draw: those below another one follow it, by time.

    ``level`` is the number of spans above a span, 0 for an outermost one.
    """
    rows = (
        spans.filter(
            pl.all_horizontal(pl.col("start_t", "stop_t", "compute_share").is_not_null())
        )
        .head(BAR_LIMIT)
        .to_dicts()
    )
    by_id = {row["span_id"]: row for row in rows}
    places = {}
    for row in rows:
        chain: list[tuple[float, str]] = []
        above: dict[str, Any] | None = row
        # Spans of a damaged trace can form a cycle.
        while above is not None and len(chain) < len(rows):
            chain.insert(0, (above["start_t"], above["span_id"]))
            above = by_id.get(above["parent_id"])
        places[row["span_id"]] = chain
    rows.sort(key=lambda row: places[row["span_id"]])
    return [row | {"level": len(places[row["span_id"]]) - 1} for row in rows]


def figure(spans: list[dict[str, Any]], axis: TimeAxis) -> Figure:
    """Draw a bar for each span, from its start to its end: see :func:`nested`."""
    shares = [_shares(row["compute_share"], row["idle_share"]) for row in spans]
    starts = [(row["start_t"] - axis.start_t) / axis.unit_seconds for row in spans]
    lengths = [(row["stop_t"] - row["start_t"]) / axis.unit_seconds for row in spans]
    paths = [label(row["path"]) for row in spans]
    drawn = layout.empty_figure(
        110 + 26 * max(len(spans), 2),
        barmode="overlay",
        bargap=0.3,
        legend_traceorder="normal",
        xaxis=layout.axis(axis.title, range=axis.range),
        yaxis=layout.names_axis(
            ["› " * row["level"] + (label(row["name"], 40) or "(unnamed)") for row in spans]
        ),
    )
    for number, (words, color, line_px) in enumerate(_PARTS):
        part = [share[number] for share in shares]
        drawn.add_trace(
            Bar(
                orientation="h",
                y=list(range(len(spans))),
                base=[
                    round(start + length * sum(share[:number]), 6)
                    for start, length, share in zip(starts, lengths, shares, strict=True)
                ],
                x=[round(n * share, 6) for n, share in zip(lengths, part, strict=True)],
                name=words,
                marker={"color": color, "line": {"width": line_px, "color": palette.REFERENCE}},
                customdata=[
                    [path, start, length, round(share, 6)]
                    for path, start, length, share in zip(
                        paths, starts, lengths, part, strict=True
                    )
                ],
                hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[3]:.0%} "
                + words
                + f"<br>%{{customdata[2]:,.4~g}} {axis.unit} from %{{customdata[1]:,.4~g}} "
                f"{axis.unit}<extra></extra>",
                meta=layout.columns(
                    y="rank", customdata=["path", axis.column, f"length_{axis.unit}", "share"]
                ),
            )
        )
    return drawn


def _shares(compute: float, idle: float | None) -> tuple[float, float, float]:
    """Return the shares of the parts of a bar, which add up to 1."""
    computing = min(max(compute, 0.0), 1.0)
    # Computations can end after the last heartbeat with their metrics.
    known = 1 - computing if idle is None else min(max(idle, 0.0), 1 - computing)
    return computing, 1 - computing - known, known


def _sentence(found: Listing) -> str:
    """Describe the span with the most compute time."""
    top = found.rows.row(0, named=True)
    text = f"The tasks were submitted in {q.counted(found.total, 'span')}."
    if top["thread_seconds"] and top["total_compute_seconds"] is not None:
        text += (
            f" The one with the most compute time, {named(top['path'])}, took "
            f"{q.seconds(top['wall_seconds'])}: {q.share(top['compute_share'])} of the thread "
            "time was spent computing its tasks"
        )
        if top["idle_share"] is not None:
            text += f", {q.share(top['idle_share'])} was idle or spent on other spans"
        text += "."
    if found.rows["name"].eq_missing(DEFAULT).any():
        text += f" {DEFAULT} is Dask's name for work outside of the user's spans."
    return text


_HINT: Final = 'with distributed.span("reading"): …'
#: Parts of a bar: words, color of the area, and width of its line.
_PARTS: Final = (
    ("computing its tasks", palette.RANKED[0], 0),
    ("overhead of its tasks", palette.RANKED[1], 0),
    ("idle or other spans", palette.BACKGROUND, 1),
)
_COLUMNS: Final = columns(
    "path (start_t) wall_seconds total_compute_seconds thread_seconds compute_share idle_share "
    "total_tasks (total_task_runs) total_failed_attempts (total_cpu_seconds) "
    "(total_noncpu_seconds) (total_transfer_seconds) (total_output_bytes)",
    {"compute_share": "computing", "start_t": "start"},
    {
        "path": "Names from the outermost span to this one.",
        "start_t": "First submission of a task.",
        "wall_seconds": "From the first submission to the end of the last computation.",
        "thread_seconds": "Thread time that the cluster offered during the span.",
        "compute_share": "compute time / thread time.",
        "idle_share": "Share of the thread time that was idle or spent on other spans.",
    },
)
