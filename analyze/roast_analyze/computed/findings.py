"""Rows of the table ``_findings``: the results of all rules, ranked by what they would save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.computed.rules import COLUMNS, rules

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Smallest share of the run that a finding of each severity could save.
SEVERITIES: Final = {"major": 0.1, "moderate": 0.03, "minor": 0.01}

#: Weight of a saving when findings are ranked, by confidence.
_WEIGHTS: Final = {"high": 1.0, "medium": 0.8, "low": 0.5}

#: Thread time that is idle anyway is worth less than wall time.
_CORE_WEIGHT: Final = 0.5


def query(trace: Session) -> pl.DataFrame:
    """Return the findings of all traces."""
    found = [
        trace.sql(rule.sql, rule.parameters)
        .pl()
        .select(*COLUMNS)
        .with_columns(id=pl.lit(rule.id), documentation=pl.lit(rule.documentation))
        for rule in rules()
    ]
    runs = trace.sql(
        "SELECT trace_id, stop_t - start_t AS wall_seconds, core_seconds AS all_core_seconds, "
        "coalesce(kept_seconds / peak_nthreads, 0) AS kept_seconds, peak_nthreads "
        "FROM _cluster_size LEFT JOIN (SELECT trace_id, sum(seconds) AS kept_seconds "
        "FROM core_time WHERE use = 'kept result' GROUP BY trace_id) USING (trace_id)"
    ).pl()
    # The work that remains takes some time, if the whole cost is known.
    least = (
        pl.when(pl.col("confidence") == "low")
        .then(0.0)
        .otherwise(
            pl.col("kept_seconds")
            - pl.col("core_seconds").fill_null(0.0) / pl.col("peak_nthreads")
        )
    )
    largest = pl.col("wall_seconds") - pl.max_horizontal(least, 0.0)
    saving = pl.max_horizontal("wall_share", _CORE_WEIGHT * pl.col("core_share"))
    ranked: pl.DataFrame = (
        pl.concat([rows for rows in found if not rows.is_empty()] or found[:1])
        .join(runs, on="trace_id")
        .with_columns(pl.col("wall_seconds_min", "wall_seconds_max").clip(0.0, largest))
        .with_columns(
            wall_share=(pl.col("wall_seconds_min") + pl.col("wall_seconds_max"))
            / 2
            / pl.col("wall_seconds"),
            core_share=pl.col("core_seconds") / pl.col("all_core_seconds"),
        )
        # A finding without a saving is a remark.
        .filter(saving.is_null() | (saving >= SEVERITIES["minor"]))
        .with_columns(
            severity=pl.when(saving >= SEVERITIES["major"])
            .then(pl.lit("major"))
            .when(saving >= SEVERITIES["moderate"])
            .then(pl.lit("moderate"))
            .otherwise(pl.lit("minor")),
            weighted=saving
            * pl.col("confidence").replace_strict(_WEIGHTS, return_dtype=pl.Float64),
        )
        .sort(
            "trace_id",
            "weighted",
            "id",
            "entity",
            descending=[False, True, False, False],
            nulls_last=True,
        )
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("trace_id"))
        .drop("weighted", "wall_seconds", "all_core_seconds", "kept_seconds", "peak_nthreads")
    )
    return ranked
