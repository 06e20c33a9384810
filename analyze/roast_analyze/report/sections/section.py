"""What a section of the page consists of, and how one is put together."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roast_analyze.figures.labels import worker_name
from roast_analyze.report.tables import Table, build
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roast_analyze.report.data import ReportData
    from roast_analyze.report.flame import Flame
    from roast_analyze.report.gathered.listing import Listing
    from roast_analyze.report.plots import Plot
    from roast_analyze.report.tables import Field, Picture
    from roast_analyze.report.timeline import Timeline

#: What records a run.
RECORD_HINT: Final = 'with roast_recorder.record(client, "trace.jsonl"): …'
#: How the rows of a table were chosen when there are more.
_CHOSEN: Final = {
    "chunks": "what failed, then the slowest",
    "branches": "those that took the longest to read",
    "sections": "those that took the longest",
    "costs": "those with the most chunks",
    "workers": "those that came first",
    "functions": "those that took the most themselves",
    "failures": "the first",
    "events": "the first",
    "topics": "those with the most events",
    "environment": "the first by name",
    "options": "the first by name",
    "versions": "the first by name",
    "jobs": "those with the most processes",
    "machines": "those with the most processes",
    "loss": "those with the most records",
    "stragglers": "those that took the most longer than usual",
    "pairs": "those that moved the most",
}


@dataclass(frozen=True)
class Snippet:
    """Text to copy: identity within the page, heading, and the text."""

    name: str
    title: str
    text: str


@dataclass(frozen=True)
class Section:
    """A section: what it says, figures and tables; or why there is nothing to show."""

    name: str
    title: str
    nav: str
    sentences: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    flame: Flame | None = None
    timeline: Timeline | None = None
    snippets: tuple[Snippet, ...] = ()
    empty: str = ""
    hint: str = ""


def table(
    data: ReportData,
    name: str,
    title: str,
    listing: Listing,
    shown: tuple[Field, ...],
    *,
    has_view: bool = True,
    more: tuple[str, str] | None = None,
    pictures: Mapping[str, Sequence[Picture | None]] | None = None,
) -> Table:
    """Make a table of a listing; see :func:`roast_analyze.report.tables.build`.

    With ``has_view`` the rows are those of the listing's view; else only its query has them.
    """
    return build(
        name,
        title,
        listing,
        shown,
        comments=data.comments.get(listing.view, {}),
        command=view(data, listing.view) if has_view else "",
        start_t=data.run.start_t or 0.0,
        more=more,
        left_out=_CHOSEN.get(name, "those with the most compute time"),
        pictures=pictures,
    )


def filled(
    section: Section,
    *told: str,
    plots: tuple[Plot, ...] = (),
    tables: tuple[Table, ...] = (),
    snippets: tuple[Snippet, ...] = (),
) -> Section:
    """Fill a section."""
    return replace(section, sentences=told, plots=plots, tables=tables, snippets=snippets)


def empty(section: Section, why: str, hint: str = "") -> Section:
    """Say why a section is empty, and what to do so that another time it is not."""
    return replace(section, empty=why, hint=hint)


def worker_names(data: ReportData) -> dict[str, str]:
    """Say what workers are called by their addresses, in the order of the list."""
    return {row["worker"]: worker_name(row) for row in data.workers.rows.iter_rows(named=True)}


def view(data: ReportData, name: str) -> str:
    """Give the command that shows a view in a terminal."""
    return f"roast-analyze view {shlex.quote(visible(data.trace_name))} {name}{options(data)}"


def options(data: ReportData) -> str:
    """Give the options that make a command tell of the same stretch of the run."""
    return f" {data.excerpt.options}" if data.excerpt and data.excerpt.options else ""
