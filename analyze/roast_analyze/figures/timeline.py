"""Workers × time: which thread ran what, and how many ran at once.

The lanes are what Dask's dashboard calls the task stream. All times are those of the
``compute`` part of an attempt; an attempt that has none (its worker was lost) is marked
where it ended, on the first lane of its worker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Bar, Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Most bars that are drawn; a browser still zooms these without a pause.
BAR_LIMIT: Final = 3000
#: Most lanes that are drawn.
LANE_LIMIT: Final = 128
#: Most marks of failed attempts that are drawn.
MARK_LIMIT: Final = 1000
#: Most steps of the concurrency curve.
STEP_LIMIT: Final = 300
#: Up to how many changes the curve is exact. More would draw every instant at which one
#: task has begun before the one before it has ended.
EXACT_LIMIT: Final = 80

#: Outcomes that are marked, with plotly's symbol and the words of the legend.
_MARKS: Final = {
    "erred": ("x", "failed"),
    "retried": ("triangle-up", "failed, tried again"),
    "lost": ("diamond-open", "lost with its worker"),
}
_CURVE_PX: Final = 110
_GAP_PX: Final = 26
_EDGES_PX: Final = 110
#: Height that the name of a lane takes.
_LABEL_PX: Final = 11.0

_BAR_HOVER: Final = (
    "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>computed %{customdata[3]:,.4~g} s, "
    "attempt %{customdata[2]}: %{customdata[4]}<br>%{customdata[5]}<extra></extra>"
)
_BAR_COLUMNS: Final = [
    "prefix",
    "key",
    "attempt",
    "compute_seconds",
    "outcome",
    "worker",
    "thread",
]
_MARK_HOVER: Final = (
    "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>attempt %{customdata[2]}: "
    "%{customdata[3]}<br>%{customdata[4]}<extra></extra>"
)
_MARK_COLUMNS: Final = ["prefix", "key", "attempt", "outcome", "worker"]


@dataclass(frozen=True)
class Timeline:
    """The figure, and how much of the run it shows.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
    runs : int
        Attempts with a place on the timeline.
    single : int
        Attempts drawn as a bar of their own.
    merged : int
        Attempts drawn as a part of a bar that stands for several.
    lanes, hidden_lanes : int
        Lanes drawn, and lanes left out.
    hidden_runs : int
        Attempts on the lanes that are left out.
    marks, hidden_marks : int
        Failed attempts marked, and not marked.
    by_thread : bool
        Whether a lane is a thread; else it is a worker.
    """

    figure: Figure
    runs: int
    single: int
    merged: int
    lanes: int
    hidden_lanes: int
    hidden_runs: int
    marks: int
    hidden_marks: int
    by_thread: bool


def timeline(
    runs: pl.DataFrame,
    workers: pl.DataFrame,
    axis: TimeAxis,
    colours: dict[str | None, str],
    *,
    bar_limit: int = BAR_LIMIT,
    lane_limit: int = LANE_LIMIT,
) -> Timeline:
    """Draw lanes of task runs below a curve of how many ran at once.

    Parameters
    ----------
    runs : polars.DataFrame
        View ``task_runs``: key, prefix, attempt, worker, thread, outcome, processing_t,
        end_t, compute_start_t, compute_stop_t, compute_seconds.
    workers : polars.DataFrame
        View ``workers``: worker, name, nthreads, added_t, removed_t, and ``lost``
        (whether it went away unexpectedly).
    axis : TimeAxis
    colours : dict
        Prefix to colour; prefixes without one share one colour.
    bar_limit : int
        Most bars. The longest runs get a bar of their own; shorter ones that lie close
        together on a lane share one.
    lane_limit : int
        Most lanes. Threads become workers first, then workers with the least to show
        are left out.

    Returns
    -------
    Timeline
    """
    lanes, by_thread = _lanes(runs, workers, lane_limit)
    shown = lanes.head(lane_limit) if lanes.height > lane_limit else lanes
    shown = (
        shown.sort("order").with_row_index("lane").with_columns(pl.col("lane").cast(pl.Int64))
    )
    timed = runs.filter(
        pl.col("compute_start_t").is_not_null() & pl.col("compute_stop_t").is_not_null()
    )
    placed = _placed(timed, shown, by_thread)
    single, merged = _bars(placed, axis, bar_limit)
    failed = _failed(runs, shown, by_thread)
    marked = failed.head(MARK_LIMIT)

    figure = _figure(shown, axis)
    figure.add_traces(_presence(shown, workers, axis))
    figure.add_traces(_bar_traces(single, merged, axis, colours))
    figure.add_traces(_mark_traces(marked, axis))
    figure.add_traces(_worker_marks(shown, workers, axis))
    figure.add_traces(_curve(timed, workers, axis))
    return Timeline(
        figure=figure,
        runs=timed.height,
        single=single.height,
        merged=int(merged["runs"].sum()) if merged.height else 0,
        lanes=shown.height,
        hidden_lanes=lanes.height - shown.height,
        hidden_runs=timed.height - placed.height,
        marks=marked.height,
        hidden_marks=failed.height - marked.height,
        by_thread=by_thread,
    )


def running(runs: pl.DataFrame, start_t: float, stop_t: float) -> pl.DataFrame:
    """Count the tasks that compute at each time.

    Parameters
    ----------
    runs : polars.DataFrame
        compute_start_t, compute_stop_t; no nulls.
    start_t, stop_t : float
        Stretch of time, seconds since the epoch.

    Returns
    -------
    polars.DataFrame
        ``t`` and ``running``: the exact steps when they are few, else means over
        :data:`STEP_LIMIT` equal stretches. A value holds until the next row.
    """
    steps = _steps(runs["compute_start_t"], runs["compute_stop_t"], 1.0)
    if steps.height <= EXACT_LIMIT:
        changes = steps.group_by("t").agg(pl.col("change").sum()).sort("t")
        return changes.select("t", pl.col("change").cum_sum().alias("running"))
    return _mean_steps(steps, start_t, stop_t)


def one_at_a_time(runs: pl.DataFrame) -> pl.DataFrame:
    """End each task where the next one on its thread begins, if it seems to go on.

    A thread computes one task at a time. Workers tell times on the scheduler's clock,
    which they estimate anew at each heartbeat: two tasks in turn can seem to overlap by
    as much as the estimates differ.

    Parameters
    ----------
    runs : polars.DataFrame
        worker, thread, compute_start_t, compute_stop_t; only the thread may be null.

    Returns
    -------
    polars.DataFrame
        The same, in another order.
    """
    following = pl.col("compute_start_t").shift(-1).over("worker", "thread")
    stop = pl.min_horizontal("compute_stop_t", following)
    return runs.sort("compute_start_t").with_columns(
        compute_stop_t=pl.when(pl.col("thread").is_null())
        .then("compute_stop_t")
        .otherwise(stop)
    )


def capacity(workers: pl.DataFrame, start_t: float, stop_t: float) -> pl.DataFrame:
    """Count the threads of the workers that are there at each time.

    Parameters
    ----------
    workers : polars.DataFrame
        added_t, removed_t, nthreads.
    start_t, stop_t : float
        Ends of the recording; a worker without a time of its own was there until then.

    Returns
    -------
    polars.DataFrame
        ``t`` and ``threads``. A value holds until the next row.
    """
    there = workers.select(
        pl.col("added_t").fill_null(start_t).clip(lower_bound=start_t).alias("added_t"),
        pl.col("removed_t").fill_null(stop_t).alias("removed_t"),
        pl.col("nthreads").fill_null(0).cast(pl.Float64),
    )
    changes = pl.concat(
        [
            there.select(t="added_t", change=pl.col("nthreads")),
            there.select(t="removed_t", change=-pl.col("nthreads")),
        ]
    )
    totals = changes.group_by("t").agg(pl.col("change").sum()).sort("t")
    return totals.select("t", pl.col("change").cum_sum().alias("threads"))


def _steps(start: pl.Series, stop: pl.Series, weight: float) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "t": pl.concat([start.rename("t"), stop.rename("t")]),
            "change": [weight] * start.len() + [-weight] * stop.len(),
        },
        schema={"t": pl.Float64, "change": pl.Float64},
    )


def _mean_steps(steps: pl.DataFrame, start_t: float, stop_t: float) -> pl.DataFrame:
    """Average a step function over equal stretches: differences of its integral."""
    width = (stop_t - start_t) / STEP_LIMIT
    edges = pl.DataFrame(
        {"t": [start_t + i * width for i in range(STEP_LIMIT + 1)], "change": 0.0},
    ).with_columns(edge=True)
    walk = pl.concat([steps.with_columns(edge=False), edges]).sort("t", maintain_order=True)
    level = pl.col("change").cum_sum()
    area = (level.shift(1, fill_value=0.0) * pl.col("t").diff().fill_null(0.0)).cum_sum()
    integral = walk.with_columns(area=area).filter("edge")
    return integral.select(
        "t", ((pl.col("area").shift(-1) - pl.col("area")) / width).alias("running")
    ).drop_nulls()


def _lanes(
    runs: pl.DataFrame, workers: pl.DataFrame, lane_limit: int
) -> tuple[pl.DataFrame, bool]:
    """List the lanes, those with the most to show first, with their ``order`` in time."""
    known = workers.group_by("worker").agg(
        pl.col("added_t").min(), pl.col("name").last(), pl.col("lost").any()
    )
    active = (
        runs.filter(pl.col("worker").is_not_null())
        .group_by("worker", "thread")
        .agg(
            pl.col("compute_seconds").sum().alias("busy"),
            pl.col("outcome").is_in(list(_MARKS)).any().alias("failed"),
            pl.col("compute_start_t").min().alias("first_t"),
        )
    )
    threads = active.filter(pl.col("thread").is_not_null())
    without = active.filter(pl.col("thread").is_null()).join(threads, on="worker", how="anti")
    idle = known.select("worker").join(active, on="worker", how="anti")
    lanes = pl.concat([threads, without, idle], how="diagonal")
    by_thread = lanes.height <= lane_limit
    if not by_thread:
        lanes = lanes.group_by("worker").agg(
            pl.lit(None, pl.Int64).alias("thread"),
            pl.col("busy").sum(),
            pl.col("failed").any(),
            pl.col("first_t").min(),
        )
    lanes = lanes.join(known, on="worker", how="left").with_columns(
        pl.col("failed").fill_null(value=False) | pl.col("lost").fill_null(value=False)
    )
    number = pl.col("name").cast(pl.Int64, strict=False)
    in_time = lanes.sort(
        number, "added_t", "worker", "first_t", "thread", nulls_last=True
    ).with_row_index("order")
    ranked = in_time.sort(
        "failed", "busy", descending=True, nulls_last=True, maintain_order=True
    )
    return ranked, by_thread


def _placed(runs: pl.DataFrame, lanes: pl.DataFrame, by_thread: bool) -> pl.DataFrame:
    if by_thread:
        named = lanes.select("worker", "thread", "lane")
        return runs.join(named, on=["worker", "thread"], how="inner", nulls_equal=True)
    return runs.join(lanes.select("worker", "lane"), on="worker", how="inner")


def _failed(runs: pl.DataFrame, lanes: pl.DataFrame, by_thread: bool) -> pl.DataFrame:
    """Give the failed attempts their lanes; without a thread it is the worker's first."""
    failed = runs.filter(pl.col("outcome").is_in(list(_MARKS)))
    first = lanes.group_by("worker").agg(pl.col("lane").min())
    by_worker = failed.join(first, on="worker", how="inner")
    if not by_thread:
        return by_worker
    exact = failed.filter(pl.col("thread").is_not_null())
    rest = by_worker.filter(pl.col("thread").is_null())
    return pl.concat([_placed(exact, lanes, by_thread=True), rest], how="diagonal").sort(
        "outcome", "end_t"
    )


def _bars(
    runs: pl.DataFrame, axis: TimeAxis, bar_limit: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Choose the runs with a bar of their own and merge the others by lane and stretch."""
    ranked = runs.sort("compute_seconds", descending=True, nulls_last=True)
    lanes = max(ranked["lane"].n_unique(), 1)
    if ranked.height <= bar_limit:
        return ranked, _merged(ranked.head(0), axis.span_seconds)
    own = bar_limit // 2
    stretches = max((bar_limit - own) // lanes, 1)
    return ranked.head(own), _merged(ranked.slice(own), axis.span_seconds / stretches)


def _merged(runs: pl.DataFrame, stretch_seconds: float) -> pl.DataFrame:
    """Merge runs that begin on one lane in one stretch; the busiest prefix names the bar."""
    by_prefix = runs.group_by(
        "lane",
        "worker",
        (pl.col("compute_start_t") / stretch_seconds).floor().alias("stretch"),
        "prefix",
    ).agg(
        pl.col("compute_start_t").min(),
        pl.col("compute_stop_t").max(),
        pl.col("compute_seconds").sum(),
        pl.len().alias("runs"),
    )
    return (
        by_prefix.sort("compute_seconds", descending=True)
        .group_by("lane", "worker", "stretch", maintain_order=True)
        .agg(
            pl.col("prefix").first(),
            pl.col("compute_start_t").min(),
            pl.col("compute_stop_t").max(),
            pl.col("compute_seconds").sum(),
            pl.col("runs").sum(),
        )
    )


def _figure(lanes: pl.DataFrame, axis: TimeAxis) -> Figure:
    lane_px = min(26.0, max(7.0, 460 / max(lanes.height, 1)))
    lanes_px = lane_px * max(lanes.height, 2)
    height = lanes_px + _CURVE_PX + _GAP_PX + _EDGES_PX
    plot_px = lanes_px + _CURVE_PX + _GAP_PX
    firsts = lanes.unique("worker", keep="first", maintain_order=True)
    labelled = firsts.gather_every(math.ceil(_LABEL_PX / lane_px))
    figure = layout.empty_figure(
        round(height),
        barmode="overlay",
        xaxis=layout.axis(axis.title, range=axis.range, anchor="y", showgrid=True),
        yaxis=layout.axis(
            "",
            domain=[0, lanes_px / plot_px],
            range=[max(lanes.height, 1) - 0.4, -0.6],
            tickmode="array",
            tickvals=labelled["lane"].to_list(),
            ticktext=[lane_label(row) for row in labelled.iter_rows(named=True)],
            showgrid=False,
            fixedrange=True,
        ),
        yaxis2=layout.axis(
            "running",
            domain=[1 - _CURVE_PX / plot_px, 1],
            rangemode="tozero",
            anchor="x",
            fixedrange=True,
            nticks=4,
        ),
    )
    figure.update_layout(shapes=_separators(firsts))
    return figure


def _separators(firsts: pl.DataFrame) -> list[dict[str, Any]]:
    line = {"color": palette.BACKGROUND, "width": 1}
    return [
        {
            "type": "line",
            "xref": "paper",
            "yref": "y",
            "x0": 0,
            "x1": 1,
            "y0": lane - 0.5,
            "y1": lane - 0.5,
            "line": line,
            "layer": "below",
        }
        for lane in firsts["lane"].to_list()[1:]
    ]


def lane_label(worker: dict[str, Any]) -> str:
    """Name a worker in a few characters: its name, else its address without the scheme."""
    address = str(worker.get("worker") or "?")
    name = worker.get("name")
    if name in (None, "", address):
        return label(address.rsplit("://", 1)[-1], 24)
    # The names that Dask gives by itself are numbers.
    return label(f"worker {name}" if str(name).isdecimal() else name, 24)


def _presence(lanes: pl.DataFrame, workers: pl.DataFrame, axis: TimeAxis) -> list[Bar]:
    """Lay a pale bar under each lane for as long as its worker was there."""
    there = lanes.select("lane", "worker").join(
        workers.select(
            "worker",
            pl.col("added_t").fill_null(axis.start_t).clip(lower_bound=axis.start_t),
            pl.col("removed_t").fill_null(axis.stop_t),
        ),
        on="worker",
        how="inner",
    )
    if there.is_empty():
        return []
    start = there.select(axis.place("added_t")).to_series()
    stop = there.select(axis.place("removed_t")).to_series()
    return [
        Bar(
            orientation="h",
            y=there["lane"].to_list(),
            base=start.to_list(),
            x=(stop - start).to_list(),
            width=0.86,
            marker={"color": palette.BACKGROUND, "line": {"width": 0}},
            hoverinfo="skip",
            name="worker present",
            showlegend=False,
        )
    ]


def _bar_traces(
    single: pl.DataFrame,
    merged: pl.DataFrame,
    axis: TimeAxis,
    colours: dict[str | None, str],
) -> list[Bar]:
    both = pl.concat(
        [
            single.with_columns(pl.lit(1, pl.UInt32).alias("runs")),
            merged.with_columns(pl.lit(None, pl.Int64).alias("attempt")),
        ],
        how="diagonal_relaxed",
    )
    ranked = [
        name
        for name in colours
        if both.select((pl.col("prefix").eq_missing(name)).any()).item()
    ]
    traces = [
        _bar_trace(both.filter(pl.col("prefix").eq_missing(name)), axis, name, colours[name])
        for name in ranked
    ]
    rest = both.filter(
        ~pl.any_horizontal(
            [pl.lit(value=False), *(pl.col("prefix").eq_missing(n) for n in ranked)]
        )
    )
    if rest.height:
        kinds = rest["prefix"].n_unique()
        name = f"{kinds} other prefixes" if kinds > 1 else rest["prefix"][0]
        traces.append(_bar_trace(rest, axis, name, palette.OTHER))
    return traces


def _bar_trace(runs: pl.DataFrame, axis: TimeAxis, name: str | None, colour: str) -> Bar:
    runs = runs.sort("compute_start_t", "lane")
    start = runs.select(axis.place("compute_start_t")).to_series()
    stop = runs.select(axis.place("compute_stop_t")).to_series()
    # An edge keeps long neighbours apart, but would hide a short bar.
    long = (stop - start) * axis.unit_seconds > 0.006 * axis.span_seconds
    edges = (long.cast(pl.Float64) * 0.6).to_list()
    return Bar(
        orientation="h",
        y=runs["lane"].to_list(),
        base=start.to_list(),
        x=(stop - start).round(6).to_list(),
        width=0.86,
        marker={"color": colour, "line": {"width": edges, "color": "rgba(255, 255, 255, 0.6)"}},
        name=label(name, 32) or "(no prefix)",
        customdata=[_bar_facts(row) for row in runs.iter_rows(named=True)],
        hovertemplate=_BAR_HOVER,
        meta=layout.columns(
            y="lane",
            base=axis.column,
            x=f"length_{axis.unit}",
            customdata=list(_BAR_COLUMNS),
        ),
    )


def _bar_facts(run: dict[str, Any]) -> list[Any]:
    seconds = run["compute_seconds"]
    several = run["runs"] > 1
    return [
        label(run["prefix"]),
        f"{run['runs']} short runs, mostly of this prefix" if several else label(run["key"]),
        "" if several else run["attempt"],
        None if seconds is None else round(seconds, 6),
        "several" if several else run["outcome"],
        label(run["worker"]),
        "" if several or run["thread"] is None else str(run["thread"]),
    ]


def _mark_traces(failed: pl.DataFrame, axis: TimeAxis) -> list[Scatter]:
    traces = []
    for outcome, (symbol, words) in _MARKS.items():
        some = failed.filter(pl.col("outcome") == outcome)
        if some.is_empty():
            continue
        where = pl.coalesce("compute_stop_t", "end_t", "processing_t")
        traces.append(
            Scatter(
                mode="markers",
                x=some.select(axis.place(where)).to_series().to_list(),
                y=some["lane"].to_list(),
                marker={
                    "symbol": symbol,
                    "size": 9,
                    "color": palette.FAILURE,
                    "line": {"width": 1.5, "color": palette.FAILURE},
                },
                name=words,
                customdata=[
                    [
                        label(r["prefix"]),
                        label(r["key"]),
                        r["attempt"],
                        words,
                        label(r["worker"]),
                    ]
                    for r in some.iter_rows(named=True)
                ],
                hovertemplate=_MARK_HOVER,
                meta=layout.columns(x=axis.column, y="lane", customdata=list(_MARK_COLUMNS)),
                cliponaxis=False,
            )
        )
    return traces


def _worker_marks(lanes: pl.DataFrame, workers: pl.DataFrame, axis: TimeAxis) -> list[Scatter]:
    """Mark workers that came after the start, left, or were lost, on their first lanes."""
    first = lanes.group_by("worker").agg(pl.col("lane").min())
    placed = workers.join(first, on="worker", how="inner")
    # Workers that are there when recording begins are announced in its first moments.
    soon = axis.start_t + max(0.002 * axis.span_seconds, 0.05)
    gone = pl.col("removed_t").is_not_null()
    lost = pl.col("lost").fill_null(value=False)
    sorts = [
        (
            "worker arrived",
            "added_t",
            pl.col("added_t") > soon,
            "triangle-right-open",
            palette.OTHER,
        ),
        ("worker left", "removed_t", gone & ~lost, "line-ns-open", palette.OTHER),
        ("worker lost", "removed_t", gone & lost, "line-ns-open", palette.FAILURE),
    ]
    traces = []
    for words, t, condition, symbol, colour in sorts:
        some = placed.filter(condition)
        if some.is_empty():
            continue
        traces.append(
            Scatter(
                mode="markers",
                x=some.select(axis.place(t)).to_series().to_list(),
                y=some["lane"].to_list(),
                marker={
                    "symbol": symbol,
                    "size": 18 if words == "worker lost" else 11,
                    "color": colour,
                    "line": {"width": 3 if words == "worker lost" else 2, "color": colour},
                },
                name=words,
                customdata=[
                    [label(r["worker"]), label(r["name"])] for r in some.iter_rows(named=True)
                ],
                hovertemplate=f"<b>{words}</b><br>%{{customdata[0]}}<extra></extra>",
                meta=layout.columns(x=axis.column, y="lane", customdata=["worker", "name"]),
                cliponaxis=False,
            )
        )
    return traces


def _curve(timed: pl.DataFrame, workers: pl.DataFrame, axis: TimeAxis) -> list[Scatter]:
    busy = running(one_at_a_time(timed), axis.start_t, axis.stop_t)
    threads = capacity(workers, axis.start_t, axis.stop_t)
    line = {"shape": "hv", "width": 1.2}
    return [
        Scatter(
            mode="lines",
            x=frame.select(axis.place("t")).to_series().to_list(),
            y=frame[column].round(3).to_list(),
            yaxis="y2",
            name=words,
            line={**line, "color": colour, "dash": dash},
            fill=fill,
            fillcolor="rgba(0, 114, 178, 0.18)",
            hovertemplate=f"%{{y:,.3~g}} {words}<extra></extra>",
            meta=layout.columns(x=axis.column, y=column),
            showlegend=False,
        )
        for frame, column, words, colour, dash, fill in (
            (busy, "running", "tasks computing", palette.RANKED[0], "solid", "tozeroy"),
            (threads, "threads", "threads there", palette.REFERENCE, "dot", "none"),
        )
        if frame.height
    ]
