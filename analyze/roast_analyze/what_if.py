"""Predictions of a recorded run under other conditions.

The run is simulated as recorded first: the replay follows the recorded placement of tasks, and
its difference from the recorded wall time is the replay error. Then each scenario is simulated.
Without recorded placement, several choices of Dask are arbitrary, such as the worker among
equals. Small runs are therefore simulated several times, with random choices: the prediction is
the median, and the range is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from roast_analyze.algorithms.plan import Plan, critical_path_seconds, total_work_seconds
from roast_analyze.algorithms.scenarios import (
    CAUSES,
    with_chunk_size,
    with_shared_cores,
    with_workers,
    worker_slots,
)
from roast_analyze.algorithms.simulation import Result, simulate
from roast_analyze.errors import TraceError
from roast_analyze.recorded_runs import Recorded, recorded_runs

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Above this error of the replay or of the placement, predictions should not be used.
MAX_ERROR: Final = 0.1

#: Simulations with random choices: as many as simulate this number of tasks, at least one.
_SIMULATED_TASKS: Final = 10_000
_MAX_SIMULATIONS: Final = 9

#: Limits of a scenario: simulating more takes minutes, and gigabytes of memory.
MAX_WORKERS: Final = 10_000
_MAX_THREADS: Final = 1_000
_MAX_CHUNKS: Final = 1_000_000

_NO_RECOMMENDATION: Final = (
    "chunk size auto: no size can be recommended from this trace; the note of the view "
    "chunk_costs has the reason"
)

#: Columns of :func:`predict`.
COLUMNS: Final = pl.Schema(
    dict.fromkeys(("workers", "threads", "chunk_size"), pl.Int64())
    | {"without": pl.String()}
    | dict.fromkeys(
        (
            "wall_seconds", "wall_seconds_min", "wall_seconds_max", "core_seconds", "change",
            "critical_path_seconds", "total_work_seconds", "replay_error", "placement_error",
        ),
        pl.Float64(),
    )
    | dict.fromkeys(("note", "trace_id"), pl.String())
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """A change of a run; None is as recorded."""

    workers: int | None = None
    threads: int | None = None
    chunk_size: int | None = None
    #: Names of :data:`CAUSES` that are removed together.
    without: tuple[str, ...] = ()


def predict(
    trace: Session,
    workers: Sequence[int] = (),
    threads: Sequence[int] = (),
    chunk_sizes: Sequence[int | Literal["auto"]] = (),
    without: Sequence[str] = (),
) -> pl.DataFrame:
    """Return the predictions of :meth:`roast_analyze.Trace.what_if`."""
    removed = [tuple(cause.split("+")) for cause in without]
    for name in [name for names in removed for name in names]:
        if name not in CAUSES:
            raise TraceError(f"unknown cause {name!r}: choose from {', '.join(CAUSES)}")
    for values, what, most in (
        (workers, "workers", MAX_WORKERS), (threads, "threads", _MAX_THREADS)
    ):  # fmt: skip
        for value in values:
            if not 1 <= value <= most:
                raise TraceError(f"invalid number of {what} {value}: use 1 to {most:,}")
    rows: list[tuple[Any, ...]] = []
    for trace_id, recorded in recorded_runs(trace).items():
        wall_seconds = recorded.wall_seconds
        replay_seconds = simulate(recorded.plan).wall_seconds
        error = replay_seconds / wall_seconds - 1 if wall_seconds else 0.0
        placed = simulations(replace(recorded.plan, placement=None))
        nearest = min(max(wall_seconds, placed[0].wall_seconds), placed[-1].wall_seconds)
        placement_error = nearest / wall_seconds - 1 if wall_seconds else 0.0
        warning = None
        if abs(error) > MAX_ERROR:
            warning = (
                f"do not use: the replay of the recorded run differs by {error:+.0%}; "
                f"probable reason: {_wrong_assumption(recorded, error)}"
            )
        elif abs(placement_error) > MAX_ERROR:
            warning = (
                f"do not use: with simulated placement, the run differs by "
                f"{placement_error:+.0%}; tasks were placed in another way than simulated"
            )
        slots = worker_slots(recorded.plan.workers)
        counts = workers
        if not (workers or threads or chunk_sizes or without):
            counts = sorted({max(len(slots) * factor // 4, 1) for factor in (1, 2, 4, 8, 16)})
        sizes: list[int] = []
        not_predicted: list[tuple[Any, ...]] = []
        for size in chunk_sizes:
            if not recorded.chunks:
                raise TraceError("no coffea chunks in the trace: leave out the chunk size")
            number = recorded.recommended_events if size == "auto" else size
            if number is None:
                unknown = {"note": _NO_RECOMMENDATION, "trace_id": trace_id}
                not_predicted.append(tuple(map(unknown.get, COLUMNS)))
                continue
            sizes.append(number)
            events = sum(chunk.events for chunk in recorded.chunks)
            least = max(math.ceil(events / _MAX_CHUNKS), 1)
            if number < least:
                raise TraceError(f"invalid chunk size {number}: use {least:,} or more")
        recorded_threads = {worker.nthreads for worker in recorded.plan.workers}
        # The recorded number is the recorded run, with the departures of its workers.
        scenarios = [
            Scenario(*parts)
            for parts in product(
                [None if count == len(slots) else count for count in counts] or [None],
                [None if {n} == recorded_threads else n for n in threads] or [None],
                sizes if chunk_sizes else [None],
                removed or [()],
            )
        ]
        # The replay, and each scenario with nothing removed, come first.
        whole = [replace(scenario, without=()) for scenario in scenarios]
        for scenario in dict.fromkeys([Scenario(), *whole, *scenarios]):
            plan = apply(recorded, scenario)
            results = simulations(plan)
            result = results[len(results) // 2]
            if scenario == Scenario():
                results = placed
            notes = [warning, *_limits(recorded, scenario, plan, result)]
            slots = worker_slots(plan.workers)
            rows.append(
                (
                    len(slots),
                    slots[0][-1].nthreads,
                    scenario.chunk_size,
                    "+".join(scenario.without) or None,
                    result.wall_seconds,
                    results[0].wall_seconds,
                    results[-1].wall_seconds,
                    result.core_seconds,
                    result.wall_seconds / wall_seconds - 1 if wall_seconds else None,
                    critical_path_seconds(plan),
                    total_work_seconds(plan),
                    error,
                    placement_error,
                    "; ".join(filter(None, notes)) or None,
                    trace_id,
                )
            )
        rows += not_predicted
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def simulations(plan: Plan) -> list[Result]:
    """Return simulated runs of a plan, by wall time; one if its placement is recorded."""
    if plan.placement is not None:
        return [simulate(plan)]
    count = min(max(_SIMULATED_TASKS // max(len(plan.seconds), 1), 1), _MAX_SIMULATIONS)
    results = [simulate(plan, seed) for seed in range(count)]
    return sorted(results, key=lambda result: result.wall_seconds)


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
        tasks = _tasks_at_full_speed(recorded)
        if _threads(plan) > tasks:
            plan = with_shared_cores(plan, tasks)
    for cause in scenario.without:
        plan = CAUSES[cause](plan)
    return plan


def _tasks_at_full_speed(recorded: Recorded) -> float:
    """Return how many tasks at a time take no longer than the recorded ones."""
    cores, cpu_share = recorded.facts["cores"], recorded.facts["cpu_share"]
    if not cores or not cpu_share:
        return math.inf
    # The recorded durations include the contention of the recorded threads.
    tasks: float = max(cores / cpu_share, _threads(recorded.plan))
    return tasks


def _threads(plan: Plan) -> int:
    """Return the number of threads at the same time."""
    return sum(slot[-1].nthreads for slot in worker_slots(plan.workers))


def _limits(
    recorded: Recorded, scenario: Scenario, plan: Plan, result: Result
) -> Iterator[str]:
    """Yield the limitations of the prediction."""
    if result.unfinished:
        tasks = "1 task" if result.unfinished == 1 else f"{result.unfinished} tasks"
        yield f"{tasks} cannot run: no worker remains that may do so"
    if tasks := recorded.facts["unattempted_tasks"]:
        yield f"not included: tasks that still waited when the recording ended ({tasks})"
    if tasks := recorded.facts["tasks_with_resources"]:
        yield f"not simulated: resources that tasks need ({tasks})"
    last_end = result.wall_seconds - plan.closing_seconds
    if any(
        worker.is_lost and last_end < worker.to_seconds < math.inf for worker in plan.workers
    ):
        yield "a worker that was lost in the recorded run stays: the last task ends before"
    if scenario.chunk_size is not None and not recorded.is_cost_known:
        yield (
            "uncertain: no fitted cost of a chunk; only time outside of the processor is fixed"
        )
    if scenario.workers is None and scenario.threads is None:
        return
    cores, cpu_share = recorded.facts["cores"], recorded.facts["cpu_share"]
    threads, before = _threads(plan), _threads(recorded.plan)
    if cores and cpu_share is None and threads > max(cores, before):
        yield f"contention for the {cores:g} cores of the host is not known"
    elif threads > _tasks_at_full_speed(recorded):
        yield (
            f"uncertain: {threads} threads share {cores:g} cores; computation is stretched "
            "while more tasks run"
        )
    elif cores and threads > max(cores, before):
        # Tasks that use little CPU fit, but the processes of Dask need some, too.
        yield f"{threads} threads share {cores:g} cores: the overhead of Dask may be higher"
    elif not cores and threads > before:
        yield "contention for storage and network is not known"
    most, most_before = (
        max(worker.nthreads for worker in run.workers) for run in (plan, recorded.plan)
    )
    if most > most_before:
        yield "contention for the GIL is not known"


def _wrong_assumption(recorded: Recorded, replay_error: float) -> str:
    """Return the assumption that is probably wrong, by the replay error."""
    facts, wall_seconds = recorded.facts, recorded.wall_seconds
    wrong = abs(replay_error) * wall_seconds
    if any(worker.is_lost and worker.to_seconds < math.inf for worker in recorded.plan.workers):
        return "it is not recorded which results were lost with a worker"
    if replay_error > 0:
        causes = {
            "transfers": "transfers overlap more than simulated",
            "scheduler": "the overhead per task was measured while the machine was loaded",
        }
        errors = {
            reason: abs(simulate(CAUSES[cause](recorded.plan)).wall_seconds / wall_seconds - 1)
            for cause, reason in causes.items()
        }
        reason = min(errors, key=errors.__getitem__)
        if errors[reason] < replay_error / 2:
            return reason
        return "more tasks ran at the same time than the workers have threads"
    if facts["paused_seconds"] > wrong / 2:
        return "paused workers are not simulated"
    if facts["disk_seconds"] > wrong / 2:
        return "spilling is not simulated"
    if facts["cut_attempts"]:
        return "cancelled and unfinished attempts are not simulated"
    return "the overhead per task varies, and only its usual value is simulated"
