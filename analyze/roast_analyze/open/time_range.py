"""An excerpt: what a trace tells of a stretch of its run.

Beside the database of a trace, which may be read-only and shared, lies another one in memory,
with the same relations. Records that have an instant are there if that lies in the stretch;
attempts, workers and what else lasts are cut off at its ends (the files of ``sql/excerpt``
say how); everything else is worked out from these by the same files as ever. So a view means
the same of an excerpt as of the whole run.

The stretch is half open: excerpts that follow each other have each instant once. One that
begins with the run has all that workers, by their own clocks, did before; one that ends with
it has what they did after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.errors import TraceError
from roast_analyze.open.database import BESIDE, NAME
from roast_analyze.open.time_parsing import instant_of
from roast_analyze.open.views import create_excerpt_views, excerpt_table

if TYPE_CHECKING:
    import duckdb

    from roast_analyze.open.database import Listener

#: Name of the database of an excerpt within a connection.
EXCERPT: Final = "excerpt"

_RUNS: Final = """
SELECT trace_id, start_t, stop_t, coalesce(any_value(utc_offset_seconds), 0)
FROM _recording
LEFT JOIN (SELECT trace_id, utc_offset_seconds FROM trace_info) USING (trace_id)
GROUP BY ALL
ORDER BY trace_id
"""

_COUNTS: Final = """
SELECT
    (SELECT count(*) FROM {database}._task_runs WHERE trace_id = $trace_id)
    + (SELECT count(*) FROM {database}._chunks WHERE trace_id = $trace_id AND NOT has_task),
    (SELECT count(*) FROM {database}.transitions WHERE trace_id = $trace_id),
    (SELECT count(*) FROM {database}.worker_samples WHERE trace_id = $trace_id)
"""

_CUT: Final = """
SELECT count(*)
FROM (
    SELECT trace_id, coalesce(processing_t, '-infinity') AS begin_t, end_t
    FROM trace._task_runs SEMI JOIN _task_runs USING (trace_id, seq)
    UNION ALL
    SELECT trace_id, processing_t, end_t FROM trace._chunks WHERE NOT has_task
)
INNER JOIN _excerpt USING (trace_id)
WHERE trace_id = $trace_id
    AND begin_t < until_t
    AND coalesce(end_t >= from_t, true)
    AND (begin_t < from_t OR end_t >= until_t)
"""


@dataclass(frozen=True)
class Counts:
    """How much there is: attempts at tasks (at chunks, where there are none), and records."""

    attempts: int
    transitions: int
    samples: int


@dataclass(frozen=True)
class Excerpt:
    """Which stretch of a run an excerpt is of, and how much of the run lies in it.

    Parameters
    ----------
    trace_id : str
    start_seconds, stop_seconds : float
        Where it begins and ends, in seconds since the start of the run.
    run_seconds : float
        Length of the whole run.
    told, whole : Counts
        What the excerpt tells of, and what there is in the whole run.
    cut_attempts : int
        Attempts told of that go beyond an end of the stretch, and are cut off there.
    """

    trace_id: str
    start_seconds: float
    stop_seconds: float
    run_seconds: float
    told: Counts
    whole: Counts
    cut_attempts: int

    @property
    def options(self) -> str:
        """Options of the command line that ask for the same excerpt."""
        parts = []
        if self.start_seconds > 0:
            parts.append(f"--from {_plain(self.start_seconds)}")
        if self.stop_seconds < self.run_seconds:
            parts.append(f"--to {_plain(self.stop_seconds)}")
        return " ".join(parts)


def open_excerpts(
    connection: duckdb.DuckDBPyConnection,
    start: float | str | None,
    stop: float | str | None,
    listener: Listener,
) -> tuple[Excerpt, ...]:
    """Let a connection tell of a stretch of the run only.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Of the database of some traces, as :func:`roast_analyze.open.database.open_database` gives
        it. Then it finds names in that of the excerpt, :data:`EXCERPT`.
    start, stop : float, str or None
        As :func:`roast_analyze.open.time_parsing.instant_of` takes them, for each trace by itself; None is
        the start or the end of the run.
    listener : Listener

    Returns
    -------
    tuple of Excerpt
        One a trace.

    Raises
    ------
    TraceError
        If that is no stretch of the run.
    """
    runs = connection.execute(_RUNS).fetchall()
    ends = {run[0]: _ends(start, stop, *run[1:]) for run in runs}
    connection.execute(f"ATTACH ':memory:' AS {EXCERPT}")
    connection.execute(f"USE {EXCERPT}")
    connection.execute(excerpt_table())
    for trace_id, (from_t, until_t) in ends.items():
        connection.execute("INSERT INTO _excerpt VALUES (?, ?, ?)", [trace_id, from_t, until_t])
    create_excerpt_views(connection, lambda share: listener("cutting the stretch out", share))
    connection.execute(f"SET search_path = '{EXCERPT},{BESIDE}'")
    return tuple(
        _excerpt(connection, trace_id, start_t, stop_t, *ends[trace_id])
        for trace_id, start_t, stop_t, _ in runs
    )


def _ends(
    start: float | str | None,
    stop: float | str | None,
    start_t: float | None,
    stop_t: float | None,
    utc_offset_seconds: float,
) -> tuple[float, float]:
    """Find the ends of the stretch, infinite where it is open."""
    if start_t is None or stop_t is None:
        raise TraceError("the trace holds no record with a time, so that it has no stretches")
    run = (start_t, stop_t, utc_offset_seconds)
    from_t = start_t if start is None else instant_of(start, *run)
    until_t = stop_t if stop is None else instant_of(stop, *run)
    hint = f"the run lasted {_plain(stop_t - start_t)} s; give a time within it"
    if from_t >= stop_t and from_t > start_t:
        raise TraceError(f"from {str(start)!r} on there is nothing: {hint}")
    if stop is not None and until_t <= start_t:
        raise TraceError(f"before {str(stop)!r} there is nothing: {hint}")
    if start is not None and stop is not None and from_t >= until_t:
        raise TraceError(
            f"from {str(start)!r} to {str(stop)!r} is no stretch: that is from "
            f"{_plain(from_t - start_t)} s to {_plain(until_t - start_t)} s after the start; "
            "let it begin before it ends"
        )
    return (
        from_t if from_t > start_t else -math.inf,
        until_t if until_t < stop_t else math.inf,
    )


def _excerpt(
    connection: duckdb.DuckDBPyConnection,
    trace_id: str,
    start_t: float,
    stop_t: float,
    from_t: float,
    until_t: float,
) -> Excerpt:
    [(cut,)] = connection.execute(_CUT, {"trace_id": trace_id}).fetchall()
    return Excerpt(
        trace_id=trace_id,
        start_seconds=max(from_t - start_t, 0.0),
        stop_seconds=min(until_t, stop_t) - start_t,
        run_seconds=stop_t - start_t,
        told=_counts(connection, EXCERPT, trace_id),
        whole=_counts(connection, NAME, trace_id),
        cut_attempts=cut,
    )


def _counts(connection: duckdb.DuckDBPyConnection, database: str, trace_id: str) -> Counts:
    query = _COUNTS.format(database=database)
    return Counts(*connection.execute(query, {"trace_id": trace_id}).fetchall()[0])


def _plain(seconds: float) -> str:
    """Write seconds to the microsecond, without what says nothing."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")
