"""The summary of a trace in the terminal: facts, then tables of the most important rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from roast_analyze.commands.terminal import cell, table
from roast_analyze.report import time_ranges
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

    from roast_analyze.open.session import Session

_OUTCOMES: Final = (
    "memory", "erred", "retried", "lost", "rescheduled", "cancelled", "unfinished",
)  # fmt: skip

_LONG_TEXT_LIMIT: Final = 240


def _per_second(value: float | None) -> str:
    return count(value) if value is None or value >= 100 else number(value)


@dataclass(frozen=True)
class _Table:
    """A table of the summary.

    Parameters
    ----------
    title : str
    query : str
        Returns all rows; the first `limit` are shown.
    columns : tuple of (str, callable)
        Heading, right-aligned if it begins with ``>``, and formatter of each column.
    limit : int
    source : str
        Where to find the other rows.
    optional : str
        Heading of a column that is left out if all its values are null.
    """

    title: str
    query: str
    columns: tuple[tuple[str, Callable[[Any], object]], ...]
    limit: int
    source: str
    optional: str = ""


_TABLES: Final = (
    _Table(
        "Losses",
        "SELECT reason, records, detail FROM loss",
        (("loss", cell), (">records", count), ("detail", cell)),
        8,
        "roast-analyze check",
    ),
    _Table(
        "Tasks by prefix",
        "SELECT prefix, task_runs, memory, erred, retried + lost, compute_seconds, "
        "mean_compute_seconds, max_compute_seconds FROM prefixes",
        (
            ("prefix", cell),
            (">attempts", count),
            (">done", count),
            (">erred", count),
            (">retried", count),
            (">compute", seconds),
            (">mean", seconds),
            (">max", seconds),
        ),
        12,
        "the view prefixes",
    ),
    _Table(
        "Datasets (events/s per thread)",
        "SELECT dataset, files, chunks, failed_attempts, events, compute_seconds, "
        "events_per_second FROM datasets",
        (
            ("dataset", cell),
            (">files", count),
            (">chunks", count),
            (">failed", count),
            (">events", count),
            (">compute", seconds),
            (">events/s", _per_second),
        ),
        12,
        "the view datasets",
    ),
    _Table(
        "Chunk cost (sizes in events)",
        "SELECT dataset, fixed_seconds, 1000 * seconds_per_event, relative_error, "
        "median_events, recommended_events, note FROM chunk_costs WHERE method IS NOT NULL "
        "UNION ALL "
        "SELECT CASE WHEN count(*) = 1 THEN any_value(dataset) "
        "ELSE count(*) || ' datasets' END, NULL, NULL, NULL, NULL, NULL, note "
        "FROM chunk_costs WHERE method IS NULL GROUP BY note",
        (
            ("dataset", cell),
            (">fixed", seconds),
            (">per 1,000", seconds),
            (">error", share),
            (">size", count),
            (">recommended", count),
            ("reason", cell),
        ),
        6,
        "the view chunk_costs",
    ),
    _Table(
        "Workers",
        "SELECT name, worker, nthreads, task_runs, compute_seconds, compute_seconds / "
        "nullif(nthreads * (coalesce(removed_t, stop_t) - coalesce(added_t, start_t)), 0), "
        "peak_memory_bytes, removed_t - start_t "
        "FROM workers, (SELECT start_t, stop_t FROM run) ORDER BY compute_seconds DESC",
        (
            ("name", cell),
            ("worker", cell),
            (">threads", count),
            (">tasks", count),
            (">compute", seconds),
            (">busy", share),
            (">peak mem.", byte_size),
            (">left after", seconds),
        ),
        16,
        "the view workers",
        optional=">left after",
    ),
    _Table(
        "Slow files and workers",
        "SELECT relative_duration, 'file', chunks, filename FROM files WHERE is_slow "
        "UNION ALL SELECT relative_duration, 'worker', chunks, worker FROM workers "
        "WHERE is_slow ORDER BY relative_duration DESC",
        ((">× median", "{:.2f}".format), ("what", cell), (">chunks", count), ("name", cell)),
        5,
        "relative_duration in the views files and workers",
    ),
    _Table(
        "Slowest attempts",
        "SELECT compute_seconds, outcome, worker, key FROM task_runs "
        "WHERE compute_seconds > 0 ORDER BY compute_seconds DESC LIMIT 5",
        ((">compute", seconds), ("outcome", cell), ("worker", cell), ("key", cell)),
        5,
        "",
    ),
    _Table(
        "Slowest chunks",
        "SELECT compute_seconds, events_per_second, [entry_start, entry_stop], dataset, "
        "filename FROM chunks WHERE compute_seconds > 0 ORDER BY compute_seconds DESC LIMIT 5",
        (
            (">compute", seconds),
            (">events/s", _per_second),
            (">entries", lambda entries: "–".join(map(count, entries))),
            ("dataset", cell),
            ("file", cell),
        ),
        5,
        "",
    ),
    _Table(
        "Slowest files",
        "SELECT events_per_second, compute_seconds, events, failed_attempts, filename "
        "FROM files WHERE events_per_second IS NOT NULL ORDER BY events_per_second LIMIT 5",
        (
            (">events/s", _per_second),
            (">compute", seconds),
            (">events", count),
            (">failed", count),
            ("file", cell),
        ),
        5,
        "",
    ),
    _Table(
        "Branches by read time",
        "SELECT sum(read_seconds) AS reading, sum(read_share), sum(compressed_bytes) AS size, "
        "sum(byte_share), branch FROM branches GROUP BY branch "
        "ORDER BY reading DESC NULLS LAST, size DESC NULLS LAST, branch",
        (
            (">read time", seconds),
            (">share", share),
            (">size", byte_size),
            (">share", share),
            ("branch", cell),
        ),
        6,
        "the view branches",
    ),
    _Table(
        "Sections",
        "SELECT seconds, compute_share, executions, mean_seconds, dataset, name "
        "FROM section_totals",
        (
            (">time", seconds),
            (">share", share),
            (">executions", count),
            (">mean", seconds),
            ("dataset", cell),
            ("name", cell),
        ),
        8,
        "the view section_totals",
    ),
    _Table(
        "Failures",
        "SELECT f.t - run.start_t, what, f.worker, "
        "concat_ws(': ', key, coalesce(exception, detail)) "
        "FROM failures AS f, (SELECT start_t FROM run) AS run ORDER BY f.t",
        (
            (">time", seconds),
            ("what", cell),
            ("worker", cell),
            ("task and error", partial(cell, limit=_LONG_TEXT_LIMIT)),
        ),
        8,
        "the view failures",
    ),
)


def summarize(trace: Session) -> Iterator[RenderableType]:
    """Yield the parts of the summary: the facts, and each table that has rows."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("Trace", cell(trace.path.name or trace.path))
    for name, text in _facts(trace):
        grid.add_row(Text(name), cell(text))
    yield grid
    for definition in _TABLES:
        if rows := trace.sql(definition.query).fetchall():
            yield ""
            yield _render(definition, rows)


def _render(definition: _Table, rows: list[tuple[Any, ...]]) -> RenderableType:
    columns = [
        (i, heading, write)
        for i, (heading, write) in enumerate(definition.columns)
        if heading != definition.optional or any(row[i] is not None for row in rows)
    ]
    shown = table(
        [heading for _, heading, _ in columns],
        [[write(row[i]) for i, _, write in columns] for row in rows[: definition.limit]],
        definition.title,
    )
    rest = len(rows) - definition.limit
    return (
        shown if rest <= 0 else Group(shown, f"… and {count(rest)} more: {definition.source}")
    )


def _facts(trace: Session) -> Iterator[tuple[str, str]]:
    run = trace.view("run").to_dicts()[0]
    first = trace.view("trace_info").to_dicts()[0]
    for time_range in trace.time_ranges[:1]:
        omissions = time_ranges.describe_omissions(time_range)
        yield "Only", f"{time_ranges.describe(time_range)}. {omissions}"
    start = instant(run["start_t"], first["utc_offset_seconds"])
    yield "Recorded", f"{seconds(run['wall_seconds'])} from {start}"
    if first["dask_version"]:
        yield "Versions", f"dask {first['dask_version']}, Python {first['python_version']}"
    losses, records = trace.sql(
        "SELECT count(*), coalesce(sum(records), 0)::BIGINT FROM loss"
    ).fetchall()[0]
    missing = f", at least {counted(records, 'record')} missing" if records else ""
    yield "Complete", f"no{missing}, see below" if losses else "yes"
    if run["workers"]:
        threads = counted(run["peak_nthreads"], "thread")
        yield (
            "Workers",
            (
                f"{count(run['workers'])}, at most {count(run['peak_workers'])} at once "
                f"with {threads}"
            ),
        )
    if run["compute_seconds"]:
        core_time = f"{seconds(run['core_seconds'])} of core time"
        efficiency = share(run["core_efficiency"])
        yield "Compute", f"{seconds(run['compute_seconds'])} in {core_time}: {efficiency}"
    if run["task_runs"] or not run["chunk_attempts"]:
        outcomes = ", ".join(f"{count(run[name])} {name}" for name in _OUTCOMES if run[name])
        attempts = counted(run["task_runs"], "attempt")
        yield (
            "Tasks",
            f"{count(run['tasks'])}, {attempts}" + (f": {outcomes}" if outcomes else ""),
        )
    if run["chunk_attempts"]:
        counts = {
            "failed": run["failed_chunks"] - run["skipped"],
            "skipped": run["skipped"],
            "from checkpoints": run["checkpointed_chunks"],
        }
        others = "".join(f", {count(n)} {name}" for name, n in counts.items() if n)
        attempts = counted(run["chunk_attempts"], "attempt")
        yield "Chunks", f"{count(run['chunks'])} done in {attempts}{others}"
        speed = rate(run["events_per_second"], "events")
        wall = seconds(run["chunk_wall_seconds"])
        yield "Events", f"{count(run['events'])}, {speed} over {wall}"
        if run["merge_seconds"] and run["chunk_seconds"]:
            fraction = share(run["merge_seconds"] / run["chunk_seconds"])
            yield (
                "Merging",
                f"{seconds(run['merge_seconds'])}, {fraction} of the time of chunks",
            )
    sizes = {
        "results": run["output_bytes"],
        "read": run["bytes_read"],
        "peak memory of all workers": run["peak_memory_bytes"],
    }
    if known := [f"{byte_size(n)} {name}" for name, n in sizes.items() if n is not None]:
        yield "Data", ", ".join(known)
