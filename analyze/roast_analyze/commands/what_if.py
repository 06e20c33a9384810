"""Predict the wall time under other conditions.

Dask's scheduling is simulated over the recorded graph and durations. The first row of a trace
is its replay with the recorded placement of tasks. Its difference from the recorded wall time
is the column replay_error; above 10 %, nothing is predicted, and the note names the assumption
that is probably wrong. Without options, other numbers of workers are predicted.

A run of the program under these conditions should take a time within the range, wall_seconds
being the most probable one. The range contains other choices of Dask between equal workers,
other durations of tasks, the error of the model, and what the trace does not show: the fixed
time of a chunk if all have the same size, and whether tasks waited for a core. If its upper end
would be more than four times the lower one, only the lower bound is predicted. The range of the
first row is that of a repetition of the run; placement_error is the difference of the recorded
wall time from simulations without the recorded placement.

Several values are separated by commas, and every combination of the options is a row. --without
removes stragglers (attempts of twice the usual duration), failures (failed attempts and lost
workers), transfers, scheduler (overhead per task) or client-gaps (the time from the results
that the client waited for to its next graph); a+b removes both.

For example:

    roast-analyze what-if trace.jsonl
    roast-analyze what-if trace.jsonl --workers 2,4,8 --threads 1,2
    roast-analyze what-if trace.jsonl --chunk-size auto,50000,100000
    roast-analyze what-if trace.jsonl --without stragglers,transfers+scheduler --format csv
"""

from __future__ import annotations

import argparse
from typing import Final

from roast_analyze.commands.formats import add_format, complete_options, write_frame
from roast_analyze.commands.trace_args import add_time_range, add_traces, open_trace
from roast_analyze.commands.whole_numbers import whole_number
from roast_analyze.errors import NothingToExport

#: A smaller error of the placement is not worth a column.
_MIN_ERROR: Final = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces(parser)
    add_time_range(parser)
    parser.add_argument(
        "--workers", metavar="N,…", type=_numbers, default=[], help="numbers of workers"
    )
    parser.add_argument(
        "--threads",
        metavar="N,…",
        type=_numbers,
        default=[],
        help="numbers of threads per worker",
    )
    parser.add_argument(
        "--chunk-size",
        metavar="N,…",
        type=lambda text: _numbers(text, "auto"),
        default=[],
        help="events per chunk of a coffea Runner; auto is the size that the view chunk_costs "
        "recommends",
    )
    parser.add_argument(
        "--without",
        metavar="CAUSE,…",
        type=lambda text: text.split(","),
        default=[],
        help="remove stragglers, failures, transfers, scheduler or client-gaps",
    )
    add_format(parser)


def _numbers(text: str, *words: str) -> list[int | str]:
    """Parse whole numbers, or some words, that are separated by commas."""
    return [
        part if part in words else whole_number(part, what="numbers", hint="4, or 2,4,8")
        for part in text.split(",")
    ]


def run(options: argparse.Namespace) -> None:
    """Write a row per scenario."""
    complete_options(options, options.traces)
    import polars as pl

    from roast_analyze.what_if import predict

    with open_trace(options.traces, options) as trace:
        frame = predict(
            trace, options.workers, options.threads, options.chunk_size, options.without
        )
    if frame.is_empty():
        raise NothingToExport("no task ran on a worker: there is nothing to simulate")
    if options.format == "table":
        # Rounded numbers, shorter names, and no columns without values.
        percents = [
            pl.format("{} %", (100 * pl.col(name)).round(1)).alias(name)
            for name in ("change", "replay_error", "placement_error")
        ]
        least, most = (pl.col(f"wall_seconds_{end}").round(2) for end in ("min", "max"))
        # Nulls leave out a column without values.
        frame = (
            frame.with_columns(
                pl.when(most.is_null())
                .then(pl.format("at least {}", least))
                .otherwise(pl.format("{}–{}", least, most))
                .alias("range"),
                pl.when(pl.col("placement_error").abs() >= _MIN_ERROR).then("placement_error"),
            )
            .with_columns(pl.col("^.*_seconds$").round(2), *percents)
            .rename(
                {"critical_path_seconds": "critical_path", "total_work_seconds": "total_work"}
            )
            .select(
                "workers", "threads", "chunk_size", "without", "wall_seconds", "range",
                "core_seconds", "change", "critical_path", "total_work", "replay_error",
                "placement_error", "note", "trace_id",
            )
        )  # fmt: skip
        optional = ("chunk_size", "without", "range", "placement_error", "note")
        empty = [name for name in optional if frame[name].null_count() == len(frame)]
        # The user knows the identity of a single trace.
        if frame["trace_id"].n_unique() == 1:
            empty.append("trace_id")
        frame = frame.drop(empty)
    write_frame(frame, options)
