"""Scope of an export: workers, a prefix and a time range, and the rows within it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.errors import NothingToExport, TraceError
from roast_analyze.open.time_parsing import parse_time
from roast_analyze.open.time_range import parse_range
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    import pyarrow as pa

    from roast_analyze.open.session import Session

#: Condition for rows of ``transfers`` that moved results of a prefix.
MOVES_PREFIX: Final = (
    "len(list_intersect(map_keys(keys), "
    "(SELECT list(key) FROM tasks WHERE prefix = $prefix))) > 0"
)

#: Name of the scheduler, whose profiles have no worker.
_SCHEDULER: Final = "scheduler"
#: Number of names that an error lists.
_NAMES_SHOWN: Final = 8
#: Rows that are in memory at a time.
_BATCH_ROWS: Final = 10_000


@dataclass(frozen=True)
class Condition:
    """An SQL expression and the values of its parameters."""

    sql: str
    parameters: dict[str, object]


@dataclass(frozen=True)
class Scope:
    """Selection of rows of a trace; the defaults select all."""

    #: Addresses; none if the scheduler's profile is selected instead of workers.
    workers: tuple[str, ...] | None = None
    prefix: str | None = None
    #: Seconds since the epoch, without stop_t; infinite if the range ends with the run. Rows
    #: that overlap the range are selected.
    start_t: float = -math.inf
    stop_t: float = math.inf

    @property
    def scheduler(self) -> bool:
        """True for the scheduler's profile."""
        return self.workers == ()

    def condition(
        self,
        *,
        workers: tuple[str, ...] = ("worker",),
        prefix: str | None = "prefix = $prefix",
        begin: str | None = None,
        end: str | None = None,
    ) -> Condition:
        """Return the SQL condition for a table's rows in this scope.

        One of the columns `workers` must have the address of a worker. `prefix` is an
        expression over ``$prefix`` that is true for the rows of a prefix. `begin` and `end` are
        columns with the start and the end of a row, open-ended if null. A condition without
        its columns is left out.
        """
        parts: list[str] = []
        parameters: dict[str, object] = {}
        if self.scheduler:
            # The scheduler's profile has no worker.
            parts += [f"{column} IS NULL" for column in workers]
        elif self.workers is not None and workers:
            parameters |= {f"worker_{i}": address for i, address in enumerate(self.workers)}
            listed = ", ".join(f"${name}" for name in parameters)
            matches = " OR ".join(f"{column} IN ({listed})" for column in workers)
            parts.append(f"({matches})")
        if self.prefix is not None and prefix:
            parts.append(f"({prefix})")
            parameters["prefix"] = self.prefix
        if self.start_t > -math.inf and end:
            # An attempt without an end was running until the end of the trace.
            parts.append(f"coalesce({end} >= $start_t, true)")
            parameters["start_t"] = self.start_t
        if self.stop_t < math.inf and begin:
            parts.append(f"coalesce({begin} < $stop_t, true)")
            parameters["stop_t"] = self.stop_t
        return Condition(" AND ".join(parts) or "true", parameters)


def batches(trace: Session, query: str, condition: Condition) -> pa.RecordBatchReader:
    """Run a query with ``{condition}`` in its text, and yield its rows in batches.

    The result is computed while it is read, so memory does not grow with the number of rows.
    """
    sql = query.replace("{condition}", condition.sql)
    return trace.sql(sql, condition.parameters or None).to_arrow_reader(_BATCH_ROWS)


def rows(trace: Session, query: str, condition: Condition) -> Iterator[dict[str, Any]]:
    """Yield the rows of :func:`batches` as dicts."""
    for batch in batches(trace, query, condition):
        yield from batch.to_pylist()


def find_scope(
    trace: Session,
    *,
    worker: str | None = None,
    prefix: str | None = None,
    start: float | str | None = None,
    stop: float | str | None = None,
) -> Scope:
    """Find the scope that a user's names and times select.

    Parameters are those of :meth:`roast_analyze.Trace.flamegraph`. Raise TraceError if there is
    no such worker, prefix or time range.
    """
    start_t, stop_t = -math.inf, math.inf
    if start is not None or stop is not None:
        runs = trace.rows(
            "SELECT run.start_t, run.stop_t, coalesce(utc_offset_seconds, 0) "
            "FROM run INNER JOIN trace_info USING (trace_id) WHERE run.start_t IS NOT NULL"
        )
        ranges = {
            tuple(parse_time(time, *run) for time in (start, stop) if time is not None)
            for run in runs
        }
        if len(ranges) > 1:
            raise TraceError(
                "times after the start or before the end of several traces are different "
                "times: export one trace, or use dates (2026-08-31T14:05)"
            )
        if runs:
            first, last = min(run[0] for run in runs), max(run[1] for run in runs)
            start_t, stop_t = parse_range(start, stop, first, last, runs[0][2])
    # A profile can have a prefix whose tasks were not recorded.
    if prefix is not None:
        found = trace.rows(
            "SELECT prefix FROM prefixes WHERE prefix IS NOT NULL "
            "UNION SELECT prefix FROM raw.profile WHERE prefix IS NOT NULL ORDER BY ALL"
        )
        prefixes = [name for (name,) in found]
        if prefix not in prefixes:
            raise TraceError(f"unknown prefix {prefix!r}: {_hint(prefix, prefixes)}")
    workers = None if worker is None else find_workers(trace, worker)
    return Scope(workers, prefix, start_t, stop_t)


def recording_start(trace: Session) -> float:
    """Return the start of the recording, in seconds since the epoch."""
    [(start_t,)] = trace.rows("SELECT coalesce(min(start_t), 0) FROM run")
    return float(start_t)


def find_workers(trace: Session, worker: str) -> tuple[str, ...]:
    """Return the addresses of the workers with an address or name; none for the scheduler."""
    known = trace.rows(
        "SELECT worker, name FROM workers UNION SELECT worker, NULL FROM raw.profile "
        "WHERE worker IS NOT NULL AND worker NOT IN (SELECT worker FROM workers) ORDER BY ALL"
    )
    found = {address for address, name in known if worker in (address, name)}
    if not found and worker != _SCHEDULER:
        # A restarted worker has the name of the one before.
        names = sorted({address if name is None else name for address, name in known})
        raise TraceError(f"unknown worker {worker!r}: {_hint(worker, names)}")
    return tuple(sorted(found))


def check_profiles(trace: Session, scope: Scope) -> None:
    """Raise :class:`NothingToExport` if the trace has no profile in a scope."""
    condition = scope.condition(begin="start_t", end="stop_t")
    [(of_workers, of_scheduler, pythons, selected)] = trace.rows(
        "SELECT count(worker), count(*) - count(worker), "  # noqa: S608
        "(SELECT string_agg(DISTINCT python_version, ', ') FROM trace_info), "
        f"count(*) FILTER ({condition.sql}) FROM raw.profile",
        condition.parameters,
    )
    if not of_workers + of_scheduler:
        raise NothingToExport(
            "the trace has no profiles: enable Dask's profiler "
            "(distributed.worker.profile.enabled) and the recorder's kind 'profile'"
        )
    if scope.scheduler and not of_scheduler:
        raise NothingToExport(
            "the trace has no profile of the scheduler: Dask does not sample event loops with "
            f"Python 3.11 or with its profiler disabled (recorded with Python {pythons})"
        )
    if not selected:
        raise NothingToExport(
            "no profile in this part of the trace: choose another worker, prefix or time range"
        )


def _hint(name: str, names: list[str]) -> str:
    if not names:
        return "the trace has none"
    # If there are many names, the closest match is the best hint.
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    listed = ", ".join(one_line(shown, 60) for shown in names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"use one of {listed}" + (f" and {more} more" if more > 0 else "")
