"""A store in the terminal: totals, changes of programs, slow files and hosts, users."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.digest import digest
from roast_analyze.commands.progress import progress
from roast_analyze.commands.summary_tables import summarize
from roast_analyze.commands.terminal import cell, print_out, table
from roast_analyze.errors import TraceError
from roast_analyze.output_paths import check_place
from roast_analyze.report import quantities as q
from roast_analyze.report import write_history, write_report
from roast_analyze.report.history import sentences
from roast_analyze.report.history.data import query
from roast_analyze.report.history.reports import report_name
from roast_analyze.store.store import Store

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roast_analyze.report.history.data import History

#: Maximum number of rows of a table, and of changes.
_ROWS: Final = 10


def print_summary(options: argparse.Namespace) -> None:
    """Print the summary of a store, or of one of its traces."""
    store, trace_ids = _open(options)
    if trace_ids:
        # The path is that of the store.
        trace = store.trace(*trace_ids)
        if options.markdown:
            print("\n".join(digest(trace, *trace_ids)))
            return
        print_out(*summarize(trace, *trace_ids, is_complete=options.all))
        return
    if options.markdown:
        raise TraceError(f"{store.path!r} is a store: name a trace_id for --markdown")
    with progress(store.path, "querying", measured=False):
        history = query(options.traces[0], store.session_for("FROM runs"))
    print_out(*parts(history))


def write_page(options: argparse.Namespace) -> Path:
    """Write the page of a store, or the report of one of its traces; return its path."""
    store, trace_ids = _open(options)
    path = Path(store.path)
    if isinstance(options.html, Path):
        target = options.html
    # An object store has no folder beside it.
    elif "://" in store.path:
        raise TraceError(f"{store.path!r} is not a folder: name the page with --html FILE")
    else:
        target = path.parent / report_name(store.path, *trace_ids)
    check_place(target)
    title = options.title or " ".join(trace_ids) or None
    with progress(store.path, "writing the report", measured=False):
        if trace_ids:
            return write_report(store.trace(*trace_ids), target, title=title)
        session = store.session_for("FROM runs")
        return write_history(options.traces[0], session, target, title=title)


def _open(options: argparse.Namespace) -> tuple[Store, list[str]]:
    """Return the store, and the traces that are named after it: at most one."""
    name, *trace_ids = options.traces
    if len(trace_ids) > 1:
        raise TraceError(f"{name!r} is a store: name at most one trace_id")
    if options.start is not None or options.stop is not None:
        raise TraceError(
            f"{name!r} is a store, which has no time range: leave out --from, --to"
        )
    return Store(name, memory_limit=options.memory_limit, cache=options.cache), trace_ids


def parts(history: History) -> Iterator[RenderableType]:
    """Yield the parts of the summary."""
    yield cell(sentences.totals(history))
    if history.runs.is_empty():
        return
    yield cell(sentences.verdict(history))
    # Programs that became slower come first.
    ranked = sorted(history.changes, key=lambda change: not change.is_worse)
    for change in ranked[:_ROWS]:
        yield ""
        yield cell(sentences.change(change))
    for title, listing, name in (
        ("Files that are slow in run after run", history.files, "filename"),
        ("Hosts that are slow in run after run", history.hosts, "host"),
    ):
        if slow := [
            (row[name], f"{q.count(row['slow_runs'])} of {q.count(row['runs'])}",
             q.times(row["median_relative_duration"]))
            for row in listing.rows.head(_ROWS).iter_rows(named=True)
        ]:  # fmt: skip
            yield ""
            yield table([name, ">slow runs", ">relative duration"], slow, title)
    for title, listing, name in (
        ("Programs", history.programs, "program"),
        ("Users", history.users, "owner"),
    ):
        yield ""
        headings = [name, ">runs", ">core-hours", ">without kept result", ">failures"]
        rows = [
            (
                row[name] or q.UNKNOWN,
                q.count(row["runs"]),
                q.number(row["core_hours"]),
                q.share(row["wasted_share"]),
                q.count(row["failures"]),
            )
            for row in listing.rows.head(_ROWS).iter_rows(named=True)
        ]
        yield table(headings, rows, title)
        if (rest := listing.total - len(rows)) > 0:
            yield f"… and {q.count(rest)} more: --html or --open"
    yield ""
    yield cell("All runs, and figures over time: --html or --open")
