"""Cost model of chunks: fixed time plus time per event."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from nightly.chunks import chunk_attempts
from nightly.processes import cluster
from nightly.recording import Recording, Row, once
from nightly.totals import (
    column,
    costliest_first,
    deviation,
    grouped,
    mean,
    median,
    most,
    total,
)


@dataclass
class Line:
    """A least-squares line: seconds = fixed + events * event."""

    points: list[tuple[float, float]]

    def __post_init__(self) -> None:
        """Fit the line; sums of squares are about the means."""
        self.mean_x = mean(x for x, _ in self.points)
        self.mean_y = mean(y for _, y in self.points)
        self.sxx = sum((x - self.mean_x) ** 2 for x, _ in self.points)
        self.syy = sum((y - self.mean_y) ** 2 for _, y in self.points)
        self.sxy = sum((x - self.mean_x) * (y - self.mean_y) for x, y in self.points)
        self.event = self.sxy / self.sxx
        self.fixed = self.mean_y - self.event * self.mean_x

    @property
    def r2(self) -> float:
        """Share of the variance explained by the line."""
        return self.sxy**2 / (self.sxx * self.syy) if self.syy else 1.0

    @property
    def fixed_error(self) -> float:
        """Standard error of the fixed time."""
        n = len(self.points)
        left = max(self.syy - self.event * self.sxy, 0.0)
        return math.sqrt(left / (n - 2) * (1 / n + self.mean_x**2 / self.sxx))


def fitted(points: list[tuple[float, float]]) -> Line | None:
    """Fit a line, then again without outliers; the sizes must differ by a factor of 2.

    Outliers have residuals above 4 standard deviations (estimated from the median) and above
    1 % of the median time. If more than a quarter are outliers, none is removed.
    """
    sizes = [x for x, _ in points]
    if not sizes or max(sizes) < 2 * min(sizes):
        return None
    # At least three sizes on either side of the middle.
    middle = math.sqrt(min(sizes) * max(sizes))
    if min(sum(n < middle for n in sizes), sum(n > middle for n in sizes)) < 3:
        return None
    rough = Line(points)
    off = [y - rough.fixed - rough.event * x for x, y in points]
    limit = max(4 * deviation(off), 0.01 * median(y for _, y in points))
    near = [
        point for point, far in zip(points, off, strict=True) if abs(far - median(off)) <= limit
    ]
    kept = points if len(points) - len(near) > 0.25 * len(points) else near
    return Line(kept) if len(kept) > 4 and len({x for x, _ in kept}) > 1 else None


@dataclass
class Model:
    """The cost model of a dataset's chunks."""

    #: All results, including those of processes that were warming up.
    rows: list[Row]

    def __post_init__(self) -> None:
        """Fit the line."""
        self.warm = [row for row in self.rows if not row["is_warming_up"]]
        self.line = fitted([(row["events"], row["compute_seconds"]) for row in self.warm])
        self.median_events = median(column(self.rows, "events"))
        self.seconds = total(column(self.rows, "compute_seconds"))
        # Below this time per event, the chunk size does not matter.
        self.least_event = 0.01 * self.seconds / len(self.rows) / self.median_events

    @property
    def grows(self) -> bool:
        """Return whether the time increases with the number of events."""
        return self.line is not None and self.line.event > self.least_event

    @property
    def fixed_bound(self) -> float:
        """Upper bound of the fixed time: 2 standard errors more."""
        return max(self.line.fixed, 0) + 2 * self.line.fixed_error

    @property
    def is_known(self) -> bool:
        """Return whether the fixed time is significant, or surely below 5 % of a chunk."""
        line = self.line
        if not self.grows:
            return False
        at_most = max(self.fixed_bound, -line.fixed)
        is_small = at_most < 0.05 * line.event * self.median_events
        return line.fixed > 2 * line.fixed_error or is_small

    @property
    def fixed(self) -> float:
        """Time per chunk that does not depend on its size."""
        return max(self.line.fixed, 0.0)

    @property
    def burden(self) -> float:
        """Fixed time used for the recommendation: its bound if it is compatible with 0."""
        is_zero = self.line.fixed <= 2 * self.line.fixed_error
        return self.fixed_bound if is_zero else self.line.fixed

    def seconds_of(self, events: int) -> float:
        """Return the modeled time of a chunk."""
        return self.fixed + self.line.event * events


@once
def models(recording: Recording) -> dict[str | None, Model]:
    """Return a model for each dataset, of first results with events and compute time."""
    usable = [
        row
        for row in chunk_attempts(recording)
        if row["is_first_result"] and row["events"] and row["compute_seconds"]
    ]
    by_dataset = grouped(usable, lambda row: row["dataset"])
    return {dataset: Model(rows) for dataset, rows in by_dataset.items()}


def expected_seconds(recording: Recording, rated: list[Row]) -> Callable[[Row], float]:
    """Return a function for the expected time of a chunk by dataset and size.

    Without a model, each event of a dataset takes the same time.
    """
    usual = {
        dataset: median(column(rows, "event_seconds"))
        for dataset, rows in grouped(rated, lambda row: row["dataset"]).items()
    }

    def expected(row: Row) -> float:
        model = models(recording).get(row["dataset"])
        if model is None or not model.is_known:
            return row["events"] * usual[row["dataset"]]
        return model.seconds_of(row["events"])

    return expected


def chunk_costs(recording: Recording) -> list[Row]:
    """Return one row per dataset, highest compute time first."""
    chunks = grouped(chunk_attempts(recording), lambda row: row["dataset"])
    rows = []
    for dataset, model in models(recording).items():
        line, sizes = model.line, column(model.rows, "events")
        errors = [
            abs(row["compute_seconds"] - model.seconds_of(row["events"]))
            / row["compute_seconds"]
            for row in model.warm
            if model.is_known
        ]
        rows.append(
            {
                "dataset": dataset,
                "seconds": model.seconds,
                "chunks": len(model.warm),
                "first_chunks": len(model.rows) - len(model.warm),
                "outliers": line and len(model.warm) - len(line.points),
                "sizes": len(set(sizes)),
                "smallest_chunk_events": min(sizes),
                "median_events": round_half_up(model.median_events),
                "largest_chunk_events": max(sizes),
                "is_known": model.is_known,
                "fixed_seconds": model.fixed if model.is_known else line and line.fixed,
                "fixed_error_seconds": line and line.fixed_error,
                "seconds_per_event": line and line.event,
                "r2": line and line.r2,
                "relative_error": median(errors),
                "fixed_share": model.fixed * len(sizes) / model.seconds
                if model.is_known
                else None,
                **_advice(model, most(column(chunks[dataset], "entry_stop")), recording),
            }
        )
    ordered = costliest_first(rows, "seconds", "dataset")
    return [{n: value for n, value in row.items() if n != "seconds"} for row in ordered]


def round_half_up(number: float | None) -> int | None:
    """Round to an integer, halves up."""
    return None if number is None else math.floor(number + 0.5)


def two_digits(number: float, direction: int) -> float | None:
    """Round to two digits: up (1), down (-1) or to the nearest (0).

    Within 1e-4 of the last digit, rounding up or down is to the nearest.
    """
    if number < 1:
        return None
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.floor(number / unit + 0.4999 * direction + 0.5) * unit


def _advice(model: Model, largest: int | None, recording: Recording) -> Row:
    """Return the bounds of the chunk size and the recommended size."""
    advice = {"largest_file_events": largest, "min_events": None, "max_events": None}
    if not model.is_known:
        note = f"not known from this run: {_reason(model)}"
        return advice | {"recommended_events": None, "note": note}
    everything = models(recording).values()
    threads = cluster(recording)["peak_nthreads"] or max(
        len({row["process"] for row in other.rows}) for other in everything
    )
    work = sum(other.seconds for other in everything) / threads
    overhead = model.burden * total(column(model.rows, "events")) / threads
    tail = model.line.event / 2
    # The run takes work + overhead / n + tail * n with n events per chunk.
    shortest = 2 * math.sqrt(overhead * tail)
    allowed = shortest + 0.02 * (shortest + work)
    root = math.sqrt(max(allowed**2 - shortest**2, 0.0))
    least, most_events = (allowed - root) / (2 * tail), (allowed + root) / (2 * tail)
    wanted = model.median_events
    if model.median_events < least:
        wanted = two_digits(least, 1)
    elif model.median_events > most_events:
        wanted = two_digits(most_events, -1)
    recommended = wanted and min(n for n in (wanted, largest) if n is not None)
    is_new = recommended and recommended > 2 * max(column(model.rows, "events"))
    return advice | {
        "min_events": round_half_up(least),
        "max_events": round_half_up(most_events),
        "recommended_events": round_half_up(recommended),
        "note": _change(model, wanted, recommended)
        + ("; no chunk was this large" if is_new else ""),
    }


def _reason(model: Model) -> str:
    line = model.line
    if len({row["events"] for row in model.rows}) == 1:
        if len(model.rows) == 1:
            return "the dataset has a single chunk; record a run with smaller chunks"
        return "all chunks of a dataset have the same size; record a run with two chunk sizes"
    if len(model.warm) < 5:
        return "fewer than 5 chunks besides the first ones of each process"
    warm_sizes = column(model.warm, "events")
    if line is None and max(warm_sizes) >= 2 * min(warm_sizes):
        few = "fewer than 3 chunks are much smaller or larger than the others"
        return f"{few}; record a run with more chunks of a second size"
    if line is None:
        similar = "chunk sizes are too similar; record a run with two sizes that differ by"
        return f"{similar} 2 × or more"
    if not model.grows:
        return "time does not increase with the number of events"
    if line.fixed < -2 * line.fixed_error:
        return "time increases faster than the number of events"
    return f"the fixed time is only known to be below {model.fixed_bound:.2g} s"


def _change(model: Model, wanted: float | None, recommended: float | None) -> str:
    if recommended is None:
        return "too little work for a recommendation"
    fixed_then = f"{100 * model.fixed / model.seconds_of(recommended):.2g} %"
    if recommended < wanted:
        return f"whole files, smaller than the optimum: fixed time {fixed_then}"
    if recommended > model.median_events:
        return f"larger chunks: fixed time {fixed_then}"
    if recommended < model.median_events:
        return "smaller chunks: less waiting for the last ones"
    return f"keep the size: fixed time {fixed_then}"
