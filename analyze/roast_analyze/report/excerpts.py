"""Which stretch of a run is told of, in sentences, so that nobody takes it for the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roast_analyze.report.quantities import count, counted, seconds

if TYPE_CHECKING:
    from roast_analyze.open.time_range import TimeRange

_NBSP = "\N{NO-BREAK SPACE}"


def stretch(excerpt: TimeRange) -> str:
    """Name the stretch.

    Such as: the stretch from 90 s to 300 s of a run of 25 min.
    """
    begin, end = _since(excerpt.start_seconds), _since(excerpt.stop_seconds)
    return f"the stretch from {begin} to {end} of a run of {seconds(excerpt.run_seconds)}"


def left_out(excerpt: TimeRange) -> str:
    """Say how much of the run lies outside, and what became of what crosses the ends."""
    told, whole = excerpt.selected, excerpt.total
    if told == whole:
        return "Nothing lies outside: it is the whole run."
    parts = [
        f"{count(there - here)} of {counted(there, noun)}"
        for here, there, noun in (
            (told.attempts, whole.attempts, "attempt"),
            (told.transitions, whole.transitions, "transition"),
            (told.samples, whole.samples, "sample"),
        )
        if there
    ]
    text = f"What lies outside is left out: {', '.join(parts)}." if parts else ""
    if excerpt.cut_attempts:
        cut = counted(excerpt.cut_attempts, "attempt goes", "attempts go")
        text += (
            f" {cut} beyond its ends: the time outside is cut off, and what ends later counts "
            "as unfinished."
        )
    return text.strip()


def _since(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".") + f"{_NBSP}s"
