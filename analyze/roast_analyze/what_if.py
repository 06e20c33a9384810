"""Predictions of a recorded run under other conditions.

The run is simulated as recorded first; the difference to the recorded wall time is the replay
error. Then each scenario is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import polars as pl

from roast_analyze.algorithms.run_plan import RecordedRun, plan_of_run
from roast_analyze.algorithms.scenarios import (
    CAUSES,
    Chunk,
    ChunkCost,
    with_chunk_size,
    with_workers,
    worker_slots,
)
from roast_analyze.algorithms.simulation import (
    Plan,
    critical_path_seconds,
    simulate,
    total_work_seconds,
)
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    import duckdb

#: Above this replay error predictions should not be used.
MAX_REPLAY_ERROR: Final = 0.1

#: Columns of :func:`predict`.
COLUMNS: Final = pl.Schema(
    {
        "workers": pl.Int64(),
        "threads": pl.Int64(),
        "chunk_size": pl.Int64(),
        "without": pl.String(),
        "wall_seconds": pl.Float64(),
        "core_seconds": pl.Float64(),
        "change": pl.Float64(),
        "critical_path_seconds": pl.Float64(),
        "total_work_seconds": pl.Float64(),
        "replay_error": pl.Float64(),
        "note": pl.String(),
        "trace_id": pl.String(),
    }
)


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
        coalesce(presence.nthreads, 1) AS nthreads, presence.from_t, worker.removed_t AS to_t,
        removal.expected AS is_expected,
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

_CHUNKS: Final = """
    SELECT
        chunk.key, chunk.dataset, concat_ws(':', chunk.filename, chunk.treename) AS filename,
        chunk.events, chunk.compute_seconds - chunk.process_seconds AS outside_seconds,
        chunk.compute_seconds, chunk.cpu_seconds, chunk.trace_id
    FROM _chunks AS chunk
    WHERE chunk.is_first_result AND chunk.has_task AND chunk.chunks_in_task = 1
        AND chunk.events > 0 AND NOT chunk.is_warming_up
    UNION ALL BY NAME
    SELECT
        chunk.key, chunk.dataset, concat_ws(':', chunk.filename, chunk.treename) AS filename,
        chunk.events, chunk.trace_id
    FROM _chunks AS chunk
    WHERE chunk.is_first_result AND chunk.has_task AND chunk.chunks_in_task = 1
        AND chunk.events > 0 AND chunk.is_warming_up
"""

_MERGES: Final = "SELECT trace_id, key FROM _coffea_roles WHERE role = 'merge'"

_COSTS: Final = """
    SELECT
        dataset, is_known, fixed_seconds, seconds_per_event, recommended_events, note, trace_id
    FROM chunk_costs
"""

#: Cores of the only host of the workers, and the share of computation that uses a CPU.
_CORES: Final = """
    WITH hosts AS (
        SELECT
            trace_id,
            least(min(usable_cores), min(cgroup_cores)) AS cores
        FROM machines
        WHERE process = 'worker'
        GROUP BY trace_id
        HAVING count(DISTINCT host) = 1
    ),
    cpu AS (
        SELECT
            trace_id,
            sum(value) FILTER (activity = 'thread-cpu') / nullif(sum(value), 0) AS share
        FROM fine_metrics
        WHERE context = 'execute' AND activity IN ('thread-cpu', 'thread-noncpu')
        GROUP BY trace_id
    )
    SELECT hosts.trace_id, hosts.cores, cpu.share
    FROM hosts
    LEFT JOIN cpu USING (trace_id)
"""

#: What slows a run down that the simulation does not model.
_UNMODELLED: Final = """
    SELECT
        trace_id,
        (SELECT coalesce(sum(seconds), 0) FROM pauses WHERE pauses.trace_id = run.trace_id)
            AS paused_seconds,
        (
            SELECT coalesce(sum(disk_seconds), 0)
            FROM _task_runs AS task_run
            WHERE task_run.trace_id = run.trace_id
        ) AS disk_seconds,
        cancelled + unfinished AS cut_attempts
    FROM run
"""


@dataclass(frozen=True)
class Recorded:
    """A recorded run, and what changes of it need beside its plan."""

    plan: Plan
    wall_seconds: float
    chunks: Sequence[Chunk] = ()
    #: Merges of chunk results.
    merges: Sequence[int] = ()
    costs: dict[str, ChunkCost] = field(default_factory=dict)
    #: Whether the costs are those of a fit, rather than of the time outside of the processor.
    is_cost_known: bool = True
    recommended_events: int | None = None
    #: Cores of the workers' host, None if there are several or it is unknown.
    cores: float | None = None
    #: Share of the computation that uses a CPU, None if not recorded.
    cpu_share: float | None = None
    unmodelled: dict[str, float] = field(default_factory=dict)


def recorded_plans(queries: Queries) -> dict[str, Plan]:
    """Return the plan of each trace in which tasks ran, by trace_id."""
    return {trace_id: recorded.plan for trace_id, recorded in recorded_runs(queries).items()}


def recorded_runs(queries: Queries) -> dict[str, Recorded]:
    """Return each trace in which tasks ran, by trace_id."""
    frames = {
        name: queries.sql(query).pl()
        for name, query in {
            "runs": _RUNS, "tasks": _TASKS, "attempts": _ATTEMPTS, "workers": _WORKERS,
            "wanted": _WANTED, "restrictions": _RESTRICTIONS, "scheduler": _SCHEDULER,
            "config": _CONFIG, "chunks": _CHUNKS, "merges": _MERGES, "costs": _COSTS,
            "cores": _CORES, "unmodelled": _UNMODELLED,
        }.items()
    }  # fmt: skip
    runs = {}
    for trace_id, start_t, stop_t in frames["runs"].iter_rows():
        parts = {
            name: frame.filter(pl.col("trace_id") == trace_id) for name, frame in frames.items()
        }
        config = dict(parts["config"].select("name", "value").iter_rows())
        saturation, stealing_seconds = _scheduling(config)
        steps, attempts = parts["scheduler"], len(parts["attempts"])
        scheduler_seconds = 0.0
        if attempts and not steps.is_empty():
            seconds, transitions = steps.select("seconds", "transitions").row(0)
            scheduler_seconds = (seconds or 0.0) * transitions / attempts
        plan = plan_of_run(
            RecordedRun(
                start_t=start_t,
                stop_t=stop_t,
                tasks=parts["tasks"],
                attempts=parts["attempts"],
                workers=parts["workers"],
                wanted=parts["wanted"],
                restrictions=parts["restrictions"],
                scheduler_seconds=scheduler_seconds,
                saturation=saturation,
                stealing_seconds=stealing_seconds,
            )
        )
        if plan is not None and plan.workers:
            cores, cpu_share = (
                parts["cores"].select("cores", "share").row(0)
                if len(parts["cores"])
                else (None, None)
            )
            runs[trace_id] = _with_chunks(
                Recorded(
                    plan=plan,
                    wall_seconds=stop_t - start_t,
                    unmodelled=parts["unmodelled"].drop("trace_id").row(0, named=True),
                    cores=cores,
                    cpu_share=cpu_share,
                ),
                parts["chunks"],
                parts["merges"],
                parts["costs"],
            )
    return runs


def _scheduling(config: dict[str, str]) -> tuple[float, float | None]:
    """Return worker-saturation, and the interval of work stealing, None without stealing."""
    try:
        saturation = float(config.get("distributed.scheduler.worker-saturation", 1.1))
    except ValueError:  # YAML's infinity is .inf
        saturation = math.inf
    if config.get("distributed.scheduler.work-stealing", "true").lower() == "false":
        return saturation, None
    text = config.get("distributed.scheduler.work-stealing-interval", "100ms")
    digits = "".join(letter for letter in text if letter in "0123456789.")
    try:
        return saturation, float(digits) / (1000 if text.endswith("ms") else 1)
    except ValueError:
        return saturation, 1.0


def _with_chunks(
    recorded: Recorded, chunks: pl.DataFrame, merges: pl.DataFrame, costs: pl.DataFrame
) -> Recorded:
    """Return the run with its coffea chunks and their costs."""
    numbers = {key: task for task, key in enumerate(recorded.plan.keys)}
    chunks = chunks.filter(pl.col("key").is_in(list(numbers)))
    if chunks.is_empty():
        return recorded
    known: dict[str, ChunkCost] = {}
    for row in costs.iter_rows(named=True):
        if row["is_known"]:
            known[row["dataset"] or ""] = ChunkCost(
                row["fixed_seconds"], row["seconds_per_event"]
            )
    all_costs = {}
    for (dataset,), rows in chunks.group_by("dataset"):
        name = str(dataset or "")
        all_costs[name] = known.get(name) or _outside_cost(rows)
    first = costs["recommended_events"][0] if len(costs) else None
    return replace(
        recorded,
        chunks=[
            Chunk(numbers[key], dataset or "", filename or "", int(events))
            for key, dataset, filename, events in chunks.select(
                "key", "dataset", "filename", "events"
            ).iter_rows()
        ],
        merges=[numbers[key] for key in merges["key"].to_list() if key in numbers],
        costs=all_costs,
        is_cost_known=set(all_costs) <= set(known),
        recommended_events=first,
    )


def _outside_cost(chunks: pl.DataFrame) -> ChunkCost:
    """Return the cost of chunks of one size: the time outside of the processor is fixed."""
    measured = chunks.filter(pl.col("compute_seconds").is_not_null())
    if measured.is_empty():
        return ChunkCost(0.0, 1.0)
    outside = float(measured["outside_seconds"].median() or 0.0)  # type: ignore[arg-type]
    total = float(measured["compute_seconds"].sum()) - len(measured) * outside
    return ChunkCost(max(outside, 0.0), max(total, 1e-9) / int(measured["events"].sum()))


@dataclass(frozen=True)
class Scenario:
    """A change of a run; None is as recorded."""

    workers: int | None = None
    threads: int | None = None
    chunk_size: int | None = None
    #: Names of :data:`CAUSES` that are removed together.
    without: tuple[str, ...] = ()


def predict(
    queries: Queries,
    workers: Sequence[int] = (),
    threads: Sequence[int] = (),
    chunk_sizes: Sequence[int | Literal["auto"]] = (),
    without: Sequence[str] = (),
) -> pl.DataFrame:
    """Return the predictions of :meth:`roast_analyze.Trace.what_if`."""
    for cause in without:
        for name in cause.split("+"):
            if name not in CAUSES:
                raise TraceError(f"unknown cause {name!r}: choose from {', '.join(CAUSES)}")
    for value, what in [(v, "workers") for v in workers] + [(v, "threads") for v in threads]:
        if value < 1:
            raise TraceError(f"invalid number of {what} {value}: use 1 or more")
    rows = []
    for trace_id, recorded in recorded_runs(queries).items():
        replayed = simulate(recorded.plan).wall_seconds
        error = replayed / recorded.wall_seconds - 1 if recorded.wall_seconds else 0.0
        own = len(worker_slots(recorded.plan.workers))
        counts: Sequence[int | None] = workers
        if not (workers or threads or chunk_sizes or without):
            counts = sorted({max(own * factor // 4, 1) for factor in (1, 2, 4, 8, 16)})
        # The recorded number is the recorded run, with the departures of its workers.
        counts = [count if count != own else None for count in counts]
        own_threads = worker_slots(recorded.plan.workers)[0][-1].nthreads
        per_worker = [number if number != own_threads else None for number in threads]
        sizes = [_chunk_size(recorded, size) for size in chunk_sizes]
        scenarios = [
            Scenario(*parts)
            for parts in product(
                counts or (None,),
                per_worker or (None,),
                sizes or (None,),
                [tuple(cause.split("+")) for cause in without] or [()],
            )
        ]
        # The replay, and each scenario with nothing removed, come first.
        scenarios = list(
            dict.fromkeys(
                [Scenario(), *(replace(s, without=()) for s in scenarios), *scenarios]
            )
        )
        rows += [_row(recorded, scenario, error, trace_id) for scenario in scenarios]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _chunk_size(recorded: Recorded, size: int | Literal["auto"]) -> int:
    if not recorded.chunks:
        raise TraceError("no coffea chunks in the trace: leave out the chunk size")
    if size == "auto":
        if recorded.recommended_events is None:
            raise TraceError(
                "no chunk size can be recommended from this trace: name one, or see the note "
                "of the view chunk_costs"
            )
        return recorded.recommended_events
    if size < 1:
        raise TraceError(f"invalid chunk size {size}: use 1 or more")
    return size


def apply(recorded: Recorded, scenario: Scenario) -> Plan:
    """Return the plan of a scenario.

    Raises
    ------
    TraceError
        If the chunks do not belong to a coffea Runner.
    """
    plan = recorded.plan
    if scenario.chunk_size is not None:
        try:
            plan = with_chunk_size(
                plan, recorded.chunks, recorded.merges, recorded.costs, scenario.chunk_size
            )
        except ValueError as error:
            raise TraceError(
                f"cannot change the chunk size: {error}; leave out the chunk size"
            ) from None
    if scenario.workers is not None or scenario.threads is not None:
        count = scenario.workers or len(worker_slots(plan.workers))
        plan = with_workers(plan, count, scenario.threads)
        plan = replace(plan, seconds=plan.seconds * _stretch(recorded, plan))
    for cause in scenario.without:
        plan = CAUSES[cause](plan)
    return plan


def _stretch(recorded: Recorded, plan: Plan) -> float:
    """Return how much longer computation takes on a host with fewer cores than are needed."""
    if not recorded.cores or not recorded.cpu_share:
        return 1.0
    needed = _threads(plan) * recorded.cpu_share
    before = _threads(recorded.plan) * recorded.cpu_share
    return max(1.0, needed / max(recorded.cores, before))


def _threads(plan: Plan) -> int:
    """Return the number of threads at the same time."""
    return sum(slot[-1].nthreads for slot in worker_slots(plan.workers))


def _row(
    recorded: Recorded, scenario: Scenario, replay_error: float, trace_id: str
) -> tuple[Any, ...]:
    plan = apply(recorded, scenario)
    result = simulate(plan)
    slots = worker_slots(plan.workers)
    return (
        len(slots),
        slots[0][-1].nthreads,
        scenario.chunk_size,
        "+".join(scenario.without) or None,
        result.wall_seconds,
        result.core_seconds,
        result.wall_seconds / recorded.wall_seconds - 1 if recorded.wall_seconds else None,
        critical_path_seconds(plan),
        total_work_seconds(plan),
        replay_error,
        _note(recorded, scenario, plan, replay_error, result.unfinished),
        trace_id,
    )


def _note(
    recorded: Recorded, scenario: Scenario, plan: Plan, replay_error: float, unfinished: int
) -> str | None:
    """Return what limits the prediction."""
    notes = []
    if abs(replay_error) > MAX_REPLAY_ERROR:
        notes.append(
            f"do not use: the replay of the recorded run differs by {replay_error:+.0%}; "
            f"{_suspect(recorded, replay_error)}"
        )
    if unfinished:
        notes.append(f"{unfinished} tasks cannot run: no worker that may run them stays")
    if scenario.chunk_size is not None and not recorded.is_cost_known:
        notes.append(
            "uncertain: no fitted cost of a chunk; only time outside of the processor is fixed"
        )
    threads = _threads(plan)
    more = threads > _threads(recorded.plan)
    if scenario.workers is not None or scenario.threads is not None:
        if recorded.cores and recorded.cpu_share is None and threads > recorded.cores and more:
            notes.append(
                f"contention for the {recorded.cores:g} cores of the host is not known"
            )
        elif recorded.cores and recorded.cpu_share and _stretch(recorded, plan) > 1:
            notes.append(f"computation stretched: {recorded.cores:g} cores on the host")
        elif more and not recorded.cores:
            notes.append("contention for storage and network is not known")
        if max(w.nthreads for w in plan.workers) > max(
            worker.nthreads for worker in recorded.plan.workers
        ):
            notes.append("contention for the GIL is not known")
    return "; ".join(notes) or None


def _suspect(recorded: Recorded, replay_error: float) -> str:
    """Return the assumption of the simulation that is most likely wrong."""
    plan, facts = recorded.plan, recorded.unmodelled
    lost = abs(replay_error) * recorded.wall_seconds
    if replay_error < 0:
        if facts["paused_seconds"] > lost / 2:
            return "paused workers are not simulated"
        if facts["disk_seconds"] > lost / 2:
            return "spilling is not simulated"
        if facts["cut_attempts"]:
            return "cancelled and unfinished attempts are not simulated"
        return "the overhead per task varies, and only its usual value is simulated"
    errors = {}
    for cause, text in {
        "transfers": "transfers overlap more than simulated",
        "scheduler": "the overhead per task was measured while the machine was loaded",
    }.items():
        errors[text] = abs(
            simulate(CAUSES[cause](plan)).wall_seconds / recorded.wall_seconds - 1
        )
    text, least = min(errors.items(), key=lambda item: item[1])
    if least < abs(replay_error) / 2:
        return text
    return "tasks were placed on workers in another way than simulated"
