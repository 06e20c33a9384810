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
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import limit_fits
from roast_analyze.report import quantities as q
from roast_analyze.report import tables
from roast_analyze.report.comparison import figures, sentences
from roast_analyze.report.comparison.data import DIFFERENCE, RATIO, seconds_in, value_in
from roast_analyze.report.listing import Listing
from roast_analyze.report.plots import Plot, plot_of
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

_STYLES: Final = ("page/page.css", "page/comparison.css")
_REPORT_HINT: Final = (
    "The report of a single trace adds its timeline, chunks, workers, failures and profile; "
    "the last column contains the command that writes it."
)
#: Most characters of a trace's name in the heading of a column.
_HEADING: Final = 32
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
    """Build the page.

    Parameters
    ----------
    comparison : Comparison
        Of at least one trace.
    title : str, optional
        Heading; the default is the names of the traces.
    """
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
            _over_time(comparison),
            _compute(comparison),
            _facts(comparison),
            _traces(comparison),
        ),
        shell=shell(_STYLES, "shared/scripted.js", "comparison.js"),
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
        Field("peak_memory_bytes", "peak memory", "bytes"),
        Field("failures", "failures", "trouble"),
    ),
    Field("lost_records", "lost records", "trouble", optional=True),
    Field("completeness", "trace", "outcome"),
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
        spent = [(t.time_spent, t.idle_seconds or 0.0) for t in comparison.traces]
        parts = (
            ("computing, result kept", [s.kept_seconds for s, _ in spent], palette.RANKED[0]),
            ("computing, result discarded", [s.wasted_seconds for s, _ in spent],
             palette.FAILURE),
            ("idle, waiting and other", [idle for _, idle in spent], palette.BACKGROUND),
        )  # fmt: skip
        figure = figures.stacked(
            comparison.short_labels,
            [figures.Part(*part) for part in parts if any(part[1])],
            "core time (s)",
        )
        plots = (
            _plot(
                comparison, "core-time", "Use of the core time", "one bar per trace", figure,
                comparison.totals.query, "run",
            ),
        )  # fmt: skip
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


def _over_time(comparison: Comparison) -> Section:
    traces = comparison.traces
    span = max(trace.wall_seconds for trace in traces)
    axes = [TimeAxis(t.run.start_t or 0.0, (t.run.start_t or 0.0) + span) for t in traces]
    titles = zip(comparison.short_labels, axes, strict=True)
    panels = [
        (figures.Panel(name, axis, trace.load), figures.Panel(name, axis, trace.samples))
        for (name, axis), trace in zip(titles, traces, strict=True)
    ]
    load, samples = [p[0] for p in panels], [p[1] for p in panels]
    has_limit = any(limit_fits(trace.samples) for trace in traces)
    peak = max(trace.run.peak_memory_bytes or 0 for trace in traces)
    unit, divisor = ("GiB", 1024.0**3) if peak >= 1024**3 else ("MiB", 1024.0**2)
    executing = figures.Quantity("executing", "tasks executing", "nthreads", "threads", "tasks")
    cpu = figures.Quantity("cpu_percent", "CPU usage", "nthreads", "threads", "cores", 100)
    memory = figures.Quantity(
        "memory_bytes", "process memory", "memory_limit_bytes", "limit", unit, divisor, divisor,
        largest=True,
    )  # fmt: skip
    plots = (
        ("computing", "Executing tasks", figures.over_time(load, executing),
         "executing, nthreads", "concurrency"),
        ("cpu", "CPU usage (cores)", figures.over_time(samples, cpu),
         "cpu_percent, nthreads", "cluster_samples"),
        ("memory", f"Memory ({unit})", figures.over_time(samples, memory, reference=has_limit),
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
                comparison, name, title, "one curve per trace", figure,
                f"SELECT trace_id, t, {columns} FROM {view}",  # noqa: S608 - texts from above
                view,
            )
            for name, title, figure, columns, view in plots
        ),
    )  # fmt: skip


def _compute(comparison: Comparison) -> Section:
    text, plots, shown = [], [], []
    difference = Field(DIFFERENCE, "difference", "difference", group="seconds")
    seconds = [
        Field(
            seconds_in(label),
            shortened(visible(short), _HEADING),
            "seconds",
            group="seconds",
            times=seconds_in(label) + RATIO if number else "",
        )
        for number, (label, short) in enumerate(
            zip(comparison.labels, comparison.short_labels, strict=True)
        )
    ]
    for view, title, names, noun in (
        ("prefixes", "By prefix", (Field("prefix", "prefix"),), "prefix"),
        ("datasets", "By dataset", (Field("dataset", "dataset"),), "dataset"),
        ("files", "By file", (Field("filename", "file"), Field("dataset", "dataset")), "file"),
    ):
        listing: Listing = getattr(comparison, view)
        if listing.total == 0:
            continue
        text.append(sentences.difference(comparison, listing, noun, view))
        columns = (names[0], *seconds, difference, *names[1:])
        shown.append(_table(comparison, view, title, listing, columns))
        if view != "files":
            figure = figures.stacked(
                comparison.short_labels,
                figures.largest_parts(listing.rows, noun, [f.name for f in seconds]),
                "time of all attempts (s)",
            )
            plots.append(
                _plot(
                    comparison, f"{noun}-seconds", f"Compute time by {noun}",
                    "one bar per trace", figure, listing.query, view,
                )
            )  # fmt: skip
    section = Section("compute", "Compute time", "Compute time")
    if not shown:
        return replace(section, empty="None of these traces contains tasks or chunks.")
    return replace(section, sentences=tuple(text), plots=tuple(plots), tables=tuple(shown))


def _facts(comparison: Comparison) -> Section:
    section = Section("differences", "Differences in the environment", "Environment")
    text = sentences.facts(comparison)
    if comparison.facts.total == 0:
        return replace(section, empty=text)
    labels = zip(comparison.labels, comparison.short_labels, strict=True)
    columns = (
        Field("section", "section"),
        Field("name", "fact"),
        *(Field(value_in(lbl), shortened(visible(short), _HEADING)) for lbl, short in labels),
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
    listing = Listing(
        "trace_info",
        "SELECT start_t, dask_version, python_version, records FROM trace_info",
        rows,
        rows.height,
    )
    columns = (
        Field("trace", "trace"),
        Field("recorded", "recorded from"),
        Field("dask_version", "dask"),
        Field("python_version", "Python"),
        Field("recorder_version", "roast"),
        Field("records", "records", "count"),
        Field("command", "command for its report"),
    )
    return Section(
        "traces",
        "Traces",
        "Traces",
        sentences=(_REPORT_HINT,),
        tables=(_table(comparison, "traces", "Traces", listing, columns),),
    )


def _plot(
    comparison: Comparison,
    name: str,
    title: str,
    kind: str,
    figure: Figure,
    query: str,
    view: str,
) -> Plot:
    return plot_of(
        figure,
        name=name,
        title=title,
        description=f"{title}: {kind}, on the same axes, for "
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


def _view_command(comparison: Comparison, view: str) -> str:
    names = [shlex.quote(visible(name)) for trace in comparison.traces for name in trace.names]
    return f"roast-analyze view {' '.join(names)} {view}"


def _paths(trace: TraceTotals) -> str:
    return _few([shlex.quote(visible(name)) for name in trace.names])


def _few(names: list[str]) -> str:
    return " ".join(names[:_NAMES] + ["…"] * (len(names) > _NAMES))
