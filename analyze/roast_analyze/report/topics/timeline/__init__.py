"""The timeline: computations of every thread over time, and utilization of the workers."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.section import RECORD_HINT, Section
from roast_analyze.report.topics import memory
from roast_analyze.report.topics.timeline import lanes, task_stream
from roast_analyze.report.topics.timeline.lanes import Colors

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context
    from roast_analyze.report.topics.timeline.task_stream import TaskStream

__all__ = ["Colors", "Timeline", "query", "section"]

#: The longest time in which nothing computed, between the first and the last computation.
_LONGEST_GAP: Final = (
    "SELECT since_t, start_t FROM (SELECT start_t, max(stop_t) OVER (ORDER BY start_t "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS since_t FROM {computed}) "
    "WHERE start_t > since_t ORDER BY start_t - since_t DESC, start_t LIMIT 1"
)
#: An attempt without reported times, such as one that was lost, can have computed all the time.
_COMPUTED_TASKS: Final = (
    "(SELECT coalesce(compute_start_t, execute_start_t, processing_t, recording.start_t) "
    "AS start_t, coalesce(compute_stop_t, end_t, recording.stop_t) AS stop_t FROM _task_runs "
    "INNER JOIN _cluster_size AS recording USING (trace_id) "
    "WHERE compute_start_t IS NOT NULL OR compute_seconds IS NULL)"
)
_COMPUTED_CHUNKS: Final = "(FROM _chunks WHERE start_t IS NOT NULL AND stop_t IS NOT NULL)"
#: The view `utilization` by rows of the map. Its buckets can be wider than those of the map.
_UTILIZATION: Final = (
    "WITH rowed AS (SELECT unnest($rows::BIGINT[]) AS row, "
    "unnest($workers::VARCHAR[]) AS worker, unnest($server_ids::VARCHAR[]) AS server_id, "
    "unnest($trace_ids::VARCHAR[]) AS trace_id) "
    "SELECT row, unnest(range(first, first + buckets)) AS bucket, share FROM ("
    "SELECT row, round((utilization.t - $begin_t) / $width)::BIGINT AS first, "
    "greatest(round(max(seconds) / $width), 1)::BIGINT AS buckets, "
    "sum(compute_seconds) / nullif(sum(thread_seconds), 0) AS share "
    "FROM utilization INNER JOIN rowed "
    "ON utilization.trace_id = rowed.trace_id AND utilization.worker = rowed.worker "
    "AND utilization.server_id IS NOT DISTINCT FROM rowed.server_id "
    "GROUP BY ALL HAVING share IS NOT NULL) ORDER BY row, bucket"
)

#: Maximum number of dependencies between bars, which take 3 bytes of the page each, and of
#: intervals in which workers were not running.
MOST_DEPENDENCIES: Final = 10_000
MOST_STATUSES: Final = 2_000

_PATH: Final = (
    "SELECT DISTINCT key, attempt FROM critical_path WHERE cause NOT IN ('client', 'unknown')"
)
_STATUSES: Final = (
    "SELECT worker, status, start_t, stop_t FROM _worker_statuses "
    f"WHERE status <> 'running' ORDER BY seq LIMIT {MOST_STATUSES}"
)
_DEPENDENCIES: Final = (
    "WITH drawn AS MATERIALIZED (SELECT unnest($keys::VARCHAR[]) AS key) "
    "SELECT DISTINCT key, dependency FROM ("
    "SELECT key, unnest(dependencies) AS dependency FROM _tasks SEMI JOIN drawn USING (key)) "
    "WHERE dependency IN (SELECT drawn.key FROM drawn) "
    f"LIMIT {MOST_DEPENDENCIES + 1}"
)


@dataclass(frozen=True)
class Timeline:
    """The computations of a run."""

    stream: TaskStream
    #: View ``utilization`` by row and bucket, as :func:`.lanes.build` expects it.
    utilization: pl.DataFrame
    #: Attempts on the critical path: key, attempt.
    path: pl.DataFrame
    #: Start and end of the longest time without computations; None with fewer than two.
    longest_gap: tuple[float, float] | None
    #: Intervals in which workers were not running, and dependencies between bars, as
    #: :func:`.lanes.build` expects them.
    statuses: pl.DataFrame
    dependencies: pl.DataFrame


def query(trace: Session, context: Context) -> Timeline:
    """Query the computations of a run."""
    computed = _COMPUTED_TASKS if context.run.task_runs else _COMPUTED_CHUNKS
    gaps = trace.rows(_LONGEST_GAP.format(computed=computed))
    rowed = context.workers.with_columns(memory.map_row().alias("row"))
    shares = trace.sql(
        _UTILIZATION,
        {
            "rows": rowed["row"].to_list(),
            "workers": rowed["worker"].to_list(),
            "server_ids": rowed["server_id"].to_list(),
            "trace_ids": rowed["trace_id"].to_list(),
            "begin_t": context.buckets["begin_t"],
            "width": context.buckets["width"],
        },
    ).pl()
    stream = task_stream.query(trace, context)
    return Timeline(
        stream=stream,
        utilization=shares.join(
            memory.named_rows(rowed), on="row", maintain_order="left"
        ).select("row", "worker", "name", "workers", "bucket", "share"),
        path=trace.sql(_PATH).pl(),
        longest_gap=gaps[0] if gaps else None,
        statuses=trace.sql(_STATUSES).pl(),
        dependencies=trace.sql(_DEPENDENCIES, {"keys": stream.bars["key"].to_list()}).pl(),
    )


def section(found: Timeline, context: Context, colors: Colors) -> Section:
    """Build the section."""
    section = Section("timeline", "Timeline", "Timeline")
    stream, run = found.stream, context.run
    if not stream.runs and not stream.failures:
        return context.absent(
            section,
            "No task ran while this was recorded. To record tasks, start the recorder "
            "before running them:",
            RECORD_HINT,
        )
    view = "task_runs" if run.task_runs else "chunks"
    command = context.view_command(view)
    omissions = task_stream.describe_omissions(stream, with_transfers=True)
    dependencies = found.dependencies
    if dependencies.height > MOST_DEPENDENCIES:
        dependencies = dependencies.clear()
        omissions = (
            f"{omissions} Dependencies are not drawn: there are more than "
            f"{q.count(MOST_DEPENDENCIES)}."
        ).lstrip()
    drawn = lanes.build(
        stream,
        context.load,
        found.utilization,
        found.path,
        colors,
        statuses=found.statuses,
        dependencies=dependencies,
        stop_t=run.stop_t or 0.0,
        utc_offset_seconds=context.recording.utc_offset_seconds,
        description=f"Timeline: {q.counted(stream.workers.height, 'worker')} over "
        f"{q.seconds(run.wall_seconds)}, {q.counted(stream.runs, 'computation')}, "
        f"{q.counted(stream.failures, 'failed attempt')}.",
        note=f"{omissions} All of them: {command}" if omissions else "",
        query=f"SELECT * FROM {view} ORDER BY processing_t",
        command=command,
    )
    sentence = _sentence(found, context, drawn.color)
    return replace(section, sentences=(sentence,), timeline=drawn)


def _sentence(found: Timeline, context: Context, color: str) -> str:
    run = context.run
    noun = "task" if run.task_runs else "chunk"
    text = (
        f"Each lane is a thread of a worker, each bar is a {noun} in the color of its {color}."
    )
    if run.busy_seconds and run.compute_seconds and run.peak_nthreads:
        text += (
            f" From the first {noun} to the last, "
            f"{q.number(run.compute_seconds / run.busy_seconds)} of up to "
            f"{q.counted(run.peak_nthreads, 'thread')} computed on average."
        )
    if found.longest_gap and run.start_t is not None and run.busy_seconds:
        start_t, stop_t = found.longest_gap
        seconds = stop_t - start_t
        if seconds > 0.01 * run.busy_seconds:
            # By the clock of a worker, the gap can begin before the recording.
            since = max(start_t - run.start_t, 0.0)
            text += (
                f" The longest gap in which nothing computed was {q.seconds(seconds)}, "
                f"{q.seconds(since)} after the start."
            )
    return text
