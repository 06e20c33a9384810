"""Tell whether a trace is whole, and what is lost if not.

Exits with 0 if it is whole, 1 if something is lost, 2 if it cannot be read.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from roast_analyze.commands.trace_args import add_trace, open_trace
from roast_analyze.report.quantities import count, counted

if TYPE_CHECKING:
    import argparse

    from roast_analyze.open.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_trace(parser)


def run(options: argparse.Namespace) -> int:
    """Print the verdict."""
    with open_trace(options) as trace:
        losses = trace.sql("SELECT reason, records, detail FROM loss").fetchall()
        # The verdict holds, whether or not somebody reads to the end why.
        with contextlib.suppress(BrokenPipeError):
            _print(trace, losses)
    return 1 if losses else 0


def _print(trace: Session, losses: list[tuple[str, int | None, str]]) -> None:
    from roast_analyze.commands.terminal import cell, print_out, table

    verdict = "not whole" if losses else "whole"
    print_out(cell(f"{trace.path.name}: {verdict}, {_contents(trace)}"))
    if losses:
        rows = [(reason, count(records), detail) for reason, records, detail in losses]
        print_out("", table(["what is lost", ">records", "detail"], rows))


def _contents(trace: Session) -> str:
    segments, records = trace.sql(
        "SELECT count(*), sum(records)::BIGINT FROM trace_info"
    ).fetchall()[0]
    tasks, runs, workers = trace.sql("SELECT tasks, task_runs, workers FROM run").fetchall()[0]
    return (
        f"{counted(records, 'record')} in {counted(segments, 'segment')}: "
        f"{counted(tasks, 'task')}, {counted(runs, 'attempt')}, {counted(workers, 'worker')}"
    )
