"""What a section of a comparison shows and what it means here, computed from the runs.

As in :mod:`.sentences`, each function gives plain text, which states what was measured and
draws no conclusion that the numbers don't hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.comparison import DIFFERENCE, TRACE_LIMIT, seconds_in
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roast_analyze.report.comparison import Compared, Comparison
    from roast_analyze.report.gathered.listing import Listing

#: Most traces that a sentence names of many.
_NAMED: Final = 4


def name(label: str) -> str:
    """Make the name of a trace fit for a sentence."""
    return shortened(visible(label), 60)


def verdict(comparison: Comparison) -> str:
    """Say which trace took how many times as long as which."""
    traces = comparison.traces
    if len(traces) == 2:
        first, second = traces
        return (
            f"{name(second.label)} took {q.seconds(second.wall_seconds)}, "
            f"{_times_as(second.wall_seconds, first.wall_seconds, 'long')} {name(first.label)} "
            f"({q.seconds(first.wall_seconds)})."
        )
    shortest, longest = _ends(traces, lambda trace: trace.wall_seconds)
    return (
        f"Of {q.count(len(traces))} traces, {name(longest.label)} took the longest, "
        f"{q.seconds(longest.wall_seconds)}: "
        f"{_times_as(longest.wall_seconds, shortest.wall_seconds, 'long')} "
        f"{name(shortest.label)} ({q.seconds(shortest.wall_seconds)})."
    )


def core_time(comparison: Comparison) -> str:
    """Say how well the cores were used, and where least and most."""
    known = [t for t in comparison.traces if t.run.core_efficiency is not None]
    if not known:
        return "No worker was seen in any of them: what the cores could have done is not known."
    told = (
        "Of the time that they were there, the cores computed "
        f"{_each(known, _efficiency, lambda trace: q.share(_efficiency(trace)))}."
    )
    wasted = [t for t in known if t.time_spent.wasted_seconds]
    if wasted:
        told += (
            " Computing whose result was not kept: "
            f"{_each(wasted, _wasted, lambda trace: q.seconds(_wasted(trace)))}."
        )
    return told


def _efficiency(trace: Compared) -> float:
    return trace.run.core_efficiency or 0.0


def _wasted(trace: Compared) -> float:
    return trace.time_spent.wasted_seconds


def wholeness(comparison: Comparison) -> str:
    """Say which of the traces are not whole."""
    cut = [name(trace.label) for trace in comparison.traces if trace.losses]
    if not cut:
        return "All of the traces are whole."
    be = "is" if len(cut) == 1 else "are"
    return f"{_listed(cut)} {be} not whole: what is missing there is in none of these numbers."


def left_out(comparison: Comparison) -> str:
    """Say which traces were named, but are too many; empty if none."""
    if not comparison.left_out:
        return ""
    names = [name(label) for label in comparison.left_out]
    return (
        f"{q.counted(len(names), 'more trace')} that you named {_is(len(names))} not compared, "
        f"for there is room for {TRACE_LIMIT}: {_listed(names)}."
    )


def over_time(comparison: Comparison, *, with_limit: bool) -> str:
    """Say what the small figures show, and how much ran at once in each trace.

    Parameters
    ----------
    comparison : Comparison
    with_limit : bool
        Whether the limit of the memory is drawn.
    """
    told = (
        "A row a trace, on the same axes; time counts from the start of each. Dotted: the "
        f"threads that were there{', and the limit of the memory' if with_limit else ''}."
    )
    ran = [t for t in comparison.traces if t.run.busy_seconds and t.run.compute_seconds]
    if ran:
        told += (
            " Threads that computed on average, from the first task to the last: "
            f"{_each(ran, _computing, _computing_of)}."
        )
    return told


def _computing(trace: Compared) -> float:
    return (trace.run.compute_seconds or 0.0) / (trace.run.busy_seconds or 1.0)


def _computing_of(trace: Compared) -> str:
    return f"{q.number(_computing(trace))} of {q.count(trace.run.peak_nthreads)}"


def memory(comparison: Comparison) -> str:
    """Say which trace took the most memory, beside which the least; empty if not known."""
    known = [t for t in comparison.traces if t.run.peak_memory_bytes]
    if len(known) < 2:
        return ""
    least, most = _ends(known, lambda trace: trace.run.peak_memory_bytes or 0)
    high, low = most.run.peak_memory_bytes or 0, least.run.peak_memory_bytes or 0
    return (
        f"The most memory took {name(most.label)}, {q.byte_size(high)}: "
        f"{_times_as(high, low, 'much')} {name(least.label)} ({q.byte_size(low)})."
    )


def difference(comparison: Comparison, listing: Listing, noun: str, plural: str) -> str:
    """Say which prefix, dataset or file differs the most from the first trace, and by what."""
    if listing.total == 0:
        return ""
    there = [trace.label for trace in comparison.traces]
    row = listing.rows.row(0, named=True)
    change = row[DIFFERENCE]
    if not change:
        return f"The {plural} took the same compute time in all traces."
    first, *others = there
    before = row[seconds_in(first)] or 0.0
    other = min(
        others, key=lambda label: abs((row[seconds_in(label)] or 0.0) - before - change)
    )
    what = shortened(visible(str(next(iter(row.values())) or f"(no {noun})")), 80)
    return (
        f"Of the {plural}, {what} makes the largest difference: "
        f"{_computed(row[seconds_in(other)])} in {name(other)}, "
        f"{_computed(row[seconds_in(first)])} in {name(first)}."
    )


def _computed(seconds: float | None) -> str:
    return "none" if seconds is None else q.seconds(seconds)


def facts(comparison: Comparison) -> str:
    """Say how many recorded facts differ, and how many do not."""
    same, differing = comparison.facts_in_common, comparison.facts.total
    if not same and not differing:
        return "No facts about software and machines were recorded."
    if not differing:
        return (
            f"The {q.counted(same, 'recorded fact')} about software, machines and settings "
            f"{_is(same)} the same in all traces."
        )
    sections = list(dict.fromkeys(comparison.facts.rows["section"]))
    where = _listed([shortened(visible(section), 40) for section in sections])
    return (
        f"{q.counted(differing, 'recorded fact')} about software, machines and settings "
        f"{'differs' if differing == 1 else 'differ'}, in {where}; {q.count(same)} {_is(same)} "
        "the same. Identities and addresses, which differ always, are left out."
    )


def traces(comparison: Comparison) -> str:
    """Say how to see more of each trace."""
    return (
        f"Each of the {q.count(len(comparison.traces))} traces has a report of its own, with "
        "its timeline, chunks, workers, failures and profile; the last column has the command "
        "that makes it."
    )


def _times_as(value: float, other: float, what: str) -> str:
    if not other:
        return f"not {what} beside"
    ratio = value / other
    if 0.995 <= ratio < 1.005:
        return f"as {what} as"
    return f"{q.number(ratio)} times as {what} as"


def _ends(
    traces: Sequence[Compared], by: Callable[[Compared], float]
) -> tuple[Compared, Compared]:
    return min(traces, key=by), max(traces, key=by)


def _each(
    traces: Sequence[Compared],
    by: Callable[[Compared], float],
    told: Callable[[Compared], str],
) -> str:
    """Tell something of each of a few traces; of many, of the two ends."""
    if len(traces) <= _NAMED:
        return _listed([f"{told(trace)} in {name(trace.label)}" for trace in traces])
    low, high = _ends(traces, by)
    if told(low) == told(high):
        return f"{told(low)} in each of {q.count(len(traces))} traces"
    return f"from {told(low)} in {name(low.label)} to {told(high)} in {name(high.label)}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _listed(parts: list[str]) -> str:
    if len(parts) > _NAMED:
        parts = [*parts[: _NAMED - 1], f"{len(parts) - _NAMED + 1} more"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
