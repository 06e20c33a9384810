"""Stacked bars of seconds by activity: by prefix and by worker.

Frames have the columns context, activity and seconds. An activity outside of tasks is drawn
with its context, such as network (gather-dep), and hatched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.bars import Part, stacked
from roast_analyze.figures.labels import label
from roast_analyze.report import quantities as q

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plotly.graph_objects import Figure

#: Maximum number of bars by prefix or worker.
BAR_LIMIT: Final = 20
#: Activities of failed and cancelled tasks, which have the color of failures.
_FAILED: Final = ("failed", "cancelled")
#: Maximum number of activities with a part of their own, in tasks and outside of them.
TASK_LIMIT: Final = 6
OTHER_LIMIT: Final = 4
#: Smaller shares are not drawn: they would only lengthen the legend.
LEAST_SHARE: Final = 0.001


@dataclass(frozen=True)
class Kind:
    """A part of the bars: one activity, or all activities of the least time."""

    words: str
    color: str
    pattern: str = ""


#: Context and activity to the part of the bars.
Kinds = dict[tuple[str | None, str | None], Kind]


def rank(spent: pl.DataFrame) -> Kinds:
    """Assign the activities their parts, those of the most time first."""
    ranked = (
        spent.group_by("context", "activity")
        .agg(pl.col("seconds").sum())
        .sort("seconds", "context", "activity", descending=[True, False, False])
        .select("context", "activity")
        .rows()
    )
    failed = [pair for pair in ranked if pair[1] in _FAILED]
    in_tasks = [pair for pair in ranked if pair[0] == "execute" and pair not in failed]
    outside = [pair for pair in ranked if pair[0] != "execute" and pair not in failed]
    named = [*in_tasks[:TASK_LIMIT], *outside[:OTHER_LIMIT]]
    rest = [*in_tasks[TASK_LIMIT:], *outside[OTHER_LIMIT:]]
    others = Kind(f"{len(rest)} other activities", palette.OTHER)
    return {
        **{p: _kind(p, color) for p, color in zip(named, palette.RANKED, strict=False)},
        **{p: others if len(rest) > 1 else _kind(p, palette.OTHER) for p in rest},
        **{p: _kind(p, palette.FAILURE) for p in failed},
    }


def _kind(pair: tuple[str | None, str | None], color: str) -> Kind:
    context, activity = pair
    name = label(activity, 40) or "(unknown)"
    if context == "execute":
        return Kind(name, color)
    return Kind(f"{name} ({label(context, 40) or 'unknown'})", color, "/")


def by_name(
    spent: pl.DataFrame, column: str, kinds: Kinds, worker_names: Mapping[str, str]
) -> Figure:
    """Draw a bar for each prefix or worker, the longest on top.

    Prefixes beyond :data:`BAR_LIMIT` share a bar. Of further workers the mean is drawn: their
    sum would dwarf the bars of single ones.
    """
    ranked = (
        spent.group_by(column)
        .agg(pl.col("seconds").sum())
        .sort("seconds", column, descending=[True, False])[column]
    )
    shown = ranked.head(BAR_LIMIT).to_list()
    names = worker_names if column == "worker" else {}
    words = [label(names.get(name, name), 40) or f"(no {column})" for name in shown]
    others, weight = len(ranked) - len(shown), 1.0
    if others and column == "worker":
        words.append(f"mean of {q.counted(others, 'other')}")
        weight = 1 / others
    elif others:
        words.append(q.counted(others, "other prefix", "other prefixes"))
    parts = []
    for kind, some in _by_kind(spent, kinds).items():
        seconds = dict(some.group_by(column).agg(pl.col("seconds").sum()).iter_rows())
        values = [seconds.pop(name, 0.0) for name in shown]
        values += [weight * sum(seconds.values())] if others else []
        parts.append(Part(kind.words, values, kind.color, kind.pattern))
    least = LEAST_SHARE * float(spent["seconds"].sum())
    parts = [part for part in parts if sum(part.seconds) >= least]
    title = "time (s)" if column == "worker" else "time of tasks (s)"
    return stacked(words, parts, title, 110 + 26 * max(len(words), 2), column=column)


def _by_kind(spent: pl.DataFrame, kinds: Kinds) -> dict[Kind, pl.DataFrame]:
    """Split rows by the part of the bars, in the order of the parts."""
    parts = list(dict.fromkeys(kinds.values()))
    numbers = pl.DataFrame(
        [(*pair, parts.index(kind)) for pair, kind in kinds.items()],
        schema={"context": pl.String, "activity": pl.String, "part": pl.Int64},
        orient="row",
    )
    numbered = spent.join(numbers, on=["context", "activity"], nulls_equal=True)
    split = numbered.sort("part").partition_by("part", as_dict=True, maintain_order=True)
    return {parts[number]: rows for (number,), rows in split.items()}
