"""Critical path of a run: the attempts that it had to wait for, and the causes along it.

The path is followed backwards: for each attempt, what ended last before it could start. It ends
with an attempt that did not end before the run did; or else with the last result that a client
wanted, of a task without dependents, or of all.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roast_analyze.algorithms.waits import Waits

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

#: Columns of the steps.
STEPS: Final = pl.Schema(
    {
        "step": pl.Int64(),
        "start_t": pl.Float64(),
        "stop_t": pl.Float64(),
        "seconds": pl.Float64(),
        "share": pl.Float64(),
        "cause": pl.String(),
        "detail": pl.String(),
        "id": pl.Int64(),
    }
)

#: Causes of the whole time of an attempt.
_FAILED: Final = {
    "erred": "retry",
    "retried": "retry",
    "rescheduled": "retry",
    "lost": "recompute",
}

#: Causes of the phases of an attempt. What is not listed is disk.
_PHASES: Final = {"compute": "compute", "deserialize": "deserialize", "transfer": "transfer"}


class _Layer(NamedTuple):
    """A possible cause for a time."""

    start_t: float
    stop_t: float
    cause: str
    detail: str | None = None


#: The cause of a time without any.
_NOTHING: Final = _Layer(-inf, inf, "unknown")


class _Piece(NamedTuple):
    """A part of the path, from the end of the one before."""

    stop_t: float
    cause: str
    detail: str | None
    id: int | None


def find_path(waits: Waits) -> pl.DataFrame:
    """Return the critical path with the columns of ``PATH``."""
    rows, binding, thread = waits.attempts, waits.binding, waits.thread
    path, untils = list[int](), list[float]()
    row, until = waits.last, float(rows.end_t[waits.last])
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
    held = thread.binds[path]
    kinds = [*(kind.kind for kind in waits.constraints), None]
    return pl.DataFrame(
        {
            "id": rows.id[path],
            "constraint": [
                "thread" if is_held else kinds[kind]
                for is_held, kind in zip(held, binding.kind[path], strict=True)
            ],
            "constraint_t": np.where(held, thread.free_t[path], binding.t[path]),
            "is_recomputed": rows.is_recomputed[path],
            "until_t": untils,
        },
        schema=PATH,
    )


def path_steps(
    path: pl.DataFrame,
    facts: pl.DataFrame,
    phases: pl.DataFrame,
    pauses: pl.DataFrame,
    start_t: float,
    stop_t: float,
) -> pl.DataFrame:
    """Divide the time of a run among the causes along its critical path.

    Parameters
    ----------
    path : polars.DataFrame
        From :func:`find_path`.
    facts : polars.DataFrame
        Of the attempts of the path: id, outcome, worker, process, graph_t (the scheduler began
        to process the graph), submitted_t, joined_t (of the process), processing_t, end_t.
    phases : polars.DataFrame
        id, action, start_t, stop_t.
    pauses : polars.DataFrame
        process, start_t, stop_t.
    start_t, stop_t : float
        Boundaries of the run.

    Returns
    -------
    polars.DataFrame
        With the columns of ``STEPS``. Each step starts when the one before stops, the first one
        at `start_t`, and the last one stops at `stop_t`. The id is that of the attempt that
        waited or computed; null for the client.
    """
    phases_of, pauses_of = _grouped(phases, "id"), _grouped(pauses, "process")
    pieces: list[_Piece] = []
    at = start_t
    places = path.join(facts, on="id", how="left", maintain_order="left")
    for number, place in enumerate(places.iter_rows(named=True)):
        until = min(max(place["until_t"], at), stop_t)
        layers = [
            *_running(place, phases_of.get(place["id"], [])),
            *_not_running(place, pauses_of.get(place["process"], []), is_first=number == 0),
        ]
        # The time is divided at all boundaries of layers.
        cuts = {t for layer in layers for t in layer[:2] if at < t < until}
        for begin_t, end_t in pairwise(sorted({at, until, *cuts})):
            layer = next(
                (part for part in layers if part.start_t <= begin_t and part.stop_t >= end_t),
                _NOTHING,
            )
            id_ = None if layer.cause == "client" else place["id"]
            pieces.append(_Piece(end_t, layer.cause, layer.detail, id_))
        at = until
    if at < stop_t:
        detail = "after the last result" if pieces else "nothing was computed"
        pieces.append(_Piece(stop_t, "client", detail, None))
    # Pieces of the same cause and attempt that follow each other are one step, the last one of
    # which has its end.
    merged = [
        piece
        for piece, following in zip(pieces, [*pieces[1:], None], strict=True)
        if following is None or following[1:] != piece[1:]
    ]
    frame = pl.DataFrame(
        merged,
        schema={"stop_t": pl.Float64, "cause": pl.String, "detail": pl.String, "id": pl.Int64},
        orient="row",
    )
    # Differences of the same instants add up to that of the first and the last one.
    seconds = pl.col("stop_t") - pl.col("start_t")
    return (
        frame.with_columns(start_t=pl.col("stop_t").shift(1, fill_value=start_t))
        .with_columns(step=pl.int_range(1, pl.len() + 1), seconds=seconds)
        .with_columns(share=pl.col("seconds") / (stop_t - start_t))
        .select(STEPS.names())
    )


def _grouped(frame: pl.DataFrame, column: str) -> dict[int, list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        groups.setdefault(row[column], []).append(row)
    return groups


def _running(place: Mapping[str, Any], phases: list[dict[str, Any]]) -> Iterator[_Layer]:
    """Yield what the attempt did; what matters most comes first."""
    begun_t = -inf if place["processing_t"] is None else place["processing_t"]
    outcome = place["outcome"]
    if outcome in _FAILED:
        yield _Layer(begun_t, inf, _FAILED[outcome], outcome)
    if place["is_recomputed"]:
        yield _Layer(begun_t, inf, "recompute", "result was lost")
    detail = None if outcome == "memory" else outcome
    done_t = max(
        (part["stop_t"] for part in phases if part["action"] != "transfer"), default=inf
    )
    # The clock of the worker was ahead if a phase ends after the scheduler received the result.
    end_t = inf if place["end_t"] is None else place["end_t"]
    ahead = 0.0 if done_t == inf else max(done_t - end_t, 0.0)
    for wanted in ("compute", "deserialize", "disk", "transfer"):
        latest_t = begun_t
        for begin_t, stop_t in sorted(
            (part["start_t"] - ahead, part["stop_t"] - ahead)
            for part in phases
            if _PHASES.get(part["action"], "disk") == wanted
        ):
            if stop_t > max(begin_t, latest_t):
                about = detail if wanted == "compute" else None
                yield _Layer(max(begin_t, latest_t), stop_t, wanted, about)
                latest_t = stop_t
    if done_t == inf:
        yield _Layer(begun_t, inf, "compute", detail)
    else:
        yield _Layer(done_t - ahead, inf, "scheduler", "result")


def _not_running(
    place: Mapping[str, Any], pauses: list[dict[str, Any]], *, is_first: bool
) -> Iterator[_Layer]:
    """Yield why the attempt did nothing on its worker, and what it waited for before."""
    sent_t, until_t, constraint = (
        place[name] for name in ("processing_t", "constraint_t", "constraint")
    )
    is_sent = sent_t is not None
    for pause in pauses:
        stop_t = inf if pause["stop_t"] is None else pause["stop_t"]
        begin_t = max(pause["start_t"], sent_t) if is_sent else pause["start_t"]
        yield _Layer(begin_t, stop_t, "worker", "paused")
    if is_sent:
        yield _Layer(sent_t, inf, "dispatch")
    if constraint == "submission":
        graph_t = place["graph_t"]
        if graph_t is None or place["submitted_t"] < until_t:
            graph_t = until_t
        detail = "before the first graph" if is_first else "between graphs"
        yield _Layer(-inf, min(graph_t, until_t), "client", detail)
        yield _Layer(graph_t, until_t, "scheduler", "graph")
    elif constraint == "loss":
        yield _Layer(-inf, until_t, "unknown", "until the result was lost")
    elif constraint is None and not is_sent:
        yield _Layer(-inf, inf, "client", "before the first graph")
    elif constraint is None:
        yield _Layer(-inf, sent_t, "unknown", "no submission was recorded")
    if not is_sent:
        yield _Layer(-inf, inf, "dispatch")
        return
    if place["joined_t"] is not None:
        yield _Layer(-inf, min(place["joined_t"], sent_t), "worker", "joined late")
    yield _Layer(-inf, sent_t, "scheduler", "assignment")
