"""A run that is being recorded, as text: for the terminal and for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from roast_analyze.algorithms.progress import RATE_SECONDS
from roast_analyze.report import quantities as q

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roast_analyze.algorithms.progress import Amount, Progress

#: Time without a record after which this is stated: a recording has samples every second.
SILENT_SECONDS: Final = 5.0

#: Headings of the rows of :func:`amounts`, after the name.
HEADINGS: Final = ("done", "of", "failed", "per s", "left")


class AmountRow(NamedTuple):
    """A prefix or a dataset."""

    name: str
    done: str
    total: str
    #: Finished share, from 0 to 1.
    share: float
    failed: str
    rate: str
    left: str


def state(run: Progress, silent_seconds: float = 0.0) -> tuple[str, str]:
    """Return whether the run goes on, and since when or how it ended."""
    seconds = q.seconds(run.now - run.start_t)
    if run.end_reason is not None:
        return "Ended", f"after {seconds}: {run.end_reason}"
    if silent_seconds > SILENT_SECONDS:
        return "Running", f"{seconds}; nothing was written for {q.seconds(silent_seconds)}"
    return "Running", seconds


def facts(run: Progress) -> Iterator[tuple[str, str]]:
    """Yield names and texts: what is done, by whom, and what is lost."""
    tasks = run.tasks
    text = f"{q.count(tasks.done)} of {q.count(tasks.total)} done"
    numbers = (
        (tasks.failed, "failed"),
        (run.retried, "retried"),
        (len(run.processing), "assigned"),
    )
    text += "".join(f", {q.count(number)} {name}" for number, name in numbers if number)
    yield "Tasks", text + _rest(tasks, run)
    if run.datasets:
        events = sum(amount.rates(run.now, _begun(run))[1] for amount in run.datasets.values())
        done, total = (
            sum(getattr(amount, name) for amount in run.datasets.values())
            for name in ("done_events", "events")
        )
        yield "Events", f"{q.count(done)} of {q.count(total)}, {q.rate(events, 'events')} now"
    workers = list(run.workers.values())
    text = (
        f"{q.count(len(workers))} with {q.counted(sum(w.nthreads for w in workers), 'thread')}"
    )
    if run.left:
        text += f"; {q.count(run.joined)} joined, {q.count(run.left)} left"
    yield "Workers", text
    if memory := sum(worker.memory for worker in workers):
        limit = sum(worker.memory_limit for worker in workers)
        fullest = max(workers, key=lambda w: w.memory / (w.memory_limit or float("inf")))
        text = q.byte_size(memory) + (f" of {q.byte_size(limit)}" if limit else "")
        if fullest.memory_limit:
            share = q.share(fullest.memory / fullest.memory_limit)
            text += f"; the fullest worker, {fullest.name}, {share}"
        yield "Memory", text
    if run.processing and run.end_reason is None:
        key, assigned_t = next(iter(run.processing.items()))
        yield "Longest", f"{key} was assigned {q.seconds(run.now - assigned_t)} ago"
    if run.lost:
        yield (
            "Lost",
            f"{q.counted(run.lost.total(), 'record')} of {', '.join(sorted(run.lost))}",
        )


def amounts(of: Mapping[str, Amount], run: Progress) -> Iterator[AmountRow]:
    """Yield the prefixes or datasets that are not done, and then the others, largest first."""
    in_order = sorted(
        of.items(), key=lambda item: (item[1].done >= item[1].total, -item[1].total)
    )
    for name, amount in in_order:
        rate, _ = amount.rates(run.now, _begun(run))
        is_open = amount.done + amount.failed < amount.total and run.end_reason is None
        left = amount.left_seconds(run.now, _begun(run)) if is_open else None
        yield AmountRow(
            name,
            q.count(amount.done),
            q.count(amount.total),
            min(amount.done / max(amount.total, 1), 1.0),
            q.count(amount.failed) if amount.failed else "",
            q.number(rate) if is_open and rate else "",
            "" if left is None else q.seconds(left),
        )


def _begun(run: Progress) -> float:
    return run.work_t if run.work_t is not None else run.start_t


def _rest(amount: Amount, run: Progress) -> str:
    """Return the rate and the expected end, while there is one."""
    if run.end_reason is not None or amount.done + amount.failed >= amount.total:
        return ""
    rate, _ = amount.rates(run.now, _begun(run))
    left = amount.left_seconds(run.now, _begun(run))
    end = f", {q.seconds(left)} left at the rate of the last {RATE_SECONDS:g} s" if left else ""
    return f"; {q.rate(rate, 'tasks')}{end}"
