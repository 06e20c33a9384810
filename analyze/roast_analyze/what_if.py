"""Predictions of a recorded run under other conditions.

The run is simulated as recorded first: the replay follows the recorded placement of tasks, and
its difference from the recorded wall time is the replay error. Then each scenario is simulated.

A prediction is a range. It contains simulations with other choices of Dask that are
arbitrary, such as the worker among equals, with durations drawn again from the recorded ones,
and with the extremes of what the trace does not contain: the fixed time of a chunk, and why
tasks used no CPU. A range that is too wide is reduced to its lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from roast_analyze.algorithms.contention import with_contention
from roast_analyze.algorithms.plan import Plan, critical_path_seconds, total_work_seconds
from roast_analyze.algorithms.scenarios import (
    CAUSES,
    resampled,
    with_chunk_size,
    with_workers,
    worker_slots,
)
from roast_analyze.algorithms.simulation import Result, simulate
from roast_analyze.computed.findings import MAX_RATIO
from roast_analyze.errors import TraceError
from roast_analyze.recorded_runs import Recorded, recorded_runs

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Above this error of the replay or of the placement, nothing is predicted.
MAX_ERROR: Final = 0.1

#: Relative error of the model and of the machine, by which a range is widened at both ends. Of
#: predictions by ``make benchmark-what-if``, 72 of 72 were within it.
RUN_ERROR: Final = 0.1

#: The same if a host had no free cores: its load changes from run to run. It is the largest
#: error, by ratio, of 18 predictions by the same command beside 15 to 30 other busy processes
#: on two cores.
LOADED_ERROR: Final = 0.65

#: Simulations with random choices: as many as simulate this number of tasks, at least one.
_SIMULATED_TASKS: Final = 10_000
_MAX_SIMULATIONS: Final = 9
#: Of these, with durations that are drawn again.
_MAX_REPETITIONS: Final = 5

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
    rows: list[dict[str, Any]] = []
    for trace_id, recorded in recorded_runs(trace).items():
        slots = worker_slots(recorded.plan.workers)
        counts = workers
        if not (workers or threads or chunk_sizes or without):
            counts = sorted({max(len(slots) * factor // 4, 1) for factor in (1, 2, 4, 8, 16)})
        sizes: list[int] = []
        not_predicted: list[dict[str, Any]] = []
        for size in chunk_sizes:
            if not recorded.chunks:
                raise TraceError("no coffea chunks in the trace: leave out the chunk size")
            number = recorded.recommended_events if size == "auto" else size
            if number is None:
                not_predicted.append({"note": _NO_RECOMMENDATION, "trace_id": trace_id})
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
        replay = _Replay.of(recorded)
        # The replay, and each scenario with nothing removed, come first.
        whole = [replace(scenario, without=()) for scenario in scenarios]
        rows += [
            {**_prediction(recorded, scenario, replay), "trace_id": trace_id}
            for scenario in dict.fromkeys([Scenario(), *whole, *scenarios])
        ]
        rows += not_predicted
    return pl.DataFrame(rows, schema=COLUMNS)


@dataclass(frozen=True)
class _Replay:
    """The simulation of a run as recorded."""

    wall_seconds: float
    error: float
    placement_error: float
    #: Why nothing can be predicted; empty if it can.
    refusal: str

    @classmethod
    def of(cls, recorded: Recorded) -> _Replay:
        wall_seconds = recorded.wall_seconds
        replay_seconds = simulate(recorded.plan).wall_seconds
        error = replay_seconds / wall_seconds - 1 if wall_seconds else 0.0
        placed = simulations(replace(recorded.plan, placement=None))
        nearest = min(max(wall_seconds, placed[0].wall_seconds), placed[-1].wall_seconds)
        placement_error = nearest / wall_seconds - 1 if wall_seconds else 0.0
        refusal = ""
        if abs(error) > MAX_ERROR:
            refusal = (
                f"not predicted: the replay of the recorded run differs by {error:+.0%}; "
                f"probable reason: {_wrong_assumption(recorded, error)}"
            )
        elif abs(placement_error) > MAX_ERROR:
            refusal = (
                f"not predicted: with simulated placement, the run differs by "
                f"{placement_error:+.0%}; tasks were placed in another way than simulated"
            )
        return cls(replay_seconds, error, placement_error, refusal)


def _prediction(recorded: Recorded, scenario: Scenario, replay: _Replay) -> dict[str, Any]:
    """Return a row without its trace_id."""
    plans, notes = apply(recorded, scenario)
    plan, is_replay = plans[0], scenario == Scenario()
    slots = worker_slots(plan.workers)
    row = {
        "workers": len(slots),
        "threads": slots[0][-1].nthreads,
        "chunk_size": scenario.chunk_size,
        "without": "+".join(scenario.without) or None,
        "replay_error": replay.error,
        "placement_error": replay.placement_error,
    }
    if replay.refusal and not is_replay:
        return {**row, "note": replay.refusal}
    results = simulations(plan)
    result = results[len(results) // 2]
    free = [replace(plan, placement=None), *plans[1:]]
    walls = [
        each.wall_seconds for one in free for each in (*simulations(one), *repetitions(one))
    ]
    error = LOADED_ERROR if recorded.facts["is_loaded"] else RUN_ERROR
    least, most = min(walls) / (1 + error), max(walls) * (1 + error)
    row |= {
        "wall_seconds_min": least,
        "critical_path_seconds": min(map(critical_path_seconds, plans)),
        "total_work_seconds": min(map(total_work_seconds, plans)),
    }
    if most > MAX_RATIO * least and not is_replay:
        notes.insert(0, f"a lower bound: it may take more than {MAX_RATIO:g} times as long")
    else:
        row |= {
            "wall_seconds": result.wall_seconds,
            "wall_seconds_max": most,
            "core_seconds": result.core_seconds,
            "change": result.wall_seconds / recorded.wall_seconds - 1
            if recorded.wall_seconds
            else None,
        }
    notes = [replay.refusal, *notes, *_limits(recorded, plan, result)]
    return {**row, "note": "; ".join(filter(None, notes)) or None}


def simulations(plan: Plan) -> list[Result]:
    """Return simulated runs of a plan, by wall time; one if its placement is recorded."""
    if plan.placement is not None:
        return [simulate(plan)]
    results = [simulate(plan, seed) for seed in range(_count(plan))]
    return sorted(results, key=lambda result: result.wall_seconds)


def repetitions(plan: Plan) -> list[Result]:
    """Return simulated runs of a plan with durations that are drawn again from its own."""
    count = min(_count(plan), _MAX_REPETITIONS)
    return [simulate(resampled(plan, seed), seed) for seed in range(count)]


def _count(plan: Plan) -> int:
    return min(max(_SIMULATED_TASKS // max(len(plan.seconds), 1), 1), _MAX_SIMULATIONS)


def apply(recorded: Recorded, scenario: Scenario) -> tuple[list[Plan], list[str]]:
    """Return the possible plans of a scenario, the most probable first, with notes.

    Raises
    ------
    TraceError
        If the chunks do not belong to a coffea Runner.
    """
    plans, notes = [recorded.plan], []
    if scenario.chunk_size is not None:
        try:
            plans = [
                with_chunk_size(
                    recorded.plan, recorded.chunks, recorded.merges, costs, scenario.chunk_size
                )
                for costs in recorded.costs
            ]
        except ValueError as error:
            raise TraceError(
                f"cannot change the chunk size: {error}; leave out the chunk size"
            ) from None
        if not recorded.is_cost_known:
            notes.append(
                "the fixed time of a chunk within the processor is not known from chunks of "
                "one size: the ends of the range are those without any, and with all time fixed"
            )
    if scenario.workers is not None or scenario.threads is not None:
        count = scenario.workers or len(worker_slots(recorded.plan.workers))
        facts = recorded.facts
        possible = [
            with_contention(
                with_workers(plan, count, scenario.threads),
                recorded.plan,
                facts["cores"],
                facts["cpu_share"],
                is_loaded=facts["is_loaded"],
            )
            for plan in plans
        ]
        plans = [plan for each in possible for plan in each.plans]
        notes += possible[0].notes
    for cause in scenario.without:
        plans = [CAUSES[cause](plan) for plan in plans]
    return plans, notes


def _limits(recorded: Recorded, plan: Plan, result: Result) -> Iterator[str]:
    """Yield what the prediction leaves out."""
    if recorded.facts["is_loaded"]:
        yield "a host had no free cores: the range is wider, since its load can be different"
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
