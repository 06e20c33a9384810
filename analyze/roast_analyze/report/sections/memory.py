"""Memory over time, and data that moved between workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.figures import samples as sample_figures
from roast_analyze.figures import transfers as movement_figures
from roast_analyze.report import quantities as q
from roast_analyze.report import sentences
from roast_analyze.report.plots import Plot, plot_of
from roast_analyze.report.sections.section import (
    Section,
    empty,
    filled,
    table,
    view,
    worker_names,
)
from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.report.data import ReportData


def build(data: ReportData, axis: TimeAxis) -> Section:
    """Show the memory of the workers over time, and who sent how much to whom."""
    section = Section("memory", "Memory and data movement", "Memory")
    moved = data.movement.transfers
    if data.cluster_samples.is_empty() and not moved:
        return empty(section, sentences.not_sampled(data), _SAMPLE_HINT)
    sampled = not data.cluster_samples.is_empty()
    told = [sentences.memory(data) if sampled else sentences.not_sampled(data)]
    told.append(sentences.movement(data))
    plots = [_memory(data, axis)] if sampled else []
    if not moved:
        return filled(section, *told, plots=tuple(plots))
    plots.append(_movement(data))
    shown = table(
        data, "pairs", "Who sent to whom", data.movement.pairs, _PAIRS, has_view=False
    )
    return filled(section, *told, plots=tuple(plots), tables=(shown,))


def _memory(data: ReportData, axis: TimeAxis) -> Plot:
    names = worker_names(data)
    figure = sample_figures.memory(data.cluster_samples, data.worker_samples, names, axis)
    return plot_of(
        figure,
        name="memory",
        title="Memory over time",
        spoken="Memory over time: of the cluster above, as a stack of results held, other "
        "memory and what was spilled; of each worker below.",
        query="SELECT * FROM cluster_samples; SELECT * FROM worker_samples",
        command=view(data, "worker_samples"),
    )


def _movement(data: ReportData) -> Plot:
    moved = data.movement
    figure = movement_figures.movement(moved.workers, moved.cells, in_bytes=moved.recorded)
    rows = moved.workers.height
    return plot_of(
        figure,
        name="movement",
        title="What workers fetched from each other",
        spoken=f"A map of {q.counted(rows, 'row')} by {q.counted(rows, 'column')} of workers: "
        "the stronger the colour, the more the worker of the row sent to that of the column.",
        note=sentences.workers_put_together(data, rows),
        query=moved.pairs.query,
        command="",
    )


_SAMPLE_HINT: Final = (
    'roast_recorder.record(client, "trace.jsonl", sample_interval_seconds=0.2)'
)
_PAIRS: Final = (
    Field("source", "sent by"),
    Field("destination", "received by"),
    Field("transfers", "transfers", "count"),
    Field("bytes", "size", "bytes"),
    Field("seconds", "time", "seconds"),
)
