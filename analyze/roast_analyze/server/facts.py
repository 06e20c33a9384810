"""Facts of a run in the list, once the run was read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.report import findings, unexplained
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.open.session import Session

_QUERY: Final = """
SELECT
    label, program, user_name, start_t, wall_seconds, tasks, failures, workers, clean_end,
    datasets, (SELECT max_by(end_reason, segment) FROM trace_info) AS end_reason
FROM {runs}
"""

#: Length limits of a sentence, and of the names of all datasets together.
_SENTENCE: Final = 600
_DATASETS: Final = 2_000


@dataclass(frozen=True)
class Facts:
    """Columns of the table ``runs`` of a store, and the finding with the largest saving."""

    label: str | None = None
    program: str | None = None
    user_name: str | None = None
    start_t: float | None = None
    wall_seconds: float | None = None
    tasks: int | None = None
    failures: int | None = None
    workers: int | None = None
    clean_end: bool = False
    #: Why the recording ended; None without a trailer.
    end_reason: str | None = None
    datasets: str = ""
    #: Title of the finding and what it concerns; None if it is not known, empty without one.
    finding: str | None = None
    severity: str = ""
    #: The finding in a sentence, or what is not explained.
    sentence: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any], **others: Any) -> Facts:
        """Return the facts in a row of ``runs``."""
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in row.items() if name in names}
        datasets = one_line(", ".join(row.get("datasets") or ()), _DATASETS)
        return cls(**known | {"datasets": datasets} | others)


def query(trace: Session, runs: str) -> Facts:
    """Read the facts of a trace; `runs` is its relation with the columns of ``runs``."""
    rows = trace.sql(_QUERY.format(runs=runs)).to_dicts()
    found = findings.query(trace)
    if found:
        finding = " · ".join(filter(None, (found[0].title, found[0].entity)))
        about = finding, found[0].severity, found[0].sentence
    else:
        rest = unexplained.query(trace, found)
        about = "", "", unexplained.describe(rest, has_findings=False)
    names = "finding", "severity", "sentence"
    texts = (one_line(text, _SENTENCE) for text in about)
    return Facts.of(rows[0] if rows else {}, **dict(zip(names, texts, strict=True)))
