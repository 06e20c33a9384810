"""Bars of the time by prefix, and box plots of the compute times of attempts."""

from __future__ import annotations

from math import log10
from typing import Any, Final

import polars as pl
from plotly.graph_objects import Box, Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.bars import Part, stacked
from roast_analyze.figures.labels import label
from roast_analyze.report import quantities as q

#: Maximum number of prefixes that are drawn.
BAR_LIMIT: Final = 20

#: Activities: column, legend, color (None: that of the prefix), pattern.
_ACTIVITIES: Final[tuple[tuple[str, str, str | None, str], ...]] = (
    ("compute_seconds", "computing", None, ""),
    ("transfer_seconds", "transfer", palette.ACTIVITY["transfer"], "/"),
    ("deserialize_seconds", "deserialization", palette.ACTIVITY["deserialize"], "x"),
    ("disk_seconds", "disk", palette.ACTIVITY["disk"], "."),
)
#: Percentiles of compute times, and their names in tooltips.
_SPREAD: Final = {
    "p05_compute_seconds": "p5",
    "p25_compute_seconds": "p25",
    "median_compute_seconds": "median",
    "p75_compute_seconds": "p75",
    "p95_compute_seconds": "p95",
}
#: Shortest time that is drawn, because a logarithmic scale has no zero.
_SHORTEST_SECONDS: Final = 1e-6
#: Ticks from 1 µs on, by powers of ten.
_TICKS: Final = (
    "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms",
    "1 s", "10 s", "100 s", "1,000 s", "10,000 s", "100,000 s",
)  # fmt: skip


def seconds(prefixes: pl.DataFrame, colors: dict[str | None, str]) -> Figure:
    """Draw a bar for each row of view ``prefixes``: the seconds of its attempts by activity.

    The longest bar is on top; prefixes beyond :data:`BAR_LIMIT` share one bar.
    """
    activities = [column for column, *_ in _ACTIVITIES]
    ranked = prefixes.with_columns(pl.col(activities).fill_null(0.0)).sort(
        pl.sum_horizontal(activities), "prefix", descending=[True, False]
    )
    shown = ranked.head(BAR_LIMIT)
    names = [label(name, 40) or "(no prefix)" for name in shown["prefix"]]
    marks = [colors.get(name, palette.OTHER) for name in shown["prefix"]]
    bars = shown.select("task_runs", *activities)
    rest = ranked.slice(BAR_LIMIT)
    if rest.height:
        bars = pl.concat([bars, rest.select(bars.columns).sum()])
        names.append(q.counted(rest.height, "other prefix", "other prefixes"))
        marks.append(palette.OTHER)
    total = bars.select(pl.sum_horizontal(activities).sum()).item() or 0.0
    parts = [
        Part(words, bars[column].to_list(), color or marks, pattern, column)
        for column, words, color, pattern in _ACTIVITIES
        # An activity too short to be visible would only lengthen the legend.
        if column == "compute_seconds" or float(bars[column].sum()) > 0.001 * total
    ]
    return stacked(
        names, parts, "time of all attempts (s)", 110 + 26 * max(len(names), 2),
        column="prefix", attempts=bars["task_runs"].to_list(),
    )  # fmt: skip


def durations(prefixes: pl.DataFrame, colors: dict[str | None, str]) -> Figure:
    """Draw the distribution of compute times of the first prefixes on a logarithmic scale.

    ``prefixes`` is the view with p05_compute_seconds, p25_…, p75_… and p95_…. A box shows
    quartiles and median; its whiskers are at the 5th and 95th percentile, a mark is at the
    longest.
    """
    shown = prefixes.filter(pl.col("median_compute_seconds").is_not_null()).head(BAR_LIMIT)
    times = shown.select(
        pl.col([*_SPREAD, "max_compute_seconds"]).clip(_SHORTEST_SECONDS).round_sig_figs(4)
    )
    names = [label(name, 40) or "(no prefix)" for name in shown["prefix"]]
    figure = layout.empty_figure(
        110 + 26 * max(shown.height, 2),
        xaxis=layout.axis(
            "compute time of an attempt",
            type="log",
            tickmode="array",
            **_ticks(times),
        ),
        yaxis=layout.names_axis(names),
    )
    for place, (prefix, spread) in enumerate(
        zip(shown["prefix"], times.select(list(_SPREAD)).rows(), strict=True)
    ):
        color = colors.get(prefix, palette.OTHER)
        red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        parts = ("lowerfence", "q1", "median", "q3", "upperfence")
        figure.add_trace(
            Box(
                orientation="h",
                y=[place],
                **{part: [value] for part, value in zip(parts, spread, strict=True)},
                name=names[place],
                showlegend=False,
                whiskerwidth=0.4,
                width=0.6,
                line={"color": color, "width": 1.4},
                fillcolor=f"rgba({red}, {green}, {blue}, 0.22)",
                # The tooltip of the longest attempt contains all numbers of the box.
                hoverinfo="skip",
            )
        )
    percentiles = "".join(
        f"%{{customdata[{number}]:,.3~g}} s {words}<br>"
        for number, words in reversed([*enumerate(_SPREAD.values(), start=1)])
    )
    figure.add_trace(
        Scatter(
            mode="markers",
            x=times["max_compute_seconds"].to_list(),
            y=list(range(times.height)),
            name="box: quartiles and median; whiskers: 5th to 95th percentile; mark: longest",
            marker={"color": palette.REFERENCE, "symbol": "diamond", "size": 7},
            customdata=list(zip(names, *times.select(list(_SPREAD)), strict=True)),
            hovertemplate="<b>%{customdata[0]}</b><br>%{x:,.3~g} s longest<br>"
            f"{percentiles.removesuffix('<br>')}<extra></extra>",
            meta=layout.columns(
                x="max_compute_seconds", y="rank", customdata=["prefix", *_SPREAD]
            ),
        )
    )
    return figure


def _ticks(times: pl.DataFrame) -> dict[str, Any]:
    """Return ticks at powers of ten; below two decades also at 2 and 5, with two in range."""
    seconds = [value for row in times.rows() for value in row if value is not None]
    low, high = min(seconds, default=1.0), max(seconds, default=1.0)
    is_narrow = high < 100 * low
    ticks = {
        digit * 10.0**power: text.replace("1", str(digit), 1)
        for power, text in enumerate(_TICKS, start=-6)
        for digit in ((1, 2, 5) if is_narrow else (1,))
    }
    settings: dict[str, Any] = {"tickvals": [*ticks], "ticktext": [*ticks.values()]}
    if is_narrow:
        first = max((tick for tick in ticks if tick <= low), default=low)
        last = min((tick for tick in ticks if tick >= high), default=high)
        settings["range"] = [log10(first) - 0.05, log10(last) + 0.05]
    return settings
