"""Rows of the table ``_wall_time``: the state of the run at any time of the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

    #: Times of one trace at which something begins, and at which it ends, in order.
    Periods = dict[str, tuple[np.ndarray, np.ndarray]]

#: Periods of each kind that do not overlap. An attempt that was assigned before the recording,
#: or that had not ended, has no limit there. Clients count that submitted tasks, if these are
#: known: what another program does, such as one that only records, keeps no task waiting.
_PERIODS: Final = """
WITH periods AS (
    SELECT 'assigned' AS what, trace_id, coalesce(processing_t, '-infinity') AS start_t,
        coalesce(end_t, 'infinity') AS stop_t
    FROM _task_runs
    UNION ALL
    SELECT 'assigned', trace_id, coalesce(processing_t, '-infinity'),
        coalesce(end_t, 'infinity')
    FROM _chunks
    WHERE NOT has_task
    UNION ALL
    SELECT 'assigned', trace_id, start_t, stop_t FROM _taskless_work
    UNION ALL
    SELECT 'submitted', attempt.trace_id, coalesce(task.t, attempt.processing_t, '-infinity'),
        coalesce(attempt.end_t, 'infinity')
    FROM _task_runs AS attempt
    LEFT JOIN raw.task AS task ON attempt.submission = task.rowid
    UNION ALL
    SELECT 'submitted', trace_id, min(task.t), 'infinity'::DOUBLE
    FROM raw.task AS task
    SEMI JOIN (FROM unattempted WHERE reason = 'waiting at the end') AS waiting
        USING (trace_id, key)
    GROUP BY trace_id
    UNION ALL
    SELECT 'present', trace_id, from_t, to_t FROM _worker_presence
    UNION ALL
    SELECT 'connected', trace_id, start_t, stop_t
    FROM _client_presence
    SEMI JOIN _working_clients USING (trace_id, client)
    UNION ALL
    SELECT activity, trace_id, start_t, stop_t
    FROM client_activity
    SEMI JOIN _working_clients USING (trace_id, client)
),
numbered AS (
    SELECT
        *,
        sum(is_first::INTEGER) OVER (
            PARTITION BY trace_id, what ORDER BY start_t, stop_t ROWS UNBOUNDED PRECEDING
        ) AS number
    FROM (
        SELECT *, coalesce(start_t > max(stop_t) OVER before, true) AS is_first
        FROM periods
        WHERE start_t <= stop_t
        WINDOW before AS (
            PARTITION BY trace_id, what
            ORDER BY start_t, stop_t
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    )
)
SELECT trace_id, what, min(start_t) AS start_t, max(stop_t) AS stop_t
FROM numbered
GROUP BY trace_id, what, number
ORDER BY trace_id, what, start_t
"""


def query(trace: Session) -> pl.DataFrame:
    """Return the periods of each state, of all traces."""
    periods = trace.query_frame(_PERIODS)
    ranges = trace.rows("SELECT trace_id, start_t, stop_t FROM _trace_range ORDER BY trace_id")
    found = [
        states(
            {
                str(what): (of_kind["start_t"].to_numpy(), of_kind["stop_t"].to_numpy())
                for (what,), of_kind in periods.filter(trace_id=trace_id).group_by("what")
            },
            start_t,
            stop_t,
        ).with_columns(trace_id=pl.lit(trace_id))
        for trace_id, start_t, stop_t in ranges
        if start_t is not None and start_t < stop_t
    ]
    return pl.concat(found) if found else pl.DataFrame()


def states(periods: Periods, start_t: float, stop_t: float) -> pl.DataFrame:
    """Return the state of a run between two times, as periods that follow each other.

    Parameters
    ----------
    periods : dict
        Starts and ends, in order, of periods that do not overlap, in which: an attempt was
        assigned, a task was submitted and had not ended, a worker was present, a client that
        submitted tasks was connected, and its program was in an activity (wait, dask, own).
    start_t, stop_t : float
        Start and end of the recording.

    Returns
    -------
    pl.DataFrame
        start_t, stop_t, seconds and state of each period.
    """
    ends = [times for pair in periods.values() for times in pair]
    bounds = np.unique(np.clip(np.concatenate([*ends, [start_t, stop_t]]), start_t, stop_t))
    middles = (bounds[:-1] + bounds[1:]) / 2

    def holds(what: str) -> np.ndarray:
        starts, stops = periods.get(what, (np.empty(0), np.empty(0)))
        number: np.ndarray = np.searchsorted(starts, middles) - np.searchsorted(stops, middles)
        return number > 0

    submitted, waits = holds("submitted"), holds("wait")
    # Without Dask, chunks are the work.
    work = periods.get("submitted") or periods.get("assigned")
    began, ended = (np.inf, np.inf) if work is None else (np.min(work[0]), np.max(work[1]))
    conditions = {
        "working": holds("assigned"),
        "no worker": ~holds("present") & (submitted | waits),
        "tasks not assigned": submitted,
        "client makes graphs": holds("dask"),
        "client computes": holds("own"),
        "client waits": waits,
        "no client": ~holds("connected") & ("connected" in periods),
        "starting": middles < began,
        "ending": middles > ended,
    }
    state = np.select(list(conditions.values()), list(conditions), "client not known")
    changes = np.flatnonzero(np.append(True, state[1:] != state[:-1]))
    starts_of = bounds[changes]
    stops_of = np.append(starts_of[1:], stop_t)
    return pl.DataFrame(
        {
            "start_t": starts_of,
            "stop_t": stops_of,
            "seconds": stops_of - starts_of,
            "state": state[changes],
        }
    )
