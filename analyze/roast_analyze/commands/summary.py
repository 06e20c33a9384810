"""Summarize a trace in the terminal, or write its report with --html.

Without a trace, the newest ones in the working directory are listed. Several
traces are compared with each other. A store has a page of all its runs; with a
trace_id, the report of that run. For example:

    roast-analyze
    roast-analyze trace.jsonl.zst
    roast-analyze trace.jsonl.zst --follow
    roast-analyze trace.jsonl.zst --html report.html
    roast-analyze trace.jsonl.zst --html --from 5m --to -90s
    roast-analyze trace.jsonl.zst --markdown
    roast-analyze before.jsonl.zst after.jsonl.zst --open
    roast-analyze s3://bucket/trace.jsonl.zst
    roast-analyze store/ --html
"""

from __future__ import annotations

import argparse
import webbrowser
from contextlib import suppress
from functools import partial
from pathlib import Path

from roast_analyze.commands.formats import add_json, print_json, rows
from roast_analyze.commands.messages import print_note
from roast_analyze.commands.progress import progress
from roast_analyze.commands.trace_args import (
    add_reading,
    add_time_range,
    is_copy,
    is_store,
    open_trace,
    traces_to_compare,
)
from roast_analyze.errors import NotWritable, TraceError
from roast_analyze.open.discover import segment_paths, trace_name
from roast_analyze.open.names import SUFFIXES
from roast_analyze.open.remote import is_of_url
from roast_analyze.output_paths import STDIN, STDOUT, check_place, refuse_to_overwrite

#: Views whose rows are the summary as JSON.
_JSON_VIEWS = ("run", "loss", "findings", "prefixes", "datasets", "workers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "traces",
        metavar="TRACE",
        nargs="*",
        help="a trace file, a folder of segments, a quoted pattern for either, a URL (s3://, "
        "gs://, https://, root://), - for stdin, or a store",
    )
    add_time_range(parser)
    add_reading(parser)
    parser.add_argument(
        "--html",
        metavar="FILE",
        nargs="?",
        type=Path,
        const=True,
        help="write the report, a self-contained page; the default FILE is next to the trace; "
        "for a URL, in the working directory",
    )
    parser.add_argument(
        "--open", action="store_true", help="write the report and open it in the browser"
    )
    parser.add_argument("--title", help="heading of the report")
    parser.add_argument("--all", action="store_true", help="print all tables of the summary")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="show the progress of a run while it is recorded; q leaves",
    )
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="print a digest in Markdown, of at most 40 lines, for an issue, a chat or an "
        "assistant",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the summary, or write the report; compare several traces."""
    if not options.traces and isinstance(options.html, Path):
        # In `--html trace.jsonl` the only name is that of the trace.
        options.traces, options.html = [str(options.html)], True
    if not options.traces:
        if options.html or options.open or options.json or options.markdown:
            raise TraceError("no trace given: roast-analyze TRACE, or --help")
        from roast_analyze.commands.recent import print_recent

        print_recent()
        return
    if options.follow:
        from roast_analyze.commands.follow import follow

        _refuse_others(options)
        follow(options.traces[0])
        return
    if options.open and options.html is None:
        options.html = True
    if options.title is not None and options.html is None:
        raise TraceError(f"--title {options.title!r} needs --html")
    if options.json and (options.html is not None or is_store(options.traces[0])):
        raise TraceError("--json prints the summary of one trace: leave out --html and stores")
    if options.markdown and (options.html is not None or options.json or options.all):
        raise TraceError("--markdown prints a digest: leave out --html, --json and --all")
    if is_store(options.traces[0]):
        from roast_analyze.commands import history

        if options.html is None:
            history.print_summary(options)
        else:
            _show(history.write_page(options), options)
        return
    options.traces = [Path(name) for name in options.traces]
    traces = traces_to_compare(options.traces)
    if options.html is not None:
        _show(_write_report(traces, options), options)
        return
    from roast_analyze.commands.terminal import print_out

    if len(traces) > 1:
        if options.markdown:
            raise TraceError("--markdown prints the digest of one trace: name one")
        if options.json:
            raise TraceError("--json prints the summary of one trace: name one")
        from roast_analyze.commands.compare import compare
        from roast_analyze.report.comparison.data import query

        print_out(*compare(query(traces, partial(open_trace, options=options))))
        return
    from roast_analyze.commands.summary_tables import summarize

    with open_trace(traces[0], options) as trace:
        if options.json:
            print_json({view: rows(trace.sql(f"FROM {view}")) for view in _JSON_VIEWS})
        elif options.markdown:
            from roast_analyze.commands.digest import digest

            print("\n".join(digest(trace)))
        else:
            print_out(*summarize(trace, is_complete=options.all))


def _refuse_others(options: argparse.Namespace) -> None:
    """Raise TraceError if a run is to be followed with an option that would have no effect."""
    given = {
        "--all": options.all,
        "--from": options.start,
        "--html": options.html,
        "--json": options.json,
        "--markdown": options.markdown,
        "--open": options.open,
        "--session": options.session,
        "--title": options.title,
        "--to": options.stop,
    }
    names = [name for name, value in given.items() if value is not None and value is not False]
    names += [repr(name) for name in options.traces[1:]]
    if names:
        raise TraceError(
            "--follow shows one trace in the terminal, from its first record on: leave out "
            + ", ".join(names)
        )


def _show(page: Path, options: argparse.Namespace) -> None:
    """Print the path of a page, and open it with --open."""
    if page in STDOUT:
        return
    print(f"report: {page}", flush=True)  # before a browser writes to the terminal
    if options.open:
        address, opened = page.absolute().as_uri(), False
        with suppress(webbrowser.Error, OSError):  # the variable BROWSER names no program
            opened = webbrowser.open(address)
        if not opened:
            print_note(f"no browser found: open {address} yourself")


def _write_report(traces: list[tuple[Path, ...]], options: argparse.Namespace) -> Path:
    from roast_analyze.report import write_comparison, write_report

    if isinstance(options.html, Path):
        target = options.html
    elif str(traces[0][0]) == STDIN or is_copy(traces[0][0]):
        raise TraceError("the trace is read from a pipe: name the report with --html FILE")
    else:
        # A pattern is named after the first file that it matches.
        first, *others = (
            name if name.exists() else segment_paths(name)[0] for name, *_ in traces
        )
        name = trace_name(first)
        if others:
            rest = trace_name(others[0]) if len(others) == 1 else f"{len(others)}-more"
            name = f"{name}-and-{rest}"
        folder = Path.cwd() if is_of_url(first) else first.absolute().parent
        target = folder / f"{name}.html"
    # Checked before the traces are read, which can take minutes.
    check_place(target)
    if target.name.endswith(SUFFIXES) and target.exists():
        raise NotWritable(
            f"{str(target)!r} is named like a trace: put the traces before --html FILE"
        )
    refuse_to_overwrite(options.traces, target)
    opener = partial(open_trace, options=options)
    if len(traces) > 1:
        return write_comparison(traces, target, title=options.title, opener=opener)
    with (
        opener(traces[0]) as trace,
        progress(trace.path.name, "writing the report", measured=False),
    ):
        return write_report(trace, target, title=options.title)
