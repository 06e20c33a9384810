"""Rules of the findings: the files ``sql/rules/<id>.sql``.

A rule is one query. The comment above it has, in this order, a title, lines that explain the
rule, and these lines::

    -- Records: kind of record without which the rule finds nothing, if there is one
    -- Applies: condition without which the rule finds nothing; of several lines, any
    -- Missing threads: counted, if the cost contains time of threads that were not there
    -- Explains: uses of core_time that its findings account for, if any; measured ones first
    -- Source: where the rule comes from
    -- Documentation: address of a page about the subject
    -- $name = value: meaning of a threshold

The query uses its thresholds as ``$name``. It returns a row per finding with the columns of
:data:`COLUMNS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

#: Columns of a rule: see view ``findings``.
COLUMNS: Final = (
    "entity",
    "confidence",
    "sentence",
    "core_seconds",
    "wall_seconds_min",
    "wall_seconds_max",
    "change",
    "evidence",
    "trace_id",
)

#: Rules whose cost is only partly known if their confidence is not high.
PARTLY_KNOWN: Final = ("chunks-too-small",)

_LABELLED: Final = re.compile(
    r"-- (Records|Applies|Missing threads|Explains|Source|Documentation): (.+)"
)
_THRESHOLD: Final = re.compile(r"-- \$(\w+) = ([\d.e+-]+): (.+)")


@dataclass(frozen=True)
class Threshold:
    """A number that a rule compares with."""

    name: str
    value: float
    meaning: str


@dataclass(frozen=True)
class Rule:
    """A rule; `id` is the name of its file."""

    id: str
    title: str
    records: str | None
    #: Uses of view ``core_time`` that its findings account for: those in which the cost was
    #: measured, then those that follow from it, such as idle threads.
    explains: tuple[str, ...]
    source: str
    documentation: str
    thresholds: tuple[Threshold, ...]
    sql: str
    #: Whether the cost contains time of threads that were missing, which is no core time.
    counts_missing_threads: bool = False
    #: Conditions in SQL, cheaper than the query, which has rows only if any of them is true;
    #: without one it may always have rows.
    conditions: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, float]:
        """Values of the thresholds by name."""
        return {threshold.name: threshold.value for threshold in self.thresholds}


def is_cost_bound(rule_id: str, confidence: str) -> bool:
    """Return whether the cost of a finding is a lower bound of the thread time it took."""
    return rule_id in PARTLY_KNOWN and confidence != "high"


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of their names."""
    folder = files("roast_analyze").joinpath("sql", "rules")
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return tuple(
        _parse(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in sorted(found, key=lambda file: file.name)
    )


def _parse(name: str, sql: str) -> Rule:
    lines = _LABELLED.findall(sql)
    labelled = dict(lines)
    return Rule(
        id=name,
        title=sql.partition("\n")[0].removeprefix("-- ").rstrip("."),
        records=labelled.get("Records"),
        explains=tuple(labelled["Explains"].split(", ")) if "Explains" in labelled else (),
        source=labelled["Source"],
        documentation=labelled["Documentation"],
        thresholds=tuple(
            Threshold(threshold, float(value), meaning)
            for threshold, value, meaning in _THRESHOLD.findall(sql)
        ),
        sql=sql.rstrip().removesuffix(";"),
        counts_missing_threads="Missing threads" in labelled,
        conditions=tuple(text for label, text in lines if label == "Applies"),
    )
