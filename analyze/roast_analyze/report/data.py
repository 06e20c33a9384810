"""The data of the report, queried once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from roast_analyze.open.concurrent_queries import run_concurrently
from roast_analyze.report import context as contexts
from roast_analyze.report import findings, unexplained
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
    what_if,
)

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.open.concurrent_queries import Submit
    from roast_analyze.open.session import Session
    from roast_analyze.report.listing import Listing


@dataclass(frozen=True)
class ReportData:
    """The context, the findings and the data of each topic."""

    context: contexts.Context
    findings: tuple[findings.Finding, ...]
    unexplained: unexplained.Unexplained
    core_time: core_time.CoreTime
    critical_path: critical_path.CriticalPath
    timeline: timeline.Timeline
    chunks: chunks.Chunks
    inside_tasks: inside_tasks.InsideTasks
    tasks: tasks.Tasks
    activities: activities.Activities
    spans: Listing
    profile: profile.Profiles
    transfers: memory.Transfers
    scheduler: scheduler.SchedulerLoad
    failures: Listing
    events: events.Events
    environment: environment.Environment
    what_if: pl.DataFrame
    loss: Listing


def query(trace: Session) -> ReportData:
    """Query a trace for its report."""
    return run_concurrently(trace, partial(_query, trace))


def _query(trace: Session, submit: Submit) -> ReportData:
    # Python computes much of these four topics, on one core, so the other topics are queried
    # on a second one.
    profiling = submit(profile.query, trace)
    core_timing = submit(core_time.query, trace)
    path_finding = submit(critical_path.query, trace)
    explaining = submit(findings.query, trace)
    context = contexts.query(trace)
    return ReportData(
        context=context,
        timeline=timeline.query(trace, context),
        chunks=chunks.query(trace, context),
        tasks=tasks.query(trace),
        activities=activities.query(trace),
        spans=spans.query(trace),
        transfers=memory.query(trace, context),
        scheduler=scheduler.query(trace, context),
        failures=failures.query(trace),
        events=events.query(trace),
        environment=environment.query(trace),
        loss=loss.query(trace),
        what_if=what_if.query(trace, context),
        # The core time, which is needed, has then been computed.
        inside_tasks=inside_tasks.query(trace),
        profile=profiling.result(),
        core_time=core_timing.result(),
        critical_path=path_finding.result(),
        findings=(found := explaining.result()),
        unexplained=unexplained.query(trace, found),
    )
