"""Query of the work and the waiting of a run, which explain the differences between runs.

The thread time is that of the view ``core_time``: what belongs to a task is work, the rest is
waiting. If no worker was recorded, chunks are the work, and the threads are those that
processed any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.decomposition import COMPUTING, COSTS, WAITING, WORK, RunAmounts
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

_GROUP: Final = ["prefix", "dataset"]

#: Details of computing a chunk that are measured, as columns of the blocks.
_DETAILS: Final = ["opening", "reading", "CPU", "no CPU"]

#: Time in which an assigned task waits is part of its cost; that of a paused worker is not.
_USES: Final = """
SELECT
    category = 'busy' OR use IN ('transfer', 'dispatch') AS is_work,
    use, prefix, dataset, sum(seconds) AS seconds
FROM core_time
GROUP BY ALL
ORDER BY ALL
"""

#: The same without a recorded worker.
_CHUNK_USES: Final = """
SELECT
    true AS is_work,
    CASE WHEN outcome = 'memory' THEN 'kept result' ELSE 'failed attempt' END AS use,
    NULL::VARCHAR AS prefix,
    dataset,
    sum(compute_seconds) AS seconds
FROM chunks
WHERE compute_seconds > 0
GROUP BY ALL
ORDER BY ALL
"""
_CHUNK_THREADS: Final = "SELECT count(DISTINCT (worker, thread)) FROM chunks"

#: By file, worker and tenth of the run, from which the errors of means are estimated. Opening,
#: reading and processing a chunk do not overlap. Time without CPU is first assigned to opening
#: and reading. A skipped chunk has no events, and is no chunk of another size.
_WORK: Final = """
WITH chunks AS (
    SELECT
        seq,
        CASE WHEN seq IS NULL THEN measured END AS measured,
        any_value(dataset) AS dataset,
        -- A task can process chunks of several files.
        CASE WHEN count(DISTINCT filename) = 1 THEN any_value(filename) END AS filename,
        any_value(worker) AS worker,
        max(end_t) AS end_t,
        bool_and(outcome = 'memory') AS kept,
        bool_and(outcome = 'skipped') AS is_skipped,
        sum(compute_seconds) AS compute_seconds,
        sum(events) FILTER (is_first_result) AS events,
        bool_and(read_seconds IS NOT NULL) AS is_measured,
        sum(coalesce(open_seconds, 0)) AS opening,
        sum(read_seconds) AS reading,
        sum(greatest(coalesce(process_seconds - read_seconds, 0), 0)) AS rest,
        least(greatest(coalesce(sum(wait_seconds), 0) - opening - reading, 0), rest) AS idling
    FROM _chunks
    GROUP BY ALL
),
attempts AS (
    SELECT
        run.prefix,
        chunks.dataset,
        coalesce(run.worker, chunks.worker) AS worker,
        coalesce(run.end_t, chunks.end_t) AS t,
        CASE WHEN run.seq IS NULL THEN chunks.kept ELSE _is_kept(run.outcome, discarded.seq) END
            AS kept,
        coalesce(run.compute_seconds, chunks.compute_seconds) AS seconds,
        chunks.* EXCLUDE (seq, measured, dataset, worker, end_t, kept, compute_seconds)
    FROM _task_runs AS run
    LEFT JOIN _discarded_results AS discarded USING (seq)
    FULL JOIN chunks ON run.seq = chunks.seq
),
timed AS (
    SELECT
        *,
        least(
            floor(10 * (t - min(t) OVER ()) / nullif(max(t) OVER () - min(t) OVER (), 0)), 9
        ) AS tenth
    FROM attempts
)
SELECT
    prefix,
    dataset,
    filename,
    worker,
    tenth,
    count(*) AS attempts,
    count(*) FILTER (kept AND NOT coalesce(is_skipped, false)) AS tasks,
    try_cast(sum(events) AS BIGINT) AS events,
    coalesce(sum(seconds) FILTER (kept), 0) AS seconds,
    coalesce(sum(seconds * seconds) FILTER (kept), 0) AS squared_seconds,
    coalesce(sum(seconds * events) FILTER (kept), 0) AS event_seconds,
    coalesce(sum(events * events) FILTER (kept), 0)::DOUBLE AS squared_events,
    count(*) FILTER (kept AND is_measured) AS measured,
    sum(opening) FILTER (kept AND is_measured) AS opening,
    sum(reading) FILTER (kept AND is_measured) AS reading,
    sum(rest - idling) FILTER (kept AND is_measured) AS "CPU",
    sum(idling) FILTER (kept AND is_measured) AS "no CPU"
FROM timed
GROUP BY ALL
ORDER BY ALL
"""

#: Mean number of chunks per file from which the cost of each file is known well enough.
_MIN_CHUNKS_PER_FILE: Final = 3

#: Share of each branch in the time to read chunks of a dataset.
_BRANCHES: Final = """
SELECT dataset, branch, branches.read_seconds / nullif(reading.seconds, 0) AS share
FROM branches
INNER JOIN (
    SELECT dataset, sum(read_seconds) AS seconds FROM _chunks GROUP BY dataset
) AS reading USING (dataset)
WHERE branches.read_seconds > 0 AND reading.seconds > 0
ORDER BY ALL
"""

_PATH: Final = (
    "SELECT cause, prefix, sum(seconds) AS seconds FROM critical_path GROUP BY ALL ORDER BY ALL"
)
_FIXED: Final = (
    "SELECT dataset, fixed_seconds FROM _chunk_cost_models WHERE fixed_seconds IS NOT NULL"
)


def query_amounts(trace: Session) -> RunAmounts:
    """Return the work and the waiting of an opened trace.

    Raises
    ------
    TraceError
        If several traces are open.
    """
    runs = trace.rows("SELECT wall_seconds FROM run")
    if len(runs) > 1:
        raise TraceError(f"{trace!r} contains {len(runs)} traces: open each one by itself")
    wall_seconds = (runs[0][0] if runs else None) or 0.0
    uses = trace.sql(_USES).pl()
    if not uses.is_empty():
        waiting = uses.filter(~pl.col("is_work")).select(*WAITING)
    else:
        uses = trace.sql(_CHUNK_USES).pl()
        [(threads,)] = trace.rows(_CHUNK_THREADS)
        rest = max(threads, 1) * wall_seconds - float(uses["seconds"].sum())
        waiting = pl.DataFrame({"use": ["unknown"], "seconds": [rest]}, schema=WAITING)
    blocks = trace.sql(_WORK).pl()
    work = _work(blocks)
    per_task = pl.col("seconds") / pl.col("tasks")
    costs = (
        uses.filter("is_work")
        .rename({"use": "part"})
        .join(work.select(*_GROUP, "tasks"), on=_GROUP, how="left", nulls_equal=True)
        .join(trace.sql(_FIXED).pl(), on="dataset", how="left", nulls_equal=True)
        .with_columns(
            detail=pl.lit(None, pl.String),
            branch=pl.lit(None, pl.String),
            # Everything except computing costs the same for any number of events.
            fixed_seconds=pl.when(pl.col("part") == COMPUTING)
            .then(pl.col("fixed_seconds").clip(upper_bound=per_task))
            .otherwise(per_task),
        )
    )
    computing = costs.filter(part=COMPUTING)
    details = _details(computing, blocks, trace.sql(_BRANCHES).pl())
    # Details take the place of the computing time that they divide.
    divided = details.select(_GROUP).unique()
    parts = [
        costs.filter(pl.col("part") != COMPUTING),
        computing.join(divided, on=_GROUP, how="anti", nulls_equal=True),
        details,
    ]
    return RunAmounts(
        wall_seconds,
        work,
        pl.concat(part.select(*COSTS) for part in parts),
        waiting,
        trace.sql(_PATH).pl(),
    )


def _work(blocks: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks, events and relative error of each prefix and dataset.

    The error is the standard error of the mean time of an event, or else of a task. Blocks vary
    independently of each other, the tasks of a block do not: workers differ, and a machine can
    be slower for a time. Events of a file that cost more than others do so in every run: where
    files have enough chunks, only the variation within files counts.

    Other work on the machine makes tenths of a run differ, and whole runs by as much: no number
    of tasks in one run averages it out. This variance is the excess over that between tasks.
    """
    tasks, events = pl.col("tasks"), pl.col("events").fill_null(0)
    has_events = events.sum().over(_GROUP) > 0
    all_tasks, files = tasks.sum().over(_GROUP), pl.col("filename").n_unique().over(_GROUP)
    stratum = [*_GROUP, "stratum"]
    seconds, amount, mean = pl.col("seconds"), pl.col("amount"), pl.col("mean")
    blocks = (
        blocks.with_columns(
            amount=pl.when(has_events).then(events).otherwise("tasks"),
            cross=pl.when(has_events).then("event_seconds").otherwise("seconds"),
            square=pl.when(has_events).then("squared_events").otherwise("tasks"),
            stratum=pl.when(all_tasks >= _MIN_CHUNKS_PER_FILE * files).then("filename"),
        )
        .with_columns(
            mean=pl.when(amount.sum().over(stratum) > 0)
            .then(seconds.sum().over(stratum) / amount.sum().over(stratum))
            .otherwise(0.0),
            # Of the degrees of freedom, one for each further file is lost.
            freedom=1 - (pl.col("stratum").n_unique().over(_GROUP) - 1) / all_tasks.clip(1),
        )
        .with_columns(
            expected=mean * amount,
            of_tasks=pl.col("squared_seconds")
            - 2 * mean * pl.col("cross")
            + mean**2 * pl.col("square"),
        )
    )
    summed = pl.col("seconds", "amount", "expected", "of_tasks").sum()
    freedom = pl.col("freedom").first()
    residual = seconds - pl.col("expected")
    of_blocks = (residual**2).sum() * pl.len() / (pl.len() - 1) / freedom
    errors = [
        blocks.group_by([*_GROUP, *by])
        .agg(summed, freedom)
        .filter(amount > 0)
        .group_by(_GROUP)
        .agg(
            pl.when((pl.len() > 1) & (seconds.sum() > 0))
            .then(of_blocks.sqrt() / seconds.sum())
            .alias("relative_error")
        )
        for by in (["worker"], ["tenth"], ["worker", "tenth"])
    ]
    machine = (
        blocks.group_by([*_GROUP, "tenth"])
        .agg(summed, freedom)
        .filter(seconds.sum().over(_GROUP) > 0)
        .group_by(_GROUP)
        .agg(
            machine_variance=(residual**2 - pl.col("of_tasks")).sum().clip(0.0)
            / freedom
            / (seconds**2).sum()
        )
    )
    return (
        blocks.group_by(_GROUP, maintain_order=True)
        .agg(
            # For a prefix without any result, attempts are counted.
            pl.when(tasks.sum() > 0)
            .then(tasks.sum())
            .otherwise(pl.col("attempts").sum())
            .alias("tasks"),
            pl.col("events").sum(),
        )
        .join(
            pl.concat(errors).group_by(_GROUP).agg(pl.col("relative_error").max()),
            on=_GROUP, how="left", nulls_equal=True,
        )
        .join(machine, on=_GROUP, how="left", nulls_equal=True)
        .with_columns(
            relative_error=(
                pl.col("relative_error") ** 2 + pl.col("machine_variance").fill_null(0.0)
            ).sqrt()
        )
        .select(*WORK)
    )  # fmt: skip


def _details(
    computing: pl.DataFrame, blocks: pl.DataFrame, branches: pl.DataFrame
) -> pl.DataFrame:
    """Divide the time of computing chunks where nearly all of them were measured."""
    measured = (
        blocks.group_by(_GROUP, maintain_order=True)
        .agg(pl.col("tasks", "measured", *_DETAILS).sum())
        .filter((pl.col("measured") > 0) & (pl.col("measured") >= 0.95 * pl.col("tasks")))
        .drop("tasks")
        .join(computing.drop("detail", "branch"), on=_GROUP, nulls_equal=True)
        .with_columns(other=pl.col("seconds") - pl.sum_horizontal(*_DETAILS))
    )
    # The fixed time of a chunk contains its opening; the remainder is divided like the time.
    opening = pl.col("opening") / pl.col("tasks")
    fixed_share = (pl.col("fixed_seconds") - opening).clip(0.0) / (
        pl.col("seconds") - pl.col("opening")
    )
    rest = branches.group_by("dataset").agg(
        branch=pl.lit(None, pl.String), share=1 - pl.col("share").sum()
    )
    shares = pl.concat([branches, rest.select(branches.columns)])
    share = pl.col("share").fill_null(1.0)
    return (
        measured.with_columns(opening_seconds=opening, fixed_share=fixed_share)
        .drop("seconds")
        .unpivot(
            [*_DETAILS, "other"],
            index=[*_GROUP, "part", "opening_seconds", "fixed_share"],
            variable_name="detail",
            value_name="seconds",
        )
        .with_columns(
            fixed_seconds=pl.when(pl.col("detail") == "opening")
            .then("opening_seconds")
            .otherwise(pl.col("fixed_share") * pl.col("seconds"))
        )
        # The time of reading is divided by branch; the rest has no branch.
        .join(
            shares.with_columns(detail=pl.lit("reading")),
            on=["detail", "dataset"], how="left", nulls_equal=True,
        )
        .with_columns(pl.col("seconds", "fixed_seconds") * share)
    )  # fmt: skip
