"""Self-contained HTML pages: the report of a run, a comparison of runs, the runs of a store.

:mod:`.data` queries the trace and returns frozen dataclasses, topic by topic
(:mod:`.topics`); :mod:`.page` turns them into sections, figures and HTML. The packages
:mod:`.comparison` and :mod:`.history` do the same for several traces and for a store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from roast_analyze.open.session import Session
    from roast_analyze.report.comparison.data import Opener
    from roast_analyze.report.shell import Page

__all__ = ["write_comparison", "write_history", "write_report"]


def write_report(
    trace: Session, path: Path, *, title: str | None = None, home: str = ""
) -> Path:
    """Write the report of a trace; return its path.

    Parameters
    ----------
    trace : Session
        The opened trace.
    path : Path
        File to write; an existing file is replaced once the page is complete.
    title : str, optional
        Heading of the page; the default is the name of the trace.
    home : str, optional
        Address of the page with the list of runs, to which the page links.

    Raises
    ------
    NotWritable
        If the path is that of the trace, or cannot be written.
    """
    # Imported here, because plotly and Jinja would slow down the other commands.
    from dataclasses import replace

    from roast_analyze.output_paths import refuse_to_overwrite
    from roast_analyze.report.data import query
    from roast_analyze.report.page import build

    if trace.path.exists():
        refuse_to_overwrite(trace.paths, path)
    return _write(path, replace(build(query(trace), title=title), home=home))


def write_comparison(
    traces: Sequence[tuple[Path, ...]],
    path: Path,
    *,
    title: str | None = None,
    opener: Opener | None = None,
) -> Path:
    """Write a page that compares several traces with the first of them; return its path.

    Parameters
    ----------
    traces : sequence of tuple of Path
        Paths of each trace, from :func:`roast_analyze.open.discover.group_by_trace`. The
        traces are opened one after the other.
    path, title
        As of :func:`write_report`; the default title is the names of the traces.
    opener : callable, optional
        Opens a trace, given its paths; the default is ``Session`` without user views.

    Raises
    ------
    NotWritable
        If the path is that of one of the traces.
    TraceError
        If one of them cannot be opened.
    """
    from roast_analyze.open.session import Session
    from roast_analyze.output_paths import refuse_to_overwrite
    from roast_analyze.report.comparison.data import query
    from roast_analyze.report.comparison.page import build

    refuse_to_overwrite((name for names in traces for name in names), path)
    comparison = query(traces, opener or (lambda names: Session(*names, views=())))
    return _write(path, build(comparison, title=title))


def write_history(
    store: str, session: Session, path: Path, *, title: str | None = None
) -> Path:
    """Write the page of a store; return its path.

    Parameters
    ----------
    store : str
        Its path or URL, for commands.
    session : Session
        All its traces, opened.
    path, title
        As of :func:`write_report`; the default title is the name of the store.
    """
    from roast_analyze.report.history.data import RUN_LIMIT, query
    from roast_analyze.report.history.page import build
    from roast_analyze.report.history.reports import find_reports

    history = query(store, session)
    newest = history.runs.select("trace_id", "paths").tail(RUN_LIMIT).iter_rows(named=True)
    reports = find_reports(store, newest, path.absolute().parent)
    return _write(path, build(history, title=title, reports=reports))


def _write(path: Path, page: Page) -> Path:
    from roast_analyze.output_paths import text
    from roast_analyze.report.shell import render

    with text(path) as file:
        file.write(render(page))
    return path
