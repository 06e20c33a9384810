"""Sentences of the page of a store, also for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.algorithms.change_points import MIN_SIDE
from roast_analyze.algorithms.recurrent import MIN_SHARE
from roast_analyze.report import quantities as q
from roast_analyze.report.history import changes, data
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from roast_analyze.report.history.changes import Change
    from roast_analyze.report.history.data import History

_NAME_LIMIT: Final = 60
#: Maximum number of facts that a sentence names.
_FACTS: Final = 4


def totals(history: History) -> str:
    """Describe the number of runs and what they used."""
    runs = history.runs
    if runs.is_empty():
        return "The store is empty."
    # A recording of a shared scheduler is named after all of its programs.
    names = runs["program"].drop_nulls().str.split(", ").explode()
    known = names.filter(names != "unknown")
    first, last = (q.minute(t) for t in (runs["start_t"].min(), runs["start_t"].max()))  # type: ignore[arg-type]
    amount, unit = q.core_time(3600 * history.core_hours)
    # The program of a recording that was attached is unknown.
    of = f" of {q.counted(known.n_unique(), 'program')}" if known.len() else ""
    text = f"{q.counted(runs.height, 'run')}{of} from {first} to {last}"
    if not history.core_hours:
        return f"{text}; their core time is unknown."
    share = history.wasted_hours / history.core_hours
    return f"{text} used {amount} {unit}, {q.share(share)} of which produced no kept result."


def verdict(history: History) -> str:
    """Name the number of programs that became worse, and of slow files and hosts."""
    worse = len({change.program for change in history.changes if change.is_worse})
    if not (worse or history.files.total or history.hosts.total):
        programs = "No program became slower or more wasteful"
        if not history.series:
            programs = f"No program has the {2 * MIN_SIDE} runs that finding a change requires"
        if not (history.tested_files or history.tested_hosts):
            return f"{programs}."
        return f"{programs}, and no file or host is slow in run after run."
    parts = []
    if worse:
        parts.append(f"{q.counted(worse, 'program')} became slower or more wasteful")
    slow = []
    for number, noun in ((history.files.total, "file"), (history.hosts.total, "host")):
        if number:
            slow.append(q.counted(number, noun))
    if slow:
        verb = "is" if history.files.total + history.hosts.total == 1 else "are"
        parts.append(f"{q.series(slow)} {verb} slow in run after run")
    return f"{q.series(parts)}."


def change(found: Change) -> str:
    """Describe a change of a program."""
    word = "worse" if found.is_worse else "better"
    number = f"run {q.count(found.run_number)} of {q.count(found.runs)}"
    if found.low < found.high:
        number += f" (between {q.count(found.low)} and {q.count(found.high)})"
    shifts = []
    for shift in found.shifts:
        sign = "+" if shift.change > 0 else "−"
        unit = "" if shift.metric.is_ratio else " of the core time"
        shifts.append(f"{shift.metric.words} {sign}{q.share(abs(shift.change))}{unit}")
    text = (
        f"{one_line(found.program, _NAME_LIMIT)} became {word} at {number}, "
        f"{q.minute(found.start_t)}: {q.series(shifts)}."
    )
    if found.facts:
        facts = [f"{fact.name} {one_line(fact.text, _NAME_LIMIT)}" for fact in found.facts]
        more = q.and_more(len(facts), _FACTS) if len(facts) > _FACTS else ""
        return f"{text} Changed at this point: {'; '.join(facts[:_FACTS])}{more}."
    return f"{text} No recorded fact changed at this point."


def test(history: History) -> str:
    """Describe the test for changes."""
    return (
        "A change point of a metric, relative to the median of the program, is shown if a rank "
        f"test finds it with a p-value of at most {changes.SIGNIFICANCE} divided by the number "
        f"of series ({q.count(history.series)}: programs with at least {2 * MIN_SIDE} runs, "
        f"times metrics) and the medians before and after differ by at least "
        f"{q.share(changes.MIN_CHANGE)}."
    )


def slow(tested: int, noun: str) -> str:
    """Describe the test for slow files or hosts."""
    return (
        f"A {noun} is slow in a run if its duration relative to others of the run is at least "
        f"{q.times(data.SLOW_FACTOR)}. Listed are those that were slow in at least "
        f"{q.share(MIN_SHARE)} of their runs, with a p-value (binomial test against the rate "
        f"of all other {noun}s) of at most {data.SIGNIFICANCE} divided by the number of "
        f"{noun}s, {q.count(tested)}."
    )
