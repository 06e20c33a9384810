"""Sentences of the comparison, for the page and the terminal.

A sentence states what was measured and draws no conclusion that the numbers do not support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.comparison.data import DIFFERENCE, TRACE_LIMIT, seconds_in
from roast_analyze.report.time_ranges import describe
from roast_analyze.safe_text import named

if TYPE_CHECKING:
    from roast_analyze.report.comparison.data import Comparison
    from roast_analyze.report.listing import Listing

#: Maximum number of traces that a sentence names.
_NAMED: Final = 4

#: A trace's label, a quantity of it, and the text of the quantity.
_Value = tuple[str, float, str]


def verdict(comparison: Comparison) -> str:
    """Compare the longest trace with the shortest; of two traces, the second with the first."""
    walls = [
        (trace.label, trace.wall_seconds, q.seconds(trace.wall_seconds))
        for trace in comparison.traces
    ]
    if len(walls) == 2:
        short, long = walls
        start = f"{named(long[0])} took {long[2]}, "
    else:
        short, long = _extremes(walls)
        start = (
            f"Of {q.count(len(walls))} traces, {named(long[0])} took the longest, {long[2]}: "
        )
    return f"{start}{_times_as(long, short, 'long')}."


def core_time(comparison: Comparison) -> str:
    """Compare the share of computing, and compute time whose result was not kept."""
    used, wasted = [], []
    for trace in comparison.traces:
        computing, not_kept = trace.run.core_efficiency, trace.run.wasted_seconds
        if computing is None:
            continue
        used.append((trace.label, computing, q.share(computing)))
        if not_kept:
            wasted.append((trace.label, not_kept, q.seconds(not_kept)))
    if not used:
        return "No worker was recorded in any trace, so the core time is unknown."
    text = f"The share of the core time spent computing was {_each(used)}."
    if wasted:
        text += f" Attempts whose result was not kept computed for {_each(wasted)}."
    return text


def completeness(comparison: Comparison) -> str:
    """Name the incomplete traces."""
    incomplete = [named(trace.label) for trace in comparison.traces if trace.losses]
    if not incomplete:
        return "All traces are complete."
    be = "is" if len(incomplete) == 1 else "are"
    return f"{_series(incomplete)} {be} incomplete: lost records are missing in all numbers."


def left_out(comparison: Comparison) -> str:
    """Name the traces beyond the limit; empty if there are none."""
    if not comparison.left_out:
        return ""
    names = [named(label) for label in comparison.left_out]
    more = q.counted(len(names), "more trace is", "more traces are")
    return f"{more} left out, because the limit is {TRACE_LIMIT}: {_series(names)}."


def time_ranges(comparison: Comparison) -> str:
    """Name the time range of each trace; empty if whole runs are compared."""
    ranges = [
        (trace.label, trace.time_range.run_seconds, describe(trace.time_range))
        for trace in comparison.traces
        if trace.time_range
    ]
    return f"Only a part of the runs is compared: {_each(ranges)}." if ranges else ""


def over_time(comparison: Comparison, *, with_limit: bool) -> str:
    """Describe the figures, with the memory limit or without, and compare the threads."""
    text = (
        "Each row is a trace, all on the same axes; time starts at zero for each. Dotted "
        f"lines: threads{' and memory limit' if with_limit else ''}."
    )
    computing = []
    for trace in comparison.traces:
        run = trace.run
        # Without a cluster, the number of threads is unknown.
        if run.busy_seconds and run.compute_seconds and run.peak_nthreads:
            average = run.compute_seconds / run.busy_seconds
            words = f"{q.number(average)} of {q.count(run.peak_nthreads)}"
            computing.append((trace.label, average, words))
    if computing:
        text += (
            " Average number of threads that computed, from the first task to the last: "
            f"{_each(computing)}."
        )
    return text


def chunk_costs(comparison: Comparison) -> list[str]:
    """State the costs of chunks that are known only from runs of different chunk sizes."""
    return [
        f"Of dataset {named(row['dataset'])}, a chunk takes {q.seconds(row['fixed_seconds'])} "
        f"(± {q.seconds(row['fixed_error_seconds'])}) and {q.seconds(row['seconds_per_event'])}"
        f" per event: fitted to {q.counted(row['runs'], 'run')} with "
        f"{q.count(row['least_events'])} to {q.count(row['most_events'])} events per chunk, if "
        "they differ in nothing else (view joint_chunk_costs)."
        for row in comparison.chunk_costs.iter_rows(named=True)
    ]


def memory(comparison: Comparison) -> str:
    """Compare the highest with the lowest peak memory; empty if they are unknown."""
    peaks = [
        (trace.label, float(peak), q.byte_size(peak))
        for trace in comparison.traces
        if (peak := trace.run.peak_memory_bytes)
    ]
    if len(peaks) < 2:
        return ""
    low, high = _extremes(peaks)
    return (
        f"{named(high[0])} had the highest peak memory, {high[2]}: "
        f"{_times_as(high, low, 'much')}."
    )


def difference(comparison: Comparison, listing: Listing, noun: str) -> str:
    """Name the prefix, dataset or file with the largest difference from the first trace."""
    row = listing.rows.row(0, named=True)
    change = row[DIFFERENCE]
    if not change:
        return f"The compute time by {noun} is the same in all traces."
    first, *others = comparison.labels
    seconds = {label: row[seconds_in(label)] for label in comparison.labels}
    other = min(
        others,
        key=lambda label: abs((seconds[label] or 0.0) - (seconds[first] or 0.0) - change),
    )
    name = named(next(iter(row.values())) or f"(no {noun})", limit=80)
    amounts = [
        f"{'none' if seconds[label] is None else q.seconds(seconds[label])} in {named(label)}"
        for label in (other, first)
    ]
    return f"Of the {listing.view}, {name} differs most in compute time: {', '.join(amounts)}."


def facts(comparison: Comparison) -> str:
    """Count the recorded facts that differ, those that do not, and those of some traces."""
    same, differing = comparison.facts_in_common, comparison.facts.total
    about = "about software, machines and settings"
    missing = comparison.facts_in_some
    others = ""
    if missing:
        text = q.counted(missing, "fact is", "facts are")
        others = f" {text} missing in some of the traces, and not compared."
    if not same and not differing:
        return f"No facts {about} were recorded{' in all traces' if missing else ''}.{others}"
    if not differing:
        facts = q.counted(same, "recorded fact")
        be = "is" if same == 1 else "are"
        return f"{facts} {about} {be} the same in all traces.{others}"
    sections = comparison.facts.rows["section"].unique(maintain_order=True)
    where = _series([named(section, limit=40) for section in sections])
    facts = q.counted(differing, "recorded fact")
    return (
        f"{facts} {about} {'differs' if differing == 1 else 'differ'}, in {where}; "
        f"{q.count(same)} {'is' if same == 1 else 'are'} the same.{others} Identifiers and "
        "addresses, which always differ, are left out."
    )


def _times_as(high: _Value, low: _Value, adverb: str) -> str:
    """Compare a value with another, such as: 2 times as long as a (5 s)."""
    times = "" if high[1] == low[1] else "not "
    if low[1]:
        ratio = high[1] / low[1]
        times = "" if 0.995 <= ratio < 1.005 else f"{q.number(ratio)} times "
    return f"{times}as {adverb} as {named(low[0])} ({low[2]})"


def _each(values: list[_Value]) -> str:
    """Describe a value in each of a few traces; of many, its minimum and maximum."""
    if len(values) <= _NAMED:
        return _series([f"{text} in {named(label)}" for label, _, text in values])
    low, high = _extremes(values)
    if low[2] == high[2]:
        return f"{low[2]} in each of {q.count(len(values))} traces"
    return f"{low[2]} in {named(low[0])} to {high[2]} in {named(high[0])}"


def _extremes(values: list[_Value]) -> tuple[_Value, _Value]:
    return min(values, key=lambda value: value[1]), max(values, key=lambda value: value[1])


def _series(parts: list[str]) -> str:
    if len(parts) > _NAMED:
        parts = [*parts[: _NAMED - 1], f"{len(parts) - _NAMED + 1} more"]
    return q.series(parts)
