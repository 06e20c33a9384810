"""The page of a comparison: gathered data and figures in, one HTML text out.

It is a page like that of one trace, with sections of its own; :class:`ComparisonPage` is
the whole context of the template ``comparison.html.j2``.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.figures import comparison as figures
from roast_analyze.figures import palette
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import limit_fits
from roast_analyze.report import comparison_sentences as sentences
from roast_analyze.report import quantities as q
from roast_analyze.report import tables
from roast_analyze.report.comparison import (
    DIFFERENCE,
    TIMES,
    seconds_in,
    value_in,
)
from roast_analyze.report.gathered.listing import Listing
from roast_analyze.report.plots import Plot, plot_of
from roast_analyze.report.sections.section import Section
from roast_analyze.report.shell import Shell, roast_version, shell, templates
from roast_analyze.report.tables import Field, Table
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plotly.graph_objects import Figure

    from roast_analyze.report.comparison import Compared, Comparison

_GIB: Final = 1024.0**3
_MIB: Final = 1024.0**2

#: What columns mean that no view has.
_MEANINGS: Final = {
    "kept_seconds": "Computing time of attempts whose result was kept.",
    "wasted_seconds": "Computing time of attempts that failed or were lost.",
    "idle_seconds": "Core time in which no task computed.",
    DIFFERENCE: "Time in the trace that is farthest from the first, less that of the first.",
}

#: Styles and scripts, in the order in which they are read.
_STYLES: Final = ("page/page.css", "page/comparison.css")
#: Most characters of a trace's name in the heading of a column.
_HEADING: Final = 32
#: Most names that a command repeats, of those that open one trace, and in the last line.
_NAMES: Final = 6


@dataclass(frozen=True)
class ComparisonPage:
    """Everything that the template needs."""

    title: str
    count: str
    first: str
    made_with: str
    command: str
    sections: tuple[Section, ...]
    shell: Shell


def build(comparison: Comparison, *, title: str | None = None) -> ComparisonPage:
    """Lay out what was gathered.

    Parameters
    ----------
    comparison : Comparison
        Of at least one trace.
    title : str, optional
        Heading; the names of the traces if not given.
    """
    return ComparisonPage(
        title=visible(title) if title else _title(comparison),
        count=q.counted(len(comparison.traces), "trace"),
        first=sentences.name(comparison.labels[0]),
        made_with=f"roast {roast_version()}",
        command=f"roast-analyze {_few([_opened_by(t) for t in comparison.traces])} --html",
        sections=(
            _verdict(comparison),
            _over_time(comparison),
            _compute(comparison),
            _differences(comparison),
            _traces(comparison),
        ),
        shell=shell(_STYLES, "shared/scripted.js", "comparison.js"),
    )


def render(page: ComparisonPage) -> str:
    """Write the page as HTML."""
    return templates().get_template("comparison.html.j2").render(page=page)


def _title(comparison: Comparison) -> str:
    first, *others = map(sentences.name, comparison.labels)
    if len(others) <= 1:
        return " and ".join((first, *others))
    return f"{first} and {q.count(len(others))} more"


# -- the headline ------------------------------------------------------------------------


def _held_against_first(*fields: Field) -> tuple[Field, ...]:
    return tuple(replace(field, times=field.name + TIMES) for field in fields)


_TIME: Final = (
    Field("trace", "trace"),
    *_held_against_first(
        Field("wall_seconds", "wall", "seconds"),
        Field("busy_seconds", "first task to last", "seconds"),
        Field("peak_nthreads", "threads", "count"),
        Field("core_seconds", "core time", "seconds"),
        Field("kept_seconds", "computing, kept", "seconds"),
        Field("wasted_seconds", "not kept", "seconds"),
        Field("idle_seconds", "idle", "seconds"),
    ),
    Field("core_efficiency", "of core time", "share"),
)
_WORK: Final = (
    Field("trace", "trace"),
    *_held_against_first(
        Field("tasks", "tasks", "count"),
        Field("chunks", "chunks", "count"),
        Field("events", "events", "count"),
        Field("events_per_second", "rate", "rate"),
        Field("bytes_read", "read", "bytes"),
        Field("peak_memory_bytes", "peak memory", "bytes"),
        Field("failures", "failures", "trouble"),
    ),
    Field("lost_records", "records lost", "trouble", optional=True),
    Field("whole", "the trace is", "outcome"),
)


def _verdict(comparison: Comparison) -> Section:
    told = (
        sentences.verdict(comparison),
        sentences.core_time(comparison),
        sentences.wholeness(comparison),
        sentences.left_out(comparison),
    )
    plots: tuple[Plot, ...] = ()
    if any(trace.run.core_seconds for trace in comparison.traces):
        plots = (_spent(comparison),)
    return Section(
        "verdict",
        "Side by side",
        "Side by side",
        tuple(filter(None, told)),
        plots,
        (
            _table(comparison, "time", "Time", comparison.headline, _TIME),
            _table(comparison, "work", "What was done", comparison.headline, _WORK),
        ),
    )


def _spent(comparison: Comparison) -> Plot:
    spent = [(t.time_spent, t.idle_seconds or 0.0) for t in comparison.traces]
    parts = (
        ("computing, result kept", [s.kept_seconds for s, _ in spent], palette.RANKED[0]),
        ("computing, result not kept", [s.wasted_seconds for s, _ in spent], palette.FAILURE),
        ("idle, waiting and other", [idle for _, idle in spent], palette.BACKGROUND),
    )
    figure = figures.stacked(
        comparison.short_labels,
        [figures.Part(*part) for part in parts if any(part[1])],
        "core time (s)",
    )
    return _plot(
        comparison,
        "core-time",
        "How the core time was spent",
        "a bar a trace",
        figure,
        comparison.headline.query,
        "run",
    )


# -- over time ---------------------------------------------------------------------------

_COMPUTING: Final = figures.Quantity(
    "executing", "tasks compute", "nthreads", "threads there", "tasks"
)
_CPU: Final = figures.Quantity("cpu_percent", "CPU", "nthreads", "threads there", "cores", 100)


def _over_time(comparison: Comparison) -> Section:
    traces = comparison.traces
    span = max(trace.wall_seconds for trace in traces)
    axes = [TimeAxis(t.run.start_t or 0.0, (t.run.start_t or 0.0) + span) for t in traces]
    names = comparison.short_labels
    load = [figures.Panel(n, a, t.load) for n, a, t in zip(names, axes, traces, strict=True)]
    samples = [
        figures.Panel(n, a, t.samples) for n, a, t in zip(names, axes, traces, strict=True)
    ]
    limited = any(limit_fits(trace.samples) for trace in traces)
    told = (
        sentences.over_time(comparison, with_limit=limited),
        sentences.memory(comparison),
    )
    return Section(
        "over-time",
        "Over time",
        "Over time",
        tuple(filter(None, told)),
        (
            _plot(
                comparison,
                "computing",
                "Tasks computing",
                "a small curve a trace",
                figures.over_time(load, _COMPUTING),
                "SELECT trace_id, t, executing, nthreads FROM concurrency",
                "concurrency",
            ),
            _plot(
                comparison,
                "cpu",
                "CPU, in cores",
                "a small curve a trace",
                figures.over_time(samples, _CPU),
                "SELECT trace_id, t, cpu_percent, nthreads FROM cluster_samples",
                "cluster_samples",
            ),
            _memory(comparison, samples, with_limit=limited),
        ),
    )


def _memory(comparison: Comparison, samples: list[figures.Panel], *, with_limit: bool) -> Plot:
    peak = max(trace.run.peak_memory_bytes or 0 for trace in comparison.traces)
    unit, divisor = ("GiB", _GIB) if peak >= _GIB else ("MiB", _MIB)
    what = figures.Quantity(
        "memory_bytes",
        "process memory",
        "memory_limit_bytes",
        "limit",
        unit,
        divisor,
        divisor,
        largest=True,
    )
    return _plot(
        comparison,
        "memory",
        f"Memory, in {unit}",
        "a small curve a trace",
        figures.over_time(samples, what, reference=with_limit),
        "SELECT trace_id, t, memory_bytes, memory_limit_bytes FROM cluster_samples",
        "cluster_samples",
    )


# -- where the compute time went ---------------------------------------------------------

#: A table and a figure: view, title, heading of the name, plural, further columns.
_SIDES: Final = (
    ("prefixes", "By prefix", (Field("prefix", "prefix"),), "prefix", "prefixes"),
    ("datasets", "By dataset", (Field("dataset", "dataset"),), "dataset", "datasets"),
    (
        "files",
        "By file",
        (Field("filename", "file"), Field("dataset", "dataset")),
        "file",
        "files",
    ),
)


def _compute(comparison: Comparison) -> Section:
    told, plots, shown = [], [], []
    for view, title, names, noun, plural in _SIDES:
        listing: Listing = getattr(comparison, view)
        if listing.total == 0:
            continue
        told.append(sentences.difference(comparison, listing, noun, plural))
        shown.append(_table(comparison, view, title, listing, _side_columns(comparison, names)))
        if view != "files":
            plots.append(_by_part(comparison, view, noun, listing))
    section = Section("compute", "What the cores computed", "Compute time")
    if not shown:
        return replace(section, empty="No task and no chunk was seen in any of these traces.")
    return replace(section, sentences=tuple(told), plots=tuple(plots), tables=tuple(shown))


def _side_columns(comparison: Comparison, names: tuple[Field, ...]) -> tuple[Field, ...]:
    columns = [
        Field(
            seconds_in(label),
            _heading(short),
            "seconds",
            group="seconds",
            times=seconds_in(label) + TIMES if number else "",
        )
        for number, (label, short) in enumerate(_names_in_headings(comparison))
    ]
    name, *more = names
    return (
        name,
        *columns,
        Field(DIFFERENCE, "difference", "difference", group="seconds"),
        *more,
    )


def _by_part(comparison: Comparison, view: str, noun: str, listing: Listing) -> Plot:
    columns = [seconds_in(label) for label in comparison.labels]
    figure = figures.stacked(
        comparison.short_labels,
        figures.largest_parts(listing.rows, noun, columns),
        "seconds, all attempts added up",
    )
    return _plot(
        comparison,
        f"{noun}-seconds",
        f"Compute time by {noun}",
        "a bar a trace",
        figure,
        listing.query,
        view,
    )


# -- facts, and the traces themselves ----------------------------------------------------


def _differences(comparison: Comparison) -> Section:
    section = Section("differences", "What differs in the set-up", "Set-up")
    told = sentences.facts(comparison)
    if comparison.facts.total == 0:
        return replace(section, empty=told)
    columns = (
        Field("section", "section"),
        Field("name", "fact"),
        *(
            Field(value_in(label), _heading(short))
            for label, short in _names_in_headings(comparison)
        ),
    )
    shown = _table(comparison, "differences", "Facts that differ", comparison.facts, columns)
    return replace(section, sentences=(told,), tables=(shown,))


def _traces(comparison: Comparison) -> Section:
    rows = pl.DataFrame([_row(trace) for trace in comparison.traces])
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
        Field("command", "its own report"),
    )
    return Section(
        "traces",
        "Each trace for itself",
        "Traces",
        (sentences.traces(comparison),),
        tables=(_table(comparison, "traces", "Traces", listing, columns),),
    )


def _row(trace: Compared) -> dict[str, object]:
    recording = trace.recording
    return {
        "trace": trace.label,
        "recorded": q.instant(trace.run.start_t, recording.utc_offset_seconds),
        "dask_version": recording.dask_version,
        "python_version": recording.python_version,
        "recorder_version": recording.recorder_version,
        "records": recording.records,
        "command": f"roast-analyze {_opened_by(trace)} --html",
    }


# -- parts of all of them ----------------------------------------------------------------


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
        spoken=f"{title}: {kind}, on the same axes, for "
        f"{q.counted(len(comparison.traces), 'trace')}.",
        query=query,
        command=_view(comparison, view),
    )


def _table(
    comparison: Comparison, name: str, title: str, listing: Listing, shown: tuple[Field, ...]
) -> Table:
    return tables.build(
        name,
        title,
        listing,
        shown,
        comments=comparison.comments | _MEANINGS,
        command=_view(comparison, listing.view),
        left_out="those that differ the most",
    )


def _view(comparison: Comparison, view: str) -> str:
    names = [shlex.quote(visible(name)) for trace in comparison.traces for name in trace.names]
    return f"roast-analyze view {' '.join(names)} {view}"


def _opened_by(trace: Compared) -> str:
    return _few([shlex.quote(visible(name)) for name in trace.names])


def _few(names: list[str]) -> str:
    return " ".join(names[:_NAMES] + ["…"] * (len(names) > _NAMES))


def _names_in_headings(comparison: Comparison) -> Iterator[tuple[str, str]]:
    return zip(comparison.labels, comparison.short_labels, strict=True)


def _heading(label: str) -> str:
    return shortened(visible(label), _HEADING)
