"""Predictions of a recorded run under other conditions: queries and results.

The recorded run is simulated first, and each scenario is predicted as the recorded wall time
times the change of the simulated one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import polars as pl

from roast_analyze.algorithms.run_plan import RecordedRun, plan_of_run

if TYPE_CHECKING:
    import duckdb

    from roast_analyze.algorithms.simulation import Plan


class Queries(Protocol):
    """A session or a connection."""

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Return the result of a query."""


_RUNS: Final = "SELECT trace_id, start_t, stop_t FROM run"

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
        SELECT seq, sum(events)::BIGINT AS events
        FROM _chunks
        WHERE seq IS NOT NULL
        GROUP BY seq
    )
    SELECT
        run.submission, run.prefix, run.role, process.process, run.thread, run.outcome,
        run.processing_t, phases.start_t, phases.stop_t, phases.transfer_t,
        phases.transfer_seconds, run.end_t, run.nbytes, chunk_events.events, run.trace_id
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
        presence.process, worker.name, worker.worker AS address, worker.host,
        presence.nthreads, presence.from_t, worker.removed_t AS to_t,
        removal.expected AS is_expected,
        presence.trace_id
    FROM _worker_presence AS presence
    INNER JOIN _workers AS worker USING (process)
    LEFT JOIN _worker_removals AS removal USING (process)
    WHERE presence.nthreads > 0
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

#: The transitions of one stimulus follow each other without a pause.
_SCHEDULER: Final = """
    WITH steps AS (
        SELECT
            trace_id,
            CASE WHEN stimulus_id = lag(stimulus_id) OVER in_order
                THEN t - lag(t) OVER in_order
            END AS seconds
        FROM raw.transition
        WINDOW in_order AS (PARTITION BY trace_id ORDER BY rowid)
    )
    SELECT trace_id, median(seconds) AS seconds, count(*) AS transitions
    FROM steps
    GROUP BY trace_id
"""

_CONFIG: Final = """
    SELECT trace_id, name, any_value(value) AS value
    FROM config
    WHERE name IN (
        'distributed.scheduler.worker-saturation',
        'distributed.scheduler.work-stealing',
        'distributed.scheduler.work-stealing-interval'
    )
    GROUP BY trace_id, name
"""


def recorded_plans(queries: Queries) -> dict[str, Plan]:
    """Return the plan of each trace in which tasks ran, by trace_id."""
    frames = {
        name: queries.sql(query).pl()
        for name, query in {
            "runs": _RUNS, "tasks": _TASKS, "attempts": _ATTEMPTS, "workers": _WORKERS,
            "wanted": _WANTED, "restrictions": _RESTRICTIONS, "scheduler": _SCHEDULER,
            "config": _CONFIG,
        }.items()
    }  # fmt: skip
    plans = {}
    for trace_id, start_t, stop_t in frames["runs"].iter_rows():
        parts = {
            name: frame.filter(pl.col("trace_id") == trace_id) for name, frame in frames.items()
        }
        config = dict(parts["config"].select("name", "value").iter_rows())
        plan = plan_of_run(
            RecordedRun(
                start_t=start_t,
                stop_t=stop_t,
                tasks=parts["tasks"],
                attempts=parts["attempts"],
                workers=parts["workers"],
                wanted=parts["wanted"],
                restrictions=parts["restrictions"],
                scheduler_seconds=_scheduler_seconds(
                    parts["scheduler"], len(parts["attempts"])
                ),
                saturation=float(config.get("distributed.scheduler.worker-saturation", 1.1)),
                stealing_seconds=_stealing_seconds(config),
            )
        )
        if plan is not None:
            plans[trace_id] = plan
    return plans


def _scheduler_seconds(steps: pl.DataFrame, attempts: int) -> float:
    if steps.is_empty() or not attempts:
        return 0.0
    return float((steps["seconds"][0] or 0.0) * steps["transitions"][0] / attempts)


def _stealing_seconds(config: dict[str, str]) -> float | None:
    if config.get("distributed.scheduler.work-stealing", "true").lower() == "false":
        return None
    text = config.get("distributed.scheduler.work-stealing-interval", "100ms")
    number = float("".join(letter for letter in text if letter in "0123456789.") or 0.1)
    return number / 1000 if text.endswith("ms") else number
