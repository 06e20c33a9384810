"""Critical path of a run: the attempts that it had to wait for, and the causes along it.

The path is followed backwards: from each attempt to the constraint that ended last before it
could start. The path ends with an attempt that was still running when the run ended. If there
is none, it ends with the last result that a client wanted, with the last one of a task without
dependents, or with the last one of all.
"""

from __future__ import annotations

from itertools import pairwise, zip_longest
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

#: Causes of the whole time of an attempt.
_FAILED: Final = dict.fromkeys(("erred", "retried", "rescheduled"), "retry") | {
    "lost": "recompute"
}


class _Layer(NamedTuple):
    """A possible cause for a time."""

    start_t: float
    stop_t: float
    cause: str
    detail: str | None = None


def find_path(waits: Waits) -> pl.DataFrame:
    """Return the critical path with the columns of ``PATH``."""
    attempts, binding, thread = waits.attempts, waits.binding, waits.thread
    end_t = attempts["end_t"].to_list()
    path, untils = list[int](), list[float]()
    row, until = waits.last, end_t[waits.last]
    while row >= 0:
        path.append(row)
        untils.append(until)
        if thread.binds[row]:
            until, row = float(thread.free_t[row]), int(thread.before[row])
        else:
            row = int(binding.before[row])
            until = end_t[row]
    path.reverse()
    held = thread.binds[path]
    kinds = [*(kind.kind for kind in waits.constraints), None]
    return attempts[path].select(
        "id",
        "is_recomputed",
        constraint=pl.Series(
            "thread" if is_held else kinds[kind]
            for is_held, kind in zip(held, binding.kind[path], strict=True)
        ),
        constraint_t=np.where(held, thread.free_t[path], binding.t[path]),
        until_t=pl.Series(untils[::-1]),
    )


def path_steps(
    path: pl.DataFrame,
    facts: pl.DataFrame,
    phases: pl.DataFrame,
    pauses: pl.DataFrame,
    absences: pl.DataFrame,
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
        to process the graph), submitted_t, joined_t (of the process), processing_t, is_stolen,
        end_t.
    phases : polars.DataFrame
        id, action, start_t, stop_t.
    pauses : polars.DataFrame
        process, start_t, stop_t.
    absences : polars.DataFrame
        start_t, stop_t: times without any worker, in order.
    start_t, stop_t : float
        Boundaries of the run.

    Returns
    -------
    polars.DataFrame
        step (from 1), start_t, stop_t, seconds, share, cause, detail and id. Each step starts
        when the one before stops, the first one at `start_t`, and the last one stops at
        `stop_t`. The id is that of the attempt that waited or computed; null for the client.
    """
    phases_of, pauses_of = _grouped(phases, "id"), _grouped(pauses, "process")
    #: End, cause, detail and id of parts of the time, each from the end of the one before.
    pieces: list[tuple[float, str, str | None, int | None]] = []
    at = start_t
    places = path.join(facts, on="id", how="left", maintain_order="left")
    for number, place in enumerate(places.iter_rows(named=True)):
        until = min(max(place["until_t"], at), stop_t)
        layers = [
            *_layers(
                place,
                phases_of.get(place["id"], []),
                pauses_of.get(place["process"], []),
                "between graphs" if number else "before the first graph",
            ),
            _Layer(-inf, inf, "unknown"),
        ]
        # The time is divided at all boundaries of layers.
        cuts = {t for layer in layers for t in layer[:2] if at < t < until}
        for begin_t, end_t in pairwise(sorted({at, until, *cuts})):
            cause, detail = next(
                part[2:] for part in layers if part.start_t <= begin_t and part.stop_t >= end_t
            )
            pieces.append((end_t, cause, detail, None if cause == "client" else place["id"]))
        at = until
    if at < stop_t:
        detail = "after the last result" if pieces else "nothing was computed"
        pieces.append((stop_t, "client", detail, None))
    pieces = list(_without_workers(pieces, absences, start_t))
    # Pieces of the same cause and attempt that follow each other are one step, which ends with
    # the last one.
    steps = [
        piece
        for piece, following in zip_longest(pieces, pieces[1:])
        if following is None or following[1:] != piece[1:]
    ]
    # Differences of the same instants add up to that of the first and the last one.
    seconds = pl.col("stop_t") - pl.col("start_t")
    schema = {"stop_t": pl.Float64, "cause": pl.String, "detail": pl.String, "id": pl.Int64}
    return (
        pl.DataFrame(steps, schema, orient="row")
        .with_columns(start_t=pl.col("stop_t").shift(1, fill_value=start_t))
        .select(
            pl.int_range(1, pl.len() + 1).alias("step"), "start_t", "stop_t",
            seconds.alias("seconds"), (seconds / (stop_t - start_t)).alias("share"),
            "cause", "detail", "id",
        )
    )  # fmt: skip


def _without_workers(
    pieces: list[tuple[float, str, str | None, int | None]],
    absences: pl.DataFrame,
    start_t: float,
) -> Iterator[tuple[float, str, str | None, int | None]]:
    """Yield the pieces, in which a time without any worker is not the client's."""
    begin_t = start_t
    for piece in pieces:
        end_t, cause, *_ = piece
        if cause == "client":
            for gone_t, back_t in absences.select("start_t", "stop_t").iter_rows():
                if gone_t < end_t and back_t > begin_t:
                    if gone_t > begin_t:
                        yield (gone_t, *piece[1:])
                    begin_t = min(back_t, end_t)
                    yield begin_t, "worker", "no worker", None
        if begin_t < end_t:
            yield piece
        begin_t = end_t


def _grouped(frame: pl.DataFrame, column: str) -> dict[int, list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        groups.setdefault(row[column], []).append(row)
    return groups


def _layers(
    place: Mapping[str, Any],
    phases: list[dict[str, Any]],
    pauses: list[dict[str, Any]],
    without_graph: str,
) -> Iterator[_Layer]:
    """Yield the possible causes for the time of an attempt; the first that covers it counts."""
    outcome, sent_t = place["outcome"], place["processing_t"]
    begun_t = -inf if sent_t is None else sent_t
    if outcome in _FAILED:
        yield _Layer(begun_t, inf, _FAILED[outcome], outcome)
    if place["is_recomputed"]:
        yield _Layer(begun_t, inf, "recompute", "result was lost")
    about = None if outcome == "memory" else outcome
    done_t = max(
        (part["stop_t"] for part in phases if part["action"] != "transfer"), default=inf
    )
    # The clock of the worker was ahead if a phase ends after the scheduler received the result.
    end_t = inf if place["end_t"] is None else place["end_t"]
    ahead = 0.0 if done_t == inf else max(done_t - end_t, 0.0)
    actions = ("compute", "seceded", "deserialize", "disk", "transfer")
    for action in actions:
        latest_t = begun_t
        for begin_t, stop_t in sorted(
            (part["start_t"] - ahead, part["stop_t"] - ahead)
            for part in phases
            if (part["action"] if part["action"] in actions else "disk") == action
        ):
            if stop_t > max(begin_t, latest_t):
                cause = "compute" if action == "seceded" else action
                detail = {"compute": about, "seceded": "seceded"}.get(action)
                yield _Layer(max(begin_t, latest_t), stop_t, cause, detail)
                latest_t = stop_t
    if done_t == inf:
        yield _Layer(begun_t, inf, "compute", about)
    else:
        yield _Layer(done_t - ahead, inf, "scheduler", "result")

    # Causes of idle time on its worker.
    for pause in pauses:
        stop_t = inf if pause["stop_t"] is None else pause["stop_t"]
        yield _Layer(max(pause["start_t"], begun_t), stop_t, "worker", "paused")
    if sent_t is not None and place["is_stolen"]:
        first_t = min((part["start_t"] - ahead for part in phases), default=inf)
        yield _Layer(sent_t, first_t, "dispatch", "until it was stolen")
    if sent_t is not None:
        yield _Layer(sent_t, inf, "dispatch")

    # What it waited for before it was assigned.
    until_t = place["constraint_t"]
    if place["constraint"] == "submission":
        graph_t = place["graph_t"]
        if graph_t is None or place["submitted_t"] < until_t:
            graph_t = until_t
        yield _Layer(-inf, min(graph_t, until_t), "client", without_graph)
        yield _Layer(graph_t, until_t, "scheduler", "graph")
    elif place["constraint"] == "loss":
        yield _Layer(-inf, until_t, "unknown", "until the result was lost")
    elif place["constraint"] is None and sent_t is None:
        yield _Layer(-inf, inf, "client", "before the first graph")
    elif place["constraint"] is None:
        yield _Layer(-inf, sent_t, "unknown", "no submission was recorded")
    if sent_t is None:
        yield _Layer(-inf, inf, "dispatch")
        return
    if place["joined_t"] is not None:
        yield _Layer(-inf, min(place["joined_t"], sent_t), "worker", "joined late")
    yield _Layer(-inf, sent_t, "scheduler", "assignment")
