"""A run that is being recorded, as text: for the terminal and for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from roast_analyze.algorithms.progress import RATE_SECONDS
from roast_analyze.report import quantities as q

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roast_analyze.algorithms.progress import Amount, Progress

#: Time without a write after which a trace counts as no longer recorded, if it is not known
#: whether a process writes it.
ABANDONED_SECONDS: Final = 30.0

#: Time between two writes, and between two samples, of a recording whose settings are unknown.
_FLUSH_SECONDS: Final = 0.5
_SAMPLE_SECONDS: Final = 1.0

#: Headings of the rows of :func:`amounts`, after the name.
HEADINGS: Final = ("done", "of", "failed", "per s", "left")


class Silence(NamedTuple):
    """Time since the last write of a trace, and whether a process can write more."""

    seconds: float = 0.0
    #: False if the process that wrote the trace has gone; None if that is not known.
    has_writer: bool | None = True

    @property
    def is_live(self) -> bool:
        """Whether the trace counts as being recorded."""
        if self.has_writer is None:
            return self.seconds <= ABANDONED_SECONDS
        return self.has_writer


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


#: While records are being written.
_NO_SILENCE: Final = Silence()


def usual_seconds(run: Progress) -> float:
    """Return the time between two writes that a recording rarely exceeds while it works."""
    settings = run.header.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    kinds = settings.get("kinds")
    if isinstance(kinds, list) and {"worker_sample", "scheduler_sample"}.isdisjoint(kinds):
        return RATE_SECONDS  # between two transitions, it has nothing to write
    defaults = {
        "flush_interval_seconds": _FLUSH_SECONDS,
        "sample_interval_seconds": _SAMPLE_SECONDS,
    }
    intervals = [settings.get(name, default) for name, default in defaults.items()]
    if not all(isinstance(seconds, (int, float)) for seconds in intervals):
        intervals = [*defaults.values()]
    return 2 * float(sum(intervals))


def has_rate(run: Progress, silence: Silence) -> bool:
    """Return whether the rate of the last minute is that of now."""
    return run.end_reason is None and silence.seconds <= usual_seconds(run)


def state(run: Progress, silence: Silence = _NO_SILENCE) -> tuple[str, str]:
    """Return whether the run goes on, and since when or how it ended."""
    seconds = q.seconds(run.now - run.start_t)
    if run.end_reason is not None:
        return "Ended", f"after {seconds}: {run.end_reason}"
    if silence.has_writer is False:
        return "Ended", f"after {seconds}: stopped without a trailer"
    if silence.seconds > usual_seconds(run):
        seconds += f"; nothing was written for {q.seconds(silence.seconds)}"
    return "Running" if silence.is_live else "No trailer", seconds


def facts(run: Progress, silence: Silence = _NO_SILENCE) -> Iterator[tuple[str, str]]:
    """Yield names and texts: what is done, by whom, and what is lost."""
    tasks = run.tasks
    text = f"{q.count(tasks.done)} of {q.count(tasks.total)} done"
    numbers = (
        (tasks.failed, "failed"),
        (run.retried, "retried"),
        (len(run.processing), "assigned"),
    )
    text += "".join(f", {q.count(number)} {name}" for number, name in numbers if number)
    yield "Tasks", text + _rest(tasks, run, silence)
    if run.datasets:
        events = sum(amount.rates(run.now, _begun(run))[1] for amount in run.datasets.values())
        done, total = (
            sum(getattr(amount, name) for amount in run.datasets.values())
            for name in ("done_events", "events")
        )
        now = f", {q.rate(events, 'events')} now" if has_rate(run, silence) else ""
        yield "Events", f"{q.count(done)} of {q.count(total)}{now}"
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
        seconds = q.seconds(run.now - assigned_t)
        # Since the last record, the task may have ended.
        since = "ago" if has_rate(run, silence) else "before the last record"
        yield "Longest", f"{key} was assigned {seconds} {since}"
    if run.lost:
        yield (
            "Lost",
            f"{q.counted(run.lost.total(), 'record')} of {', '.join(sorted(run.lost))}",
        )


def amounts(
    of: Mapping[str, Amount], run: Progress, silence: Silence = _NO_SILENCE
) -> Iterator[AmountRow]:
    """Yield the prefixes or datasets that are not done, and then the others, largest first."""
    in_order = sorted(
        of.items(), key=lambda item: (item[1].done >= item[1].total, -item[1].total)
    )
    for name, amount in in_order:
        rate, _ = amount.rates(run.now, _begun(run))
        is_open = amount.done + amount.failed < amount.total and has_rate(run, silence)
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


def _rest(amount: Amount, run: Progress, silence: Silence) -> str:
    """Return the rate and the expected end, while there is one."""
    if not has_rate(run, silence) or amount.done + amount.failed >= amount.total:
        return ""
    rate, _ = amount.rates(run.now, _begun(run))
    left = amount.left_seconds(run.now, _begun(run))
    end = f", {q.seconds(left)} left at the rate of the last {RATE_SECONDS:g} s" if left else ""
    return f"; {q.rate(rate, 'tasks')}{end}"
