"""The plan of a recorded run, for its simulation.

What the simulation needs beside recorded facts is estimated here: the overheads, the warm-up of
workers, and which results the client waited for before it submitted a graph.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from roast_analyze.algorithms.plan import (
    Overhead,
    Placement,
    Plan,
    Presence,
    Submission,
)

#: Dask's own assumption, used without measured transfers.
DEFAULT_BYTES_PER_SECOND: Final = 100e6

#: Smaller transfers measure the latency, larger ones the bandwidth.
_SMALL_BYTES, _LARGE_BYTES = 100_000, 1_000_000

#: Fewer dispatches to idle threads do not measure the time of a dispatch.
_MIN_DISPATCHES: Final = 5

#: Minimum duration of a warm-up, also as a share of the median task of its prefix, and minimum
#: number of later attempts to compare it with.
_MIN_WARMUP_SHARE: Final = 0.2
_MIN_WARMUP_SECONDS: Final = 0.02
_MIN_WARM_ATTEMPTS: Final = 5

#: Minimum number of graphs after a result of a client that submits them as results arrive, and
#: their maximum delay relative to the time between results.
_MIN_STREAMED_GRAPHS: Final = 5
_MAX_STREAMING_SHARE: Final = 0.25

#: End of the first attempt of the same prefix on the same process.
_FIRST_STOP: Final = pl.col("stop_t").sort_by("start_t").first().over("process", "prefix")


def plan_of_run(
    run: Mapping[str, Any],
    tasks: pl.DataFrame,
    attempts: pl.DataFrame,
    workers: pl.DataFrame,
    wanted: pl.DataFrame,
    restrictions: pl.DataFrame,
) -> Plan | None:
    """Return the plan of a run as it was recorded, None if no task ran.

    Parameters
    ----------
    run : mapping
        start_t, stop_t, scheduler_seconds (that the scheduler spends on a task), saturation and
        stealing_seconds (as in the plan). Instants are in seconds since the epoch.
    tasks : polars.DataFrame
        Submissions of keys in their order: seq, key, prefix, group, priority, dependencies,
        stimulus_id, client, t.
    attempts : polars.DataFrame
        In the order of their beginning: submission (seq of the task), prefix, process, thread,
        outcome, processing_t, start_t and stop_t (on the thread), end_t, nbytes, events (of a
        coffea chunk), transfer_t and transfer_seconds (of its first transfer, and between its
        first and last), is_stolen (another worker was assigned).
    workers : polars.DataFrame
        process, name, address, host, nthreads, from_t, to_t, is_lost.
    wanted : polars.DataFrame
        key, stop_t: results that clients wanted, and until when, null if to the end.
    restrictions : polars.DataFrame
        key, workers: names, addresses or hosts.
    """
    tasks = _ended_tasks(tasks, attempts)
    if tasks.is_empty():
        return None
    # A failed attempt reports no phases to some versions of Dask. A task that is to run
    # elsewhere, as those of a shuffle, reports none, and raises at once.
    processing = pl.when(pl.col("outcome") == "retried").then(
        pl.col("end_t") - pl.col("processing_t")
    )
    failed = (
        attempts.filter(pl.col("outcome").is_in(["retried", "rescheduled"]))
        .join(
            tasks.select("task", "seq"),
            left_on="submission",
            right_on="seq",
            maintain_order="left",
        )
        .group_by("task", maintain_order=True)
        .agg(
            pl.coalesce(pl.col("stop_t") - pl.col("start_t"), processing)
            .clip(0.0)
            .fill_null(0.0)
        )
    )
    # Tasks without a priority come last, in the order of submission.
    order = sorted(
        tasks.select("priority", "task").iter_rows(),
        key=lambda row: (*(row[0] or (math.inf,)), row[1]),
    )
    priorities = np.empty(len(order), dtype=np.int64)
    priorities[[task for _, task in order]] = np.arange(len(order))
    dependencies = _dependencies(tasks)
    graphs, submissions, released = _submissions(run, tasks, wanted)
    overhead, usual_overhead = _overhead(run, attempts, tasks, dependencies)
    keys = tasks["key"].to_list()
    # A task can be assigned again: its first assignment decides.
    first = attempts.with_row_index("position").group_by("submission").agg(pl.min("position"))
    assigned = tasks.join(first, left_on="seq", right_on="submission", maintain_order="left")
    allowed = dict(restrictions.select("key", "workers").iter_rows())
    indices = {process: number for number, process in enumerate(workers["process"])}
    last_end: float = tasks["end_t"].max() or run["stop_t"]  # type: ignore[assignment]
    presence = workers.with_columns(
        from_seconds=(pl.col("from_t") - run["start_t"]).clip(0.0)
    ).select(
        "name", "address", "host", "nthreads", "from_seconds", "is_lost",
        # Departures after the last task have no effect. The scheduler's clock may have been set
        # back while a worker was connected.
        to_seconds=pl.when(pl.col("to_t") < last_end)
        .then(pl.max_horizontal(pl.col("to_t") - run["start_t"], "from_seconds"))
        .otherwise(math.inf),
    )  # fmt: skip
    return Plan(
        keys=keys,
        events=tasks["events"].to_numpy(),
        seconds=tasks["seconds"].to_numpy(),
        nbytes=tasks["nbytes"].to_numpy(),
        priorities=priorities,
        prefixes=tasks["prefix"].to_numpy(),
        groups=tasks["group"].to_numpy(),
        graphs=graphs,
        dependencies=dependencies,
        submissions=submissions,
        workers=[Presence(**row) for row in presence.iter_rows(named=True)],
        placement=Placement(
            workers=np.array(
                [
                    -1 if is_stolen else indices.get(process, -1)
                    for process, is_stolen in tasks.select("process", "is_stolen").iter_rows()
                ]
            ),
            assignment_order=assigned["position"].to_numpy(),
            start_order=tasks["start_t"].rank("ordinal").fill_null(0).to_numpy(),
            steal_seconds=_steal_seconds(run, attempts),
        ),
        overhead=overhead,
        usual_overhead=usual_overhead,
        failed_seconds=dict(failed.iter_rows()),
        restrictions={
            task: frozenset(allowed[key]) for task, key in enumerate(keys) if key in allowed
        },
        warmup_seconds=dict(
            tasks.filter(pl.col("warmup") > 0).select("prefix", "warmup").unique().iter_rows()
        ),
        wanted=released,
        closing_seconds=max(run["stop_t"] - last_end, 0.0),
        saturation=run["saturation"],
        stealing_seconds=run["stealing_seconds"],
    )


def _ended_tasks(tasks: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks that ended, each with the attempt that decided it.

    Prefixes and groups are numbers, and the seconds are without the warm-up of a process.
    """
    # The first result, or else the last error: a result can be computed again when it is lost.
    final = (
        attempts.drop_nulls("submission")
        .filter(pl.col("outcome").is_in(["memory", "erred"]))
        .with_columns(
            seconds=(pl.col("stop_t") - pl.col("start_t")).clip(0.0).fill_null(0.0),
            is_warming_up=(pl.col("start_t") < _FIRST_STOP).fill_null(value=False),
        )
        .sort(pl.col("outcome") != "memory", maintain_order=True)
        .unique("submission", keep="first", maintain_order=True)
        .drop("prefix", "outcome", "thread")
    )
    warmups = _warmup_seconds(attempts)
    return (
        tasks.join(final, left_on="seq", right_on="submission")
        .sort("seq")
        .with_row_index("task")
        .with_columns(
            pl.col("nbytes", "events").fill_null(0).cast(pl.Float64),
            pl.col("prefix", "group").fill_null(""),
            warmup=pl.col("prefix").replace_strict(
                list(warmups), list(warmups.values()), default=0.0, return_dtype=pl.Float64
            ),
        )
        .with_columns(
            pl.when("is_warming_up")
            .then((pl.col("seconds") - pl.col("warmup")).clip(0.0))
            .otherwise("seconds")
            .alias("seconds"),
            # Any numbers work: the simulation only compares them.
            pl.col("prefix", "group").rank("dense").cast(pl.Int64) - 1,
        )
    )


def _warmup_seconds(attempts: pl.DataFrame) -> dict[str, float]:
    """Return the additional time of the first task on a process, by prefix, if significant."""
    measured = attempts.filter(
        pl.col("outcome") == "memory",
        pl.col("start_t").is_not_null(),
        pl.col("prefix").is_not_null(),
    ).with_columns(
        is_first=pl.col("start_t") < _FIRST_STOP,
        seconds=pl.col("stop_t") - pl.col("start_t"),
        events=pl.col("events").cast(pl.Float64),
    )
    warmups = {}
    for (prefix,), rows in measured.group_by("prefix"):
        later = rows.filter(~pl.col("is_first"))
        if len(later) < _MIN_WARM_ATTEMPTS:
            continue
        # A null is nan here, and not larger than 0.
        events, seconds = later["events"].to_numpy(), later["seconds"].to_numpy()
        typical: float = later["seconds"].median() or 0.0  # type: ignore[assignment]
        # The usual duration is linear in the events, if these are known.
        slope, intercept = 0.0, typical
        if (events > 0).all():
            slope, intercept = float(np.median(seconds / events)), 0.0
            if events.max() >= 1.5 * events.min():
                slope, intercept = np.polyfit(events, seconds, 1)
        excess = pl.col("seconds") - (pl.col("events").fill_null(0) * slope + intercept)
        # Of the tasks that began at the same time, the first one imported modules.
        first = rows.filter("is_first").sort("start_t").unique("process", keep="first")
        warmup = float(np.median(first.select(excess)))
        scatter = float(np.median(later.select(excess.abs())))
        if warmup > max(_MIN_WARMUP_SECONDS, _MIN_WARMUP_SHARE * typical, 3 * scatter):
            warmups[str(prefix)] = warmup
    return warmups


def _dependencies(tasks: pl.DataFrame) -> list[list[int]]:
    """Return the dependencies of each task; a key refers to its latest earlier submission."""
    rows = tasks.select("task", "key", "stimulus_id", "dependencies").rows()
    by_graph = {(stimulus, key): task for task, key, stimulus, _ in rows}
    latest: dict[str, int] = {}
    result = []
    for task, key, stimulus, needed in rows:
        found = [by_graph.get((stimulus, other), latest.get(other)) for other in needed or ()]
        result.append([other for other in found if other is not None and other != task])
        latest[key] = task
    return result


def _submissions(
    run: Mapping[str, Any], tasks: pl.DataFrame, wanted: pl.DataFrame
) -> tuple[Any, list[Submission], dict[int, int | None]]:
    """Return the graph of each task, when each was submitted, and releases of wanted tasks.

    A graph follows the last graph whose results were complete before it, if that was after the
    previous submission of the same client: the client waited for these results. Otherwise it
    follows the previous submission, or the number of results that a client awaits as they are
    completed. A wanted task is released by the first graph that was submitted after the client
    had released its key, if any.
    """
    depended = tasks["dependencies"].explode().unique()
    # The client waits for the keys that it wants; if these are not recorded, for tasks without
    # dependents.
    level = (
        pl.when(pl.col("key").is_in(wanted["key"].to_list())).then(2)
        .when(~pl.col("key").is_in(depended.to_list())).then(1)
        .otherwise(0)
    )  # fmt: skip
    is_awaited = level == level.max()
    graphs = (
        tasks.group_by(pl.col("stimulus_id").fill_null(""), maintain_order=True)
        .agg(
            "task",
            pl.col("t").min(),
            pl.col("client").first(),
            awaited=pl.col("task").filter(is_awaited),
            complete_t=pl.col("end_t").fill_null(math.inf).filter(is_awaited).max(),
        )
        .with_row_index("graph")
    )
    completed = graphs.sort("complete_t", "graph")
    complete_t = completed["complete_t"].to_list()
    submissions: dict[int, Submission] = {}
    previous: dict[str | None, tuple[int, float]] = {}
    in_order = graphs.sort("t", "graph")
    results_t = tasks.filter(is_awaited)["end_t"].drop_nulls().sort().to_list()
    is_streaming = not wanted.is_empty() and _is_streaming(in_order["t"].to_list(), results_t)
    for graph, t, client in in_order.select("graph", "t", "client").iter_rows():
        before, before_t = previous.get(client, (None, -math.inf))
        position = bisect_right(complete_t, t) - 1
        if position >= 0 and complete_t[position] > before_t:
            after = completed["awaited"][position].to_list()
            submissions[graph] = Submission(t - complete_t[position], after=tuple(after))
        elif before is not None and is_streaming:
            number = bisect_right(results_t, t)
            from_t = max(before_t, results_t[number - 1]) if number else before_t
            submissions[graph] = Submission(
                t - from_t, after_graph=before, after_results=number or None
            )
        elif before is not None:
            submissions[graph] = Submission(t - before_t, after_graph=before)
        else:
            submissions[graph] = Submission(max(t - run["start_t"], 0.0))
        previous[client] = graph, t
    order: list[int | None] = [*in_order["graph"], None]
    instants = in_order["t"].to_list()
    until = dict(wanted.select("key", "stop_t").iter_rows())
    by_task = graphs.select("graph", "task").explode("task").sort("task")
    return (
        by_task["graph"].cast(pl.Int64).to_numpy(),
        [submissions[graph] for graph in range(len(graphs))],
        {
            task: order[-1 if until[key] is None else bisect_right(instants, until[key])]
            for task, key in enumerate(tasks["key"])
            if key in until
        },
    )


def _is_streaming(graphs_t: list[float], results_t: list[float]) -> bool:
    """Return whether most graphs follow a result at once, as with ``as_completed``.

    The time from the latest result to a graph is compared with that between results: a client
    that submits graphs at other times does so anywhere between two results.
    """
    delays = [
        t - results_t[number - 1] for t in graphs_t if (number := bisect_right(results_t, t))
    ]
    if len(delays) < _MIN_STREAMED_GRAPHS or len(results_t) < 2:
        return False
    return bool(np.median(delays) < _MAX_STREAMING_SHARE * np.median(np.diff(results_t)))


def _steal_seconds(run: Mapping[str, Any], attempts: pl.DataFrame) -> float | None:
    """Return when a task was stolen, in seconds since the start of the run, None if never.

    It is the stolen task for which its thread had been idle for longest: it started at once.
    """
    stolen = (
        _on_threads(attempts)
        .filter("is_stolen", pl.col("turnaround") > 0)
        .sort("turnaround", descending=True)
    )
    return None if stolen.is_empty() else float(stolen["start_t"][0]) - run["start_t"]


def _on_threads(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the successful attempts by thread, with the end of the one before."""
    return (
        attempts.filter(pl.col("outcome") == "memory", pl.col("start_t").is_not_null())
        .sort("process", "thread", "start_t")
        .with_columns(previous=pl.col("stop_t").shift(1).over("process", "thread"))
        .with_columns(turnaround=pl.col("start_t") - pl.col("previous"))
    )


def _overhead(
    run: Mapping[str, Any],
    attempts: pl.DataFrame,
    tasks: pl.DataFrame,
    dependencies: list[list[int]],
) -> tuple[Overhead, Overhead]:
    """Return the mean and the median times of attempts outside of their computation."""
    steps = (
        _on_threads(attempts)
        .with_columns(
            dispatch=pl.coalesce("transfer_t", "start_t") - pl.col("processing_t"),
            report=pl.col("end_t") - pl.col("stop_t"),
            was_ready=(pl.col("processing_t") < pl.col("previous")).fill_null(value=False),
            is_first=pl.col("start_t") == pl.col("start_t").min().over("process"),
        )
        # A stolen task waited on another worker first.
        .filter(~pl.col("is_stolen"))
    )
    dispatches = steps.filter(~pl.col("was_ready") & ~pl.col("is_first")).select(
        "submission", "dispatch"
    )
    direct = dispatches["dispatch"].drop_nulls().to_list()
    if len(direct) < _MIN_DISPATCHES:
        # If all tasks queued on workers, the message to a worker is assumed to take as long as
        # that back.
        direct += steps["report"].drop_nulls().to_list()
    measured = {
        "dispatch": direct,
        "turnaround": steps.filter("was_ready")["turnaround"].drop_nulls().to_list(),
        "report": steps["report"].drop_nulls().to_list(),
        "first": steps.filter("is_first")["dispatch"].drop_nulls().to_list(),
    }
    # Tasks with large arguments are dispatched more slowly.
    by_prefix = (
        dispatches.drop_nulls()
        .join(tasks.select("prefix", submission="seq"), on="submission")
        .group_by("prefix")
        .agg("dispatch")
        .filter(pl.col("dispatch").list.len() >= _MIN_DISPATCHES)
    )
    latency, bandwidth = _transfer_costs(tasks, dependencies, _typical(np.median, direct))

    overheads = []
    for method in (np.mean, np.median):
        seconds = {name: _typical(method, values) for name, values in measured.items()}
        overheads.append(
            Overhead(
                dispatch_seconds=seconds["dispatch"],
                dispatch_by_prefix={
                    prefix: _typical(method, values) for prefix, values in by_prefix.iter_rows()
                },
                turnaround_seconds=seconds["turnaround"],
                report_seconds=seconds["report"],
                scheduler_seconds=run["scheduler_seconds"],
                transfer_latency_seconds=latency,
                transfer_bytes_per_second=bandwidth,
                first_dispatch_seconds=max(seconds["first"] - seconds["dispatch"], 0.0),
            )
        )
    return overheads[0], overheads[1]


def _typical(method: Callable[[list[float]], Any], values: list[float]) -> float:
    """Return the mean or median, at least 0 because the clocks of two machines can differ."""
    return max(float(method(values)), 0.0) if values else 0.0


def _transfer_costs(
    tasks: pl.DataFrame, dependencies: list[list[int]], dispatch_seconds: float
) -> tuple[float, float]:
    """Return the latency of transfers, and their bytes per second."""
    nbytes, process = tasks["nbytes"].to_list(), tasks["process"].to_list()
    transfers = tasks.select(
        "task", "transfer_seconds", delay=pl.col("transfer_t") - pl.col("processing_t")
    ).filter(pl.col("transfer_seconds") > 0)
    durations, delays, large = [], [], []
    for task, seconds, delay in transfers.iter_rows():
        # Transfers have no recorded size: it is that of the results from elsewhere.
        moved = [other for other in dependencies[task] if process[other] != process[task]]
        size = sum(nbytes[other] for other in moved)
        if 0 < size < _SMALL_BYTES:
            durations.append(seconds)
            if delay is not None:
                delays.append(delay)
        elif size > _LARGE_BYTES:
            large.append((size, seconds))
    duration = _typical(np.median, durations)
    bandwidth = DEFAULT_BYTES_PER_SECOND
    if large:
        bandwidth = sum(size for size, _ in large) / sum(
            max(seconds - duration, 1e-6) for _, seconds in large
        )
    # Beyond the dispatch, a worker connects to another one before its first transfer from it.
    connection = max(_typical(np.median, delays) - dispatch_seconds, 0.0)
    return duration + connection, bandwidth
