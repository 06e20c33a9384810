"""The parts that a section of the page consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.report.plots import Plot
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
