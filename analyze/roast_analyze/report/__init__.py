"""The report: one HTML page that shows a run and needs nothing else.

Three steps, each testable for itself: :mod:`.data` asks the trace, topic by topic in
:mod:`.gathered`, and gives frozen dataclasses, :mod:`roast_analyze.figures` turns frames
into figures, and :mod:`.page` lays both out, section by section in :mod:`.sections`, with
Jinja templates. Sentences that say what a section means are made in :mod:`.sentences`, from
the data alone. :mod:`.comparison` and its page do the same for several traces side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from roast_analyze.open.session import Session
    from roast_analyze.report.comparison import Opener

__all__ = ["write_comparison", "write_report"]


def write_report(trace: Session, path: Path, *, title: str | None = None) -> Path:
    """Write the report of a trace.

    Parameters
    ----------
    trace : Session
        The opened trace.
    path : Path
        File to write; an older one is replaced once the page is complete.
    title : str, optional
        Heading of the page; the name of the trace's file if not given.

    Returns
    -------
    Path
        Where the page lies.

    Raises
    ------
    NotWritable
        If the path is that of the trace itself.
    """
    # Imported when needed: plotly and Jinja are of no use to the other commands.
    from roast_analyze.output_paths import refuse_to_overwrite
    from roast_analyze.report.data import gather
    from roast_analyze.report.page import build, render

    if trace.path.exists():
        refuse_to_overwrite(trace.paths, path)
    _write(path, render(build(gather(trace), title=title)))
    return path


def write_comparison(
    traces: Sequence[tuple[Path, ...]],
    path: Path,
    *,
    title: str | None = None,
    opener: Opener | None = None,
) -> Path:
    """Write a page that sets several traces side by side; ratios are to the first.

    Parameters
    ----------
    traces : sequence of tuple of Path
        What each of them is opened by, as :func:`roast_analyze.open.discover.group_by_trace` gives it.
        They are opened one after the other.
    path : Path
        File to write; an older one is replaced once the page is complete.
    title : str, optional
        Heading of the page; the names of the traces if not given.
    opener : callable, optional
        Opens a trace by what it is named; if not given, as ``Trace`` does.

    Returns
    -------
    Path
        Where the page lies.

    Raises
    ------
    NotWritable
        If the path is that of one of the traces.
    TraceError
        If one of them cannot be opened.
    """
    from roast_analyze.open.session import Session
    from roast_analyze.output_paths import refuse_to_overwrite
    from roast_analyze.report.comparison import gather
    from roast_analyze.report.comparison_page import build, render

    refuse_to_overwrite((name for names in traces for name in names), path)
    comparison = gather(traces, opener or (lambda names: Session(*names, views=())))
    _write(path, render(build(comparison, title=title)))
    return path


def _write(path: Path, html: str) -> None:
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(html, encoding="utf-8", newline="\n")
    unfinished.replace(path)
