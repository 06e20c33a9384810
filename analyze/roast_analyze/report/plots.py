"""Figures of the page that plotly draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plotly.io import to_json

from roast_analyze.report.packed import pack_text

if TYPE_CHECKING:
    from markupsafe import Markup
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Plot:
    """A figure of the page.

    Parameters
    ----------
    name : str
        Identifier within the page, and name of a download.
    title : str
    description : str
        Text for screen readers.
    figure : Markup
        Plotly's JSON, packed.
    height_px : int
    note : str
        Omitted data, if any.
    query, command : str
        The SQL and the command that return its data.
    """

    name: str
    title: str
    description: str
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
    description: str,
    query: str,
    command: str,
    note: str = "",
) -> Plot:
    """Pack a figure whose height is set; parameters as in :class:`Plot`.

    NaN becomes null.
    """
    return Plot(
        name=name,
        title=title,
        description=description,
        figure=pack_text(to_json(figure, engine="json", validate=False)),
        height_px=figure.layout.height,
        note=note,
        query=query,
        command=command,
    )
