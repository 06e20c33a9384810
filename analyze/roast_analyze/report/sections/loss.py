"""In which ways the trace is not whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import sentences
from roast_analyze.report.sections.section import Section, empty, filled, table
from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData


def build(data: ReportData) -> Section:
    """List what is lost."""
    section = Section("loss", "What is lost", "Loss")
    if data.loss.total == 0:
        return empty(section, sentences.wholeness(data))
    shown = table(data, "loss", "Ways in which the trace is not whole", data.loss, _LOSS)
    return filled(section, sentences.wholeness(data), tables=(shown,))


_LOSS: Final = (
    Field("reason", "reason"),
    Field("records", "records", "count"),
    Field("detail", "detail"),
    Field("t", "at", "since"),
)
