"""The plan of a recorded run, for its simulation.

What the simulation needs beside recorded facts is estimated here: the overheads, the warm-up of
workers, and which results the client waited for before it submitted a graph.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from roast_analyze.algorithms.simulation import (
    Overhead,
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

#: A warm-up is at least this long, also as a share of the median task of its prefix, and is
#: compared with this many later attempts.
_MIN_WARMUP_SHARE: Final = 0.2
_MIN_WARMUP_SECONDS: Final = 0.02
_MIN_WARM_ATTEMPTS: Final = 5


@dataclass(frozen=True)
class RecordedRun:
    """Frames of one trace; instants are in seconds since the epoch.

    Attributes
    ----------
    tasks : polars.DataFrame
        Submissions of keys in their order: seq, key, prefix, group, priority, dependencies,
        stimulus_id, client, t.
    attempts : polars.DataFrame
        In the order of their beginning: submission (seq of the task), worker, process, thread,
        outcome, processing_t, start_t and stop_t (on the thread), end_t, nbytes, events (of a
        coffea chunk), transfer_t and transfer_seconds (of its first transfer, and between its
        first and last).
    workers : polars.DataFrame
        process, name, address, host, nthreads, from_t, to_t, is_expected (its departure).
    wanted : polars.DataFrame
        key, stop_t: results that clients wanted, and until when, null if to the end.
    restrictions : polars.DataFrame
        key, workers: names, addresses or hosts.
    scheduler_seconds : float
        Time that the scheduler spends on a task.
    """

    start_t: float
    stop_t: float
    tasks: pl.DataFrame
    attempts: pl.DataFrame
    workers: pl.DataFrame
    wanted: pl.DataFrame
    restrictions: pl.DataFrame
    scheduler_seconds: float = 0.0
    saturation: float = 1.1
    stealing_seconds: float | None = 1.0


def plan_of_run(run: RecordedRun) -> Plan | None:
    """Return the plan of a run as it was recorded, None if no task ran."""
    final = _final_attempts(run.attempts)
    tasks = run.tasks.join(final, left_on="seq", right_on="submission", how="inner").sort("seq")
    if tasks.is_empty():
        return None
    warmup_by_prefix = _warmup_seconds(run.attempts)
    prefixes, prefix_names = _codes(tasks["prefix"])
    groups, _ = _codes(tasks["group"])
    warm = {
        code: warmup_by_prefix[name]
        for code, name in enumerate(prefix_names)
        if name in warmup_by_prefix
    }
    seconds = tasks["seconds"].to_numpy().copy()
    is_warming_up = tasks["is_warming_up"].to_numpy()
    for code, excess in warm.items():
        mask = (prefixes == code) & is_warming_up
        seconds[mask] = np.maximum(seconds[mask] - excess, 0.0)
    keys = tasks["key"].to_list()
    graphs, submissions = _submissions(run, tasks)
    index = {seq: number for number, seq in enumerate(tasks["seq"].to_list())}
    failed: dict[int, list[float]] = defaultdict(list)
    for row in _failed_attempts(run.attempts).iter_rows(named=True):
        if row["submission"] in index:
            failed[index[row["submission"]]].append(row["seconds"])
    dependencies = _dependencies(tasks)
    overhead, usual_overhead = _overhead(run, tasks, dependencies)
    allowed = dict(run.restrictions.select("key", "workers").iter_rows())
    last_end = float(tasks["end_t"].max() or run.stop_t)  # type: ignore[arg-type]
    return Plan(
        keys=keys,
        prefix_names=prefix_names,
        events=tasks["events"].fill_null(0).to_numpy().astype(float),
        seconds=seconds,
        nbytes=tasks["nbytes"].fill_null(0).to_numpy().astype(float),
        priorities=_ranks(tasks["priority"].to_list()),
        prefixes=prefixes,
        groups=groups,
        graphs=graphs,
        dependencies=dependencies,
        submissions=submissions,
        workers=_presence(run, last_end),
        placement=_placement(run, tasks),
        overhead=overhead,
        usual_overhead=usual_overhead,
        failed_seconds=dict(failed),
        restrictions={
            task: frozenset(allowed[key]) for task, key in enumerate(keys) if key in allowed
        },
        warmup_seconds=warm,
        wanted=_wanted_tasks(run, tasks, graphs),
        closing_seconds=max(run.stop_t - last_end, 0.0),
        saturation=run.saturation,
        stealing_seconds=run.stealing_seconds,
    )


def _codes(column: pl.Series) -> tuple[Any, list[str]]:
    """Return the number of each value, and the values."""
    values = column.fill_null("").cast(pl.String)
    names = values.unique(maintain_order=True)
    numbers = {name: number for number, name in enumerate(names.to_list())}
    return np.array(
        [numbers[name] for name in values.to_list()], dtype=np.int64
    ), names.to_list()


def _final_attempts(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the attempt of each task that decided its end: the first result, or last error."""
    seconds = (pl.col("stop_t") - pl.col("start_t")).clip(0.0)
    return (
        attempts.filter(pl.col("outcome").is_in(["memory", "erred"]))
        .filter(pl.col("submission").is_not_null())
        .with_columns(
            seconds=seconds.fill_null(0.0),
            is_warming_up=(pl.col("start_t") < _first_stop()).fill_null(value=False),
        )
        .sort(pl.col("outcome") != "memory", maintain_order=True)
        .unique("submission", keep="first", maintain_order=True)
        .select(
            "submission", "seconds", "nbytes", "process", "start_t", "stop_t", "end_t",
            "transfer_seconds", "events", "is_warming_up",
        )
    )  # fmt: skip


def _first_stop() -> pl.Expr:
    """Return the end of the first attempt of the same prefix on the same process."""
    return pl.col("stop_t").sort_by("start_t").first().over("process", "prefix")


def _failed_attempts(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts that failed and were repeated, and how long they held a thread."""
    # A failed attempt reports no phases to some versions of Dask. A task that is to run
    # elsewhere, as those of a shuffle, reports none, and raises at once.
    processing = pl.when(pl.col("outcome") == "retried").then(
        pl.col("end_t") - pl.col("processing_t")
    )
    held = pl.coalesce(pl.col("stop_t") - pl.col("start_t"), processing)
    return attempts.filter(
        pl.col("outcome").is_in(["retried", "rescheduled"]) & pl.col("submission").is_not_null()
    ).select("submission", seconds=held.clip(0.0).fill_null(0.0))


def _warmup_seconds(attempts: pl.DataFrame) -> dict[str, float]:
    """Return the additional time of the first task on a process, by prefix, if significant."""
    measured = (
        attempts.filter((pl.col("outcome") == "memory") & pl.col("start_t").is_not_null())
        .with_columns(is_first=pl.col("start_t") < _first_stop())
        .with_columns(
            seconds=pl.col("stop_t") - pl.col("start_t"),
            events=pl.col("events").cast(pl.Float64),
        )
    )
    warmups = {}
    for (prefix,), rows in measured.group_by("prefix"):
        later = rows.filter(~pl.col("is_first"))
        first = rows.filter("is_first").sort("start_t").unique("process", keep="first")
        if len(later) < _MIN_WARM_ATTEMPTS or prefix is None:
            continue
        usual = _usual_seconds(later)
        excess = (first["seconds"] - usual(first)).to_numpy()
        scatter = float(np.median(np.abs((later["seconds"] - usual(later)).to_numpy())))
        typical = float(later["seconds"].median() or 0.0)  # type: ignore[arg-type]
        warmup = float(np.median(excess))
        if warmup > max(_MIN_WARMUP_SECONDS, _MIN_WARMUP_SHARE * typical, 3 * scatter):
            warmups[str(prefix)] = warmup
    return warmups


def _usual_seconds(rows: pl.DataFrame) -> Any:
    """Return a function of a frame: the usual duration of its rows, by events if known."""
    median = rows["seconds"].median()
    if rows["events"].null_count() or (rows["events"] <= 0).any():
        return lambda frame: pl.repeat(median, len(frame), eager=True)
    events, seconds = rows["events"].to_numpy(), rows["seconds"].to_numpy()
    if events.max() < 1.5 * events.min():
        rate = float(np.median(seconds / events))
        return lambda frame: frame["events"].fill_null(0) * rate
    slope, intercept = np.polyfit(events, seconds, 1)
    return lambda frame: frame["events"].fill_null(0) * slope + intercept


def _ranks(priorities: Sequence[Sequence[float] | None]) -> Any:
    """Return the rank of each priority; tasks without one come last, in order of submission."""
    order = sorted(
        range(len(priorities)), key=lambda task: (*(priorities[task] or (math.inf,)), task)
    )
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _dependencies(tasks: pl.DataFrame) -> list[list[int]]:
    """Return the dependencies of each task; a key means its latest submission before."""
    latest: dict[str, int] = {}
    by_graph: dict[str, dict[str, int]] = defaultdict(dict)
    rows = list(tasks.select("key", "stimulus_id").iter_rows())
    for number, (key, stimulus) in enumerate(rows):
        by_graph[stimulus][key] = number
    result = []
    for number, (row, needed) in enumerate(
        zip(rows, tasks["dependencies"].to_list(), strict=True)
    ):
        own = by_graph[row[1]]
        found = [own.get(key, latest.get(key)) for key in needed or ()]
        result.append([other for other in found if other is not None and other != number])
        latest[row[0]] = number
    return result


def _wanted_tasks(run: RecordedRun, tasks: pl.DataFrame, graphs: Any) -> dict[int, int | None]:
    """Return the wanted tasks, and the first graph that was submitted after their release."""
    times = tasks.group_by(pl.Series("graph", graphs)).agg(pl.col("t").min()).sort("t")
    instants, order = times["t"].to_list(), times["graph"].to_list()
    released = dict(run.wanted.select("key", "stop_t").iter_rows())
    wanted: dict[int, int | None] = {}
    for task, key in enumerate(tasks["key"].to_list()):
        if key in released:
            stop_t = released[key]
            position = len(order) if stop_t is None else bisect_right(instants, stop_t)
            wanted[task] = order[position] if position < len(order) else None
    return wanted


def _submissions(run: RecordedRun, tasks: pl.DataFrame) -> tuple[Any, list[Submission]]:
    """Return the graph of each task, and when the client submitted each graph.

    A graph follows the graph whose results were complete last before it, if that was after
    the previous submission of the same client: the client waited for these results. Otherwise
    it follows the previous submission.
    """
    names = tasks["stimulus_id"].fill_null("").to_list()
    order = list(dict.fromkeys(names))
    numbers = {name: number for number, name in enumerate(order)}
    graphs = np.array([numbers[name] for name in names], dtype=np.int64)
    wanted_keys = set(run.wanted["key"].to_list())
    depended = {key for needed in tasks["dependencies"].to_list() for key in needed or ()}
    members: list[list[int]] = [[] for _ in order]
    final: list[list[int]] = [[] for _ in order]
    keys, ends = tasks["key"].to_list(), tasks["end_t"].to_list()
    for task, graph in enumerate(graphs.tolist()):
        members[graph].append(task)
        if keys[task] in wanted_keys:
            final[graph].append(task)
    times = tasks.group_by(pl.Series("graph", graphs)).agg(
        pl.col("t").min(), pl.col("client").first()
    )
    submitted = dict(zip(times["graph"], times["t"], strict=True))
    clients = dict(zip(times["graph"], times["client"], strict=True))
    # Without recorded wishes: what no task depends on.
    waited = [
        final[graph] or [t for t in members[graph] if keys[t] not in depended] or members[graph]
        for graph in range(len(order))
    ]
    completed = sorted(
        (max(ends[task] or math.inf for task in waited[graph]), graph)
        for graph in range(len(order))
    )
    instants = [t for t, _ in completed]
    submissions: list[Submission | None] = [None] * len(order)
    previous: dict[str | None, int] = {}
    for graph in sorted(range(len(order)), key=submitted.__getitem__):
        t, client = submitted[graph], clients[graph]
        before = previous.get(client)
        position = bisect_right(instants, t) - 1
        if position >= 0 and (before is None or completed[position][0] > submitted[before]):
            end, source = completed[position]
            submissions[graph] = Submission(t - end, after=tuple(waited[source]))
        elif before is not None:
            submissions[graph] = Submission(t - submitted[before], after_graph=before)
        else:
            submissions[graph] = Submission(max(t - run.start_t, 0.0))
        previous[client] = graph
    return graphs, [submission for submission in submissions if submission is not None]


def _presence(run: RecordedRun, last_end: float) -> list[Presence]:
    presence = []
    for row in run.workers.iter_rows(named=True):
        from_seconds, to_seconds = max(row["from_t"] - run.start_t, 0.0), math.inf
        # Nothing is left to do for those that leave after the last task.
        if row["to_t"] is not None and row["to_t"] < last_end:
            # The scheduler's clock may have been set back while the worker was there.
            to_seconds = max(row["to_t"] - run.start_t, from_seconds)
        presence.append(
            Presence(
                name=row["name"] or "",
                address=row["address"] or "",
                host=row["host"] or "",
                nthreads=row["nthreads"] or 1,
                from_seconds=from_seconds,
                to_seconds=to_seconds,
                is_lost=not row["is_expected"],
            )
        )
    return presence


def _placement(run: RecordedRun, tasks: pl.DataFrame) -> Any:
    """Return the index of the worker of each task."""
    numbers = {process: number for number, process in enumerate(run.workers["process"])}
    return np.array([numbers.get(process, -1) for process in tasks["process"]], dtype=np.int64)


def _overhead(
    run: RecordedRun, tasks: pl.DataFrame, dependencies: list[list[int]]
) -> tuple[Overhead, Overhead]:
    """Return the mean and the median times of attempts outside of their computation."""
    ran = run.attempts.filter(
        (pl.col("outcome") == "memory") & pl.col("start_t").is_not_null()
    ).sort("process", "thread", "start_t")
    steps = ran.with_columns(
        previous=pl.col("stop_t").shift(1).over("process", "thread")
    ).with_columns(
        turnaround=pl.col("start_t") - pl.col("previous"),
        dispatch=pl.coalesce("transfer_t", "start_t") - pl.col("processing_t"),
        report=pl.col("end_t") - pl.col("stop_t"),
        was_ready=(pl.col("processing_t") < pl.col("previous")).fill_null(value=False),
        is_first=pl.col("start_t") == pl.col("start_t").min().over("process"),
    )
    queued = steps.filter("was_ready")["turnaround"]
    direct = steps.filter(~pl.col("was_ready") & ~pl.col("is_first"))["dispatch"]
    first = steps.filter("is_first")["dispatch"]
    if len(direct) < _MIN_DISPATCHES:
        # All tasks queued on workers: the message there takes about as long as that back.
        direct = pl.concat([steps["report"], direct])
    latency, bandwidth = _transfers(tasks, dependencies)
    mean, median = (
        Overhead(
            dispatch_seconds=_average(direct, method),
            turnaround_seconds=_average(queued, method),
            report_seconds=_average(steps["report"], method),
            scheduler_seconds=run.scheduler_seconds,
            transfer_latency_seconds=latency,
            transfer_bytes_per_second=bandwidth,
            first_dispatch_seconds=max(_average(first, method) - _average(direct, method), 0.0),
        )
        for method in (pl.Series.mean, pl.Series.median)
    )
    return mean, median


def _average(seconds: pl.Series, method: Callable[[pl.Series], Any]) -> float:
    """Return a mean or median, at least 0: the clocks of two machines can differ."""
    return max(float(method(seconds) or 0.0), 0.0)


def _transfers(tasks: pl.DataFrame, dependencies: list[list[int]]) -> tuple[float, float]:
    """Return the latency and the bandwidth of transfers."""
    nbytes, process = tasks["nbytes"].to_list(), tasks["process"].to_list()
    fetched = []
    for task, seconds in enumerate(tasks["transfer_seconds"].to_list()):
        if seconds:
            moved = [d for d in dependencies[task] if process[d] != process[task]]
            fetched.append((sum(nbytes[other] or 0 for other in moved), seconds))
    small = [seconds for size, seconds in fetched if 0 < size < _SMALL_BYTES]
    latency = float(np.median(small)) if small else 0.0
    large = [(size, seconds) for size, seconds in fetched if size > _LARGE_BYTES]
    if not large:
        return latency, DEFAULT_BYTES_PER_SECOND
    total = sum(max(seconds - latency, 1e-6) for _, seconds in large)
    return latency, sum(size for size, _ in large) / total
