"""The timeline of the page: who computed what and when, in small whole numbers.

What is embedded is JSON, packed with gzip, that assets/timeline draws on two canvases: first
what stands above, whose size hardly grows with a run, then the lanes. Times are microseconds
since the start of the recording; what lies in order is written as differences. Sizes are
bounded by :mod:`.task_stream`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.labels import worker_name
from roast_analyze.report.packed import differences, packed
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from roast_analyze.report.gathered.task_stream import TaskStream

#: Outcomes of computations by number; the page has the same numbers.
OUTCOMES: Final = (
    "memory", "erred", "retried", "lost", "rescheduled", "cancelled", "unfinished", "skipped",
)  # fmt: skip
#: In how many steps the time of one thread in one stretch is told.
STEPS: Final = 1000
#: Most characters of a key, a name and a file.
KEY_CHARACTERS: Final = 120
NAME_CHARACTERS: Final = 80
#: A worker that comes so soon after the start, in parts of the recording, was there before.
_SOON: Final = 0.002
_SOON_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Choice:
    """An entry of a select or of the legend: a number, a name, and a colour if it has one."""

    value: int
    text: str
    colour: str = ""
    #: As the trace has it.
    name: str | None = None


@dataclass(frozen=True)
class Timeline:
    """The timeline of the page, and how much of the run it shows.

    Parameters
    ----------
    above, lanes : Markup
        JSON as base64 of gzip: how many tasks computed, how busy workers were, and what both
        parts are told by; and what is drawn in the lanes of threads.
    workers, prefixes, datasets : tuple of Choice
        What can be chosen beside all of them; nothing where there is no choice.
    legend : tuple of Choice
        The kinds of tasks that have a colour of their own: prefixes, or else datasets.
    marks : tuple of str
        Which signs are drawn: outcomes, and ``joined``, ``left``, ``worker lost``.
    has_transfers, has_cells : bool
        Whether transfers are drawn, and tasks that are put together.
    spoken : str
        What a screen reader says it is.
    note : str
        What is put together or left out, if anything.
    query, command : str
        What gives its data, in SQL and in a terminal.
    """

    above: Markup
    lanes: Markup
    workers: tuple[Choice, ...]
    prefixes: tuple[Choice, ...]
    datasets: tuple[Choice, ...]
    legend: tuple[Choice, ...]
    marks: tuple[str, ...]
    has_transfers: bool
    has_cells: bool
    spoken: str
    note: str
    query: str
    command: str


@dataclass(frozen=True)
class Colours:
    """Colours of prefixes and of datasets, by rank; who has none shares one."""

    prefixes: Mapping[str | None, str]
    datasets: Mapping[str | None, str]


def build(
    stream: TaskStream,
    stretches: pl.DataFrame,
    busy: pl.DataFrame,
    colours: Colours,
    *,
    stop_t: float,
    utc_offset_seconds: float | None,
    spoken: str,
    note: str,
    query: str,
    command: str,
) -> Timeline:
    """Make the timeline of a run.

    Parameters
    ----------
    stream : TaskStream
    stretches : polars.DataFrame
        View ``concurrency`` in order: t, seconds, executing, nthreads.
    busy : polars.DataFrame
        The map of how busy workers were: row, worker, name, workers (how many share the
        row), stretch (a row of ``stretches``), share.
    colours : Colours
    stop_t : float
        End of the recording, seconds since the epoch.
    utc_offset_seconds : float or None
        Of the cluster's zone.
    spoken, note, query, command : str
        See :class:`Timeline`.
    """
    datasets = _names(stream.kinds, "dataset", colours.datasets)
    of_chunks = bool(datasets) and stream.kinds["prefix"].is_null().all()
    prefixes = (
        () if of_chunks else _names(stream.kinds, "prefix", colours.prefixes, "(no prefix)")
    )
    names = [worker_name(row) for row in stream.workers.iter_rows(named=True)]
    cells_a_lane = round((stop_t - stream.begin_t) / stream.stretch_seconds) + 1
    processes = _processes(stream, stop_t)
    above = {
        "begin": stream.begin_t,
        "seconds": stop_t - stream.begin_t,
        "zone": utc_offset_seconds,
        "workers": names,
        "addresses": [_short(worker) for worker in stream.workers["worker"]],
        "lanes": stream.workers["lanes"].to_list(),
        "processes": processes,
        "prefixes": [[choice.text, choice.colour] for choice in prefixes],
        "datasets": [[choice.text, choice.colour] for choice in datasets],
        "kinds": _kinds(stream.kinds, prefixes, datasets),
        "others": palette.OTHER,
        "runs": stream.runs,
        "outcomes": OUTCOMES,
        "stretch": stream.stretch_seconds,
        "steps": STEPS,
        "cellsALane": cells_a_lane,
        "curve": _curve(stretches, stream.begin_t),
        "map": _map(busy, stretches.height),
    }
    lanes = {
        "bars": _bars(stream.bars, stream.begin_t),
        "transfers": _spans(stream.transfers, stream.begin_t),
        "marks": _marks(stream.marks, stream.begin_t),
        "cells": _cells(stream.cells, cells_a_lane, stream.stretch_seconds),
        "transferCells": _cells(stream.transfer_cells, cells_a_lane, stream.stretch_seconds),
    }
    return Timeline(
        above=packed(above),
        lanes=packed(lanes),
        workers=tuple(Choice(row, name) for row, name in enumerate(names))
        if len(names) > 1
        else (),
        prefixes=prefixes if len(prefixes) > 1 else (),
        datasets=datasets if len(datasets) > 1 else (),
        legend=tuple(c for c in (prefixes or datasets) if c.colour != palette.OTHER),
        marks=_signs(stream, processes),
        has_transfers=stream.transfer_runs > 0,
        has_cells=stream.cells.height > 0,
        spoken=spoken,
        note=note,
        query=query,
        command=command,
    )


def _names(
    kinds: pl.DataFrame, column: str, colours: Mapping[str | None, str], nameless: str = ""
) -> tuple[Choice, ...]:
    """Give numbers to the distinct names, those with a colour first, in its order.

    Kinds without a name are called ``nameless`` if that is given, else passed over.
    """
    there = kinds[column].unique(maintain_order=True).to_list()
    ranked = [name for name in colours if name in set(there)]
    ordered = [*ranked, *(name for name in there if name not in colours)]
    named = [name for name in ordered if nameless or name is not None]
    return tuple(
        Choice(
            number,
            nameless if name is None else _short(name),
            colours.get(name, palette.OTHER),
            name,
        )
        for number, name in enumerate(named)
    )


def _kinds(
    kinds: pl.DataFrame, prefixes: tuple[Choice, ...], datasets: tuple[Choice, ...]
) -> list[list[float]]:
    """Give numbers of prefix and dataset (-1: none), runs and seconds of each kind."""
    prefix_of = {choice.name: choice.value for choice in prefixes}
    dataset_of = {choice.name: choice.value for choice in datasets}
    return [
        [
            prefix_of.get(row["prefix"], -1),
            dataset_of.get(row["dataset"], -1),
            row["runs"],
            round(row["seconds"] or 0.0, 6),
        ]
        for row in kinds.iter_rows(named=True)
    ]


def _processes(stream: TaskStream, stop_t: float) -> list[list[int]]:
    """Give row, begin, end, whether it came during the run, and how it ended of processes.

    0: it was there to the end; 1: it left; 2: it was lost.
    """
    span_seconds = stop_t - stream.begin_t
    soon_t = stream.begin_t + max(_SOON * span_seconds, _SOON_SECONDS)
    rows = []
    for row in stream.presence.iter_rows(named=True):
        added_t = max(row["added_t"] or stream.begin_t, stream.begin_t)
        removed_t = row["removed_t"]
        ended = 0 if removed_t is None else 2 if row["lost"] else 1
        until_t = stop_t if removed_t is None else removed_t
        rows.append(
            [
                row["row"],
                _microseconds(added_t - stream.begin_t),
                _microseconds(until_t - stream.begin_t),
                int(added_t > soon_t),
                ended,
            ]
        )
    return rows


def _spans(frame: pl.DataFrame, begin_t: float) -> dict[str, list[Any]]:
    """Give lane, begin and length of what has both ends, in order of its begin."""
    if frame.is_empty():
        return {"lanes": [], "starts": [], "lengths": []}
    frame = frame.sort("start_t")
    return {
        "lanes": frame["lane"].to_list(),
        "starts": differences(_since(frame["start_t"], begin_t)),
        "lengths": _since(frame["stop_t"] - frame["start_t"], 0.0),
    }


def _bars(bars: pl.DataFrame, begin_t: float) -> dict[str, Any]:
    bars = bars.sort("start_t") if bars.height else bars
    embedded = {**_spans(bars, begin_t), **_told(bars)}
    if "filename" in bars.columns:
        known = bars["filename"].drop_nulls().unique(maintain_order=True).to_list()
        number_of = {name: number for number, name in enumerate(known)}
        embedded |= {
            "filenames": [one_line(name, KEY_CHARACTERS) for name in known],
            "files": [number_of.get(name, -1) for name in bars["filename"]],
            "entryStarts": bars["entry_start"].to_list(),
            "entryStops": bars["entry_stop"].to_list(),
        }
    return embedded


def _told(frame: pl.DataFrame) -> dict[str, list[Any]]:
    """Give what is told of attempts, whether they are drawn as bars or as signs."""
    if frame.is_empty():
        return {"kinds": [], "outcomes": [], "attempts": [], "keys": []}
    codes = {name: number for number, name in enumerate(OUTCOMES)}
    return {
        "kinds": frame["kind"].to_list(),
        "outcomes": [codes.get(outcome, len(codes)) for outcome in frame["outcome"]],
        "attempts": frame["attempt"].to_list(),
        "keys": [one_line(key, KEY_CHARACTERS) for key in frame["key"]],
    }


def _marks(marks: pl.DataFrame, begin_t: float) -> dict[str, list[Any]]:
    marks = marks.drop_nulls("t").sort("t") if marks.height else marks
    starts = differences(_since(marks["t"], begin_t)) if marks.height else []
    lanes = marks["lane"].to_list() if marks.height else []
    return {"lanes": lanes, "starts": starts, **_told(marks)}


def _cells(cells: pl.DataFrame, cells_a_lane: int, stretch_seconds: float) -> dict[str, Any]:
    """Give lane and stretch as one number, kind, and the time in steps, where any is told."""
    if cells.is_empty():
        return {"at": [], "kinds": [], "steps": []}
    told = cells.with_columns(
        at=pl.col("lane").cast(pl.Int64) * cells_a_lane + pl.col("cell"),
        steps=(pl.col("seconds") / stretch_seconds * STEPS).round().cast(pl.Int64),
    ).filter(pl.col("steps") > 0)
    return {
        "at": differences(told["at"].to_list()),
        "kinds": told["kind"].to_list(),
        "steps": told["steps"].to_list(),
    }


def _curve(stretches: pl.DataFrame, begin_t: float) -> dict[str, Any]:
    """Give tasks computing, and threads there, by stretches of equal length."""
    if stretches.is_empty():
        return {"begin": 0.0, "seconds": 1.0, "computing": [], "threads": []}
    first_t, seconds = stretches.select("t", "seconds").row(0)
    return {
        "begin": first_t - begin_t,
        "seconds": seconds,
        "computing": stretches["executing"].round(3).to_list(),
        "threads": stretches["nthreads"].round(3).to_list(),
    }


def _map(busy: pl.DataFrame, stretches: int) -> list[dict[str, Any]]:
    """Give each row of the map its name and its percentages; -1 where it was not there."""
    rows = []
    for part in busy.partition_by("row", maintain_order=True) if busy.height else ():
        shares = dict(part.select("stretch", pl.col("share") * 100).iter_rows())
        rows.append(
            {
                "name": worker_name(part.row(0, named=True)),
                "workers": int(part["workers"][0]),
                "shares": [round(shares.get(stretch, -1)) for stretch in range(stretches)],
            }
        )
    return rows


def _signs(stream: TaskStream, processes: list[list[int]]) -> tuple[str, ...]:
    failed = set(stream.marks["outcome"]) if stream.marks.height else set()
    signs = [outcome for outcome in ("erred", "retried", "lost") if outcome in failed]
    signs += ["joined"] * any(came for *_, came, _ in processes)
    signs += ["left"] * any(ended == 1 for *_, ended in processes)
    signs += ["worker lost"] * any(ended == 2 for *_, ended in processes)
    return tuple(signs)


def _since(instants: pl.Series, begin_t: float) -> list[int]:
    return ((instants - begin_t) * 1e6).round().cast(pl.Int64).to_list()


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def _short(name: str | None) -> str:
    return one_line(name or "", NAME_CHARACTERS)
