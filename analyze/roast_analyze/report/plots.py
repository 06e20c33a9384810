"""Figures of the page that plotly draws."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from plotly.io import to_json

from roast_analyze.report.packed import pack_text

if TYPE_CHECKING:
    from markupsafe import Markup
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Plot:
    """A figure of the page, whose height is set."""

    figure: Figure
    _: KW_ONLY
    #: Identifier within the page, and name of a download.
    name: str
    title: str
    #: Text for screen readers.
    description: str
    #: The SQL and the command that return its data.
    query: str
    command: str
    #: Omitted data, if any.
    note: str = ""

    @property
    def packed(self) -> Markup:
        """Plotly's JSON, packed; NaN is null."""
        return pack_text(to_json(self.figure, engine="json", validate=False))

    @property
    def height_px(self) -> int:
        """Height of the figure."""
        return int(self.figure.layout.height)
