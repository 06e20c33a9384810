"""The summary of a trace in the terminal: facts, then tables of the most important rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from roast_analyze.algorithms.outcomes import OUTCOMES
from roast_analyze.commands.explain import finding_lines
from roast_analyze.commands.terminal import cell, line_count, table
from roast_analyze.open.concurrent_queries import run_concurrently
from roast_analyze.report import findings, programs, time_ranges, unexplained, wall_time
from roast_analyze.report.quantities import (
    byte_size,
    count,
    counted,
    instant,
    number,
    rate,
    seconds,
    share,
)
from roast_analyze.report.run import (
    SURPLUS,
    computing_seconds,
    computing_shares,
    describe_end,
    describe_without_workers,
    query_unattempted,
    query_uses,
    query_without_workers,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roast_analyze.open.concurrent_queries import Submit
    from roast_analyze.open.session import ColumnsAndRows, Session


def _per_second(value: float | None) -> str:
    return count(value) if value is None or value >= 100 else number(value)


def _long_cell(value: object) -> Text:
    return cell(value, limit=240)


@dataclass(frozen=True)
class _Table:
    """A table of the summary."""

    title: str
    #: Returns all rows; its column names are the headings.
    query: str
    #: Formatter of each column. Columns of text are left-aligned.
    formats: tuple[Callable[[Any], object], ...]
    #: Number of rows that are shown, and where to find the others.
    limit: int = 5
    source: str = ""
    #: Headings of columns that are left out if all their values are null or zero.
    optional: tuple[str, ...] = ()
    #: Number of rows of the short summary; 0 leaves the table out.
    short: int = 0
    #: Whether the short summary has the table even if it does not fit.
    is_essential: bool = False


#: Lines of the short summary, and its findings; facts that it leaves out.
_SHORT_LINES: Final = 33
_SHORT_FINDINGS: Final = 3
_DETAILS: Final = ("Versions", "Merging")

#: The most important tables come first. `_cluster_size` has some columns of `run`, which takes
#: longest of all views.
_TABLES: Final = (
    _Table(
        "Losses",
        "SELECT reason AS loss, records, detail FROM loss",
        (cell, count, cell),
        8,
        "roast-analyze check",
        short=4,
        is_essential=True,
    ),
    _Table(
        # Exceptions that differ in numbers are one; the first one is shown.
        "Failures",
        "SELECT min(t) - (SELECT start_t FROM _cluster_size) AS time, "
        "if(max(count(*)) OVER () > 1, count(*), NULL) AS times, what, "
        "if(count(DISTINCT worker) > 1, count(DISTINCT worker) || ' workers', min(shown)) "
        "AS worker, "
        "concat_ws(': ', arg_min(coalesce(place, key), (t, attempt)) || "
        "if(count(DISTINCT key) > 1, ' and ' || (count(DISTINCT key) - 1) || ' more', ''), "
        'arg_min(coalesce(cause, detail), (t, attempt))) AS "task and error" '
        "FROM failures LEFT JOIN _worker_names USING (trace_id, worker) LEFT JOIN ("
        "SELECT trace_id, key, "
        "min(_chunk_place(dataset, filename, entry_start, entry_stop)) AS place "
        "FROM chunks GROUP BY ALL) USING (trace_id, key) GROUP BY what, coalesce("
        "regexp_replace(cause, '0x[0-9a-f]+|[0-9]+', '#', 'g'), concat_ws(' ', worker, detail)"
        ") ORDER BY min(t), what DESC",
        (seconds, count, cell, cell, _long_cell),
        8,
        "the view failures",
        optional=("times",),
        short=3,
    ),
    _Table(
        "Datasets (events/s per thread)",
        "SELECT dataset, files, chunks, failed_attempts AS failed, events, "
        'compute_seconds AS compute, events_per_second AS "events/s" FROM datasets',
        (cell, count, count, count, count, seconds, _per_second),
        12,
        "the view datasets",
        short=4,
        is_essential=True,
    ),
    _Table(
        "Inside tasks (shares of the compute time)",
        'SELECT kind, arg_max(detail, (seconds, detail)) AS "largest part", '
        "sum(seconds) AS time, time / sum(time) OVER () AS share "
        "FROM (SELECT kind, detail, sum(seconds) AS seconds FROM busy_time GROUP BY ALL) "
        "WHERE EXISTS (FROM busy_time WHERE samples > 0) "
        "GROUP BY kind ORDER BY time DESC, kind",
        (cell, cell, seconds, share),
        6,
        "the view busy_time",
        short=3,
    ),
    _Table(
        # Both, because a slow file can look like a slow worker, and the reverse.
        "Slow files and workers",
        "SELECT printf('%.2f ± %.2f', relative_duration, relative_duration_error) "
        'AS "× median", what, chunks, name FROM ('
        "SELECT *, 'file' AS what, filename AS name FROM files WHERE is_slow UNION ALL BY NAME "
        "SELECT workers.* EXCLUDE (name), 'worker' AS what, shown AS name "
        "FROM workers LEFT JOIN _worker_names USING (trace_id, worker) WHERE is_slow"
        ") ORDER BY relative_duration DESC",
        (str, cell, count, cell),
        5,
        "relative_duration in the views files and workers",
        short=3,
    ),
    _Table(
        # Read times are null unless they were measured; then the size decides.
        "Branches by read time",
        'SELECT sum(read_seconds) AS "read time", sum(read_share) AS share, '
        "sum(compressed_bytes) AS size, sum(byte_share) AS share, branch FROM branches "
        "GROUP BY branch ORDER BY 1 DESC NULLS LAST, 3 DESC NULLS LAST, branch",
        (seconds, share, byte_size, share, cell),
        6,
        "the view branches",
        short=2,
    ),
    _Table(
        "Tasks by prefix",
        "SELECT prefix, roles AS role, task_runs AS attempts, memory AS done, "
        "erred, retried, lost, compute_seconds AS compute, mean_compute_seconds AS mean, "
        "max_compute_seconds AS max FROM prefixes",
        (cell, cell, count, count, count, count, count, seconds, seconds, seconds),
        12,
        "the view prefixes",
        optional=("role", "erred", "retried", "lost"),
        short=4,
    ),
    _Table(
        # Datasets whose cost is unknown are counted by the reason.
        "Chunk cost (sizes in events)",
        'SELECT dataset, fixed_seconds AS fixed, 1000 * seconds_per_event AS "per 1,000", '
        "relative_error AS error, median_events AS size, recommended_events AS recommended, "
        "note AS reason FROM chunk_costs WHERE is_known UNION ALL "
        "SELECT CASE WHEN count(*) = 1 THEN any_value(dataset) "
        "ELSE count(*) || ' datasets' END, NULL, NULL, NULL, NULL, NULL, note "
        "FROM chunk_costs WHERE NOT is_known GROUP BY note",
        (cell, seconds, seconds, share, count, count, cell),
        6,
        "the view chunk_costs",
    ),
    _Table(
        # For a worker that stayed, the time until the end of the recording counts.
        "Workers",
        # Without a cluster, there are chunks and no tasks.
        "SELECT shown AS worker, nthreads AS threads, "
        "if(EXISTS (FROM _task_runs), task_runs, NULL) AS tasks, "
        "compute_seconds AS compute, compute_seconds / "
        "nullif(nthreads * (coalesce(removed_t, stop_t) - coalesce(added_t, start_t)), 0) "
        'AS busy, peak_memory_bytes AS "peak mem.", removed_t - start_t AS "left after" '
        "FROM workers LEFT JOIN _worker_names USING (trace_id, worker), "
        "(SELECT start_t, stop_t FROM _cluster_size) ORDER BY compute_seconds DESC",
        (cell, count, count, seconds, share, byte_size, seconds),
        16,
        "the view workers",
        optional=("left after",),
    ),
    _Table(
        "Slowest attempts",
        'SELECT compute_seconds AS compute, events_per_second AS "events/s", outcome, '
        'shown AS worker, what AS "chunk or task" FROM ('
        "SELECT trace_id, compute_seconds, events_per_second, outcome, worker, "
        "_chunk_place(dataset, filename, entry_start, entry_stop) AS what FROM chunks "
        "UNION ALL BY NAME SELECT trace_id, compute_seconds, outcome, worker, key AS what "
        "FROM task_runs ANTI JOIN chunks USING (trace_id, key)"
        ") LEFT JOIN _worker_names USING (trace_id, worker) "
        "WHERE compute_seconds > 0 ORDER BY compute_seconds DESC, what LIMIT 5",
        (seconds, _per_second, cell, cell, cell),
        optional=("events/s",),
    ),
    _Table(
        # By rate, because large files take long without being slow.
        "Slowest files",
        'SELECT events_per_second AS "events/s", compute_seconds AS compute, events, '
        "failed_attempts AS failed, filename AS file FROM files "
        "WHERE events_per_second IS NOT NULL ORDER BY events_per_second LIMIT 5",
        (_per_second, seconds, count, count, cell),
    ),
    _Table(
        "Sections",
        "SELECT seconds AS time, compute_share AS share, executions, mean_seconds AS mean, "
        "dataset, name FROM section_totals",
        (seconds, share, count, seconds, cell, cell),
        8,
        "the view section_totals",
    ),
    _Table(
        "Spans (shares of the thread time)",
        "SELECT array_to_string(totals.path, ' / ') AS span, total_tasks AS tasks, "
        "CASE WHEN stop_t >= start_t THEN stop_t - start_t END AS wall, "
        "total_compute_seconds AS compute, "
        "compute / nullif(thread_seconds, 0) AS computing, "
        "idle_share AS idle "
        "FROM span_totals AS totals LEFT JOIN span_idle USING (trace_id, span_id) "
        "WHERE totals.span_id IS NOT NULL "
        "AND EXISTS (FROM _named_spans) "
        "ORDER BY compute DESC NULLS LAST, len(totals.path), start_t, totals.span_id",
        (cell, count, seconds, seconds, share, share),
        6,
        "the views span_totals and span_idle",
    ),
    _Table(
        # Only what ran in a task took time of a thread.
        "Activities",
        "SELECT activity, context, sum(delta) AS time, "
        "time / (SELECT sum(threads.seconds) FROM _task_threads AS threads "
        "WHERE context = 'execute') "
        'AS "share of thread time" '
        "FROM _activity_deltas WHERE unit = 'seconds' GROUP BY activity, context "
        "ORDER BY time DESC, context, activity",
        (cell, cell, seconds, share),
        6,
        "the views activities and fine_metrics",
    ),
)


def summarize(
    trace: Session, name: str | None = None, *, is_complete: bool = False
) -> Iterator[RenderableType]:
    """Yield the parts of the summary: facts, findings, and tables that have rows.

    ``name`` is that of the trace; by default the name of its file. The short summary has the
    first findings, lost records and datasets, and other tables as far as they fit.
    """
    definitions = _TABLES if is_complete else [it for it in _TABLES if it.short]
    facts, found, rest, tables = run_concurrently(trace, partial(_query, trace, definitions))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    [(label,)] = trace.rows("SELECT string_agg(DISTINCT label, ', ') FROM trace_info")
    name = name or trace.path.name or str(trace.path)
    grid.add_row("Trace", cell(f"{name} ({label})" if label else name))
    for fact, text in facts:
        if is_complete or fact not in _DETAILS:
            grid.add_row(Text(fact), cell(text))
    if not found:
        grid.add_row("Findings", cell(rest, limit=1000))
    shown: list[RenderableType] = [grid]
    limit = findings.SHOWN if is_complete else _SHORT_FINDINGS
    for finding in found[:limit]:
        shown += ["", *finding_lines(finding)]
    if others := found[limit:]:
        titles = "; ".join(f"{finding.title} ({finding.severity})" for finding in others)
        more = counted(len(others), "more finding")
        shown += ["", cell(f"{more}: {titles}. roast-analyze explain prints all.", limit=1000)]
    if found and rest:
        shown += ["", cell(rest, limit=1000)]
    yield from shown
    lines = line_count(*shown)
    for definition, (columns, rows) in zip(definitions, tables, strict=True):
        if not rows:
            continue
        parts = _table(definition, columns, rows, is_short=not is_complete)
        height = line_count(*parts)
        if is_complete or definition.is_essential or lines + height <= _SHORT_LINES:
            lines += height
            yield from parts
    if not is_complete:
        yield ""
        yield cell("With --all: more rows, and tables of workers, slowest attempts and others.")


def _table(
    definition: _Table, names: Sequence[str], rows: Sequence[Sequence[Any]], *, is_short: bool
) -> list[RenderableType]:
    """Return the parts of a table with its first rows, and how many there are."""
    columns = [
        (i, name if write in (cell, _long_cell) else f">{name}", write)
        for i, (name, write) in enumerate(zip(names, definition.formats, strict=True))
        if name not in definition.optional or any(row[i] for row in rows)
    ]
    limit = definition.short if is_short else definition.limit
    shown = [[write(row[i]) for i, _, write in columns] for row in rows[:limit]]
    are_left_out = len(rows) > limit
    title = definition.title
    if are_left_out and is_short:
        title = f"{title}, {limit} of {count(len(rows))}"
    parts: list[RenderableType] = [
        "",
        table([heading for _, heading, _ in columns], shown, title),
    ]
    if are_left_out and not is_short:
        parts.append(f"… and {count(len(rows) - limit)} more: {definition.source}")
    return parts


def _query(
    trace: Session, definitions: Sequence[_Table], submit: Submit
) -> tuple[list[tuple[str, str]], tuple[findings.Finding, ...], str, list[ColumnsAndRows]]:
    """Return the facts, the findings and what they leave, and columns and rows of tables."""
    explaining = submit(findings.query, trace)
    tables = [trace.columns_and_rows(definition.query) for definition in definitions]
    # The core time is computed for the findings, too.
    facts = list(_facts(trace))
    found = explaining.result()
    rest = unexplained.describe(unexplained.query(trace, found), has_findings=bool(found))
    return facts, found, rest, tables


def _facts(trace: Session) -> Iterator[tuple[str, str]]:
    run = trace.view("run").to_dicts()[0]
    # Several segments of one run have the same versions.
    segments = trace.view("trace_info").to_dicts()
    first = segments[0]
    for time_range in trace.time_ranges[:1]:
        omissions = time_ranges.describe_omissions(time_range)
        yield "Only", f"{time_ranges.describe(time_range)}. {omissions}"
    start = instant(run["start_t"], first["utc_offset_seconds"])
    yield "Recorded", f"{seconds(run['wall_seconds'])} from {start}"
    if text := wall_time.describe(wall_time.query(trace)):
        yield "", text
    if end := describe_end(segments[-1]["end_reason"]):
        yield "Ended", end
    if first["dask_version"]:
        yield "Versions", f"dask {first['dask_version']}, Python {first['python_version']}"
    # Not all losses are counted in records.
    losses, surplus = trace.rows(
        "SELECT count(*), (sum(records) FILTER (reason = $1))::BIGINT FROM loss", [SURPLUS]
    )[0]
    text = "no" if losses else "yes"
    if run["lost_records"]:
        text += f", at least {counted(run['lost_records'], 'record')} missing"
    if surplus:
        more = counted(
            surplus, "more record than was written", "more records than were written"
        )
        text += f", {more}"
    yield "Complete", f"{text}, see below" if losses else text
    if run["workers"]:
        threads = counted(run["peak_nthreads"], "thread")
        peak = f"at most {count(run['peak_workers'])} at once with {threads}"
        without = describe_without_workers(query_without_workers(trace))
        yield "Workers", f"{count(run['workers'])}, {peak}"
        if without:
            yield "", without
    if clients := programs.query(trace):
        yield "Programs", programs.describe(clients)
    uses = query_uses(trace)
    # The core time counts attempts that reported no compute time from dispatch to end.
    if run["compute_seconds"] is not None and (computed := computing_seconds(uses)):
        part, kept = computing_shares(uses)
        core_time = f"{seconds(run['core_seconds'])} of core time"
        yield "Compute", f"{seconds(computed)} in {core_time}: {part}{kept}"
    # A run without a cluster has chunks and no tasks.
    if run["task_runs"] or not run["chunk_attempts"]:
        outcomes = ", ".join(f"{count(run[name])} {name}" for name in OUTCOMES if run[name])
        attempts = counted(run["task_runs"], "attempt") + (f": {outcomes}" if outcomes else "")
        yield "Tasks", f"{count(run['tasks'])}, {attempts}"
        if unattempted := query_unattempted(trace):
            text = ", ".join(f"{count(n)} {reason}" for reason, n in unattempted.items())
            yield "", f"{count(sum(unattempted.values()))} never attempted: {text}"
    if run["chunk_attempts"]:
        counts = {
            "failed": run["failed_chunks"] - run["skipped"],
            "skipped": run["skipped"],
            "from checkpoints": run["checkpointed_chunks"],
        }
        others = "".join(f", {count(n)} {name}" for name, n in counts.items() if n)
        attempts = counted(run["chunk_attempts"], "attempt")
        yield "Chunks", f"{count(run['chunks'])} done in {attempts}{others}"
    if run["skipped_files"]:
        yield "Files", f"{counted(run['skipped_files'], 'file')} skipped: events are missing"
    if run["chunk_attempts"]:
        speed = rate(run["events_per_second"], "events")
        wall = seconds(run["chunk_wall_seconds"])
        yield "Events", f"{count(run['events'])}, {speed} over {wall}"
        if run["merge_seconds"] and run["chunk_seconds"]:
            fraction = share(run["merge_seconds"] / run["chunk_seconds"])
            text = f"{seconds(run['merge_seconds'])}, {fraction} of the time of chunks"
            yield "Merging", text
    sizes = {
        "results": run["output_bytes"],
        "read": run["bytes_read"],
        "peak memory of all workers": run["peak_memory_bytes"],
    }
    if known := [f"{byte_size(n)} {name}" for name, n in sizes.items() if n is not None]:
        yield "Data", ", ".join(known)
