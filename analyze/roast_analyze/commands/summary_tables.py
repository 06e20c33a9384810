"""The summary of a trace in the terminal: facts, then tables of the most important rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.table import Table
from rich.text import Text

from roast_analyze.algorithms.outcomes import OUTCOMES
from roast_analyze.commands.explain import finding_lines
from roast_analyze.commands.terminal import (
    cell,
    leading_sentences,
    line_count,
    natural_width,
    table,
    width,
)
from roast_analyze.open.concurrent_queries import run_concurrently
from roast_analyze.report import findings, time_ranges, unexplained, wall_time
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
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roast_analyze.open.concurrent_queries import Submit
    from roast_analyze.open.session import ColumnsAndRows, Session


def _per_second(value: float | None) -> str:
    return count(value) if value is None or value >= 100 else number(value)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _long_text(value: object) -> str:
    return one_line(_text(value), 240)


#: Formatters of columns of text, which are left-aligned.
_TEXTS: Final = (_text, _long_text)


@dataclass(frozen=True)
class TableOfRows:
    """A table of the summary."""

    title: str
    #: Returns all rows; its column names are the headings.
    query: str
    #: Formatter of each column.
    formats: tuple[Callable[[Any], str], ...]
    #: Number of rows that are shown, and where to find the others.
    limit: int = 5
    source: str = ""
    #: Headings of columns that are left out if all their values are null or zero.
    optional: tuple[str, ...] = ()
    #: Number of rows of the short summary; 0 leaves the table out.
    short: int = 0
    #: Whether the short summary has the table even if it does not fit.
    is_essential: bool = False
    #: Headings of numbers that a narrow terminal lacks if names fit without them, in the order
    #: in which they are left out.
    yields: tuple[str, ...] = ()
    #: Whether an essential table is left out before findings are.
    can_yield: bool = False


#: Lines up to which the short summary has tables that it need not have; facts that it leaves
#: out; and its last part.
_SHORT_LINES: Final = 33
_DETAILS: Final = ("Versions", "Merging")
_MORE: Final = ("", "With --all: tables of workers, slowest attempts and others.")

#: Number of findings of the short summary.
SHORT_FINDINGS: Final = 3


class _Layout(NamedTuple):
    """A way to lay out the short summary."""

    #: Number of findings with their sentences; the others are named.
    findings: int = SHORT_FINDINGS
    #: Whether sentences after the first are left out if they take more lines.
    is_cut: bool = True
    #: Whether datasets are shown even if they do not fit.
    has_datasets: bool = False
    #: Names of facts that are left out.
    without: tuple[str, ...] = _DETAILS


#: Layouts of the short summary, the first of which with at most 40 lines is taken.
_MOST_LINES: Final = 40
_LAYOUTS: Final = (
    _Layout(is_cut=False, has_datasets=True),
    _Layout(has_datasets=True),
    _Layout(findings=2, has_datasets=True),
    _Layout(),
    _Layout(findings=2),
    _Layout(findings=1),
    _Layout(findings=1, without=(*_DETAILS, "Data")),
)

#: What is known to be missing, of every summary.
LOSSES: Final = TableOfRows(
    "Losses",
    "SELECT reason AS loss, records, detail FROM loss",
    (_text, count, _text),
    8,
    "roast-analyze check",
    optional=("records",),
    short=4,
    is_essential=True,
)

#: The most important tables come first. `_cluster_size` has some columns of `run`, which takes
#: longest of all views.
_TABLES: Final = (
    LOSSES,
    TableOfRows(
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
        (seconds, count, _text, _text, _long_text),
        8,
        "the view failures",
        optional=("times",),
        short=3,
    ),
    TableOfRows(
        "Datasets (events/s per thread)",
        "SELECT dataset, files, chunks, failed_attempts AS failed, events, "
        'compute_seconds AS compute, events_per_second AS "events/s" FROM datasets',
        (_text, count, count, count, count, seconds, _per_second),
        12,
        "the view datasets",
        short=4,
        is_essential=True,
        can_yield=True,
        yields=("files", "compute", "events"),
    ),
    TableOfRows(
        # Of a single program, the facts above say as much.
        "Sessions (--session limits the summary to one)",
        "SELECT row_number() OVER (ORDER BY sessions.start_t, client)::VARCHAR AS session, "
        "coalesce(program, name, client) AS program, user_name AS user, "
        'sessions.start_t - size.start_t AS "from", sessions.stop_t - size.start_t AS "to", '
        "tasks FROM sessions INNER JOIN _cluster_size AS size USING (trace_id) "
        "QUALIFY count(*) FILTER (tasks > 0) OVER () > 1 ORDER BY sessions.start_t, client",
        (_text, _text, _text, seconds, seconds, count),
        8,
        "the view sessions",
        optional=("user",),
        short=4,
    ),
    TableOfRows(
        "Inside tasks (shares of the compute time)",
        'SELECT kind, arg_max(detail, (seconds, detail)) AS "largest part", '
        "sum(seconds) AS time, time / sum(time) OVER () AS share "
        "FROM (SELECT kind, detail, sum(seconds) AS seconds FROM busy_time GROUP BY ALL) "
        "WHERE EXISTS (FROM busy_time WHERE samples > 0) "
        "GROUP BY kind ORDER BY time DESC, kind",
        (_text, _text, seconds, share),
        6,
        "the view busy_time",
        short=3,
        yields=("share",),
    ),
    TableOfRows(
        # Both, because a slow file can look like a slow worker, and the reverse.
        "Slow files and workers",
        "SELECT printf('%.2f ± %.2f', relative_duration, relative_duration_error) "
        'AS "× median", what, chunks, name FROM ('
        "SELECT *, 'file' AS what, filename AS name FROM files WHERE is_slow UNION ALL BY NAME "
        "SELECT workers.* EXCLUDE (name), 'worker' AS what, shown AS name "
        "FROM workers LEFT JOIN _worker_names USING (trace_id, worker) WHERE is_slow"
        ") ORDER BY relative_duration DESC",
        (str, _text, count, _text),
        5,
        "relative_duration in the views files and workers",
        short=3,
        yields=("chunks",),
    ),
    TableOfRows(
        # Read times are null unless they were measured; then the size decides.
        "Branches by read time",
        'SELECT sum(read_seconds) AS "read time", sum(read_share) AS share, '
        "sum(compressed_bytes) AS size, sum(byte_share) AS share, branch FROM branches "
        "GROUP BY branch ORDER BY 1 DESC NULLS LAST, 3 DESC NULLS LAST, branch",
        (seconds, share, byte_size, share, _text),
        6,
        "the view branches",
        short=2,
    ),
    TableOfRows(
        "Tasks by prefix",
        "SELECT prefix, roles AS role, task_runs AS attempts, memory AS done, "
        "erred, retried, lost, compute_seconds AS compute, mean_compute_seconds AS mean, "
        "max_compute_seconds AS max FROM prefixes",
        (_text, _text, count, count, count, count, count, seconds, seconds, seconds),
        12,
        "the view prefixes",
        optional=("role", "erred", "retried", "lost"),
        short=4,
        yields=("max", "mean", "done"),
    ),
    TableOfRows(
        # Datasets whose cost is unknown are counted by the reason.
        "Chunk cost (sizes in events)",
        'SELECT dataset, fixed_seconds AS fixed, 1000 * seconds_per_event AS "per 1,000", '
        "relative_error AS error, median_events AS size, recommended_events AS recommended, "
        "note AS reason FROM chunk_costs WHERE is_known UNION ALL "
        "SELECT CASE WHEN count(*) = 1 THEN any_value(dataset) "
        "ELSE count(*) || ' datasets' END, NULL, NULL, NULL, NULL, NULL, note "
        "FROM chunk_costs WHERE NOT is_known GROUP BY note",
        (_text, seconds, seconds, share, count, count, _text),
        6,
        "the view chunk_costs",
    ),
    TableOfRows(
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
        (_text, count, count, seconds, share, byte_size, seconds),
        16,
        "the view workers",
        optional=("left after",),
        yields=("tasks", "peak mem."),
    ),
    TableOfRows(
        "Slowest attempts",
        'SELECT compute_seconds AS compute, events_per_second AS "events/s", outcome, '
        'shown AS worker, what AS "chunk or task" FROM ('
        "SELECT trace_id, compute_seconds, events_per_second, outcome, worker, "
        "_chunk_place(dataset, filename, entry_start, entry_stop) AS what FROM chunks "
        "UNION ALL BY NAME SELECT trace_id, compute_seconds, outcome, worker, key AS what "
        "FROM task_runs ANTI JOIN chunks USING (trace_id, key)"
        ") LEFT JOIN _worker_names USING (trace_id, worker) "
        "WHERE compute_seconds > 0 ORDER BY compute_seconds DESC, what LIMIT 5",
        (seconds, _per_second, _text, _text, _text),
        optional=("events/s",),
        yields=("events/s",),
    ),
    TableOfRows(
        # By rate, because large files take long without being slow.
        "Slowest files",
        'SELECT events_per_second AS "events/s", compute_seconds AS compute, events, '
        "failed_attempts AS failed, filename AS file FROM files "
        "WHERE events_per_second IS NOT NULL ORDER BY events_per_second LIMIT 5",
        (_per_second, seconds, count, count, _text),
    ),
    TableOfRows(
        "Sections",
        "SELECT seconds AS time, compute_share AS share, executions, mean_seconds AS mean, "
        "dataset, name FROM section_totals",
        (seconds, share, count, seconds, _text, _text),
        8,
        "the view section_totals",
    ),
    TableOfRows(
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
        (_text, count, seconds, seconds, share, share),
        6,
        "the views span_totals and span_idle",
    ),
    TableOfRows(
        # Only what ran in a task took time of a thread.
        "Activities",
        "SELECT activity, context, sum(delta) AS time, "
        "time / (SELECT sum(threads.seconds) FROM _task_threads AS threads "
        "WHERE context = 'execute') "
        'AS "share of thread time" '
        "FROM _activity_deltas WHERE unit = 'seconds' GROUP BY activity, context "
        "ORDER BY time DESC, context, activity",
        (_text, _text, seconds, share),
        6,
        "the views activities and fine_metrics",
    ),
)


@dataclass(frozen=True)
class Summary:
    """What a summary states about a trace, before it is laid out.

    Attributes
    ----------
    name : str
        Name and label of the trace.
    facts : sequence of (str, str)
        Names and texts. A fact without a name continues the one before it.
    findings : tuple of Finding
        All findings, the largest saving first.
    rest : str
        What they do not explain; empty if that is little.
    tables : sequence of (TableOfRows, sequence of str, sequence of tuple)
        Tables that have rows, with their columns and all rows.
    """

    name: str
    facts: Sequence[tuple[str, str]]
    findings: tuple[findings.Finding, ...]
    rest: str
    tables: Sequence[tuple[TableOfRows, Sequence[str], Sequence[tuple[Any, ...]]]]


def select(trace: Session, name: str | None = None, *, is_complete: bool = False) -> Summary:
    """Return what the complete or the short summary of a trace states.

    ``name`` is that of the trace; by default the name of its file.
    """
    definitions = _TABLES if is_complete else [it for it in _TABLES if it.short]
    facts, found, rest, tables = run_concurrently(trace, partial(_query, trace, definitions))
    [(label,)] = trace.rows("SELECT string_agg(DISTINCT label, ', ') FROM trace_info")
    name = name or trace.path.name or str(trace.path)
    return Summary(
        name=f"{name} ({label})" if label else name,
        facts=facts,
        findings=found,
        rest=rest,
        tables=[
            (definition, *columns_and_rows)
            for definition, columns_and_rows in zip(definitions, tables, strict=True)
            if columns_and_rows[1]
        ],
    )


def summarize(
    trace: Session, name: str | None = None, *, is_complete: bool = False
) -> Iterator[RenderableType]:
    """Yield the parts of the summary: facts, findings, and tables that have rows.

    ``name`` is as for :func:`select`. The short summary has the first findings, lost records
    and datasets, and other tables as far as they fit. In a narrow terminal, sentences are
    shortened and findings are named only, until it has at most 40 lines.
    """
    summary = select(trace, name, is_complete=is_complete)
    if is_complete:
        yield from _head(summary, _Layout(findings.SHOWN, is_cut=False, without=()))
        for definition, columns, rows in summary.tables:
            yield from _table(definition, columns, rows, is_short=False)
        return
    tables = [(table[0], _table(*table, is_short=True)) for table in summary.tables]
    for layout in _LAYOUTS:
        head = list(_head(summary, layout))
        essential = [
            definition
            for definition, _ in tables
            if definition.is_essential and (layout.has_datasets or not definition.can_yield)
        ]
        parts = [part for it, table in tables if it in essential for part in table]
        if line_count(*head, *parts, *_MORE) <= _MOST_LINES:
            break
    yield from head
    lines = line_count(*head)
    for definition, parts in tables:
        height = line_count(*parts)
        if definition in essential or lines + height <= _SHORT_LINES:
            lines += height
            yield from parts
    yield from _MORE


def _head(summary: Summary, layout: _Layout) -> Iterator[RenderableType]:
    """Yield the facts and findings of a summary."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("Trace", cell(summary.name))
    for fact, text in summary.facts:
        if fact in layout.without:
            continue
        is_sentence = layout.is_cut and not fact
        grid.add_row(Text(fact), cell(leading_sentences(text, 2) if is_sentence else text))
    if not summary.findings:
        grid.add_row("Findings", cell(summary.rest, limit=1000))
    yield grid
    for finding in summary.findings[: layout.findings]:
        yield ""
        yield from finding_lines(finding, most_lines=3 if layout.is_cut else None)
    if others := more_findings(summary, layout.findings):
        yield ""
        yield cell(f"{others} roast-analyze explain prints all.", limit=1000)
    if summary.findings and summary.rest:
        yield ""
        yield cell(summary.rest, limit=1000)


def more_findings(summary: Summary, limit: int) -> str:
    """Return a sentence that names the findings after the first ones; empty without any."""
    others = summary.findings[limit:]
    titles = "; ".join(f"{finding.title} ({finding.severity})" for finding in others)
    return f"{counted(len(others), 'more finding')}: {titles}." if others else ""


def _table(
    definition: TableOfRows,
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    is_short: bool,
) -> list[RenderableType]:
    """Return the parts of a table with its first rows, and how many there are."""
    limit = definition.short if is_short else definition.limit
    title = first_rows_title(definition, rows) if is_short else definition.title
    headings, shown = written(definition, names, rows[:limit])
    for place in range(len(definition.yields) + 1):
        left_out = definition.yields[:place]
        kept = [i for i, heading in enumerate(headings) if heading[1:] not in left_out]
        part = [[row[i] for i in kept] for row in shown]
        if natural_width([headings[i] for i in kept], part) <= width():
            headings, shown = [headings[i] for i in kept], part
            break
    parts: list[RenderableType] = ["", table(headings, shown, title)]
    if len(rows) > limit and not is_short:
        parts.append(f"… and {count(len(rows) - limit)} more: {definition.source}")
    return parts


def first_rows_title(definition: TableOfRows, rows: Sequence[Sequence[Any]]) -> str:
    """Return the title of a table of the short summary, with the number of all rows."""
    if len(rows) <= definition.short:
        return definition.title
    return f"{definition.title}, {definition.short} of {count(len(rows))}"


def written(
    definition: TableOfRows, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[list[str], list[list[str]]]:
    """Return the headings of a table, with ``>`` before those of numbers, and its cells."""
    columns = [
        (i, name if write in _TEXTS else f">{name}", write)
        for i, (name, write) in enumerate(zip(names, definition.formats, strict=True))
        if name not in definition.optional or any(row[i] for row in rows)
    ]
    cells = [[write(row[i]) for i, _, write in columns] for row in rows]
    return [heading for _, heading, _ in columns], cells


def _query(
    trace: Session, definitions: Sequence[TableOfRows], submit: Submit
) -> tuple[list[tuple[str, str]], tuple[findings.Finding, ...], str, list[ColumnsAndRows]]:
    """Return the facts, the findings and what they leave, and columns and rows of tables."""
    explaining = submit(findings.query, trace)
    tables = [trace.columns_and_rows(definition.query) for definition in definitions]
    [losses] = [
        rows
        for definition, (_, rows) in zip(definitions, tables, strict=True)
        if definition is LOSSES
    ]
    # The core time is computed for the findings, too.
    facts = list(_facts(trace, losses))
    found = explaining.result()
    rest = unexplained.describe(unexplained.query(trace, found), has_findings=bool(found))
    return facts, found, rest, tables


def _dicts(trace: Session, view: str) -> list[dict[str, Any]]:
    """Return the rows of a view, without importing Polars."""
    names, rows = trace.columns_and_rows(f"FROM {view}")
    return [dict(zip(names, row, strict=True)) for row in rows]


#: Tasks that failed for good, by prefix and type of the error, the most frequent first.
_FAILED: Final = (
    "SELECT prefix, _exception_type(exception) AS error, count(*) FROM task_runs "
    "WHERE outcome = 'erred' GROUP BY ALL ORDER BY count(*) DESC, prefix, error LIMIT 1"
)


def _facts(
    trace: Session, losses: Sequence[tuple[str, int | None, str]]
) -> Iterator[tuple[str, str]]:
    [run, *_] = _dicts(trace, "run")
    # Several segments of one run have the same versions.
    segments = _dicts(trace, "trace_info")
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
    if run["erred"]:
        [(prefix, error, tasks), *_] = trace.rows(_FAILED)
        such = "" if tasks == run["erred"] else ", such as"
        of = f"{such} of {prefix}" if prefix else ""
        why = f": {error or 'an unknown error'}" + (f" ({count(tasks)})" if such else "")
        yield "Failed", one_line(f"{counted(run['erred'], 'task')}{of}{why}", 200)
    if first["dask_version"]:
        yield "Versions", f"dask {first['dask_version']}, Python {first['python_version']}"
    # Not all losses are counted in records.
    surplus = sum(records or 0 for reason, records, _ in losses if reason == SURPLUS)
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
        "peak memory of all workers together": run["peak_memory_bytes"],
    }
    if known := [f"{byte_size(n)} {name}" for name, n in sizes.items() if n is not None]:
        yield "Data", ", ".join(known)
