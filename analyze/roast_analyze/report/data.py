"""What the report knows of a run: queries in, frozen dataclasses out.

Beside it only the modules of :mod:`.gathered` speak to a
:class:`~roast_analyze.open.session.Session`; what they give is put together here. Every view is
asked once; lists are cut in SQL, so that what is gathered for tables stays small
however long the run. The frames of task runs and chunks hold a few columns of all rows:
the figures choose from them.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report.gathered import (
    profiles,
    recipe,
    setup,
    submissions,
    task_stream,
    tasks,
    workers,
)
from roast_analyze.report.gathered import transfers as movement
from roast_analyze.report.gathered.listing import Listing, asked, first, listed

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.open.time_range import TimeRange
    from roast_analyze.report.gathered.profiles import Profiles
    from roast_analyze.report.gathered.task_stream import TaskStream

#: Most rows of the table of chunks, the slowest and the failed.
CHUNK_ROWS: Final = 300
#: Most rows of the tables of datasets, files, workers and prefixes.
GROUP_ROWS: Final = 300
#: Most rows of the tables of branches and of named parts of chunks.
PART_ROWS: Final = 100
#: Branches that are named.
TOP_BRANCHES: Final = 3
#: Most slow files and slow workers that are named.
SLOW_ROWS: Final = 5
#: Most failures listed, and most characters of an exception and of a traceback (its end).
FAILURE_ROWS: Final = 150
EXCEPTION_CHARACTERS: Final = 1000
TRACEBACK_CHARACTERS: Final = 2000
#: Most events listed.
EVENT_ROWS: Final = 200
#: Most characters of a payload or a recorded fact that are kept.
VALUE_CHARACTERS: Final = 240
#: Most rows of the tables of facts, topics and losses.
FACT_ROWS: Final = 500

#: The longest time in which nothing computed, between the first and the last that did.
_LONGEST_GAP: Final = (
    "SELECT since_t, start_t FROM (SELECT start_t, max(stop_t) OVER (ORDER BY start_t "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS since_t FROM {computed}) "
    "WHERE start_t > since_t ORDER BY start_t - since_t DESC, start_t LIMIT 1"
)
_COMPUTED_TASKS: Final = (
    "(SELECT compute_start_t AS start_t, compute_stop_t AS stop_t FROM task_runs "
    "WHERE start_t IS NOT NULL AND stop_t IS NOT NULL)"
)
_COMPUTED_CHUNKS: Final = "(FROM chunks WHERE start_t IS NOT NULL AND stop_t IS NOT NULL)"
#: The view `utilisation` by rows of the map, in the order in which workers are listed.
_BUSY: Final = (
    "WITH rowed AS (SELECT unnest($rows::BIGINT[]) AS row, "
    "unnest($workers::VARCHAR[]) AS worker, unnest($server_ids::VARCHAR[]) AS server_id, "
    "unnest($trace_ids::VARCHAR[]) AS trace_id) "
    "SELECT row, round((utilisation.t - $begin_t) / $width)::BIGINT AS stretch, "
    "sum(compute_seconds) / nullif(sum(thread_seconds), 0) AS share "
    "FROM utilisation INNER JOIN rowed "
    "ON utilisation.trace_id = rowed.trace_id AND utilisation.worker = rowed.worker "
    "AND utilisation.server_id IS NOT DISTINCT FROM rowed.server_id "
    "GROUP BY ALL HAVING share IS NOT NULL ORDER BY row, stretch"
)
#: Files of which it can be told whether they are slow for themselves.
_COMPARED_FILES: Final = (
    "SELECT dataset, filename, treename, relative_duration, is_slow FROM files "
    "WHERE relative_duration IS NOT NULL"
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
    that failed or were lost; ``unfinished_seconds`` those that an excerpt ends before. A
    transfer needs no core: it runs beside computing.
    """

    kept_seconds: float = 0.0
    wasted_seconds: float = 0.0
    unfinished_seconds: float = 0.0
    transfer_seconds: float = 0.0
    deserialize_seconds: float = 0.0
    disk_seconds: float = 0.0


@dataclass(frozen=True)
class Gap:
    """A stretch of time, seconds since the epoch, in which no task computed."""

    start_t: float
    stop_t: float


@dataclass(frozen=True)
class ReportData:
    """Everything that the page is made of.

    Parameters
    ----------
    trace_name : str
        Name of the file or folder, without where it lies.
    excerpt : TimeRange or None
        The stretch of the run that all of this is about, if it is not the whole.
    run, recording, time_spent, longest_gap
        See their classes; there is no gap without two task runs.
    task_stream : TaskStream
        Who computed what and when. Without a cluster there are no tasks, and it tells of
        the attempts at chunks.
    chunk_points : polars.DataFrame
        A few columns of all rows of ``chunks``, for a figure.
    stretches : polars.DataFrame
        A few columns of view ``concurrency``, and of the same stretches of time
        ``transitions_per_second`` and ``slowest_loop_seconds``, the longest interval of a
        worker's event loop.
    busy : polars.DataFrame
        View ``utilisation`` by row and stretch, as :func:`roast_analyze.figures.load.busy`
        draws it.
    cluster_samples : polars.DataFrame
        A few columns of this view.
    worker_samples : polars.DataFrame
        View ``worker_samples``, put together by equal stretches of time.
    everyone : polars.DataFrame
        View ``workers``, all of them, with one more column, ``lost``: whether the worker
        went away unexpectedly.
    workers, prefixes, roles, datasets, costs, files, branches, sections, chunks : Listing
        What the tables show. ``workers`` are the first of ``everyone``.
    task_groups, stragglers
        Layers of graphs, and attempts that took far longer than others of their prefix.
    movement, submissions, recipe, setup
        See their classes.
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
    task_stream: TaskStream
    chunk_points: pl.DataFrame
    stretches: pl.DataFrame
    busy: pl.DataFrame
    cluster_samples: pl.DataFrame
    worker_samples: pl.DataFrame
    everyone: pl.DataFrame
    workers: Listing
    prefixes: Listing
    task_groups: Listing
    stragglers: tasks.Stragglers
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
    movement: movement.Movement
    submissions: submissions.Submissions
    recipe: recipe.Recipe
    setup: setup.Setup
    comments: dict[str, dict[str, str]]
    excerpt: TimeRange | None = None


def gather(trace: Session) -> ReportData:
    """Ask a trace everything that its report shows."""
    # What takes long keeps one core busy, the many short questions the other one.
    with ThreadPoolExecutor(max_workers=1) as beside:
        try:
            return _gathered(trace, beside)
        except BaseException:
            # Who interrupts does not wait for questions that were not asked yet.
            beside.shutdown(wait=False, cancel_futures=True)
            raise


def _gathered(trace: Session, beside: ThreadPoolExecutor) -> ReportData:
    profiling = beside.submit(profiles.gather, trace)
    run = headline(trace)
    everyone = workers.everyone(trace)
    streaming = beside.submit(
        task_stream.gather,
        trace,
        everyone,
        of_tasks=run.task_runs > 0,
        with_chunks=run.chunk_attempts > 0,
        begin_t=run.start_t or 0.0,
        end_t=run.stop_t or 0.0,
    )
    stretches = _stretches(trace)
    looking = beside.submit(_busy, trace, stretches, everyone)
    compared = trace.sql(_COMPARED_FILES).pl()
    axis = TimeAxis(run.start_t or 0.0, run.stop_t or 0.0)
    return ReportData(
        trace_name=trace.path.name or str(trace.path),
        excerpt=next(iter(trace.time_ranges), None),
        run=run,
        recording=recording(trace),
        time_spent=time_spent(trace, run),
        longest_gap=_longest_gap(trace, run),
        chunk_points=trace.sql(f"SELECT {_CHUNK_COLUMNS} FROM chunks").pl(),
        stretches=stretches,
        cluster_samples=trace.sql(
            "SELECT t, nthreads, cpu_percent, memory_bytes, memory_limit_bytes, managed_bytes, "
            "spilled_bytes FROM cluster_samples ORDER BY t"
        ).pl(),
        worker_samples=workers.samples(trace, axis),
        everyone=everyone,
        workers=first("workers", workers.EVERYONE, workers.ORDER, GROUP_ROWS, everyone),
        prefixes=tasks.prefixes(trace, GROUP_ROWS),
        task_groups=tasks.task_groups(trace),
        stragglers=tasks.stragglers(trace),
        roles=asked(
            trace,
            "task_roles",
            "SELECT * REPLACE (coalesce(role, '(other tasks)') AS role) FROM task_roles "
            "WHERE EXISTS (FROM task_roles WHERE role IS NOT NULL)",
            "compute_seconds DESC NULLS LAST, role",
            GROUP_ROWS,
        ),
        datasets=listed(
            trace, "datasets", "compute_seconds DESC NULLS LAST, dataset", GROUP_ROWS
        ),
        costs=listed(trace, "chunk_costs", "chunks DESC, dataset", GROUP_ROWS),
        files=listed(
            trace,
            "files",
            "compute_seconds DESC NULLS LAST, dataset, filename, treename",
            GROUP_ROWS,
        ),
        branches=listed(
            trace,
            "branches",
            "read_seconds DESC NULLS LAST, compressed_bytes DESC NULLS LAST, dataset, branch",
            PART_ROWS,
        ),
        sections=listed(
            trace, "section_totals", "seconds DESC NULLS LAST, dataset, name", PART_ROWS
        ),
        chunks=listed(
            trace,
            "chunks",
            "outcome = 'memory', compute_seconds DESC NULLS LAST, key, attempt, entry_start",
            CHUNK_ROWS,
        ),
        top_branches=asked(
            trace,
            "branches",
            "SELECT branch, sum(read_share) AS read_share, sum(byte_share) AS byte_share "
            "FROM branches GROUP BY branch",
            "read_share DESC NULLS LAST, byte_share DESC NULLS LAST, branch",
            TOP_BRANCHES,
        ),
        slow_files=_slow_files(compared),
        slow_workers=workers.slow(everyone, SLOW_ROWS),
        comparable_files=compared["relative_duration"].count(),
        comparable_workers=everyone["relative_duration"].count(),
        failures=_failures(trace),
        events=_events(trace),
        topics=_topics(trace),
        environment=_environment(trace),
        loss=listed(trace, "loss", "records DESC NULLS LAST, t, reason, detail", FACT_ROWS),
        movement=movement.gather(trace, everyone),
        submissions=submissions.gather(trace, stretches, _grid(stretches)),
        recipe=recipe.gather(trace),
        setup=setup.gather(trace),
        comments={
            view.name: {column.name: column.comment for column in view.columns}
            for view in trace.views()
        },
        profiles=profiling.result(),
        functions=profiles.functions(profiling.result().stacks),
        task_stream=streaming.result(),
        busy=looking.result(),
    )


def _longest_gap(trace: Session, run: Run) -> Gap | None:
    computed = _COMPUTED_TASKS if run.task_runs else _COMPUTED_CHUNKS
    rows = trace.sql(_LONGEST_GAP.format(computed=computed)).fetchall()
    return Gap(*rows[0]) if rows else None


def headline(trace: Session) -> Run:
    """Ask for the headline of a run."""
    rows = trace.frame("run").to_dicts()
    return _filled(Run, rows[0]) if rows else Run()


def _filled(kind: type[Run], row: dict[str, Any]) -> Run:
    known = {field.name: row.get(field.name) for field in fields(kind)}
    return kind(**{name: value for name, value in known.items() if value is not None})


def recording(trace: Session) -> Recording:
    """Ask how a trace was made."""
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


def time_spent(trace: Session, run: Run) -> TimeSpent:
    """Ask what the time of a run was spent on."""
    parts = "sum(transfer_seconds), sum(deserialize_seconds), sum(disk_seconds) FROM task_runs"
    if not run.task_runs:
        parts = "NULL, NULL, NULL FROM chunks"
    rows = trace.sql(
        "SELECT sum(compute_seconds) FILTER (outcome = 'memory'), "
        "sum(compute_seconds) FILTER (outcome NOT IN ('memory', 'unfinished')), "
        f"sum(compute_seconds) FILTER (outcome = 'unfinished'), {parts}"
    ).fetchall()
    return TimeSpent(*(value or 0.0 for value in rows[0]))


def _slow_files(compared: pl.DataFrame) -> Listing:
    query, order = (
        f"{_COMPARED_FILES} AND is_slow",
        "relative_duration DESC, dataset, filename, treename",
    )
    ranked = compared.filter("is_slow").sort(
        "relative_duration",
        "dataset",
        "filename",
        "treename",
        descending=[True, False, False, False],
    )
    return first("files", query, order, SLOW_ROWS, ranked)


def _cut(text: str, limit: int) -> str:
    """Keep the beginning of a text, in SQL, and say so if there is more."""
    return (
        f"CASE WHEN length({text}) > {limit} THEN left({text}, {limit - 1}) || '…' "
        f"ELSE {text} END"
    )


def _end(text: str, limit: int) -> str:
    """Keep the end of a text, in SQL, and say so if there is more."""
    return (
        f"CASE WHEN length({text}) > {limit} THEN '…' || right({text}, {limit - 1}) "
        f"ELSE {text} END"
    )


def _stretches(trace: Session) -> pl.DataFrame:
    """Cut the run into stretches of time, and say what was going on in each."""
    stretches = trace.sql(
        "SELECT t, seconds, executing, nthreads, queued + no_worker AS ready, waiting "
        "FROM concurrency ORDER BY t"
    ).pl()
    # What happened at the very end belongs to the last stretch.
    stretch = "least(floor((t - $begin_t) / $width)::BIGINT, $last) AS stretch"
    grid = _grid(stretches)
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


def _busy(trace: Session, stretches: pl.DataFrame, everyone: pl.DataFrame) -> pl.DataFrame:
    """Say how busy workers were; if they are many, neighbours are put together."""
    grid = _grid(stretches)
    rowed = everyone.with_columns(movement.map_row().alias("row"))
    busy: pl.DataFrame = trace.sql(
        _BUSY,
        {
            "rows": rowed["row"].to_list(),
            "workers": rowed["worker"].to_list(),
            "server_ids": rowed["server_id"].to_list(),
            "trace_ids": rowed["trace_id"].to_list(),
            "begin_t": grid["begin_t"],
            "width": grid["width"],
        },
    ).pl()
    return busy.join(movement.named(rowed), on="row", maintain_order="left").select(
        "row", "worker", "name", "workers", "stretch", "share"
    )


def _grid(stretches: pl.DataFrame) -> dict[str, float]:
    """Say where the first stretch begins, how long each is, and the number of the last."""
    if stretches.is_empty():
        return {"begin_t": 0.0, "width": 1.0, "last": 0}
    begin_t, width = stretches.select("t", "seconds").row(0)
    return {"begin_t": begin_t, "width": width, "last": stretches.height - 1}


def _failures(trace: Session) -> Listing:
    return asked(
        trace,
        "failures",
        "SELECT t, what, prefix, key, attempt, worker, "
        f"{_cut('exception', EXCEPTION_CHARACTERS)} AS exception, detail, "
        f"{_end('traceback', TRACEBACK_CHARACTERS)} AS traceback FROM failures",
        "t, key NULLS LAST, attempt, worker",
        FAILURE_ROWS,
    )


def _events(trace: Session) -> Listing:
    return asked(
        trace,
        "events",
        f"SELECT t, topic, worker, {_cut('payload::VARCHAR', VALUE_CHARACTERS)} AS payload "
        "FROM events",
        "t, topic, worker, payload",
        EVENT_ROWS,
    )


def _topics(trace: Session) -> Listing:
    return asked(
        trace,
        "events",
        "SELECT topic, count(*) AS events, min(t) AS first_t, max(t) AS last_t FROM events "
        "GROUP BY topic",
        "events DESC, topic",
        GROUP_ROWS,
    )


def _environment(trace: Session) -> Listing:
    return asked(
        trace,
        "environment",
        f"SELECT section, name, {_cut('value', VALUE_CHARACTERS)} AS value FROM environment",
        "section, name, value",
        FACT_ROWS,
    )
