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
            "id": rows.ids[path],
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
    about = {row["id"]: row for row in facts.iter_rows(named=True)}
    phases_of = _grouped(phases, "id")
    pauses_of = _grouped(pauses, "process")
    pieces: list[_Piece] = []
    at = start_t
    for i, place in enumerate(path.iter_rows(named=True)):
        until = min(max(place["until_t"], at), stop_t)
        if until > at:
            fact = about[place["id"]]
            layers = [
                *_running(place, fact, phases_of.get(place["id"], [])),
                *_assigned(fact, pauses_of.get(fact["process"], [])),
                *_waiting(place, fact, is_first=i == 0),
            ]
            pieces += _sweep(layers, at, until, place["id"])
            at = until
    if at < stop_t:
        detail = "after the last result" if pieces else "nothing was computed"
        pieces.append(_Piece(stop_t, "client", detail, None))
    return _as_steps(pieces, start_t, stop_t)


def _grouped(frame: pl.DataFrame, column: str) -> dict[int, list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        groups.setdefault(row[column], []).append(row)
    return groups


def _dispatched_t(fact: Mapping[str, Any]) -> float:
    return -inf if fact["processing_t"] is None else fact["processing_t"]


def _running(
    place: Mapping[str, Any], fact: Mapping[str, Any], phases: list[dict[str, Any]]
) -> Iterator[_Layer]:
    """Return what the attempt did, what counts first before the rest."""
    begun_t, outcome = _dispatched_t(fact), fact["outcome"]
    if outcome in _FAILED:
        yield _Layer(begun_t, inf, _FAILED[outcome], outcome)
    if place["is_recomputed"]:
        yield _Layer(begun_t, inf, "recompute", "result was lost")
    detail = None if outcome == "memory" else outcome
    done_t = max(
        (part["stop_t"] for part in phases if part["action"] != "transfer"), default=inf
    )
    # The clock of the worker was ahead if a phase ends after the scheduler received the result.
    end_t = inf if fact["end_t"] is None else fact["end_t"]
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


def _assigned(fact: Mapping[str, Any], pauses: list[dict[str, Any]]) -> Iterator[_Layer]:
    """Return why the attempt did nothing on its worker."""
    begun_t = _dispatched_t(fact)
    for pause in pauses:
        stop_t = inf if pause["stop_t"] is None else pause["stop_t"]
        yield _Layer(max(pause["start_t"], begun_t), stop_t, "worker", "paused")
    if fact["processing_t"] is not None:
        yield _Layer(begun_t, inf, "dispatch")


def _waiting(
    place: Mapping[str, Any], fact: Mapping[str, Any], *, is_first: bool
) -> Iterator[_Layer]:
    """Return what the attempt waited for before it was assigned."""
    until_t = place["constraint_t"]
    if place["constraint"] == "submission":
        graph_t = fact["graph_t"]
        if graph_t is None or fact["submitted_t"] < until_t:
            graph_t = until_t
        detail = "before the first graph" if is_first else "between graphs"
        yield _Layer(-inf, min(graph_t, until_t), "client", detail)
        yield _Layer(graph_t, until_t, "scheduler", "graph")
    elif place["constraint"] == "loss":
        yield _Layer(-inf, until_t, "unknown", "until the result was lost")
    elif place["constraint"] is None and fact["processing_t"] is None:
        yield _Layer(-inf, inf, "client", "before the first graph")
    elif place["constraint"] is None:
        yield _Layer(-inf, fact["processing_t"], "unknown", "no submission was recorded")
    if fact["processing_t"] is None:
        yield _Layer(-inf, inf, "dispatch")
    else:
        if fact["joined_t"] is not None:
            yield _Layer(
                -inf, min(fact["joined_t"], fact["processing_t"]), "worker", "joined late"
            )
        yield _Layer(-inf, fact["processing_t"], "scheduler", "assignment")


def _sweep(layers: list[_Layer], start_t: float, stop_t: float, id_: int) -> Iterator[_Piece]:
    """Divide a time at all boundaries of layers; the first layer that covers a part counts."""
    cuts = {
        t for layer in layers for t in (layer.start_t, layer.stop_t) if start_t < t < stop_t
    }
    for begin_t, end_t in pairwise(sorted({start_t, stop_t, *cuts})):
        layer = next(
            (part for part in layers if part.start_t <= begin_t and part.stop_t >= end_t),
            _NOTHING,
        )
        yield _Piece(end_t, layer.cause, layer.detail, None if layer.cause == "client" else id_)


def _as_steps(pieces: list[_Piece], start_t: float, stop_t: float) -> pl.DataFrame:
    """Return the steps: pieces of the same cause and attempt that follow each other are one."""
    merged: list[_Piece] = []
    for piece in pieces:
        if merged and merged[-1][1:] == piece[1:]:
            merged.pop()
        merged.append(piece)
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
