"""The data of the page of a store, which only :func:`query` queries."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from roast_analyze.algorithms.recurrent import recurrent
from roast_analyze.report.history import changes
from roast_analyze.report.listing import Listing
from roast_analyze.report.tables import Source
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.open.session import Session
    from roast_analyze.report.history.changes import Change

#: A file or host is slow in a run from this relative duration on.
SLOW_FACTOR: Final = 1.2
#: Probability that the page shows a file if none is slow; the same for hosts.
SIGNIFICANCE: Final = 0.01
#: Maximum number of rows of a table, and of the table of runs.
ROW_LIMIT: Final = 200
RUN_LIMIT: Final = 1000

_RUNS: Final = "FROM runs ORDER BY start_t, trace_id"


def _slow_query(view: str, names: str) -> str:
    """Return the query of runs and slow runs by file or host."""
    return (
        f"SELECT {names}, count(*) AS runs, "
        f"count(*) FILTER (relative_duration >= {SLOW_FACTOR}) AS slow_runs, "
        "median(relative_duration) AS median_relative_duration, "
        "max(start_t) AS last_t, sum(compute_seconds) AS compute_seconds "
        # A file with several trees has several rows in a run.
        f"FROM (SELECT {names}, start_t, sum(compute_seconds) AS compute_seconds, "
        f"max(relative_duration) AS relative_duration FROM {view} "
        f"GROUP BY {names}, start_t, trace_id) "
        f"WHERE relative_duration IS NOT NULL GROUP BY {names} ORDER BY ALL"
    )


FILES: Final = _slow_query("file_history", "filename, dataset")
HOSTS: Final = _slow_query("host_history", "host")


def _totals_query(names: str) -> str:
    return (
        f"SELECT {names}, count(*) AS runs, "
        # A recording of a shared scheduler is named after all of its programs.
        "coalesce(len(list_filter(list_distinct(flatten(list(string_split(program, ', ')))), "
        "lambda name: name <> 'unknown')), 0) AS programs, "
        "max(start_t) AS last_t, median(wall_seconds) AS median_wall_seconds, "
        "sum(core_hours) AS core_hours, sum(core_hours - kept_hours) AS wasted_hours, "
        "sum(core_hours - kept_hours) / nullif(sum(core_hours), 0) AS wasted_share, "
        f"sum(failures)::BIGINT AS failures FROM runs GROUP BY {names} "
        f"ORDER BY core_hours DESC, {names}"
    )


PROGRAMS: Final = _totals_query("program")
USERS: Final = _totals_query("owner, account")


@dataclass(frozen=True)
class History(Source):
    """The data of the page."""

    chosen: ClassVar[str] = "those with the most core-hours"

    #: Path of the store.
    store: str
    #: View ``runs`` with the columns of :data:`changes.METRICS`, the oldest first.
    runs: pl.DataFrame
    #: Changes of programs, the newest first, and the number of series that were tested.
    changes: Sequence[Change]
    series: int
    #: Files and hosts that are slow in run after run, and the numbers of those tested.
    files: Listing
    hosts: Listing
    tested_files: int
    tested_hosts: int
    programs: Listing
    users: Listing

    @property
    def store_argument(self) -> str:
        """Path of the store, quoted for a shell."""
        return shlex.quote(visible(self.store))

    def command(self, listing: Listing) -> str:
        """Return the command that prints the rows of a listing in a terminal."""
        return f"roast-analyze sql {self.store_argument} {shlex.quote(listing.query)}"

    @property
    def core_hours(self) -> float:
        """Core-hours of all runs."""
        return float(self.runs["core_hours"].sum())

    @property
    def wasted_hours(self) -> float:
        """Core-hours of all runs without a kept result."""
        return float((self.runs["core_hours"] - self.runs["kept_hours"]).sum())


def query(store: str, session: Session) -> History:
    """Query the opened traces of a store, whose path is for commands."""
    return build(
        store,
        session.sql(_RUNS).pl(),
        session.sql(FILES).pl(),
        session.sql(HOSTS).pl(),
        session.sql(PROGRAMS).pl(),
        session.sql(USERS).pl(),
    )


def build(
    store: str,
    runs: pl.DataFrame,
    files: pl.DataFrame,
    hosts: pl.DataFrame,
    programs: pl.DataFrame,
    users: pl.DataFrame,
) -> History:
    """Analyze the rows of the view ``runs`` and of the other queries."""
    found, series = changes.find(runs)
    runs = changes.with_metrics(runs).sort("start_t", "trace_id")
    return History(
        store=store,
        runs=runs,
        changes=found,
        series=series,
        files=_slow("file_history", FILES, files),
        hosts=_slow("host_history", HOSTS, hosts),
        tested_files=files.height,
        tested_hosts=hosts.height,
        programs=_listing("runs", PROGRAMS, programs),
        users=_listing("runs", USERS, users),
    )


def _slow(view: str, text: str, rows: pl.DataFrame) -> Listing:
    """Return the files or hosts that are slow in run after run."""
    counts = rows["runs"].to_list(), rows["slow_runs"].to_list()
    found = rows.with_columns(
        (pl.col("slow_runs") / pl.col("runs")).alias("slow_share"),
        (pl.col("compute_seconds") * (1 - 1 / pl.col("median_relative_duration")) / 3600).alias(
            "excess_hours"
        ),
    ).filter(pl.Series(recurrent(*counts, significance=SIGNIFICANCE), dtype=pl.Boolean))
    ordered = found.sort("excess_hours", descending=True, nulls_last=True)
    return _listing(view, text, ordered)


def _listing(view: str, text: str, rows: pl.DataFrame) -> Listing:
    return Listing(view, text, rows.head(ROW_LIMIT), rows.height)
