"""HTML representation of a trace in a notebook: runs, losses, views and next steps.

The page belongs to the notebook: all text is escaped, and there are no styles.
"""

from __future__ import annotations

import re
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import TraceError
from roast_analyze.report import time_ranges
from roast_analyze.report.quantities import count, counted, instant, seconds
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roast_analyze.open.session import Session

#: Number of losses shown; the view ``loss`` has the others.
_LOSSES: Final = 5

_NEXT_STEPS: Final = (
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
    try:
        parts = [
            *(
                _text(
                    f"Only {time_ranges.describe(part)}. {time_ranges.describe_omissions(part)}"
                )
                for part in trace.time_ranges
            ),
            *_runs(trace),
            _losses(trace),
            _views(trace),
            "Next: " + ", ".join(f"<code>{escape(step)}</code>" for step in _NEXT_STEPS),
        ]
    except (TraceError, duckdb.Error) as error:
        parts = [_text(error)]
    title = f"<b>{_text(trace.path.name or trace.path)}</b>"
    return "".join(f"<p>{part}</p>" for part in [title, *parts])


def _runs(trace: Session) -> Iterator[str]:
    for start_t, offset, wall, workers, tasks, attempts, failures in trace.sql(
        _RUNS
    ).fetchall():
        yield _text(
            f"{seconds(wall)} from {instant(start_t, offset)}: {counted(workers, 'worker')}, "
            f"{counted(tasks, 'task')}, {counted(attempts, 'attempt')}, "
            f"{counted(failures, 'failure')}"
        )


def _losses(trace: Session) -> str:
    losses = trace.sql("SELECT reason, records, detail FROM loss").fetchall()
    if not losses:
        return "Nothing is lost."
    shown = [
        f"<li>{_text(reason)} ({_text(count(records))}): {_text(detail)}</li>"
        for reason, records, detail in losses[:_LOSSES]
    ]
    rest = len(losses) - len(shown)
    more = f"<li>and {count(rest)} more in the view <code>loss</code></li>" if rest else ""
    return f"Incomplete (reason, records, detail):<ul>{''.join(shown)}{more}</ul>"


def _views(trace: Session) -> str:
    topics = [
        f"<li>{_text(topic)}: "
        + ", ".join(
            f'<code title="{_first_clause(view.comment)}">{_text(view.name)}</code>'
            for view in views
        )
        + "</li>"
        for topic, views in groupby(trace.views(), key=lambda view: view.topic)
    ]
    return f"Views, by topic:<ul>{''.join(topics)}</ul>"


def _text(value: object) -> str:
    return escape(shortened(" ".join(visible(str(value)).split(" ")), 200))


def _first_clause(comment: str) -> str:
    return escape(visible(re.split(r"[.:;](?=\s|$)", comment, maxsplit=1)[0]))
