"""Sentences of the comparison, for the page and the terminal.

A sentence states what was measured and draws no conclusion that the numbers do not support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.comparison.data import DIFFERENCE, TRACE_LIMIT, seconds_in
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roast_analyze.report.comparison.data import Comparison, TraceTotals
    from roast_analyze.report.listing import Listing

#: Most traces that a sentence names.
_NAMED: Final = 4


def trace_label(label: str) -> str:
    """Return the name of a trace, fit for a sentence."""
    return shortened(visible(label), 60)


def verdict(comparison: Comparison) -> str:
    """Compare the longest trace with the shortest; of two traces, the second with the first."""
    traces = comparison.traces
    if len(traces) == 2:
        first, second = traces
        return (
            f"{trace_label(second.label)} took {q.seconds(second.wall_seconds)}, "
            f"{_times_as(second.wall_seconds, first.wall_seconds, 'long')} "
            f"{trace_label(first.label)} ({q.seconds(first.wall_seconds)})."
        )
    shortest, longest = _extremes(traces, lambda trace: trace.wall_seconds)
    return (
        f"Of {q.count(len(traces))} traces, {trace_label(longest.label)} took the longest, "
        f"{q.seconds(longest.wall_seconds)}: "
        f"{_times_as(longest.wall_seconds, shortest.wall_seconds, 'long')} "
        f"{trace_label(shortest.label)} ({q.seconds(shortest.wall_seconds)})."
    )


def core_time(comparison: Comparison) -> str:
    """Compare CPU utilization, and compute time whose result was discarded."""
    known = [t for t in comparison.traces if t.run.core_efficiency is not None]
    if not known:
        return "No worker was recorded in any trace, so that CPU utilization is unknown."

    def utilization(trace: TraceTotals) -> float:
        return trace.run.core_efficiency or 0.0

    def discarded(trace: TraceTotals) -> float:
        return trace.time_spent.wasted_seconds

    text = (
        f"CPU utilization was {_each(known, utilization, lambda t: q.share(utilization(t)))}."
    )
    wasted = [t for t in known if discarded(t)]
    if wasted:
        seconds = _each(wasted, discarded, lambda t: q.seconds(discarded(t)))
        text += f" Attempts with discarded results computed for {seconds}."
    return text


def completeness(comparison: Comparison) -> str:
    """Name the incomplete traces."""
    incomplete = [trace_label(trace.label) for trace in comparison.traces if trace.losses]
    if not incomplete:
        return "All traces are complete."
    be = "is" if len(incomplete) == 1 else "are"
    return f"{_series(incomplete)} {be} incomplete: lost records are missing in all numbers."


def left_out(comparison: Comparison) -> str:
    """Name the traces beyond the limit; empty if there are none."""
    if not comparison.left_out:
        return ""
    names = [trace_label(label) for label in comparison.left_out]
    more = q.counted(len(names), "more trace is", "more traces are")
    return f"{more} left out, because the limit is {TRACE_LIMIT}: {_series(names)}."


def over_time(comparison: Comparison, *, with_limit: bool) -> str:
    """Describe the figures and the average number of threads that computed.

    Parameters
    ----------
    comparison : Comparison
    with_limit : bool
        Whether the memory limit is drawn.
    """
    text = (
        "Each row is a trace, all on the same axes; time starts at zero for each. Dotted "
        f"lines: threads{' and memory limit' if with_limit else ''}."
    )
    ran = [t for t in comparison.traces if t.run.busy_seconds and t.run.compute_seconds]
    if ran:

        def computing(trace: TraceTotals) -> float:
            return (trace.run.compute_seconds or 0.0) / (trace.run.busy_seconds or 1.0)

        def of_threads(trace: TraceTotals) -> str:
            return f"{q.number(computing(trace))} of {q.count(trace.run.peak_nthreads)}"

        text += (
            " Average number of threads that computed, from the first task to the last: "
            f"{_each(ran, computing, of_threads)}."
        )
    return text


def memory(comparison: Comparison) -> str:
    """Compare the highest with the lowest peak memory; empty if they are unknown."""
    known = [t for t in comparison.traces if t.run.peak_memory_bytes]
    if len(known) < 2:
        return ""
    least, most = _extremes(known, lambda trace: trace.run.peak_memory_bytes or 0)
    high, low = most.run.peak_memory_bytes or 0, least.run.peak_memory_bytes or 0
    return (
        f"{trace_label(most.label)} had the highest peak memory, {q.byte_size(high)}: "
        f"{_times_as(high, low, 'much')} {trace_label(least.label)} ({q.byte_size(low)})."
    )


def difference(comparison: Comparison, listing: Listing, noun: str, plural: str) -> str:
    """Name the prefix, dataset or file with the largest difference to the first trace."""
    if listing.total == 0:
        return ""
    row = listing.rows.row(0, named=True)
    change = row[DIFFERENCE]
    if not change:
        return f"The compute time by {noun} is the same in all traces."
    first, *others = [trace.label for trace in comparison.traces]
    before = row[seconds_in(first)] or 0.0
    other = min(
        others, key=lambda label: abs((row[seconds_in(label)] or 0.0) - before - change)
    )
    name = shortened(visible(str(next(iter(row.values())) or f"(no {noun})")), 80)
    amounts = [
        f"{'none' if row[seconds_in(label)] is None else q.seconds(row[seconds_in(label)])} in "
        f"{trace_label(label)}"
        for label in (other, first)
    ]
    return f"Of the {plural}, {name} differs most in compute time: {', '.join(amounts)}."


def facts(comparison: Comparison) -> str:
    """Count the recorded facts that differ, and those that do not."""
    same, differing = comparison.facts_in_common, comparison.facts.total
    about = "about software, machines and settings"
    if not same and not differing:
        return f"No facts {about} were recorded."
    if not differing:
        facts = q.counted(same, "recorded fact")
        return f"{facts} {about} {'is' if same == 1 else 'are'} the same in all traces."
    sections = list(dict.fromkeys(comparison.facts.rows["section"]))
    where = _series([shortened(visible(section), 40) for section in sections])
    facts = q.counted(differing, "recorded fact")
    return (
        f"{facts} {about} {'differs' if differing == 1 else 'differ'}, in {where}; "
        f"{q.count(same)} {'is' if same == 1 else 'are'} the same. Identifiers and addresses, "
        "which always differ, are left out."
    )


def _times_as(value: float, other: float, adverb: str) -> str:
    if not other:
        return f"not as {adverb} as"
    ratio = value / other
    if 0.995 <= ratio < 1.005:
        return f"as {adverb} as"
    return f"{q.number(ratio)} times as {adverb} as"


def _extremes(
    traces: Sequence[TraceTotals], value: Callable[[TraceTotals], float]
) -> tuple[TraceTotals, TraceTotals]:
    return min(traces, key=value), max(traces, key=value)


def _each(
    traces: Sequence[TraceTotals],
    value: Callable[[TraceTotals], float],
    text: Callable[[TraceTotals], str],
) -> str:
    """Describe a value in each of a few traces; of many, its minimum and maximum."""
    if len(traces) <= _NAMED:
        return _series([f"{text(t)} in {trace_label(t.label)}" for t in traces])
    low, high = _extremes(traces, value)
    least, most = text(low), text(high)
    if least == most:
        return f"{least} in each of {q.count(len(traces))} traces"
    return f"{least} in {trace_label(low.label)} to {most} in {trace_label(high.label)}"


def _series(parts: list[str]) -> str:
    if len(parts) > _NAMED:
        parts = [*parts[: _NAMED - 1], f"{len(parts) - _NAMED + 1} more"]
    return q.series(parts)
