"""Kinds of work of the compute time of tasks, from samples of their stacks.

Compute time is known exactly for each process, prefix and time bucket; samples divide it. The
buckets of a process and prefix are pooled until about :data:`POOLED_SAMPLES` samples are
expected in a pool. A pool that is still too small is divided as all time of its process and
prefix is, or else as all time of its prefix.

The time of a sample is that since the previous one, if it was recorded, or else one sampling
interval. A function that holds the GIL, or a host without a free core, delays the profiler. So
a pool is known up to :data:`TIMED` or :data:`UNTIMED` times the time of its samples. The rest
is not known.

A sample does not say which task of the prefix it is of. While a task of the prefix has seceded
from the threads of the process, which only the others occupy, samples can be of either sort:
such cycles divide no time, and compute time beside them is not known.

Two measurements are more exact than samples, and replace them in this order: the
decompression time of chunks, and the CPU time of task threads, which bounds the time in which
work was done.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from roast_analyze.algorithms.work_kinds import LIBRARY, LOOP, OWN

#: Samples expected in a pool of buckets.
POOLED_SAMPLES: Final = 25

#: Compute time that is divided by samples, relative to the time of the samples.
TIMED: Final = 1.25
UNTIMED: Final = 2.0

#: Share of the compute time that CPU metrics must cover; the metrics of failed tasks lack it.
_METRICS_SHARE: Final = 0.5

#: Kind of what coffea and uproot read, until the names of the files are known.
READING: Final = "reading"
NETWORK: Final = "network or storage"
LOCAL: Final = "local files"
DECOMPRESSING: Final = "decompressing"
RUNNABLE: Final = "runnable but not on the CPU"
OFF_CPU: Final = "not on the CPU"
NO_SAMPLES: Final = "no samples"
STARVED: Final = "profiler starved"
MIXED: Final = "mixed with seceded tasks"

#: Seceded relative to compute time, from which CPU time is not that of the compute time.
_SECEDED_SHARE: Final = 0.05

#: Kinds in which a compiled function of which nothing is known can have waited.
_OPAQUE: Final = (OWN, LIBRARY)

#: Columns of the times in which tasks had seceded.
SECEDED: Final = pl.Schema(
    {
        "process": pl.Int64(),
        "prefix": pl.String(),
        "start": pl.Float64(),
        "stop": pl.Float64(),
    }
)

#: Columns of the result.
BUSY_TIME: Final = pl.Schema(
    {
        "process": pl.Int64(),
        "bucket": pl.Int64(),
        "prefix": pl.String(),
        "dataset": pl.String(),
        "span_id": pl.String(),
        "kind": pl.String(),
        "detail": pl.String(),
        "seconds": pl.Float64(),
        "samples": pl.Float64(),
    }
)

_WORK: Final = ["process", "prefix"]
_ROW: Final = ["process", "bucket", "prefix", "dataset", "span_id"]


class Profiled(NamedTuple):
    """What is known of the compute time of a trace. Instants are relative to its start."""

    #: Width of a time bucket.
    bucket_seconds: float
    #: process, bucket, prefix, dataset, span_id, seconds.
    computed: pl.DataFrame
    #: slice, process, prefix, start, stop, interval, has_calls, is_timed: profiling cycles.
    slices: pl.DataFrame
    #: slice, kind, detail, samples, seconds.
    samples: pl.DataFrame
    #: process, prefix, cpu_seconds, noncpu_seconds.
    cpu: pl.DataFrame
    #: process, prefix, dataset, seconds, decompress_seconds: chunks with a measurement.
    chunks: pl.DataFrame
    #: dataset, is_remote: the places of the files of chunks.
    datasets: pl.DataFrame
    #: Kinds in which work is done.
    working: frozenset[str]
    #: process, prefix, start, stop: times in which tasks had seceded.
    seceded: pl.DataFrame


def busy_time(profiled: Profiled) -> pl.DataFrame:
    """Return the compute time of a trace by kind of work.

    Returns
    -------
    polars.DataFrame
        With the columns of ``BUSY_TIME``. For each process, bucket, prefix, dataset and span,
        the seconds of all kinds add up to the compute time.
    """
    computed = profiled.computed.filter(pl.col("seconds") > 0)
    if computed.is_empty():
        return pl.DataFrame(schema=BUSY_TIME)
    computed = computed.with_columns(pl.col("prefix").fill_null("")).with_columns(
        row=pl.int_range(pl.len())
    )
    slices = profiled.slices.with_columns(pl.col("prefix").fill_null(""))
    is_mixed = during(slices, profiled.seceded)
    pools = _pools(computed, slices)
    spread = _spread(slices.filter(~is_mixed), pools, profiled.bucket_seconds)
    shares = _shares(pools, spread, profiled.samples)
    rows = _divide(computed, pools, shares, slices, is_mixed, profiled.bucket_seconds)
    rows = _place_reading(rows, profiled.datasets)
    rows = _use_decompression(rows, profiled.chunks)
    rows = _use_cpu(rows, profiled, slices)
    return (
        rows.group_by([*_ROW, "kind", "detail"], maintain_order=True)
        .agg(pl.col("seconds", "samples").sum())
        .filter(pl.col("seconds") > 0)
        .with_columns(
            pl.when(pl.col("prefix") != "").then("prefix").alias("prefix"),
            pl.when(pl.col("detail") != "").then("detail").alias("detail"),
        )
        .select(pl.col(name).cast(kind) for name, kind in BUSY_TIME.items())
    )


def during(slices: pl.DataFrame, seceded: pl.DataFrame) -> pl.Series:
    """Return whether a task of the prefix had seceded on the process in any part of a cycle."""
    times = seceded.sort("start").with_columns(until=pl.col("stop").cum_max().over(_WORK))
    return (
        slices.with_row_index("place")
        .sort("stop")
        .join_asof(
            times.select(*_WORK, "start", "until"),
            left_on="stop",
            right_on="start",
            by=_WORK,
            strategy="backward",
            allow_exact_matches=False,
            suffix="_seceded",
            check_sortedness=False,
        )
        .sort("place")
        .select((pl.col("until") > pl.col("start")).fill_null(False).alias("is_mixed"))
        .to_series()
    )


def _pools(computed: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """Return process, prefix, bucket, seconds, pool and least of the buckets with compute time.

    `least` is the compute time below which a pool has too few samples.
    """
    interval = slices["interval"].mean() if len(slices) else None
    least = POOLED_SAMPLES * (interval if isinstance(interval, float) else 0.01)
    seconds = pl.col("seconds")
    return (
        computed.group_by([*_WORK, "bucket"])
        .agg(seconds.sum())
        .sort([*_WORK, "bucket"])
        .with_columns(part=((seconds.cum_sum() - seconds).over(_WORK) / least).floor())
        .with_columns(pool=pl.struct(*_WORK, "part").rank("dense").cast(pl.Int64))
        .with_columns(least=pl.lit(least))
        .drop("part")
    )


def _spread(slices: pl.DataFrame, pools: pl.DataFrame, width: float) -> pl.DataFrame:
    """Return slice, pool, process, prefix, is_timed and the share of the slice in the pool."""
    start, stop = slices["start"].to_numpy(), slices["stop"].to_numpy()
    first = np.floor(start / width).astype(np.int64)
    # Buckets that a profiling cycle overlaps; only a stalled cycle is long.
    number = np.clip(np.ceil(stop / width).astype(np.int64) - first, 1, 1000)
    place = np.repeat(np.arange(len(slices)), number)
    bucket = (
        first[place] + np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
    )
    overlap = np.minimum(stop[place], (bucket + 1) * width) - np.maximum(
        start[place], bucket * width
    )
    total = np.bincount(place, np.maximum(overlap, 0.0), len(slices))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total[place] > 0, np.maximum(overlap, 0.0) / total[place], 0.0)
    # A cycle without length belongs to the bucket of its start.
    share = np.where((total[place] <= 0) & (bucket == first[place]), 1.0, share)
    first_pools = pools.group_by(_WORK).agg(pl.col("pool").min().alias("first_pool"))
    return (
        slices.select("slice", *_WORK, "is_timed")[place]
        .with_columns(bucket=pl.Series(bucket), share=pl.Series(share))
        .filter(pl.col("share") > 0)
        .sort("bucket")
        .join_asof(
            pools.select(*_WORK, "bucket", "pool").sort("bucket"),
            on="bucket",
            by=_WORK,
            strategy="backward",
            check_sortedness=False,
        )
        # Samples before the first bucket with compute time, as clocks differ slightly.
        .join(first_pools, on=_WORK, how="inner")
        .with_columns(pl.coalesce("pool", "first_pool").alias("pool"))
        .drop("bucket", "first_pool")
    )


def _buckets(slices: pl.DataFrame, width: float) -> pl.DataFrame:
    """Return process, prefix and bucket of the buckets that some cycles overlap."""
    first = (pl.col("start") / width).floor().cast(pl.Int64, strict=False)
    after = (pl.col("stop") / width).ceil().cast(pl.Int64, strict=False)
    return (
        slices.select(*_WORK, bucket=pl.int_ranges(first, after.clip(first + 1, first + 1000)))
        .explode("bucket")
        .drop_nulls()
        .unique()
        .with_columns(is_mixed=pl.lit(True))
    )


def _shares(
    pools: pl.DataFrame, spread: pl.DataFrame, samples: pl.DataFrame
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """Return the totals, and the shares of the kinds, of each pool, process and prefix."""
    weighed = (
        spread.join(samples, on="slice")
        .with_columns(
            samples=pl.col("samples") * pl.col("share"),
            sampled=pl.col("seconds") * pl.col("share"),
            most=pl.col("seconds")
            * pl.col("share")
            * pl.when("is_timed").then(TIMED).otherwise(UNTIMED),
        )
        .group_by("pool", *_WORK, "kind", "detail")
        .agg(pl.col("samples", "sampled", "most").sum())
    )
    found = {}
    for level, keys in (("pool", ["pool"]), ("process", _WORK), ("prefix", ["prefix"])):
        totals = (
            pools.group_by(keys)
            .agg(pl.col("seconds").sum(), pl.col("least").first())
            .join(
                weighed.group_by(keys).agg(pl.col("sampled", "most").sum()), on=keys, how="left"
            )
            .with_columns(pl.col("sampled", "most").fill_null(0.0))
            .with_columns(known=(pl.col("most") / pl.col("seconds")).clip(0, 1))
        )
        shares = (
            weighed.group_by([*keys, "kind", "detail"])
            .agg(pl.col("samples", "sampled").sum())
            .join(totals.select(*keys, "known", "seconds", total="sampled"), on=keys)
            .filter(pl.col("total") > 0)
            .with_columns(
                share=pl.col("known") * pl.col("sampled") / pl.col("total"),
                rate=pl.col("samples") / pl.col("seconds"),
            )
            .select(*keys, "kind", "detail", "share", "rate")
            .sort(*keys, "kind", "detail")
        )
        found[level] = totals, shares
    return found


def _divide(
    computed: pl.DataFrame,
    pools: pl.DataFrame,
    shares: dict[str, tuple[pl.DataFrame, pl.DataFrame]],
    slices: pl.DataFrame,
    is_mixed: pl.Series,
    width: float,
) -> pl.DataFrame:
    """Return the compute time divided by samples, with the rest that is not known."""

    def totals(level: str, keys: list[str]) -> pl.DataFrame:
        return shares[level][0].select(
            *keys,
            ((pl.col("seconds") >= pl.col("least") / 2) & (pl.col("sampled") > 0)).alias(
                f"{level}_fits"
            ),
            (pl.col("sampled") > 0).alias(f"{level}_sampled"),
            pl.col("seconds").alias(f"{level}_seconds"),
            pl.col("known").alias(f"{level}_known"),
        )

    levels = (("pool", ["pool"]), ("process", _WORK), ("prefix", ["prefix"]))
    rows = computed.join(
        pools.select(*_WORK, "bucket", "pool", "least"), on=[*_WORK, "bucket"], how="left"
    )
    for level, keys in levels:
        rows = rows.join(totals(level, keys), on=keys, how="left")
    small = pl.col("least")
    rows = rows.with_columns(
        level=pl.when(pl.col("pool_fits") | (pl.col("pool_seconds") >= small))
        .then(pl.lit("pool"))
        .when(pl.col("process_fits") | (pl.col("process_seconds") >= small))
        .then(pl.lit("process"))
        .otherwise(pl.lit("prefix"))
    )
    parts = []
    for level, keys in levels:
        chosen = rows.filter(pl.col("level") == level)
        parts.append(
            chosen.select("row", *_ROW, *({"pool"} & set(keys)), "seconds")
            .join(shares[level][1], on=keys)
            .select(
                "row", *_ROW, "kind", "detail",
                seconds=pl.col("seconds") * pl.col("share"),
                samples=pl.col("seconds") * pl.col("rate"),
            )
        )  # fmt: skip
    known = pl.concat(parts).sort("row", maintain_order=True)
    rest = (
        computed.join(
            known.group_by("row").agg(pl.col("seconds").sum().alias("known")),
            on="row",
            how="left",
        )
        .with_columns(rest=pl.col("seconds") - pl.col("known").fill_null(0.0))
        .filter(pl.col("rest") > 1e-12 * pl.col("seconds"))
    )
    mixed = _buckets(slices.filter(is_mixed), width)
    # While samples of the process arrived, others were missed; else none were recorded.
    seen = slices.group_by("process").agg(
        pl.col("start").min().alias("seen_from"), pl.col("stop").max().alias("seen_until")
    )
    middle = (pl.col("bucket") + 0.5) * width
    unknown = (
        rest.join(seen, on="process", how="left")
        .join(mixed, on=[*_WORK, "bucket"], how="left")
        .with_columns(
            kind=pl.when(pl.col("is_mixed"))
            .then(pl.lit(MIXED))
            .when(
                middle.is_between(pl.col("seen_from") - width, pl.col("seen_until") + width)
            )
            .then(pl.lit(STARVED))
            .otherwise(pl.lit(NO_SAMPLES))
        )
        .select(
            "row", *_ROW, "kind",
            detail=pl.lit(""), seconds=pl.col("rest"), samples=pl.lit(0.0),
        )
    )  # fmt: skip
    return pl.concat([known, unknown]).sort("row", maintain_order=True)


def _place_reading(rows: pl.DataFrame, datasets: pl.DataFrame) -> pl.DataFrame:
    """Decide whether what was read is of this computer, by the names of the files."""
    everywhere = datasets["is_remote"].unique().to_list()
    default = everywhere[0] if len(everywhere) == 1 else True
    remote = pl.coalesce("is_remote", pl.lit(default))
    reading = pl.when(remote).then(pl.lit(NETWORK)).otherwise(pl.lit(LOCAL))
    return (
        rows.join(datasets, on="dataset", how="left", maintain_order="left")
        .with_columns(kind=pl.when(pl.col("kind") == READING).then(reading).otherwise("kind"))
        .drop("is_remote")
    )


def _use_decompression(rows: pl.DataFrame, chunks: pl.DataFrame) -> pl.DataFrame:
    """Replace sampled decompression by that which was measured in chunks."""
    keys = [*_WORK, "dataset"]
    is_sampled = pl.col("kind") == DECOMPRESSING
    total = pl.col("seconds").sum()
    measured = (
        chunks.with_columns(pl.col("prefix").fill_null(""))
        .join(rows.group_by(keys).agg(total.alias("computed")), on=keys, nulls_equal=True)
        # Otherwise the measured chunks need not resemble the others.
        .filter(pl.col("seconds") >= 0.9 * pl.col("computed"))
        .select(*keys, target=(pl.col("decompress_seconds") / pl.col("seconds")).clip(0, 1))
    )
    if measured.is_empty():
        return rows
    whole = total.over("row")
    sampled = pl.col("seconds").filter(is_sampled).sum().over("row")
    others = whole - sampled
    rows = rows.join(
        measured, on=keys, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(whole=whole, sampled=sampled, others=others)
    wanted = pl.col("target") * pl.col("whole")
    scale = (
        pl.when(pl.col("target").is_null() | (pl.col("others") <= 0))
        .then(1.0)
        .when(~is_sampled)
        .then((pl.col("whole") - wanted) / pl.col("others"))
        .when(pl.col("sampled") > 0)
        .then(wanted / pl.col("sampled"))
        .otherwise(0.0)
    )
    unseen = (
        rows.filter((pl.col("target") > 0) & (pl.col("sampled") <= 0) & (pl.col("others") > 0))
        .unique("row", maintain_order=True)
        .with_columns(
            kind=pl.lit(DECOMPRESSING),
            detail=pl.lit("measured"),
            seconds=wanted,
            samples=pl.lit(0.0),
        )
    )
    return (
        pl.concat([rows.with_columns(seconds=pl.col("seconds") * scale), unseen])
        .drop("target", "whole", "sampled", "others")
        .sort("row", maintain_order=True)
    )


def _use_cpu(rows: pl.DataFrame, profiled: Profiled, slices: pl.DataFrame) -> pl.DataFrame:
    """Subtract from working kinds the time by which they exceed the measured CPU time.

    Functions of which nothing is known can have waited in that time: it is not known. All
    others were ready to run. Without names of compiled functions, as in older traces, they
    include own functions, which then lose the time first.
    """
    is_working = pl.col("kind").is_in(sorted(profiled.working))
    seconds = pl.col("seconds")
    named = slices.group_by(_WORK).agg(pl.col("has_calls").all())
    interval = slices.group_by(_WORK).agg(pl.col("interval").mean())
    limits = (
        rows.group_by(_WORK)
        .agg(
            seconds.sum().alias("whole"),
            seconds.filter(is_working).sum().alias("working"),
            seconds.filter(pl.col("kind").is_in([OWN, LOOP])).sum().alias("own"),
            pl.col("samples").filter(is_working).sum().alias("taken"),
        )
        .join(
            profiled.cpu.with_columns(pl.col("prefix").fill_null("")), on=_WORK, how="inner"
        )
        # CPU time is measured for whole attempts.
        .join(
            profiled.seceded.group_by(_WORK).agg(
                (pl.col("stop") - pl.col("start")).sum().alias("seceded")
            ),
            on=_WORK,
            how="left",
        )
        .filter(pl.col("seceded").fill_null(0.0) <= _SECEDED_SHARE * pl.col("whole"))
        .join(named, on=_WORK, how="inner")
        .join(interval, on=_WORK, how="inner")
        .with_columns(measured=pl.col("cpu_seconds") + pl.col("noncpu_seconds"))
        .filter(
            (pl.col("measured") >= _METRICS_SHARE * pl.col("whole"))
            & (pl.col("measured") > 0)
            & (pl.col("working") > 0)
        )
        .with_columns(
            excess=pl.col("working")
            - pl.col("whole") * pl.col("cpu_seconds") / pl.col("measured"),
            # Twice the statistical error of a share of the samples.
            error=2 * (pl.col("working") * pl.col("whole") / pl.col("taken").clip(1)).sqrt()
            * (1 - pl.col("working") / pl.col("whole")).clip(0.05).sqrt(),
        )
        .filter(pl.col("excess") > pl.col("error"))
        .with_columns(
            own_excess=pl.when(~pl.col("has_calls"))
            .then(pl.min_horizontal("excess", "own"))
            .otherwise(0.0)
        )
        .select(
            *_WORK, "has_calls", "working", "own", "excess", "own_excess",
        )
    )  # fmt: skip
    if limits.is_empty():
        return rows
    is_own = pl.col("kind").is_in([OWN, LOOP])
    by_sort = pl.when(is_own & ~pl.col("has_calls"))
    # Own functions lose their part of the excess, then all working kinds lose the rest.
    own_loss = by_sort.then(pl.col("own_excess") / pl.col("own")).otherwise(0.0)
    left = pl.col("working") - pl.col("own_excess")
    rest = pl.col("excess") - pl.col("own_excess")
    loss = own_loss + (1 - own_loss) * pl.when(left > 0).then(rest / left).otherwise(0.0)
    rows = rows.join(limits, on=_WORK, how="left", maintain_order="left").with_columns(
        loss=pl.when(is_working & pl.col("excess").is_not_null()).then(loss).otherwise(0.0)
    )
    hides = pl.col("kind").is_in(_OPAQUE) | (is_own & ~pl.col("has_calls"))
    lost = rows.filter(pl.col("loss") > 0).with_columns(
        seconds=seconds * pl.col("loss"),
        samples=pl.col("samples") * pl.col("loss"),
        detail=pl.when(hides).then("detail").otherwise("kind"),
        kind=pl.when(hides).then(pl.lit(OFF_CPU)).otherwise(pl.lit(RUNNABLE)),
    )
    kept = rows.with_columns(
        seconds=seconds * (1 - pl.col("loss")), samples=pl.col("samples") * (1 - pl.col("loss"))
    )
    return (
        pl.concat([kept, lost])
        .drop("has_calls", "working", "own", "excess", "own_excess", "loss")
        .sort("row", maintain_order=True)
    )
