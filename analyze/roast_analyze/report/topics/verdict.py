"""The verdict at the top of the page: sentences, findings, tiles and core time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roast_analyze.report import findings, unexplained, wall_time
from roast_analyze.report import quantities as q
from roast_analyze.report.core_time_uses import USES
from roast_analyze.report.run import (
    computing_seconds,
    computing_shares,
    describe_end,
    describe_without_workers,
    has_raised,
)
from roast_analyze.report.topics import loss as losses
from roast_analyze.report.topics.core_time import TOTALS, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roast_analyze.report.context import Context
    from roast_analyze.report.findings import Finding
    from roast_analyze.report.listing import Listing
    from roast_analyze.report.run import Run
    from roast_analyze.report.topics.core_time import CoreTime
    from roast_analyze.report.unexplained import Unexplained


class Tile(NamedTuple):
    """A headline number with a label above and a hint in small print below."""

    label: str
    value: str
    hint: str
    tone: str = ""


class Share(NamedTuple):
    """A share of the time spent: its seconds, these and the percentage as text, its color."""

    name: str
    seconds: float
    text: str
    percent: str
    fraction: float
    color: str


@dataclass(frozen=True)
class Verdict:
    """Headline sentences, completeness, findings, tiles, and the bar of the time spent."""

    summary: str
    outcome: str
    is_complete: bool
    completeness: str
    findings: tuple[Finding, ...]
    #: Number of findings that are not shown.
    more_findings: int
    #: What the findings do not explain, as text.
    rest: str
    #: Whether that is little, and all attempts ended.
    is_explained: bool
    tiles: tuple[Tile, ...]
    spent: tuple[Share, ...]
    spent_sentence: str
    spent_query: str


def build(
    context: Context,
    loss: Listing,
    found: Sequence[Finding],
    rest: Unexplained,
    core_time: CoreTime,
) -> Verdict:
    """Build the verdict from the totals of a run, its losses, findings and core time."""
    run = context.run
    total = core_time.totals["seconds"].sum()
    seconds = dict(core_time.totals.select("use", "seconds").iter_rows())
    provided, unit = q.core_time(run.core_seconds)
    text = f"The workers provided {provided} {unit}. Each second is counted once."
    if not run.core_seconds:
        text = unknown(context)
    else:
        if without := describe_without_workers(core_time.without_workers):
            text += f" {without}"
        if run.transfer_seconds:
            text += (
                f" Transfers took {q.seconds(run.transfer_seconds)} in total. Only threads "
                "that waited for them are counted: most transfers overlap with computing."
            )
        if rest_of_wall_time := wall_time.describe(core_time.wall_time):
            text += f" {rest_of_wall_time}"
    return Verdict(
        summary=summarize(run),
        outcome=describe_outcome(run, seconds, context.recording.end_reason),
        is_complete=loss.total == 0,
        completeness=losses.completeness(loss, context),
        findings=tuple(found[: findings.SHOWN]),
        more_findings=max(len(found) - findings.SHOWN, 0),
        rest=unexplained.describe(rest, has_findings=bool(found)),
        is_explained=rest.is_little,
        tiles=_tiles(context, loss, seconds),
        spent=tuple(
            Share(words, part, q.seconds(part), q.share(part / total), part / total, color)
            for use, (words, color) in USES.items()
            if (part := seconds.get(use)) is not None
        ),
        spent_sentence=text,
        spent_query=TOTALS,
    )


def summarize(run: Run) -> str:
    """Describe in one sentence what the run did, how fast, and on how many workers."""
    if run.are_attempts_unknown:
        return (
            f"{q.counted(run.tasks, 'task was', 'tasks were')} submitted. No transition was "
            "recorded, so it is not known whether they ran or failed."
        )
    if not run.task_runs and not run.chunk_attempts:
        return f"No task ran during the {q.seconds(run.wall_seconds)} of this recording."
    on = ""
    if run.workers:
        # A recording of a single instant contains workers, but none for any time.
        threads = f" ({q.counted(run.peak_nthreads, 'thread')})" if run.peak_nthreads else ""
        on = f" on {q.counted(run.peak_workers or run.workers, 'worker')}{threads}"
    if run.chunks:
        events = "" if run.events is None else f", {q.counted(run.events, 'event')}"
        seconds = run.chunk_wall_seconds or run.busy_seconds
        rate = f": {q.rate(run.events_per_second, 'events')}" if run.events_per_second else ""
        done = f"{q.counted(run.chunks, 'chunk')}{events}"
    else:
        # The last end is not that of the work if attempts had not ended.
        seconds, rate = run.wall_seconds if run.unfinished else run.busy_seconds, ""
        done = q.counted(run.task_runs, "task")
        if not run.task_runs:
            done = f"{q.counted(run.chunk_attempts, 'chunk attempt')}, none finished"
        elif run.tasks is None:
            done = q.counted(run.task_runs, "attempt")
        elif run.tasks and run.tasks != run.task_runs:
            done = f"{q.counted(run.tasks, 'task')}, {q.counted(run.task_runs, 'attempt')}"
    duration = "" if seconds is None else f" in {q.seconds(seconds)}"
    return f"{done}{duration}{on}{rate}."


def describe_outcome(run: Run, uses: Mapping[str, float], end_reason: str | None = None) -> str:
    """Describe how busy the cores were, what failed, and what ended the recording early.

    ``uses`` is the thread time by use, from :func:`~roast_analyze.report.run.query_uses`.
    """
    end = describe_end(end_reason)
    parts = [
        (run.erred, "task failed", "tasks failed"),
        (run.retried, "attempt failed and was retried", "attempts failed and were retried"),
        (run.lost, "attempt was lost with its worker", "attempts were lost with their workers"),
        (run.unfinished, "attempt did not finish", "attempts did not finish"),
        (run.skipped, "chunk was skipped", "chunks were skipped"),
        (
            run.skipped_files,
            "file was skipped: its events are missing",
            "files were skipped: their events are missing",
        ),
    ]
    counts = [q.counted(n, one, many) for n, one, many in parts if n]
    if not counts and run.failures:
        counts = [q.counted(run.failures, "failure")]
    elif not counts and run.are_attempts_unknown:
        return end
    elif not counts and not has_raised(end_reason):
        counts = ["Nothing failed"]
    sentences = []
    if sum(uses.values()) and (run.task_runs or run.chunk_attempts):
        computed, kept = computing_shares(uses)
        sentences.append(f"Threads computed for {computed} of the core time{kept}.")
    if counts:
        sentences.append(f"{q.series(counts)}.")
    if run.unattempted:
        tasks = q.counted(sum(run.unattempted.values()), "task was", "tasks were")
        reasons = [f"{q.count(n)} {reason}" for reason, n in run.unattempted.items()]
        if len(reasons) == 1:
            reasons = list(run.unattempted)
        sentences.append(f"{tasks} never attempted ({', '.join(reasons)}).")
    return " ".join([*sentences, end]).rstrip()


def _tiles(context: Context, loss: Listing, uses: Mapping[str, float]) -> tuple[Tile, ...]:
    run = context.run
    core_time, unit = q.core_time(run.core_seconds)
    span = "no task finished"
    if run.busy_seconds is not None:
        what = "task" if run.task_runs else "chunk"
        ends = f"first {what} to last end" if run.unfinished else f"first to last {what}"
        span = f"{q.seconds(run.busy_seconds)} from {ends}"
    counts = (
        (run.memory, "succeeded"),
        (run.erred, "failed"),
        (run.retried, "retried"),
        (run.lost, "lost"),
        (run.rescheduled, "rescheduled"),
        (run.cancelled, "cancelled"),
        (run.unfinished, "unfinished"),
    )
    attempts = ", ".join(f"{q.count(n)} {word}" for n, word in counts if n)
    if run.core_seconds is None:
        computing = "number of threads unknown"
    elif run.compute_seconds is None and run.task_runs:
        computing = "compute time not reported"
    elif computing_seconds(uses):
        computing = f"{computing_shares(uses)[0]} computing"
    else:
        computing = "nothing computed"
    workers = "none recorded"
    if run.workers:
        threads = f", {q.counted(run.peak_nthreads, 'thread')}" if run.peak_nthreads else ""
        more = run.workers > run.peak_workers > 0
        workers = f"at once{threads}{f'; {q.count(run.workers)} in total' if more else ''}"
    tiles = [
        Tile("Wall time", q.seconds(run.wall_seconds), span),
        # A recording of a single instant contains workers, but none for any time.
        Tile("Workers", q.count(run.peak_workers or run.workers), workers),
        Tile(unit.capitalize(), core_time, computing),
    ]
    # A run without a cluster has chunks and no tasks.
    has_tasks = run.task_runs or not run.chunk_attempts
    if has_tasks:
        about = f"attempts: {attempts}" if attempts else "no attempts"
        tiles.append(Tile("Tasks", q.count(run.tasks), about))
    if run.chunk_attempts:
        rate = run.events_per_second
        read = "" if run.bytes_read is None else f"; {q.byte_size(run.bytes_read)} read"
        tiles += [
            Tile(
                "Chunks", q.count(run.chunks), f"in {q.counted(run.chunk_attempts, 'attempt')}"
            ),
            Tile("Events", q.count(run.events), f"in finished chunks{read}"),
            Tile(
                "Events per second",
                q.count(rate) if rate is None or rate >= 100 else q.number(rate),
                "of the whole cluster",
            ),
        ]
    if has_tasks:
        tiles += [
            Tile("Results", q.byte_size(run.output_bytes), "size of all task results"),
            Tile("Peak memory", q.byte_size(run.peak_memory_bytes), "sum of all workers"),
        ]
    return (
        *tiles,
        Tile(
            "Failures",
            q.count(run.failures),
            "listed below" if run.failures else "none",
            "bad" if run.failures else "good",
        ),
        Tile(
            "Trace",
            "complete" if loss.total == 0 else "incomplete",
            f"{q.counted(context.recording.records, 'record')}",
            "good" if loss.total == 0 else "bad",
        ),
    )
