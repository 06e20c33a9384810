"""Totals of a run: view ``run``, how the trace was recorded, and the use of the core time.

The single report and the comparison both start from these.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

from roast_analyze.algorithms.outcomes import COMPUTING, RAISED_ENDS
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.open.session import Session


#: Reason in view ``loss`` for surplus records, which are not missing.
SURPLUS: Final = "more records than were written"
#: End reasons of a recording that was not interrupted.
_NORMAL_ENDS: Final = ("recording was stopped", "the scheduler closed", "rotated")
#: Facts that decide whether a run without findings had nothing to improve.
_JUDGED: Final = """
SELECT
    (SELECT try_cast(sum(records) AS BIGINT) FROM trace_info),
    (SELECT try_cast(coalesce(sum(lost_records), 0) AS BIGINT) FROM run),
    EXISTS (FROM loss WHERE reason = 'segment missing'),
    EXISTS (FROM _task_runs) OR EXISTS (FROM _chunks),
    EXISTS (FROM raw.task) AND NOT EXISTS (FROM raw.transition),
    (SELECT max_by(end_reason, segment) FROM trace_info)
"""

_WITHOUT_WORKERS: Final = """
SELECT
    sum(joined_t - start_t) FILTER (left_t IS NULL),
    sum(greatest(joined_t - left_t, 0)) FILTER (left_t IS NOT NULL),
    max(stop_t) - max(last_t),
    max(stop_t) - min(start_t),
    bool_or(has_scheduler)
FROM (
    SELECT
        has_scheduler,
        start_t,
        stop_t,
        greatest(from_t, start_t) AS joined_t,
        max(least(to_t, stop_t)) OVER (
            PARTITION BY trace_id ORDER BY from_t
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS left_t,
        max(least(to_t, stop_t)) OVER (PARTITION BY trace_id) AS last_t
    FROM _worker_presence
    INNER JOIN _cluster_size USING (trace_id)
    INNER JOIN _run_settings USING (trace_id)
)
"""


@dataclass(frozen=True)
class Run:
    """The columns of view ``run``. None means unknown."""

    start_t: float | None = None
    stop_t: float | None = None
    wall_seconds: float | None = None
    busy_seconds: float | None = None
    workers: int = 0
    peak_workers: int = 0
    peak_nthreads: int = 0
    core_seconds: float | None = None
    compute_seconds: float | None = None
    kept_seconds: float | None = None
    core_efficiency: float | None = None
    tasks: int | None = None
    task_runs: int = 0
    memory: int = 0
    erred: int = 0
    retried: int = 0
    lost: int = 0
    rescheduled: int = 0
    cancelled: int = 0
    unfinished: int = 0
    failures: int = 0
    chunks: int = 0
    chunk_attempts: int = 0
    events: int | None = None
    events_per_second: float | None = None
    chunk_wall_seconds: float | None = None
    bytes_read: int | None = None
    output_bytes: int | None = None
    transfer_seconds: float | None = None
    peak_memory_bytes: int | None = None
    lost_records: int = 0
    failed_chunks: int = 0
    skipped: int = 0
    skipped_files: int = 0
    checkpointed_chunks: int = 0
    chunk_seconds: float | None = None
    merge_seconds: float | None = None
    process_seconds: float | None = None
    open_seconds: float | None = None
    read_seconds: float | None = None
    cpu_seconds: float | None = None
    wait_seconds: float | None = None
    #: Whether transitions were recorded; without them, attempts are unknown.
    has_transitions: bool = True
    #: Number of tasks that were never attempted, by the reason of view ``unattempted``.
    unattempted: Mapping[str, int] = field(default_factory=dict)

    @property
    def are_attempts_unknown(self) -> bool:
        """Whether there are tasks, but no record of what became of them."""
        return bool(self.tasks) and not self.has_transitions and not self.chunk_attempts

    @property
    def wasted_seconds(self) -> float:
        """Compute time of attempts whose result was not kept."""
        return (self.compute_seconds or 0.0) - (self.kept_seconds or 0.0)

    @property
    def idle_seconds(self) -> float | None:
        """Core time in which no task computed; None if the core time is unknown."""
        if self.core_seconds is None:
            return None
        return max(self.core_seconds - (self.compute_seconds or 0.0), 0.0)


@dataclass(frozen=True)
class Recording:
    """Versions and settings of the recording, from view ``trace_info``."""

    records: int = 0
    label: str | None = None
    schema_version: str | None = None
    recorder_version: str | None = None
    dask_version: str | None = None
    distributed_version: str | None = None
    python_version: str | None = None
    utc_offset_seconds: float | None = None
    sample_interval_seconds: float | None = None
    #: Why the last segment ended; None if it did not end cleanly.
    end_reason: str | None = None


def query_run(trace: Session) -> Run:
    """Return the totals of a run."""
    rows = trace.frame("run").to_dicts()
    names = {column.name for column in fields(Run)}
    row = rows[0] if rows else {}
    known = {n: value for n, value in row.items() if n in names and value is not None}
    [(has_transitions,)] = trace.rows("SELECT EXISTS (FROM raw.transition)")
    return Run(**known, has_transitions=has_transitions, unattempted=query_unattempted(trace))


def query_obstacle(trace: Session) -> str:
    """Return why nothing can be concluded from a run without findings; empty if it can."""
    records, lost, has_gap, has_attempts, is_unknown, end_reason = trace.rows(_JUDGED)[0]
    if lost > 0.01 * (records + lost):
        return f"at least {q.count(lost)} of {q.count(records + lost)} records are missing"
    if has_gap:
        return "segments are missing"
    if not has_attempts and is_unknown:
        return "no transition was recorded"
    if not has_attempts and trace.time_ranges:
        return "no task ran in the time range"
    if not has_attempts:
        end = describe_end(end_reason)
        return f"no task ran before {end[0].lower()}{end[1:-1]}" if end else "no task ran"
    return ""


def query_uses(trace: Session) -> dict[str, float]:
    """Return the thread time by use."""
    return dict(trace.rows("SELECT use, sum(seconds) FROM core_time GROUP BY use"))


@dataclass(frozen=True)
class WithoutWorkers:
    """Wall time without any worker. It has no core time.

    Attributes
    ----------
    before_seconds, between_seconds, after_seconds : float
        Before the first worker joined, while all had left, and after the last one left.
    wall_seconds : float
        Duration of the recording.
    is_dask : bool
        Workers are those of Dask, not processes of an executor of coffea.
    """

    before_seconds: float = 0.0
    between_seconds: float = 0.0
    after_seconds: float = 0.0
    wall_seconds: float = 0.0
    is_dask: bool = True

    @property
    def seconds(self) -> float:
        """All of it, or 0 if it is less than 1 % of the run."""
        total = self.before_seconds + self.between_seconds + self.after_seconds
        return total if total >= 0.01 * self.wall_seconds else 0.0


def query_without_workers(trace: Session) -> WithoutWorkers:
    """Return the wall time without any worker; nothing if no worker was ever there."""
    [(before, between, after, wall, is_dask)] = trace.rows(_WITHOUT_WORKERS)
    return WithoutWorkers(
        before or 0.0, between or 0.0, after or 0.0, wall or 0.0, is_dask is not False
    )


def describe_without_workers(without: WithoutWorkers) -> str:
    """Describe the wall time without any worker; empty if there is hardly any."""
    if not without.seconds:
        return ""
    whens = (
        (
            "before the first one joined",
            "after all had left and before another one joined",
            "after the last one had left",
        )
        if without.is_dask
        else ("before the first chunk", "between chunks", "after the last chunk")
    )
    waited = (without.before_seconds, without.between_seconds, without.after_seconds)
    parts = [
        (seconds, when)
        for when, seconds in zip(whens, waited, strict=True)
        if seconds >= 0.01 * without.wall_seconds
    ]
    if len(parts) > 1:
        details = f": {q.series([f'{q.seconds(part)} {when}' for part, when in parts])}"
    else:
        details = "".join(f", {when}" for _, when in parts)
    who = "any worker" if without.is_dask else "a process for chunks"
    return (
        f"{q.seconds(without.seconds)} of {q.seconds(without.wall_seconds)} passed without "
        f"{who} and are not in the core time{details}."
    )


def computing_seconds(uses: Mapping[str, float]) -> float:
    """Return the thread time in which attempts computed, also those lost with their worker."""
    return sum(uses.get(use, 0.0) for use in COMPUTING)


def computing_shares(uses: Mapping[str, float]) -> tuple[str, str]:
    """Return the share of the core time spent computing, and how much of it was kept.

    The second text continues a sentence, and is empty if all results were kept.
    """
    total = sum(uses.values())
    computed, kept = (
        q.share(seconds / total)
        for seconds in (computing_seconds(uses), uses.get("kept result", 0.0))
    )
    return computed, "" if kept == computed else f", {kept} for results that were kept"


def query_unattempted(trace: Session) -> dict[str, int]:
    """Return the number of tasks that were never attempted by reason, most frequent first."""
    reasons = trace.rows(
        "SELECT if(reason = 'a dependency failed', 'because ' || reason, reason), count(*) "
        "FROM unattempted "
        "GROUP BY reason ORDER BY count(*) DESC, reason"
    )
    return dict(reasons)


def describe_end(end_reason: str | None) -> str:
    """Describe what ended the recording early; empty if it was stopped or has no trailer."""
    if not end_reason or end_reason in _NORMAL_ENDS:
        return ""
    reason = one_line(end_reason, 200)
    if has_raised(end_reason):
        return f"T{reason[1:]}."
    return f"The recording ended because {reason}."


def has_raised(end_reason: str | None) -> bool:
    """Return whether an exception of the program ended the recording."""
    return (end_reason or "").startswith(RAISED_ENDS)


def query_recording(trace: Session) -> Recording:
    """Return how a trace was recorded."""
    segments = trace.sql(
        "SELECT *, try_cast(settings->>'sample_interval_seconds' AS DOUBLE) "
        "AS sample_interval_seconds FROM trace_info"
    ).pl()
    if segments.is_empty():
        return Recording()
    first = segments.row(0, named=True) | {
        "records": segments["records"].sum(),
        "end_reason": segments["end_reason"][-1],
    }
    names = {column.name for column in fields(Recording)}
    return Recording(**{n: v for n, v in first.items() if n in names and v is not None})
