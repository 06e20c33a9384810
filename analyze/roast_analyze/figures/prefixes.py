"""Task prefixes: what the time of the cluster went into, and how long their tasks took."""

from __future__ import annotations

from typing import Any, Final

import polars as pl
from plotly.graph_objects import Bar, Box, Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label

#: Most prefixes that have a bar of their own.
BAR_LIMIT: Final = 20

#: What a prefix's time is made of: column, words, colour (None: the prefix's own), pattern.
_PARTS: Final[tuple[tuple[str, str, str | None, str], ...]] = (
    ("compute_seconds", "computing", None, ""),
    ("transfer_seconds", "transfer", palette.ACTIVITY["transfer"], "/"),
    ("deserialize_seconds", "deserialising", palette.ACTIVITY["deserialize"], "x"),
    ("disk_seconds", "disk", palette.ACTIVITY["disk"], "."),
)


def prefix_seconds(prefixes: pl.DataFrame, colours: dict[str | None, str]) -> Figure:
    """Draw a bar for each prefix: seconds of all its attempts, by what they were spent on.

    Parameters
    ----------
    prefixes : polars.DataFrame
        View ``prefixes``: prefix, task_runs, compute_seconds, transfer_seconds,
        deserialize_seconds, disk_seconds.
    colours : dict
        Prefix to colour.

    Returns
    -------
    plotly.graph_objects.Figure
        The longest bar on top; prefixes past :data:`BAR_LIMIT` are one bar.
    """
    seconds = [column for column, *_ in _PARTS]
    ranked = prefixes.with_columns(pl.col(seconds).fill_null(0.0)).sort(
        pl.sum_horizontal(seconds), "prefix", descending=[True, False]
    )
    shown = ranked.head(BAR_LIMIT).select("prefix", "task_runs", *seconds)
    names = [label(name, 40) or "(no prefix)" for name in shown["prefix"]]
    marks = [colours.get(name, palette.OTHER) for name in shown["prefix"]]
    rest = ranked.slice(BAR_LIMIT)
    if rest.height:
        total = rest.select(pl.lit(None, pl.String).alias("prefix"), "task_runs", *seconds)
        shown = pl.concat([shown, total.sum().with_columns(prefix=pl.lit(None, pl.String))])
        names.append(f"{rest.height} other prefixes")
        marks.append(palette.OTHER)
    figure = layout.empty_figure(
        110 + 26 * max(shown.height, 2),
        barmode="stack",
        legend_traceorder="normal",
        bargap=0.3,
        xaxis=layout.axis("seconds, all attempts added up", rangemode="tozero"),
        yaxis=layout.axis(
            "",
            range=[shown.height - 0.5, -0.5],
            tickmode="array",
            tickvals=list(range(shown.height)),
            ticktext=names,
            showgrid=False,
            fixedrange=True,
        ),
    )
    figure.add_traces(_traces(shown, names, marks))
    return figure


def durations(prefixes: pl.DataFrame, colours: dict[str | None, str]) -> Figure:
    """Draw how the computing times of each prefix are spread, on a scale of powers of ten.

    Parameters
    ----------
    prefixes : polars.DataFrame
        View ``prefixes`` with p05_compute_seconds, p25_…, p75_… and p95_…, the costliest
        first.
    colours : dict
        Prefix to colour.

    Returns
    -------
    plotly.graph_objects.Figure
        A box for each of the first :data:`BAR_LIMIT` prefixes: the middle half of its
        attempts and the median in it, arms to the middle 90 %, and a sign at the longest.
    """
    shown = prefixes.filter(pl.col("median_compute_seconds").is_not_null()).head(BAR_LIMIT)
    # Powers of ten have no zero.
    spread = shown.with_columns(pl.col(_SPREAD).clip(_SHORTEST_SECONDS).round_sig_figs(4))
    names = [label(name, 40) or "(no prefix)" for name in shown["prefix"]]
    figure = layout.empty_figure(
        110 + 26 * max(shown.height, 2),
        xaxis=layout.axis(
            "computing time of an attempt",
            type="log",
            tickmode="array",
            tickvals=[10.0**power for power in _POWERS],
            ticktext=list(_POWERS.values()),
        ),
        yaxis=layout.axis(
            "",
            range=[shown.height - 0.5, -0.5],
            tickmode="array",
            tickvals=list(range(shown.height)),
            ticktext=names,
            showgrid=False,
            fixedrange=True,
        ),
    )
    for place, row in enumerate(spread.iter_rows(named=True)):
        figure.add_trace(
            _box(row, place, names[place], colours.get(row["prefix"], palette.OTHER))
        )
    figure.add_trace(_longest(spread, names))
    return figure


#: Powers of ten seconds that are marked, by their exponents.
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
#: Shortest time on a scale that has no zero.
_SHORTEST_SECONDS: Final = 1e-6
_SPREAD: Final = [
    "p05_compute_seconds",
    "p25_compute_seconds",
    "median_compute_seconds",
    "p75_compute_seconds",
    "p95_compute_seconds",
    "max_compute_seconds",
]


def _box(row: dict[str, Any], place: int, name: str, colour: str) -> Box:
    low, first, middle, third, high, _ = _SPREAD
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
        line={"color": colour, "width": 1.4},
        fillcolor=_pale(colour),
        # The sign at the longest tells and gives away all numbers of the box as well.
        hoverinfo="skip",
    )


def _longest(spread: pl.DataFrame, names: list[str]) -> Scatter:
    return Scatter(
        mode="markers",
        x=spread["max_compute_seconds"].to_list(),
        y=list(range(spread.height)),
        name="box: middle half and median; arms: middle 90 %; sign: the longest",
        marker={"color": palette.REFERENCE, "symbol": "diamond", "size": 7},
        customdata=[
            [name, *values]
            for name, values in zip(names, spread.select(_SPREAD[:-1]).rows(), strict=True)
        ],
        hovertemplate=(
            "<b>%{customdata[0]}</b><br>%{x:,.3~g} s the longest<br>"
            "%{customdata[5]:,.3~g} s p95<br>%{customdata[4]:,.3~g} s p75<br>"
            "%{customdata[3]:,.3~g} s median<br>%{customdata[2]:,.3~g} s p25<br>"
            "%{customdata[1]:,.3~g} s p5<extra></extra>"
        ),
        meta=layout.columns(
            x="max_compute_seconds", y="rank", customdata=["prefix", *_SPREAD[:-1]]
        ),
    )


def _pale(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.22)"


def _traces(shown: pl.DataFrame, names: list[str], marks: list[str]) -> list[Bar]:
    total = shown.select(pl.sum_horizontal(c for c, *_ in _PARTS).sum()).item() or 0.0
    return [
        _trace(shown, names, column, words, colour or marks, pattern)
        for column, words, colour, pattern in _PARTS
        # A part too small to be seen would only lengthen the legend.
        if column == "compute_seconds" or float(shown[column].sum()) > 0.001 * total
    ]


def _trace(
    shown: pl.DataFrame, names: list[str], column: str, words: str, colour: Any, pattern: str
) -> Bar:
    return Bar(
        orientation="h",
        x=shown[column].round(6).to_list(),
        y=list(range(shown.height)),
        name=words,
        marker={"color": colour, "pattern": {"shape": pattern, "solidity": 0.35}},
        customdata=[[name, runs] for name, runs in zip(names, shown["task_runs"], strict=True)],
        hovertemplate=(
            f"<b>%{{customdata[0]}}</b><br>%{{x:,.4~g}} s {words} in %{{customdata[1]:,}} "
            "attempts<extra></extra>"
        ),
        meta=layout.columns(x=column, y="rank", customdata=["prefix", "task_runs"]),
    )
