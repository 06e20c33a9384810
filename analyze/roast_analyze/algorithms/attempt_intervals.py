"""Intervals of task attempts on their workers, from dispatch to the end of the computation.

The intervals of an attempt do not overlap. An attempt with phases was `busy` while it computed,
deserialized or used the disk, and in `transfer` while it fetched its inputs before; the rest is
`dispatch`. An attempt without phases that began to execute before its worker was lost is `busy`
as long as the worker was seen. Nothing but the outcome is known of others without phases: their
interval is `unreported`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    _Floats = NDArray[np.float64]
    _Ints = NDArray[Any]

#: Kinds of intervals, in the order in which they claim threads.
KINDS: Final = ("busy", "transfer", "unreported", "dispatch")

#: Uses of an interval: what became of the computation, or else what the attempt did.
USES: Final = (
    "kept result",
    "recomputed result",
    "failed attempt",
    "lost attempt",
    "unfinished attempt",
    "cancelled attempt",
    "deserialize",
    "disk",
    "transfer",
    "dispatch",
)

#: Columns of the attempts, in any order of rows. Instants are relative to any origin.
ATTEMPTS: Final = pl.Schema(
    {
        "end_seq": pl.Int64(),  # identity of the attempt in the phases
        "process": pl.Int32(),
        "use": pl.UInt8(),  # of the computation: position in USES
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
    process, work = attempts["process"].to_numpy(), attempts["work"].to_numpy()
    parts = []
    for kind, use, attempt, start, stop in _parts(attempts, phases):
        # A comparison with nan is false.
        [lasting] = np.nonzero(start < stop)
        some = attempt[lasting]
        parts.append(
            (
                process[some],
                np.full(len(lasting), KINDS.index(kind), np.uint8),
                work[some] * len(USES) + np.broadcast_to(use, len(start))[lasting],
                start[lasting],
                stop[lasting],
            )
        )
    columns = map(np.concatenate, zip(*parts, strict=True))
    return pl.DataFrame(dict(zip(INTERVALS, columns, strict=True)), schema=INTERVALS)


def _parts(
    attempts: pl.DataFrame, phases: pl.DataFrame
) -> Iterator[tuple[str, _Ints | int, _Ints, _Floats, _Floats]]:
    """Yield kind, use, attempts, starts and stops of intervals, some of them empty or nan."""
    processing_t, execute_start_t, end_t, silent_t = (
        attempts[name].fill_null(np.nan).to_numpy()
        for name in ("processing_t", "execute_start_t", "end_t", "silent_t")
    )
    own_use, every = attempts["use"].to_numpy(), np.arange(attempts.height)
    transfer, dispatch = USES.index("transfer"), USES.index("dispatch")

    attempt, use, start, stop = _phases(attempts, phases)
    is_busy = use != transfer
    fetching = attempt[~is_busy]
    transferred_t = _reduced(np.maximum, fetching, stop[~is_busy], len(every))
    transfer_t = _reduced(np.minimum, fetching, start[~is_busy], len(every))
    attempt, use, start, stop = attempt[is_busy], use[is_busy], start[is_busy], stop[is_busy]
    busy_t = _reduced(np.minimum, attempt, start, len(every))
    transferred_t = np.minimum(transferred_t, busy_t)
    transfer_t = np.minimum(np.maximum(transfer_t, processing_t), busy_t)

    yield "busy", np.where(use == 0, own_use[attempt], use), attempt, start, stop
    yield "transfer", transfer, every, transfer_t, transferred_t
    # fmin() ignores nan: an attempt without a transfer.
    yield "dispatch", dispatch, every, processing_t, np.fmin(transfer_t, busy_t)
    yield "dispatch", dispatch, every, transferred_t, busy_t
    yield "dispatch", dispatch, *_gaps(attempt, start, stop)

    [unreported] = np.nonzero(np.isnan(busy_t))
    of_unreported = (column[unreported] for column in (processing_t, execute_start_t, end_t))
    processing_t, execute_start_t, end_t = of_unreported
    yield "dispatch", dispatch, unreported, processing_t, execute_start_t
    seen_t = np.fmin(end_t, silent_t[unreported])
    yield "busy", own_use[unreported], unreported, execute_start_t, seen_t
    until_t = np.where(np.isnan(execute_start_t), end_t, np.nan)
    yield "unreported", own_use[unreported], unreported, processing_t, until_t


def _phases(
    attempts: pl.DataFrame, phases: pl.DataFrame
) -> tuple[_Ints, _Ints, _Floats, _Floats]:
    """Return attempt, use, start and stop of the phases that last."""
    phases = phases.filter(pl.col("start") < pl.col("stop"))
    identity = attempts["end_seq"].fill_null(-1).to_numpy()
    by_identity = np.argsort(identity)
    wanted = phases["end_seq"].to_numpy()
    place = np.searchsorted(identity, wanted, sorter=by_identity)
    # A phase of another attempt can be after the last place.
    attempt = np.append(by_identity, len(identity))[place]
    known = np.append(identity, -1)[attempt] == wanted
    use, start, stop = (phases[name].to_numpy()[known] for name in ("use", "start", "stop"))
    return attempt[known], use, start, stop


def _reduced(reduce: np.ufunc, attempt: _Ints, values: _Floats, count: int) -> _Floats:
    """Return the extreme value of each attempt; nan if it has none."""
    first = _firsts(attempt)
    found = np.full(count, np.nan)
    found[attempt[first]] = reduce.reduceat(values, first)
    return found


def _firsts(attempt: _Ints) -> _Ints:
    """Return the places at which another attempt begins."""
    return np.flatnonzero(np.diff(attempt, prepend=-1))


def _gaps(attempt: _Ints, start: _Floats, stop: _Floats) -> tuple[_Ints, _Floats, _Floats]:
    """Return the times between phases of attempts with several."""
    first = _firsts(attempt)
    counts = np.diff(first, append=len(attempt))
    [several] = np.nonzero(np.repeat(counts, counts) > 1)
    several = several[np.lexsort((stop[several], start[several], attempt[several]))]
    attempt, start, stop = attempt[several], start[several], stop[several]
    # The latest stop so far, as its rank among all stops after those of earlier attempts.
    by_stop = np.argsort(stop)
    rank = np.empty(len(stop), np.int64)
    rank[by_stop] = np.arange(len(stop))
    earlier = len(stop) * np.cumsum(np.diff(attempt, prepend=-1) != 0)
    latest = stop[by_stop[np.maximum.accumulate(earlier + rank) - earlier]]
    [follows] = np.nonzero(attempt[1:] == attempt[:-1])
    return attempt[follows], latest[follows], start[follows + 1]
