"""The parts that a section of the page consists of."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final

from plotly.io import to_json

from roast_analyze.report.packed import pack_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup
    from plotly.graph_objects import Figure

    from roast_analyze.report.tables import Table
    from roast_analyze.report.topics.profile.flame_graph import Flame
    from roast_analyze.report.topics.timeline.lanes import Timeline

#: Code that records a run.
RECORD_HINT: Final = 'with roast_recorder.record(client, "trace.jsonl"): …'


@dataclass(frozen=True)
class Snippet:
    """Text to copy: identifier within the page, heading, and the text."""

    name: str
    title: str
    text: str


@dataclass(frozen=True)
class Choice:
    """An entry of a select or of a legend: a number, a text, and a color if it has one."""

    value: int
    text: str
    color: str = ""


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


@dataclass(frozen=True)
class Section:
    """A section: sentences, figures and tables; or the reason why it is empty."""

    #: Identifier within the page, heading, and entry of the navigation.
    name: str
    title: str
    nav: str
    #: Empty ones are not shown.
    sentences: Sequence[str] = ()
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    flame: Flame | None = None
    timeline: Timeline | None = None
    snippets: Sequence[Snippet] = ()
    #: Why there is nothing to show, and the code that records it next time.
    empty: str = ""
    hint: str = ""
    #: Whether only its heading and its first sentence are shown until the user unfolds it.
    folded: bool = False

    @property
    def gist(self) -> str:
        """First sentence, or why the section is empty, without the line before a hint."""
        if self.empty.endswith(":"):
            return f"{self.empty.rpartition('. ')[0]}."
        return self.empty or next(filter(None, self.sentences), "")
