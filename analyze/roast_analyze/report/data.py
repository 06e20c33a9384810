"""What the report knows of a run: queries in, frozen dataclasses out.

The only module of the report that speaks to a :class:`~roast_analyze.trace.Trace`. Every
view is asked once; lists are cut in SQL, so that what is gathered for tables stays small
however long the run. The frames of task runs and chunks hold a few columns of all rows:
the figures choose from them.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from roast_analyze.trace import Trace

#: Most rows of the table of chunks, the slowest and the failed.
CHUNK_ROWS: Final = 500
#: Most rows of the tables of datasets, files, workers and prefixes.
GROUP_ROWS: Final = 300
#: Most rows of the tables of branches and of named parts of chunks.
PART_ROWS: Final = 100
#: Branches that are named.
TOP_BRANCHES: Final = 3
#: Most slow files and slow workers that are named.
SLOW_ROWS: Final = 5
#: Most failures listed, and most characters of a traceback that are kept (its end).
FAILURE_ROWS: Final = 150
TRACEBACK_CHARACTERS: Final = 2000
#: Most events listed.
EVENT_ROWS: Final = 200
#: Most characters of a payload or a recorded fact that are kept.
VALUE_CHARACTERS: Final = 240
#: Most rows of the tables of facts, topics and losses.
FACT_ROWS: Final = 500
#: Most rows of the table of functions.
FUNCTION_ROWS: Final = 200
#: Most rows of the map of how busy workers were; with more workers some share one.
BUSY_ROWS: Final = 40
#: Most stretches into which the samples are put by time, and most of them times the
#: workers and prefixes that have any: a run with many of these is cut into fewer.
PROFILE_BINS: Final = 60
PROFILE_CELLS: Final = 30_000

_RUN_COLUMNS: Final = (
    "key, prefix, attempt, worker, thread, outcome, processing_t, end_t, "
    "compute_start_t, compute_stop_t, compute_seconds"
)
#: The same of chunks, for a run without tasks; a dataset takes the place of a prefix.
_CHUNK_RUN_COLUMNS: Final = (
    "key, dataset AS prefix, attempt, worker, thread, outcome, processing_t, end_t, "
    "start_t AS compute_start_t, stop_t AS compute_stop_t, compute_seconds"
)
#: The workers' own samples; those of the scheduler if it is all that there is.
_FUNCTIONS: Final = (
    "WITH sampled AS (SELECT stack, seconds, samples + undecided_samples AS samples "
    "FROM profile_stacks WHERE samples + undecided_samples > 0 AND (worker IS NULL) = "
    "(NOT EXISTS (FROM profile_stacks WHERE worker IS NOT NULL))), "
    "seen AS (SELECT unnest(list_distinct(stack)) AS function, stack[-1] AS innermost, "
    "seconds, samples FROM sampled) "
    "SELECT function, coalesce(sum(seconds) FILTER (function = innermost), 0) AS self_seconds, "
    "sum(seconds) AS total_seconds, "
    "self_seconds / (SELECT sum(seconds) FROM sampled) AS self_share, "
    "total_seconds / (SELECT sum(seconds) FROM sampled) AS total_share, "
    "sum(samples)::BIGINT AS samples FROM seen GROUP BY function"
)
#: The view `utilisation` by rows of the map, in the order in which workers are listed.
_BUSY: Final = (
    "WITH placed AS (SELECT worker, name, server_id, trace_id, count(*) OVER () AS processes, "
    "row_number() OVER (ORDER BY try_cast(name AS BIGINT) NULLS LAST, added_t, worker) - 1 "
    "AS place FROM workers), "
    f"rowed AS (SELECT *, place * least(processes, {BUSY_ROWS}) // processes AS row "
    "FROM placed), "
    "named AS (SELECT row, arg_min(worker, place) AS worker, arg_min(name, place) AS name, "
    "count(*) AS workers FROM rowed GROUP BY row) "
    "SELECT row, named.worker, named.name, named.workers, "
    "round((utilisation.t - $begin_t) / $width)::BIGINT AS stretch, "
    "sum(compute_seconds) / nullif(sum(thread_seconds), 0) AS share "
    "FROM utilisation INNER JOIN rowed "
    "ON utilisation.trace_id = rowed.trace_id AND utilisation.worker = rowed.worker "
    "AND utilisation.server_id IS NOT DISTINCT FROM rowed.server_id "
    "INNER JOIN named USING (row) GROUP BY ALL HAVING share IS NOT NULL ORDER BY row, stretch"
)
_CHUNK_COLUMNS: Final = (
    "dataset, filename, entry_start, entry_stop, events, attempt, worker, outcome, "
    "processing_t, compute_seconds, events_per_second"
)


@dataclass(frozen=True)
class Run:
    """The headline of a run: the columns of view ``run``. None is not known."""

    start_t: float | None = None
    stop_t: float | None = None
    wall_seconds: float | None = None
    busy_seconds: float | None = None
    workers: int = 0
    peak_workers: int = 0
    peak_nthreads: int = 0
    core_seconds: float | None = None
    compute_seconds: float | None = None
    core_efficiency: float | None = None
    tasks: int = 0
    task_runs: int = 0
    memory: int = 0
    erred: int = 0
    retried: int = 0
    lost: int = 0
    rescheduled: int = 0
    cancelled: int = 0
    unfinished: int = 0
    failures: int = 0
    chunks: int = 0
    chunk_attempts: int = 0
    events: int | None = None
    events_per_second: float | None = None
    chunk_wall_seconds: float | None = None
    bytes_read: int | None = None
    output_bytes: int | None = None
    transfer_seconds: float | None = None
    peak_memory_bytes: int | None = None
    lost_records: int = 0
    failed_chunks: int = 0
    skipped: int = 0
    checkpointed_chunks: int = 0
    chunk_seconds: float | None = None
    merge_seconds: float | None = None
    process_seconds: float | None = None
    open_seconds: float | None = None
    read_seconds: float | None = None
    cpu_seconds: float | None = None
    wait_seconds: float | None = None


@dataclass(frozen=True)
class Recording:
    """How the trace was made: what the report says of view ``trace_info``."""

    trace_id: str = ""
    segments: int = 0
    records: int = 0
    clean_end: bool = False
    schema_version: str | None = None
    recorder_version: str | None = None
    dask_version: str | None = None
    distributed_version: str | None = None
    python_version: str | None = None
    scheduler: str | None = None
    utc_offset_seconds: float | None = None
    sample_interval_seconds: float | None = None


@dataclass(frozen=True)
class TimeSpent:
    """Seconds of all attempts by what they were spent on, from view ``task_runs``.

    Without a cluster there are no tasks, and the view is ``chunks``.

    ``kept_seconds`` computed results that were kept; ``wasted_seconds`` those of attempts
    that failed or were lost. A transfer needs no core: it runs beside computing.
    """

    kept_seconds: float = 0.0
    wasted_seconds: float = 0.0
    transfer_seconds: float = 0.0
    deserialize_seconds: float = 0.0
    disk_seconds: float = 0.0


@dataclass(frozen=True)
class Gap:
    """A stretch of time, seconds since the epoch, in which no task computed."""

    start_t: float
    stop_t: float


@dataclass(frozen=True)
class Listing:
    """The rows of a view that a table shows.

    Parameters
    ----------
    view : str
        Name of the view.
    query : str
        The SQL that gives the rows.
    rows : polars.DataFrame
    total : int
        Rows that there are without the query's limit.
    """

    view: str
    query: str
    rows: pl.DataFrame
    total: int


@dataclass(frozen=True)
class Profiles:
    """Samples of what threads were at, put together by time.

    Parameters
    ----------
    start_t, bin_seconds : float
        Where the first stretch of time begins, seconds since the epoch, and how long each
        one is.
    bins : int
        How many there are.
    stacks : polars.DataFrame
        One row a distinct stack: ``frames``, a list of structs of name, filename and
        line_number, the outermost first; ``parts``, a list of structs of worker, prefix,
        interval_seconds, bin, samples and undecided: how often it was seen there, and how
        often in a function that it calls directly, but not known in which.
    """

    start_t: float = 0.0
    bin_seconds: float = 0.0
    bins: int = 0
    stacks: pl.DataFrame = field(default_factory=pl.DataFrame)


@dataclass(frozen=True)
class ReportData:
    """Everything that the page is made of.

    Parameters
    ----------
    trace_name : str
        Name of the file or folder, without where it lies.
    run, recording, time_spent, longest_gap
        See their classes; there is no gap without two task runs.
    task_runs, chunk_points : polars.DataFrame
        A few columns of all rows of ``task_runs`` and ``chunks``, for figures. Without a
        cluster there are no tasks, and ``task_runs`` holds the attempts at chunks.
    concurrency : polars.DataFrame
        A few columns of this view, and of the same stretches of time
        ``transitions_per_second`` and ``slowest_loop_seconds``, the longest interval of a
        worker's event loop.
    busy : polars.DataFrame
        View ``utilisation`` by row and stretch, as :func:`roast_analyze.figures.load.busy`
        draws it.
    cluster_samples, worker_samples : polars.DataFrame
        A few columns of these views.
    workers, prefixes, roles, datasets, costs, files, branches, sections, chunks : Listing
        What the tables show. ``workers`` has one more column, ``lost``: whether the
        worker went away unexpectedly.
    failures, events, topics, environment, loss : Listing
        The same.
    top_branches : Listing
        The costliest branches, all datasets together.
    slow_files, slow_workers : Listing
        The slowest of those that are slow for themselves.
    comparable_files, comparable_workers : int
        Files and workers of which it can be told whether they are slow for themselves.
    profiles : Profiles
        Samples of the statistical profilers.
    functions : Listing
        Functions by the time that was sampled in them.
    comments : dict
        View to column to what the column means.
    """

    trace_name: str
    run: Run
    recording: Recording
    time_spent: TimeSpent
    longest_gap: Gap | None
    task_runs: pl.DataFrame
    chunk_points: pl.DataFrame
    concurrency: pl.DataFrame
    busy: pl.DataFrame
    cluster_samples: pl.DataFrame
    worker_samples: pl.DataFrame
    workers: Listing
    prefixes: Listing
    roles: Listing
    datasets: Listing
    costs: Listing
    files: Listing
    branches: Listing
    sections: Listing
    chunks: Listing
    top_branches: Listing
    slow_files: Listing
    slow_workers: Listing
    comparable_files: int
    comparable_workers: int
    failures: Listing
    events: Listing
    topics: Listing
    environment: Listing
    loss: Listing
    profiles: Profiles
    functions: Listing
    comments: dict[str, dict[str, str]]


def gather(trace: Trace) -> ReportData:
    """Ask a trace everything that its report shows."""
    run = _run(trace)
    runs = f"SELECT {_RUN_COLUMNS} FROM task_runs"
    if not run.task_runs:
        runs = f"SELECT {_CHUNK_RUN_COLUMNS} FROM chunks"
    task_runs = trace.sql(runs).pl()
    comparable_files, comparable_workers = _comparable(trace)
    concurrency = _concurrency(trace)
    return ReportData(
        trace_name=trace.path.name or str(trace.path),
        run=run,
        recording=_recording(trace),
        time_spent=_time_spent(trace, run),
        longest_gap=longest_gap(task_runs),
        task_runs=task_runs,
        chunk_points=trace.sql(f"SELECT {_CHUNK_COLUMNS} FROM chunks").pl(),
        concurrency=concurrency,
        busy=_busy(trace, concurrency),
        cluster_samples=trace.sql(
            "SELECT t, nthreads, cpu_percent, memory_bytes, memory_limit_bytes, managed_bytes, "
            "spilled_bytes FROM cluster_samples ORDER BY t"
        ).pl(),
        worker_samples=trace.sql(
            "SELECT t, worker, server_id, cpu_percent, memory_bytes, memory_limit_bytes "
            "FROM worker_samples ORDER BY t"
        ).pl(),
        workers=_workers(trace),
        prefixes=_listing(trace, "prefixes", "compute_seconds DESC NULLS LAST", GROUP_ROWS),
        roles=_query(
            trace,
            "task_roles",
            "SELECT * REPLACE (coalesce(role, '(other tasks)') AS role) FROM task_roles "
            "WHERE EXISTS (FROM task_roles WHERE role IS NOT NULL)",
            "compute_seconds DESC NULLS LAST, role",
            GROUP_ROWS,
        ),
        datasets=_listing(trace, "datasets", "compute_seconds DESC NULLS LAST", GROUP_ROWS),
        costs=_listing(trace, "chunk_costs", "chunks DESC, dataset", GROUP_ROWS),
        files=_listing(trace, "files", "compute_seconds DESC NULLS LAST", GROUP_ROWS),
        branches=_listing(
            trace,
            "branches",
            "read_seconds DESC NULLS LAST, compressed_bytes DESC NULLS LAST, dataset, branch",
            PART_ROWS,
        ),
        sections=_listing(
            trace, "section_totals", "seconds DESC NULLS LAST, dataset, name", PART_ROWS
        ),
        chunks=_listing(
            trace, "chunks", "outcome = 'memory', compute_seconds DESC NULLS LAST", CHUNK_ROWS
        ),
        top_branches=_query(
            trace,
            "branches",
            "SELECT branch, sum(read_share) AS read_share, sum(byte_share) AS byte_share "
            "FROM branches GROUP BY branch",
            "read_share DESC NULLS LAST, byte_share DESC NULLS LAST, branch",
            TOP_BRANCHES,
        ),
        slow_files=_query(
            trace,
            "files",
            "SELECT * FROM files WHERE is_slow",
            "slowness DESC, dataset, filename, treename",
            SLOW_ROWS,
        ),
        slow_workers=_query(
            trace,
            "workers",
            "SELECT * FROM workers WHERE is_slow",
            "slowness DESC, worker, added_t",
            SLOW_ROWS,
        ),
        comparable_files=comparable_files,
        comparable_workers=comparable_workers,
        failures=_failures(trace),
        events=_events(trace),
        topics=_topics(trace),
        environment=_environment(trace),
        loss=_listing(trace, "loss", "records DESC NULLS LAST", FACT_ROWS),
        profiles=_profiles(trace),
        functions=_query(
            trace,
            "profile_stacks",
            _FUNCTIONS,
            "self_seconds DESC, total_seconds DESC, function",
            FUNCTION_ROWS,
        ),
        comments={
            view.name: {column.name: column.comment for column in view.columns}
            for view in trace.views()
        },
    )


def longest_gap(runs: pl.DataFrame) -> Gap | None:
    """Find the longest time between the first and the last run in which none computed.

    Parameters
    ----------
    runs : polars.DataFrame
        compute_start_t and compute_stop_t; rows without them are passed over.

    Returns
    -------
    Gap or None
        None if at every instant at least one computed.
    """
    gaps = (
        runs.select("compute_start_t", "compute_stop_t")
        .drop_nulls()
        .sort("compute_start_t")
        .select(
            pl.col("compute_stop_t").cum_max().shift(1).alias("start_t"),
            pl.col("compute_start_t").alias("stop_t"),
        )
        .filter(pl.col("stop_t") > pl.col("start_t"))
        .sort(pl.col("stop_t") - pl.col("start_t"), descending=True)
    )
    return Gap(*gaps.row(0)) if gaps.height else None


def _run(trace: Trace) -> Run:
    rows = trace.frame("run").to_dicts()
    return _filled(Run, rows[0]) if rows else Run()


def _filled(kind: type[Run], row: dict[str, Any]) -> Run:
    known = {field.name: row.get(field.name) for field in fields(kind)}
    return kind(**{name: value for name, value in known.items() if value is not None})


def _recording(trace: Trace) -> Recording:
    segments = trace.sql(
        "SELECT *, try_cast(settings->>'sample_interval_seconds' AS DOUBLE) "
        "AS sample_interval_seconds FROM trace_info"
    ).pl()
    if segments.is_empty():
        return Recording()
    first = segments.row(0, named=True)
    taken = {field.name for field in fields(Recording)} & first.keys() - {
        "records",
        "clean_end",
    }
    return Recording(
        segments=segments.height,
        records=int(segments["records"].fill_null(0).sum()),
        clean_end=bool(segments["clean_end"][-1]),
        **{name: first[name] for name in taken if first[name] is not None},
    )


def _time_spent(trace: Trace, run: Run) -> TimeSpent:
    parts = "sum(transfer_seconds), sum(deserialize_seconds), sum(disk_seconds) FROM task_runs"
    if not run.task_runs:
        parts = "NULL, NULL, NULL FROM chunks"
    rows = trace.sql(
        "SELECT sum(compute_seconds) FILTER (outcome = 'memory'), "
        f"sum(compute_seconds) FILTER (outcome <> 'memory'), {parts}"
    ).fetchall()
    return TimeSpent(*(value or 0.0 for value in rows[0]))


def _comparable(trace: Trace) -> tuple[int, int]:
    files, workers = trace.sql(
        "SELECT (SELECT count(slowness) FROM files), (SELECT count(slowness) FROM workers)"
    ).fetchall()[0]
    return files, workers


def _listing(trace: Trace, view: str, order: str, limit: int) -> Listing:
    return _query(trace, view, f"SELECT * FROM {view}", order, limit)


def _query(trace: Trace, view: str, query: str, order: str, limit: int) -> Listing:
    """Take the first rows of a query, and count what it gives without the limit."""
    counted = trace.sql(
        f"SELECT *, count(*) OVER () AS rows_in_all FROM ({query}) "
        f"ORDER BY {order} LIMIT {limit}"
    ).pl()
    total = int(counted["rows_in_all"][0]) if counted.height else 0
    shown = f"{query} ORDER BY {order}" + (f" LIMIT {limit}" if total > limit else "")
    return Listing(view, shown, counted.drop("rows_in_all"), total)


def _workers(trace: Trace) -> Listing:
    # A worker that comes back under its old address was lost only the time that it was.
    return _query(
        trace,
        "workers",
        "SELECT workers.*, EXISTS (FROM failures WHERE what = 'worker lost' "
        "AND failures.worker = workers.worker "
        "AND abs(failures.t - workers.removed_t) < 1) AS lost FROM workers",
        "try_cast(name AS BIGINT) NULLS LAST, added_t, worker",
        GROUP_ROWS,
    )


def _concurrency(trace: Trace) -> pl.DataFrame:
    """Cut the run into stretches of time, and say what was going on in each."""
    stretches = trace.sql(
        "SELECT t, seconds, queued + no_worker AS ready, waiting FROM concurrency ORDER BY t"
    ).pl()
    # What happened at the very end belongs to the last stretch.
    stretch = "least(floor((t - $begin_t) / $width)::BIGINT, $last) AS stretch"
    grid = {**_grid(stretches), "last": stretches.height - 1}
    moved: pl.DataFrame = trace.sql(
        f"SELECT {stretch}, count(*) AS transitions FROM transitions GROUP BY stretch", grid
    ).pl()
    looped = trace.sql(
        f"SELECT {stretch}, max(event_loop_interval_seconds) AS slowest_loop_seconds "
        "FROM worker_samples GROUP BY stretch",
        grid,
    ).pl()
    known: pl.DataFrame = (
        stretches.with_columns(pl.int_range(pl.len()).alias("stretch"))
        .join(moved, on="stretch", how="left")
        .join(looped, on="stretch", how="left")
        .with_columns(
            (pl.col("transitions").fill_null(0) / pl.col("seconds")).alias(
                "transitions_per_second"
            )
        )
        .drop("stretch", "transitions")
        .sort("t")
    )
    return known


def _busy(trace: Trace, concurrency: pl.DataFrame) -> pl.DataFrame:
    busy: pl.DataFrame = trace.sql(_BUSY, _grid(concurrency)).pl()
    return busy


def _grid(stretches: pl.DataFrame) -> dict[str, float]:
    """Say where the first stretch begins, and how long each is but for the last."""
    if stretches.is_empty():
        return {"begin_t": 0.0, "width": 1.0}
    begin_t, width = stretches.select("t", "seconds").row(0)
    return {"begin_t": begin_t, "width": width}


def _profiles(trace: Trace) -> Profiles:
    """Put samples together by stack, worker, prefix and stretch of time."""
    start_t, stop_t, cycle, groups = trace.sql(
        "SELECT min(start_t), max(stop_t), median(stop_t - start_t), "
        "count(DISTINCT (worker, prefix)) FROM profile_stacks "
        "WHERE samples + undecided_samples > 0"
    ).fetchall()[0]
    if start_t is None or stop_t is None:
        return Profiles()
    span = max(stop_t - start_t, 1e-9)
    # No shorter than what one look covers: there would be holes between.
    most = min(PROFILE_BINS, PROFILE_CELLS // groups, int(span / max(cycle, 1e-9)))
    bins = max(most, 1)
    stacks = trace.sql(
        "WITH binned AS (SELECT frames, worker, prefix, interval_seconds, "
        "greatest(least(floor(((start_t + stop_t) / 2 - $start) / $width), $bins - 1), 0)::INT "
        "AS bin, sum(samples)::BIGINT AS samples, sum(undecided_samples)::BIGINT AS undecided "
        "FROM profile_stacks WHERE samples + undecided_samples > 0 GROUP BY ALL) "
        "SELECT frames, list(struct_pack(worker, prefix, interval_seconds, bin, samples, "
        "undecided)) AS parts FROM binned GROUP BY frames",
        {"start": start_t, "width": span / bins, "bins": bins},
    ).pl()
    return Profiles(start_t, span / bins, bins, stacks)


def _failures(trace: Trace) -> Listing:
    return _query(
        trace,
        "failures",
        "SELECT t, what, prefix, key, attempt, worker, left(exception, 1000) AS exception, "
        f"detail, right(traceback, {TRACEBACK_CHARACTERS}) AS traceback FROM failures",
        "t, key NULLS LAST, attempt",
        FAILURE_ROWS,
    )


def _events(trace: Trace) -> Listing:
    return _query(
        trace,
        "events",
        f"SELECT t, topic, worker, left(payload::VARCHAR, {VALUE_CHARACTERS}) AS payload "
        "FROM events",
        "t",
        EVENT_ROWS,
    )


def _topics(trace: Trace) -> Listing:
    return _query(
        trace,
        "events",
        "SELECT topic, count(*) AS events, min(t) AS first_t, max(t) AS last_t FROM events "
        "GROUP BY topic",
        "events DESC, topic",
        GROUP_ROWS,
    )


def _environment(trace: Trace) -> Listing:
    return _query(
        trace,
        "environment",
        f"SELECT section, name, left(value, {VALUE_CHARACTERS}) AS value FROM environment",
        "section, name",
        FACT_ROWS,
    )
