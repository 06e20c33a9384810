"""Limiting a trace to a time range of its run.

The database of a trace may be read-only and shared, so a second database in memory, with the
same relations, precedes it in the search path. Records with a time are kept if it lies in the
range. Attempts, workers and everything else with a duration are cut at its ends, as the files
of ``sql/time_range`` define. Everything else is computed from these by the same files as for
the whole run, so a view has the same meaning for a time range as for a run.

A range includes its start and excludes its end, so that adjacent ranges count each time once.
A range that starts with the run includes what workers, by their own clocks, did before it; a
range that ends with the run includes what they did after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from roast_analyze.errors import TraceError
from roast_analyze.open.database import attach_empty, copy_template
from roast_analyze.open.time_parsing import parse_time
from roast_analyze.open.views import (
    NAME,
    VIEWS_NAME,
    create_time_range_views,
    time_range_tables,
)
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    import duckdb

    from roast_analyze.open.database import Listener

#: Name of the database of a time range within a connection.
RANGE_NAME: Final = "time_range"

_RUNS: Final = """
SELECT trace_id, start_t, stop_t, coalesce(any_value(utc_offset_seconds), 0)
FROM _trace_range
LEFT JOIN (SELECT trace_id, utc_offset_seconds FROM trace_info) USING (trace_id)
GROUP BY ALL
ORDER BY trace_id
"""

#: Sessions that an error names.
_NAMED_SESSIONS: Final = 8

#: Clients in the order of the view ``sessions``.
_SESSIONS: Final = """
SELECT client, start_t, stop_t
FROM _client_presence
WHERE trace_id = ?
ORDER BY start_t, client
"""

#: Names of clients, as in the view ``sessions``: known ones are easier to recognize than IDs.
_PROGRAMS: Final = """
SELECT client, coalesce(program, name)
FROM _client_programs
WHERE trace_id = ? AND coalesce(program, name) IS NOT NULL
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
INNER JOIN _time_range USING (trace_id)
WHERE trace_id = $trace_id
    AND begin_t < until_t
    AND coalesce(end_t >= from_t, true)
    AND (begin_t < from_t OR end_t >= until_t)
"""


class Counts(NamedTuple):
    """Numbers of attempts at tasks (or at chunks without tasks), transitions and samples."""

    attempts: int
    transitions: int
    samples: int


@dataclass(frozen=True)
class TimeRange:
    """A time range of a run, and how much of the run it contains."""

    trace_id: str
    start_seconds: float  # of the range, since the start of the run
    stop_seconds: float
    run_seconds: float  # duration of the whole run
    selected: Counts  # contents of the range
    total: Counts  # contents of the whole run
    cut_attempts: int  # attempts in the range that are cut at an end of it

    @property
    def options(self) -> str:
        """Options of the command line that select the same range."""
        start, stop = map(_format_seconds, (self.start_seconds, self.stop_seconds))
        begin = [f"--from {start}"] if self.start_seconds > 0 else []
        end = [f"--to {stop}"] if self.stop_seconds < self.run_seconds else []
        return " ".join(begin + end)


def limit_to_time_range(
    connection: duckdb.DuckDBPyConnection,
    start: float | str | None,
    stop: float | str | None,
    listener: Listener,
    *,
    session: int | None = None,
    cache: bool,
) -> tuple[TimeRange, ...]:
    """Limit a connection to a time range of each of its traces; return the ranges.

    It then finds names in the database :data:`RANGE_NAME`. Times are those of
    :func:`roast_analyze.open.time_parsing.parse_time`; None is the start or the end of the run.
    A `session`, the number of a row of the view ``sessions``, replaces both. With `cache` the
    views are copied from the cache. Raises TraceError if the range is invalid or does not
    overlap a run, or if there is no such session.
    """
    runs = connection.execute(_RUNS).fetchall()
    if session is not None and (start is not None or stop is not None):
        raise TraceError(
            f"session {session} has a time range of its own: leave out the session, or --from "
            "and --to (start and stop)"
        )
    ends = {
        run[0]: parse_range(start, stop, *run[1:])
        if session is None
        else _session_range(connection, session, *run[:3])
        for run in runs
    }
    _attach_range(connection)
    if not (cache and copy_template(connection, "time_range", RANGE_NAME, _attach_empty_range)):
        create_time_range_views(connection)
    for trace_id, range_ends in ends.items():
        connection.execute("INSERT INTO _time_range VALUES (?, ?, ?)", [trace_id, *range_ends])
    tables = time_range_tables()
    for i, (name, sql) in enumerate(tables.items()):
        listener("selecting the range", i / len(tables))
        connection.execute(f"DROP TABLE {name}; {sql}")
    ranges = []
    for trace_id, start_t, stop_t, _ in runs:
        from_t, until_t = ends[trace_id]
        parameters = {"trace_id": trace_id}
        selected, total = (
            Counts(*connection.execute(_COUNTS.format(database=name), parameters).fetchall()[0])
            for name in (RANGE_NAME, NAME)
        )
        [(cut_attempts,)] = connection.execute(_CUT, parameters).fetchall()
        ranges.append(
            TimeRange(
                trace_id=trace_id,
                start_seconds=max(from_t - start_t, 0.0),
                stop_seconds=min(until_t, stop_t) - start_t,
                run_seconds=stop_t - start_t,
                selected=selected,
                total=total,
                cut_attempts=cut_attempts,
            )
        )
    return tuple(ranges)


def _attach_empty_range(connection: duckdb.DuckDBPyConnection) -> None:
    attach_empty(connection)
    _attach_range(connection)
    create_time_range_views(connection)


def _attach_range(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(f"ATTACH ':memory:' AS {RANGE_NAME}")
    connection.execute(f"SET search_path = '{RANGE_NAME},{VIEWS_NAME}'")


def parse_range(
    start: float | str | None,
    stop: float | str | None,
    start_t: float | None,
    stop_t: float | None,
    utc_offset_seconds: float,
) -> tuple[float, float]:
    """Parse the ends of a range of a run; return infinity where they are those of the run.

    Raises TraceError if the range is invalid or does not overlap the run.
    """
    if start_t is None or stop_t is None:
        raise TraceError("the trace has no record with a time: read it without a time range")
    run = (start_t, stop_t, utc_offset_seconds)
    from_t = start_t if start is None else parse_time(start, *run)
    until_t = stop_t if stop is None else parse_time(stop, *run)
    hint = f"the run lasted {_format_seconds(stop_t - start_t)} s: use a time within it"
    if from_t >= stop_t and from_t > start_t:
        raise TraceError(f"{str(start)!r} is after the end of the run; {hint}")
    if stop is not None and until_t <= start_t:
        raise TraceError(f"{str(stop)!r} is not after the start of the run; {hint}")
    if start is not None and stop is not None and from_t >= until_t:
        raise TraceError(
            f"empty time range from {str(start)!r} to {str(stop)!r}, which are "
            f"{_format_seconds(from_t - start_t)} s and {_format_seconds(until_t - start_t)} s "
            "after the start: use an end after the start"
        )
    return (
        # Clocks of workers differ, so what they did can lie slightly outside of the run.
        from_t if from_t > start_t else -math.inf,
        until_t if until_t < stop_t else math.inf,
    )


def _session_range(
    connection: duckdb.DuckDBPyConnection,
    session: int,
    trace_id: str,
    start_t: float,
    stop_t: float,
) -> tuple[float, float]:
    """Return the range of a session, with infinity as from :func:`parse_range`."""
    known = connection.execute(_SESSIONS, [trace_id]).fetchall()
    if not known:
        raise TraceError(f"the trace has no session {session}: it has no record of a client")
    if not 1 <= session <= len(known):
        programs = dict(connection.execute(_PROGRAMS, [trace_id]).fetchall())
        names = [
            f"{number} ({one_line(programs.get(client, client))}, "
            f"{_format_seconds(round(begin - start_t, 1))} to "
            f"{_format_seconds(round(end - start_t, 1))} s)"
            for number, (client, begin, end) in enumerate(known[:_NAMED_SESSIONS], start=1)
        ]
        more = len(known) - len(names)
        others = f" and {more} more (view sessions)" if more else ""
        raise TraceError(f"unknown session {session}: use {', '.join(names)}{others}")
    _, from_t, until_t = known[session - 1]
    if from_t >= until_t:
        raise TraceError(
            f"session {session} is empty: its client left when it joined; use another session"
        )
    return (
        from_t if from_t > start_t else -math.inf,
        until_t if until_t < stop_t else math.inf,
    )


def _format_seconds(seconds: float) -> str:
    """Format seconds with up to six decimals, without trailing zeros."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")
