"""Predict the wall time under other conditions.

Dask's scheduling is simulated over the recorded graph and durations. The first row of a trace
is its replay as recorded. The difference to the recorded wall time is the column replay_error;
above 10 %, the predictions should not be used, and the note names the assumption that is
probably wrong. Without options, other numbers of workers are predicted.

Several values are separated by commas, and every combination of the options is a row. What is
removed by --without: stragglers (attempts of twice the usual duration), failures (failed
attempts and lost workers), transfers, scheduler (overhead per task) or client-gaps (from the
results that the client waited for to its next graph); a+b removes both.

For example:

    roast-analyze what-if trace.jsonl
    roast-analyze what-if trace.jsonl --workers 2,4,8 --threads 1,2
    roast-analyze what-if trace.jsonl --chunk-size auto,50000,100000
    roast-analyze what-if trace.jsonl --without stragglers,transfers+scheduler --format csv
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from roast_analyze.commands.formats import add_format, complete_options, write
from roast_analyze.commands.trace_args import add_time_range, add_traces, open_trace
from roast_analyze.errors import NothingToExport

if TYPE_CHECKING:
    import polars as pl


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces(parser)
    add_time_range(parser)
    parser.add_argument(
        "--workers", metavar="N,…", type=_counts, default=[], help="numbers of workers"
    )
    parser.add_argument(
        "--threads",
        metavar="N,…",
        type=_counts,
        default=[],
        help="numbers of threads per worker",
    )
    parser.add_argument(
        "--chunk-size",
        metavar="N,…",
        type=lambda text: [
            size if size == "auto" else _counts(size)[0] for size in text.split(",")
        ],
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


def _counts(text: str) -> list[int]:
    numbers = text.split(",")
    if not all(number.isdecimal() and int(number) for number in numbers):
        raise argparse.ArgumentTypeError(f"invalid numbers {text!r}: use 4, or 2,4,8")
    return [int(number) for number in numbers]


def run(options: argparse.Namespace) -> None:
    """Write a row per scenario."""
    complete_options(options, options.traces)
    from roast_analyze.what_if import predict

    with open_trace(options.traces, options) as trace:
        frame = predict(
            trace, options.workers, options.threads, options.chunk_size, options.without
        )
    if frame.is_empty():
        raise NothingToExport("no task ran on a worker: there is nothing to simulate")
    import duckdb

    with duckdb.connect() as connection:
        shown = _readable(frame) if options.format == "table" else frame
        relation = connection.from_arrow(shown.to_arrow())
        write(relation, options.format, options.output, options.limit)


def _readable(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with rounded numbers, shorter names, and no columns without values."""
    import polars as pl

    share = pl.format("{} %", (100 * pl.col("change")).round(1))
    errors = pl.format("{} %", (100 * pl.col("replay_error")).round(1))
    rounded = frame.with_columns(
        pl.col("wall_seconds", "core_seconds").round(2),
        critical_path=pl.col("critical_path_seconds").round(2),
        total_work=pl.col("total_work_seconds").round(2),
        change=share,
        replay_error=errors,
    )
    columns = [
        "workers", "threads", "chunk_size", "without", "wall_seconds", "core_seconds", "change",
        "critical_path", "total_work", "replay_error", "note", "trace_id",
    ]  # fmt: skip
    optional = ("chunk_size", "without", "note")
    empty = [name for name in optional if rounded[name].null_count() == len(rounded)]
    if rounded["trace_id"].n_unique() == 1:
        empty.append("trace_id")
    return rounded.select(name for name in columns if name not in empty)
