"""Loss: the ways in which the trace is incomplete."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_view
from roast_analyze.report.run import SURPLUS
from roast_analyze.report.section import Section
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of rows of the table.
ROWS: Final = 500

_COLUMNS: Final = columns("reason records detail t")


def query(trace: Session) -> Listing:
    """List what is lost."""
    return list_view(trace, "loss", "records DESC NULLS LAST, t, reason, detail", ROWS)


def section(loss: Listing, context: Context) -> Section:
    """Build the section."""
    section = Section("loss", "Lost records", "Loss")
    text = completeness(loss, context)
    if loss.total == 0:
        return replace(section, empty=text)
    table = context.table(
        "loss", "Reasons for loss", loss, _COLUMNS, chosen="those with the most records"
    )
    return replace(section, sentences=(text,), tables=(table,))


def completeness(loss: Listing, context: Context) -> str:
    """Describe whether the trace is complete, and why not."""
    if loss.total == 0:
        records = q.counted(context.recording.records, "record")
        return f"The trace is complete: it contains {records}, and no loss was detected."
    reasons = [
        visible(str(reason)) for reason in loss.rows["reason"].unique(maintain_order=True)
    ]
    listed = shortened("; ".join(reasons[:3]), 300)
    more = "; and more" if len(reasons) > 3 or loss.total > loss.rows.height else ""
    lost = context.run.lost_records
    missing = ""
    if lost:
        missing = f" At least {q.counted(lost, 'record is', 'records are')} missing."
    if surplus := int(loss.rows.filter(pl.col("reason") == SURPLUS)["records"].sum()):
        missing += f" {q.counted(surplus, 'record is', 'records are')} surplus."
    return f"The trace is incomplete: {listed}{more}.{missing}"
