"""Slack of attempts: how much later each could have ended without moving the end of the run.

Held fixed are dependencies, the order of attempts on each thread, durations, and the delays
between the constraint that binds and the start: dispatch, transfer, the client.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roast_analyze.algorithms.waits import Waits

    _Floats = NDArray[np.float64]
    _Ints = NDArray[np.int64]

#: Edges per round of the loop over all edges, which bounds its memory.
_EDGES_PER_ROUND: Final = 500_000


def task_slack(waits: Waits, stop_t: float) -> pl.DataFrame:
    """Return how much later each attempt could have ended.

    Parameters
    ----------
    waits : Waits
        Of all attempts.
    stop_t : float
        End of the run.

    Returns
    -------
    polars.DataFrame
        id and slack_seconds of each attempt; null if its end is not known. It is 0 for the
        attempts of the critical path.
    """
    # An attempt that can end `margin` seconds later without delaying another one has at most
    # the slack of the other one plus this margin.
    binding, thread, awaited, last = waits.binding, waits.thread, waits.awaited, waits.last
    begin_t, end_t, processing_t = (
        waits.attempts[name].to_numpy() for name in ("begin_t", "end_t", "processing_t")
    )
    count = len(end_t)
    # The client does not wait for what ended after the last result.
    limit = np.where(end_t <= end_t[last], end_t[last], stop_t) - end_t
    # While an attempt waits for its thread, everything else may be that much later.
    on_worker = thread.free_t > np.nan_to_num(processing_t, nan=-np.inf)
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
    nodes: list[_Floats] = [begin_t]
    order: list[_Floats] = [np.arange(count, dtype=np.float64)]
    for kind in waits.constraints:
        before, after = kind.before, kind.after
        if kind.kind == "submission":
            # One node for each time at which the client had its results. It also waited for
            # all those that ended earlier.
            position = np.full(count, -1)
            position[awaited] = np.arange(len(awaited))
            has_waited = before >= 0
            after, t = after[has_waited], kind.t[has_waited]
            used, node = np.unique(position[before[has_waited]], return_inverse=True)
            edges.append((count + node, after, margin(after, t)))
            had_t = end_t[awaited[used]]
            first = count + np.arange(len(used))
            edges.append((first[:-1], first[1:], np.diff(had_t)))
            earlier = np.arange(used[-1] + 1 if len(used) else 0)
            node = np.searchsorted(used, earlier)
            edges.append(
                (awaited[earlier], count + node, had_t[node] - end_t[awaited[earlier]])
            )
            nodes.append(had_t)
            order.append(awaited[used] + 0.5)
        else:
            edges.append((before, after, margin(after, kind.t)))
    place = np.empty(sum(map(len, nodes)), np.int64)
    place[np.lexsort((np.concatenate(order), np.concatenate(nodes)))] = np.arange(len(place))
    before, after, margins = (np.concatenate(column) for column in zip(*edges, strict=True))
    margins = margins.clip(min=0.0)
    least = [*limit.clip(min=0.0).tolist(), *[math.inf] * (len(place) - count)]
    least[last] = 0.0
    # In reverse order: all nodes after a node are finished before its own edges are used.
    by_place = np.argsort(-place[after], kind="stable")
    for begin in range(0, len(by_place), _EDGES_PER_ROUND):
        some = by_place[begin : begin + _EDGES_PER_ROUND]
        columns = (column[some].tolist() for column in (before, after, margins))
        for node, later, seconds in zip(*columns, strict=True):
            most = least[later] + seconds
            if most < least[node]:
                least[node] = most
    is_known = pl.col("has_ended") | (pl.int_range(pl.len()) == last)
    return waits.attempts.select(
        "id", slack_seconds=pl.when(is_known).then(pl.Series(least[:count]))
    )
