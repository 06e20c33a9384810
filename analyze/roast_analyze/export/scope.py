"""Scope of an export: workers and a prefix, and the rows within it.

A time range is that of the session, as for everything that is computed from a trace.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.errors import NothingToExport, TraceError
from roast_analyze.open.views import NAME
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

    @property
    def scheduler(self) -> bool:
        """True for the scheduler's profile."""
        return self.workers == ()

    def condition(
        self,
        *,
        workers: tuple[str, ...] = ("worker",),
        prefix: str | None = "prefix = $prefix",
    ) -> Condition:
        """Return the SQL condition for a table's rows in this scope.

        One of the columns `workers` must have the address of a worker. `prefix` is an
        expression over ``$prefix`` that is true for the rows of a prefix. A condition without
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
) -> Scope:
    """Find the scope that a user's names select.

    Parameters are those of :meth:`roast_analyze.Trace.flamegraph`. Raise TraceError if there is
    no such worker or prefix.
    """
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
    return Scope(workers, prefix)


def recording_start(trace: Session) -> float:
    """Return the start of the recording, in seconds since the epoch, also in a time range."""
    [(start_t,)] = trace.rows(f"SELECT coalesce(min(start_t), 0) FROM {NAME}._trace_range")  # noqa: S608
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
    condition = scope.condition()
    [(of_workers, of_scheduler, pythons, selected)] = trace.rows(
        # Of the whole recording, also in a time range; and the profiles in the scope.
        "SELECT count(worker), count(*) - count(worker), "  # noqa: S608
        "(SELECT string_agg(DISTINCT python_version, ', ') FROM trace_info), "
        f"(SELECT count(*) FROM raw.profile WHERE {condition.sql} "
        f"AND coalesce(len(tree.slices), 1) > 0) FROM {NAME}.raw.profile",
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
