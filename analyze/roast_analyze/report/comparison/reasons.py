"""Reasons for the difference between runs: terms that add up to it, in sentences and rows.

The numbers come from :mod:`roast_analyze.algorithms.decomposition`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.algorithms.decomposition import (
    COMPUTING,
    mean_terms,
    path_changes,
    summarize,
    with_chunks_named_as_in,
)
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.algorithms.decomposition import RunAmounts

Row = dict[str, Any]

#: Terms of less than this share of the wall time are one row.
SMALLEST_SHARE: Final = 0.005
#: A detail is named if it is at least this share of its term.
_MAIN_SHARE: Final = 0.6

_PARTS: Final = {
    "deserialize": "deserializing",
    "disk": "spilling to disk and reading back",
    "transfer": "fetching inputs",
    "dispatch": "dispatch",
    "recomputed result": "recomputation",
}
_USES: Final = {
    "scheduler": "for the scheduler to send a task that was ready",
    "imbalance": "while ready tasks were on other workers",
    "dependencies": "for dependencies of the tasks that were left",
    "tail": "because fewer tasks were left than threads",
    "before first graph": "for the first graph",
    "between graphs": "for the client between graphs",
    "after last result": "after the last result",
    "joining worker": "for the first task after their worker had joined",
    "leaving worker": "while their worker was leaving",
    "paused worker": "while their worker was paused",
    "actor method": "while a method of an actor computed on their worker",
    "seceded task": "while a task of their worker that had seceded computed or waited",
    "silent worker": "on a worker that was silent",
}
#: Why the term of a chunk size can differ from the cost of a finding of one of the runs.
_ASSUMPTION: Final = (
    "This assumes that nothing else changed the time of an event. Each run by itself, with "
    "chunks of one size, shows only the fixed time outside of the processor, which is a part "
    "of this."
)
#: Row of the terms that are small: one, or several.
_SMALLER: Final = ("smaller term", "smaller terms")
_VERDICTS: Final = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True)
class Reasons:
    """Why a run took longer or less time than others."""

    #: Labels of the bases and of the new run.
    bases: tuple[str, ...]
    new: str
    #: Wall times and core times, in the same order.
    base_wall_seconds: tuple[float, ...]
    new_wall_seconds: float
    core_seconds: float
    #: Terms by prefix and part, and by dataset, detail and branch.
    terms: pl.DataFrame
    details: pl.DataFrame
    #: Critical path by cause and prefix.
    path: pl.DataFrame

    @classmethod
    def of(
        cls, bases: Sequence[tuple[str, RunAmounts]], new: tuple[str, RunAmounts]
    ) -> Reasons:
        """Compare a new run with one or more bases, all with their labels."""
        label, amounts = new
        runs = [with_chunks_named_as_in(amounts, run) for _, run in bases]
        mean_core_seconds = sum(run.core_seconds for run in runs) / len(runs)
        return cls(
            bases=tuple(name for name, _ in bases),
            new=label,
            base_wall_seconds=tuple(run.wall_seconds for run in runs),
            new_wall_seconds=amounts.wall_seconds,
            core_seconds=amounts.core_seconds - mean_core_seconds,
            terms=summarize(runs, amounts),
            details=mean_terms(runs, amounts),
            path=path_changes(runs, amounts),
        )

    @property
    def wall_seconds(self) -> float:
        """Difference in wall time to the mean of the bases."""
        return self.new_wall_seconds - sum(self.base_wall_seconds) / len(self.base_wall_seconds)

    @property
    def smallest_seconds(self) -> float:
        """Wall time of a term below which it is small."""
        return SMALLEST_SHARE * min(self.new_wall_seconds, *self.base_wall_seconds)

    @property
    def shown(self) -> pl.DataFrame:
        """Terms that are significant or not small; :attr:`rest` has the others."""
        return self.terms.filter(self._is_shown)

    @property
    def rest(self) -> pl.DataFrame:
        """Terms that are small."""
        return self.terms.filter(~self._is_shown)

    @property
    def _is_shown(self) -> pl.Expr:
        is_large = pl.col("wall_seconds").abs() >= self.smallest_seconds
        return pl.col("significant").fill_null(True) | is_large


def overview(reasons: Reasons) -> str:
    """State the difference in wall time and core time."""
    base_seconds = reasons.new_wall_seconds - reasons.wall_seconds
    if len(reasons.bases) == 1:
        base = f"{one_line(reasons.bases[0], 60)} ({q.seconds(base_seconds)})"
    else:
        low, high = min(reasons.base_wall_seconds), max(reasons.base_wall_seconds)
        base = (
            f"the mean of {q.count(len(reasons.bases))} bases ({q.seconds(base_seconds)}; "
            f"{q.seconds(low)} to {q.seconds(high)})"
        )
    return (
        f"{one_line(reasons.new, 60)} took {q.seconds(reasons.new_wall_seconds)}, "
        f"{signed(reasons.wall_seconds)} compared with {base}; "
        f"{signed(reasons.core_seconds)} of core time."
    )


def sentences(reasons: Reasons, limit: int | None = None) -> list[str]:
    """Return one sentence per significant term, and what cannot be determined."""
    rows = reasons.terms.rows(named=True)
    found = [row for row in rows if row["significant"]]
    unclear = [row for row in rows if row["significant"] is None]
    text = [_sentence(row, reasons) for row in found[:limit]]
    if limit is not None and len(found) > limit:
        more = q.counted(len(found) - limit, "more term is", "more terms are")
        text.append(f"{more} significant.")
    if not found:
        text.append("No difference is significant.")
    text += [
        f"{_sentence(row, reasons)} With so few tasks, one base does not show whether this is "
        "noise: compare with several bases."
        for row in unclear[:limit]
    ]
    return text


def noise(reasons: Reasons) -> str:
    """State what is regarded as noise."""
    if len(reasons.bases) > 1:
        return "Noise is estimated from the differences between the bases" + (
            " and is wide with only two of them." if len(reasons.bases) == 2 else "."
        )
    return (
        "With one base, noise is estimated from the variation within the runs, and is at least "
        "5 % of the wall time. Several bases show what differs from run to run."
    )


def label(row: Row) -> str:
    """Return the name of a term."""
    prefix = _prefix(row)
    match row["term"]:
        case "threads":
            return "number of threads"
        case "amount":
            return f"{prefix}: number of {row['unit'] or 'results'}"
        case "chunk size":
            return f"{prefix}: chunk size{' (assumed)' if row['is_assumed'] else ''}"
        case "cost":
            unit = (row["unit"] or "seconds per result").removeprefix("seconds ")
            part = "compute time" if row["part"] == COMPUTING else _part(row)
            return f"{prefix}: {part} {unit}"
    return f"waiting: {row['part']}"


def value(row: Row, run: str) -> str:
    """Return the factor of a term in a run, ``base`` or ``new``, with its unit."""
    number = row[run]
    if number is None:
        return q.UNKNOWN
    if row["term"] in ("cost", "waiting"):
        return q.seconds(number)
    # Means over several bases need not be integers.
    is_whole = abs(number - round(number)) < 1e-6
    return q.count(number) if is_whole else q.number(number)


def frame(reasons: Reasons) -> pl.DataFrame:
    """Return the rows of a table of the terms: small terms are one row, the sum is the last."""
    names = ("wall_seconds", "core_seconds", "noise_seconds")
    rows = [
        (
            label(row),
            value(row, "base"),
            value(row, "new"),
            *(row[name] for name in names),
            _VERDICTS[row["significant"]],
        )
        for row in reasons.shown.rows(named=True)
    ]
    rest = reasons.rest
    if not rest.is_empty():
        sums = rest["wall_seconds"].sum(), rest["core_seconds"].sum()
        rows.append((q.counted(rest.height, *_SMALLER), "", "", *sums, None, "no"))
    rows.append(("difference", "", "", reasons.wall_seconds, reasons.core_seconds, None, ""))
    text, number = pl.String, pl.Float64
    schema = {"name": text, "base": text, "new": text, **dict.fromkeys(names, number)}
    return pl.DataFrame(rows, schema | {"significant": text}, orient="row")


def term_rows(reasons: Reasons) -> list[tuple[str, ...]]:
    """Return the rows of :func:`frame` as texts."""
    return [
        (name, base, new, *map(signed, changes), q.seconds(noise), significant)
        for name, base, new, *changes, noise, significant in frame(reasons).rows()
    ]


def path_frame(reasons: Reasons) -> pl.DataFrame:
    """Return the rows of a table of the critical path, as those of :func:`frame`."""
    is_large = pl.col("wall_seconds").abs() >= reasons.smallest_seconds
    numbers = ("base", "new", "wall_seconds")
    rows = [
        (row["cause"] if row["prefix"] is None else f"{row['cause']}: {_prefix(row)}",
         *(row[name] for name in numbers))
        for row in reasons.path.filter(is_large).rows(named=True)
    ]  # fmt: skip
    rest = reasons.path.filter(~is_large)
    if not rest.is_empty():
        rows.append((q.counted(rest.height, "smaller step", "smaller steps"),
                     *(rest[name].sum() for name in numbers)))  # fmt: skip
    rows.append(("difference", *(reasons.path[name].sum() for name in numbers)))
    schema = {"step": pl.String, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row")


def side_by_side(each: Sequence[Reasons]) -> pl.DataFrame:
    """Return the wall seconds of the terms of several runs, one column for each of them."""
    columns = [f"{one.new} wall_seconds" for one in each]
    rows: dict[str, dict[str, float]] = {}
    for column, one in zip(columns, each, strict=True):
        for name, seconds in frame(one).select("name", "wall_seconds").iter_rows():
            row = rows.setdefault("smaller terms" if name.endswith(_SMALLER) else name, {})
            row[column] = row.get(column, 0.0) + seconds
    last = ("smaller terms", "difference")
    names = sorted(rows, key=lambda name: (name in last, -max(map(abs, rows[name].values()))))
    return pl.DataFrame(
        [{"name": name, **rows[name]} for name in names],
        schema={"name": pl.String, **dict.fromkeys(columns, pl.Float64)},
    )


def detail_rows(reasons: Reasons) -> list[tuple[str, ...]]:
    """Return the cells of a table of the details that are not small."""
    is_large = pl.col("wall_seconds").abs() >= reasons.smallest_seconds
    details = reasons.details.filter(is_large)
    return [
        (
            label(row),
            *(
                "" if row[name] is None else row[name]
                for name in ("dataset", "detail", "branch")
            ),
            signed(row["wall_seconds"]),
            signed(row["core_seconds"]),
        )
        for row in details.rows(named=True)
    ]


def signed(seconds: float) -> str:
    """Format a difference in time."""
    return q.seconds(seconds) if seconds < 0 else f"+{q.seconds(seconds)}"


def _sentence(row: Row, reasons: Reasons) -> str:
    of_term = reasons.details.filter(
        *(pl.col(name).eq_missing(pl.lit(row[name])) for name in ("term", "prefix", "part"))
    )
    # The dataset, the detail and the branch that most of the term belongs to.
    named = []
    for column in ("detail", "branch", "dataset"):
        sums = of_term.group_by(column).agg(pl.col("wall_seconds").sum()).drop_nulls(column)
        if of_term[column].n_unique() < 2 or sums.is_empty():
            continue
        name, seconds = sums.sort("wall_seconds", descending=row["wall_seconds"] > 0).row(0)
        if seconds / row["wall_seconds"] >= _MAIN_SHARE:
            noun = "" if column == "detail" else f"{column} "
            named.append(f"{noun}{one_line(name, 60)} {signed(seconds)}")
    mainly = f" ({', '.join(named)})" if named else ""
    text = f"{_clause(row, reasons)}: {signed(row['wall_seconds'])} of wall time{mainly}."
    return f"{text} {_ASSUMPTION}" if row["is_assumed"] else text


def _clause(row: Row, reasons: Reasons) -> str:
    base, new = value(row, "base"), value(row, "new")
    prefix = "Chunks" if row["prefix"] is None else _prefix(row)
    match row["term"]:
        case "threads":
            return f"{new} {'thread' if new == '1' else 'threads'} on average instead of {base}"
        case "amount":
            unit = row["unit"] or "results"
            if not row["base"]:
                return f"{prefix} ran only in {one_line(reasons.new, 60)}, with {new} {unit}"
            if not row["new"]:
                named = reasons.bases[0] if len(reasons.bases) == 1 else "the bases"
                return f"{prefix} ran only in {one_line(named, 60)}, with {base} {unit}"
            return f"{prefix} had {new} {unit} instead of {base}"
        case "chunk size":
            return f"{prefix} had chunks of {new} events on average instead of {base}"
        case "cost":
            unit = (row["unit"] or "seconds per result").removeprefix("seconds ")
            what = prefix if row["part"] == COMPUTING else f"{prefix}: {_part(row)}"
            longer = row["new"] > row["base"]
            if min(row["base"], row["new"]) <= 0:
                change = "more" if longer else "less"
            elif row["new"] >= 2 * row["base"]:
                change = f"{q.number(row['new'] / row['base'])} times as long"
            else:
                part = f"{abs(100 * (row['new'] / row['base'] - 1)):.3g}\N{NO-BREAK SPACE}%"
                change = f"{part} {'longer' if longer else 'less'}"
            return f"{what} took {change} {unit} ({new} instead of {base})"
    change = "longer" if row["wall_seconds"] > 0 else "less"
    why = _USES.get(row["part"], f"({row['part']})")
    amount = q.seconds(abs(row["wall_seconds"]))
    return f"On average, a thread waited {amount} {change} {why} ({new} instead of {base})"


def _prefix(row: Row) -> str:
    # Without a task, a chunk has no prefix.
    return "chunks" if row["prefix"] is None else one_line(row["prefix"], 60)


def _part(row: Row) -> str:
    return _PARTS.get(row["part"], f"{row['part']}s")
