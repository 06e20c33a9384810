"""Findings as text: what was found, what it cost, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roast_analyze.computed.rules import is_cost_bound, rules
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roast_analyze.open.session import Session

    #: Costs of findings by ID and entity.
    Costs = Mapping[tuple[str, str], "Cost"]

#: Number of findings that are shown by default.
SHOWN = 5

_AT_LEAST = "at least "


class Cost(NamedTuple):
    """Thread time that a finding cost; a lower bound if only a part of it is known."""

    seconds: float
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{_AT_LEAST * self.is_bound}{q.seconds(self.seconds)}"


@dataclass(frozen=True)
class Finding:
    """A row of view ``findings``, with its text for readers."""

    id: str
    title: str
    severity: str
    confidence: str
    entity: str
    sentence: str
    change: str
    evidence: str
    documentation: str
    #: Thread time, and its share.
    core_seconds: float | None
    core_share: float | None
    #: Wall time of the run, and what removing the finding could save of it.
    run_seconds: float | None
    wall_share: float | None
    wall_seconds_min: float | None
    wall_seconds_max: float | None

    @property
    def is_bound(self) -> bool:
        """Whether only a lower bound of the saving is known."""
        return self.wall_seconds_max is None and bool(self.wall_seconds_min)

    @property
    def cost(self) -> str:
        """Thread time, and its share."""
        if not self.core_seconds:
            return ""
        amount, unit = q.core_time(self.core_seconds)
        share = f" ({q.share(self.core_share)} of the core time)" if self.core_share else ""
        if any(rule.counts_missing_threads for rule in rules() if rule.id == self.id):
            share = " (also of threads that were missing, which is no core time)"
        at_least = _AT_LEAST * is_cost_bound(self.id, self.confidence)
        return f"{at_least}{amount} {unit}{share}"

    @property
    def saving_note(self) -> str:
        """Reason for which the saving can exceed the cost; empty if it does not."""
        if not self.core_seconds or (self.wall_seconds_max or 0.0) <= self.core_seconds:
            return ""
        return "It can exceed the cost, which excludes waits that follow from the cause."

    @property
    def saving(self) -> str:
        """Wall time that removing it could save; empty for a remark."""
        if self.wall_share is None or not self.run_seconds:
            return ""
        if not self.wall_share:
            return "no wall time"
        saved = q.seconds(self.wall_share * self.run_seconds)
        about = _AT_LEAST if self.is_bound else "about "
        return f"{about}{saved} of {q.seconds(self.run_seconds)} ({q.share(self.wall_share)})"

    @property
    def saving_range(self) -> str:
        """Range of the saving, if it has one."""
        if not self.wall_seconds_max:
            return ""
        least, most = q.seconds(self.wall_seconds_min or 0.0), q.seconds(self.wall_seconds_max)
        return "" if least == most else f"between {least} and {most}"


class Change(NamedTuple):
    """A finding of either of two runs: new, gone, larger, smaller or the same."""

    word: str
    id: str
    entity: str
    #: Thread time that it cost; None if the run does not have it.
    before: Cost | None
    after: Cost | None


def query(trace: Session, limit: int | None = None) -> tuple[Finding, ...]:
    """Return the findings of the first trace, the largest saving first."""
    # Dictionaries instead of a data frame, because Polars is slow to import.
    rows = trace.sql(
        "SELECT id, title, severity, confidence, entity, sentence, change, evidence, "
        "documentation, findings.core_seconds, core_share, run.wall_seconds AS run_seconds, "
        "wall_share, wall_seconds_min, wall_seconds_max "
        "FROM findings INNER JOIN run USING (trace_id) "
        "WHERE trace_id = (SELECT min(trace_id) FROM run) ORDER BY rank"
    ).to_dicts()
    found = []
    # Texts contain names of the trace.
    for row in rows[:limit]:
        texts = {name: visible(row[name] or "") for name in ("entity", "sentence", "change")}
        texts["entity"] = _entity(texts["entity"])
        texts["evidence"] = row["evidence"] or ""
        found.append(Finding(**row | texts))
    return tuple(found)


def query_costs(trace: Session) -> Costs:
    """Return the thread time of each finding of a trace, by its ID and entity."""
    found = trace.rows(
        "SELECT id, entity, core_seconds, confidence FROM findings ORDER BY rank"
    )
    return {
        (name, _entity(visible(entity or ""))): Cost(
            seconds or 0.0, is_cost_bound(name, confidence)
        )
        for name, entity, seconds, confidence in found
    }


def _entity(text: str) -> str:
    # A worker is often a number, which would read as a count.
    names = text.split(", ")
    if not all(map(str.isdecimal, names)):
        return text
    return f"worker{'s' if len(names) > 1 else ''} {text}"


def changes(bases: Sequence[Costs], after: Costs) -> list[Change]:
    """Compare the findings of a run with earlier ones, the largest difference first."""
    # With several earlier runs, the one in which a finding cost most counts.
    before = {
        key: max(base.get(key, Cost(0.0)) for base in bases) for base in bases for key in base
    }
    found = []
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old is None or new is None:
            word = "new" if old is None else "gone"
        else:
            change = new.seconds - old.seconds
            word = "larger" if change > 0 else "smaller" if change < 0 else "same"
        found.append(Change(word, *key, old, new))

    def difference(change: Change) -> float:
        after, before = (
            cost.seconds if cost else 0.0 for cost in (change.after, change.before)
        )
        return abs(after - before)

    return sorted(found, key=difference, reverse=True)
