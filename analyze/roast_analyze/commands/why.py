"""Explain the difference between a run and one or more others.

The last trace is NEW. Its wall time is compared with that of BASE, or with the mean of several
bases, which are runs of the same program: the spread between them shows what is noise. The
terms of the table add up to the difference: number of threads, amount of work, chunk size, cost
of the work, and waiting of threads without a task.

For example:

    roast-analyze why before.jsonl.zst after.jsonl.zst
    roast-analyze why monday.jsonl.zst tuesday.jsonl.zst wednesday.jsonl.zst new.jsonl.zst
    roast-analyze why before.jsonl.zst after.jsonl.zst --details --format csv
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.formats import add_format, complete_options, write_frame
from roast_analyze.commands.trace_args import (
    add_reading,
    add_time_range,
    open_trace,
    trace_argument,
)
from roast_analyze.errors import TraceError
from roast_analyze.safe_text import named

#: Differing facts that are printed.
_SHOWN_FACTS: Final = 20

if TYPE_CHECKING:
    from roast_analyze.report.comparison.data import Comparison
    from roast_analyze.report.comparison.reasons import Reasons


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "traces",
        metavar="TRACE",
        nargs="+",
        type=trace_argument,
        help="one or more bases, and then the new trace",
    )
    add_time_range(parser)
    add_reading(parser)
    parser.add_argument(
        "--details",
        action="store_true",
        help="terms by dataset, detail of computing a chunk, and branch",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> None:
    """Print sentences, the terms and the differences in the environment, or write the terms."""
    from roast_analyze.open.discover import group_by_trace
    from roast_analyze.report.comparison.data import TRACE_LIMIT, query
    from roast_analyze.report.comparison.reasons import Reasons

    traces = group_by_trace(options.traces)
    complete_options(options, options.traces)
    if len(traces) < 2:
        raise TraceError("one trace has no difference: roast-analyze why BASE… NEW")
    if len(traces) > TRACE_LIMIT:
        raise TraceError(f"{len(traces)} traces given: compare at most {TRACE_LIMIT}")
    # One after the other, so that only one database takes memory at a time.
    comparison = query(traces, partial(open_trace, options=options))
    runs = [(trace.label, trace.amounts) for trace in comparison.traces]
    reasons = Reasons.of(runs[:-1], runs[-1])
    if options.format != "table" or options.output:
        write_frame(reasons.details if options.details else reasons.terms, options)
    else:
        _print(reasons, comparison, details=options.details)


def _print(reasons: Reasons, comparison: Comparison, *, details: bool) -> None:
    from roast_analyze.commands.terminal import cell, print_out, table
    from roast_analyze.report import quantities as q
    from roast_analyze.report.comparison import reasons as why
    from roast_analyze.report.comparison import sentences
    from roast_analyze.report.comparison.data import value_in

    print_out(cell(why.overview(reasons), limit=1000), "")
    for sentence in (*why.sentences(reasons), why.noise(reasons)):
        print_out(cell(sentence, limit=1000))
    columns = ["term", ">base", ">new", ">wall time", ">core time", ">noise", "significant"]
    print_out(
        "", table(columns, why.term_rows(reasons), "Terms, which add up to the difference")
    )
    path = [
        (step, q.seconds(base), q.seconds(new), why.signed(change))
        for step, base, new, change in why.path_frame(reasons).rows()
    ]
    columns = ["critical path", ">base", ">new", ">wall time"]
    print_out("", table(columns, path, "Critical path, by cause and prefix"))
    if details:
        columns = ["term", "dataset", "detail", "branch", ">wall time", ">core time"]
        print_out("", table(columns, why.detail_rows(reasons), "Details"))
    print_out("", cell(sentences.facts(comparison), limit=1000))
    if comparison.facts.total:
        names = ["section", "name", *map(value_in, comparison.labels)]
        facts = comparison.facts.rows.select(names).head(_SHOWN_FACTS).rows()
        columns = ["section", "fact", *map(named, comparison.labels)]
        print_out("", table(columns, facts, "Differences in the environment"))
        if (others := comparison.facts.total - len(facts)) > 0:
            print_out(f"… and {q.count(others)} more: roast-analyze BASE… NEW --html")
