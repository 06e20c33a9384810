"""Check whether traces are complete.

Exits with 0 if they are, 1 if something is lost, and 2 if a trace cannot be read.
"""

from __future__ import annotations

import argparse
import contextlib

from roast_analyze.commands.trace_args import add_traces, open_trace
from roast_analyze.report.quantities import count, counted

_COUNTS = """
SELECT
    (SELECT sum(records)::BIGINT FROM trace_info),
    (SELECT count(*) FROM trace_info),
    sum(tasks)::BIGINT,
    sum(task_runs)::BIGINT,
    sum(workers)::BIGINT
FROM run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces(parser)


def run(options: argparse.Namespace) -> bool:
    """Print what each trace contains and lacks; return whether all are complete."""
    from roast_analyze.commands.terminal import cell, print_out, table

    complete = True
    for path in options.traces:
        with open_trace([path], options) as trace:
            losses = trace.sql("SELECT reason, records, detail FROM loss").fetchall()
            complete = complete and not losses
            records, segments, tasks, runs, workers = trace.sql(_COUNTS).fetchall()[0]
        verdict = "incomplete" if losses else "complete"
        contents = (
            f"{counted(records, 'record')} in {counted(segments, 'segment')}: "
            f"{counted(tasks, 'task')}, {counted(runs, 'attempt')}, "
            f"{counted(workers, 'worker')}"
        )
        # The exit code must not depend on whether the output is read.
        with contextlib.suppress(BrokenPipeError):
            print_out(cell(f"{trace.path.name}: {verdict}, {contents}"))
            if losses:
                rows = [(reason, count(lost), detail) for reason, lost, detail in losses]
                print_out("", table(["loss", ">records", "detail"], rows))
    return complete
