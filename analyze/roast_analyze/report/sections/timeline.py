"""What ran where, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from roast_analyze.figures import palette
from roast_analyze.report import quantities as q
from roast_analyze.report import sentences, timeline
from roast_analyze.report.sections.section import RECORD_HINT, Section, empty, filled, view

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData


def build(data: ReportData) -> Section:
    """Show who computed what and when."""
    section = Section("timeline", "What ran where, and when", "Timeline")
    stream = data.task_stream
    if not stream.runs and not stream.failures:
        return empty(
            section,
            "No task ran while this was recorded. Those that run meanwhile are recorded:",
            RECORD_HINT,
        )
    name = "task_runs" if data.run.task_runs else "chunks"
    drawn = timeline.build(
        stream,
        data.stretches,
        data.busy,
        timeline.Colours(
            palette.by_rank(data.prefixes.rows["prefix"].to_list()),
            palette.by_rank(data.datasets.rows["dataset"].to_list()),
        ),
        stop_t=data.run.stop_t or 0.0,
        utc_offset_seconds=data.recording.utc_offset_seconds,
        spoken=f"Timeline: {q.counted(stream.workers.height, 'worker')} over "
        f"{q.seconds(data.run.wall_seconds)}, {q.counted(stream.runs, 'computation')}, "
        f"{q.counted(stream.failures, 'failed attempt')}.",
        note=sentences.timeline_left_out(stream, view(data, name)),
        query=f"SELECT * FROM {name} ORDER BY processing_t",  # noqa: S608 - one of two names
        command=view(data, name),
    )
    return replace(filled(section, sentences.timeline(data)), timeline=drawn)
