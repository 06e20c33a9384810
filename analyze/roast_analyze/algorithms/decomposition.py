"""Decomposition of the difference between two runs into terms that add up to it exactly.

The model
---------
The thread time of a run is the sum of work and waiting::

    core_seconds = sum(amount * cost) + threads * sum(waiting)
    wall_seconds = sum(amount * cost) / threads + sum(waiting)

An *amount* is the number of results of a prefix and dataset, or of its events if both runs
processed events; its *cost* is the thread time of one result or event. A task that is computed
again after its result was used has two results. Without any result, attempts are counted.
``threads`` is the mean number of threads, ``core_seconds / wall_seconds``. *Waiting* is the
mean time in which a thread had no task, by use. It is a time and not an amount of work: if the
client pauses for 10 s, all threads wait for 10 s, however many there are.

The cost of an event contains the time of a chunk that does not depend on its size::

    cost = cost_without_it + chunks_per_event * fixed_seconds

The method
----------
Each product is divided by its Shapley value (Shapley 1953): a factor gets its mean contribution
over all orders in which the factors can change from one run to the other. For two factors, that
is ``change(a) * mean(b)`` and ``mean(a) * change(b)``. A factor that is composed of others is
divided first as a whole and then further (Owen 1977), so that a finer split never changes a
coarser one. In energy analysis this is the decomposition of Sun (1998).

It is exact, additive, independent of any order, and symmetric: the terms of B against A are the
negative of A against B. The logarithmic mean Divisia index (LMDI), which Ang (2004) recommends
for long chains of factors, has these properties, too. It is not used here, because logarithms
exist only of amounts above 0: a prefix that only one run contains, and a measured remainder
below 0, need substitutes. The Shapley value needs none. The cost of what only one run contains
is taken to be the same in the other run, so that all of it is a difference in amount.

References
----------
- L. S. Shapley, A value for n-person games, Contributions to the Theory of Games II (1953).
- G. Owen, Values of games with a priori unions, Essays in Mathematical Economics and Game
  Theory (1977).
- J. W. Sun, Changes in energy consumption and energy intensity: a complete decomposition model,
  Energy Economics 20 (1998).
- B. W. Ang, Decomposition analysis for policymaking in energy: which is the preferred method?,
  Energy Policy 32 (2004).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.student import student

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Part of the cost that computes results that were kept.
COMPUTING: Final = "kept result"

#: Chunk sizes that differ by less than this factor are not a reason for different costs, unless
#: the fixed time of a chunk is known from chunks of different sizes in one run.
SIZE_FACTOR: Final = 1.2

#: Share of the wall time that a significant term must exceed: with one base, whose noise is not
#: known, and with several.
FLOOR: Final = 0.05
FLOOR_OF_SEVERAL: Final = 0.02
#: With one base, terms other than computing must also differ by this time to be significant.
OVERHEAD_FLOOR_SECONDS: Final = 1.0
#: Minimum number of tasks of a prefix in each run for an estimate of the error of their mean
#: cost.
FEWEST_TASKS: Final = 3

_RUNS: Final = ("base", "new")
_GROUP: Final = ["prefix", "dataset"]
_PART: Final = [*_GROUP, "part", "detail", "branch"]
_SUMMARY: Final = ["term", "prefix", "part"]

#: Columns of :func:`decompose`.
TERMS: Final = (
    dict.fromkeys(["term", *_PART, "unit"], pl.String)
    | dict.fromkeys(["base", "new", "amount", "core_seconds", "wall_seconds"], pl.Float64)
    | {"is_assumed": pl.Boolean}
)

#: Columns of the frames of :class:`RunAmounts`.
WORK: Final = {
    "prefix": pl.String,
    "dataset": pl.String,
    "tasks": pl.Int64,
    "events": pl.Int64,
    "relative_error": pl.Float64,
}
COSTS: Final = dict.fromkeys(_PART, pl.String) | dict.fromkeys(
    ["seconds", "fixed_seconds"], pl.Float64
)
WAITING: Final = {"use": pl.String, "seconds": pl.Float64}
PATH: Final = {"cause": pl.String, "prefix": pl.String, "seconds": pl.Float64}


@dataclass(frozen=True)
class RunAmounts:
    """Work and waiting of a run."""

    wall_seconds: float
    #: One row per prefix and dataset: its ``tasks`` (kept results, or else attempts), its
    #: ``events`` if it has any, and the ``relative_error`` of the mean compute time: one
    #: standard error, with the variation that the machine causes between runs, null if unknown.
    work: pl.DataFrame
    #: Thread seconds of all tasks by prefix, dataset and ``part``, such as computing a kept
    #: result; ``detail`` and ``branch`` divide a part further where that is known.
    #: ``fixed_seconds`` is the time of a task that does not depend on its number of events,
    #: null if unknown.
    costs: pl.DataFrame
    #: Thread seconds without a task, by use.
    waiting: pl.DataFrame
    #: Seconds of the critical path, by cause and prefix.
    path: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PATH))

    @property
    def work_seconds(self) -> float:
        """Thread time of tasks."""
        return float(self.costs["seconds"].sum())

    @property
    def core_seconds(self) -> float:
        """Thread time of the run."""
        return self.work_seconds + float(self.waiting["seconds"].sum())

    @property
    def threads(self) -> float:
        """Mean number of threads."""
        if self.wall_seconds <= 0 or self.core_seconds <= 0:
            return 1.0
        return self.core_seconds / self.wall_seconds

    @property
    def computing(self) -> pl.DataFrame:
        """Rows of `work` with the thread ``seconds`` in which kept results were computed."""
        seconds = (
            self.costs.filter(part=COMPUTING).group_by(_GROUP).agg(pl.col("seconds").sum())
        )
        return self.work.join(seconds, on=_GROUP, nulls_equal=True)


def with_chunks_named_as_in(other: RunAmounts, run: RunAmounts) -> RunAmounts:
    """Return a run with the prefix of its chunks in another run that processed the same events.

    The executor of coffea determines the prefix: without Dask, chunks have none. They are the
    same work if each run has one prefix with events that the other lacks, and both have the
    same number of events of each dataset.
    """
    events = [
        {
            prefix: dict(rows.select("dataset", "events").iter_rows())
            for (prefix,), rows in each.work.filter(pl.col("events") > 0).group_by("prefix")
            if prefix not in another.work["prefix"].to_list()
        }
        for each, another in ((run, other), (other, run))
    ]
    if len(events[0]) != 1 or [*events[0].values()] != [*events[1].values()]:
        return run
    [before], [after] = events
    renamed = pl.when(pl.col("prefix").eq_missing(pl.lit(before, pl.String))).then(
        pl.lit(after, pl.String)
    )
    # These causes have no prefix, and are not chunks without one.
    is_chunk = ~pl.col("cause").is_in(["client", "unknown"])
    return replace(
        run,
        work=run.work.with_columns(prefix=renamed.otherwise("prefix")),
        costs=run.costs.with_columns(prefix=renamed.otherwise("prefix")),
        path=run.path.with_columns(
            prefix=pl.when(is_chunk).then(renamed.otherwise("prefix")).otherwise("prefix")
        ),
    )


def decompose(base: RunAmounts, new: RunAmounts) -> pl.DataFrame:
    """Return the terms of the difference between two runs.

    Returns
    -------
    pl.DataFrame
        One row per term, also for those that are 0. ``core_seconds`` and ``wall_seconds`` each
        add up to the difference.

        - ``term``: `threads`, `amount`, `chunk size`, `cost` or `waiting`.
        - ``prefix``, ``dataset``, ``part``, ``detail``, ``branch``: as in
          :class:`RunAmounts`; the part of waiting is its use.
        - ``base``, ``new``: the factor in each run, in ``unit``: `threads`, `results`,
          `attempts` (of a prefix without results), `events`, `events per chunk`, `seconds per
          result`, `seconds per attempt`, `seconds per event` or `seconds`. Costs are those at
          the mean chunk size of the runs.
        - ``amount``: the mean amount of work that a cost applies to.
        - ``is_assumed``: true for a chunk size if its cost was estimated from the two runs,
          because neither contains chunks of different sizes: another reason for a different
          cost per event is then contained in this term.
    """
    threads = base.threads, new.threads
    waiting = (
        _paired(base.waiting, new.waiting, keys=["use"])
        .select(
            term=pl.lit("waiting"),
            part="use",
            unit=pl.lit("seconds"),
            base=pl.col("seconds_base").fill_null(0.0) / threads[0],
            new=pl.col("seconds_new").fill_null(0.0) / threads[1],
        )
        .with_columns(wall_seconds=pl.col("new") - pl.col("base"))
        .with_columns(core_seconds=pl.col("wall_seconds") * sum(threads) / 2)
    )
    work_seconds = (base.work_seconds + new.work_seconds) / 2
    waiting_seconds = float(waiting["base"].sum()) / 2 + float(waiting["new"].sum()) / 2
    more_threads = {
        "term": "threads",
        "unit": "threads",
        "base": threads[0],
        "new": threads[1],
        "core_seconds": waiting_seconds * (threads[1] - threads[0]),
        "wall_seconds": work_seconds * (1 / threads[1] - 1 / threads[0]),
    }
    work = _work_terms(base, new).with_columns(
        wall_seconds=pl.col("core_seconds") * (1 / threads[0] + 1 / threads[1]) / 2
    )
    terms = [pl.DataFrame(schema=TERMS), pl.DataFrame([more_threads]), work, waiting]
    return pl.concat(terms, how="diagonal_relaxed").sort(
        pl.col("wall_seconds").abs(), "term", *_PART, descending=[True, *[False] * 6]
    )


def mean_terms(bases: Sequence[RunAmounts], new: RunAmounts) -> pl.DataFrame:
    """Return the terms of the difference between the mean of some runs and another run.

    The columns are those of :func:`decompose`; a term is the mean over the bases. A cost is the
    mean over those that have it.
    """
    differences = [decompose(base, new) for base in bases]
    if len(differences) == 1:
        return differences[0]
    identity = ["term", *_PART, "unit"]
    factors = pl.col("base", "new")
    return (
        pl.concat(differences)
        .group_by(identity)
        .agg(
            # Where it is missing, neither run has it.
            pl.when(pl.col("term").first().is_in(["amount", "waiting"]))
            .then(factors.sum() / len(bases))
            .otherwise(factors.mean()),
            pl.col("amount").mean(),
            pl.col("core_seconds", "wall_seconds").sum() / len(bases),
            pl.col("is_assumed").any(),
        )
        .select(list(TERMS))
        .sort(pl.col("wall_seconds").abs(), *identity, descending=[True, *[False] * 7])
    )


def summarize(bases: Sequence[RunAmounts], new: RunAmounts) -> pl.DataFrame:
    """Return the terms by prefix and part, and which of them are significant.

    Parameters
    ----------
    bases : sequence of RunAmounts
        One or more runs of the same program.
    new : RunAmounts
        Another run.

    Returns
    -------
    pl.DataFrame
        Sums of :func:`mean_terms` over datasets, details and branches, largest wall time first,
        without those that are 0. Two columns are added: ``noise_seconds``, and ``significant``,
        whether the wall time exceeds the noise, null if that cannot be determined.

    Notes
    -----
    With several bases, the noise is the 95 % prediction interval of one more run like them
    (Student's t), and at least 2 % of the wall time. With two bases it is wide.

    With one base, the noise is estimated from the variation within the runs, and is at least
    5 % of the wall time. For the compute cost of a prefix it is two standard errors; it cannot
    be determined if a run has fewer than three of the tasks. For all other costs it is 1 s, and
    for waiting also one task, of those that are more numerous than threads, because that much
    depends on their order. A machine that was slower throughout a run cannot be distinguished
    from a slower program.
    """
    terms = _by_part(mean_terms(bases, new))
    count = len(bases)
    if count == 1:
        floor, noisy = FLOOR, _with_noise_within(terms, bases[0], new)
    else:
        # A term that is missing in a difference is 0.
        squares = (pl.col("wall_seconds") ** 2).sum() - pl.col(
            "wall_seconds"
        ).sum() ** 2 / count
        spread = (
            pl.concat(_by_part(decompose(base, new)) for base in bases)
            .group_by(_SUMMARY)
            .agg(
                noise_seconds=student(count - 1)
                * (squares.clip(0.0) / (count - 1)).sqrt()
                * math.sqrt(1 + 1 / count)
            )
        )
        noisy = terms.join(spread, on=_SUMMARY, how="left", nulls_equal=True)
        floor, noisy = FLOOR_OF_SEVERAL, noisy.with_columns(is_known=True)
    floor_seconds = floor * min(run.wall_seconds for run in (*bases, new))
    exceeds = pl.col("wall_seconds").abs() > pl.col("noise_seconds")
    return (
        noisy.filter((pl.col("core_seconds") != 0) | (pl.col("wall_seconds") != 0))
        .with_columns(pl.max_horizontal("noise_seconds", pl.lit(floor_seconds)))
        .with_columns(
            significant=pl.when(exceeds & ~pl.col("is_known")).then(None).otherwise(exceeds)
        )
        .drop("is_known")
    )


def path_changes(bases: Sequence[RunAmounts], new: RunAmounts) -> pl.DataFrame:
    """Return the difference between critical paths, by cause and prefix, largest first.

    Returns
    -------
    pl.DataFrame
        Cause, prefix, the seconds in the mean of the ``base`` runs and in the ``new`` run, and
        their difference ``wall_seconds``. The differences add up to that in wall time; what a
        path does not contain has the cause `unknown`.
    """
    keys = ["cause", "prefix"]
    base = (
        pl.concat(_whole_path(run) for run in bases)
        .group_by(keys)
        .agg(pl.col("seconds").sum() / len(bases))
    )
    return (
        _paired(base, _whole_path(new), keys=keys)
        .with_columns(pl.col(f"seconds_{run}").fill_null(0.0).alias(run) for run in _RUNS)
        .select(*keys, "base", "new", wall_seconds=pl.col("new") - pl.col("base"))
        .sort(pl.col("wall_seconds").abs(), *keys, descending=[True, False, False])
    )


def _whole_path(run: RunAmounts) -> pl.DataFrame:
    rest = run.wall_seconds - float(run.path["seconds"].sum())
    unknown = pl.DataFrame({"cause": ["unknown"], "prefix": [None], "seconds": [rest]}, PATH)
    return (
        pl.concat([run.path, unknown]).group_by("cause", "prefix").agg(pl.col("seconds").sum())
    )


def _work_terms(base: RunAmounts, new: RunAmounts) -> pl.DataFrame:
    """Return the terms of amounts, chunk sizes and costs, without their wall time."""

    def per_amount(column: str, run: str) -> pl.Expr:
        amount = pl.col(f"amount_{run}")
        return pl.col(f"{column}_{run}") / pl.when(amount > 0).then(amount)

    rows = (
        _paired_costs(base, new)
        .with_columns(
            # The cost of work that only one run contains is the same in the other.
            pl.coalesce(per_amount(column, run), per_amount(column, other)).alias(
                f"{name}_{run}"
            )
            for name, column in (("cost", "seconds"), ("rate", "tasks"))
            for run, other in (_RUNS, _RUNS[::-1])
        )
        .with_columns(
            mean_amount=_mean("amount"),
            mean_cost=_mean("cost"),
            cost_change=_change("cost"),
            rate_change=_change("rate"),
            known_seconds=pl.mean_horizontal("fixed_seconds_base", "fixed_seconds_new"),
        )
        .with_columns(
            is_assumed=pl.col("known_seconds").is_null()
            & (
                pl.max_horizontal("rate_base", "rate_new")
                > SIZE_FACTOR * pl.min_horizontal("rate_base", "rate_new")
            )
        )
        .with_columns(
            fixed_seconds=pl.coalesce(
                "known_seconds",
                pl.when("is_assumed").then(
                    (pl.col("cost_change") / pl.col("rate_change")).clip(
                        0.0,
                        pl.min_horizontal(
                            pl.col("cost_base") / pl.col("rate_base"),
                            pl.col("cost_new") / pl.col("rate_new"),
                        ).clip(0.0),
                    )
                ),
                0.0,
            )
        )
        .with_columns(of_size=pl.col("rate_change") * pl.col("fixed_seconds"))
        .with_columns(of_cost=pl.col("cost_change") - pl.col("of_size"))
        # The cost of each run at the mean chunk size, with its own fixed time: with the mean of
        # both, a run of many cheap tasks would have a negative cost.
        .with_columns(
            (
                pl.col(f"cost_{run}")
                + (_mean("rate") - pl.col(f"rate_{run}"))
                * pl.coalesce(f"fixed_seconds_{run}", "fixed_seconds")
            ).alias(f"level_{run}")
            for run in _RUNS
        )
    )
    rows = rows.with_columns(
        unit=pl.when("by_event")
        .then(pl.lit("event"))
        .when((pl.col("part") == COMPUTING).any().over(_GROUP))
        .then(pl.lit("result"))
        .otherwise(pl.lit("attempt"))
    )
    groups = rows.group_by(_GROUP, maintain_order=True)
    amounts = groups.agg(
        term=pl.lit("amount"),
        unit=pl.col("unit").first() + "s",
        base=pl.col("amount_base").first(),
        new=pl.col("amount_new").first(),
        core_seconds=(_change("amount") * pl.col("mean_cost")).sum(),
    )
    sizes = groups.agg(
        term=pl.lit("chunk size"),
        unit=pl.lit("events per chunk"),
        base=1 / pl.col("rate_base").first(),
        new=1 / pl.col("rate_new").first(),
        amount=pl.col("mean_amount").first(),
        core_seconds=(pl.col("mean_amount") * pl.col("of_size")).sum(),
        is_assumed=(pl.col("is_assumed") & (pl.col("of_size") != 0)).any(),
    )
    by_part = rows.select(
        *_PART,
        term=pl.lit("cost"),
        unit="seconds per " + pl.col("unit"),
        base="level_base",
        new="level_new",
        amount="mean_amount",
        core_seconds=pl.col("mean_amount") * pl.col("of_cost"),
    )
    return pl.concat([amounts, sizes, by_part], how="diagonal_relaxed")


def _paired_costs(base: RunAmounts, new: RunAmounts) -> pl.DataFrame:
    """Return the costs of each part in both runs, with their amounts: events, or else tasks.

    Details and branches of a part are added up where only one of the runs contains them.
    """
    costs = pl.concat(
        run.costs.with_columns(run=pl.lit(name))
        for name, run in zip(_RUNS, (base, new), strict=True)
    )
    is_divided = pl.col("is_divided")
    for depth in (3, 4):
        whole, divisions = _PART[:depth], _PART[depth:]
        differs = is_divided.any().over(whole) & ~is_divided.all().over(whole)
        costs = (
            costs.with_columns(
                is_divided=pl.col(divisions[0]).is_not_null().any().over("run", *whole)
            )
            .with_columns(pl.when(~differs).then(pl.col(divisions)).name.keep())
            .group_by("run", *_PART, maintain_order=True)
            .agg(
                pl.col("seconds").sum(),
                # Unknown if it is unknown for any of the parts.
                pl.when(pl.col("fixed_seconds").is_not_null().all())
                .then(pl.col("fixed_seconds").sum())
                .alias("fixed_seconds"),
            )
        )
    each = (costs.filter(run=name).drop("run") for name in _RUNS)
    amounts = (
        run.costs.select(_GROUP)
        .unique()
        .join(run.work, on=_GROUP, how="left", nulls_equal=True)
        # Anything that costs time counts as at least one task.
        .with_columns(pl.col("tasks").fill_null(1).clip(1))
        for run in (base, new)
    )
    paired_amounts = (
        _paired(*amounts, keys=_GROUP)
        .with_columns(
            pl.col("tasks_base", "tasks_new", "events_base", "events_new").fill_null(0)
        )
        .with_columns(
            by_event=pl.all_horizontal(
                (pl.col(f"events_{run}") > 0) | (pl.col(f"tasks_{run}") == 0) for run in _RUNS
            )
        )
        .with_columns(
            pl.when("by_event")
            .then(f"events_{run}")
            .otherwise(f"tasks_{run}")
            .cast(pl.Float64)
            .alias(f"amount_{run}")
            for run in _RUNS
        )
    )
    return (
        _paired(*each, keys=_PART)
        # A part that a run does not contain costs nothing there, and nothing per chunk.
        .with_columns(
            pl.when(pl.col(f"seconds_{run}").is_null())
            .then(0.0)
            .otherwise(f"{column}_{run}")
            .alias(f"{column}_{run}")
            for column in ("fixed_seconds", "seconds")
            for run in _RUNS
        )
        .join(paired_amounts, on=_GROUP, how="left", nulls_equal=True)
    )


def _by_part(terms: pl.DataFrame) -> pl.DataFrame:
    """Sum terms over datasets, details and branches."""
    term, amount = pl.col("term").first(), pl.col("amount")
    # Each dataset counts once for each of its parts, since a part can lack details.
    counted = terms.with_columns(
        of_dataset=pl.col("amount") / pl.len().over("term", "prefix", "dataset", "part")
    )

    def factor(run: str) -> pl.Expr:
        value = pl.col(run)
        return (
            pl.when(term == "cost")
            .then((amount * value).sum() / pl.col("of_dataset").sum())
            .when(term == "chunk size")
            .then(amount.sum() / (amount / value).sum())
            .otherwise(value.sum())
            .alias(run)
        )

    return (
        counted.group_by(_SUMMARY)
        .agg(
            pl.when(pl.col("unit").n_unique() == 1).then(pl.col("unit").first()).alias("unit"),
            *(factor(run) for run in _RUNS),
            pl.when(amount.is_not_null().any())
            .then(pl.col("of_dataset").sum())
            .alias("amount"),
            pl.col("core_seconds", "wall_seconds").sum(),
            pl.col("is_assumed").any(),
        )
        .sort(pl.col("wall_seconds").abs(), *_SUMMARY, descending=[True, *[False] * 3])
    )


def _with_noise_within(terms: pl.DataFrame, base: RunAmounts, new: RunAmounts) -> pl.DataFrame:
    """Add the noise that is estimated from the variation within two runs, and is_known."""
    per_core = (1 / base.threads + 1 / new.threads) / 2
    fewest_tasks = pl.min_horizontal("tasks_base", "tasks_new")
    errors = (
        _paired(base.computing, new.computing, keys=_GROUP)
        # A prefix that only one run contains has no difference in cost.
        .filter(pl.col("tasks_base") > 0, pl.col("tasks_new") > 0)
        .with_columns(
            is_known=(fewest_tasks >= FEWEST_TASKS)
            & pl.col("relative_error_base").is_not_null()
            & pl.col("relative_error_new").is_not_null(),
            variance=pl.sum_horizontal(
                (
                    pl.col(f"seconds_{run}")
                    * pl.col(f"relative_error_{run}")
                    * _mean("tasks")
                    / pl.col(f"tasks_{run}")
                )
                ** 2
                for run in _RUNS
            ),
        )
        .group_by("prefix")
        .agg(
            error_seconds=pl.col("variance").sum().sqrt() * per_core,
            # Datasets of few tasks do not matter if they need little time.
            is_known=pl.col("seconds_base").filter(~pl.col("is_known")).sum()
            < 0.1 * pl.col("seconds_base").sum(),
        )
        .with_columns(term=pl.lit("cost"), part=pl.lit(COMPUTING))
    )
    # The threads finish a wave of tasks at times that differ by up to one task.
    longest_seconds = max(
        (
            seconds / tasks
            for run in (base, new)
            for tasks, seconds in run.computing.select("tasks", "seconds").iter_rows()
            if tasks >= run.threads
        ),
        default=0.0,
    )
    return terms.join(errors, on=_SUMMARY, how="left", nulls_equal=True).select(
        *terms.columns,
        pl.col("is_known").fill_null(True),
        noise_seconds=pl.when(pl.col("term") == "waiting")
        .then(max(OVERHEAD_FLOOR_SECONDS, longest_seconds))
        .when((pl.col("term") == "cost") & (pl.col("part") != COMPUTING))
        .then(OVERHEAD_FLOOR_SECONDS)
        .otherwise(2 * pl.col("error_seconds").fill_null(0.0)),
    )


def _paired(base: pl.DataFrame, new: pl.DataFrame, *, keys: list[str]) -> pl.DataFrame:
    """Join the rows of two runs; other columns end in ``_base`` and ``_new``."""
    base, new = (
        run.select(*keys, pl.exclude(keys).name.suffix(f"_{name}"))
        for name, run in zip(_RUNS, (base, new), strict=True)
    )
    return base.join(new, on=keys, how="full", coalesce=True, nulls_equal=True)


def _mean(name: str) -> pl.Expr:
    return (pl.col(f"{name}_base") + pl.col(f"{name}_new")) / 2


def _change(name: str) -> pl.Expr:
    return pl.col(f"{name}_new") - pl.col(f"{name}_base")
