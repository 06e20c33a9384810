"""The report: one HTML page that shows a run and needs nothing else.

Three steps, each in its own module and testable for itself: :mod:`.data` asks the trace
and gives frozen dataclasses, :mod:`roast_analyze.figures` turns frames into figures, and
:mod:`.page` lays both out with Jinja templates. Sentences that say what a section means
are made in :mod:`.sentences`, from the data alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from roast_analyze.trace import Trace

__all__ = ["write_report"]


def write_report(trace: Trace, path: Path, *, title: str | None = None) -> Path:
    """Write the report of a trace.

    Parameters
    ----------
    trace : Trace
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
    from roast_analyze.outputs import refuse_to_overwrite
    from roast_analyze.report.data import gather
    from roast_analyze.report.page import build, render

    if trace.path.exists():
        refuse_to_overwrite(trace.paths, path)
    html = render(build(gather(trace), title=title))
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(html, encoding="utf-8", newline="\n")
    unfinished.replace(path)
    return path
