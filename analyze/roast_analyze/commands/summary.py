"""Say what a trace tells of a run: in the terminal, or as a report with --html.

Several traces are set side by side. For example:

    roast-analyze trace.jsonl.zst
    roast-analyze trace.jsonl.zst --html report.html
    roast-analyze trace.jsonl.zst --html --from 5m --to -90s
    roast-analyze before.jsonl.zst after.jsonl.zst --open
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.commands.progress import progress
from roast_analyze.commands.trace_args import STDIN, add_excerpt, add_reading, open_paths
from roast_analyze.errors import NotWritable, TraceError
from roast_analyze.open.discover import SUFFIXES, group_by_trace, trace_name
from roast_analyze.report import excerpts
from roast_analyze.report.quantities import (
    UNKNOWN,
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
    import argparse
    from collections.abc import Iterator

    from rich.console import RenderableType

    from roast_analyze.open.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "traces",
        metavar="TRACE",
        nargs="*",
        type=Path,
        help="a trace file, a folder of segments, or - for stdin; several are set side by side",
    )
    add_excerpt(parser)
    add_reading(parser)
    parser.add_argument(
        "--html",
        metavar="FILE",
        nargs="?",
        type=Path,
        const=True,
        help="write the report instead: one page that needs no network; if FILE is not "
        "given, next to the trace",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="write the report, and open it in the browser",
    )
    parser.add_argument("--title", help="heading of the report")


def run(options: argparse.Namespace) -> int:
    """Print the summary, or write the report; of several traces the comparison."""
    if not options.traces and isinstance(options.html, Path):
        # `--html trace.jsonl`: the only name that was given is the trace's.
        options.traces, options.html = [options.html], True
    if not options.traces:
        raise TraceError("name a trace: roast-analyze TRACE; --help says more")
    if options.open and options.html is None:
        options.html = True
    if options.title is not None and options.html is None:
        raise TraceError(f"--title {options.title!r} is for the report; add --html")
    traces = _told_apart(options.traces)
    if options.html is None:
        _print(traces, options)
    else:
        written = _write(traces, options)
        print(f"report: {written}", flush=True)
        if options.open:
            from roast_analyze.commands.browser import show

            show(written)
    return 0


def _told_apart(names: list[Path]) -> list[tuple[Path, ...]]:
    """Tell which traces were named; what comes from standard input is one."""
    if STDIN not in map(str, names):
        return group_by_trace(names)
    if len(names) > 1:
        raise TraceError(
            "what comes from stdin cannot be set beside other traces; write it to a file"
        )
    return [(names[0],)]


def _print(traces: list[tuple[Path, ...]], options: argparse.Namespace) -> None:
    from roast_analyze.commands.terminal import print_out

    if len(traces) > 1:
        from roast_analyze.commands.compare import parts
        from roast_analyze.report.comparison import gather

        print_out(*parts(gather(traces, partial(open_paths, options=options))))
        return
    with open_paths(traces[0], options) as trace:
        print_out(*_parts(trace))


# -- the report --------------------------------------------------------------------------


def _write(traces: list[tuple[Path, ...]], options: argparse.Namespace) -> Path:
    """Write the report where `html` says, or beside the first trace."""
    from roast_analyze.report import write_comparison, write_report

    target = options.html if isinstance(options.html, Path) else _beside(traces)
    _check_target(target, [name for name in options.traces if str(name) != STDIN])
    opener = partial(open_paths, options=options)
    try:
        if len(traces) > 1:
            return write_comparison(traces, target, title=options.title, opener=opener)
        with (
            opener(traces[0]) as trace,
            progress(trace.path.name, "making the report", is_told=False),
        ):
            return write_report(trace, target, title=options.title)
    except OSError as error:
        reason = error.strerror or error
        raise NotWritable(f"{str(target)!r} cannot be written: {reason}") from None


def _beside(traces: list[tuple[Path, ...]]) -> Path:
    """Name the report after the traces, without the ending that says how they are stored."""
    first, *others = (names[0] for names in traces)
    if str(first) == STDIN:
        raise TraceError("the trace comes from stdin; name the report: --html FILE")
    name = trace_name(first)
    if others:
        rest = trace_name(others[0]) if len(others) == 1 else f"{len(others)}-more"
        name = f"{name}-and-{rest}"
    return first.absolute().parent / f"{name}.html"


def _check_target(target: Path, traces: list[Path]) -> None:
    """Refuse early what could not be written after minutes of reading."""
    if target.is_dir():
        raise NotWritable(f"{str(target)!r} is a folder; name a file for the report")
    if not target.absolute().parent.is_dir():
        raise NotWritable(
            f"there is no folder {str(target.parent)!r} to write {target.name!r} to"
        )
    if target.name.endswith(SUFFIXES) and target.exists():
        raise NotWritable(
            f"{str(target)!r} is named like a trace; name the traces first, and then "
            "--html FILE"
        )
    from roast_analyze.output_paths import refuse_to_overwrite

    refuse_to_overwrite(traces, target)


# -- the summary -------------------------------------------------------------------------

#: Rows of each table; the views have the rest.
_PREFIXES: Final = 12
_DATASETS: Final = 12
_COSTS: Final = 6
_BRANCHES: Final = 6
_SECTIONS: Final = 8
_WORKERS: Final = 16
_SLOWEST: Final = 5
_FAILURES: Final = 8


def _parts(trace: Session) -> Iterator[RenderableType]:
    yield _headline(trace)
    for part in (
        _losses,
        _prefixes,
        _datasets,
        _costs,
        _workers,
        _slow,
        _slowest_runs,
        _slowest_chunks,
        _slowest_files,
        _branches,
        _sections,
        _failures,
    ):
        found = part(trace)
        if found is not None:
            yield ""
            yield found


def _headline(trace: Session) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from roast_analyze.commands.terminal import cell

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("Trace", cell(trace.path.name or trace.path))
    for name, text in _facts(trace):
        grid.add_row(Text(name), cell(text))
    return grid


def _facts(trace: Session) -> Iterator[tuple[str, str]]:
    run = trace.view("run").to_dicts()[0]
    first = trace.view("trace_info").to_dicts()[0]
    start = instant(run["start_t"], first["utc_offset_seconds"])
    for excerpt in trace.time_ranges[:1]:
        yield "Only", f"{excerpts.stretch(excerpt)}. {excerpts.left_out(excerpt)}"
    yield "Recorded", f"{seconds(run['wall_seconds'])} from {start}"
    if first["dask_version"]:
        yield "With", f"dask {first['dask_version']}, Python {first['python_version']}"
    yield "Whole", _wholeness(trace)
    if run["workers"]:
        most = f"{count(run['peak_workers'])} at a time"
        threads = counted(run["peak_nthreads"], "thread")
        yield "Workers", f"{count(run['workers'])}, at most {most} with {threads}"
    if run["compute_seconds"]:
        offered = f"{seconds(run['core_seconds'])} that the threads were there"
        efficiency = share(run["core_efficiency"])
        yield "Computing", f"{seconds(run['compute_seconds'])} of {offered}: {efficiency}"
    if run["task_runs"] or not run["chunk_attempts"]:
        attempts = counted(run["task_runs"], "attempt")
        yield "Tasks", f"{count(run['tasks'])}, {attempts}{_outcomes(run)}"
    if run["chunk_attempts"]:
        attempts = counted(run["chunk_attempts"], "attempt")
        yield "Chunks", f"{count(run['chunks'])} done in {attempts}{_chunk_outcomes(run)}"
        speed = rate(run["events_per_second"], "events")
        wall = seconds(run["chunk_wall_seconds"])
        yield "Events", f"{count(run['events'])}, {speed} over {wall}"
        if run["merge_seconds"] and run["chunk_seconds"]:
            weight = share(run["merge_seconds"] / run["chunk_seconds"])
            merging = seconds(run["merge_seconds"])
            yield "Merging", f"{merging} of computing, {weight} of what the chunks took"
    if sizes := _sizes(run):
        yield "Data", sizes


def _sizes(run: dict[str, Any]) -> str:
    sizes = {
        "results": run["output_bytes"],
        "read": run["bytes_read"],
        "peak memory of all workers": run["peak_memory_bytes"],
    }
    known = {what: size for what, size in sizes.items() if size is not None}
    return ", ".join(f"{byte_size(size)} {what}" for what, size in known.items())


def _outcomes(run: dict[str, Any]) -> str:
    names = ("memory", "erred", "retried", "lost", "rescheduled", "cancelled", "unfinished")
    parts = [f"{count(run[name])} {name}" for name in names if run[name]]
    return f": {', '.join(parts)}" if parts else ""


def _chunk_outcomes(run: dict[str, Any]) -> str:
    parts = {
        "came to nothing": run["failed_chunks"] - run["skipped"],
        "skipped": run["skipped"],
        "from checkpoints": run["checkpointed_chunks"],
    }
    return "".join(f", {count(number)} {what}" for what, number in parts.items() if number)


def _wholeness(trace: Session) -> str:
    losses, records = trace.sql(
        "SELECT count(*), coalesce(sum(records), 0)::BIGINT FROM loss"
    ).fetchall()[0]
    if not losses:
        return "yes"
    if not records:
        return "no, see below"
    missing = f"{counted(records, 'record')} {'is' if records == 1 else 'are'} missing"
    return f"no, at least {missing}, see below"


def _losses(trace: Session) -> RenderableType | None:
    rows = trace.sql("SELECT reason, records, detail FROM loss").fetchall()
    return _table(
        "Not whole",
        ["what is lost", ">records", "detail"],
        [(reason, count(records), detail) for reason, records, detail in rows],
        _FAILURES,
        "roast-analyze check",
    )


def _prefixes(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT prefix, task_runs, memory, erred, retried + lost, compute_seconds, "
        "mean_compute_seconds, max_compute_seconds FROM prefixes"
    ).fetchall()
    return _table(
        "Tasks by prefix",
        ["prefix", ">attempts", ">well", ">erred", ">again", ">compute", ">mean", ">max"],
        [
            (prefix, *map(count, numbers[:4]), *map(seconds, numbers[4:]))
            for prefix, *numbers in rows
        ],
        _PREFIXES,
        "the view prefixes",
    )


def _datasets(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT dataset, files, chunks, failed_attempts, events, compute_seconds, "
        "events_per_second FROM datasets"
    ).fetchall()
    return _table(
        "Datasets (events/s: of one thread)",
        ["dataset", ">files", ">chunks", ">failed", ">events", ">compute", ">events/s"],
        [
            (name, *map(count, numbers[:4]), seconds(numbers[4]), _per_second(numbers[5]))
            for name, *numbers in rows
        ],
        _DATASETS,
        "the view datasets",
    )


def _costs(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT dataset, fixed_seconds, 1000 * seconds_per_event, relative_error, "
        "median_events, recommended_events, note FROM chunk_costs WHERE method IS NOT NULL"
    ).fetchall()
    without = trace.sql(
        "SELECT CASE WHEN count(*) = 1 THEN any_value(dataset) "
        "ELSE count(*) || ' datasets' END, note FROM chunk_costs WHERE method IS NULL "
        "GROUP BY note ORDER BY count(*) DESC, note"
    ).fetchall()
    return _table(
        "What a chunk costs by its size",
        ["dataset", ">fixed", ">1,000 events", ">off by", ">events", ">better", "because"],
        [
            (name, seconds(fixed), seconds(more), share(off), count(now), count(better), note)
            for name, fixed, more, off, now, better, note in rows
        ]
        + [(name, *[UNKNOWN] * 5, note) for name, note in without],
        _COSTS,
        "the view chunk_costs",
    )


def _workers(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT name, worker, nthreads, task_runs, compute_seconds, compute_seconds / "
        "nullif(nthreads * (coalesce(removed_t, stop_t) - coalesce(added_t, start_t)), 0), "
        "peak_memory_bytes, removed_t - start_t "
        "FROM workers, (SELECT start_t, stop_t FROM run) ORDER BY compute_seconds DESC"
    ).fetchall()
    left = any(row[-1] is not None for row in rows)
    columns = ["name", "worker", ">threads", ">tasks", ">compute", ">busy", ">memory"]
    return _table(
        "Workers (memory: at its peak)",
        [*columns, ">left after"] if left else columns,
        [
            (name, worker, count(threads), count(runs), seconds(compute), share(busy))
            + ((byte_size(memory), seconds(after)) if left else (byte_size(memory),))
            for name, worker, threads, runs, compute, busy, memory, after in rows
        ],
        _WORKERS,
        "the view workers",
    )


def _slow(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT relative_duration, 'file, on every worker', chunks, filename FROM files WHERE is_slow "
        "UNION ALL SELECT relative_duration, 'worker, on every file', chunks, worker FROM workers "
        "WHERE is_slow ORDER BY relative_duration DESC"
    ).fetchall()
    return _table(
        "Slow for themselves (times the median)",
        [">times", "what", ">chunks", "name"],
        [(f"{times:.2f}", what, count(chunks), name) for times, what, chunks, name in rows],
        _SLOWEST,
        "relative_duration in the views files and workers",
    )


def _slowest_runs(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT compute_seconds, outcome, worker, key FROM task_runs "
        "WHERE compute_seconds > 0 ORDER BY compute_seconds DESC LIMIT $n",
        {"n": _SLOWEST},
    ).fetchall()
    return _table(
        "Slowest attempts",
        [">compute", "outcome", "worker", "key"],
        [(seconds(compute), *rest) for compute, *rest in rows],
    )


def _slowest_chunks(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT compute_seconds, events_per_second, entry_start, entry_stop, dataset, filename "
        "FROM chunks WHERE compute_seconds > 0 ORDER BY compute_seconds DESC LIMIT $n",
        {"n": _SLOWEST},
    ).fetchall()
    return _table(
        "Slowest chunks",
        [">compute", ">events/s", ">entries", "dataset", "file"],
        [
            (seconds(compute), _per_second(speed), f"{count(start)}–{count(stop)}", *rest)
            for compute, speed, start, stop, *rest in rows
        ],
    )


def _slowest_files(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT events_per_second, compute_seconds, events, failed_attempts, filename "
        "FROM files WHERE events_per_second IS NOT NULL ORDER BY events_per_second LIMIT $n",
        {"n": _SLOWEST},
    ).fetchall()
    return _table(
        "Slowest files",
        [">events/s", ">compute", ">events", ">failed", "file"],
        [
            (_per_second(speed), seconds(compute), count(events), count(failed), filename)
            for speed, compute, events, failed, filename in rows
        ],
    )


def _branches(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT sum(read_seconds) AS reading, sum(read_share), sum(compressed_bytes) AS size, "
        "sum(byte_share), branch FROM branches GROUP BY branch "
        "ORDER BY reading DESC NULLS LAST, size DESC NULLS LAST, branch"
    ).fetchall()
    return _table(
        "Costliest branches",
        [">reading", ">of all", ">in files", ">of all", "branch"],
        [
            (seconds(reading), share(of_time), byte_size(size), share(of_bytes), branch)
            for reading, of_time, size, of_bytes, branch in rows
        ],
        _BRANCHES,
        "the view branches",
    )


def _sections(trace: Session) -> RenderableType | None:
    rows = trace.sql(
        "SELECT seconds, compute_share, executions, mean_seconds, dataset, name FROM section_totals"
    ).fetchall()
    return _table(
        "Named parts",
        [">time", ">of all", ">passes", ">mean", "dataset", "name"],
        [
            (seconds(total), share(part), count(passes), seconds(mean), *names)
            for total, part, passes, mean, *names in rows
        ],
        _SECTIONS,
        "the view section_totals",
    )


def _failures(trace: Session) -> RenderableType | None:
    from roast_analyze.commands.terminal import cell

    rows = trace.sql(
        "SELECT f.t - run.start_t, what, f.worker, key, exception, detail "
        "FROM failures AS f, (SELECT start_t FROM run) AS run ORDER BY f.t"
    ).fetchall()
    return _table(
        "Failures",
        [">after", "what", "worker", "task and error"],
        [
            (
                seconds(after),
                what,
                worker,
                cell(": ".join(filter(None, (key, exception or detail))), limit=240),
            )
            for after, what, worker, key, exception, detail in rows
        ],
        _FAILURES,
        "the view failures",
    )


def _table(
    title: str,
    columns: list[str],
    rows: list[Any],
    limit: int | None = None,
    rest: str = "",
) -> RenderableType | None:
    """Lay out the first rows; say where the rest is. None if there are no rows."""
    from rich.console import Group

    from roast_analyze.commands.terminal import table

    if not rows:
        return None
    shown = table(columns, rows[:limit], title)
    if limit is None or len(rows) <= limit:
        return shown
    return Group(shown, f"… and {count(len(rows) - limit)} more: {rest}")


def _per_second(value: float | None) -> str:
    return count(value) if value is None or value >= 100 else number(value)
