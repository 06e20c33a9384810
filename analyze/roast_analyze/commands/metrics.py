"""Print the metrics of a run as JSON, for programs.

Names carry their units, and `metrics_version` changes when one of them changes its meaning.
A metric that was not measured is null. `gate` compares metrics, and reads these files, too.

For example:

    roast-analyze metrics trace.jsonl.zst
    roast-analyze metrics trace.jsonl.zst > metrics.json
"""

from __future__ import annotations

import argparse
import json

from roast_analyze.commands.trace_args import (
    TRACE_HELP,
    add_reading,
    add_time_range,
    open_trace,
    trace_argument,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace", metavar="TRACE", type=trace_argument, help=TRACE_HELP.partition("; ")[0]
    )
    add_time_range(parser)
    add_reading(parser)


def run(options: argparse.Namespace) -> None:
    """Print the metrics."""
    from roast_analyze.metrics import read_metrics

    with open_trace([options.trace], options) as trace:
        print(json.dumps(read_metrics(trace), indent=2))
