"""What came to the scheduler, and what it had to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roast_analyze.figures import load as load_figures
from roast_analyze.report import quantities as q
from roast_analyze.report import sentences
from roast_analyze.report.plots import Plot, plot_of
from roast_analyze.report.sections.section import Section, empty, filled, view

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.report.data import ReportData


def build(data: ReportData, axis: TimeAxis) -> Section:
    """Show what the scheduler had to do over time."""
    section = Section("scheduler", "The scheduler", "Scheduler")
    load = data.stretches
    if load.is_empty() and data.run.task_runs:
        return empty(section, "All was recorded at one instant, so that nothing has a rate.")
    if load.is_empty() or not load["transitions_per_second"].sum():
        return empty(
            section,
            "No transition was recorded: there was no scheduler, it had no task, or "
            "transitions were left out of the kinds to record.",
        )
    figure = load_figures.scheduler(load, axis)
    plot = plot_of(
        figure,
        name="scheduler",
        title="What the scheduler had to do",
        spoken="Over time: transitions a second, tasks that waited, and the slowest event "
        "loop of a worker.",
        query="SELECT t, seconds, queued + no_worker AS ready, waiting FROM concurrency; "
        "SELECT t FROM transitions; "
        "SELECT t, event_loop_interval_seconds FROM worker_samples",
        command=view(data, "concurrency"),
    )
    told = [sentences.scheduler(data), sentences.submissions(data), sentences.stealing(data)]
    plots = (plot, _submissions(data, axis)) if data.submissions.tasks else (plot,)
    return filled(section, *filter(None, told), plots=plots)


def _submissions(data: ReportData, axis: TimeAxis) -> Plot:
    came = data.submissions
    figure = load_figures.submissions(came.stretches, axis)
    stolen = f", and {q.counted(came.stolen, 'task')} that were stolen" if came.stolen else ""
    return plot_of(
        figure,
        name="submissions",
        title="When tasks came",
        spoken=f"Over time: {q.counted(came.tasks, 'task')} that came to the scheduler in "
        f"{q.counted(came.batches, 'batch', 'batches')}{stolen}.",
        query="SELECT submitted_t, count(*) AS tasks FROM tasks GROUP BY submitted_t; "
        "SELECT t, payload FROM events WHERE topic = 'stealing'",
        command=view(data, "tasks"),
    )
