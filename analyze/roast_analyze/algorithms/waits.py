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

    id: _Ints
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
    outcome = pl.col("outcome")
    began_t = pl.coalesce("compute_start_t", "processing_t", pl.lit(start_t))
    computed_t = pl.coalesce("compute_stop_t", "end_t")
    attempts = (
        attempts.sort("id")
        .with_columns(
            is_failure=outcome.is_in(_FAILURES),
            is_result=~outcome.is_in([*_FAILURES, "cancelled", "unfinished"]),
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
    ids, begin_t, end_t = (attempts[name].to_numpy() for name in ("id", "begin_t", "end_t"))
    previous = _rows_of(ids, attempts["previous"].fill_null(ids[0] - 1).to_numpy())
    removed_t = attempts["removed_t"].to_numpy()[previous]
    is_recomputed = (
        (previous >= 0)
        & (attempts["outcome"] == "memory").to_numpy()[previous]
        & (removed_t >= end_t[previous])
        & (removed_t <= begin_t + _REMOVAL_SECONDS)
    )
    attempts = attempts.with_columns(
        previous=pl.Series(previous), is_recomputed=pl.Series(is_recomputed)
    )
    rows = Attempts(*(attempts[name].to_numpy() for name in Attempts._fields))

    is_wanted = rows.is_result & attempts["is_wanted"].to_numpy()
    [awaited] = np.nonzero(is_wanted if is_wanted.any() else rows.is_result)
    awaited = awaited[np.argsort(rows.end_t[awaited], kind="stable")]
    needs = _ordered(
        rows,
        "result",
        _rows_of(ids, dependencies["dependency"].to_numpy()),
        _rows_of(ids, dependencies["id"].to_numpy()),
    )
    [failed] = np.nonzero((previous >= 0) & rows.is_failure[previous])
    constraints = [
        _submissions(rows, awaited),
        needs,
        _losses(attempts, rows),
        _ordered(rows, "failure", previous[failed], failed),
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
        last = int(np.argmax(np.where(is_running, rows.rank, -1)))
    else:
        is_used = np.zeros(len(ids), bool)
        is_used[needs.before] = True
        each = [rows.has_ended & one for one in (is_wanted, rows.is_result & ~is_used, True)]
        some = next((one for one in each if one.any()), np.ones(len(ids), bool))
        latest = np.where(some, rows.end_t, -np.inf)
        last = int(np.flatnonzero(latest == latest.max())[-1])
    threads = _threads(attempts, rows, binding)
    return Waits(rows, constraints, binding, threads, awaited, last)


def _rows_of(ids: _Ints, wanted: _Ints) -> _Ints:
    """Return the rows of some ids; -1 for an id that is not there."""
    rows = np.searchsorted(ids, wanted).clip(max=len(ids) - 1)
    return np.where(ids[rows] == wanted, rows, -1)


def _ordered(
    rows: Attempts, kind: str, before: _Ints, after: _Ints, t: _Floats | None = None
) -> Constraints:
    """Return constraints without those that contradict the order of begins (damaged clocks).

    They end at `t`, or with the attempt before.
    """
    known = (before >= 0) & (after >= 0)
    known[known] = rows.rank[before[known]] < rows.rank[after[known]]
    t = rows.end_t[before] if t is None else t
    return Constraints(kind, before[known], after[known], t[known])


def _losses(attempts: pl.DataFrame, rows: Attempts) -> Constraints:
    """Return the waits until a result was lost.

    The path continues with an attempt that was lost on the same worker, or else with the last
    one that ended before.
    """
    [after] = np.nonzero(rows.is_recomputed)
    t = np.fmin(rows.waiting_t[after], rows.begin_t[after])
    by_end = np.argsort(rows.end_t, kind="stable")
    ended = np.searchsorted(rows.end_t[by_end], t, side="right")
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
                "process": attempts["process"].gather(rows.previous[after]),
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


def _threads(attempts: pl.DataFrame, rows: Attempts, binding: Binding) -> Thread:
    """Return the previous attempt on each thread, or on the worker if the thread is unknown."""
    frame = (
        attempts.with_row_index("row")
        .drop_nulls("process")
        .with_columns(computes=pl.col("compute_start_t").is_not_null())
    )
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
    before = np.full(len(rows.id), -1)
    before[found["row"].to_numpy()] = found["before"].to_numpy()
    before[(before >= 0) & (rows.rank[before] >= rows.rank)] = -1

    transferred_t = attempts["transferred_t"].to_numpy()
    dispatched_t = np.nan_to_num(rows.processing_t, nan=-np.inf)
    ready_t = np.fmin(np.fmax(dispatched_t, transferred_t), rows.begin_t)
    free_t = np.fmin(rows.stop_t[before], rows.begin_t)
    on_worker = free_t > dispatched_t
    binds = np.where(on_worker, free_t >= ready_t, free_t > binding.t) | (binding.t == -np.inf)
    return Thread(before, free_t, ready_t, binds & (before >= 0))
