"""Sentences about the time range that a report covers, and about what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roast_analyze.report.quantities import count, counted, seconds

if TYPE_CHECKING:
    from roast_analyze.open.time_range import TimeRange


def describe(time_range: TimeRange) -> str:
    """Name the time range, such as: time range 90 s to 300 s of a run of 25 min."""
    begin, end = (
        f"{value:,.3f}".rstrip("0").rstrip(".") + "\N{NO-BREAK SPACE}s"
        for value in (time_range.start_seconds, time_range.stop_seconds)
    )
    return f"time range {begin} to {end} of a run of {seconds(time_range.run_seconds)}"


def describe_omissions(time_range: TimeRange) -> str:
    """Count what is outside the time range and what crosses its ends."""
    selected, total = time_range.selected, time_range.total
    if selected == total:
        return "The time range contains the whole run."
    parts = [
        f"{count(all_ - included)} of {counted(all_, noun)}"
        for included, all_, noun in (
            (selected.attempts, total.attempts, "attempt"),
            (selected.transitions, total.transitions, "transition"),
            (selected.samples, total.samples, "sample"),
        )
        if all_
    ]
    text = f"Left out: {', '.join(parts)}." if parts else ""
    if time_range.cut_attempts:
        crossing = counted(time_range.cut_attempts, "attempt crosses", "attempts cross")
        text += (
            f" {crossing} the ends of the time range: only the time inside counts, and "
            "attempts that end later count as unfinished."
        )
    return text.strip()
