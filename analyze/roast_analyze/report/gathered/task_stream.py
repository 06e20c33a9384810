"""What the timeline is drawn from: queries in, one frozen dataclass out.

However long the run, what comes out is bounded. The longest computations stand for
themselves, each with its key; all others are put together by worker and stretch of time,
exactly: one that crosses several stretches is divided between them. The same holds for
transfers.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Most computations, transfers and failed attempts with a mark of their own.
MOST_BARS: Final = 5_000
MOST_TRANSFERS: Final = 1_500
MOST_MARKS: Final = 1_000
#: Most kinds (a prefix, and a dataset if it has one) that are told apart.
MOST_KINDS: Final = 60
#: Most workers that have a row.
MOST_ROWS: Final = 1_000
#: Most threads of a worker that are told apart: one that replaces its threads has ever more.
MOST_SLOTS: Final = 64
#: Most numbers of seconds by row, kind and stretch of time, and most stretches.
MOST_CELLS: Final = 80_000
MOST_STRETCHES: Final = 480

FAILED: Final = ("erred", "retried", "lost")
_FAILED_LIST: Final = ", ".join(f"'{outcome}'" for outcome in FAILED)

_TASKS: Final = (
    "SELECT key, attempt, prefix, {dataset} AS dataset, worker, thread, outcome, "
    "compute_start_t AS start_t, compute_stop_t AS stop_t, "
    "coalesce(compute_stop_t, end_t, processing_t) AS end_t FROM task_runs{join}"
)
#: A task of dask-awkward can read several chunks; its dataset is that of one of them.
_DATASETS: Final = (
    " LEFT JOIN (SELECT trace_id, key, attempt, min(dataset) AS dataset FROM chunks "
    "GROUP BY ALL) AS chunk USING (trace_id, key, attempt)"
)
#: Without a cluster there are no tasks: the attempts at chunks take their place.
_CHUNKS: Final = (
    "SELECT key, attempt, NULL::VARCHAR AS prefix, dataset, worker, thread, outcome, start_t, "
    "stop_t, coalesce(stop_t, end_t, processing_t) AS end_t FROM chunks"
)
_TRANSFERS: Final = (
    "SELECT worker, thread, start_t, stop_t FROM task_phases WHERE action = 'transfer'"
)
#: Threads to the lanes on which they are drawn.
_PLACES: Final = (
    "WITH place AS (SELECT unnest($workers::VARCHAR[]) AS worker, "
    "unnest($threads::BIGINT[]) AS thread, unnest($lanes::INT[]) AS lane), "
)
_AT_PLACE: Final = (
    "INNER JOIN place ON part.worker IS NOT DISTINCT FROM place.worker "
    "AND part.thread IS NOT DISTINCT FROM place.thread"
)
_ATTEMPTS_PLACED: Final = (
    _PLACES + "known AS (SELECT unnest($prefixes::VARCHAR[]) AS prefix, "
    "unnest($datasets::VARCHAR[]) AS dataset, unnest($kinds::INT[]) AS kind), "
    "placed AS (SELECT lane, coalesce(kind, $other)::INT AS kind, key, attempt, outcome, "
    "start_t, stop_t, end_t, stop_t - start_t AS seconds "
    f"FROM ({{attempts}}) AS part {_AT_PLACE} "
    "LEFT JOIN known ON part.prefix IS NOT DISTINCT FROM known.prefix "
    "AND part.dataset IS NOT DISTINCT FROM known.dataset) "
)
_TRANSFERS_PLACED: Final = (
    _PLACES + "placed AS (SELECT lane, 0 AS kind, start_t, stop_t, stop_t - start_t AS "
    f"seconds FROM ({_TRANSFERS}) AS part {_AT_PLACE}) "
)
#: What is not among the longest, divided between the stretches of time that it lies in.
_DIVIDED: Final = (
    "SELECT lane, kind, cell::INT AS cell, sum(greatest("
    "least(until, (cell + 1) * $width) - greatest(since, cell * $width), 0)) AS seconds "
    "FROM (SELECT *, unnest(range(floor(since / $width)::BIGINT, "
    "least(floor(until / $width)::BIGINT + 1, $stretches))) AS cell "
    "FROM (SELECT lane, kind, greatest(start_t - $begin_t, 0) AS since, "
    "least(stop_t - $begin_t, $span) AS until FROM placed "
    "WHERE (seconds, start_t) < ($least_seconds, $least_t))) "
    "GROUP BY ALL HAVING seconds > 0 ORDER BY lane, cell, kind"
)


@dataclass(frozen=True)
class TaskStream:
    """Who computed what and when.

    Parameters
    ----------
    workers : polars.DataFrame
        A row each worker that is drawn, in order: ``worker``, ``name``, ``lanes``: how many
        threads of it are told apart. Lanes are numbered through all workers.
    presence : polars.DataFrame
        Processes: ``row`` of their worker, ``added_t``, ``removed_t`` (null: not known) and
        ``lost``.
    kinds : polars.DataFrame
        ``kind``, ``prefix`` and ``dataset``, with ``runs`` and their ``seconds``; those that
        took the most time first. What is not listed has the number after the last one.
    bars : polars.DataFrame
        The longest computations: ``lane``, ``kind``, ``start_t``, ``stop_t``, ``outcome``,
        ``key``, ``attempt``; if there are chunks ``filename``, ``entry_start``,
        ``entry_stop``.
    cells : polars.DataFrame
        ``seconds`` of all other computations by ``lane``, ``kind`` and ``cell``, a stretch
        of time.
    transfers, transfer_cells : polars.DataFrame
        The same of transfers, which have no kind.
    marks : polars.DataFrame
        Failed attempts: ``lane``, ``kind``, ``t``, ``outcome``, ``key``, ``attempt``.
    begin_t : float
        Where the first stretch begins, seconds since the epoch.
    stretch_seconds : float
    runs, transfer_runs, failures : int
        Computations, transfers and failed attempts in all.
    hidden_rows, hidden_runs : int
        Workers without a row, and the computations on them.
    """

    workers: pl.DataFrame = field(default_factory=pl.DataFrame)
    presence: pl.DataFrame = field(default_factory=pl.DataFrame)
    kinds: pl.DataFrame = field(default_factory=pl.DataFrame)
    bars: pl.DataFrame = field(default_factory=pl.DataFrame)
    cells: pl.DataFrame = field(default_factory=pl.DataFrame)
    transfers: pl.DataFrame = field(default_factory=pl.DataFrame)
    transfer_cells: pl.DataFrame = field(default_factory=pl.DataFrame)
    marks: pl.DataFrame = field(default_factory=pl.DataFrame)
    begin_t: float = 0.0
    stretch_seconds: float = 1.0
    runs: int = 0
    transfer_runs: int = 0
    failures: int = 0
    hidden_rows: int = 0
    hidden_runs: int = 0


def gather(
    trace: Session,
    everyone: pl.DataFrame,
    *,
    of_tasks: bool,
    with_chunks: bool,
    begin_t: float,
    end_t: float,
    most_bars: int = MOST_BARS,
    most_cells: int = MOST_CELLS,
    most_rows: int = MOST_ROWS,
) -> TaskStream:
    """Ask a trace who computed what and when.

    Parameters
    ----------
    trace : Session
    everyone : polars.DataFrame
        All workers in order, with ``lost``: see :func:`.workers.everyone`.
    of_tasks : bool
        Whether there are tasks; else the attempts at chunks are taken.
    with_chunks : bool
        Whether there are chunks, from which tasks have their datasets.
    begin_t, end_t : float
        Ends of the recording, seconds since the epoch.
    most_bars, most_cells, most_rows : int
        See :data:`MOST_BARS` and the others.
    """
    attempts = _CHUNKS
    if of_tasks:
        dataset, join = ("dataset", _DATASETS) if with_chunks else ("NULL::VARCHAR", "")
        attempts = _TASKS.format(dataset=dataset, join=join)
    threads = trace.sql(
        "SELECT worker, thread, sum(stop_t - start_t) AS busy, "
        "count(stop_t - start_t) AS runs, min(start_t) AS first_t, "
        f"bool_or(outcome IN ({_FAILED_LIST})) AS failed "
        f"FROM ({attempts}) GROUP BY worker, thread"
    ).pl()
    processes = everyone.select(
        "worker", "name", "added_t", "removed_t", "lost"
    ).with_row_index("place")
    workers = _workers(threads, processes)
    shown = _chosen(workers, most_rows)
    places, lanes = _placed(threads, shown)
    kinds = _kinds(trace, attempts)
    span_seconds = max(end_t - begin_t, 1e-6)
    stretches = min(max(2 * most_cells // max(sum(lanes), 1), 60), MOST_STRETCHES)
    known = {
        "workers": places["worker"].to_list(),
        "threads": places["thread"].to_list(),
        "lanes": places["lane"].to_list(),
        "prefixes": kinds["prefix"].to_list(),
        "datasets": kinds["dataset"].to_list(),
        "kinds": kinds["kind"].to_list(),
        "other": kinds.height,
        "begin_t": begin_t,
        "span": span_seconds,
        "width": span_seconds / stretches,
        "stretches": stretches,
    }
    placed = _ATTEMPTS_PLACED.format(attempts=attempts)
    bars, runs = _longest(trace, placed, known, most_bars, ", kind, key, attempt, outcome")
    cells = _rest(trace, placed, known, bars, runs)
    transfers, transfer_runs = bars.head(0), 0
    if of_tasks:
        transfers, transfer_runs = _longest(trace, _TRANSFERS_PLACED, known, MOST_TRANSFERS)
    transfer_cells = _rest(trace, _TRANSFERS_PLACED, known, transfers, transfer_runs)
    cells, transfer_cells, times = _bounded(cells, transfer_cells, most_cells)
    marks, failures = _marks(trace, placed, known)
    in_all = int(threads["runs"].sum())
    return TaskStream(
        workers=shown.select("worker", "name", lanes=pl.Series(lanes, dtype=pl.Int64)),
        presence=processes.join(shown.select("worker", "row"), on="worker", nulls_equal=True),
        kinds=kinds,
        bars=_with_files(trace, bars) if with_chunks else bars,
        cells=cells,
        transfers=transfers,
        transfer_cells=transfer_cells,
        marks=marks,
        begin_t=begin_t,
        stretch_seconds=times * span_seconds / stretches,
        runs=in_all,
        transfer_runs=transfer_runs,
        failures=failures,
        hidden_rows=workers.height - shown.height,
        hidden_runs=in_all - int(places["runs"].sum()),
    )


def _workers(threads: pl.DataFrame, processes: pl.DataFrame) -> pl.DataFrame:
    """List what has a row, in order: a worker each, whichever processes had its address."""
    active = threads.group_by("worker").agg(
        pl.col("busy").sum(), pl.col("failed").any(), pl.col("first_t").min()
    )
    known = processes.group_by("worker").agg(
        pl.col("name").last(), pl.col("lost").any(), pl.col("place").min()
    )
    return (
        known.join(active, on="worker", how="full", coalesce=True, nulls_equal=True)
        .with_columns(
            failed=pl.col("failed").fill_null(value=False)
            | pl.col("lost").fill_null(value=False)
        )
        .sort("place", "first_t", "worker", nulls_last=True)
    )


def _chosen(workers: pl.DataFrame, most_rows: int) -> pl.DataFrame:
    """Take those where something failed, then the busiest, and number them in order."""
    ranked = workers.with_row_index("order").sort(
        "failed", "busy", descending=True, nulls_last=True, maintain_order=True
    )
    return (
        ranked.head(most_rows)
        .sort("order")
        .select("worker", "name", row=pl.int_range(pl.len(), dtype=pl.Int32))
    )


def _placed(threads: pl.DataFrame, shown: pl.DataFrame) -> tuple[pl.DataFrame, list[int]]:
    """Give every thread a lane; gives also how many lanes each worker has.

    What has no thread, such as what was lost with its worker, is on the first lane.
    """
    slots = (
        threads.join(shown.select("worker", "row"), on="worker", nulls_equal=True)
        .sort("row", "first_t", "thread", nulls_last=True)
        .with_columns(
            slot=pl.when(pl.col("thread").is_null())
            .then(0)
            .otherwise((pl.col("thread").is_not_null().cum_sum().over("row") - 1) % MOST_SLOTS)
        )
    )
    used = dict(slots.group_by("row").agg(pl.col("slot").max() + 1).iter_rows())
    lanes = [used.get(row, 1) for row in shown["row"]]
    first = pl.DataFrame(
        {"row": shown["row"], "first": [0, *accumulate(lanes)][: len(lanes)]},
        schema={"row": pl.Int32, "first": pl.Int64},
    )
    return slots.join(first, on="row").with_columns(
        lane=pl.col("first") + pl.col("slot")
    ), lanes


def _kinds(trace: Session, attempts: str) -> pl.DataFrame:
    kinds: pl.DataFrame = trace.sql(
        "SELECT prefix, dataset, count(*) AS runs, sum(stop_t - start_t) AS seconds, "
        "(row_number() OVER (ORDER BY sum(stop_t - start_t) DESC "
        "NULLS LAST, prefix, dataset) - 1)::INT AS kind "
        f"FROM ({attempts}) GROUP BY prefix, dataset ORDER BY kind LIMIT {MOST_KINDS}"
    ).pl()
    return kinds


def _longest(
    trace: Session, placed: str, known: dict[str, Any], most: int, columns: str = ""
) -> tuple[pl.DataFrame, int]:
    """Take the longest of what has a place, and count all that has one."""
    found = _asked(
        trace,
        f"{placed} SELECT lane, start_t, stop_t, seconds{columns}, "
        "count(*) OVER () AS runs FROM placed WHERE seconds IS NOT NULL "
        f"ORDER BY seconds DESC, start_t DESC LIMIT {most}",
        known,
    )
    return found.drop("runs"), int(found["runs"][0]) if found.height else 0


def _rest(
    trace: Session, placed: str, known: dict[str, Any], longest: pl.DataFrame, runs: int
) -> pl.DataFrame:
    """Put together by lane, kind and stretch of time what is not among the longest."""
    if runs <= longest.height:
        names = ("lane", "kind", "cell")
        return pl.DataFrame(schema={**dict.fromkeys(names, pl.Int32), "seconds": pl.Float64})
    least_seconds, least_t = longest.select("seconds", "start_t").row(-1)
    bounds = {"least_seconds": least_seconds, "least_t": least_t}
    return _asked(trace, placed + _DIVIDED, known | bounds)


def _bounded(
    cells: pl.DataFrame, transfer_cells: pl.DataFrame, most_cells: int
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Put so many stretches together that there are not too many numbers."""
    times = 1
    coarser = cells, transfer_cells
    while (most := max(map(len, coarser))) > most_cells:
        times = max(times + 1, times * most // most_cells)
        coarser = _coarser(cells, times), _coarser(transfer_cells, times)
    return *coarser, times


def _coarser(cells: pl.DataFrame, times: int) -> pl.DataFrame:
    """Put neighbouring stretches together, so many each time."""
    return (
        cells.group_by("lane", pl.col("cell") // times, "kind")
        .agg(pl.col("seconds").sum())
        .sort("lane", "cell", "kind")
    )


def _marks(trace: Session, placed: str, known: dict[str, Any]) -> tuple[pl.DataFrame, int]:
    """Take the failed attempts, the first of each way to fail, and count them all."""
    found = _asked(
        trace,
        f"{placed} SELECT lane, kind, end_t AS t, outcome, key, attempt, "
        f"count(*) OVER () AS failures FROM placed WHERE outcome IN ({_FAILED_LIST}) "
        "ORDER BY row_number() OVER (PARTITION BY outcome ORDER BY end_t), outcome "
        f"LIMIT {MOST_MARKS}",
        known,
    )
    return found.drop("failures"), int(found["failures"][0]) if found.height else 0


def _with_files(trace: Session, bars: pl.DataFrame) -> pl.DataFrame:
    """Say of each computation which part of which file it was."""
    files = trace.sql(
        "SELECT key, attempt, any_value(filename) AS filename, "
        "min(entry_start) AS entry_start, max(entry_stop) AS entry_stop, count(*) AS chunks "
        "FROM chunks SEMI JOIN (SELECT unnest($keys::VARCHAR[]) AS key) USING (key) "
        "GROUP BY key, attempt",
        {"keys": bars["key"].to_list()},
    ).pl()
    return bars.join(files, on=["key", "attempt"], how="left", maintain_order="left")


def _asked(trace: Session, query: str, known: dict[str, Any]) -> pl.DataFrame:
    used = {name: value for name, value in known.items() if f"${name}" in query}
    answer: pl.DataFrame = trace.sql(query, used).pl()
    return answer
