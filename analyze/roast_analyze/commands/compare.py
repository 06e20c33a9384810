"""Several traces side by side in the terminal: headlines, and ratios to the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from roast_analyze.commands.terminal import cell, table
from roast_analyze.report import comparison_sentences as sentences
from roast_analyze.report import quantities as q
from roast_analyze.report.comparison import TIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from roast_analyze.report.comparison import Comparison

#: A column: name in the headline, heading, and how a value is written.
_Column = tuple[str, str, "Callable[[Any], str]"]

#: The tables, each as wide as a terminal.
_TABLES: Final[tuple[tuple[str, tuple[_Column, ...]], ...]] = (
    (
        "Time (kept, not kept: what was computed)",
        (
            ("wall_seconds", "wall", q.seconds),
            ("peak_nthreads", "threads", q.count),
            ("core_seconds", "core time", q.seconds),
            ("kept_seconds", "kept", q.seconds),
            ("wasted_seconds", "not kept", q.seconds),
            ("idle_seconds", "idle", q.seconds),
        ),
    ),
    (
        "Work",
        (
            ("tasks", "tasks", q.count),
            ("chunks", "chunks", q.count),
            ("events", "events", q.count),
            ("events_per_second", "events/s", q.number),
            ("bytes_read", "read", q.byte_size),
        ),
    ),
    (
        "Memory and trouble",
        (
            ("peak_memory_bytes", "peak memory", q.byte_size),
            ("failures", "failures", q.count),
            ("lost_records", "records lost", q.count),
            ("whole", "the trace is", str),
        ),
    ),
)


def parts(comparison: Comparison) -> Iterator[RenderableType]:
    """Give what is printed of a comparison."""
    yield cell(sentences.verdict(comparison))
    for title, columns in _TABLES:
        yield ""
        yield _table(comparison, title, columns)
    if comparison.left_out:
        yield ""
        yield cell(sentences.left_out(comparison))
    yield ""
    yield cell("More of it, by prefix, dataset, file and over time: --html or --open")


def _table(comparison: Comparison, title: str, columns: tuple[_Column, ...]) -> RenderableType:
    return table(
        ["trace", *(f">{heading}" for _, heading, _ in columns)],
        [
            (row["trace"], *(_value(row, name, write) for name, _, write in columns))
            for row in comparison.headline.rows.iter_rows(named=True)
        ],
        title,
    )


def _value(row: dict[str, Any], name: str, write: Callable[[Any], str]) -> Text:
    """Write a value, and below it how many times as much as in the first trace it is."""
    text = cell(write(row[name]))
    ratio = row.get(name + TIMES)
    if ratio is not None:
        text.append(f"\n{q.times(ratio)}", style="dim")
    return text
