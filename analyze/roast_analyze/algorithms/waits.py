"""The waits of task attempts: the cause that delayed the start of each.

Every constraint has an instant, and the latest one binds:

- A *result*: a dependency ended.
- A *failure*: the attempt before failed or was lost.
- A *loss*: the worker with the result of the attempt before left.
- A *submission*: the graph arrived. The client is assumed to have waited for the last result
  that it wanted and that ended before.
- The *thread*: the previous attempt on it stopped computing. It does not bind if it stopped
  while the inputs of the attempt were still being transferred.

Clocks of workers can be a little off: instants of an attempt are limited to the time from its
dispatch to its end on the scheduler, and constraints that contradict the order of starts are
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl

from roast_analyze.algorithms.outcomes import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Floats = NDArray[np.float64]
    _Ints = NDArray[np.int64]
    _Bools = NDArray[np.bool_]

#: Outcomes of attempts that are followed by another one, and of all without a result or error.
_REPEATED: Final = [name for name, meaning in OUTCOMES.items() if meaning.is_repeated]
_NO_END: Final = [*_REPEATED, "cancelled", "unfinished"]

#: The departure of a worker can be recorded this much after the transitions that it causes.
_REMOVAL_SECONDS: Final = 1.0

#: Ids are searched if there are this many times more numbers between the first and the last.
_MAX_SPARSITY: Final = 16


class Constraints(NamedTuple):
    """Constraints of one kind: the attempt `after` waited until `t` for `before`, or -1."""

    kind: str
    before: _Ints
    after: _Ints
    t: _Floats


class Thread(NamedTuple):
    """The previous attempt on the thread, by row of the attempts."""

    before: _Ints
    #: When it stopped, and when the inputs of the attempt had arrived.
    free_t: _Floats
    ready_t: _Floats
    #: Whether the attempt waited for the thread rather than for anything else.
    binds: _Bools


class Binding(NamedTuple):
    """The constraint that binds, by row of the attempts."""

    #: Position in ``Waits.constraints``, or -1.
    kind: NDArray[np.int8]
    before: _Ints
    t: _Floats


class Waits(NamedTuple):
    """The waits of all attempts of a run.

    The columns of the attempts are those of :func:`find_waits`, in the order of id, and:

    - begin_t and stop_t of computing, and end_t, within the time from dispatch to end;
    - has_ended: the end is recorded, else it is that of the run;
    - rank: position in the order of begin_t;
    - is_recomputed: the result of the previous attempt was lost with its worker.
    """

    attempts: pl.DataFrame
    constraints: list[Constraints]
    #: The latest of the constraints.
    binding: Binding
    thread: Thread
    #: Rows of the results that the client waited for, in the order of their ends.
    awaited: _Ints
    #: Row of the attempt with which the critical path ends.
    last: int


def find_waits(
    attempts: pl.DataFrame, dependencies: pl.DataFrame, start_t: float, stop_t: float
) -> Waits:
    """Find what every attempt waited for.

    Parameters
    ----------
    attempts : polars.DataFrame
        At least one row, in any order: id (in the order in which attempts were dispatched),
        previous (attempt at the same submission of the key before), outcome (as in task_runs),
        is_wanted (a client wanted the result), is_running (not ended when the trace ends),
        process, thread, submitted_t, waiting_t (latest transition to waiting), processing_t,
        transferred_t (end of the last transfer), compute_start_t, compute_stop_t, end_t,
        removed_t (departure of the process). Instants are in seconds since the epoch.
    dependencies : polars.DataFrame
        id of an attempt, and dependency: id of the attempt whose result it used.
    start_t, stop_t : float
        Boundaries of the run.
    """
    outcome = pl.col("outcome")
    began_t = pl.coalesce("compute_start_t", "processing_t", pl.lit(start_t))
    computed_t = pl.coalesce("compute_stop_t", "end_t")
    attempts = (
        attempts.sort("id")
        .with_columns(
            is_failure=outcome.is_in(_REPEATED),
            is_result=~outcome.is_in(_NO_END),
            has_ended=pl.col("end_t").is_not_null(),
            end_t=pl.max_horizontal(pl.col("end_t").fill_null(stop_t), "processing_t"),
        )
        # Instants of workers are limited by those of the scheduler.
        .with_columns(
            begin_t=pl.min_horizontal(pl.max_horizontal(began_t, "processing_t"), "end_t")
        )
        .with_columns(
            stop_t=pl.min_horizontal(pl.max_horizontal(computed_t, "begin_t"), "end_t"),
            rank=pl.col("begin_t").rank("ordinal").cast(pl.Int64) - 1,
        )
    )
    ids, begin_t, end_t, rank, is_failure, is_result, has_ended = _columns(
        attempts, "id", "begin_t", "end_t", "rank", "is_failure", "is_result", "has_ended"
    )
    previous = _rows_of(ids, attempts["previous"].fill_null(ids[0] - 1).to_numpy())
    removed_t = attempts["removed_t"].to_numpy()[previous]
    is_recomputed = (
        (previous >= 0)
        & (attempts["outcome"] == "memory").to_numpy()[previous]
        & (removed_t >= end_t[previous])
        & (removed_t <= begin_t + _REMOVAL_SECONDS)
    )
    attempts = attempts.with_columns(is_recomputed=pl.Series(is_recomputed))

    is_wanted = is_result & attempts["is_wanted"].to_numpy()
    [awaited] = np.nonzero(is_wanted if is_wanted.any() else is_result)
    awaited = awaited[np.argsort(end_t[awaited], kind="stable")]
    after, before = (
        _rows_of(ids, dependencies[name].to_numpy()) for name in ("id", "dependency")
    )
    needs = _ordered(rank, "result", before, after, end_t[before])
    [failed] = np.nonzero((previous >= 0) & is_failure[previous])
    constraints = [
        _submissions(attempts, previous, awaited),
        needs,
        _losses(attempts, previous),
        _ordered(rank, "failure", previous[failed], failed, end_t[previous[failed]]),
    ]
    # The latest constraint of each attempt; of simultaneous ones, the last kind.
    kinds = np.full(len(ids), -1, np.int8)
    before, t = np.full(len(ids), -1), np.full(len(ids), -np.inf)
    for i, kind in enumerate(constraints):
        np.maximum.at(t, kind.after, kind.t)
        is_latest = kind.t == t[kind.after]
        after = kind.after[is_latest]
        kinds[after], before[after] = i, -1
        np.maximum.at(before, after, kind.before[is_latest])
    binding = Binding(kinds, before, t)

    # The path ends with an attempt that runs, a result that a client wanted or else that no
    # task used, or any attempt.
    is_running = attempts["is_running"].to_numpy()
    if is_running.any():
        last = int(np.argmax(np.where(is_running, rank, -1)))
    else:
        is_used = np.zeros(len(ids), bool)
        is_used[needs.before] = True
        each = [has_ended & one for one in (is_wanted, is_result & ~is_used, True)]
        some = next((one for one in each if one.any()), np.ones(len(ids), bool))
        latest = np.where(some, end_t, -np.inf)
        last = int(np.flatnonzero(latest == latest.max())[-1])
    threads = _threads(attempts, binding)
    return Waits(attempts, constraints, binding, threads, awaited, last)


def _columns(frame: pl.DataFrame, *names: str) -> list[NDArray[Any]]:
    return [frame[name].to_numpy() for name in names]


def _rows_of(ids: _Ints, wanted: _Ints) -> _Ints:
    """Return the rows of some ids; -1 for an unknown id."""
    span = int(ids[-1]) - int(ids[0]) + 1
    if span > _MAX_SPARSITY * len(ids):
        rows = np.searchsorted(ids, wanted).clip(max=len(ids) - 1)
        return np.where(ids[rows] == wanted, rows, -1)
    # A table of all ids is ten times faster than a search.
    table = np.full(span + 1, -1, np.int32)
    table[ids - ids[0]] = np.arange(len(ids))
    place = wanted - ids[0]
    return table[np.where((place >= 0) & (place < span), place, span)].astype(np.int64)


def _ordered(rank: _Ints, kind: str, before: _Ints, after: _Ints, t: _Floats) -> Constraints:
    """Return constraints without those that contradict the order of begins (damaged clocks)."""
    known = (before >= 0) & (after >= 0)
    known[known] = rank[before[known]] < rank[after[known]]
    return Constraints(kind, before[known], after[known], t[known])


def _losses(attempts: pl.DataFrame, previous: _Ints) -> Constraints:
    """Return the waits until a result was lost.

    The path continues with an attempt that was lost on the same worker, or else with the last
    one that ended before.
    """
    rank, is_recomputed, waiting_t, begin_t, end_t = _columns(
        attempts, "rank", "is_recomputed", "waiting_t", "begin_t", "end_t"
    )
    [after] = np.nonzero(is_recomputed)
    if not len(after):
        return Constraints("loss", after, after, np.empty(0))
    t = np.fmin(waiting_t[after], begin_t[after])  # fmin() and fmax() ignore nan.
    by_end = np.argsort(end_t, kind="stable")
    ended = np.searchsorted(end_t[by_end], t, side="right")
    before = np.concatenate(([-1], by_end))[ended]
    lost = (
        attempts.with_row_index("row")
        .filter(outcome="lost")
        .select("process", "end_t", "row")
        .sort("end_t", "row")
    )
    found = (
        pl.DataFrame(
            {
                "process": attempts["process"].gather(previous[after]),
                "t": t + _REMOVAL_SECONDS,
                "place": np.arange(len(after)),
            }
        )
        .sort("t")
        .join_asof(
            lost, left_on="t", right_on="end_t", by="process",
            tolerance=2 * _REMOVAL_SECONDS, check_sortedness=False,
        )
        .drop_nulls()
    )  # fmt: skip
    before[found["place"].to_numpy()] = found["row"].to_numpy()
    return _ordered(rank, "loss", before, after, t)


def _submissions(attempts: pl.DataFrame, previous: _Ints, awaited: _Ints) -> Constraints:
    """Return the waits for the graph, before which the client waited for a result, or -1."""
    submitted_t, waiting_t, begin_t, end_t, rank, is_recomputed, is_failure = _columns(
        attempts, "submitted_t", "waiting_t", "begin_t", "end_t", "rank", "is_recomputed",
        "is_failure",
    )  # fmt: skip
    # A result that the client wants again is not submitted again.
    again = (previous >= 0) & ~is_recomputed & ~is_failure[previous]
    t = np.fmin(np.where(again, np.fmax(submitted_t, waiting_t), submitted_t), begin_t)
    [after] = np.nonzero(~np.isnan(submitted_t))
    ended = np.searchsorted(end_t[awaited], t[after], side="right")
    before = np.concatenate(([-1], awaited))[ended]
    before[rank[before] >= rank[after]] = -1
    return Constraints("submission", before, after, t[after])


def _threads(attempts: pl.DataFrame, binding: Binding) -> Thread:
    """Return the previous attempt on each thread, or on the worker if the thread is unknown."""
    # Select only the columns needed, because sorting copies them.
    frame = (
        attempts.select(
            "process", "thread", "rank", "begin_t", "stop_t",
            computes=pl.col("compute_start_t").is_not_null(),
        )
        .with_row_index("row")
        .drop_nulls("process")
    )  # fmt: skip
    on_thread = pl.col("computes") & pl.col("thread").is_not_null()
    threads = (
        frame.filter(on_thread)
        .sort("rank")
        .select("row", before=pl.col("row").shift(1).over("process", "thread"))
    )
    others = (
        frame.filter(~on_thread)
        .sort("begin_t", "row")
        .join_asof(
            frame.filter("computes")
            .select("process", "stop_t", before="row")
            .sort("stop_t", "before"),
            left_on="begin_t", right_on="stop_t", by="process", check_sortedness=False,
        )
        .select("row", "before")
    )  # fmt: skip
    found = pl.concat([threads, others]).drop_nulls()
    rank, begin_t, stop_t, processing_t, transferred_t = _columns(
        attempts, "rank", "begin_t", "stop_t", "processing_t", "transferred_t"
    )
    before = np.full(len(rank), -1)
    before[found["row"].to_numpy()] = found["before"].to_numpy()
    before[(before >= 0) & (rank[before] >= rank)] = -1

    dispatched_t = np.nan_to_num(processing_t, nan=-np.inf)
    ready_t = np.fmin(np.fmax(dispatched_t, transferred_t), begin_t)
    free_t = np.fmin(stop_t[before], begin_t)
    on_worker = free_t > dispatched_t
    binds = np.where(on_worker, free_t >= ready_t, free_t > binding.t) | (binding.t == -np.inf)
    return Thread(before, free_t, ready_t, binds & (before >= 0))
