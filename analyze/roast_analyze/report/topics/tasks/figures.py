"""Bars of the time by prefix, and box plots of the compute times of attempts."""

from __future__ import annotations

from typing import Any, Final

import polars as pl
from plotly.graph_objects import Bar, Box, Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label

#: Most prefixes that are drawn.
BAR_LIMIT: Final = 20

#: Activities: column, legend, color (None: that of the prefix), pattern.
_ACTIVITIES: Final[tuple[tuple[str, str, str | None, str], ...]] = (
    ("compute_seconds", "computing", None, ""),
    ("transfer_seconds", "transfer", palette.ACTIVITY["transfer"], "/"),
    ("deserialize_seconds", "deserialization", palette.ACTIVITY["deserialize"], "x"),
    ("disk_seconds", "disk", palette.ACTIVITY["disk"], "."),
)


def seconds(prefixes: pl.DataFrame, colors: dict[str | None, str]) -> Figure:
    """Draw a bar for each prefix: the seconds of all its attempts by activity.

    Parameters
    ----------
    prefixes : polars.DataFrame
        View ``prefixes``: prefix, task_runs, compute_seconds, transfer_seconds,
        deserialize_seconds, disk_seconds.
    colors : dict
        Prefix to color.

    Returns
    -------
    plotly.graph_objects.Figure
        The longest bar on top; prefixes beyond :data:`BAR_LIMIT` share one bar.
    """
    activities = [column for column, *_ in _ACTIVITIES]
    ranked = prefixes.with_columns(pl.col(activities).fill_null(0.0)).sort(
        pl.sum_horizontal(activities), "prefix", descending=[True, False]
    )
    shown = ranked.head(BAR_LIMIT).select("prefix", "task_runs", *activities)
    names = [label(name, 40) or "(no prefix)" for name in shown["prefix"]]
    marks = [colors.get(name, palette.OTHER) for name in shown["prefix"]]
    rest = ranked.slice(BAR_LIMIT)
    if rest.height:
        total = rest.select(pl.lit(None, pl.String).alias("prefix"), "task_runs", *activities)
        shown = pl.concat([shown, total.sum().with_columns(prefix=pl.lit(None, pl.String))])
        names.append(f"{rest.height} other prefixes")
        marks.append(palette.OTHER)
    figure = layout.empty_figure(
        110 + 26 * max(shown.height, 2),
        barmode="stack",
        legend_traceorder="normal",
        bargap=0.3,
        xaxis=layout.axis("time of all attempts (s)", rangemode="tozero"),
        yaxis=layout.names_axis(names),
    )
    whole = shown.select(pl.sum_horizontal(activities).sum()).item() or 0.0
    for column, words, color, pattern in _ACTIVITIES:
        # An activity too short to be visible would only lengthen the legend.
        if column != "compute_seconds" and float(shown[column].sum()) <= 0.001 * whole:
            continue
        figure.add_trace(
            Bar(
                orientation="h",
                x=shown[column].round(6).to_list(),
                y=list(range(shown.height)),
                name=words,
                marker={
                    "color": color or marks,
                    "pattern": {"shape": pattern, "solidity": 0.35},
                    # plotly's border is white, even in dark mode.
                    "line": {"width": 0},
                },
                customdata=list(zip(names, shown["task_runs"], strict=True)),
                hovertemplate=(
                    f"<b>%{{customdata[0]}}</b><br>%{{x:,.4~g}} s {words} in "
                    "%{customdata[1]:,} attempts<extra></extra>"
                ),
                meta=layout.columns(x=column, y="rank", customdata=["prefix", "task_runs"]),
            )
        )
    return figure


def durations(prefixes: pl.DataFrame, colors: dict[str | None, str]) -> Figure:
    """Draw the distribution of compute times of each prefix on a logarithmic scale.

    Parameters
    ----------
    prefixes : polars.DataFrame
        View ``prefixes`` with p05_compute_seconds, p25_…, p75_… and p95_…, the costliest
        first.
    colors : dict
        Prefix to color.

    Returns
    -------
    plotly.graph_objects.Figure
        A box for each of the first :data:`BAR_LIMIT` prefixes: quartiles and median, whiskers
        at the 5th and 95th percentile, and a mark at the longest.
    """
    shown = prefixes.filter(pl.col("median_compute_seconds").is_not_null()).head(BAR_LIMIT)
    # A logarithmic scale has no zero.
    spread = shown.with_columns(pl.col(_SPREAD).clip(_SHORTEST_SECONDS).round_sig_figs(4))
    names = [label(name, 40) or "(no prefix)" for name in shown["prefix"]]
    figure = layout.empty_figure(
        110 + 26 * max(shown.height, 2),
        xaxis=layout.axis(
            "compute time of an attempt",
            type="log",
            tickmode="array",
            tickvals=[10.0**power for power in _POWERS],
            ticktext=list(_POWERS.values()),
        ),
        yaxis=layout.names_axis(names),
    )
    for place, row in enumerate(spread.iter_rows(named=True)):
        figure.add_trace(
            _box(row, place, names[place], colors.get(row["prefix"], palette.OTHER))
        )
    figure.add_trace(_longest(spread, names))
    return figure


#: Ticks: exponent of ten and text.
_POWERS: Final = {
    -6: "1 µs",
    -5: "10 µs",
    -4: "100 µs",
    -3: "1 ms",
    -2: "10 ms",
    -1: "100 ms",
    0: "1 s",
    1: "10 s",
    2: "100 s",
    3: "1,000 s",
    4: "10,000 s",
    5: "100,000 s",
}
#: Shortest time that is drawn.
_SHORTEST_SECONDS: Final = 1e-6
_SPREAD: Final = [
    "p05_compute_seconds",
    "p25_compute_seconds",
    "median_compute_seconds",
    "p75_compute_seconds",
    "p95_compute_seconds",
    "max_compute_seconds",
]


def _box(row: dict[str, Any], place: int, name: str, color: str) -> Box:
    low, first, middle, third, high, _ = _SPREAD
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return Box(
        orientation="h",
        y=[place],
        lowerfence=[row[low]],
        q1=[row[first]],
        median=[row[middle]],
        q3=[row[third]],
        upperfence=[row[high]],
        name=name,
        showlegend=False,
        whiskerwidth=0.4,
        width=0.6,
        line={"color": color, "width": 1.4},
        fillcolor=f"rgba({red}, {green}, {blue}, 0.22)",
        # The tooltip of the longest attempt contains all numbers of the box.
        hoverinfo="skip",
    )


def _longest(spread: pl.DataFrame, names: list[str]) -> Scatter:
    return Scatter(
        mode="markers",
        x=spread["max_compute_seconds"].to_list(),
        y=list(range(spread.height)),
        name="box: quartiles and median; whiskers: 5th to 95th percentile; mark: longest",
        marker={"color": palette.REFERENCE, "symbol": "diamond", "size": 7},
        customdata=[
            [name, *values]
            for name, values in zip(names, spread.select(_SPREAD[:-1]).rows(), strict=True)
        ],
        hovertemplate=(
            "<b>%{customdata[0]}</b><br>%{x:,.3~g} s longest<br>"
            "%{customdata[5]:,.3~g} s p95<br>%{customdata[4]:,.3~g} s p75<br>"
            "%{customdata[3]:,.3~g} s median<br>%{customdata[2]:,.3~g} s p25<br>"
            "%{customdata[1]:,.3~g} s p5<extra></extra>"
        ),
        meta=layout.columns(
            x="max_compute_seconds", y="rank", customdata=["prefix", *_SPREAD[:-1]]
        ),
    )
