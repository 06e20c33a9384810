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
        """Fit it; sums of squares are of distances to the means."""
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


def _results(recording: Recording) -> dict[str | None, list[Row]]:
    """Return the first results with events and compute time, by dataset."""
    usable = [
        row
        for row in chunk_attempts(recording)
        if row["is_first_result"] and row["events"] and row["compute_seconds"]
    ]
    return grouped(usable, lambda row: row["dataset"])


def fitted(points: list[tuple[float, float]]) -> Line | None:
    """Fit a line, then again without outliers; this needs three sizes and five chunks.

    Outliers have residuals above 4 standard deviations (estimated from the median) and above 1
    % of the median time. If they are more than a quarter, none is removed.
    """
    if _sizes(points) < 3:
        return None
    rough = Line(points)
    off = [y - rough.fixed - rough.event * x for x, y in points]
    limit = max(4 * deviation(off), 0.01 * median(y for _, y in points))
    near = [
        point for point, far in zip(points, off, strict=True) if abs(far - median(off)) <= limit
    ]
    kept = points if len(points) - len(near) > 0.25 * len(points) else near
    return Line(kept) if len(kept) > 4 and _sizes(kept) > 2 else None


def _sizes(points: list[tuple[float, float]]) -> int:
    return len({x for x, _ in points})


@dataclass
class Model:
    """The cost model of a dataset's chunks."""

    rows: list[Row]

    def __post_init__(self) -> None:
        """Fit the line, and look at the time of opening files."""
        rows = self.rows
        self.line = fitted([(row["events"], row["compute_seconds"]) for row in rows])
        self.median_events = median(column(rows, "events"))
        self.seconds = total(column(rows, "compute_seconds"))
        # Less than that for an event, and the size of a chunk would not matter.
        self.least_event = 0.01 * self.seconds / len(rows) / self.median_events
        opened = len(column(rows, "open_seconds")) == len(rows)
        self.opening = median(column(rows, "open_seconds")) if opened else None
        self.opening_event = (
            median((r["compute_seconds"] - r["open_seconds"]) / r["events"] for r in rows)
            if opened
            else None
        )

    @property
    def grows(self) -> bool:
        """Whether the time increases with the number of events."""
        return self.line is not None and self.line.event > self.least_event

    @property
    def fixed_bound(self) -> float:
        """Upper bound of the fixed time: 2 standard errors more."""
        return max(self.line.fixed, 0) + 2 * self.line.fixed_error

    @property
    def method(self) -> str | None:
        """The line if it determines the fixed time, or else the opening time if it is
        compatible.
        """
        line = self.line
        if self.grows and line.fixed > 2 * line.fixed_error:
            return "fit"
        at_most = self.grows and max(self.fixed_bound, -line.fixed)
        if self.grows and at_most < 0.05 * line.event * self.median_events:
            return "fit"
        is_possible = line is None or line.fixed >= -2 * line.fixed_error
        if not is_possible or len(self.rows) < 5 or self.opening_event is None:
            return None
        return "opening" if self.opening_event > self.least_event else None

    @property
    def fixed(self) -> float | None:
        """Time per chunk that does not depend on its size."""
        fixed = {"fit": self.line and max(self.line.fixed, 0.0), "opening": self.opening}
        return fixed.get(self.method)

    @property
    def event(self) -> float | None:
        """Time per event."""
        event = {"fit": self.line and self.line.event, "opening": self.opening_event}
        return event.get(self.method)

    @property
    def burden(self) -> float | None:
        """Fixed time used for the minimum size: its upper bound if it is compatible with 0."""
        if self.method == "fit" and self.line.fixed <= 2 * self.line.fixed_error:
            return self.fixed_bound
        return self.fixed

    def seconds_of(self, events: int) -> float:
        """Return the modeled time of a chunk."""
        return self.fixed + self.event * events


@once
def models(recording: Recording) -> dict[str | None, Model]:
    """Return a model for each dataset."""
    return {dataset: Model(rows) for dataset, rows in _results(recording).items()}


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
        if model is None or model.method is None:
            return row["events"] * usual[row["dataset"]]
        return model.seconds_of(row["events"])

    return expected


def chunk_costs(recording: Recording) -> list[Row]:
    """Return one row per dataset, highest compute time first."""
    chunks = grouped(chunk_attempts(recording), lambda row: row["dataset"])
    rows = [
        {
            "dataset": dataset,
            "seconds": model.seconds,
            **_model(model),
            **_advice(model, most(column(chunks[dataset], "entry_stop")), recording),
        }
        for dataset, model in models(recording).items()
    ]
    ordered = costliest_first(rows, "seconds", "dataset")
    return [{n: value for n, value in row.items() if n != "seconds"} for row in ordered]


def _model(model: Model) -> Row:
    line, rows = model.line, model.rows
    by_line = line if model.method != "opening" else None
    return {
        "chunks": len(rows),
        "outliers": line and len(rows) - len(line.points),
        "sizes": len({row["events"] for row in rows}),
        "median_events": round_half_up(model.median_events),
        "method": model.method,
        "fixed_seconds": model.fixed if model.method else line and line.fixed,
        "fixed_error_seconds": by_line and by_line.fixed_error,
        "seconds_per_event": model.event if model.method else line and line.event,
        "r2": by_line and by_line.r2,
        "relative_error": _relative_error(model),
        "fixed_share": model.fixed * len(rows) / model.seconds if model.method else None,
    }


def _relative_error(model: Model) -> float | None:
    if model.method is None:
        return None
    return median(
        abs(row["compute_seconds"] - model.seconds_of(row["events"])) / row["compute_seconds"]
        for row in model.rows
    )


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
    if model.method is None:
        return advice | {"recommended_events": None, "note": _why_none(model)}
    threads = cluster(recording)["peak_nthreads"] or None
    thread_seconds = (
        threads and sum(other.seconds for other in models(recording).values()) / threads
    )
    least = 19 * model.burden / model.event
    balanced = thread_seconds and (thread_seconds / 4 - model.fixed) / model.event
    wanted = _wanted(model, least, balanced, thread_seconds)
    recommended = wanted and min(n for n in (wanted, largest) if n is not None)
    return advice | {
        "min_events": round_half_up(least),
        "max_events": round_half_up(balanced),
        "recommended_events": round_half_up(recommended),
        "note": _note(model, least, balanced, wanted, recommended),
    }


def _wanted(
    model: Model, least: float, balanced: float | None, thread_seconds: float | None
) -> float | None:
    """Return the current size, the nearer bound, or the compromise."""
    if balanced is not None and least > balanced:
        compromise = math.sqrt(2 * model.burden * thread_seconds) / model.event
        return two_digits(compromise, 0)
    if model.median_events < least:
        return two_digits(least, 1)
    if balanced is not None and model.median_events > balanced:
        return two_digits(balanced, -1)
    return model.median_events


def _why_none(model: Model) -> str:
    """Return the reason why there is no model."""
    line = model.line
    if len(model.rows) < 5:
        return "no model: fewer than 5 chunks"
    if line is None:
        return "no model: fewer than 3 chunk sizes, and file opening was not measured"
    if not model.grows:
        return "no model: time does not increase with the number of events"
    if line.fixed < -2 * line.fixed_error:
        return "no model: time increases faster than the number of events"
    return f"no model: fixed time only known to be below {model.fixed_bound:.2g} s"


def _note(model: Model, least, balanced, wanted, recommended) -> str:
    """Return the effect and uncertainty of the recommendation."""
    largest = most(column(model.rows, "events"))
    said = [_change(model, least, balanced, wanted, recommended)]
    if model.method == "opening":
        said.append("fixed time covers file opening only")
    if balanced is None:
        said.append("number of threads unknown")
    if recommended and recommended > 2 * largest:
        said.append("no chunk was this large")
    return "; ".join(said)


def _change(model: Model, least, balanced, wanted, recommended) -> str:
    if recommended is None:
        return "too little work for a recommendation"
    fixed_then = f"{100 * model.fixed / model.seconds_of(recommended):.2g} %"
    if recommended < wanted:
        return f"whole files, smaller than the optimum: fixed time {fixed_then}"
    if balanced is not None and least > balanced:
        return f"compromise, little work for many threads: fixed time {fixed_then}"
    if recommended > model.median_events:
        return f"larger chunks: fixed time {fixed_then}"
    if recommended < model.median_events:
        return "smaller chunks: 4 per thread"
    return f"keep the size: fixed time {fixed_then}"
