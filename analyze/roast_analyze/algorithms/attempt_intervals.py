"""Intervals of task attempts on their workers, from dispatch to the end of the computation.

The intervals of an attempt do not overlap. An attempt with phases was `busy` while it
computed, deserialized or used the disk, and in `transfer` while it fetched its inputs before;
the rest is `dispatch`. After it left the threads of its worker, it was `seceded`: it computed
or waited. Before its first phase, a stolen attempt is on the worker that it was sent to. An
attempt without phases whose execution began at a known time is `busy` from then to its end, or
until its worker was last seen. Of other attempts without phases, only the outcome is known.
They can have computed all the time (`unreported`), or have waited on the worker until they were
cancelled (`doubtful`). Such an attempt holds its thread to the end, so of each of these two
kinds no more than the worker has threads are there at a time: those dispatched first.
"""

from __future__ import annotations

from heapq import heappush, heapreplace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from roast_analyze.algorithms.outcomes import COMPUTING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[Any]

#: Kinds of intervals, in the order in which they claim threads.
KINDS: Final = (
    "busy", "transfer", "unreported", "doubtful", "dispatch", "actor", "seceded",
)  # fmt: skip

#: Uses of an interval: the outcome of the computation, or else the activity of the attempt. The
#: method of an actor is no attempt.
USES: Final = (
    *COMPUTING, "deserialize", "disk", "transfer", "dispatch", "actor method", "seceded task",
)  # fmt: skip

#: Columns of the attempts, in any order of rows. Instants are relative to any origin.
ATTEMPTS: Final = pl.Schema(
    {
        "end_seq": pl.Int64(),  # identity of the attempt in the phases
        "process": pl.Int32(),
        "sent_process": pl.Int32(),  # another one if the attempt was stolen from there
        "nthreads": pl.Int64(),  # of the process
        "use": pl.UInt8(),  # of the computation: position in USES
        "is_doubtful": pl.Boolean(),  # nothing shows that it began to execute
        "work": pl.Int32(),  # any integer from 0
        "processing_t": pl.Float64(),  # -inf if the time of dispatch is unknown
        "execute_start_t": pl.Float64(),
        "end_t": pl.Float64(),  # inf if it did not end
        "silent_t": pl.Float64(),  # the worker was not seen after this
    }
)

#: Columns of the phases. Those of an attempt follow each other.
PHASES: Final = pl.Schema(
    {
        "end_seq": pl.Int64(),
        "use": pl.UInt8(),  # position in USES; 0 for the computation
        "start": pl.Float64(),
        "stop": pl.Float64(),
    }
)

#: Columns of the intervals.
INTERVALS: Final = pl.Schema(
    {
        "process": pl.Int32(),
        "kind": pl.UInt8(),  # position in KINDS
        "label": pl.Int32(),  # work * len(USES) + position in USES
        "start": pl.Float64(),
        "stop": pl.Float64(),
    }
)


def attempt_intervals(attempts: pl.DataFrame, phases: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals of all attempts.

    Parameters
    ----------
    attempts : polars.DataFrame
        With the columns of ``ATTEMPTS``.
    phases : polars.DataFrame
        With the columns of ``PHASES``. Those of other attempts are left out.

    Returns
    -------
    polars.DataFrame
        With the columns of ``INTERVALS``.
    """
    attempts = attempts.with_columns(pl.col("end_seq").fill_null(-1)).sort("end_seq")
    (
        end_seq,
        process,
        sent_process,
        nthreads,
        own_use,
        is_doubtful,
        work,
        processing_t,
        execute_start_t,
        end_t,
        silent_t,
    ) = (attempts[name].to_numpy() for name in ATTEMPTS)
    of_seq, use, start, stop = (phases[name].to_numpy() for name in PHASES)
    attempt = np.searchsorted(end_seq, of_seq)
    [some] = np.nonzero((start < stop) & (np.append(end_seq, -1)[attempt] == of_seq))
    attempt, use, start, stop = attempt[some], use[some], start[some], stop[some]

    is_transfer, is_seceded = (use == USES.index(name) for name in ("transfer", "seceded task"))
    is_busy = ~is_transfer & ~is_seceded
    busy, busy_start, busy_stop = attempt[is_busy], start[is_busy], stop[is_busy]
    busy_use = np.where(use[is_busy] == 0, own_use[busy], use[is_busy])
    busy_t, transfer_t = np.full((2, len(end_seq)), np.inf)
    np.minimum.at(busy_t, busy, busy_start)
    np.minimum.at(transfer_t, attempt[is_transfer], start[is_transfer])
    transferred_t = np.full(len(end_seq), -np.inf)
    np.maximum.at(transferred_t, attempt[is_transfer], stop[is_transfer])
    # Without a transfer, both times are the start of the computation.
    has_moved = transferred_t > -np.inf
    transfer_t = np.fmin(np.fmax(transfer_t, processing_t), busy_t)
    transferred_t = np.where(has_moved, np.fmin(transferred_t, busy_t), busy_t)

    [reported] = np.nonzero(busy_t < np.inf)
    is_unreported = busy_t == np.inf
    is_unreported[attempt[is_seceded]] = False
    [begun] = np.nonzero(is_unreported & ~np.isnan(execute_start_t))
    is_unknown = is_unreported & np.isnan(execute_start_t)
    [unreported] = np.nonzero(is_unknown & ~is_doubtful)
    [doubtful] = np.nonzero(is_unknown & is_doubtful)
    unreported_t, doubtful_t = (
        _first_turns(process[some], nthreads[some], processing_t[some], end_t[some])
        for some in (unreported, doubtful)
    )
    waiting, gap_start, gap_stop = _gaps(busy, busy_start, busy_stop)

    transfer, dispatch = USES.index("transfer"), USES.index("dispatch")
    parts = (
        ("busy", process, busy, busy_use, busy_start, busy_stop),
        ("transfer", process, reported, transfer, transfer_t[reported],
         transferred_t[reported]),
        ("dispatch", sent_process, reported, dispatch, processing_t[reported],
         transfer_t[reported]),
        ("dispatch", process, reported, dispatch, transferred_t[reported], busy_t[reported]),
        ("dispatch", process, waiting, dispatch, gap_start, gap_stop),
        ("dispatch", process, begun, dispatch, processing_t[begun], execute_start_t[begun]),
        ("busy", process, begun, own_use[begun], execute_start_t[begun],
         np.fmin(end_t[begun], silent_t[begun])),
        ("unreported", process, unreported, own_use[unreported], unreported_t,
         end_t[unreported]),
        ("doubtful", process, doubtful, own_use[doubtful], doubtful_t, end_t[doubtful]),
        ("seceded", process, attempt[is_seceded], USES.index("seceded task"), start[is_seceded],
         stop[is_seceded]),
    )  # fmt: skip
    return pl.concat(
        pl.DataFrame(
            {
                "process": places[attempt],
                "kind": np.full(len(attempt), KINDS.index(kind), np.uint8),
                "label": work[attempt] * len(USES) + use,
                "start": start,
                "stop": stop,
            },
            INTERVALS,
        ).filter(pl.col("start") < pl.col("stop"))
        for kind, places, attempt, use, start, stop in parts
    )


def _first_turns(process: Ints, nthreads: Ints, start: Floats, stop: Floats) -> Floats:
    """Return when each attempt gets a thread that it holds to its end, in order of the starts.

    It is the stop of an earlier attempt, and can be later than its own.
    """
    turns = start.copy()
    #: By process, when its threads become free.
    free: dict[int, list[float]] = {}
    for row in np.argsort(start, kind="stable"):
        threads = free.setdefault(int(process[row]), [])
        if len(threads) < nthreads[row]:
            heappush(threads, stop[row])
            continue
        turns[row] = max(start[row], threads[0] if threads else np.inf)
        if turns[row] < stop[row]:
            heapreplace(threads, stop[row])
    return turns


def _gaps(attempt: Ints, start: Floats, stop: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the attempt, start and stop of the gaps between phases of an attempt.

    A gap begins at the latest end of all earlier phases; its length can be negative.
    """
    [several] = np.nonzero(np.bincount(attempt)[attempt] > 1)
    order = several[np.lexsort((stop[several], start[several], attempt[several]))]
    attempt, start, stop = attempt[order], start[order], stop[order]
    # The latest end so far is the running maximum, by attempt, of the ranks of all ends.
    by_stop = np.argsort(stop, kind="stable")
    rank = np.empty_like(by_stop)
    rank[by_stop] = np.arange(len(rank))
    latest = np.maximum.accumulate(attempt * len(rank) + rank) - attempt * len(rank)
    [after] = np.nonzero(attempt[1:] == attempt[:-1])
    return attempt[after], stop[by_stop][latest[after]], start[after + 1]
