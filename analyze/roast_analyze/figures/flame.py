"""Flame graphs as plotly figures, for notebooks."""

from __future__ import annotations

import zlib
from typing import Any, Final

import polars as pl
from plotly.graph_objects import Figure, Icicle

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label

#: Most nodes that are drawn: those with the most samples, which include all their parents.
NODE_LIMIT: Final = 2000

#: Colors of nodes that became faster, stayed the same, and became slower.
_DIFFERENCE: Final = ((0.0, "#0072B2"), (0.5, "#D9DCE1"), (1.0, palette.FAILURE))


def flame(nodes: pl.DataFrame, baseline: pl.DataFrame | None = None) -> Figure:
    """Draw a tree of functions from the top; the width is the total time.

    Parameters
    ----------
    nodes : polars.DataFrame
        From :func:`roast_analyze.algorithms.profiles.flame_nodes`.
    baseline : polars.DataFrame, optional
        The same of a profile to compare with: colors then show the difference of a node's
        share of the total, and otherwise its file.

    Returns
    -------
    plotly.graph_objects.Figure
        At most :data:`NODE_LIMIT` nodes; omitted nodes are empty space below their parents.
        A click zooms in on a node.
    """
    whole = max(nodes["total_samples"].to_list(), default=0)
    if not whole:
        figure = layout.empty_figure(120)
        return figure.add_annotation(text="no samples", showarrow=False)
    shown = (
        nodes.sort("total_samples", "id", descending=[True, False])
        .head(NODE_LIMIT)
        .sort("id")
        .with_columns(share=pl.col("total_samples") / whole)
    )
    change = None if baseline is None else _changes(nodes, baseline, shown)
    figure = layout.empty_figure(
        100 + 22 * min(len(shown["depth"].unique()), 40),
        showlegend=False,
    )
    return figure.add_trace(_icicle(shown, change))


def _icicle(shown: pl.DataFrame, change: list[float] | None) -> Icicle:
    names = [label(name, 60) or ("all" if depth == 0 else "?") for name, depth in zip(
        shown["name"], shown["depth"], strict=True
    )]  # fmt: skip
    places = [
        label(f"{file}:{line}" if line is not None else file)
        for file, line in zip(shown["filename"], shown["line_number"], strict=True)
    ]
    details = zip(
        places,
        shown["self_seconds"],
        shown["share"],
        shown["ambiguous_samples"],
        shown["total_seconds"],
        [0.0] * shown.height if change is None else change,
        strict=True,
    )
    return Icicle(
        ids=[str(i) for i in shown["id"]],
        parents=["" if parent is None else str(parent) for parent in shown["parent"]],
        labels=names,
        values=shown["total_samples"].to_list(),
        branchvalues="total",
        sort=False,
        tiling={"orientation": "v"},
        maxdepth=40,
        pathbar={"visible": True, "side": "top"},
        marker=_marker(shown, change),
        customdata=[list(row) for row in details],
        hovertemplate=(
            "<b>%{label}</b><br>%{customdata[0]}<br>total time %{customdata[4]:,.4~g} s "
            "(%{customdata[2]:.2%})<br>self time %{customdata[1]:,.4~g} s<br>"
            "%{customdata[3]:,} ambiguous samples"
            + ("" if change is None else "<br>%{customdata[5]:+.2%} of the total")
            + "<extra></extra>"
        ),
        meta=layout.columns(
            labels="name",
            values="total_samples",
            customdata=[
                "place",
                "self_seconds",
                "share",
                "ambiguous_samples",
                "total_seconds",
                "difference",
            ],
        ),
    )


def _marker(shown: pl.DataFrame, change: list[float] | None) -> dict[str, Any]:
    if change is None:
        # By a hash, so that a file has the same color in every figure.
        ranks = [
            None if file is None else zlib.crc32(file.encode(errors="replace"))
            for file in shown["filename"]
        ]
        ranked = palette.RANKED
        return {
            "colors": [palette.OTHER if r is None else ranked[r % len(ranked)] for r in ranks]
        }
    most = max(1e-9, *map(abs, change))
    return {
        "colors": change,
        "cmin": -most,
        "cmax": most,
        "colorscale": _DIFFERENCE,
        "showscale": True,
        "colorbar": {"title": {"text": "slower"}, "tickformat": "+.1%", "thickness": 10},
    }


def _changes(nodes: pl.DataFrame, baseline: pl.DataFrame, shown: pl.DataFrame) -> list[float]:
    now, before = _shares(nodes), _shares(baseline)
    paths = _paths(nodes)
    return [now[paths[i]] - before.get(paths[i], 0.0) for i in shown["id"]]


def _shares(nodes: pl.DataFrame) -> dict[int, float]:
    """Return shares of the total by path, which is the same in both trees."""
    whole = max(nodes["total_samples"].to_list(), default=0) or 1
    paths = _paths(nodes)
    return {
        paths[i]: samples / whole
        for i, samples in zip(nodes["id"], nodes["total_samples"], strict=True)
    }


def _paths(nodes: pl.DataFrame) -> dict[int, int]:
    """Return a hash of all functions from the root to each node."""
    paths: dict[int, int] = {}
    for i, parent, *frame in nodes.select(
        "id", "parent", "name", "filename", "line_number"
    ).iter_rows():
        paths[i] = hash((paths.get(parent), *frame))
    return paths
