"""The computations, transfers and failures of a run by thread, for the timeline.

The result is bounded, however long the run. The longest computations are returned one by
one, with their keys; all others are added up by thread and bucket, exactly: one that crosses
several buckets is divided between them. The same holds for transfers.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.algorithms.outcomes import FAILED
from roast_analyze.report import quantities as q

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of computations, transfers and failed attempts that are returned one by one.
MOST_BARS: Final = 5_000
MOST_TRANSFERS: Final = 1_500
MOST_MARKS: Final = 1_000
#: Maximum number of pairs of prefix and dataset that are kinds of their own, and of prefixes
#: whose other datasets are one kind.
MOST_KINDS: Final = 60
#: Maximum number of workers.
MOST_ROWS: Final = 1_000
#: Maximum number of lanes of a worker: if its threads are replaced, their number keeps growing.
MOST_SLOTS: Final = 64
#: Maximum number of sums of seconds by lane, kind and bucket, and of buckets.
MOST_CELLS: Final = 80_000
MOST_BUCKETS: Final = 480

_FAILED_LIST: Final = ", ".join(f"'{outcome}'" for outcome in FAILED)

_TASKS: Final = (
    "SELECT key, attempt, prefix, {dataset} AS dataset, worker, thread, outcome, "
    "compute_start_t AS start_t, compute_stop_t AS stop_t, "
    "coalesce(compute_stop_t, end_t, processing_t) AS end_t FROM _task_runs{join}"
)
#: A task of dask-awkward can read several chunks: its dataset is that of one of them.
_DATASETS: Final = (
    " LEFT JOIN (SELECT seq, min(dataset) AS dataset FROM _chunks GROUP BY seq) AS chunk "
    "USING (seq)"
)
#: Without a cluster there are no tasks: chunk attempts replace them.
_CHUNKS: Final = (
    "SELECT key, attempt, NULL::VARCHAR AS prefix, dataset, worker, thread, outcome, start_t, "
    "stop_t, coalesce(stop_t, end_t, processing_t) AS end_t FROM _chunks"
)
#: Attempts by thread, and by prefix and dataset.
_TOTALS: Final = (
    "SELECT worker, thread, prefix, dataset, grouping(worker) = 0 AS of_thread, "
    "count(*) AS attempts, count(stop_t - start_t) AS runs, sum(stop_t - start_t) AS seconds, "
    f"min(start_t) AS first_t, bool_or(outcome IN ({_FAILED_LIST})) AS failed "
    "FROM ({attempts}) GROUP BY GROUPING SETS ((worker, thread), (prefix, dataset))"
)
#: File and entries of computations.
_FILES: Final = (
    "SELECT key, attempt, any_value(filename) AS filename, min(entry_start) AS entry_start, "
    "max(entry_stop) AS entry_stop "
    "FROM _chunks SEMI JOIN (SELECT unnest($keys::VARCHAR[]) AS key) USING (key) "
    "GROUP BY key, attempt"
)
_TRANSFERS: Final = (
    "SELECT worker, thread, phase.start_t, phase.stop_t "
    "FROM _task_runs INNER JOIN _task_phases AS phase USING (end_seq) "
    "WHERE phase.action = 'transfer'"
)
#: Threads and their lanes.
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
#: All but the longest, divided between the buckets that they overlap with.
_DIVIDED: Final = (
    "SELECT lane, kind, cell::INT AS cell, sum(greatest("
    "least(until, (cell + 1) * $width) - greatest(since, cell * $width), 0)) AS seconds "
    "FROM (SELECT *, unnest(range(floor(since / $width)::BIGINT, "
    "least(floor(until / $width)::BIGINT + 1, $buckets))) AS cell "
    "FROM (SELECT lane, kind, greatest(start_t - $begin_t, 0) AS since, "
    "least(stop_t - $begin_t, $span) AS until FROM placed "
    "WHERE (seconds, start_t) <= ($most_seconds, $most_t))) "
    "GROUP BY ALL HAVING seconds > 0 ORDER BY lane, cell, kind"
)


@dataclass(frozen=True)
class TaskStream:
    """Computations, transfers and failed attempts of a run."""

    #: The workers that are drawn, in order: worker, name, and lanes, the number of its lanes.
    #: Lanes are numbered across all workers.
    workers: pl.DataFrame
    #: Worker processes: row of their worker, added_t, removed_t (null: unknown) and lost.
    presence: pl.DataFrame
    #: kind, prefix and dataset, with attempts and their seconds; the most time first. If there
    #: are too many pairs, other datasets of a prefix are one kind (of_dataset is false), and
    #: all attempts of other prefixes are the last kind (of_prefix is false too).
    kinds: pl.DataFrame
    #: The longest computations: lane, kind, start_t, stop_t, outcome, key, attempt; with
    #: chunks also filename, entry_start, entry_stop.
    bars: pl.DataFrame
    #: seconds of all other computations by lane, kind and cell, the number of a bucket.
    cells: pl.DataFrame
    #: The same for transfers, which have no kind.
    transfers: pl.DataFrame
    transfer_cells: pl.DataFrame
    #: Failed attempts: lane, kind, t, outcome, key, attempt; with chunks also those of files.
    marks: pl.DataFrame
    #: Start of the first bucket, seconds since the epoch.
    begin_t: float
    bucket_seconds: float
    #: Number of all computations, transfers and failed attempts.
    runs: int
    transfer_runs: int
    failures: int
    #: Workers that are not drawn, and their computations.
    hidden_rows: int
    hidden_runs: int


def query(
    trace: Session,
    context: Context,
    *,
    most_bars: int = MOST_BARS,
    most_cells: int = MOST_CELLS,
    most_rows: int = MOST_ROWS,
) -> TaskStream:
    """Query the computations, transfers and failed attempts of a run."""
    run, begin_t = context.run, context.start_t
    of_tasks, with_chunks = run.task_runs > 0, run.chunk_attempts > 0
    attempts = _CHUNKS
    if of_tasks:
        dataset, join = ("dataset", _DATASETS) if with_chunks else ("NULL::VARCHAR", "")
        attempts = _TASKS.format(dataset=dataset, join=join)
    totals = trace.sql(_TOTALS.format(attempts=attempts)).pl()
    threads = totals.filter("of_thread")
    processes = context.workers.select(
        "worker", "name", "added_t", "removed_t", "lost"
    ).with_row_index("place")
    workers, hidden_rows = _chosen(threads, processes, most_rows)
    workers, places = _placed(threads, workers)
    kinds, pairs = _kinds(totals.filter(~pl.col("of_thread")))
    span_seconds = max((run.stop_t or 0.0) - begin_t, 1e-6)
    buckets = min(max(2 * most_cells // max(int(workers["lanes"].sum()), 1), 60), MOST_BUCKETS)
    parameters = {
        "workers": places["worker"].to_list(),
        "threads": places["thread"].to_list(),
        "lanes": places["lane"].to_list(),
        "prefixes": pairs["prefix"].to_list(),
        "datasets": pairs["dataset"].to_list(),
        "kinds": pairs["kind"].to_list(),
        "other": kinds.height - 1,
        "begin_t": begin_t,
        "span": span_seconds,
        "width": span_seconds / buckets,
        "buckets": buckets,
    }
    placed = _ATTEMPTS_PLACED.format(attempts=attempts)
    bars, cells, _ = _split(
        trace, placed, parameters, most_bars, ", kind, key, attempt, outcome"
    )
    # Without tasks there are no transfers, and none are found.
    transfers, transfer_cells, transfer_runs = _split(
        trace, _TRANSFERS_PLACED, parameters, MOST_TRANSFERS
    )
    cells, transfer_cells, times = _bounded(cells, transfer_cells, most_cells)
    # The first failures of each outcome.
    marks, failures = _limited(
        trace,
        f"{placed} SELECT lane, kind, end_t AS t, outcome, key, attempt, "
        f"count(*) OVER () AS total FROM placed WHERE outcome IN ({_FAILED_LIST}) "
        "ORDER BY row_number() OVER (PARTITION BY outcome ORDER BY end_t), outcome "
        f"LIMIT {MOST_MARKS}",
        parameters,
    )
    if with_chunks:
        keys = [*bars["key"], *marks["key"]]
        files = trace.sql(_FILES, {"keys": keys}).pl()
        bars, marks = (
            some.join(files, on=["key", "attempt"], how="left", maintain_order="left")
            for some in (bars, marks)
        )
    runs = int(threads["runs"].sum())
    return TaskStream(
        workers=workers.select("worker", "name", "lanes"),
        presence=processes.join(workers.select("worker", "row"), on="worker", nulls_equal=True),
        kinds=kinds,
        bars=bars,
        cells=cells,
        transfers=transfers,
        transfer_cells=transfer_cells,
        marks=marks,
        begin_t=begin_t,
        bucket_seconds=times * span_seconds / buckets,
        runs=runs,
        transfer_runs=transfer_runs,
        failures=failures,
        hidden_rows=hidden_rows,
        hidden_runs=runs - int(places["runs"].sum()),
    )


def describe_omissions(stream: TaskStream, *, with_transfers: bool) -> str:
    """State what is added up or left out in a drawing of a stream; empty if nothing is."""
    parts = []
    single = stream.bars.height
    if stream.runs - stream.hidden_runs > single:
        parts.append(
            f"The {q.count(single)} longest of {q.counted(stream.runs, 'computation')} have "
            f"their own bars; the others are added up in buckets of "
            f"{q.seconds(stream.bucket_seconds)}, drawn as high as their share of the bucket."
        )
    if with_transfers and stream.transfer_runs > stream.transfers.height:
        parts.append(
            f"The {q.count(stream.transfers.height)} longest of "
            f"{q.counted(stream.transfer_runs, 'transfer')} are drawn individually, the "
            f"others in buckets of {q.seconds(stream.bucket_seconds)}."
        )
    if stream.hidden_rows:
        parts.append(
            f"Left out: {q.counted(stream.hidden_rows, 'worker')} with "
            f"{q.counted(stream.hidden_runs, 'computation')}. Workers with failures are shown "
            "first, then the busiest."
        )
    if stream.failures > stream.marks.height:
        more = stream.failures - stream.marks.height
        attempts = q.counted(more, "more failed attempt is", "more failed attempts are")
        parts.append(f"{attempts} not marked.")
    return " ".join(parts)


def _kinds(pairs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the kinds, and the pairs of prefix and dataset that are not of the last one."""
    ranked = pairs.sort(
        "seconds", "prefix", "dataset", descending=[True, False, False], nulls_last=True
    ).with_row_index("place")
    rank_of_prefix = pl.col("place").min().over("prefix").rank("dense")
    numbered = ranked.with_columns(
        of_prefix=rank_of_prefix <= MOST_KINDS, of_dataset=pl.col("place") < MOST_KINDS
    ).with_columns(
        kind=pl.when("of_dataset")
        .then("place")
        .when("of_prefix")
        .then(MOST_KINDS + rank_of_prefix)
        .otherwise(2 * MOST_KINDS + 1)
        .rank("dense")
        .cast(pl.Int32)
        - 1
    )
    kinds = (
        numbered.group_by("kind", "of_prefix", "of_dataset")
        .agg(
            pl.when("of_prefix").then("prefix").first(),
            pl.when("of_dataset").then("dataset").first(),
            pl.col("attempts", "seconds").sum(),
        )
        .sort("kind")
    )
    return kinds, numbered.filter("of_prefix")


def _chosen(
    threads: pl.DataFrame, processes: pl.DataFrame, most: int
) -> tuple[pl.DataFrame, int]:
    """Return the workers with failures, then the busiest, in order; and count the others.

    Processes that had the same address are one worker.
    """
    active = threads.group_by("worker").agg(
        pl.col("seconds").sum(), pl.col("failed").any(), pl.col("first_t").min()
    )
    known = processes.group_by("worker").agg(
        pl.col("name").last(), pl.col("lost").any(), pl.col("place").min()
    )
    workers = known.join(active, on="worker", how="full", coalesce=True, nulls_equal=True)
    has_failed = pl.col("failed").fill_null(value=False) | pl.col("lost").fill_null(value=False)
    chosen = (
        workers.sort("place", "first_t", "worker", nulls_last=True)
        .with_row_index("order")
        .sort(has_failed, "seconds", descending=True, nulls_last=True, maintain_order=True)
        .head(most)
        .sort("order")
        .select("worker", "name", row=pl.int_range(pl.len(), dtype=pl.Int32))
    )
    return chosen, workers.height - chosen.height


def _placed(threads: pl.DataFrame, workers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the workers with their number of ``lanes``, and each thread with its ``lane``."""
    has_thread = pl.col("thread").is_not_null()
    slots = (
        threads.join(workers.select("worker", "row"), on="worker", nulls_equal=True)
        .sort("row", "first_t", "thread", nulls_last=True)
        .with_columns(
            # Attempts without a thread, such as those lost with their worker, are on the
            # first lane.
            slot=pl.when(has_thread)
            .then((has_thread.cum_sum().over("row") - 1) % MOST_SLOTS)
            .otherwise(0)
            .cast(pl.Int64)
        )
    )
    used = slots.group_by("row").agg(lanes=pl.col("slot").max() + 1)
    workers = (
        workers.join(used, on="row", how="left", maintain_order="left")
        .with_columns(pl.col("lanes").fill_null(1))
        .with_columns(first=pl.col("lanes").cum_sum() - pl.col("lanes"))
    )
    places = slots.join(workers.select("row", "first"), on="row")
    return workers, places.with_columns(lane=pl.col("first") + pl.col("slot"))


def _split(
    trace: Session, placed: str, parameters: dict[str, Any], most: int, columns: str = ""
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return the longest rows of ``placed``, the sums of all others, and count all rows."""
    longest, runs = _limited(
        trace,
        f"{placed} SELECT lane, start_t, stop_t, seconds{columns}, "
        "count(*) OVER () AS total FROM placed WHERE seconds IS NOT NULL "
        f"ORDER BY seconds DESC, start_t DESC LIMIT {most + 1}",
        parameters,
    )
    if runs <= most:
        names = ("lane", "kind", "cell")
        nothing = {**dict.fromkeys(names, pl.Int32), "seconds": pl.Float64}
        return longest, pl.DataFrame(schema=nothing), runs
    # The first of the others, with those that are as long and began at the same time.
    seconds, start_t = longest.select("seconds", "start_t").row(-1)
    longest = longest.filter((pl.col("seconds") > seconds) | (pl.col("start_t") > start_t))
    bounds = {"most_seconds": seconds, "most_t": start_t}
    return longest, _query(trace, placed + _DIVIDED, parameters | bounds), runs


def _bounded(
    cells: pl.DataFrame, transfer_cells: pl.DataFrame, most_cells: int
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Merge buckets until there are few enough sums."""
    times = 1
    coarser = [cells, transfer_cells]
    while (most := max(map(len, coarser))) > most_cells:
        times = max(times + 1, times * most // most_cells)
        coarser = [
            some.group_by("lane", pl.col("cell") // times, "kind")
            .agg(pl.col("seconds").sum())
            .sort("lane", "cell", "kind")
            for some in (cells, transfer_cells)
        ]
    return coarser[0], coarser[1], times


def _limited(trace: Session, text: str, parameters: dict[str, Any]) -> tuple[pl.DataFrame, int]:
    """Return the rows of a query with a limit, and the ``total`` without it."""
    found = _query(trace, text, parameters)
    return found.drop("total"), int(found["total"][0]) if found.height else 0


def _query(trace: Session, text: str, parameters: dict[str, Any]) -> pl.DataFrame:
    used = {name: value for name, value in parameters.items() if f"${name}" in text}
    frame: pl.DataFrame = trace.sql(text, used).pl()
    return frame
