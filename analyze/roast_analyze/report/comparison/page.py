"""The page of a comparison: data in, HTML out.

:class:`ComparisonPage` is the context of the template ``comparison.html.j2``, which extends
that of a report.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.bars import Part
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import limit_fits
from roast_analyze.report import findings, tables
from roast_analyze.report import quantities as q
from roast_analyze.report.comparison import figures, reasons, sentences
from roast_analyze.report.comparison.data import DIFFERENCE, RATIO, seconds_in, value_in
from roast_analyze.report.listing import Listing
from roast_analyze.report.plots import Plot
from roast_analyze.report.section import Section
from roast_analyze.report.shell import Shell, roast_version, shell, templates
from roast_analyze.report.tables import Field, Table
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from roast_analyze.report.comparison.data import Comparison, TraceTotals

#: Descriptions of columns that no view has.
_HELP: Final = {
    "kept_seconds": "Compute time of attempts whose result was kept.",
    "wasted_seconds": "Compute time of attempts that failed or were lost.",
    "idle_seconds": "Core time in which no task computed.",
    DIFFERENCE: "Largest difference to the first trace.",
}
#: Most paths of a trace, and most traces, in a command.
_NAMES: Final = 6


@dataclass(frozen=True)
class ComparisonPage:
    """The context of the template."""

    title: str
    count: str
    first: str
    made_with: str
    command: str
    sections: tuple[Section, ...]
    shell: Shell


def build(comparison: Comparison, *, title: str | None = None) -> ComparisonPage:
    """Build the page of at least one trace; the default title is the names of the traces."""
    first, *others = map(sentences.trace_label, comparison.labels)
    names = f"{first} and {q.count(len(others))} more"
    if len(others) <= 1:
        names = " and ".join((first, *others))
    return ComparisonPage(
        title=visible(title) if title else names,
        count=q.counted(len(comparison.traces), "trace"),
        first=first,
        made_with=f"roast {roast_version()}",
        command=f"roast-analyze {_few([_paths(t) for t in comparison.traces])} --html",
        sections=(
            _verdict(comparison),
            _reasons(comparison),
            _over_time(comparison),
            _compute(comparison),
            _facts(comparison),
            _traces(comparison),
        ),
        shell=shell(
            ("page/page.css", "page/comparison.css"), "shared/scripted.js", "comparison.js"
        ),
    )


def render(page: ComparisonPage) -> str:
    """Render the page as HTML."""
    return templates().get_template("comparison.html.j2").render(page=page)


def _with_ratios(*fields: Field) -> tuple[Field, ...]:
    return tuple(replace(field, times=field.name + RATIO) for field in fields)


_TIME: Final = (
    Field("trace", "trace"),
    *_with_ratios(
        Field("wall_seconds", "wall time", "seconds"),
        Field("busy_seconds", "first task to last", "seconds"),
        Field("peak_nthreads", "threads", "count"),
        Field("core_seconds", "core time", "seconds"),
        Field("kept_seconds", "computing, kept", "seconds"),
        Field("wasted_seconds", "computing, discarded", "seconds"),
        Field("idle_seconds", "idle", "seconds"),
    ),
    Field("core_efficiency", "CPU utilization", "share"),
)
_WORK: Final = (
    Field("trace", "trace"),
    *_with_ratios(
        Field("tasks", "tasks", "count"),
        Field("chunks", "chunks", "count"),
        Field("events", "events", "count"),
        Field("events_per_second", "event rate", "rate"),
        Field("bytes_read", "bytes read", "bytes"),
        Field("output_bytes", "results", "bytes", detail=True),
        Field("peak_memory_bytes", "peak memory", "bytes", detail=True),
        Field("failures", "failures", "trouble"),
    ),
    Field("lost_records", "lost records", "trouble", optional=True),
    Field("completeness", "trace", "outcome"),
)
#: View to the title of its table, the noun for its rows, and the columns that name them.
_GROUPS: Final = {
    "prefixes": ("By prefix", "prefix", (Field("prefix", "prefix"),)),
    "datasets": ("By dataset", "dataset", (Field("dataset", "dataset"),)),
    "files": ("By file", "file", (Field("filename", "file"), Field("dataset", "dataset"))),
}
_WALL_HELP: Final = "Contribution to the difference in wall time; all terms add up to it."
_TERMS: Final = (
    Field("name", "term"),
    Field("base", "first trace"),
    Field("new", "this trace"),
    Field("wall_seconds", "wall time", "difference", help=_WALL_HELP),
    Field("core_seconds", "core time", "difference", help=_WALL_HELP.replace("wall", "core")),
    Field("noise_seconds", "noise", "seconds",
          help="Difference in wall time up to which a term is regarded as noise."),
    Field("significant", "significant"),
)  # fmt: skip
_CORE_TIME: Final = (
    "SELECT category, use, prefix, dataset, sum(seconds) FROM core_time GROUP BY ALL"
)
_STEPS: Final = (
    Field("step", "cause and prefix"),
    Field("base", "first trace", "seconds", group="path"),
    Field("new", "this trace", "seconds", group="path"),
    Field("wall_seconds", "wall time", "difference", group="path",
          help="Difference; all of them add up to the difference in wall time."),
)  # fmt: skip
_PATH: Final = "SELECT cause, prefix, sum(seconds) FROM critical_path GROUP BY ALL"
#: Most reasons in sentences, of several traces.
_REASONS: Final = 12
_TRACES: Final = (
    Field("trace", "trace"),
    Field("recorded", "recorded from"),
    Field("dask_version", "dask"),
    Field("python_version", "Python"),
    Field("recorder_version", "roast"),
    Field("records", "records", "count"),
    Field("command", "command for its report"),
)


def _verdict(comparison: Comparison) -> Section:
    text = (
        sentences.verdict(comparison),
        sentences.core_time(comparison),
        sentences.completeness(comparison),
        sentences.left_out(comparison),
    )
    plots: tuple[Plot, ...] = ()
    if any(trace.run.core_seconds for trace in comparison.traces):
        spent = [trace.time_spent for trace in comparison.traces]
        idle = [trace.idle_seconds or 0.0 for trace in comparison.traces]
        parts = (
            Part("computing, result kept", [s.kept_seconds for s in spent], palette.RANKED[0]),
            Part("computing, result discarded", [s.wasted_seconds for s in spent],
                 palette.FAILURE),
            Part("idle, waiting and other", idle, palette.BACKGROUND),
        )  # fmt: skip
        figure = figures.stacked(
            [trace.short_label for trace in comparison.traces],
            [part for part in parts if any(part.seconds)],
            "core time (s)",
        )
        query = comparison.totals.query
        plots = (
            _plot(comparison, figure, "core-time", "Use of the core time", "bar", query, "run"),
        )
    return Section(
        "verdict",
        "Overview",
        "Overview",
        tuple(filter(None, text)),
        plots,
        (
            _table(comparison, "time", "Time", comparison.totals, _TIME),
            _table(comparison, "work", "Work", comparison.totals, _WORK),
        ),
    )


_FINDINGS: Final = "SELECT trace_id, id, entity, core_seconds FROM findings"


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
    shown: tuple[Field, ...] = _TERMS
    rows = reasons.frame(each[0])
    if len(each) > 1:
        rows = reasons.side_by_side(each)
        columns = zip(rows.columns[1:], comparison.traces[1:], strict=True)
        shown = (
            _TERMS[0],
            *(
                Field(name, _heading(trace), "difference", group="wall", help=_WALL_HELP)
                for name, trace in columns
            ),
        )
    table = _table(
        comparison,
        "reasons",
        "Terms" if len(each) == 1 else "Terms of the wall time",
        Listing("core_time", _CORE_TIME, rows, rows.height),
        shown,
    )
    command = f"roast-analyze why {_paths(comparison.traces[0])} {_paths(comparison.traces[1])}"
    found = [replace(table, command=command)]
    if len(each) == 1:
        rows = reasons.path_frame(each[0])
        listing = Listing("critical_path", _PATH, rows, rows.height)
        found.append(_table(comparison, "path", "Critical path", listing, _STEPS))
    if any(trace.findings for trace in comparison.traces):
        found.append(_findings(comparison))
    return replace(section, sentences=(*text, reasons.noise(each[0])), tables=tuple(found))


def _findings(comparison: Comparison) -> Table:
    """Compare what the findings of each trace cost; a change is that of the last trace."""
    *bases, after = [trace.findings for trace in comparison.traces]
    changes = findings.changes(bases, after)
    names = [f"core_seconds_{number}" for number in range(len(comparison.traces))]
    columns = {
        name: [trace.findings.get((change.id, change.entity)) for change in changes]
        for name, trace in zip(names, comparison.traces, strict=True)
    }
    rows = pl.DataFrame(
        {
            "id": [change.id for change in changes],
            "entity": [change.entity for change in changes],
            "change": [change.word for change in changes],
            **{name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()},
        }
    )
    costs = (
        Field(name, _heading(trace), "seconds", group="core", help="Thread time that it cost.")
        for name, trace in zip(names, comparison.traces, strict=True)
    )
    fields = (
        Field("id", "finding"),
        Field("entity", "entity"),
        Field("change", "change"),
        *costs,
    )
    listing = Listing("findings", _FINDINGS, rows, rows.height)
    return _table(comparison, "findings", "Findings by core time", listing, fields)


def _over_time(comparison: Comparison) -> Section:
    traces = comparison.traces
    axis = TimeAxis(0.0, max(trace.wall_seconds for trace in traces))
    load = [_panel(trace, trace.load) for trace in traces]
    samples = [_panel(trace, trace.samples) for trace in traces]
    peak = max(trace.run.peak_memory_bytes or 0 for trace in traces)
    unit, nbytes = ("GiB", 1024.0**3) if peak >= 1024**3 else ("MiB", 1024.0**2)
    threads = ("nthreads", "threads", 1.0)
    executing = [("executing", "tasks executing", 1.0), threads]
    cpu = [("cpu_percent", "CPU usage", 100.0), threads]
    memory = [("memory_bytes", "process memory", nbytes)]
    has_limit = any(limit_fits(trace.samples) for trace in traces)
    if has_limit:
        memory.append(("memory_limit_bytes", "limit", nbytes))
    plots = (
        ("computing", "Executing tasks", figures.over_time(load, axis, executing, "tasks"),
         "executing, nthreads", "concurrency"),
        ("cpu", "CPU usage (cores)", figures.over_time(samples, axis, cpu, "cores"),
         "cpu_percent, nthreads", "cluster_samples"),
        ("memory", f"Memory ({unit})",
         figures.over_time(samples, axis, memory, unit, largest=True),
         "memory_bytes, memory_limit_bytes", "cluster_samples"),
    )  # fmt: skip
    text = (sentences.over_time(comparison, with_limit=has_limit), sentences.memory(comparison))
    return Section(
        "over-time",
        "Over time",
        "Over time",
        tuple(filter(None, text)),
        tuple(
            _plot(
                comparison, figure, name, title, "curve",
                f"SELECT trace_id, t, {columns} FROM {view}",  # noqa: S608 - texts from above
                view,
            )
            for name, title, figure, columns, view in plots
        ),
    )  # fmt: skip


def _panel(trace: TraceTotals, frame: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """Return a frame with times since the start of its trace, and the name of its panel."""
    return trace.short_label, frame.with_columns(pl.col("t") - (trace.run.start_t or 0.0))


def _compute(comparison: Comparison) -> Section:
    text, plots, shown = [], [], []
    columns = [seconds_in(trace.label) for trace in comparison.traces]
    seconds = [
        Field(column, _heading(trace), "seconds", group="seconds", times=column + RATIO)
        for trace, column in zip(comparison.traces, columns, strict=True)
    ]
    seconds[0] = replace(seconds[0], times="")
    difference = Field(DIFFERENCE, "difference", "difference", group="seconds")
    for view, (title, noun, (name, *more)) in _GROUPS.items():
        listing = comparison.groups[view]
        if listing.total == 0:
            continue
        text.append(sentences.difference(comparison, listing, noun))
        fields = (name, *seconds, difference, *more)
        shown.append(_table(comparison, view, title, listing, fields))
        if view != "files":
            figure = figures.stacked(
                [trace.short_label for trace in comparison.traces],
                figures.largest_parts(listing.rows, noun, columns),
                "time of all attempts (s)",
            )
            about = f"{noun}-seconds", f"Compute time by {noun}", "bar"
            plots.append(_plot(comparison, figure, *about, listing.query, view))
    section = Section("compute", "Compute time", "Compute time")
    if not shown:
        return replace(section, empty="None of these traces contains tasks or chunks.")
    return replace(section, sentences=tuple(text), plots=tuple(plots), tables=tuple(shown))


def _facts(comparison: Comparison) -> Section:
    section = Section("differences", "Differences in the environment", "Environment")
    text = sentences.facts(comparison)
    if comparison.facts.total == 0:
        return replace(section, empty=text)
    columns = (
        Field("section", "section"),
        Field("name", "fact"),
        *(Field(value_in(trace.label), _heading(trace)) for trace in comparison.traces),
    )
    table = _table(comparison, "differences", "Differing facts", comparison.facts, columns)
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
                "command": f"roast-analyze {_paths(trace)} --html",
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
    table = _table(comparison, "traces", "Traces", listing, _TRACES)
    return Section("traces", "Traces", "Traces", sentences=(hint,), tables=(table,))


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
        command=_view_command(comparison, view),
    )


def _table(
    comparison: Comparison, name: str, title: str, listing: Listing, shown: tuple[Field, ...]
) -> Table:
    return tables.build(
        name,
        title,
        listing,
        shown,
        comments=comparison.comments | _HELP,
        command=_view_command(comparison, listing.view),
        chosen="those that differ most",
    )


def _heading(trace: TraceTotals) -> str:
    return shortened(visible(trace.short_label), 32)


def _view_command(comparison: Comparison, view: str) -> str:
    names = [shlex.quote(visible(name)) for trace in comparison.traces for name in trace.names]
    return f"roast-analyze view {' '.join(names)} {view}"


def _paths(trace: TraceTotals) -> str:
    return _few([shlex.quote(visible(name)) for name in trace.names])


def _few(names: list[str]) -> str:
    return " ".join(names[:_NAMES] + ["…"] * (len(names) > _NAMES))
