"""Critical path of a run, and slack of its attempts.

The path is followed backwards: for each attempt, what ended last before it could start. That is
another attempt or, through the client, the result that it had before it submitted the graph.
Every constraint has an instant, and the latest one binds:

- A *result*: a dependency ended.
- A *failure*: the attempt before failed or was lost.
- A *loss*: the worker with the result of the attempt before left.
- A *submission*: the graph arrived. The client is taken to have waited for the last result
  that it wanted and that ended before.
- The *thread*: the previous attempt on it stopped computing. It does not bind if it stopped
  while the inputs of the attempt were still being transferred.

Slack is how much later an attempt could have ended without moving the end of the run. Held
fixed are the order of attempts on each thread, dependencies, durations, and the delays between
the constraint that binds and the start (dispatch, transfer, client).
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

#: Columns of the path: one row per attempt, the first one first.
PATH: Final = pl.Schema(
    {
        "id": pl.Int64(),
        "constraint": pl.String(),  # what the attempt waited for last; null if unknown
        "constraint_t": pl.Float64(),
        "is_recomputed": pl.Boolean(),  # the result had been lost
        "until_t": pl.Float64(),  # the next attempt of the path waited for it until then
    }
)

#: Outcomes of attempts that are followed by another one.
_FAILURES: Final = ("retried", "rescheduled", "lost")

#: The departure of a worker can be recorded this much after the transitions that it causes.
_REMOVAL_SECONDS: Final = 1.0

#: Edges per round of the loop over all edges, which bounds its memory.
_EDGES_PER_ROUND: Final = 500_000


class _Attempts(NamedTuple):
    """Attempts as arrays, by row."""

    ids: _Ints
    #: Row of the previous attempt at the same submission of the key, or -1.
    previous: _Ints
    outcome: NDArray[np.object_]
    submitted_t: _Floats
    waiting_t: _Floats
    processing_t: _Floats
    #: When computing began and stopped, within the time from dispatch to end.
    begin_t: _Floats
    stop_t: _Floats
    end_t: _Floats
    #: Position in the order of `begin_t`.
    rank: _Ints
    #: The result of the previous attempt was lost with its worker.
    is_recomputed: _Bools


class _Constraints(NamedTuple):
    """Constraints of one kind: the attempt `after` waited until `t` for `before`, or -1."""

    kind: str
    before: _Ints
    after: _Ints
    t: _Floats


class _Thread(NamedTuple):
    """The previous attempt on the thread, by row of the attempts."""

    before: _Ints
    #: When it stopped, and when the inputs of the attempt were there.
    free_t: _Floats
    ready_t: _Floats
    #: Whether the attempt waited for the thread rather than for anything else.
    binds: _Bools


class _Binding(NamedTuple):
    """The constraint that binds, by row of the attempts."""

    kind: NDArray[np.object_]
    before: _Ints
    t: _Floats


def find_path(
    attempts: pl.DataFrame, dependencies: pl.DataFrame, start_t: float, stop_t: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find the critical path of a run, and the slack of every attempt.

    Parameters
    ----------
    attempts : polars.DataFrame
        With the columns of ``ATTEMPTS``.
    dependencies : polars.DataFrame
        With the columns of ``DEPENDENCIES``.
    start_t, stop_t : float
        Boundaries of the run.

    Returns
    -------
    path : polars.DataFrame
        With the columns of ``PATH``. It ends with an attempt that did not end before the run
        did; or else with the last result that a client wanted, of a task without dependents, or
        of all.
    slack : polars.DataFrame
        id and slack_seconds of each attempt; null if its end is not known.
    """
    if attempts.is_empty():
        schema = pl.Schema({"id": pl.Int64(), "slack_seconds": pl.Float64()})
        return pl.DataFrame(schema=PATH), pl.DataFrame(schema=schema)
    attempts = attempts.sort("id")
    rows = _arrays(attempts, start_t, stop_t)
    needs = _needs(rows, dependencies)
    awaited = _awaited_results(attempts, rows)
    constraints = [
        _submissions(rows, awaited), needs, _losses(attempts, rows), _failures(rows)
    ]  # fmt: skip
    binding = _latest(rows, constraints)
    thread = _threads(attempts, rows, binding)
    last = _last_attempt(attempts, rows, needs)
    path = _follow(rows, binding, thread, last)
    slack = _slack(rows, constraints, binding, thread, awaited, last, stop_t)
    is_known = attempts["end_t"].is_not_null() | pl.Series(rows.ids).is_in(path["id"].implode())
    return path, pl.DataFrame({"id": rows.ids, "slack_seconds": slack}).with_columns(
        pl.when(is_known).then("slack_seconds")
    )


def _arrays(attempts: pl.DataFrame, start_t: float, stop_t: float) -> _Attempts:
    """Return the attempts as arrays; instants of workers are limited by the scheduler's."""

    def column(name: str) -> _Floats:
        return attempts[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    ids = attempts["id"].to_numpy()
    previous = _rows_of(ids, attempts["previous"].fill_null(ids[0] - 1).to_numpy())
    outcome = attempts["outcome"].to_numpy()
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
    return _Attempts(
        ids=ids,
        previous=previous,
        outcome=outcome,
        submitted_t=column("submitted_t"),
        waiting_t=column("waiting_t"),
        processing_t=processing_t,
        begin_t=begin_t,
        stop_t=np.fmin(np.fmax(computed_t, begin_t), end_t),
        end_t=end_t,
        rank=rank,
        # The removal is recorded after the transitions that it causes.
        is_recomputed=(previous >= 0)
        & (outcome[previous] == "memory")
        & (removed_t[previous] >= end_t[previous])
        & (removed_t[previous] <= begin_t + _REMOVAL_SECONDS),
    )


def _rows_of(ids: _Ints, wanted: _Ints) -> _Ints:
    """Return the rows of some ids; -1 for an id that is not there."""
    rows = np.searchsorted(ids, wanted).clip(max=len(ids) - 1)
    return np.where(ids[rows] == wanted, rows, -1)


def _ordered(
    rows: _Attempts, kind: str, before: _Ints, after: _Ints, t: _Floats
) -> _Constraints:
    """Return constraints without those that contradict the order of begins (damaged clocks)."""
    known = (before >= 0) & (after >= 0)
    known[known] = rows.rank[before[known]] < rows.rank[after[known]]
    return _Constraints(kind, before[known], after[known], t[known])


def _needs(rows: _Attempts, dependencies: pl.DataFrame) -> _Constraints:
    """Return the waits for the results of dependencies."""
    after = _rows_of(rows.ids, dependencies["id"].to_numpy())
    before = _rows_of(rows.ids, dependencies["dependency"].to_numpy())
    return _ordered(rows, "result", before, after, rows.end_t[before])


def _failures(rows: _Attempts) -> _Constraints:
    """Return the waits for the end of a previous attempt that failed."""
    [after] = np.nonzero((rows.previous >= 0) & np.isin(rows.outcome[rows.previous], _FAILURES))
    before = rows.previous[after]
    return _ordered(rows, "failure", before, after, rows.end_t[before])


def _losses(attempts: pl.DataFrame, rows: _Attempts) -> _Constraints:
    """Return the waits until a result was lost.

    The path goes on with an attempt that was lost on the same worker, or else with the last one
    that ended before.
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
    ).filter(pl.Series(rows.outcome == "lost"))
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


def _awaited_results(attempts: pl.DataFrame, rows: _Attempts) -> _Ints:
    """Return the rows of the results that the client waited for, in the order of their ends."""
    is_result = ~np.isin(rows.outcome, [*_FAILURES, "cancelled", "unfinished"])
    is_wanted = is_result & attempts["is_wanted"].to_numpy()
    [found] = np.nonzero(is_wanted if is_wanted.any() else is_result)
    return found[np.argsort(rows.end_t[found], kind="stable")]


def _submissions(rows: _Attempts, awaited: _Ints) -> _Constraints:
    """Return the waits for the graph, before which the client waited for a result, or -1."""
    t = rows.submitted_t
    # A result that the client wants again is not submitted again.
    again = (rows.previous >= 0) & ~rows.is_recomputed
    again &= ~np.isin(rows.outcome[rows.previous], _FAILURES)
    t = np.fmin(np.where(again, np.fmax(t, rows.waiting_t), t), rows.begin_t)
    t = np.where(np.isnan(rows.submitted_t), np.nan, t)
    [after] = np.nonzero(~np.isnan(t))
    ended = np.searchsorted(rows.end_t[awaited], t[after], side="right")
    before = np.concatenate(([-1], awaited))[ended]
    before[rows.rank[before] >= rows.rank[after]] = -1
    return _Constraints("submission", before, after, t[after])


def _latest(rows: _Attempts, constraints: Iterable[_Constraints]) -> _Binding:
    """Return the latest constraint of each attempt; of simultaneous ones, the last kind."""
    count = len(rows.ids)
    kinds = np.full(count, None, object)
    before, t = np.full(count, -1), np.full(count, -np.inf)
    for kind in constraints:
        np.maximum.at(t, kind.after, kind.t)
        is_latest = kind.t == t[kind.after]
        after = kind.after[is_latest]
        kinds[after], before[after] = kind.kind, -1
        np.maximum.at(before, after, kind.before[is_latest])
    return _Binding(kinds, before, t)


def _threads(attempts: pl.DataFrame, rows: _Attempts, binding: _Binding) -> _Thread:
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
    threads = (
        frame.filter(on_thread)
        .sort("process", "thread", "rank")
        .select("row", before=pl.col("row").shift(1).over("process", "thread"))
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
    return _Thread(before, free_t, ready_t, binds & (before >= 0))


def _last_attempt(attempts: pl.DataFrame, rows: _Attempts, needs: _Constraints) -> int:
    """Return the row of the attempt with which the path ends."""
    is_running = attempts["is_running"].to_numpy()
    if is_running.any():
        return int(np.argmax(np.where(is_running, rows.rank, -1)))
    has_ended = attempts["end_t"].is_not_null().to_numpy()
    is_result = has_ended & ~np.isin(rows.outcome, [*_FAILURES, "cancelled", "unfinished"])
    is_used = np.zeros(len(rows.ids), bool)
    is_used[needs.before] = True
    for some in (is_result & attempts["is_wanted"].to_numpy(), is_result & ~is_used, has_ended):
        if some.any():
            break
    else:
        some = np.ones(len(rows.ids), bool)
    latest = np.where(some, rows.end_t, -np.inf)
    return int(np.nonzero(latest == latest.max())[0][-1])


def _follow(rows: _Attempts, binding: _Binding, thread: _Thread, last: int) -> pl.DataFrame:
    """Return the path: the attempts from the last one back, in the order of time."""
    path, untils = list[int](), list[float]()
    row, until = last, float(rows.end_t[last])
    while row >= 0:
        path.append(row)
        untils.append(until)
        if thread.binds[row]:
            until, row = float(thread.free_t[row]), int(thread.before[row])
        else:
            row = int(binding.before[row])
            until = float(rows.end_t[row])
    path.reverse()
    untils.reverse()
    waits = thread.binds[path]
    kind = np.where(waits, "thread", binding.kind[path])
    t = np.where(waits, thread.free_t[path], binding.t[path])
    return pl.DataFrame(
        {
            "id": rows.ids[path],
            "constraint": kind.tolist(),
            "constraint_t": t,
            "is_recomputed": rows.is_recomputed[path],
            "until_t": untils,
        },
        schema=PATH,
    )


def _slack(
    rows: _Attempts,
    constraints: Iterable[_Constraints],
    binding: _Binding,
    thread: _Thread,
    awaited: _Ints,
    last: int,
    stop_t: float,
) -> _Floats:
    """Return how much later each attempt could have ended.

    An attempt that delays another one by nothing until its own end is `margin` seconds later
    has at most that margin more slack than the other one.
    """
    count = len(rows.ids)
    # The client does not wait for what ended after the last result.
    limit = np.where(rows.end_t <= rows.end_t[last], rows.end_t[last], stop_t) - rows.end_t
    # While an attempt waits for its thread, everything else may be that much later.
    on_worker = thread.free_t > np.nan_to_num(rows.processing_t, nan=-np.inf)
    since = np.where(on_worker, thread.ready_t, binding.t)
    waited = np.where(thread.binds, thread.free_t - since, 0.0)

    def margin(after: _Ints, t: _Floats) -> _Floats:
        return waited[after] + binding.t[after] - t

    [held] = np.nonzero(thread.before >= 0)
    edges = [
        (
            thread.before[held],
            held,
            np.where(thread.binds, 0.0, thread.ready_t - thread.free_t)[held],
        )
    ]
    nodes: list[_Floats] = [rows.begin_t]
    order: list[_Floats] = [np.arange(count, dtype=np.float64)]
    for kind in constraints:
        before, after = kind.before, kind.after
        if kind.kind == "submission":
            # One node for each time at which the client had its results. It also waited for
            # all those that ended earlier.
            position = np.full(count, -1)
            position[awaited] = np.arange(len(awaited))
            waits = before >= 0
            after, t = after[waits], kind.t[waits]
            used, node = np.unique(position[before[waits]], return_inverse=True)
            edges.append((count + node, after, margin(after, t)))
            had_t = rows.end_t[awaited[used]]
            first = count + np.arange(len(used))
            edges.append((first[:-1], first[1:], np.diff(had_t)))
            earlier = np.arange(used[-1] + 1 if len(used) else 0)
            node = np.searchsorted(used, earlier)
            edges.append(
                (awaited[earlier], count + node, had_t[node] - rows.end_t[awaited[earlier]])
            )
            nodes.append(had_t)
            order.append(awaited[used] + 0.5)
        else:
            edges.append((before, after, margin(after, kind.t)))
    place = np.empty(sum(map(len, nodes)), np.int64)
    place[np.lexsort((np.concatenate(order), np.concatenate(nodes)))] = np.arange(len(place))
    before, after, margins = (np.concatenate(column) for column in zip(*edges, strict=True))
    slack = np.full(len(place), np.inf)
    slack[:count] = limit
    slack[last] = 0.0
    return _relax(before, after, margins.clip(min=0.0), slack.clip(min=0.0), place)[:count]


def _relax(
    before: _Ints, after: _Ints, margins: _Floats, slack: _Floats, place: _Ints
) -> _Floats:
    """Reduce the slack of each node to that of every node after it plus the margin."""
    # From the last node on: what is after a node is finished before its own edges are used.
    by_place = np.argsort(-place[after], kind="stable")
    least = slack.tolist()
    for begin in range(0, len(by_place), _EDGES_PER_ROUND):
        some = by_place[begin : begin + _EDGES_PER_ROUND]
        edges = zip(
            before[some].tolist(), after[some].tolist(), margins[some].tolist(), strict=True
        )
        for node, later, margin in edges:
            most = least[later] + margin
            if most < least[node]:
                least[node] = most
    return np.array(least)
