"""Rows of the table ``_task_slack``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from roast_analyze.algorithms.task_slack import task_slack
from roast_analyze.computed.waits import FIRST_CHUNK, waits_of_traces

if TYPE_CHECKING:
    from roast_analyze.open.session import Session


def query(trace: Session) -> pl.DataFrame:
    """Return the slack of each attempt at a task."""
    found = [
        task_slack(waits, stop_t)
        for _, _, stop_t, waits in waits_of_traces(trace)
        if waits is not None
    ]
    if not found:
        return pl.DataFrame()
    return pl.concat(found).filter(pl.col("id") < FIRST_CHUNK).rename({"id": "seq"})
