"""Failures: attempts that failed, lost workers and killed tasks."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import list_query
from roast_analyze.report.section import Section
from roast_analyze.safe_text import one_line, visible

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context
    from roast_analyze.report.listing import Listing
    from roast_analyze.report.run import Run

#: Maximum number of rows of the table.
FAILURE_ROWS: Final = 100
#: Maximum number of characters of an exception (its beginning) and of a traceback (its end).
EXCEPTION_CHARACTERS: Final = 1000
TRACEBACK_CHARACTERS: Final = 2000

_FAILURE_COLUMNS: Final = columns(
    "t what cause (exception) detail worker prefix attempt (key)",
    {"cause": "exception", "exception": "raised as"},
)


def query(trace: Session) -> Listing:
    """List the first failures."""
    end = (
        f"CASE WHEN length(traceback) > {TRACEBACK_CHARACTERS} "
        f"THEN '…' || right(traceback, {TRACEBACK_CHARACTERS - 1}) ELSE traceback END"
    )
    failures = (
        "SELECT t, what, prefix, key, attempt, worker, "
        f"{beginning('cause', EXCEPTION_CHARACTERS)} AS cause, "
        f"{beginning('nullif(exception, cause)', EXCEPTION_CHARACTERS)} AS exception, detail, "
        f"{end} AS traceback FROM failures"
    )
    by_time = "t, key NULLS LAST, attempt, worker"
    return list_query(trace, "failures", failures, by_time, FAILURE_ROWS)


def beginning(column: str, limit: int) -> str:
    """Return an SQL expression for the beginning of a text, with an ellipsis if it is cut."""
    return (
        f"CASE WHEN length({column}) > {limit} THEN left({column}, {limit - 1}) || '…' "
        f"ELSE {column} END"
    )


def section(found: Listing, context: Context) -> Section:
    """Build the section."""
    table = context.table(
        "failures", "Failures", found, _FAILURE_COLUMNS,
        chosen="the first", expandable=("cause", "traceback"),
    )  # fmt: skip
    tables = (table,) if found.total else ()
    sentences = (_sentence(found, context.run),)
    return Section("failures", "Failures", "Failures", sentences=sentences, tables=tables)


def _sentence(failures: Listing, run: Run) -> str:
    """Count the failures by kind, and quote the most frequent exception."""
    if failures.total == 0 and run.are_attempts_unknown:
        return "No worker was lost. Failed attempts are not known without transitions."
    if failures.total == 0:
        return "No attempt failed and no worker was lost."
    rows = failures.rows
    counts = rows["what"].value_counts().sort("count", "what", descending=True)
    kinds = ", ".join(f"{n:,} × {visible(str(kind))}" for kind, n in counts.iter_rows())
    some = f" among the first {q.count(rows.height)}" if failures.total > rows.height else ""
    text = f"{q.counted(failures.total, 'failure')}; by kind{some}: {kinds}."
    exceptions = rows["cause"].drop_nulls()
    if exceptions.is_empty():
        return text
    # Exceptions that differ in numbers are one.
    number = "0x[0-9a-f]+|[0-9]+"
    same = (
        exceptions.to_frame("text")
        .group_by(
            pl.col("text").str.replace_all(number, "#").alias("kind"), maintain_order=True
        )
        .agg(pl.len().alias("count"), pl.col("text").first())
        .sort("count", descending=True, maintain_order=True)
    )
    _, count, quoted = same.row(0)
    if exceptions.len() == 1:
        lead = "Exception"
    elif same.height > 1 and same["count"][1] == count:
        lead = "First exception"
    elif same.height > 1:
        lead = f"Most frequent{some} ({count:,} ×)"
    else:
        lead = "All have the same exception"
        if exceptions.len() < failures.total:
            # Lost workers and some failures have none, and not all failures are listed.
            lead = f"All {q.count(exceptions.len())} exceptions{some} are the same"
        lead += ", except for numbers" if exceptions.n_unique() > 1 else ""
    return f"{text} {lead}: {one_line(quoted, 160)}"
