"""Findings as text: what was found, what it cost, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roast_analyze.computed.rules import rules
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roast_analyze.open.session import Session

    #: Thread time of findings by ID and entity.
    Costs = Mapping[tuple[str, str], float]

#: Number of findings that are shown without being asked for.
SHOWN = 5

#: Text for a run without findings.
NONE = "Nothing was found that could save 1 % of this run."


@dataclass(frozen=True)
class Finding:
    """A row of view ``findings`` as text."""

    id: str
    title: str
    severity: str
    confidence: str
    entity: str
    sentence: str
    #: Thread time, and its share.
    cost: str
    #: Wall time that removing it could save: about, and its range. Empty for a remark.
    saving: str
    saving_range: str
    change: str
    evidence: str
    documentation: str


class Change(NamedTuple):
    """A finding of either of two runs: new, gone, larger or smaller."""

    word: str
    id: str
    entity: str
    #: Thread time that it cost; None if the run does not have it.
    before: float | None
    after: float | None


def query(trace: Session, limit: int | None = None) -> tuple[Finding, ...]:
    """Return the findings of the first trace, the largest saving first."""
    rows = trace.sql(
        "SELECT findings.*, run.wall_seconds FROM findings INNER JOIN run USING (trace_id) "
        "WHERE trace_id = (SELECT min(trace_id) FROM run) ORDER BY rank"
    ).pl()
    titles = {rule.id: rule.title for rule in rules()}
    return tuple(
        Finding(
            id=row["id"],
            title=titles[row["id"]],
            severity=row["severity"],
            confidence=row["confidence"],
            # A worker is often a number, which would read as a count.
            entity=("worker " if (row["entity"] or "").isdecimal() else "")
            + visible(row["entity"] or ""),
            sentence=visible(row["sentence"] or ""),
            cost=_cost(row["core_seconds"], row["core_share"]),
            saving=_saving(row["wall_share"], row["wall_seconds"]),
            saving_range=_range(row["wall_seconds_min"], row["wall_seconds_max"]),
            change=visible(row["change"] or ""),
            evidence=row["evidence"] or "",
            documentation=row["documentation"],
        )
        for row in rows.head(rows.height if limit is None else limit).iter_rows(named=True)
    )


def query_costs(trace: Session) -> Costs:
    """Return the thread time of each finding of a trace, by its ID and entity."""
    found = trace.rows("SELECT id, entity, core_seconds FROM findings ORDER BY rank")
    return {(name, visible(entity or "")): seconds or 0.0 for name, entity, seconds in found}


def changes(bases: Sequence[Costs], after: Costs) -> list[Change]:
    """Compare the findings of a run with earlier ones, the largest difference first."""
    # Of several earlier runs, the one in which a finding cost most.
    before = {key: max(base.get(key, 0.0) for base in bases) for base in bases for key in base}
    found = []
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old is None or new is None:
            word = "new" if old is None else "gone"
        else:
            word = "larger" if new > old else "smaller"
        found.append(Change(word, *key, old, new))
    return sorted(found, key=lambda each: -abs((each.after or 0.0) - (each.before or 0.0)))


def _cost(core_seconds: float | None, share: float | None) -> str:
    if not core_seconds:
        return ""
    amount, unit = q.core_time(core_seconds)
    return f"{amount} {unit}" + (f" ({q.share(share)} of the core time)" if share else "")


def _saving(share: float | None, wall_seconds: float | None) -> str:
    if share is None or not wall_seconds:
        return ""
    if not share:
        return "no wall time"
    saved, whole = q.seconds(share * wall_seconds), q.seconds(wall_seconds)
    return f"about {saved} of {whole} ({q.share(share)})"


def _range(least: float | None, most: float | None) -> str:
    if not most:
        return ""
    ends = [q.seconds(end) for end in (least or 0.0, most)]
    return "" if ends[0] == ends[1] else f"between {ends[0]} and {ends[1]}"
