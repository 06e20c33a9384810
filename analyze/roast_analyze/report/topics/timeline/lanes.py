"""The data of the timeline, encoded in small integers for the scripts of the page.

Two packed JSON objects are drawn on two canvases: first the overview, whose size hardly
depends on the run, then the lanes. Times are microseconds since the start of the recording;
sorted numbers are encoded as deltas. :mod:`.task_stream` bounds the sizes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.algorithms.outcomes import FAILED, OUTCOMES, SKIPPED
from roast_analyze.figures import palette
from roast_analyze.figures.labels import worker_name
from roast_analyze.report.core_time_uses import USES
from roast_analyze.report.packed import deltas, pack
from roast_analyze.report.section import Choice
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from roast_analyze.report.topics.timeline.task_stream import TaskStream

#: Outcomes of computations by number. The scripts of the page use the same numbers.
NUMBERED_OUTCOMES: Final = (*OUTCOMES, SKIPPED)
#: Resolution of the share of a bucket that a thread computed.
STEPS: Final = 1000
#: Maximum number of characters of a key, a name and a file.
KEY_CHARACTERS: Final = 120
NAME_CHARACTERS: Final = 80
#: A worker that is added within this fraction of the recording, or these seconds, joined
#: before it.
_START_FRACTION: Final = 0.002
_START_SECONDS: Final = 0.05
#: Colors of outcomes. Attempts that were kept have the first, failures the reserved one.
_OUTCOME_COLORS: Final = {
    outcome: USES[meaning.use].color for outcome, meaning in OUTCOMES.items()
} | {"retried": "#E07B39", SKIPPED: palette.OTHER}
#: Least share of the time of one prefix from which datasets are the first choice of colors.
_ONE_PREFIX_SHARE: Final = 0.9
#: How a worker process ended. The scripts of the page use the same numbers.
_STAYED, _LEFT, _LOST = range(3)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The timeline of the page."""

    #: Packed JSON: the overview (tasks computing, utilization of workers) with the tables that
    #: both parts refer to; and the lanes.
    above: Markup
    lanes: Markup
    #: Entries of the selects; empty if there is only one.
    workers: tuple[Choice, ...]
    prefixes: tuple[Choice, ...]
    datasets: tuple[Choice, ...]
    #: What has a color of its own, by what colors can show: prefix, dataset, file, outcome,
    #: status (of the worker). Only those that the run has.
    legends: dict[str, tuple[Choice, ...]]
    #: What colors show first.
    color: str
    #: Marks that are drawn: outcomes, and ``joined``, ``left``, ``worker lost``.
    marks: tuple[str, ...]
    #: Whether transfers, and tasks added up by bucket, are drawn.
    has_transfers: bool
    has_cells: bool
    has_path: bool
    #: Text for screen readers.
    description: str
    #: What is added up or left out, if anything.
    note: str
    #: The SQL and the command that return its data.
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
    path: pl.DataFrame,
    colors: Colors,
    *,
    statuses: pl.DataFrame,
    dependencies: pl.DataFrame,
    stop_t: float,
    utc_offset_seconds: float | None,
    **texts: str,
) -> Timeline:
    """Encode the timeline of a run.

    Parameters
    ----------
    load : polars.DataFrame
        View ``concurrency`` in order: t, seconds, executing, nthreads.
    utilization : polars.DataFrame
        Utilization of workers: row, worker, name, workers (number of workers in the row),
        bucket (a row of ``load``), share.
    path : polars.DataFrame
        Attempts on the critical path: key, attempt.
    statuses : polars.DataFrame
        Intervals in which workers were not running: worker, status, start_t, stop_t (null: to
        the end).
    dependencies : polars.DataFrame
        Dependencies of tasks of ``stream.bars``: key, dependency.
    stop_t, utc_offset_seconds : float
        End of the recording, seconds since the epoch, and time zone of the cluster.
    **texts : str
        description, note, query and command: see :class:`Timeline`.
    """
    kinds = stream.kinds
    datasets = _ranked(kinds["dataset"].drop_nulls(), colors.datasets)
    # Chunks without tasks have datasets only.
    of_chunks = bool(datasets) and kinds["prefix"].is_null().all()
    prefixes = (
        [] if of_chunks else _ranked(kinds.filter("of_prefix")["prefix"], colors.prefixes)
    )
    of_prefixes = _choices(prefixes, colors.prefixes)
    of_datasets = _choices(datasets, colors.datasets)
    names = [worker_name(row) for row in stream.workers.iter_rows(named=True)]
    cells_per_lane = round((stop_t - stream.begin_t) / stream.bucket_seconds) + 1
    recorded_t = stream.begin_t + max(
        _START_FRACTION * (stop_t - stream.begin_t), _START_SECONDS
    )
    # Row, begin, end, whether it joined during the run, and how each process ended.
    processes = []
    for row, added_t, removed_t, lost in stream.presence.select(
        "row", "added_t", "removed_t", "lost"
    ).iter_rows():
        since_t = max(added_t or stream.begin_t, stream.begin_t)
        until_t = stop_t if removed_t is None else removed_t
        times = [round((t - stream.begin_t) * 1e6) for t in (since_t, until_t)]
        end = _STAYED if removed_t is None else _LOST if lost else _LEFT
        processes.append([row, *times, int(since_t > recorded_t), end])
    first_t, bucket_seconds = stream.begin_t, 1.0
    if load.height:
        first_t, bucket_seconds = load.select("t", "seconds").row(0)
    # If there are many workers, a row represents several of them.
    map_rows = []
    for part in utilization.partition_by("row", maintain_order=True):
        shares = dict(part.select("bucket", pl.col("share") * 100).iter_rows())
        map_rows.append(
            {
                "name": worker_name(part.row(0, named=True)),
                "workers": int(part["workers"][0]),
                # In percent; -1 where no worker was present.
                "shares": [round(shares.get(bucket, -1)) for bucket in range(load.height)],
            }
        )
    bars = stream.bars.sort("start_t").with_row_index("bar")
    filenames = _filenames(bars)
    states = statuses.join(
        stream.workers.with_row_index("row").select("row", "worker"), on="worker"
    )
    state_names = ["running", *states["status"].unique(maintain_order=True)]
    above = {
        "begin": stream.begin_t,
        "seconds": stop_t - stream.begin_t,
        "zone": utc_offset_seconds,
        "workers": names,
        "hiddenWorkers": stream.hidden_rows,
        "addresses": [_short(worker) for worker in stream.workers["worker"]],
        "lanes": stream.workers["lanes"].to_list(),
        "processes": processes,
        "prefixes": [[choice.text, choice.color] for choice in of_prefixes],
        "datasets": [[choice.text, choice.color] for choice in of_datasets],
        # Numbers of prefix and dataset (-1: none, -2: several), attempts and seconds.
        "kinds": [
            [
                _number(prefixes, prefix) if of_prefix else -2,
                _number(datasets, dataset) if of_dataset else -2,
                attempts,
                round(seconds, 6),
            ]
            for prefix, of_prefix, dataset, of_dataset, attempts, seconds in kinds.select(
                "prefix", "of_prefix", "dataset", "of_dataset", "attempts", "seconds"
            ).iter_rows()
        ],
        "others": palette.OTHER,
        "ranked": palette.RANKED,
        "outcomes": NUMBERED_OUTCOMES,
        "outcomeColors": [_OUTCOME_COLORS[outcome] for outcome in NUMBERED_OUTCOMES],
        # Row, number of the name, begin and end.
        "statuses": [
            [
                row,
                state_names.index(status),
                round((start_t - stream.begin_t) * 1e6),
                round((min(until_t or stop_t, stop_t) - stream.begin_t) * 1e6),
            ]
            for row, status, start_t, until_t in states.select(
                "row", "status", "start_t", "stop_t"
            ).iter_rows()
        ],
        "stretch": stream.bucket_seconds,
        "steps": STEPS,
        "cellsALane": cells_per_lane,
        # Tasks computing and threads by bucket.
        "curve": {
            "begin": first_t - stream.begin_t,
            "seconds": bucket_seconds,
            "computing": load["executing"].round(3).to_list(),
            "threads": load["nthreads"].round(3).to_list(),
        },
        "map": map_rows,
    }
    marks = stream.marks.drop_nulls("t").sort("t")
    lanes = {
        "bars": _bars(bars, path, filenames, stream.begin_t),
        "dependencies": _dependencies(bars, dependencies),
        "transfers": _spans(stream.transfers.sort("start_t"), stream.begin_t),
        "marks": {
            "lanes": marks["lane"].to_list(),
            "starts": deltas(_microseconds(marks["t"] - stream.begin_t)),
            **_attempts(marks),
            **_files(marks, filenames),
        },
        "cells": _cells(stream.cells, cells_per_lane, stream.bucket_seconds),
        "transferCells": _cells(stream.transfer_cells, cells_per_lane, stream.bucket_seconds),
    }
    failed, ends = set(stream.marks["outcome"]), {end for *_, end in processes}
    signs = {
        **{outcome: outcome in failed for outcome in FAILED},
        "joined": any(joined for *_, joined, _ in processes),
        "left": _LEFT in ends,
        "worker lost": _LOST in ends,
    }
    drawn_outcomes = set(bars["outcome"])
    legends = {
        "prefix": of_prefixes,
        "dataset": of_datasets,
        "file": [
            Choice(number, _short(re.split(r"[/\\]", name)[-1]), color)
            for number, (name, color) in enumerate(zip(filenames, palette.RANKED, strict=False))
        ],
        "outcome": [
            Choice(number, "succeeded" if outcome == "memory" else outcome, color)
            for number, (outcome, color) in enumerate(_OUTCOME_COLORS.items())
            if outcome in drawn_outcomes
        ],
        "status": [
            Choice(number, _short(name), color)
            for number, (name, color) in enumerate(
                zip(state_names, palette.RANKED, strict=False)
            )
        ],
    }
    by_prefix = kinds.group_by("prefix").agg(pl.col("seconds").sum())["seconds"].to_list()
    is_one_prefix = max(by_prefix, default=0.0) > _ONE_PREFIX_SHARE * sum(by_prefix)
    return Timeline(
        above=pack(above),
        lanes=pack(lanes),
        workers=_several([Choice(row, name) for row, name in enumerate(names)]),
        prefixes=_several(of_prefixes),
        datasets=_several(of_datasets),
        legends={
            name: tuple(choice for choice in choices if choice.color != palette.OTHER)
            for name, choices in legends.items()
            # One of the others would give all bars one color.
            if name in ("prefix", "dataset") or len(choices) > 1
        },
        color="prefix"
        if of_prefixes and not (is_one_prefix and of_datasets[1:])
        else "dataset",
        marks=tuple(sign for sign, is_drawn in signs.items() if is_drawn),
        has_transfers=stream.transfer_runs > 0,
        has_cells=stream.cells.height > 0,
        has_path=bool(lanes["bars"]["path"]),
        **texts,
    )


def _ranked(names: pl.Series, colors: Mapping[str | None, str]) -> list[str | None]:
    """Return the distinct names, those with a color first, in the order of the colors."""
    known = names.unique(maintain_order=True).to_list()
    return [
        *(name for name in colors if name in known),
        *(name for name in known if name not in colors),
    ]


def _number(names: list[str | None], name: str | None) -> int:
    return names.index(name) if name in names else -1


def _choices(names: list[str | None], colors: Mapping[str | None, str]) -> list[Choice]:
    return [
        Choice(
            number,
            "(no prefix)" if name is None else _short(name),
            colors.get(name, palette.OTHER),
        )
        for number, name in enumerate(names)
    ]


def _several(choices: list[Choice]) -> tuple[Choice, ...]:
    """Return the entries of a select, or none if there is only one."""
    return tuple(choices) if len(choices) > 1 else ()


def _spans(frame: pl.DataFrame, begin_t: float) -> dict[str, list[Any]]:
    """Encode lane, begin and length of computations or transfers, sorted by begin."""
    return {
        "lanes": frame["lane"].to_list(),
        "starts": deltas(_microseconds(frame["start_t"] - begin_t)),
        "lengths": _microseconds(frame["stop_t"] - frame["start_t"]),
    }


def _bars(
    bars: pl.DataFrame, path: pl.DataFrame, filenames: list[str], begin_t: float
) -> dict[str, Any]:
    on_path = bars.join(path, on=["key", "attempt"], how="semi")
    embedded = {**_spans(bars, begin_t), **_attempts(bars), "path": on_path["bar"].to_list()}
    if "filename" in bars.columns:
        embedded |= {
            "filenames": [one_line(name, KEY_CHARACTERS) for name in filenames],
            **_files(bars, filenames),
            "entryStarts": bars["entry_start"].to_list(),
            "entryStops": bars["entry_stop"].to_list(),
        }
    return embedded


def _filenames(bars: pl.DataFrame) -> list[str]:
    """Return the files of the bars, those of the most time first."""
    if "filename" not in bars.columns:
        return []
    by_time = bars.drop_nulls("filename").group_by("filename", maintain_order=True).agg(
        seconds=(pl.col("stop_t") - pl.col("start_t")).sum()
    )  # fmt: skip
    ranked = by_time.sort("seconds", descending=True, maintain_order=True)
    return [str(name) for name in ranked["filename"]]


def _files(attempts: pl.DataFrame, filenames: list[str]) -> dict[str, list[int]]:
    """Encode the files of bars or marks by number (-1: none)."""
    if "filename" not in attempts.columns:
        return {}
    number_of = {name: number for number, name in enumerate(filenames)}
    return {"files": [number_of.get(name, -1) for name in attempts["filename"]]}


def _dependencies(bars: pl.DataFrame, dependencies: pl.DataFrame) -> dict[str, list[int]]:
    """Encode pairs of bars: of a task, and of the attempt whose result it used.

    That is the last one that ended before the task began.
    """
    # Clocks of workers differ a little.
    ended = (
        bars.filter(pl.col("outcome") == "memory")
        .select("key", source="bar", end_t=pl.col("stop_t") - 0.001)
        .sort("end_t")
    )
    pairs = (
        bars.select("key", "start_t", target="bar")
        .join(dependencies, on="key")
        .sort("start_t")
        .join_asof(
            ended,
            left_on="start_t",
            right_on="end_t",
            by_left="dependency",
            by_right="key",
            # Both are sorted, which polars cannot check within groups.
            check_sortedness=False,
        )
        .drop_nulls("source")
        .sort("target", "source")
    )
    return {"targets": deltas(pairs["target"].to_list()), "sources": pairs["source"].to_list()}


def _attempts(frame: pl.DataFrame) -> dict[str, list[Any]]:
    """Encode kind, outcome, attempt and key of bars or marks."""
    codes = {name: number for number, name in enumerate(NUMBERED_OUTCOMES)}
    return {
        "kinds": frame["kind"].to_list(),
        "outcomes": [codes.get(outcome, len(codes)) for outcome in frame["outcome"]],
        "attempts": frame["attempt"].to_list(),
        "keys": [one_line(key, KEY_CHARACTERS) for key in frame["key"]],
    }


def _cells(cells: pl.DataFrame, cells_per_lane: int, bucket_seconds: float) -> dict[str, Any]:
    """Encode lane and bucket as one number, kind, and the time in steps, where not zero."""
    shares = cells.with_columns(
        at=pl.col("lane").cast(pl.Int64) * cells_per_lane + pl.col("cell"),
        steps=(pl.col("seconds") / bucket_seconds * STEPS).round().cast(pl.Int64),
    ).filter(pl.col("steps") > 0)
    return {
        "at": deltas(shares["at"].to_list()),
        "kinds": shares["kind"].to_list(),
        "steps": shares["steps"].to_list(),
    }


def _microseconds(seconds: pl.Series) -> list[int]:
    return (seconds * 1e6).round().cast(pl.Int64).to_list()


def _short(name: str | None) -> str:
    return one_line(name or "", NAME_CHARACTERS)
