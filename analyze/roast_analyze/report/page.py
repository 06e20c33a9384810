"""The page: gathered data and figures in, one HTML text out.

:class:`Page` is the whole context of the template ``page.html.j2``; the template computes
nothing. The page loads nothing: its content security policy names the two scripts that
may run by their hashes, so that even markup that got past the escaping could not act.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import shlex
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.io import to_json

from roast_analyze.figures import chunks as chunk_figures
from roast_analyze.figures import load as load_figures
from roast_analyze.figures import palette
from roast_analyze.figures import prefixes as prefix_figures
from roast_analyze.figures import samples as sample_figures
from roast_analyze.figures import timeline as timeline_figures
from roast_analyze.figures.labels import visible
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report import flame as flame_graphs
from roast_analyze.report import quantities as q
from roast_analyze.report import sentences, tables
from roast_analyze.report.tables import Field, Table
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from roast_analyze.report.data import Listing, ReportData, Run

_SPENT_QUERY: Final = (
    "SELECT core_seconds, sum(task_runs.compute_seconds) FILTER (outcome = 'memory') "
    "AS kept, sum(task_runs.compute_seconds) FILTER (outcome <> 'memory') AS wasted, "
    "sum(task_runs.transfer_seconds) AS transfer, sum(deserialize_seconds) AS "
    "deserialize, sum(disk_seconds) AS disk FROM run, task_runs GROUP BY core_seconds"
)
_SPENT_ON_CHUNKS_QUERY: Final = (
    "SELECT core_seconds, sum(chunks.compute_seconds) FILTER (outcome = 'memory') AS kept, "
    "sum(chunks.compute_seconds) FILTER (outcome <> 'memory') AS wasted "
    "FROM run, chunks GROUP BY core_seconds"
)
_PROFILE_HINT: Final = "dask.config.set({'distributed.worker.profile.enabled': True})"
_RECORD_HINT: Final = 'with roast_recorder.record(client, "trace.jsonl"): …'


@dataclass(frozen=True)
class Tile:
    """A headline number: what, how much, and what stands small below it."""

    label: str
    value: str
    hint: str
    tone: str = ""


@dataclass(frozen=True)
class Share:
    """A part of the time spent.

    Parameters
    ----------
    name : str
    seconds : float
    text, percent : str
        The same in words; no percentage for what isn't a part of the core time.
    fraction : float
        Part of the bar, 0 for what isn't a part of the core time.
    colour : str
        As CSS writes it.
    """

    name: str
    seconds: float
    text: str
    percent: str
    fraction: float
    colour: str


@dataclass(frozen=True)
class Plot:
    """A figure of the page.

    Parameters
    ----------
    name : str
        Identity within the page, and name of a download.
    title : str
    spoken : str
        What a screen reader says it is.
    figure : str
        Plotly's JSON, safe to stand in a script element.
    height_px : int
    note : str
        What is left out, if anything.
    query, command : str
        What gives its data, in SQL and in a terminal.
    """

    name: str
    title: str
    spoken: str
    figure: Markup
    height_px: int
    note: str
    query: str
    command: str


@dataclass(frozen=True)
class Section:
    """A section: what it says, figures and tables; or why there is nothing to show."""

    name: str
    title: str
    nav: str
    sentences: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    flame: flame_graphs.Flame | None = None
    empty: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Verdict:
    """The headline: two sentences, the tiles, the bar of time spent, how whole the trace is."""

    done: str
    went: str
    whole: bool
    wholeness: str
    tiles: tuple[Tile, ...]
    spent: tuple[Share, ...]
    spent_sentence: str
    spent_query: str


@dataclass(frozen=True)
class Page:
    """Everything that the template needs."""

    title: str
    trace_name: str
    started: str
    lasted: str
    made_with: str
    command: str
    verdict: Verdict
    sections: tuple[Section, ...]
    style: Markup
    script: Markup
    policy: str
    plotly_gzip_base64: Markup


def build(data: ReportData, *, title: str | None = None) -> Page:
    """Lay out what was gathered.

    Parameters
    ----------
    data : ReportData
    title : str, optional
        Heading; the trace's name if not given.
    """
    script, (library, library_hash) = _asset("report.js") + _asset("flame.js"), _plotly()
    hashes = f"'sha256-{_sha256(script)}' 'sha256-{library_hash}'"
    name = visible(data.trace_name)
    return Page(
        title=visible(title) if title else name,
        trace_name=name,
        started=q.instant(data.run.start_t, data.recording.utc_offset_seconds),
        lasted=q.seconds(data.run.wall_seconds),
        made_with=f"roast {_roast_version()}, trace schema "
        f"{visible(data.recording.schema_version or 'unknown')} (reads {SCHEMA_VERSION})",
        command=f"roast-analyze {shlex.quote(name)} --html",
        verdict=_verdict(data),
        sections=_sections(data),
        style=Markup(_asset("report.css") + _asset("flame.css")),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
        policy=(
            f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        ),
        plotly_gzip_base64=Markup(library),  # noqa: S704 - base64
    )


def render(page: Page) -> str:
    """Write the page as HTML."""
    return _templates().get_template("page.html.j2").render(page=page)


def script_json(figure: Figure) -> Markup:
    r"""Write a figure as JSON that can stand in a script element.

    No ``<`` is left, so that nothing in it can close the element or open a comment; the
    escapes are JSON's own, so that it reads back as it was. NaN becomes null.
    """
    text = to_json(figure, engine="json", validate=False)
    for sign in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - escaped just above


def _sections(data: ReportData) -> tuple[Section, ...]:
    axis = TimeAxis(data.run.start_t or 0.0, data.run.stop_t or 0.0)
    colours = palette.by_rank(data.prefixes.rows["prefix"].to_list())
    return (
        _timeline(data, axis, colours),
        _chunks(data, axis),
        _workers(data, axis),
        _tasks(data, colours),
        _inside(data),
        _memory(data, axis),
        _scheduler(data, axis),
        _failures(data),
        _environment(data),
        _loss(data),
    )


def _verdict(data: ReportData) -> Verdict:
    return Verdict(
        done=sentences.what_was_done(data),
        went=sentences.how_it_went(data),
        whole=data.loss.total == 0,
        wholeness=sentences.wholeness(data),
        tiles=_tiles(data),
        spent=_spent(data),
        spent_sentence=sentences.time_spent(data),
        spent_query=_SPENT_QUERY if data.run.task_runs else _SPENT_ON_CHUNKS_QUERY,
    )


def _tiles(data: ReportData) -> tuple[Tile, ...]:
    run = data.run
    offered, unit = q.core_time(run.core_seconds)
    bad = run.failures
    tiles = [
        Tile(
            "Wall time", q.seconds(run.wall_seconds), f"busy for {q.seconds(run.busy_seconds)}"
        ),
        Tile(
            "Workers",
            q.count(run.peak_workers),
            _most_at_once(run),
        ),
        Tile(unit.capitalize(), offered, f"{q.share(run.core_efficiency)} of them computing"),
        Tile("Tasks", q.count(run.tasks), _outcomes(data)),
    ]
    if run.chunk_attempts:
        read = "" if run.bytes_read is None else f"; {q.byte_size(run.bytes_read)} read"
        tiles += [
            Tile(
                "Chunks", q.count(run.chunks), f"of {q.counted(run.chunk_attempts, 'attempt')}"
            ),
            Tile("Events", q.count(run.events), f"in finished chunks{read}"),
            Tile("Events per second", _rounded(run.events_per_second), "of the whole cluster"),
        ]
    tiles += [
        Tile("Results", q.byte_size(run.output_bytes), "size of all task results"),
        Tile("Peak memory", q.byte_size(run.peak_memory_bytes), "all workers together"),
        Tile(
            "Failures",
            q.count(bad),
            "listed below" if bad else "none",
            "bad" if bad else "good",
        ),
        Tile(
            "Trace",
            "whole" if data.loss.total == 0 else "not whole",
            f"{q.counted(data.recording.records, 'record')}",
            "good" if data.loss.total == 0 else "bad",
        ),
    ]
    return tuple(tiles)


def _most_at_once(run: Run) -> str:
    seen = f"; {q.count(run.workers)} seen in all" if run.workers > run.peak_workers else ""
    return f"at once, with {q.counted(run.peak_nthreads, 'thread')}{seen}"


def _rounded(value: float | None) -> str:
    return q.count(value) if value is None or value >= 100 else q.number(value)


def _outcomes(data: ReportData) -> str:
    run = data.run
    parts = [(run.memory, "well"), (run.erred, "failed"), (run.retried, "retried")]
    parts += [(run.lost, "lost"), (run.rescheduled, "rescheduled")]
    parts += [(run.cancelled, "cancelled"), (run.unfinished, "unfinished")]
    told = ", ".join(f"{q.count(n)} {word}" for n, word in parts if n)
    return f"attempts: {told}" if told else "no attempts"


def _spent(data: ReportData) -> tuple[Share, ...]:
    """Share out the core time between computing and not; list what went on beside it.

    A task that has seceded from its thread computes beside those that have not, so that
    computing can exceed the core time; then its own sum is shared out.
    """
    spent = data.time_spent
    computing = spent.kept_seconds + spent.wasted_seconds
    rest = max((data.run.core_seconds or 0.0) - computing, 0.0)
    of_cores = (
        ("computing, result kept", spent.kept_seconds, palette.RANKED[0]),
        ("computing, result not kept", spent.wasted_seconds, palette.FAILURE),
        ("idle, waiting and other", rest, "var(--idle)"),
    )
    beside = (
        ("transfer", spent.transfer_seconds, palette.ACTIVITY["transfer"]),
        ("deserialising", spent.deserialize_seconds, palette.ACTIVITY["deserialize"]),
        ("disk", spent.disk_seconds, palette.ACTIVITY["disk"]),
    )
    whole = computing + rest
    return tuple(
        Share(name, part, q.seconds(part), q.share(part / whole), part / whole, colour)
        for name, part, colour in of_cores
        if whole and part > 0
    ) + tuple(
        Share(f"beside computing: {name}", part, q.seconds(part), "", 0.0, colour)
        for name, part, colour in beside
        if whole and part > 0
    )


def _timeline(data: ReportData, axis: TimeAxis, colours: dict[str | None, str]) -> Section:
    section = Section("timeline", "What ran where, and when", "Timeline")
    view = "task_runs" if data.run.task_runs else "chunks"
    if data.task_runs.is_empty():
        return _empty(section, "No task ran while this was recorded.")
    if view == "chunks":
        colours = palette.by_rank(data.datasets.rows["dataset"].to_list())
    drawn = timeline_figures.timeline(data.task_runs, data.workers.rows, axis, colours)
    plot = Plot(
        name="timeline",
        title="Tasks on the threads of the workers",
        spoken=f"Timeline: {drawn.lanes} lanes over {q.seconds(axis.span_seconds)}, "
        f"{drawn.runs} task attempts, {drawn.marks} of them marked as failed.",
        figure=script_json(drawn.figure),
        height_px=drawn.figure.layout.height,
        note=sentences.timeline_left_out(drawn, _view(data, view)),
        query=f"SELECT * FROM {view} ORDER BY processing_t",  # noqa: S608 - one of two names
        command=_view(data, view),
    )
    return _with(section, sentences.timeline(data, drawn), plots=(plot,))


def _scheduler(data: ReportData, axis: TimeAxis) -> Section:
    section = Section("scheduler", "The scheduler", "Scheduler")
    load = data.concurrency
    if load.is_empty() or not load["transitions_per_second"].sum():
        return _empty(
            section, "No transition was recorded: there was no scheduler, or it had no task."
        )
    figure = load_figures.scheduler(load, axis)
    plot = Plot(
        name="scheduler",
        title="What the scheduler had to do",
        spoken="Over time: transitions a second, tasks that waited, and the slowest event "
        "loop of a worker.",
        figure=script_json(figure),
        height_px=figure.layout.height,
        note="",
        query="SELECT t, seconds, queued + no_worker AS ready, waiting FROM concurrency; "
        "SELECT t FROM transitions; "
        "SELECT t, event_loop_interval_seconds FROM worker_samples",
        command=_view(data, "concurrency"),
    )
    return _with(section, sentences.scheduler(data), plots=(plot,))


def _chunks(data: ReportData, axis: TimeAxis) -> Section:
    section = Section("chunks", "Chunks of coffea", "Chunks")
    if data.chunks.total == 0:
        return _empty(
            section,
            "No chunks: no coffea work items were seen in this run. They are recorded without "
            "a change to the processor when a coffea Runner works on the cluster meanwhile.",
            _RECORD_HINT,
        )
    command = _view(data, "chunks")
    names = data.datasets.rows["dataset"].to_list()
    drawn = chunk_figures.chunk_seconds(data.chunk_points, names, axis)
    plot = Plot(
        name="chunk-seconds",
        title="Time by size, and over the run",
        spoken=f"Scatter plots of {drawn.drawn} attempts at chunks: compute time against "
        "events, and against when they were sent to a worker.",
        figure=script_json(drawn.figure),
        height_px=drawn.figure.layout.height,
        note=sentences.chunks_left_out(drawn, command),
        query="SELECT * FROM chunks",
        command=command,
    )
    told = (
        sentences.chunks(data),
        sentences.chunk_time(data),
        sentences.merging(data),
        sentences.slow(data),
        sentences.branches(data),
        *sentences.costs(data),
    )
    shown = (
        _table(data, "datasets", "By dataset", data.datasets, _DATASETS),
        _table(data, "costs", "What a chunk costs by its size", data.costs, _COSTS),
        _table(data, "files", "By file", data.files, _FILES),
        _table(data, "branches", "By branch", data.branches, _BRANCHES),
        _table(data, "sections", "By named part", data.sections, _SECTIONS),
        _table(data, "chunks", "Attempts at chunks", data.chunks, _CHUNKS),
    )
    return _with(
        section,
        *filter(None, told),
        plots=(plot,),
        # Branches and named parts are there only if they were measured.
        tables=tuple(table for table in shown if table.rows),
    )


def _workers(data: ReportData, axis: TimeAxis) -> Section:
    section = Section("workers", "Workers", "Workers")
    if data.workers.total == 0:
        return _empty(section, "No worker was seen while this was recorded.")
    shown = _table(data, "workers", "Worker processes", data.workers, _WORKERS)
    plots = () if data.busy.is_empty() else (_busy(data, axis),)
    return _with(section, sentences.workers(data), plots=plots, tables=(shown,))


def _busy(data: ReportData, axis: TimeAxis) -> Plot:
    figure = load_figures.busy(data.busy, data.concurrency, axis)
    rows = data.busy["row"].n_unique()
    return Plot(
        name="busy",
        title="How busy each worker was",
        spoken=f"A map of {q.counted(rows, 'row')} of workers over "
        f"{q.counted(data.concurrency.height, 'stretch', 'stretches')} of time: the stronger "
        "the colour, the more of their threads' time was computing.",
        figure=script_json(figure),
        height_px=figure.layout.height,
        note=sentences.workers_put_together(data, rows, _view(data, "utilisation")),
        query="FROM utilisation",
        command=_view(data, "utilisation"),
    )


def _tasks(data: ReportData, colours: dict[str | None, str]) -> Section:
    section = Section("tasks", "Kinds of task", "Tasks")
    if data.prefixes.total == 0:
        alone = " Without a cluster, chunks are no tasks." if data.chunks.total else ""
        return _empty(section, f"No task was seen while this was recorded.{alone}")
    figure = prefix_figures.prefix_seconds(data.prefixes.rows, colours)
    plot = Plot(
        name="prefix-seconds",
        title="Time by prefix",
        spoken=f"Bar chart of the total time of {data.prefixes.total} task prefixes.",
        figure=script_json(figure),
        height_px=figure.layout.height,
        note="",
        query=data.prefixes.query,
        command=_view(data, "prefixes"),
    )
    shown = [_table(data, "prefixes", "Prefixes", data.prefixes, _PREFIXES)]
    if data.roles.total:
        shown.insert(0, _table(data, "roles", "What they do for coffea", data.roles, _ROLES))
    return _with(section, sentences.tasks(data), plots=(plot,), tables=tuple(shown))


def _inside(data: ReportData) -> Section:
    section = Section("inside", "Inside tasks", "Inside tasks")
    if data.profiles.stacks.is_empty():
        return _empty(
            section,
            "No profile is in this trace, so that it is not known what the code of the tasks "
            "was at. Profiles are recorded, unless they are left out of the kinds to record, "
            "when Dask's profiler is on as the workers start:",
            _PROFILE_HINT,
        )
    graph = flame_graphs.build(
        data.profiles,
        start_t=data.run.start_t or 0.0,
        names={
            row["worker"]: timeline_figures.lane_label(row)
            for row in data.workers.rows.iter_rows(named=True)
        },
        command=_view(data, "profile_stacks"),
    )
    shown = _table(data, "functions", "By function, whole run", data.functions, _FUNCTIONS)
    told = _with(section, sentences.inside(data, graph), tables=(shown,))
    return replace(told, flame=graph)


def _memory(data: ReportData, axis: TimeAxis) -> Section:
    section = Section("memory", "Memory and CPU", "Memory & CPU")
    if data.cluster_samples.is_empty():
        every = q.seconds(data.recording.sample_interval_seconds or 1.0)
        return _empty(
            section,
            f"The workers were never sampled: none was there, or the recording was shorter "
            f"than the interval between samples ({every}). A shorter one:",
            'roast_recorder.record(client, "trace.jsonl", sample_interval_seconds=0.2)',
        )
    workers = data.workers.rows
    names = {
        row["worker"]: timeline_figures.lane_label(row) for row in workers.iter_rows(named=True)
    }
    samples = (data.cluster_samples, data.worker_samples, names, axis)
    plots = tuple(
        Plot(
            name=name,
            title=title,
            spoken=f"{title}: of the cluster above, of each worker below.",
            figure=script_json(figure),
            height_px=figure.layout.height,
            note=note,
            query="SELECT * FROM cluster_samples; SELECT * FROM worker_samples",
            command=_view(data, "worker_samples"),
        )
        for name, title, figure, note in (
            ("memory", "Memory over time", sample_figures.memory(*samples), ""),
            ("cpu", "CPU over time", sample_figures.cpu(*samples), sentences.cpu(data)),
        )
    )
    return _with(section, sentences.memory(data), plots=plots)


def _failures(data: ReportData) -> Section:
    section = Section("failures", "Failures and events", "Failures")
    told = [sentences.failures(data)]
    shown = []
    if data.failures.total:
        failures = _table(
            data,
            "failures",
            "Failures",
            data.failures,
            _FAILURES,
            more=("exception", "traceback"),
        )
        shown.append(failures)
    if data.events.total:
        told.append(sentences.events(data))
        shown.append(_table(data, "topics", "Events by topic", data.topics, _TOPICS))
        shown.append(_table(data, "events", "Events", data.events, _EVENTS))
    else:
        told.append("No Dask event was recorded.")
    return _with(section, *told, tables=tuple(shown))


def _environment(data: ReportData) -> Section:
    section = Section("environment", "Environment", "Environment")
    if data.environment.total == 0:
        return _empty(section, "No facts about software and machines were recorded.")
    shown = _table(data, "environment", "Recorded facts", data.environment, _ENVIRONMENT)
    return _with(section, sentences.environment(data), tables=(shown,))


def _loss(data: ReportData) -> Section:
    section = Section("loss", "What is lost", "Loss")
    if data.loss.total == 0:
        return _empty(section, sentences.wholeness(data))
    shown = _table(data, "loss", "Ways in which the trace is not whole", data.loss, _LOSS)
    return _with(section, sentences.wholeness(data), tables=(shown,))


_DATASETS: Final = (
    Field("dataset", "dataset"),
    Field("files", "files", "count"),
    Field("chunks", "chunks", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("compute_share", "of all", "share"),
    Field("events_per_second", "rate per thread", "rate"),
    Field("bytes_per_second", "bytes per thread", "byte_rate"),
    Field("median_compute_seconds", "median chunk", "seconds"),
    Field("max_compute_seconds", "longest chunk", "seconds"),
    Field("spread", "spread", "ratio"),
    Field("open_seconds", "open", "seconds"),
    Field("process_seconds", "processor", "seconds"),
    Field("read_seconds", "reading", "seconds"),
    Field("cpu_seconds", "CPU", "seconds"),
    Field("wait_seconds", "waiting", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("byte_share", "of the files", "share"),
    Field("branch_share", "of the branches", "share"),
    Field("compression_ratio", "compression", "ratio"),
    Field("checkpointed_chunks", "from checkpoints", "count", optional=True),
    Field("output_bytes", "results", "bytes"),
)
_COSTS: Final = (
    Field("dataset", "dataset"),
    Field("chunks", "chunks", "count"),
    Field("sizes", "sizes", "count"),
    Field("method", "model"),
    Field("fixed_seconds", "fixed", "seconds"),
    Field("fixed_error_seconds", "±", "seconds"),
    Field("seconds_per_event", "an event", "seconds"),
    Field("r2", "r²", "ratio"),
    Field("relative_error", "off by", "share"),
    Field("outliers", "left out", "count"),
    Field("fixed_share", "fixed, of all", "share"),
    Field("median_events", "events now", "count"),
    Field("recommended_events", "better", "count"),
    Field("note", "because"),
)
_FILES: Final = (
    Field("filename", "file"),
    Field("dataset", "dataset"),
    Field("treename", "tree"),
    Field("chunks", "chunks", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("compute_share", "of all", "share"),
    Field("events_per_second", "rate per thread", "rate"),
    Field("bytes_per_second", "bytes per thread", "byte_rate"),
    Field("slowness", "slowness", "ratio"),
    Field("spread", "spread", "ratio"),
    Field("max_compute_seconds", "longest chunk", "seconds"),
    Field("open_seconds", "open", "seconds"),
    Field("read_seconds", "reading", "seconds"),
    Field("wait_seconds", "waiting", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("byte_share", "of the file", "share"),
    Field("branch_share", "of the branches", "share"),
    Field("compression_ratio", "compression", "ratio"),
    Field("source", "kind"),
    Field("workers", "workers", "count"),
)
_BRANCHES: Final = (
    Field("branch", "branch"),
    Field("dataset", "dataset"),
    Field("chunk_attempts", "attempts", "count"),
    Field("read_seconds", "reading", "seconds"),
    Field("read_share", "of all", "share"),
    Field("compressed_bytes", "in the files", "bytes"),
    Field("byte_share", "of all", "share"),
    Field("uncompressed_bytes", "decompressed", "bytes"),
    Field("compression_ratio", "compression", "ratio"),
)
_SECTIONS: Final = (
    Field("name", "name"),
    Field("dataset", "dataset"),
    Field("passes", "passes", "count"),
    Field("failures", "failures", "trouble"),
    Field("seconds", "time", "seconds"),
    Field("compute_share", "of all computing", "share"),
    Field("mean_seconds", "mean", "seconds"),
    Field("max_seconds", "longest", "seconds"),
    Field("cpu_seconds", "CPU", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("mean_memory_delta_bytes", "memory, mean", "bytes"),
    Field("max_memory_delta_bytes", "memory, most", "bytes"),
)
_CHUNKS: Final = (
    Field("filename", "file"),
    Field("dataset", "dataset"),
    Field("entry_start", "first entry", "count"),
    Field("entry_stop", "end entry", "count"),
    Field("outcome", "outcome", "outcome"),
    Field("attempt", "attempt", "count"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("events_per_second", "rate", "rate"),
    Field("process_seconds", "processor", "seconds"),
    Field("open_seconds", "open", "seconds"),
    Field("read_seconds", "reading", "seconds"),
    Field("cpu_seconds", "CPU", "seconds"),
    Field("wait_seconds", "waiting", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("requests", "requests", "count"),
    Field("columns_read", "columns", "count"),
    Field("branches_read", "branches", "count"),
    Field("memory_peak_bytes", "peak memory", "bytes"),
    Field("output_bytes", "result", "bytes"),
    Field("worker", "worker"),
    Field("exception", "exception"),
    Field("key", "key"),
)
_WORKERS: Final = (
    Field("name", "name"),
    Field("worker", "address"),
    Field("host", "host"),
    Field("nthreads", "threads", "count"),
    Field("task_runs", "attempts", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("chunks", "chunks", "count", optional=True),
    Field("failed_chunks", "failed chunks", "trouble", optional=True),
    Field("events", "events", "count", optional=True),
    Field("events_per_second", "rate per thread", "rate"),
    Field("bytes_per_second", "bytes per thread", "byte_rate"),
    Field("slowness", "slowness", "ratio"),
    Field("spread", "spread", "ratio"),
    Field("max_chunk_seconds", "longest chunk", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("output_bytes", "results", "bytes"),
    Field("peak_memory_bytes", "peak memory", "bytes"),
    Field("memory_limit_bytes", "limit", "bytes"),
    Field("added_t", "arrived", "since"),
    Field("removed_t", "left", "since"),
    Field("removal_reason", "why it left"),
    Field("server_id", "process identity"),
)
_PREFIXES: Final = (
    Field("prefix", "prefix"),
    Field("tasks", "tasks", "count"),
    Field("task_runs", "attempts", "count"),
    Field("memory", "well", "count"),
    Field("erred", "failed", "trouble"),
    Field("retried", "retried", "trouble", optional=True),
    Field("lost", "lost", "trouble", optional=True),
    Field("cancelled", "cancelled", "count", optional=True),
    Field("unfinished", "unfinished", "count", optional=True),
    Field("compute_seconds", "compute", "seconds"),
    Field("mean_compute_seconds", "mean", "seconds"),
    Field("median_compute_seconds", "median", "seconds"),
    Field("max_compute_seconds", "longest", "seconds"),
    Field("transfer_seconds", "transfer", "seconds"),
    Field("deserialize_seconds", "deserialise", "seconds", optional=True),
    Field("disk_seconds", "disk", "seconds", optional=True),
    Field("output_bytes", "results", "bytes"),
)
_ROLES: Final = (
    Field("role", "role"),
    Field("prefixes", "prefixes"),
    Field("tasks", "tasks", "count"),
    Field("task_runs", "attempts", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("compute_seconds", "compute", "seconds"),
    Field("compute_share", "of all", "share"),
    Field("mean_compute_seconds", "mean", "seconds"),
    Field("max_compute_seconds", "longest", "seconds"),
    Field("transfer_seconds", "transfer", "seconds"),
    Field("deserialize_seconds", "deserialise", "seconds", optional=True),
    Field("disk_seconds", "disk", "seconds", optional=True),
    Field("output_bytes", "results", "bytes"),
)
_FUNCTIONS: Final = (
    Field("function", "function"),
    Field("self_seconds", "itself", "seconds"),
    Field("self_share", "of all", "share"),
    Field("total_seconds", "with what it calls", "seconds"),
    Field("total_share", "of all", "share"),
    Field("samples", "samples", "count"),
)
_FAILURES: Final = (
    Field("t", "at", "since"),
    Field("what", "what", "outcome"),
    Field("exception", "exception"),
    Field("detail", "detail"),
    Field("worker", "worker"),
    Field("prefix", "prefix"),
    Field("attempt", "attempt", "count"),
    Field("key", "key"),
)
_TOPICS: Final = (
    Field("topic", "topic"),
    Field("events", "events", "count"),
    Field("first_t", "first", "since"),
    Field("last_t", "last", "since"),
)
_EVENTS: Final = (
    Field("t", "at", "since"),
    Field("topic", "topic"),
    Field("worker", "worker"),
    Field("payload", "payload"),
)
_ENVIRONMENT: Final = (
    Field("section", "section"),
    Field("name", "name"),
    Field("value", "value"),
)
_LOSS: Final = (
    Field("reason", "reason"),
    Field("records", "records", "count"),
    Field("detail", "detail"),
    Field("t", "at", "since"),
)

#: How the rows of a table were chosen when there are more.
_CHOSEN: Final = {
    "chunks": "what failed, then the slowest",
    "branches": "those that took the longest to read",
    "sections": "those that took the longest",
    "costs": "those with the most chunks",
    "workers": "those that came first",
    "functions": "those that took the most themselves",
    "failures": "the first",
    "events": "the first",
    "topics": "those with the most events",
    "environment": "the first by name",
    "loss": "those with the most records",
}


def _table(
    data: ReportData,
    name: str,
    title: str,
    listing: Listing,
    shown: tuple[Field, ...],
    *,
    more: tuple[str, str] | None = None,
) -> Table:
    return tables.build(
        name,
        title,
        listing,
        shown,
        comments=data.comments.get(listing.view, {}),
        command=_view(data, listing.view),
        start_t=data.run.start_t or 0.0,
        more=more,
        left_out=_CHOSEN.get(name, "those with the most compute time"),
    )


def _with(
    section: Section,
    *told: str,
    plots: tuple[Plot, ...] = (),
    tables: tuple[Table, ...] = (),
) -> Section:
    return Section(section.name, section.title, section.nav, told, plots, tables)


def _empty(section: Section, why: str, hint: str = "") -> Section:
    return Section(section.name, section.title, section.nav, empty=why, hint=hint)


def _view(data: ReportData, view: str) -> str:
    return f"roast-analyze view {shlex.quote(visible(data.trace_name))} {view}"


def _roast_version() -> str:
    try:
        return version("roast-trace")
    except PackageNotFoundError:
        return "(not installed)"


@cache
def _asset(name: str) -> str:
    return files("roast_analyze.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _plotly() -> tuple[str, str]:
    """Give plotly.js as base64 of gzip, and the hash under which it may run."""
    script = (
        files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    )
    packed = gzip.compress(script.encode(), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii"), _sha256(script)


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("roast_analyze.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
