"""Comparison of metrics of new runs with those of base runs, and rules for a regression.

A rule with a change, such as ``wall_seconds > +10%``, compares the means of both. With three
runs or more, the change must also lie outside of the 95 % prediction interval: if the new runs
are runs like the bases, their mean is expected between ``base - reach`` and ``base + reach``,
where ``reach = t * s * sqrt(1 / bases + 1 / news)``, s is the pooled standard
deviation of the runs, and t is Student's for ``bases + news - 2`` degrees of freedom.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from roast_analyze.algorithms.student import student
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_RULE: Final = re.compile(
    r"\s*(?P<metric>\w+)\s*(?P<side>[<>])\s*(?P<sign>[+-]?)"
    r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<percent>%?)\s*"
)


@dataclass(frozen=True)
class Change:
    """A metric of base runs and of new runs."""

    metric: str
    base: float  # mean
    new: float  # mean
    #: Half the width of the prediction interval around the base; None with two runs.
    reach: float | None

    @property
    def change(self) -> float:
        """Difference of the means."""
        return self.new - self.base

    @property
    def relative_change(self) -> float:
        """Change as a share of the base; infinite if that is 0."""
        if self.change == 0:
            return 0.0
        return (
            self.change / abs(self.base) if self.base else math.copysign(math.inf, self.change)
        )

    @property
    def is_expected(self) -> bool | None:
        """True if the change lies within the prediction interval; None if there is none."""
        return None if self.reach is None else abs(self.change) <= self.reach


@dataclass(frozen=True)
class Rule:
    """A condition under which the new runs fail."""

    text: str
    metric: str
    is_upper: bool  # whether larger values fail, else smaller ones
    limit: float
    is_relative: bool  # whether the limit is a share of the base
    is_change: bool  # whether the limit is a change, else a value

    def fails(self, change: Change) -> bool:
        """Return whether a change of its metric is a regression."""
        if not self.is_change:
            value = change.new
        else:
            value = change.relative_change if self.is_relative else change.change
        exceeds = value > self.limit if self.is_upper else value < self.limit
        return exceeds and not (self.is_change and change.is_expected)


def parse_rule(text: str, metrics: Iterable[str]) -> Rule:
    """Parse a rule, such as ``wall_seconds > +10%`` or ``failures > 0``.

    A signed number is a change from the base, any other the value of the new runs.
    """
    match = _RULE.fullmatch(text)
    if match is None or (match["percent"] and not match["sign"]):
        raise TraceError(
            f"invalid rule {text!r}: use 'wall_seconds > +10%', 'events_per_second < -5%', "
            "'failures > +1' or 'failures > 0'"
        )
    if match["metric"] not in (known := list(metrics)):
        raise TraceError(f"unknown metric {match['metric']!r}: use one of {', '.join(known)}")
    number = float(match["sign"] + match["number"])
    return Rule(
        text=text.strip(),
        metric=match["metric"],
        is_upper=match["side"] == ">",
        limit=number / 100 if match["percent"] else number,
        is_relative=bool(match["percent"]),
        is_change=bool(match["sign"]),
    )


def compare(metric: str, base: Sequence[float], new: Sequence[float]) -> Change:
    """Compare the values of a metric in base runs and new runs."""
    means = fmean(base), fmean(new)
    freedom = len(base) + len(new) - 2
    reach = None
    if freedom:
        squares = sum(
            (value - mean) ** 2
            for values, mean in zip((base, new), means, strict=True)
            for value in values
        )
        deviation = math.sqrt(squares / freedom)
        reach = student(freedom) * deviation * math.sqrt(1 / len(base) + 1 / len(new))
    return Change(metric, *means, reach)
