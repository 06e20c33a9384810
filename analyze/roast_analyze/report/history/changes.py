"""Programs that became slower or more wasteful, and what else changed at that run.

Each metric of each program is a series of runs in the order of their start, divided by its own
median. See :mod:`roast_analyze.algorithms.change_points` for the test. The significance is
divided by the number of series.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from roast_analyze.algorithms.change_points import MIN_SIDE, ChangePoint, find_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Probability that the page shows a change if no program changed, divided among all series.
SIGNIFICANCE: Final = 0.05
#: Smallest change: as a share of the value before it, or of the core time.
MIN_CHANGE: Final = 0.05


@dataclass(frozen=True)
class Metric:
    """A quantity of a run, larger if the run is worse."""

    name: str
    words: str
    #: Whether changes are ratios; else they are differences of shares.
    is_ratio: bool = True


METRICS: Final = (
    Metric("wall_seconds", "wall time"),
    Metric("core_seconds_per_event", "core time per event"),
    Metric("wasted_share", "share of the core time without a kept result", is_ratio=False),
)

#: Column of a run to the name of the fact in it, the likeliest reasons for a change first.
_FACTS: Final = {
    "git_commit": "commit",
    "git_dirty": "uncommitted changes",
    "arguments": "arguments",
    "datasets": "datasets",
    "hosts": "hosts",
    "peak_nthreads": "threads",
    "client_host": "client host",
    "batch_cluster": "batch cluster",
    "cluster_type": "cluster type",
    "python_version": "Python",
    "dask_version": "dask",
    "distributed_version": "distributed",
    "coffea_version": "coffea",
    "uproot_version": "uproot",
    "recorder_version": "roast",
}
#: A fact that changes in more than this share of the runs, such as the host of a batch job,
#: does not explain a change.
_RARE: Final = 0.1
#: Maximum number of names of a list that a text contains.
_NAMES: Final = 3


@dataclass(frozen=True)
class Shift:
    """A change of a metric."""

    metric: Metric
    before: float
    after: float
    p_value: float

    @property
    def change(self) -> float:
        """Change as a share of the value before, or of the core time."""
        if self.metric.is_ratio:
            return self.after / self.before - 1
        return self.after - self.before


@dataclass(frozen=True)
class FactChange:
    """A recorded fact that changed from one run to the next."""

    index: int
    name: str
    text: str


@dataclass(frozen=True)
class Change:
    """A lasting change of a program between two runs."""

    program: str
    #: Number of the first run after the change, from 1, and the range in which it lies.
    run_number: int
    low: int
    high: int
    runs: int
    start_t: float
    trace_id: str
    #: Changes of metrics, the most significant first.
    shifts: tuple[Shift, ...]
    facts: tuple[FactChange, ...]

    @property
    def is_worse(self) -> bool:
        """Return whether the most significant change is for the worse."""
        return self.shifts[0].change > 0


def with_metrics(runs: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of :data:`METRICS` to rows of the view ``runs``."""
    core_hours = pl.when(pl.col("core_hours") > 0).then("core_hours")
    return runs.with_columns(
        (3600 * core_hours / pl.when(pl.col("events") > 0).then("events")).alias(
            "core_seconds_per_event"
        ),
        (1 - pl.col("kept_hours") / core_hours).clip(0, 1).alias("wasted_share"),
    )


def of_one_program(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that are not recordings of a scheduler that several programs used."""
    if "is_shared" not in runs.columns:
        return runs
    # All null, of another type, in a store that an older version has filled.
    return runs.filter(pl.col("is_shared").cast(pl.String).ne_missing("true"))


def find(runs: pl.DataFrame) -> tuple[list[Change], int]:
    """Return the changes of all programs, the newest first, and the number of series tested.

    Parameters
    ----------
    runs : polars.DataFrame
        Rows of the view ``runs``, of which some columns can be missing. The recording of a
        shared scheduler is no run of a program.
    """
    known = of_one_program(with_metrics(runs)).drop_nulls(["program", "start_t"])
    programs = known.sort("start_t", "trace_id").partition_by("program", maintain_order=True)
    series = [
        (program, metric, *values)
        for program in programs
        for metric in METRICS
        if len((values := _series(program, metric))[0]) >= 2 * MIN_SIDE
    ]
    found: list[Change] = []
    for program in programs:
        facts = list(_fact_changes(program))
        rare = {fact.index for fact in facts}
        points = []
        for frame, metric, places, values in series:
            if frame is not program:
                continue
            marks = set(np.searchsorted(places, sorted(rare)).tolist())
            for point in find_changes(
                values,
                significance=SIGNIFICANCE / len(series),
                min_change=math.log1p(MIN_CHANGE) if metric.is_ratio else MIN_CHANGE,
                marks=marks,
            ):
                # The change can be at any run after the last one with a value.
                low = int(places[point.low - 1]) + 1
                points.append((low, int(places[point.high]), int(places[point.index]), metric,
                               point))  # fmt: skip
        found += _merged(program, points, facts)
    return sorted(found, key=lambda change: change.start_t, reverse=True), len(series)


def _series(program: pl.DataFrame, metric: Metric) -> tuple[Any, Any]:
    """Return the places of the runs with a value, and the values on the scale of the test."""
    values = program[metric.name].cast(pl.Float64).to_numpy()
    if metric.is_ratio:
        with np.errstate(divide="ignore", invalid="ignore"):
            # Differences of logarithms are ratios; that to the median changes no difference.
            values = np.log(values)
    places = np.flatnonzero(np.isfinite(values))
    return places, values[places]


def _merged(
    program: pl.DataFrame,
    points: Sequence[tuple[int, int, int, Metric, ChangePoint]],
    facts: Sequence[FactChange],
) -> Iterator[Change]:
    """Yield changes of a program; those of several metrics at the same runs are one."""
    groups: list[list[tuple[int, int, int, Metric, ChangePoint]]] = []
    for point in sorted(points, key=lambda point: point[:3]):
        if groups and point[0] <= max(high for _, high, *_ in groups[-1]):
            groups[-1].append(point)
        else:
            groups.append([point])
    for group in groups:
        group.sort(key=lambda point: point[-1].p_value)
        low, high, index, *_ = group[0]
        shifts = []
        for *_, metric, found in group:
            ends = found.before, found.after
            # The test used logarithms of ratios.
            before, after = map(math.exp, ends) if metric.is_ratio else ends
            shifts.append(Shift(metric, before, after, found.p_value))
        yield Change(
            program=program["program"][0],
            run_number=index + 1,
            low=low + 1,
            high=high + 1,
            runs=program.height,
            start_t=program["start_t"][index],
            trace_id=program["trace_id"][index],
            shifts=tuple(shifts),
            facts=tuple(fact for fact in facts if low <= fact.index <= high),
        )


def _fact_changes(program: pl.DataFrame) -> Iterator[FactChange]:
    """Yield the changes of facts that rarely change, in the order of :data:`_FACTS`."""
    for column, name in _FACTS.items():
        if column not in program.columns:
            continue
        changes, last = [], None
        for index, value in enumerate(program[column].to_list()):
            # An unknown value is not a change.
            if value is None or value == []:
                continue
            if last is not None and value != last:
                changes.append(FactChange(index, name, _describe(last, value)))
            last = value
        if len(changes) <= max(_RARE * program.height, 1):
            yield from changes


def _describe(before: Any, after: Any) -> str:
    if not isinstance(before, list):
        return f"{_short(before)} → {_short(after)}"
    parts = []
    for sign, names in (("+", set(after) - set(before)), ("−", set(before) - set(after))):
        ordered = sorted(names)
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        if names:
            parts.append(f"{sign} {', '.join(ordered[:_NAMES])}{more}")
    return "; ".join(parts)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    # The first characters of a commit identify it.
    is_commit = len(text) == 40 and all(digit in "0123456789abcdef" for digit in text)
    return text[:9] if is_commit else text
