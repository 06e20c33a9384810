"""Flame graphs as plotly figures, for notebooks."""

from __future__ import annotations

import zlib
from typing import Any, Final

import polars as pl
from plotly.graph_objects import Figure, Icicle

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label

#: Maximum number of nodes that are drawn: those with the most samples, and so all their
#: parents.
NODE_LIMIT: Final = 2000

#: Colors of nodes that became faster, stayed the same, and became slower.
_DIFFERENCE: Final = ((0.0, "#0072B2"), (0.5, "#D9DCE1"), (1.0, palette.FAILURE))
_DETAILS: Final = ["self_seconds", "share", "ambiguous_samples", "total_seconds", "difference"]


def flame(nodes: pl.DataFrame, baseline: pl.DataFrame | None = None) -> Figure:
    """Draw a tree of functions from the top; the width is the total time.

    Omitted nodes are empty space below their parents. A click zooms in on a node.

    Parameters
    ----------
    nodes : polars.DataFrame
        From :func:`roast_analyze.algorithms.profiles.flame_nodes`.
    baseline : polars.DataFrame, optional
        The same of a profile to compare with: colors then show the difference of a node's
        share of the total, and otherwise its file.
    """
    if not sum(nodes["total_samples"]):
        figure = layout.empty_figure(120)
        return figure.add_annotation(text="no samples", showarrow=False)
    shares = _shares(nodes)
    before = shares if baseline is None else _shares(baseline)
    shown = (
        nodes.with_columns(
            share=pl.Series(list(shares.values())),
            difference=pl.Series(
                [share - before.get(path, 0.0) for path, share in shares.items()]
            ),
        )
        .sort("total_samples", "id", descending=[True, False])
        .head(NODE_LIMIT)
        .sort("id")
    )
    places = [
        label(file if line is None else f"{file}:{line}")
        for file, line in shown.select("filename", "line_number").iter_rows()
    ]
    figure = layout.empty_figure(
        100 + 22 * min(shown["depth"].n_unique(), 40),
        showlegend=False,
        font={"color": palette.OTHER},
    )
    return figure.add_trace(
        Icicle(
            ids=shown["id"].cast(pl.String).to_list(),
            parents=shown["parent"].cast(pl.String).fill_null("").to_list(),
            labels=[
                label(name, 60) or ("?" if depth else "all")
                for name, depth in shown.select("name", "depth").iter_rows()
            ],
            values=shown["total_samples"].to_list(),
            branchvalues="total",
            sort=False,
            tiling={"orientation": "v"},
            maxdepth=40,
            pathbar={"visible": True, "side": "top"},
            marker=_marker(shown, is_difference=baseline is not None),
            # By default leaves are translucent: their text cannot be read on a dark page.
            leaf={"opacity": 1},
            # The font of the root, for which plotly does not choose dark or light text.
            outsidetextfont={"color": "#000000"},
            customdata=[
                [place, *row]
                for place, row in zip(places, shown.select(_DETAILS).iter_rows(), strict=True)
            ],
            hovertemplate=(
                "<b>%{label}</b><br>%{customdata[0]}<br>total time %{customdata[4]:,.4~g} s "
                "(%{customdata[2]:.2%})<br>self time %{customdata[1]:,.4~g} s<br>"
                "%{customdata[3]:,} ambiguous samples"
                + ("" if baseline is None else "<br>%{customdata[5]:+.2%} of the total")
                + "<extra></extra>"
            ),
            meta=layout.columns(
                labels="name", values="total_samples", customdata=["place", *_DETAILS]
            ),
        )
    )


def _marker(shown: pl.DataFrame, *, is_difference: bool) -> dict[str, Any]:
    if not is_difference:
        # By a hash, so that a file has the same color in every figure.
        files = (
            None if file is None else zlib.crc32(file.encode(errors="replace"))
            for file in shown["filename"]
        )
        ranked = palette.RANKED
        colors = [palette.OTHER if f is None else ranked[f % len(ranked)] for f in files]
        return {"colors": colors}
    change = shown["difference"].to_list()
    most = max(1e-9, *map(abs, change))
    return {
        "colors": change,
        "cmin": -most,
        "cmax": most,
        "colorscale": _DIFFERENCE,
        "showscale": True,
        "colorbar": {"title": {"text": "slower"}, "tickformat": "+.1%", "thickness": 10},
    }


def _shares(nodes: pl.DataFrame) -> dict[int, float]:
    """Return the share of each node in the total, by a hash of all functions above it."""
    whole = max(nodes["total_samples"].to_list(), default=0) or 1
    paths: dict[int | None, int] = {}
    shares: dict[int, float] = {}
    for node, parent, samples, *frame in nodes.select(
        "id", "parent", "total_samples", "name", "filename", "line_number"
    ).iter_rows():
        paths[node] = hash((paths.get(parent), *frame))
        shares[paths[node]] = samples / whole
    return shares
