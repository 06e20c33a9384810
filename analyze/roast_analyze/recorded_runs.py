"""Query of recorded runs for their simulation: plans, and facts that predictions need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.algorithms.run_plan import plan_of_run
from roast_analyze.algorithms.scenarios import Chunk, ChunkCost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roast_analyze.algorithms.plan import Plan
    from roast_analyze.open.session import Session

#: One row per trace.
_RUNS: Final = """
    WITH steps AS (
        -- The transitions of one stimulus follow each other without a pause.
        SELECT
            trace_id,
            CASE WHEN stimulus_id = lag(stimulus_id) OVER in_order
                THEN t - lag(t) OVER in_order
            END AS seconds
        FROM raw.transition
        WINDOW in_order AS (PARTITION BY trace_id ORDER BY rowid)
    ),
    transitions AS (
        SELECT trace_id, coalesce(median(seconds), 0) AS seconds, count(*) AS number
        FROM steps
        GROUP BY trace_id
    ),
    attempts AS (
        SELECT trace_id, count(*) AS number, sum(disk_seconds) AS disk_seconds
        FROM _task_runs
        GROUP BY trace_id
    ),
    options AS (
        SELECT
            trace_id,
            any_value(value) FILTER (name = 'worker-saturation') AS saturation,
            any_value(value) FILTER (name = 'work-stealing') AS stealing,
            any_value(value) FILTER (name = 'work-stealing-interval') AS stealing_interval
        FROM (
            SELECT trace_id, value, replace(name, 'distributed.scheduler.', '') AS name
            FROM config
        )
        GROUP BY trace_id
    ),
    only_hosts AS (
        SELECT trace_id, least(min(usable_cores), min(cgroup_cores)) AS cores
        FROM machines
        WHERE process = 'worker'
        GROUP BY trace_id
        HAVING count(DISTINCT host) = 1
    ),
    paused AS (
        SELECT trace_id, sum(seconds) AS seconds FROM pauses GROUP BY trace_id
    ),
    waiting AS (
        SELECT trace_id, count(*) AS number
        FROM unattempted
        WHERE reason = 'waiting at the end'
        GROUP BY trace_id
    ),
    limited AS (
        SELECT trace_id, count(*) AS number
        FROM restrictions
        WHERE resources IS NOT NULL
        GROUP BY trace_id
    )
    SELECT
        trace_id,
        run.start_t,
        run.stop_t,
        run.stop_t - run.start_t AS wall_seconds,
        coalesce(transitions.seconds * transitions.number / attempts.number, 0)
            AS scheduler_seconds,
        -- YAML's infinity is .inf, which is no number in SQL.
        coalesce(try_cast(coalesce(options.saturation, '1.1') AS DOUBLE), 'infinity')
            AS saturation,
        CASE
            WHEN lower(options.stealing) = 'false' THEN NULL
            WHEN options.stealing_interval IS NULL THEN 0.1::DOUBLE
            ELSE coalesce(
                try_cast(
                    regexp_replace(options.stealing_interval, '[^0-9.]', '', 'g') AS DOUBLE
                ) / if(suffix(options.stealing_interval, 'ms'), 1000, 1),
                1
            )
        END AS stealing_seconds,
        only_hosts.cores,
        cpu_share,
        trace_id IN (SELECT trace_id FROM _host_load WHERE is_loaded) AS is_loaded,
        coalesce(paused.seconds, 0) AS paused_seconds,
        coalesce(attempts.disk_seconds, 0) AS disk_seconds,
        run.cancelled + run.unfinished AS cut_attempts,
        coalesce(waiting.number, 0) AS unattempted_tasks,
        coalesce(limited.number, 0) AS tasks_with_resources
    FROM run
    LEFT JOIN transitions USING (trace_id)
    LEFT JOIN attempts USING (trace_id)
    LEFT JOIN options USING (trace_id)
    LEFT JOIN only_hosts USING (trace_id)
    LEFT JOIN _cpu_shares USING (trace_id)
    LEFT JOIN paused USING (trace_id)
    LEFT JOIN waiting USING (trace_id)
    LEFT JOIN limited USING (trace_id)
    ORDER BY trace_id
"""

_TASKS: Final = """
    SELECT
        task.rowid AS seq, key, prefix, "group", priority, dependencies, stimulus_id, client, t,
        trace_id
    FROM raw.task AS task
    ORDER BY seq
"""

_ATTEMPTS: Final = """
    WITH phases AS (
        SELECT
            end_seq,
            min(start_t) FILTER (action <> 'transfer') AS start_t,
            max(stop_t) FILTER (action <> 'transfer') AS stop_t,
            min(start_t) FILTER (action = 'transfer') AS transfer_t,
            max(stop_t) FILTER (action = 'transfer') - transfer_t AS transfer_seconds
        FROM _task_phases
        GROUP BY end_seq
    ),
    chunk_events AS (
        SELECT seq, try_cast(sum(events) AS BIGINT) AS events
        FROM _chunks
        WHERE seq IS NOT NULL
        GROUP BY seq
    )
    SELECT
        run.submission, run.prefix, process.process, run.thread, run.outcome,
        run.processing_t, phases.start_t, phases.stop_t, phases.transfer_t,
        phases.transfer_seconds, run.end_t, run.nbytes, chunk_events.events,
        run.stolen_from IS NOT NULL AS is_stolen, run.trace_id
    FROM _task_runs AS run
    LEFT JOIN phases USING (end_seq)
    LEFT JOIN chunk_events ON run.seq = chunk_events.seq
    ASOF LEFT JOIN _workers AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
    ORDER BY run.seq
"""

_WORKERS: Final = """
    SELECT
        presence.process,
        coalesce(worker.name, '') AS name,
        coalesce(worker.worker, '') AS address,
        coalesce(worker.host, '') AS host,
        coalesce(presence.nthreads, 1) AS nthreads,
        presence.from_t,
        worker.removed_t AS to_t,
        NOT coalesce(removal.expected, false) AS is_lost,
        presence.trace_id
    FROM _worker_presence AS presence
    INNER JOIN _workers AS worker USING (process)
    LEFT JOIN _worker_removals AS removal USING (process)
    WHERE presence.nthreads IS DISTINCT FROM 0
    ORDER BY presence.from_t, presence.process
"""

_WANTED: Final = """
    SELECT trace_id, key, nullif(max(coalesce(stop_t, 'infinity')), 'infinity') AS stop_t
    FROM wanted_keys
    GROUP BY trace_id, key
"""

_RESTRICTIONS: Final = """
    SELECT trace_id, key, workers
    FROM restrictions
    WHERE workers IS NOT NULL AND allow_other_workers IS NOT TRUE
"""

#: Times are those of chunks that were not slowed down by the warm-up of their process.
_CHUNKS: Final = """
    SELECT
        key,
        coalesce(dataset, '') AS dataset,
        concat_ws(':', filename, treename) AS filename,
        events,
        CASE WHEN NOT is_warming_up THEN compute_seconds END AS seconds,
        seconds - process_seconds AS outside_seconds,
        trace_id
    FROM _chunks
    WHERE is_first_result AND has_task AND chunks_in_task = 1 AND events > 0
"""

_MERGES: Final = "SELECT trace_id, key FROM _coffea_roles WHERE role = 'merge'"

_COSTS: Final = """
    SELECT
        coalesce(dataset, '') AS dataset, is_known, fixed_seconds, fixed_error_seconds,
        recommended_events, trace_id
    FROM chunk_costs
"""

#: Standard errors within which the fixed time of a fit is, as in the view chunk_costs.
_FIT_ERRORS: Final = 2


@dataclass(frozen=True)
class Recorded:
    """A recorded run: its plan, and other facts that scenarios need."""

    plan: Plan
    wall_seconds: float
    #: Row of the run: the cores of the workers' host (null if there are several or it is
    #: unknown), the share of the computation that uses a CPU (null if not recorded), whether a
    #: host had no free cores, and what slows a run down that the simulation does not model.
    facts: Mapping[str, Any]
    chunks: Sequence[Chunk]
    #: Merges of chunk results.
    merges: Sequence[int]
    #: Costs of chunks by dataset, each of which agrees with the recorded chunks: the most
    #: probable one, with the least and with the largest fixed time.
    costs: Sequence[Mapping[str, ChunkCost]]
    #: Whether the fixed time of all datasets is known from chunks of different sizes.
    is_cost_known: bool
    recommended_events: int | None


def recorded_runs(trace: Session) -> dict[str, Recorded]:
    """Return each trace in which tasks ran, by trace_id."""
    of_plan = (_TASKS, _ATTEMPTS, _WORKERS, _WANTED, _RESTRICTIONS)
    frames = [trace.sql(query).pl() for query in (*of_plan, _CHUNKS, _MERGES, _COSTS)]
    found = {}
    for facts in trace.sql(_RUNS).pl().iter_rows(named=True):
        trace_id = facts["trace_id"]
        *parts, chunks, merges, costs = (
            frame.filter(trace_id=trace_id).drop("trace_id") for frame in frames
        )
        plan = plan_of_run(facts, *parts)
        # Without a cluster there are chunks, but no tasks and no workers.
        if plan is None or not plan.workers:
            continue
        numbers = {key: task for task, key in enumerate(plan.keys)}
        chunks = chunks.filter(pl.col("key").is_in(list(numbers)))
        fits = {row["dataset"]: row for row in costs.iter_rows(named=True)}
        chunk_costs = {
            str(dataset): _chunk_costs(rows, fits.get(dataset, {}))
            for (dataset,), rows in chunks.group_by("dataset")
        }
        found[trace_id] = Recorded(
            plan=plan,
            wall_seconds=facts["wall_seconds"],
            facts=facts,
            chunks=[
                Chunk(numbers[key], *about)
                for key, *about in chunks.select(
                    "key", "dataset", "filename", "events"
                ).iter_rows()
            ],
            merges=[numbers[key] for key in merges["key"] if key in numbers],
            costs=[
                {dataset: three[which] for dataset, three in chunk_costs.items()}
                for which in range(3)
            ],
            is_cost_known=all(
                fits.get(dataset, {}).get("is_known", False) for dataset in chunk_costs
            ),
            recommended_events=costs["recommended_events"].first(ignore_nulls=True),
        )
    return found


def _chunk_costs(chunks: pl.DataFrame, fit: Mapping[str, Any]) -> list[ChunkCost]:
    """Return the most probable cost of a chunk, and those of least and of most fixed time.

    Their fit is a row of the view ``chunk_costs``. Chunks of one size have none: then all time
    between that outside of the processor and that of a chunk can be fixed.
    """
    measured = chunks.drop_nulls("seconds")
    if measured.is_empty():
        return [ChunkCost(0.0, 1.0)] * 3
    mean: float = measured["seconds"].mean()  # type: ignore[assignment]
    outside: float = measured["outside_seconds"].median() or 0.0  # type: ignore[assignment]
    least, most = min(max(outside, 0.0), mean), mean
    middle = (least + most) / 2
    if fit.get("fixed_seconds") is not None:
        error = _FIT_ERRORS * (fit["fixed_error_seconds"] or 0.0)
        if fit["is_known"]:
            middle = min(fit["fixed_seconds"], mean)
            least, most = max(middle - error, 0.0), min(middle + error, mean)
        else:
            # Below 0 if the time of a chunk increases faster than its events.
            least = min(least, fit["fixed_seconds"] - error)
    chunk_events = float(measured["events"].sum()) / len(measured)
    return [
        ChunkCost(fixed, max(mean - fixed, 1e-9) / chunk_events)
        for fixed in (middle, least, most)
    ]
