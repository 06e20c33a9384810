"""What threads were at: samples of the statistical profilers, put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report.gathered.listing import Listing, first

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Most stretches into which the samples are put by time, and most of them times the
#: workers and prefixes that have any: a run with many of these is cut into fewer.
PROFILE_BINS: Final = 60
PROFILE_CELLS: Final = 30_000
#: Most rows of the table of functions.
FUNCTION_ROWS: Final = 200
#: The workers' own samples; those of the scheduler if it is all that there is.
_FUNCTIONS: Final = (
    "WITH sampled AS (SELECT stack, seconds, samples + ambiguous_samples AS samples "
    "FROM profile_stacks WHERE profiler = 'dask' AND samples + ambiguous_samples > 0 "
    "AND (worker IS NULL) = (NOT EXISTS (FROM profile_stacks WHERE profiler = 'dask' "
    "AND worker IS NOT NULL))), "
    "seen AS (SELECT unnest(list_distinct(stack)) AS function, stack[-1] AS innermost, "
    "seconds, samples FROM sampled) "
    "SELECT function, coalesce(sum(seconds) FILTER (function = innermost), 0) AS self_seconds, "
    "sum(seconds) AS total_seconds, "
    "self_seconds / (SELECT sum(seconds) FROM sampled) AS self_share, "
    "total_seconds / (SELECT sum(seconds) FROM sampled) AS total_share, "
    "sum(samples)::BIGINT AS samples FROM seen GROUP BY function"
)
#: When the profilers looked. It does not need the stacks: to walk them takes the longest.
_WHEN: Final = (
    "WITH looks AS (SELECT worker, prefix, unnest(tree.slices) AS look FROM raw.profile AS it "
    "SEMI JOIN (SELECT record FROM _profiles WHERE is_whole) AS whole "
    "ON it.rowid = whole.record) "
    "SELECT min(look.start_t), max(look.stop_t), median(look.stop_t - look.start_t), "
    "count(DISTINCT (worker, prefix)) FROM looks "
    "WHERE list_sum(look.counts) + coalesce(list_sum(look.innermost), 0) > 0"
)
#: Stacks are told apart by two numbers, each of 64 bits and of another text: comparing long
#: lists of structs would take as long as all else.
_STACKS: Final = (
    "SELECT any_value(frames) AS frames, any_value(stack) AS stack, "
    "list(struct_pack(log, worker, prefix, interval_seconds, "
    "bin := greatest(least(floor(((start_t + stop_t) / 2 - $start) / $width), $bins - 1), 0)"
    "::INT, samples := samples::BIGINT, undecided := ambiguous_samples::BIGINT)) AS parts "
    "FROM profile_stacks WHERE samples + ambiguous_samples > 0 "
    "GROUP BY hash(frames), hash(stack)"
)
_COUNTS: Final = ("samples", "undecided")
#: Sums of the same samples in another order are not equal to the last bit.
_FUNCTION_ORDER: Final = "round(self_seconds, 9) DESC, round(total_seconds, 9) DESC, function"


@dataclass(frozen=True)
class Profiles:
    """Samples of what threads were at, put together by time.

    Parameters
    ----------
    start_t, bin_seconds : float
        Where the first stretch of time begins, seconds since the epoch, and how long each
        one is.
    bins : int
        How many there are.
    stacks : polars.DataFrame
        One row a distinct stack: ``frames``, a list of structs of name, filename and
        line_number, the outermost first; ``stack``, the same in words; ``parts``, a list of
        structs of log, worker, prefix, interval_seconds, bin, samples and undecided: how often
        it was seen there, and how often in a function that it calls directly, but not known in
        which. What has a log was measured by Yappi, in no stretch of time; all else was seen
        by Dask's profilers.
    """

    start_t: float = 0.0
    bin_seconds: float = 0.0
    bins: int = 0
    stacks: pl.DataFrame = field(default_factory=pl.DataFrame)


def gather(trace: Session) -> Profiles:
    """Put samples together by stack, worker, prefix and stretch of time."""
    start_t, stop_t, cycle, groups = trace.sql(_WHEN).fetchall()[0]
    if start_t is None and not trace.sql("SELECT count(*) FROM raw.function").fetchall()[0][0]:
        return Profiles()
    if start_t is None or stop_t is None:
        start_t = stop_t = 0.0
    span = max(stop_t - start_t, 1e-9)
    # No shorter than what one look covers: there would be holes between.
    most = min(
        PROFILE_BINS, PROFILE_CELLS // max(groups, 1), int(span / max(cycle or 0.0, 1e-9))
    )
    bins = max(most, 1)
    stacks = trace.sql(_STACKS, {"start": start_t, "width": span / bins, "bins": bins}).pl()
    return Profiles(start_t, span / bins, bins, _added_up(stacks))


def _added_up(stacks: pl.DataFrame) -> pl.DataFrame:
    """Add up what was seen of a stack on the same worker in the same stretch of time."""
    parts = (
        stacks.select("parts")
        .with_row_index("place")
        .explode("parts")
        .unnest("parts")
        .group_by(pl.exclude(_COUNTS), maintain_order=True)
        .agg(pl.col(_COUNTS).sum())
        .group_by("place", maintain_order=True)
        .agg(pl.struct(pl.exclude("place")).alias("parts"))
        .sort("place")
    )
    return stacks.with_columns(parts["parts"])


def functions(stacks: pl.DataFrame) -> Listing:
    """List the functions by the time that was sampled in them.

    They are worked out from what :func:`gather` gave: walking all stacks once more is what
    takes the longest.

    Parameters
    ----------
    stacks : polars.DataFrame
        See :class:`Profiles`.
    """
    return first(
        "profile_stacks", _FUNCTIONS, _FUNCTION_ORDER, FUNCTION_ROWS, _by_function(stacks)
    )


def _by_function(stacks: pl.DataFrame) -> pl.DataFrame:
    columns = {
        "function": pl.String,
        "self_seconds": pl.Float64,
        "total_seconds": pl.Float64,
        "self_share": pl.Float64,
        "total_share": pl.Float64,
        "samples": pl.Int64,
    }
    if stacks.is_empty():
        return pl.DataFrame(schema=columns)
    seen = (
        stacks.select("stack", "parts")
        .with_row_index("place")
        .explode("parts")
        .unnest("parts")
        .filter(pl.col("log").is_null())
        .with_columns(samples=pl.col("samples") + pl.col("undecided"))
        .with_columns(seconds=pl.col("samples") * pl.col("interval_seconds"))
    )
    # The workers' own samples; those of the scheduler if it is all that there is.
    of_workers = pl.col("worker").is_not_null()
    seen = seen.filter(of_workers == seen.select(of_workers.any()).item())
    whole = seen["seconds"].sum()
    by_stack = seen.group_by("place").agg(
        pl.col("stack").first(), pl.col("seconds").sum(), pl.col("samples").sum()
    )
    itself = pl.col("function") == pl.col("innermost")
    by_function = (
        by_stack.with_columns(
            function=pl.col("stack").list.unique(), innermost=pl.col("stack").list.last()
        )
        .filter(pl.col("function").list.len() > 0)
        .explode("function")
        .group_by("function")
        .agg(
            self_seconds=pl.col("seconds").filter(itself).sum(),
            total_seconds=pl.col("seconds").sum(),
            samples=pl.col("samples").sum(),
        )
    )
    return (
        by_function.with_columns(
            self_share=pl.col("self_seconds") / whole,
            total_share=pl.col("total_seconds") / whole,
        )
        .select(list(columns))
        .sort(
            pl.col("self_seconds").round(9),
            pl.col("total_seconds").round(9),
            "function",
            descending=[True, True, False],
        )
    )
