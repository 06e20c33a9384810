"""HTML representation of a trace in a notebook: runs, findings, losses and views.

The page belongs to the notebook: all text is escaped, and there are no styles.
"""

from __future__ import annotations

import re
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import TraceError
from roast_analyze.report import findings, time_ranges
from roast_analyze.report.quantities import count, counted, instant, seconds
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Number of losses shown; the view ``loss`` has the others.
_LOSSES: Final = 5

_NEXT_STEPS: Final = (
    "trace.findings()",
    "trace.frame('task_runs')",
    "trace.sql('SELECT …').pl()",
    "trace.report('run.html')",
)

_RUNS: Final = """
SELECT
    run.start_t,
    any_value(utc_offset_seconds),
    wall_seconds,
    workers,
    tasks,
    task_runs,
    failures
FROM run
LEFT JOIN trace_info USING (trace_id)
GROUP BY ALL
ORDER BY run.start_t
"""


def to_html(trace: Session) -> str:
    """Return the HTML representation of a trace."""
    parts = [f"<b>{_text(trace.path.name or trace.path)}</b>"]
    try:
        parts += [
            _text(f"Only {time_ranges.describe(part)}. {time_ranges.describe_omissions(part)}")
            for part in trace.time_ranges
        ]
        for start_t, offset, wall, workers, tasks, attempts, failures in trace.sql(
            _RUNS
        ).fetchall():
            totals = (
                counted(workers, "worker"),
                counted(tasks, "task"),
                counted(attempts, "attempt"),
                counted(failures, "failure"),
            )
            parts.append(
                _text(f"{seconds(wall)} from {instant(start_t, offset)}: {', '.join(totals)}")
            )
        parts.append(_findings(trace))
        lines = []
        for topic, views in groupby(trace.views(), key=lambda view: view.topic):
            names = []
            for view in views:
                first_clause = re.split(r"[.:;](?=\s|$)", view.comment, maxsplit=1)[0]
                title = escape(visible(first_clause))
                names.append(f'<code title="{title}">{_text(view.name)}</code>')
            lines.append(f"{_text(topic)}: {', '.join(names)}")
        parts += _losses(trace), f"Views, by topic:{_list(lines)}"
        parts.append(
            "Next: " + ", ".join(f"<code>{escape(step)}</code>" for step in _NEXT_STEPS)
        )
    except (TraceError, duckdb.Error) as error:
        parts = [parts[0], _text(error)]
    return "".join(f"<p>{part}</p>" for part in parts)


def _findings(trace: Session) -> str:
    found = findings.query(trace, findings.SHOWN)
    if not found:
        return _text(findings.NONE)
    lines = [
        f"<b>{_text(finding.title)}</b> {_text(finding.entity)}: {_text(finding.sentence)} "
        f"{_text(finding.change)}"
        for finding in found
    ]
    return f"Findings:{_list(lines)}"


def _losses(trace: Session) -> str:
    losses = trace.sql("SELECT reason, records, detail FROM loss").fetchall()
    if not losses:
        return "Nothing is lost."
    lines = [
        f"{_text(reason)} ({_text(count(records))}): {_text(detail)}"
        for reason, records, detail in losses[:_LOSSES]
    ]
    if len(losses) > _LOSSES:
        lines.append(f"and {count(len(losses) - _LOSSES)} more in the view <code>loss</code>")
    return f"Incomplete (reason, records, detail):{_list(lines)}"


def _list(lines: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def _text(value: object) -> str:
    return escape(shortened(visible(str(value)), 200))
