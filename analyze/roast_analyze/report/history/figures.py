"""Figures of the page of a store."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from plotly.graph_objects import Bar, Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.report import quantities as q

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.report.history.changes import Change

#: Maximum number of programs with a panel.
PROGRAM_LIMIT: Final = 6
#: Maximum number of points of a panel, and of bars.
POINT_LIMIT: Final = 80

_HEIGHT_PX: Final = 300
#: Height of a panel with a change.
_PANEL_PX: Final = 180
_DAY: Final = 86400.0
#: In the year 9892: the last date, with a margin, is before the year 10000.
_LAST_T: Final = 2.5e11
#: Lengths of time buckets in seconds.
_WIDTHS: Final = (
    10.0, 60.0, 600.0, 1800.0, _DAY / 24, _DAY / 12, _DAY / 8, _DAY / 4, _DAY / 2,
    _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 84 * _DAY,
)  # fmt: skip
#: Columns of core-hours by use: name and color.
_USES: Final = {
    "kept_hours": ("computing, result kept", palette.RANKED[0]),
    "not_kept_hours": ("computing, result not kept", palette.FAILURE),
    "idle_hours": ("idle, waiting and other", palette.OTHER),
}


def core_hours(runs: pl.DataFrame) -> Figure:
    """Draw the core-hours of rows of view ``runs`` over time, by use, in equal buckets."""
    runs = _dated(runs)
    start_t, stop_t, width, middle = _buckets(runs)
    kept, compute = pl.col("kept_hours"), pl.col("compute_hours")
    buckets = (
        runs.with_columns(
            (compute - kept).clip(0).alias("not_kept_hours"),
            (pl.col("core_hours") - compute).clip(0).alias("idle_hours"),
        )
        .group_by(middle.alias("t"))
        .agg(pl.len().alias("runs"), pl.col(*_USES).sum().round(4))
        .sort("t")
    )
    times = [_date(t) for t in buckets["t"]]
    length = q.seconds(width).removeprefix("1\N{NO-BREAK SPACE}")
    figure = layout.empty_figure(
        _HEIGHT_PX,
        barmode="stack",
        bargap=0.1,
        legend_traceorder="normal",
        xaxis=_time_axis(start_t, stop_t),
        yaxis=layout.axis(f"core-hours per {length}", rangemode="tozero"),
    )
    bars = [
        Bar(
            x=times,
            y=buckets[column].to_list(),
            width=1000 * width,
            name=words,
            marker={"color": color, "line": {"width": 0}},
            customdata=buckets.select("runs").rows(),
            hovertemplate=f"%{{x|%Y-%m-%d %H:%M}}<br>%{{y:,.3~g}} core-hours {words}<br>"
            "%{customdata[0]:,} runs<extra></extra>",
            meta=layout.columns(x="middle_of_bucket", y=column, customdata=["runs"]),
        )
        for column, (words, color) in _USES.items()
        if buckets[column].sum() > 0
    ]
    return figure.add_traces(bars)


def wall_time(runs: pl.DataFrame, programs: Sequence[str]) -> Figure:
    """Draw the wall time of programs over time, a row each, relative to its median."""
    runs = _dated(runs)
    start_t, stop_t, _, middle = _buckets(runs)
    relative = pl.col("wall_seconds") / pl.col("wall_seconds").median().over("program")
    buckets = (
        runs.filter(pl.col("program").is_in(list(programs)), pl.col("wall_seconds") > 0)
        .with_columns(relative.alias("relative"))
        .group_by("program", middle.alias("bucket"))
        .agg(pl.col("start_t").median().alias("t"), pl.col("relative").median().round(4),
             pl.len().alias("runs"))
        .sort("t")
    )  # fmt: skip
    names = [label(program, 60) for program in programs]
    figure, domains = layout.named_rows(names, 30, _time_axis(start_t, stop_t))
    # At least 0.7 and 1.4 times the median. The closer ticks need enough height.
    low = min(q.as_float(buckets["relative"].min()) or 1.0, 0.7)
    high = max(q.as_float(buckets["relative"].max()) or 1.0, 1.4)
    ticks = [0.7, 1, 1.4] if high / low < 4 else [0.01, 0.1, 0.3, 1, 3, 10, 100]
    settings = {
        "type": "log",
        "range": [math.log10(low) - 0.03, math.log10(high) + 0.03],
        "tickvals": ticks,
        "ticktext": [f"×{tick:g}" for tick in ticks],
    }
    for name, program, number in zip(names, programs, domains, strict=True):
        points = buckets.filter(pl.col("program") == program)
        figure.add_trace(
            Scatter(
                mode="markers",
                x=[_date(t) for t in points["t"]],
                y=points["relative"].to_list(),
                yaxis=f"y{number}",
                name=name,
                marker={"color": palette.RANKED[0], "size": 5},
                customdata=points.select("runs").rows(),
                hovertemplate="%{x|%Y-%m-%d %H:%M}<br>×%{y:.3~g}, median of "
                "%{customdata[0]:,} runs<extra></extra>",
                meta=layout.columns(x="t", y="relative_wall", customdata=["runs"]),
            )
        )
    return figure.update_layout(
        {
            f"yaxis{number}": layout.axis("", domain=domain, **settings)
            for number, domain in domains.items()
        }
    )


def changes(runs: pl.DataFrame, found: Sequence[Change], every: Sequence[Change]) -> Figure:
    """Draw the metric that changed most, one panel per change, relative to its median.

    ``every`` contains all changes: the medians before and after one end at its neighbors.
    """
    figure = layout.empty_figure(
        60 + _PANEL_PX * len(found), showlegend=False, margin={"l": 8, "r": 12, "t": 30, "b": 8}
    )
    axes: dict[str, Any] = {}
    for number, change in enumerate(found, start=1):
        shift = change.shifts[0]
        name = shift.metric.name
        program = runs.filter(pl.col("program") == change.program).with_row_index("run", 1)
        known = program.filter(pl.col(name).is_not_null())
        unit = float(np.median(known[name])) if shift.metric.is_ratio else 0.01
        # A long history is drawn as medians of consecutive runs.
        size = math.ceil(known.height / POINT_LIMIT)
        points = (
            known.group_by(pl.int_range(pl.len()) // size)
            .agg(pl.col("run").min(), (pl.col(name).median() / unit).round(4).alias("y"))
            .sort("run")
        )
        suffix = "" if number == 1 else str(number)
        place = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "showlegend": False}
        figure.add_trace(
            Scatter(
                mode="markers",
                x=points["run"].to_list(),
                y=points["y"].to_list(),
                name=label(change.program, 40),
                marker={"color": palette.RANKED[0], "size": 5},
                hovertemplate="run %{x:,}: %{y:.4~g}<extra></extra>",
                meta=layout.columns(x="run_number", y=name),
                **place,
            )
        )
        # The medians before and after the change, and the first run after it.
        places = [
            other.run_number
            for other in every
            if other.program == change.program
            and any(some.metric == shift.metric for some in other.shifts)
        ]
        begin = max((place for place in places if place < change.run_number), default=1)
        end = min((place for place in places if place > change.run_number), default=change.runs)
        ends = [
            (begin, change.run_number, shift.before),
            (change.run_number, end, shift.after),
        ]
        for first, last, value in ends:
            figure.add_trace(
                Scatter(
                    mode="lines",
                    x=[first, last],
                    y=[value / unit] * 2,
                    line={"color": palette.FAILURE, "width": 2},
                    hoverinfo="skip",
                    **place,
                )
            )
        top = 1 - (number - 1) / len(found)
        bottom = top - 1 / len(found)
        axes[f"xaxis{suffix}"] = layout.axis(
            "number of the run" if number == len(found) else "", anchor=f"y{suffix}"
        )
        axes[f"yaxis{suffix}"] = layout.axis(
            "relative" if shift.metric.is_ratio else "%",
            domain=[bottom + 0.2 / len(found), top - 0.16 / len(found)],
            anchor=f"x{suffix}",
            nticks=5,
        )
        figure.add_annotation(
            text=f"{label(change.program, 40)}: {shift.metric.words}",
            **layout.title_place(top - 0.15 / len(found)),
        )
    return figure.update_layout(**axes)


def _dated(runs: pl.DataFrame) -> pl.DataFrame:
    """Leave out runs without a start, or with one that is not a date."""
    return runs.filter(pl.col("start_t").is_between(0.0, _LAST_T))


def _buckets(runs: pl.DataFrame) -> tuple[float, float, float, pl.Expr]:
    """Return start, end and width of time buckets, and the middle of that of a run.

    There are at most :data:`POINT_LIMIT`. Runs often start at full hours or days, so each
    bucket must contain the same number of these.
    """
    first, last = (
        q.as_float(end) or 0.0 for end in (runs["start_t"].min(), runs["start_t"].max())
    )
    least = (last - first) / (POINT_LIMIT - 1)
    width = next((w for w in _WIDTHS if w >= least), least)
    start_t = first // width * width
    middle = (pl.col("start_t") / width).floor() * width + width / 2
    return start_t, (last // width + 1) * width, width, middle


def _date(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _time_axis(start_t: float, stop_t: float) -> dict[str, Any]:
    margin = 0.01 * (stop_t - start_t)
    times = [_date(start_t - margin), _date(stop_t + margin)]
    return layout.axis("start of the run (UTC)", type="date", range=times)
