"""The data of the timeline, encoded in small integers for the scripts of the page.

Two packed JSON objects are drawn on two canvases: first the overview, whose size hardly
depends on the run, then the lanes. Times are microseconds since the start of the recording;
sorted numbers are encoded as deltas. :mod:`.task_stream` bounds the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.labels import worker_name
from roast_analyze.report.packed import deltas, pack
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from roast_analyze.report.topics.timeline.task_stream import TaskStream

#: Outcomes of computations by number. The scripts of the page use the same numbers.
OUTCOMES: Final = (
    "memory", "erred", "retried", "lost", "rescheduled", "cancelled", "unfinished", "skipped",
)  # fmt: skip
#: Resolution of the share of a bucket that a thread computed.
STEPS: Final = 1000
#: Most characters of a key, a name and a file.
KEY_CHARACTERS: Final = 120
NAME_CHARACTERS: Final = 80
#: A worker that is added within this fraction of the recording, or these seconds, joined
#: before it.
_START_FRACTION: Final = 0.002
_START_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Choice:
    """An entry of a select or of the legend: a number, a name, and a color if it has one."""

    value: int
    text: str
    color: str = ""
    #: Name in the trace.
    name: str | None = None


@dataclass(frozen=True)
class Timeline:
    """The timeline of the page.

    Parameters
    ----------
    above, lanes : Markup
        Packed JSON: the overview (tasks computing, utilization of workers) with the tables
        that both parts refer to; and the lanes.
    workers, prefixes, datasets : tuple of Choice
        Entries of the selects; empty if there is only one.
    legend : tuple of Choice
        The prefixes that have a color of their own; without prefixes, the datasets.
    marks : tuple of str
        Signs that are drawn: outcomes, and ``joined``, ``left``, ``worker lost``.
    has_transfers, has_cells : bool
        Whether transfers, and tasks added up by bucket, are drawn.
    description : str
        Text for screen readers.
    note : str
        What is added up or left out, if anything.
    query, command : str
        The SQL and the command that return its data.
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
    description: str
    note: str
    query: str
    command: str


@dataclass(frozen=True)
class Colors:
    """Colors of prefixes and of datasets by rank; names without a color share one."""

    prefixes: dict[str | None, str]
    datasets: dict[str | None, str]


def build(
    stream: TaskStream,
    load: pl.DataFrame,
    utilization: pl.DataFrame,
    colors: Colors,
    *,
    stop_t: float,
    utc_offset_seconds: float | None,
    description: str,
    note: str,
    query: str,
    command: str,
) -> Timeline:
    """Encode the timeline of a run.

    Parameters
    ----------
    stream : TaskStream
    load : polars.DataFrame
        View ``concurrency`` in order: t, seconds, executing, nthreads.
    utilization : polars.DataFrame
        Utilization of workers: row, worker, name, workers (number of workers in the row),
        bucket (a row of ``load``), share.
    colors : Colors
    stop_t : float
        End of the recording, seconds since the epoch.
    utc_offset_seconds : float or None
        Time zone of the cluster.
    description, note, query, command : str
        See :class:`Timeline`.
    """
    datasets = _names(stream.kinds, "dataset", colors.datasets)
    of_chunks = bool(datasets) and stream.kinds["prefix"].is_null().all()
    prefixes = (
        () if of_chunks else _names(stream.kinds, "prefix", colors.prefixes, "(no prefix)")
    )
    names = [worker_name(row) for row in stream.workers.iter_rows(named=True)]
    cells_per_lane = round((stop_t - stream.begin_t) / stream.bucket_seconds) + 1
    processes = _processes(stream, stop_t)
    above = {
        "begin": stream.begin_t,
        "seconds": stop_t - stream.begin_t,
        "zone": utc_offset_seconds,
        "workers": names,
        "addresses": [_short(worker) for worker in stream.workers["worker"]],
        "lanes": stream.workers["lanes"].to_list(),
        "processes": processes,
        "prefixes": [[choice.text, choice.color] for choice in prefixes],
        "datasets": [[choice.text, choice.color] for choice in datasets],
        "kinds": _kinds(stream.kinds, prefixes, datasets),
        "others": palette.OTHER,
        "runs": stream.runs,
        "outcomes": OUTCOMES,
        "stretch": stream.bucket_seconds,
        "steps": STEPS,
        "cellsALane": cells_per_lane,
        "curve": _curve(load, stream.begin_t),
        "map": _map(utilization, load.height),
    }
    lanes = {
        "bars": _bars(stream.bars, stream.begin_t),
        "transfers": _spans(stream.transfers, stream.begin_t),
        "marks": _marks(stream.marks, stream.begin_t),
        "cells": _cells(stream.cells, cells_per_lane, stream.bucket_seconds),
        "transferCells": _cells(stream.transfer_cells, cells_per_lane, stream.bucket_seconds),
    }
    return Timeline(
        above=pack(above),
        lanes=pack(lanes),
        workers=tuple(Choice(row, name) for row, name in enumerate(names))
        if len(names) > 1
        else (),
        prefixes=prefixes if len(prefixes) > 1 else (),
        datasets=datasets if len(datasets) > 1 else (),
        legend=tuple(c for c in (prefixes or datasets) if c.color != palette.OTHER),
        marks=_signs(stream, processes),
        has_transfers=stream.transfer_runs > 0,
        has_cells=stream.cells.height > 0,
        description=description,
        note=note,
        query=query,
        command=command,
    )


def _names(
    kinds: pl.DataFrame, column: str, colors: Mapping[str | None, str], nameless: str = ""
) -> tuple[Choice, ...]:
    """Assign numbers to the distinct names.

    Those with a color are first, in the order of the colors.

    Kinds without a name are called ``nameless`` if that is given, else omitted.
    """
    known = kinds[column].unique(maintain_order=True).to_list()
    ranked = [name for name in colors if name in set(known)]
    ordered = [*ranked, *(name for name in known if name not in colors)]
    named = [name for name in ordered if nameless or name is not None]
    return tuple(
        Choice(
            number,
            nameless if name is None else _short(name),
            colors.get(name, palette.OTHER),
            name,
        )
        for number, name in enumerate(named)
    )


def _kinds(
    kinds: pl.DataFrame, prefixes: tuple[Choice, ...], datasets: tuple[Choice, ...]
) -> list[list[float]]:
    """Return the numbers of prefix and dataset (-1: none), runs and seconds of each kind."""
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
    """Return row, begin, end, whether it joined during the run, and end of each process.

    The end is 0 for processes that stayed, 1 for those that left, 2 for those lost.
    """
    span_seconds = stop_t - stream.begin_t
    recorded_t = stream.begin_t + max(_START_FRACTION * span_seconds, _START_SECONDS)
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
                int(added_t > recorded_t),
                ended,
            ]
        )
    return rows


def _spans(frame: pl.DataFrame, begin_t: float) -> dict[str, list[Any]]:
    """Encode lane, begin and length of computations or transfers, sorted by begin."""
    if frame.is_empty():
        return {"lanes": [], "starts": [], "lengths": []}
    frame = frame.sort("start_t")
    return {
        "lanes": frame["lane"].to_list(),
        "starts": deltas(_microseconds_since(frame["start_t"], begin_t)),
        "lengths": _microseconds_since(frame["stop_t"] - frame["start_t"], 0.0),
    }


def _bars(bars: pl.DataFrame, begin_t: float) -> dict[str, Any]:
    bars = bars.sort("start_t") if bars.height else bars
    embedded = {**_spans(bars, begin_t), **_attempts(bars)}
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


def _attempts(frame: pl.DataFrame) -> dict[str, list[Any]]:
    """Encode kind, outcome, attempt and key of bars or marks."""
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
    starts = deltas(_microseconds_since(marks["t"], begin_t)) if marks.height else []
    lanes = marks["lane"].to_list() if marks.height else []
    return {"lanes": lanes, "starts": starts, **_attempts(marks)}


def _cells(cells: pl.DataFrame, cells_per_lane: int, bucket_seconds: float) -> dict[str, Any]:
    """Encode lane and bucket as one number, kind, and the time in steps, where not zero."""
    if cells.is_empty():
        return {"at": [], "kinds": [], "steps": []}
    shares = cells.with_columns(
        at=pl.col("lane").cast(pl.Int64) * cells_per_lane + pl.col("cell"),
        steps=(pl.col("seconds") / bucket_seconds * STEPS).round().cast(pl.Int64),
    ).filter(pl.col("steps") > 0)
    return {
        "at": deltas(shares["at"].to_list()),
        "kinds": shares["kind"].to_list(),
        "steps": shares["steps"].to_list(),
    }


def _curve(load: pl.DataFrame, begin_t: float) -> dict[str, Any]:
    """Encode tasks computing and threads by bucket."""
    if load.is_empty():
        return {"begin": 0.0, "seconds": 1.0, "computing": [], "threads": []}
    first_t, seconds = load.select("t", "seconds").row(0)
    return {
        "begin": first_t - begin_t,
        "seconds": seconds,
        "computing": load["executing"].round(3).to_list(),
        "threads": load["nthreads"].round(3).to_list(),
    }


def _map(utilization: pl.DataFrame, buckets: int) -> list[dict[str, Any]]:
    """Encode name and percentages of each row of the map; -1 where no worker was present."""
    rows = []
    for part in (
        utilization.partition_by("row", maintain_order=True) if utilization.height else ()
    ):
        shares = dict(part.select("bucket", pl.col("share") * 100).iter_rows())
        rows.append(
            {
                "name": worker_name(part.row(0, named=True)),
                "workers": int(part["workers"][0]),
                "shares": [round(shares.get(bucket, -1)) for bucket in range(buckets)],
            }
        )
    return rows


def _signs(stream: TaskStream, processes: list[list[int]]) -> tuple[str, ...]:
    failed = set(stream.marks["outcome"]) if stream.marks.height else set()
    signs = [outcome for outcome in ("erred", "retried", "lost") if outcome in failed]
    signs += ["joined"] * any(joined for *_, joined, _ in processes)
    signs += ["left"] * any(ended == 1 for *_, ended in processes)
    signs += ["worker lost"] * any(ended == 2 for *_, ended in processes)
    return tuple(signs)


def _microseconds_since(instants: pl.Series, begin_t: float) -> list[int]:
    return ((instants - begin_t) * 1e6).round().cast(pl.Int64).to_list()


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def _short(name: str | None) -> str:
    return one_line(name or "", NAME_CHARACTERS)
