"""Comparison of several traces in the terminal: headlines, and ratios to the first trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.commands.terminal import cell, table
from roast_analyze.report import quantities as q
from roast_analyze.report.comparison import sentences
from roast_analyze.report.comparison.data import RATIO

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roast_analyze.report.comparison.data import Comparison

#: Columns of each table, which fit into 80 characters: name, heading and formatter.
_TABLES: Final[dict[str, list[tuple[str, str, Callable[[Any], str]]]]] = {
    "Time": [
        ("wall_seconds", "wall", q.seconds),
        ("peak_nthreads", "threads", q.count),
        ("core_seconds", "core time", q.seconds),
        ("kept_seconds", "kept", q.seconds),
        ("wasted_seconds", "wasted", q.seconds),
        ("idle_seconds", "idle", q.seconds),
    ],
    "Work": [
        ("tasks", "tasks", q.count),
        ("chunks", "chunks", q.count),
        ("events", "events", q.count),
        ("events_per_second", "events/s", q.number),
        ("bytes_read", "read", q.byte_size),
        ("output_bytes", "results", q.byte_size),
    ],
    "Memory and failures": [
        ("peak_memory_bytes", "peak memory", q.byte_size),
        ("failures", "failures", q.count),
        ("lost_records", "records lost", q.count),
        ("completeness", "completeness", str),
    ],
}


def compare(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the parts of the comparison."""
    yield cell(sentences.verdict(comparison))
    if text := sentences.time_ranges(comparison):
        yield cell(text)
    for text in sentences.chunk_costs(comparison):
        yield cell(text, limit=400)
    for title, columns in _TABLES.items():
        rows = []
        for row in comparison.totals.rows.iter_rows(named=True):
            cells = [cell(row["trace"])]
            for name, _, write in columns:
                cells.append(cell(write(row[name])))
                if (ratio := row.get(name + RATIO)) is not None:  # to the first trace
                    cells[-1].append(f"\n{q.times(ratio)}", style="dim")
            rows.append(cells)
        yield ""
        yield table(["trace", *(f">{heading}" for _, heading, _ in columns)], rows, title)
    if comparison.left_out:
        yield ""
        yield cell(sentences.left_out(comparison))
    yield ""
    yield cell("Details by prefix, dataset, file and over time: --html or --open")
