"""Rows of the table ``_findings``: the results of all rules, ranked by what they would save."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.algorithms.outcomes import RAISED_ENDS
from roast_analyze.computed.rules import COLUMNS, PARTLY_KNOWN, rules
from roast_analyze.open.concurrent_queries import run_concurrently

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.computed.rules import Rule
    from roast_analyze.open.concurrent_queries import Submit
    from roast_analyze.open.session import Session

#: Smallest share of the run that a finding of each severity could save.
#: In one of two recordings, a healthy control had a finding of 4 %, which must not be moderate.
SEVERITIES: Final = {"major": 0.1, "moderate": 0.05, "minor": 0.01}

#: Weight of a saving when findings are ranked, by confidence.
_WEIGHTS: Final = {"high": 1.0, "medium": 0.8, "low": 0.5}

#: Thread time that is idle anyway is worth less than wall time.
_CORE_WEIGHT: Final = 0.5

#: Factor for the largest saving and for the cost that bounds it, applied after ranking:
#: removing a cause also removes indirect delays. Of 28 pairs of runs that had not been used to
#: adjust the rules, 7 saved up to 1.8 times the upper end of a rule, and one saved less than
#: the lower end. Of 30 later pairs, 4 saved more than 1.25 times the upper end, and 2 of them
#: more than 1.5 times. Of 22 further pairs, 4 saved up to 1.1 times the bound from cost alone.
_INDIRECT_FACTOR: Final = 1.5

#: Largest ratio of the ends of a saving or of a prediction: a wider range is no information.
MAX_RATIO: Final = 4.0

#: Up to this ratio, a range is narrowed by a larger lower end. Of 172 savings of examinations
#: (docs/explanation/findings.md), 136 were in the range, and most others above it. Of a wider
#: range, the lower end remains, as a lower bound.
_NARROWED_RATIO: Final = 6.0

#: Rules whose findings without a saving mean that the result is incomplete. They are major, and
#: in this order at equal weight: the merge of skipped chunks alone fails, while coffea skips no
#: chunk because a task failed.
_INCOMPLETE_RESULT: Final = (
    "skipped-files", "retries", "unplaceable-tasks", "dropped-futures",
)  # fmt: skip

#: Share of the run with which these are ranked if an exception of the program ended it: what is
#: missing comes before what could have been faster.
_ENDED_SHARE: Final = 1.0

#: Rules whose cost is idle time, or time of results that were not kept: a change leaves the
#: time of those that were kept as it is. Workers that replace killed ones begin anew, such as
#: with imports, in tasks whose results are kept: killed-workers is not one of these rules.
_NO_KEPT_WORK: Final = (
    "client-gaps", "late-start", "late-workers", "long-tail", "low-parallelism", "no-workers",
    "restricted-tasks", "retries", "scarce-resources",
)  # fmt: skip

#: Rules whose largest saving nothing exceeds: it is measured wall time, or follows from numbers
#: of threads.
_WALL_TIME: Final = ("adaptive-plan", "late-start", "missing-workers", "no-workers")

#: Place of a threshold in the text of a rule.
_THRESHOLD: Final = re.compile(r"\$(\w+)")

#: Rule that applies if no other finding of a run is more than minor.
_UNEXPLAINED: Final = "idle-threads"


def query(trace: Session) -> pl.DataFrame:
    """Return the findings of all traces."""
    applied = applicable(trace, rules())
    rows = run_concurrently(trace, partial(_apply, trace, applied))
    found = pl.DataFrame(
        [
            (rule.id, rule.title, rule.documentation, *row)
            for rule in applied
            for row in rows[rule.id]
        ],
        schema={
            name: pl.Float64 if "seconds" in name else pl.String
            for name in ("id", "title", "documentation", *COLUMNS)
        },
        orient="row",
    )
    runs = trace.query_frame(
        "SELECT trace_id, stop_t - start_t AS wall_seconds, core_seconds AS all_core_seconds, "
        "coalesce(kept_seconds / peak_nthreads, 0) AS kept_seconds, peak_nthreads, "
        "coalesce(has_raised, false) AS has_raised "
        "FROM _cluster_size LEFT JOIN (SELECT trace_id, "
        "bool_or(regexp_matches(end_reason, $raised)) AS has_raised "
        "FROM trace_info GROUP BY trace_id) USING (trace_id) "
        "LEFT JOIN (SELECT trace_id, sum(seconds) AS kept_seconds FROM _core_time "
        "WHERE use = 'kept result' GROUP BY trace_id) USING (trace_id)",
        {"raised": f"^({'|'.join(RAISED_ENDS)})"},
    )
    counts_missing = pl.col("id").is_in(
        [rule.id for rule in rules() if rule.counts_missing_threads]
    )
    largest_share = pl.max_horizontal(
        "wall_share",
        _CORE_WEIGHT * pl.col("core_share"),
        pl.when(
            pl.col("id").is_in(_INCOMPLETE_RESULT) & pl.col("wall_seconds_max").is_null()
        ).then(pl.when("has_raised").then(_ENDED_SHARE).otherwise(SEVERITIES["major"])),
    )
    share = pl.col("share")
    ranked: pl.DataFrame = (
        found.join(runs, on="trace_id")
        # A rule can count time twice, or more time than the run had. Threads that were missing
        # have no core time.
        .with_columns(
            pl.when(~counts_missing)
            .then(pl.col("core_seconds").clip(0.0, pl.col("all_core_seconds")))
            .otherwise(pl.col("core_seconds").clip(0.0)),
            pl.col("wall_seconds_min", "wall_seconds_max").clip(0.0, _largest_saving(1.0)),
        )
        .with_columns(pl.min_horizontal("wall_seconds_min", "wall_seconds_max"))
        .with_columns(
            wall_share=(pl.col("wall_seconds_min") + pl.col("wall_seconds_max"))
            / 2
            / pl.col("wall_seconds"),
            core_share=pl.col("core_seconds") / pl.col("all_core_seconds"),
        )
        .with_columns(
            pl.when(pl.col("id").is_in(_WALL_TIME))
            .then("wall_seconds_max")
            .otherwise(pl.col("wall_seconds_max") * _INDIRECT_FACTOR)
            .clip(0.0, _largest_saving(_INDIRECT_FACTOR))
        )
        .with_columns(
            share=largest_share,
            place=pl.col("id").replace_strict(
                {name: str(place) for place, name in enumerate(_INCOMPLETE_RESULT)},
                default=pl.col("id"),
            ),
        )
        # A finding without a saving is a remark.
        .filter(share.is_null() | (share >= SEVERITIES["minor"]))
        .filter(
            (pl.col("id") != _UNEXPLAINED)
            | ((share >= SEVERITIES["moderate"]).sum().over("trace_id") <= 1)
        )
        .with_columns(
            severity=pl.when(share >= SEVERITIES["major"])
            .then(pl.lit("major"))
            .when(share >= SEVERITIES["moderate"])
            .then(pl.lit("moderate"))
            .when(share.is_null())
            .then(pl.lit("note"))
            .otherwise(pl.lit("minor")),
            weighted=share
            * pl.col("confidence").replace_strict(_WEIGHTS, return_dtype=pl.Float64),
        )
        .pipe(with_information)
        .sort(
            "trace_id",
            "weighted",
            "place",
            "entity",
            descending=[False, True, False, False],
            nulls_last=True,
        )
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("trace_id"))
        .with_columns(core_share=pl.when(~counts_missing).then("core_share"))
        .drop(
            *("weighted", "place", "share", "wall_seconds", "all_core_seconds", "kept_seconds"),
            "peak_nthreads",
            "has_raised",
        )
    )
    return ranked


def applicable(trace: Session, candidates: Sequence[Rule]) -> list[Rule]:
    """Return the rules whose conditions hold: all others have no rows.

    Planning a rule takes longer than applying it to a small trace. The conditions of all rules
    are planned together.
    """
    columns: list[str] = []
    parameters: dict[str, float] = {}
    for number, rule in enumerate(candidates):
        # Rules have thresholds of the same name.
        texts = [_THRESHOLD.sub(rf"$\1_{number}", text) for text in rule.conditions]
        records = [f"EXISTS (FROM raw.{rule.records})"] if rule.records else []
        columns.append(" AND ".join([*records, f"({' OR '.join(texts or ['true'])})"]))
        for name in _THRESHOLD.findall(" ".join(rule.conditions)):
            parameters[f"{name}_{number}"] = rule.parameters[name]
    [row] = trace.rows(f"SELECT {', '.join(columns)}", parameters)
    return [rule for rule, holds in zip(candidates, row, strict=True) if holds]


def _apply(
    trace: Session, applied: list[Rule], submit: Submit
) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each rule. Every other rule is applied in the second thread."""

    def apply(rule: Rule) -> list[tuple[Any, ...]]:
        columns = ", ".join(COLUMNS)
        return trace.rows(f"SELECT {columns} FROM (\n{rule.sql})", rule.parameters)  # noqa: S608 - fixed text

    submitted = {rule.id: submit(apply, rule) for rule in applied[1::2]}
    rows = {rule.id: apply(rule) for rule in applied[::2]}
    return rows | {rule_id: future.result() for rule_id, future in submitted.items()}


def with_information(found: pl.DataFrame) -> pl.DataFrame:
    """Narrow the ranges of savings, reduce them to a lower bound, or leave them out."""
    least, most = pl.col("wall_seconds_min"), pl.col("wall_seconds_max")
    is_narrow = (most <= _NARROWED_RATIO * least) | most.is_null()
    return found.with_columns(
        pl.when(is_narrow)
        .then(pl.max_horizontal(least, most / MAX_RATIO))
        .when(least > 0)
        .then(least)
        .alias("wall_seconds_min"),
        pl.when(is_narrow).then(most).alias("wall_seconds_max"),
        pl.when(is_narrow)
        .then("wall_share")
        .when(least > 0)
        .then(least / pl.col("wall_seconds"))
        .alias("wall_share"),
    )


def _largest_saving(factor: float) -> pl.Expr:
    """Return the largest possible saving of wall time for `factor` times the cost.

    The time of the remaining work is excluded, unless the cost is only partly known. A cost of
    compute time reduces this work.
    """
    is_partly_known = (pl.col("confidence") == "low") | (
        pl.col("id").is_in(PARTLY_KNOWN) & (pl.col("confidence") == "medium")
    )
    cost = (
        pl.when(~pl.col("id").is_in(_NO_KEPT_WORK))
        .then(factor * pl.col("core_seconds"))
        .fill_null(0.0)
    )
    remaining = pl.when(~is_partly_known).then(
        pl.col("kept_seconds") - cost / pl.col("peak_nthreads")
    )
    return pl.col("wall_seconds") - pl.max_horizontal(remaining, 0.0)
