"""The page of a report: data in, sections and headlines out."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from markupsafe import Markup

from roast_analyze.figures import palette
from roast_analyze.report import quantities as q
from roast_analyze.report import time_ranges
from roast_analyze.report.shell import Page, render, roast_version
from roast_analyze.report.topics import (
    activities,
    chunks,
    core_time,
    critical_path,
    environment,
    events,
    failures,
    inside_tasks,
    loss,
    memory,
    profile,
    scheduler,
    spans,
    tasks,
    timeline,
    verdict,
    what_if,
    workers,
)
from roast_analyze.safe_text import visible
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData

__all__ = ["build", "render"]


def build(data: ReportData, *, title: str | None = None) -> Page:
    """Build the page; its heading is the name of the trace unless a title is given."""
    context = data.context
    name, time_range = visible(context.trace_name), context.time_range
    prefixes = data.tasks.prefixes.rows
    colors = timeline.Colors(
        palette.by_rank(prefixes["prefix"].to_list()),
        palette.by_rank(data.chunks.datasets.rows["dataset"].to_list()),
    )
    clock = Markup(
        "from {} by the cluster's clock, duration {}. Times below are relative to"
    ).format(
        q.instant(context.run.start_t, context.recording.utc_offset_seconds),
        q.seconds(context.run.wall_seconds),
    )
    about = Markup("Recorded {} this start.").format(clock)
    if time_range:
        about = Markup("<strong>{}</strong>, {} its start. {}").format(
            time_ranges.describe(time_range).capitalize(),
            clock,
            time_ranges.describe_omissions(time_range),
        )
    schema = visible(context.recording.schema_version or "unknown")
    shown = (
        timeline.section(data.timeline, context, colors),
        chunks.section(data.chunks, context),
        inside_tasks.section(data.inside_tasks, context),
        workers.section(context),
        failures.section(data.failures, context),
    )
    details = (
        core_time.section(data.core_time, context),
        critical_path.section(data.critical_path, context),
        tasks.section(data.tasks, context, colors.prefixes),
        activities.section(data.activities, context),
        spans.section(data.spans, context),
        profile.section(data.profile, context),
        memory.section(data.transfers, context, prefixes),
        scheduler.section(data.scheduler, context),
        what_if.section(data.what_if, context),
        events.section(data.events, context),
        environment.section(data.environment, context),
        loss.section(data.loss, context),
    )
    return Page(
        title=visible(title) if title else name,
        about=about,
        trace_name=name,
        made_with=f"{roast_version()}, trace schema {schema} (reads {SCHEMA_VERSION})",
        command=f"roast-analyze {shlex.quote(name)} --html{context.options}",
        verdict=verdict.build(
            context, data.loss, data.findings, data.unexplained, data.core_time
        ),
        sections=(
            *(section for section in shown if not section.empty),
            *(replace(section, folded=True) for section in shown if section.empty),
            *(replace(section, folded=True) for section in details),
        ),
    )
