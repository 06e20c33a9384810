"""Intervals of task attempts on their workers, from dispatch to the end of the computation.

The intervals of an attempt do not overlap. An attempt with phases was `busy` while it computed,
deserialized or used the disk, and in `transfer` while it fetched its inputs before; the rest is
`dispatch`. An attempt without phases that began to execute before its worker was lost is `busy`
until the worker was last seen. Of other attempts without phases, only the outcome is known:
their interval is `unreported`.
"""

from __future__ import annotations

from typing import Final

import polars as pl

#: Kinds of intervals, in the order in which they claim threads.
KINDS: Final = ("busy", "transfer", "unreported", "dispatch")

#: Uses of an interval: the outcome of the computation, or else the activity of the attempt.
USES: Final = (
    "kept result",
    "recomputed result",
    "failed attempt",
    "lost attempt",
    "unfinished attempt",
    "cancelled attempt",
    "deserialize",
    "disk",
    "transfer",
    "dispatch",
)

#: Columns of the attempts, in any order of rows. Instants are relative to any origin.
ATTEMPTS: Final = pl.Schema(
    {
        "end_seq": pl.Int64(),  # identity of the attempt in the phases
        "process": pl.Int32(),
        "use": pl.UInt8(),  # of the computation: position in USES
        "work": pl.Int32(),  # any integer from 0
        "processing_t": pl.Float64(),  # -inf if the time of dispatch is unknown
        "execute_start_t": pl.Float64(),
        "end_t": pl.Float64(),  # inf if it did not end
        "silent_t": pl.Float64(),  # the worker was not seen after this
    }
)

#: Columns of the phases. Those of an attempt follow each other.
PHASES: Final = pl.Schema(
    {
        "end_seq": pl.Int64(),
        "use": pl.UInt8(),  # position in USES; 0 for the computation
        "start": pl.Float64(),
        "stop": pl.Float64(),
    }
)

#: Columns of the intervals.
INTERVALS: Final = pl.Schema(
    {
        "process": pl.Int32(),
        "kind": pl.UInt8(),  # position in KINDS
        "label": pl.Int32(),  # work * len(USES) + position in USES
        "start": pl.Float64(),
        "stop": pl.Float64(),
    }
)


def attempt_intervals(attempts: pl.DataFrame, phases: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals of all attempts.

    Parameters
    ----------
    attempts : polars.DataFrame
        With the columns of ``ATTEMPTS``.
    phases : polars.DataFrame
        With the columns of ``PHASES``. Those of other attempts are left out.

    Returns
    -------
    polars.DataFrame
        With the columns of ``INTERVALS``.
    """
    attempts = attempts.with_row_index("attempt")
    lasting = phases.filter(pl.col("start") < pl.col("stop")).join(
        attempts.select("attempt", "end_seq", "process", "work", own_use="use"),
        on="end_seq",
        maintain_order="left",
    )
    is_busy = pl.col("use") != USES.index("transfer")
    busy = lasting.filter(is_busy).with_columns(
        use=pl.when(pl.col("use") == 0).then("own_use").otherwise("use")
    )
    begins = busy.group_by("attempt").agg(busy_t=pl.col("start").min())
    transfers = lasting.filter(~is_busy).group_by("attempt")
    transfer_t = pl.min_horizontal(pl.max_horizontal("transfer_t", "processing_t"), "busy_t")
    reported = (
        attempts.join(begins, on="attempt", maintain_order="left")
        .join(
            transfers.agg(transfer_t=pl.col("start").min(), transferred_t=pl.col("stop").max()),
            on="attempt", how="left", maintain_order="left",
        )
        .with_columns(
            transfer_t=pl.when(pl.col("transfer_t").is_not_null()).then(transfer_t),
            transferred_t=pl.col("transferred_t").clip(upper_bound=pl.col("busy_t")),
        )
    )  # fmt: skip
    unreported = attempts.join(begins, on="attempt", how="anti", maintain_order="left")
    # A gap between the phases of an attempt begins at the latest end of all earlier ones. The
    # maximum is that of ranks among all ends, because cum_max().over() is slow.
    several = busy.filter(pl.col("attempt").is_duplicated())
    count = max(several.height, 1)
    ends = pl.lit(several["stop"].sort())
    rank = pl.col("attempt").cast(pl.Int64) * count + pl.col("stop").rank("ordinal") - 1
    is_next = pl.col("attempt") == pl.col("attempt").shift(1)
    gaps = several.sort("attempt", "start", "stop").with_columns(
        stop=pl.col("start"),
        start=pl.when(is_next).then(ends.gather(rank.cum_max() % count).shift(1)),
    )

    own = pl.col("use")
    transfer, dispatch = (pl.lit(USES.index(use)) for use in ("transfer", "dispatch"))
    has_begun = pl.col("execute_start_t").is_not_null()
    seen_t = pl.min_horizontal("end_t", "silent_t")
    parts = (
        ("busy", own, busy, "start", "stop"),
        ("transfer", transfer, reported, "transfer_t", "transferred_t"),
        ("dispatch", dispatch, reported, "processing_t", pl.coalesce("transfer_t", "busy_t")),
        ("dispatch", dispatch, reported, "transferred_t", "busy_t"),
        ("dispatch", dispatch, gaps, "start", "stop"),
        ("dispatch", dispatch, unreported, "processing_t", "execute_start_t"),
        ("busy", own, unreported, "execute_start_t", seen_t),
        ("unreported", own, unreported.filter(~has_begun), "processing_t", "end_t"),
    )
    return pl.concat(
        frame.select(
            "process",
            kind=pl.lit(KINDS.index(kind)),
            label=pl.col("work") * len(USES) + use,
            start=start,
            stop=stop,
        )
        .filter(pl.col("start") < pl.col("stop"))
        .cast(INTERVALS)
        for kind, use, frame, start, stop in parts
    )
