"""What failed, and what Dask logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import sentences
from roast_analyze.report.sections.section import Section, filled, table
from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData


def build(data: ReportData) -> Section:
    """List what failed, and what Dask logged."""
    section = Section("failures", "Failures and events", "Failures")
    told = [sentences.failures(data)]
    shown = []
    if data.failures.total:
        failures = table(
            data,
            "failures",
            "Failures",
            data.failures,
            _FAILURES,
            more=("exception", "traceback"),
        )
        shown.append(failures)
    if data.events.total:
        told.append(sentences.events(data))
        shown.append(table(data, "topics", "Events by topic", data.topics, _TOPICS))
        shown.append(table(data, "events", "Events", data.events, _EVENTS))
    else:
        told.append(
            "No Dask event was recorded: there was none, or events were left out of the kinds "
            "to record."
        )
    return filled(section, *told, tables=tuple(shown))


_FAILURES: Final = (
    Field("t", "at", "since"),
    Field("what", "what", "outcome"),
    Field("exception", "exception"),
    Field("detail", "detail"),
    Field("worker", "worker"),
    Field("prefix", "prefix"),
    Field("attempt", "attempt", "count"),
    Field("key", "key"),
)
_TOPICS: Final = (
    Field("topic", "topic"),
    Field("events", "events", "count"),
    Field("first_t", "first", "since"),
    Field("last_t", "last", "since"),
)
_EVENTS: Final = (
    Field("t", "at", "since"),
    Field("topic", "topic"),
    Field("worker", "worker"),
    Field("payload", "payload"),
)
