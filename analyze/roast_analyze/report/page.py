"""The page of a report: data in, HTML out.

:class:`Page` is the context of the template ``page.html.j2``, which computes nothing.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.figures import palette
from roast_analyze.report import quantities as q
from roast_analyze.report import time_ranges
from roast_analyze.report.shell import Shell, roast_version, shell, templates
from roast_analyze.report.topics import (
    activities,
    chunks,
    core_time,
    critical_path,
    environment,
    failures,
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
    from roast_analyze.report.section import Section
    from roast_analyze.report.topics.verdict import Verdict

_STYLES: Final = ("page/page.css", "timeline/timeline.css", "flame/flame.css")


@dataclass(frozen=True)
class Page:
    """The context of the template."""

    title: str
    trace_name: str
    time_range: str
    omissions: str
    started: str
    duration: str
    made_with: str
    command: str
    verdict: Verdict
    sections: tuple[Section, ...]
    shell: Shell


def build(data: ReportData, *, title: str | None = None) -> Page:
    """Build the page; its heading is the name of the trace unless a title is given."""
    context = data.context
    name, time_range = visible(context.trace_name), context.time_range
    prefixes = data.tasks.prefixes.rows
    colors = timeline.Colors(
        palette.by_rank(prefixes["prefix"].to_list()),
        palette.by_rank(data.chunks.datasets.rows["dataset"].to_list()),
    )
    sections = (
        core_time.section(data.core_time, context),
        critical_path.section(data.critical_path, context),
        timeline.section(data.timeline, context, colors),
        chunks.section(data.chunks, context),
        workers.section(context),
        tasks.section(data.tasks, context, colors.prefixes),
        activities.section(data.activities, context),
        spans.section(data.spans, context),
        profile.section(data.profile, context),
        memory.section(data.transfers, context, prefixes),
        scheduler.section(data.scheduler, context),
        what_if.section(data.what_if, context),
        failures.section(data.failures, context),
        environment.section(data.environment, context),
        loss.section(data.loss, context),
    )
    schema = visible(context.recording.schema_version or "unknown")
    return Page(
        title=visible(title) if title else name,
        trace_name=name,
        time_range=time_ranges.describe(time_range).capitalize() if time_range else "",
        omissions=time_ranges.describe_omissions(time_range) if time_range else "",
        started=q.instant(context.run.start_t, context.recording.utc_offset_seconds),
        duration=q.seconds(context.run.wall_seconds),
        made_with=f"roast {roast_version()}, trace schema {schema} (reads {SCHEMA_VERSION})",
        command=f"roast-analyze {shlex.quote(name)} --html{context.options}",
        verdict=verdict.build(context, data.loss, data.findings, data.core_time),
        sections=sections,
        shell=shell(_STYLES, "timeline/main.js", "report.js"),
    )


def render(page: Page) -> str:
    """Render the page as HTML."""
    return templates().get_template("page.html.j2").render(page=page)
