"""Check whether traces are complete.

Exits with 0 if they are, 1 if something is lost, and 2 if a trace cannot be read.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from roast_analyze.commands.formats import add_json, print_json, rows
from roast_analyze.commands.trace_args import add_traces, open_trace
from roast_analyze.open.remote import shown_name
from roast_analyze.report.quantities import count, counted
from roast_schemas.documentation import docs

#: Totals over all segments of the trace.
_COUNTS = """
SELECT
    (SELECT try_cast(sum(records) AS BIGINT) FROM trace_info) AS records,
    (SELECT count(*) FROM trace_info) AS segments,
    sum(tasks)::BIGINT AS tasks,
    sum(task_runs)::BIGINT AS task_runs,
    sum(workers)::BIGINT AS workers
FROM run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> bool:
    """Print the content and the losses of each trace; return whether all are complete."""
    checked = []
    for path in options.traces:
        with open_trace([path], options) as trace:
            losses = rows(trace.sql("SELECT reason, records, detail FROM loss"))
            [counts] = rows(trace.sql(_COUNTS))
        result = {"path": shown_name(path), "is_complete": not losses, **counts, "loss": losses}
        checked.append(result)
        if not options.json:
            _print(trace.path.absolute().name, result)
    if options.json:
        print_json(checked)
    return all(result["is_complete"] for result in checked)


def _print(name: str, result: Mapping[str, Any]) -> None:
    from roast_analyze.commands.terminal import cell, print_out, table

    verdict = "complete" if result["is_complete"] else "incomplete"
    contents = (
        f"{counted(result['records'], 'record')} in {counted(result['segments'], 'segment')}: "
        f"{counted(result['tasks'], 'task')}, {counted(result['task_runs'], 'attempt')}, "
        f"{counted(result['workers'], 'worker')}"
    )
    print_out(cell(f"{name}: {verdict}, {contents}"))
    if result["loss"]:
        lost = [(row["reason"], count(row["records"]), row["detail"]) for row in result["loss"]]
        print_out("", table(["loss", ">records", "detail"], lost))
        print_out(docs("reference/trace-format"))
