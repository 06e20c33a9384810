"""The page of a comparison: data in, sections out."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from markupsafe import Markup

from roast_analyze.figures import palette
from roast_analyze.figures.bars import Part
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import limit_fits
from roast_analyze.report import findings
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.comparison import figures, reasons, sentences
from roast_analyze.report.comparison.data import DIFFERENCE, RATIO, seconds_in, value_in
from roast_analyze.report.listing import Listing
from roast_analyze.report.section import Plot, Section
from roast_analyze.report.shell import Page, roast_version
from roast_analyze.report.tables import Field
from roast_analyze.safe_text import named, visible

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from roast_analyze.report.comparison.data import Comparison, TraceTotals
    from roast_analyze.report.tables import Kind, Table

#: Maximum number of paths of a trace, and of traces, in a command.
_NAMES: Final = 6
#: Maximum number of reasons in sentences, of several traces.
_REASONS: Final = 12

#: The columns of numbers have ratios to the first trace, except those that are shares, and
#: counts of what is lost.
_TIME: Final = columns(
    "trace wall_seconds busy_seconds peak_nthreads core_seconds kept_seconds wasted_seconds "
    "idle_seconds core_efficiency",
    descriptions={
        "kept_seconds": "Compute time of attempts whose result was kept.",
        "wasted_seconds": "Compute time of attempts whose result was not kept.",
        "idle_seconds": "Core time in which no task computed.",
    },
)
_WORK: Final = columns(
    "trace tasks chunks events events_per_second bytes_read (output_bytes) "
    "(peak_memory_bytes) failures lost_records? completeness",
    {"events_per_second": "event rate"},
)
_WITHOUT_RATIO: Final = {"trace", "core_efficiency", "lost_records", "completeness"}
#: View to the title of its table, the noun for its rows, and the columns that name them.
_GROUPS: Final = {
    "prefixes": ("By prefix", "prefix", columns("prefix")),
    "datasets": ("By dataset", "dataset", columns("dataset")),
    "files": ("By file", "file", columns("filename dataset")),
}
_WALL: Final = "Contribution to the difference in wall time; all terms add up to it."
_TERMS: Final[tuple[Field, ...]] = (
    Field("name", "term"),
    Field("base", "first trace"),
    Field("new", "this trace"),
    Field("wall_seconds", "wall time", "difference", help=_WALL),
    Field("core_seconds", "core time", "difference", help=_WALL.replace("wall", "core")),
    Field("noise_seconds", "noise", "seconds",
          help="Difference in wall time up to which a term is regarded as noise."),
    Field("significant", "significant"),
)  # fmt: skip
_STEPS: Final = (
    Field("step", "cause and prefix"),
    Field("base", "first trace", "seconds", group="path"),
    Field("new", "this trace", "seconds", group="path"),
    Field("wall_seconds", "wall time", "difference", group="path",
          help="Difference; all of them add up to the difference in wall time."),
)  # fmt: skip
_TRACES: Final = columns(
    "trace recorded dask_version python_version recorder_version records command"
)
_CORE_TIME: Final = (
    "SELECT category, use, prefix, dataset, sum(seconds) FROM core_time GROUP BY ALL"
)
_PATH: Final = "SELECT cause, prefix, sum(seconds) FROM critical_path GROUP BY ALL"
_FINDINGS: Final = "SELECT trace_id, id, entity, core_seconds FROM findings"


def build(comparison: Comparison, *, title: str | None = None) -> Page:
    """Build the page of at least one trace; the default title is the names of the traces."""
    first, *others = map(named, comparison.labels)
    names = f"{first} and {q.count(len(others))} more"
    if len(others) <= 1:
        names = " and ".join((first, *others))
    about = Markup(
        "Comparison of {}. Numbers marked × are ratios to the first trace, <bdi>{}</bdi>."
    )
    return Page(
        title=visible(title) if title else names,
        about=about.format(q.counted(len(comparison.traces), "trace"), first),
        made_with=roast_version(),
        command=f"roast-analyze {_few([_paths(t) for t in comparison.traces])} --html"
        f"{comparison.options}",
        sections=(
            _verdict(comparison),
            _reasons(comparison),
            _over_time(comparison),
            _compute(comparison),
            _facts(comparison),
            _traces(comparison),
        ),
    )


def _verdict(comparison: Comparison) -> Section:
    plots = []
    if any(trace.run.core_seconds for trace in comparison.traces):
        runs = [trace.run for trace in comparison.traces]
        parts = (
            Part("computing, result kept", [run.kept_seconds or 0.0 for run in runs],
                 palette.RANKED[0]),
            Part("computing, result not kept", [run.wasted_seconds for run in runs],
                 palette.FAILURE),
            Part("idle, waiting and other", [run.idle_seconds or 0.0 for run in runs],
                 palette.BACKGROUND),
        )  # fmt: skip
        figure = figures.stacked(
            [trace.short_label for trace in comparison.traces],
            [part for part in parts if any(part.seconds)],
            "core time (s)",
        )
        query = comparison.totals.query
        plots.append(
            _plot(comparison, figure, "core-time", "Use of the core time", "bar", query, "run")
        )
    tables = [
        comparison.table(
            name,
            name.capitalize(),
            comparison.totals,
            tuple(
                field
                if field.name in _WITHOUT_RATIO
                else replace(field, times=field.name + RATIO)
                for field in shown
            ),
        )
        for name, shown in (("time", _TIME), ("work", _WORK))
    ]
    text = (
        sentences.verdict(comparison),
        sentences.core_time(comparison),
        sentences.completeness(comparison),
        sentences.left_out(comparison),
        sentences.time_ranges(comparison),
    )
    return Section("verdict", "Overview", "Overview", text, plots, tables)


def _reasons(comparison: Comparison) -> Section:
    """Explain the difference of each trace to the first one."""
    section = Section("reasons", "Reasons for the difference", "Reasons")
    base, *others = [(trace.label, trace.amounts) for trace in comparison.traces]
    if not others:
        return replace(section, empty="There is only one trace.")
    each = [reasons.Reasons.of([base], other) for other in others]
    limit = None if len(each) == 1 else max(_REASONS // len(each), 1)
    text = [
        sentence
        for one in each
        for sentence in (reasons.overview(one), *reasons.sentences(one, limit))
    ]
    title, shown, rows = "Terms", _TERMS, reasons.frame(each[0])
    if len(each) > 1:
        title, rows = "Terms of the wall time", reasons.side_by_side(each)
        seconds = _by_trace(
            comparison, rows.columns[1:], "difference", group="wall", help=_WALL
        )
        shown = (_TERMS[0], *seconds)
    listing = Listing("core_time", _CORE_TIME, rows, rows.height)
    command = (
        f"roast-analyze why {_paths(comparison.traces[0])} {_paths(comparison.traces[1])}"
        f"{comparison.options}"
    )
    tables = [replace(comparison.table("reasons", title, listing, shown), command=command)]
    if len(each) == 1:
        rows = reasons.path_frame(each[0])
        listing = Listing("critical_path", _PATH, rows, rows.height)
        tables.append(comparison.table("path", "Critical path", listing, _STEPS))
    if any(trace.findings for trace in comparison.traces):
        tables.append(_findings(comparison))
    text += sentences.chunk_costs(comparison)
    return replace(section, sentences=(*text, reasons.noise(each[0])), tables=tables)


def _findings(comparison: Comparison) -> Table:
    """Compare what the findings of each trace cost; a change is that of the last trace."""
    *bases, after = [trace.findings for trace in comparison.traces]
    changes = findings.changes(bases, after)
    names = [f"core_seconds_{number}" for number in range(len(comparison.traces))]
    rows = pl.DataFrame(
        {
            "id": [change.id for change in changes],
            "entity": [change.entity for change in changes],
            "change": [change.word for change in changes],
            **{
                name: pl.Series(
                    [
                        cost and cost.seconds
                        for change in changes
                        for cost in [trace.findings.get((change.id, change.entity))]
                    ],
                    dtype=pl.Float64,
                )
                for name, trace in zip(names, comparison.traces, strict=True)
            },
        }
    )
    fields = (
        *columns("id entity"),
        Field("change", "change"),
        *_by_trace(
            comparison, names, "seconds", group="core", help="Thread time that it cost."
        ),
    )
    listing = Listing("findings", _FINDINGS, rows, rows.height)
    return comparison.table("findings", "Findings by core time", listing, fields)


def _over_time(comparison: Comparison) -> Section:
    traces = comparison.traces
    # Each trace begins at zero, so that they can be compared.
    axis = TimeAxis(0.0, max(trace.wall_seconds for trace in traces))
    load = [_panel(trace, trace.load) for trace in traces]
    samples = [_panel(trace, trace.samples) for trace in traces]
    peak = max(trace.run.peak_memory_bytes or 0 for trace in traces)
    unit, nbytes = ("GiB", 1024.0**3) if peak >= 1024**3 else ("MiB", 1024.0**2)
    threads = ("nthreads", "threads", 1.0)
    executing = [("executing", "executing", 1.0), threads]
    cpu = [("cpu_percent", "CPU usage", 100.0), threads]
    memory = [("memory_bytes", "process memory", nbytes)]
    has_limit = any(limit_fits(trace.samples) for trace in traces)
    if has_limit:
        memory.append(("memory_limit_bytes", "limit", nbytes))
    plots = [
        _plot(
            comparison, figure, name, title, "curve",
            f"SELECT trace_id, t, {names} FROM {view}",  # noqa: S608 - texts from below
            view,
        )
        for name, title, figure, names, view in (
            ("computing", "Executing tasks", figures.over_time(load, axis, executing, "tasks"),
             "executing, nthreads", "concurrency"),
            ("cpu", "CPU usage (cores)", figures.over_time(samples, axis, cpu, "cores"),
             "cpu_percent, nthreads", "cluster_samples"),
            ("memory", f"Memory ({unit})",
             figures.over_time(samples, axis, memory, unit, largest=True),
             "memory_bytes, memory_limit_bytes", "cluster_samples"),
        )
    ]  # fmt: skip
    text = (sentences.over_time(comparison, with_limit=has_limit), sentences.memory(comparison))
    return Section("over-time", "Over time", "Over time", text, plots)


def _panel(trace: TraceTotals, frame: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """Return a frame with times since the start of its trace, and the name of its panel."""
    return trace.short_label, frame.with_columns(pl.col("t") - (trace.run.start_t or 0.0))


def _compute(comparison: Comparison) -> Section:
    section = Section("compute", "Compute time", "Compute time")
    text, plots, tables = [], [], []
    names = [seconds_in(trace.label) for trace in comparison.traces]
    first, *others = _by_trace(comparison, names, "seconds", group="seconds")
    difference = Field(
        DIFFERENCE,
        "difference",
        "difference",
        group="seconds",
        help="Largest difference from the first trace.",
    )
    seconds = (first, *(replace(f, times=f.name + RATIO) for f in others), difference)
    for view, (title, noun, (name, *more)) in _GROUPS.items():
        listing = comparison.groups[view]
        if listing.total == 0:
            continue
        text.append(sentences.difference(comparison, listing, noun))
        tables.append(comparison.table(view, title, listing, (name, *seconds, *more)))
        if view != "files":
            figure = figures.stacked(
                [trace.short_label for trace in comparison.traces],
                figures.largest_parts(listing.rows, noun, names),
                "time of all attempts (s)",
            )
            about = f"{noun}-seconds", f"Compute time by {noun}", "bar"
            plots.append(_plot(comparison, figure, *about, listing.query, view))
    if not tables:
        return replace(section, empty="None of these traces contains tasks or chunks.")
    return replace(section, sentences=text, plots=plots, tables=tables)


def _facts(comparison: Comparison) -> Section:
    section = Section("differences", "Differences in the environment", "Environment")
    text = sentences.facts(comparison)
    if comparison.facts.total == 0:
        return replace(section, empty=text)
    values = [value_in(trace.label) for trace in comparison.traces]
    fields = (*columns("section name", {"name": "fact"}), *_by_trace(comparison, values))
    table = comparison.table("differences", "Differing facts", comparison.facts, fields)
    return replace(section, sentences=(text,), tables=(table,))


def _traces(comparison: Comparison) -> Section:
    rows = pl.DataFrame(
        [
            {
                "trace": trace.label,
                "recorded": q.instant(trace.run.start_t, trace.recording.utc_offset_seconds),
                "dask_version": trace.recording.dask_version,
                "python_version": trace.recording.python_version,
                "recorder_version": trace.recording.recorder_version,
                "records": trace.recording.records,
                "command": f"roast-analyze {_paths(trace)} --html{trace.options}",
            }
            for trace in comparison.traces
        ]
    )
    query = "SELECT start_t, dask_version, python_version, records FROM trace_info"
    listing = Listing("trace_info", query, rows, rows.height)
    hint = (
        "The report of a single trace adds its timeline, chunks, workers, failures and "
        "profile; the last column contains the command that writes it."
    )
    table = comparison.table("traces", "Traces", listing, _TRACES)
    return Section("traces", "Traces", "Traces", sentences=(hint,), tables=(table,))


def _by_trace(
    comparison: Comparison, names: list[str], kind: Kind = "text", **settings: Any
) -> list[Field]:
    """Return a column for each trace; of fewer names, for the last traces."""
    headings = [named(trace.short_label, limit=32) for trace in comparison.traces]
    return [
        Field(name, heading, kind, **settings)
        for name, heading in zip(names, headings[-len(names) :], strict=True)
    ]


def _plot(
    comparison: Comparison,
    figure: Figure,
    name: str,
    title: str,
    mark: str,
    query: str,
    view: str,
) -> Plot:
    return Plot(
        figure,
        name=name,
        title=title,
        description=f"{title}: one {mark} per trace, on the same axes, for "
        f"{q.counted(len(comparison.traces), 'trace')}.",
        query=query,
        command=comparison.view_command(view),
    )


def _paths(trace: TraceTotals) -> str:
    return _few([shlex.quote(visible(name)) for name in trace.names])


def _few(names: list[str]) -> str:
    return " ".join(names[:_NAMES] + ["…"] * (len(names) > _NAMES))
