"""Figures of the page that plotly draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plotly.io import to_json

from roast_analyze.report.packed import packed_text

if TYPE_CHECKING:
    from markupsafe import Markup
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Plot:
    """A figure of the page.

    Parameters
    ----------
    name : str
        Identity within the page, and name of a download.
    title : str
    spoken : str
        What a screen reader says it is.
    figure : Markup
        Plotly's JSON, packed: see :func:`plot_of`.
    height_px : int
    note : str
        What is left out, if anything.
    query, command : str
        What gives its data, in SQL and in a terminal.
    """

    name: str
    title: str
    spoken: str
    figure: Markup
    height_px: int
    note: str
    query: str
    command: str


def plot_of(
    figure: Figure,
    *,
    name: str,
    title: str,
    spoken: str,
    query: str,
    command: str,
    note: str = "",
) -> Plot:
    """Put a figure on the page; NaN in it becomes null.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        With its height set.
    name, title, spoken, query, command, note
        See :class:`Plot`.
    """
    return Plot(
        name=name,
        title=title,
        spoken=spoken,
        figure=packed_text(to_json(figure, engine="json", validate=False)),
        height_px=figure.layout.height,
        note=note,
        query=query,
        command=command,
    )
