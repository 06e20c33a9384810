"""Task prefixes: which kinds of task the time of the cluster went into."""

from __future__ import annotations

from typing import Any, Final

import polars as pl
from plotly.graph_objects import Bar, Figure

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
