"""The waits of task attempts: the cause that delayed the start of each.

Every constraint has an instant, and the latest one binds:

- A *result*: a dependency ended.
- A *failure*: the attempt before failed or was lost.
- A *loss*: the worker with the result of the attempt before left.
- A *submission*: the graph arrived. The client is taken to have waited for the last result
  that it wanted and that ended before.
- The *thread*: the previous attempt on it stopped computing. It does not bind if it stopped
  while the inputs of the attempt were still being transferred.

Clocks of workers can be a little off: instants of an attempt are limited to the time from its
dispatch to its end on the scheduler, and constraints that contradict the order of starts are
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    _Floats = NDArray[np.float64]
    _Ints = NDArray[np.int64]
    _Bools = NDArray[np.bool_]

#: Columns of the attempts, in any order of rows. Instants are in seconds since the epoch.
ATTEMPTS: Final = pl.Schema(
    {
        "id": pl.Int64(),  # in the order in which attempts were dispatched
        "previous": pl.Int64(),  # attempt at the same submission of the key before
        "outcome": pl.String(),  # as in task_runs
        "is_wanted": pl.Boolean(),  # a client wanted the result
        "is_running": pl.Boolean(),  # not ended when the trace ends
        "process": pl.Int64(),
        "thread": pl.Int64(),
        "submitted_t": pl.Float64(),
        "waiting_t": pl.Float64(),  # latest transition to waiting
        "processing_t": pl.Float64(),
        "transferred_t": pl.Float64(),  # end of the last transfer
        "compute_start_t": pl.Float64(),
        "compute_stop_t": pl.Float64(),
        "end_t": pl.Float64(),
        "removed_t": pl.Float64(),  # departure of the process
    }
)

#: Columns of the dependencies: an attempt, and the attempt whose result it used.
DEPENDENCIES: Final = pl.Schema({"id": pl.Int64(), "dependency": pl.Int64()})

#: Outcomes of attempts that are followed by another one.
_FAILURES: Final = ["retried", "rescheduled", "lost"]

#: The departure of a worker can be recorded this much after the transitions that it causes.
_REMOVAL_SECONDS: Final = 1.0


class Attempts(NamedTuple):
    """Attempts as arrays, by row."""

    ids: _Ints
    #: Row of the previous attempt at the same submission of the key, or -1.
    previous: _Ints
    is_result: _Bools
    is_failure: _Bools
    submitted_t: _Floats
    waiting_t: _Floats
    processing_t: _Floats
    #: When computing began and stopped, within the time from dispatch to end.
    begin_t: _Floats
    stop_t: _Floats
    end_t: _Floats
    #: Whether the end is recorded; else it is that of the run.
    has_ended: _Bools
    #: Position in the order of `begin_t`.
    rank: _Ints
    #: The result of the previous attempt was lost with its worker.
    is_recomputed: _Bools


class Constraints(NamedTuple):
    """Constraints of one kind: the attempt `after` waited until `t` for `before`, or -1."""

    kind: str
    before: _Ints
    after: _Ints
    t: _Floats


class Thread(NamedTuple):
    """The previous attempt on the thread, by row of the attempts."""

    before: _Ints
    #: When it stopped, and when the inputs of the attempt were there.
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
    """What all attempts of a run waited for."""

    attempts: Attempts
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
        With the columns of ``ATTEMPTS``, at least one row.
    dependencies : polars.DataFrame
        With the columns of ``DEPENDENCIES``.
    start_t, stop_t : float
        Boundaries of the run.
    """
    attempts = attempts.sort("id")
    rows = _arrays(attempts, start_t, stop_t)
    needs = _needs(rows, dependencies)
    is_wanted = rows.is_result & attempts["is_wanted"].to_numpy()
    [awaited] = np.nonzero(is_wanted if is_wanted.any() else rows.is_result)
    awaited = awaited[np.argsort(rows.end_t[awaited], kind="stable")]
    constraints = [
        _submissions(rows, awaited),
        needs,
        _losses(attempts, rows),
        _failures(rows),
    ]
    binding = _latest(rows, constraints)
    return Waits(
        rows,
        constraints,
        binding,
        _threads(attempts, rows, binding),
        awaited,
        _last_attempt(attempts, rows, needs),
    )


def _arrays(attempts: pl.DataFrame, start_t: float, stop_t: float) -> Attempts:
    """Return the attempts as arrays; instants of workers are limited by the scheduler's."""

    def column(name: str) -> _Floats:
        return attempts[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    ids = attempts["id"].to_numpy()
    previous = _rows_of(ids, attempts["previous"].fill_null(ids[0] - 1).to_numpy())
    outcome = attempts["outcome"]
    is_failure = outcome.is_in(_FAILURES)
    is_bad = is_failure | outcome.is_in(["cancelled", "unfinished"])
    processing_t, removed_t = column("processing_t"), column("removed_t")
    # fmin() and fmax() ignore nan.
    end_t = np.fmax(np.nan_to_num(column("end_t"), nan=stop_t), processing_t)
    begin_t = column("compute_start_t")
    begin_t = np.where(np.isnan(begin_t), processing_t, begin_t)
    begin_t = np.fmin(np.fmax(np.nan_to_num(begin_t, nan=start_t), processing_t), end_t)
    computed_t = column("compute_stop_t")
    computed_t = np.where(np.isnan(computed_t), end_t, computed_t)
    rank = np.empty(len(ids), np.int64)
    rank[np.argsort(begin_t, kind="stable")] = np.arange(len(ids))
    return Attempts(
        ids=ids,
        previous=previous,
        is_result=(~is_bad).to_numpy(),
        is_failure=is_failure.to_numpy(),
        submitted_t=column("submitted_t"),
        waiting_t=column("waiting_t"),
        processing_t=processing_t,
        begin_t=begin_t,
        stop_t=np.fmin(np.fmax(computed_t, begin_t), end_t),
        end_t=end_t,
        has_ended=attempts["end_t"].is_not_null().to_numpy(),
        rank=rank,
        # The removal is recorded after the transitions that it causes.
        is_recomputed=(previous >= 0)
        & (outcome == "memory").to_numpy()[previous]
        & (removed_t[previous] >= end_t[previous])
        & (removed_t[previous] <= begin_t + _REMOVAL_SECONDS),
    )


def _rows_of(ids: _Ints, wanted: _Ints) -> _Ints:
    """Return the rows of some ids; -1 for an id that is not there."""
    rows = np.searchsorted(ids, wanted).clip(max=len(ids) - 1)
    return np.where(ids[rows] == wanted, rows, -1)


def _ordered(rows: Attempts, kind: str, before: _Ints, after: _Ints, t: _Floats) -> Constraints:
    """Return constraints without those that contradict the order of begins (damaged clocks)."""
    known = (before >= 0) & (after >= 0)
    known[known] = rows.rank[before[known]] < rows.rank[after[known]]
    return Constraints(kind, before[known], after[known], t[known])


def _needs(rows: Attempts, dependencies: pl.DataFrame) -> Constraints:
    """Return the waits for the results of dependencies."""
    after = _rows_of(rows.ids, dependencies["id"].to_numpy())
    before = _rows_of(rows.ids, dependencies["dependency"].to_numpy())
    return _ordered(rows, "result", before, after, rows.end_t[before])


def _failures(rows: Attempts) -> Constraints:
    """Return the waits for the end of a previous attempt that failed."""
    [after] = np.nonzero((rows.previous >= 0) & rows.is_failure[rows.previous])
    before = rows.previous[after]
    return _ordered(rows, "failure", before, after, rows.end_t[before])


def _losses(attempts: pl.DataFrame, rows: Attempts) -> Constraints:
    """Return the waits until a result was lost.

    The path continues with an attempt that was lost on the same worker, or else with the last
    one that ended before.
    """
    [after] = np.nonzero(rows.is_recomputed)
    t = np.fmin(rows.waiting_t[after], rows.begin_t[after])
    by_end = np.argsort(rows.end_t, kind="stable")
    before = np.concatenate(([-1], by_end))[
        np.searchsorted(rows.end_t[by_end], t, side="right")
    ]
    process = attempts["process"].to_numpy()
    lost = pl.DataFrame(
        {"process": process, "end_t": rows.end_t, "row": np.arange(len(process))}
    ).filter(attempts["outcome"] == "lost")
    wanted = pl.DataFrame(
        {
            "process": process[rows.previous[after]],
            "t": t + _REMOVAL_SECONDS,
            "place": np.arange(len(after)),
        }
    )
    found = wanted.sort("t").join_asof(
        lost.sort("end_t", "row"), left_on="t", right_on="end_t", by="process",
        tolerance=2 * _REMOVAL_SECONDS, check_sortedness=False,
    ).drop_nulls()  # fmt: skip
    before[found["place"].to_numpy()] = found["row"].to_numpy()
    return _ordered(rows, "loss", before, after, t)


def _submissions(rows: Attempts, awaited: _Ints) -> Constraints:
    """Return the waits for the graph, before which the client waited for a result, or -1."""
    t = rows.submitted_t
    # A result that the client wants again is not submitted again.
    again = (rows.previous >= 0) & ~rows.is_recomputed
    again &= ~rows.is_failure[rows.previous]
    t = np.fmin(np.where(again, np.fmax(t, rows.waiting_t), t), rows.begin_t)
    t = np.where(np.isnan(rows.submitted_t), np.nan, t)
    [after] = np.nonzero(~np.isnan(t))
    ended = np.searchsorted(rows.end_t[awaited], t[after], side="right")
    before = np.concatenate(([-1], awaited))[ended]
    before[rows.rank[before] >= rows.rank[after]] = -1
    return Constraints("submission", before, after, t[after])


def _latest(rows: Attempts, constraints: Iterable[Constraints]) -> Binding:
    """Return the latest constraint of each attempt; of simultaneous ones, the last kind."""
    count = len(rows.ids)
    kinds = np.full(count, -1, np.int8)
    before, t = np.full(count, -1), np.full(count, -np.inf)
    for i, kind in enumerate(constraints):
        np.maximum.at(t, kind.after, kind.t)
        is_latest = kind.t == t[kind.after]
        after = kind.after[is_latest]
        kinds[after], before[after] = i, -1
        np.maximum.at(before, after, kind.before[is_latest])
    return Binding(kinds, before, t)


def _threads(attempts: pl.DataFrame, rows: Attempts, binding: Binding) -> Thread:
    """Return the previous attempt on each thread, or on the worker if the thread is unknown."""
    frame = attempts.select(
        "process",
        "thread",
        computes=pl.col("compute_start_t").is_not_null(),
        row=pl.int_range(pl.len()),
        rank=pl.Series(rows.rank),
        begin_t=pl.Series(rows.begin_t),
        stop_t=pl.Series(rows.stop_t),
    ).filter(pl.col("process").is_not_null())
    on_thread = pl.col("computes") & pl.col("thread").is_not_null()
    lane = ["process", "thread"]
    threads = (
        frame.filter(on_thread)
        .sort(*lane, "rank")
        .select(
            "row",
            before=pl.when(*(pl.col(name) == pl.col(name).shift(1) for name in lane)).then(
                pl.col("row").shift(1)
            ),
        )
    )
    others = (
        frame.filter(~on_thread)
        .sort("begin_t", "row")
        .join_asof(
            frame.filter("computes").sort("stop_t", "row").select(
                "process", "stop_t", before="row"
            ),
            left_on="begin_t", right_on="stop_t", by="process", check_sortedness=False,
        )
        .select("row", "before")
    )  # fmt: skip
    found = pl.concat([threads, others]).drop_nulls()
    before = np.full(len(rows.ids), -1)
    before[found["row"].to_numpy()] = found["before"].to_numpy()
    before[(before >= 0) & (rows.rank[before] >= rows.rank)] = -1

    transferred_t = attempts["transferred_t"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    dispatched_t = np.nan_to_num(rows.processing_t, nan=-np.inf)
    ready_t = np.fmin(np.fmax(dispatched_t, transferred_t), rows.begin_t)
    free_t = np.fmin(rows.stop_t[before], rows.begin_t)
    on_worker = free_t > dispatched_t
    binds = np.where(on_worker, free_t >= ready_t, free_t > binding.t) | (binding.t == -np.inf)
    return Thread(before, free_t, ready_t, binds & (before >= 0))


def _last_attempt(attempts: pl.DataFrame, rows: Attempts, needs: Constraints) -> int:
    """Return the row of the attempt with which the path ends."""
    is_running = attempts["is_running"].to_numpy()
    if is_running.any():
        return int(np.argmax(np.where(is_running, rows.rank, -1)))
    is_result = rows.has_ended & rows.is_result
    is_used = np.zeros(len(rows.ids), bool)
    is_used[needs.before] = True
    for some in (
        is_result & attempts["is_wanted"].to_numpy(),
        is_result & ~is_used,
        rows.has_ended,
    ):
        if some.any():
            break
    else:
        some = np.ones(len(rows.ids), bool)
    latest = np.where(some, rows.end_t, -np.inf)
    return int(np.nonzero(latest == latest.max())[0][-1])
