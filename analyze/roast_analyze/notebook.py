"""What a notebook shows of a trace: what the run was, what is lost, and how to go on.

It goes into a page that is not ours: everything is escaped, and it brings no style along.
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

#: Losses that are shown; the view has the rest.
_LOSSES: Final = 5

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


def page_of(trace: Session) -> str:
    """Give a trace as a piece of HTML."""
    try:
        parts = [*_stretches(trace), *_runs(trace), *_losses(trace), *_views(trace), _further()]
    except (TraceError, duckdb.Error) as error:
        parts = [_text(error)]
    title = f"<b>{_text(trace.path.name or trace.path)}</b>"
    return "".join(f"<p>{part}</p>" for part in [title, *parts])


def _stretches(trace: Session) -> Iterator[str]:
    for excerpt in trace.time_ranges:
        yield _text(
            f"Only {time_ranges.describe(excerpt)}. {time_ranges.describe_omissions(excerpt)}"
        )


def _runs(trace: Session) -> Iterator[str]:
    for start_t, offset, wall, workers, tasks, attempts, failures in trace.sql(
        _RUNS
    ).fetchall():
        yield _text(
            f"{seconds(wall)} from {instant(start_t, offset)}: {counted(workers, 'worker')}, "
            f"{counted(tasks, 'task')}, {counted(attempts, 'attempt')}, "
            f"{counted(failures, 'failure')}"
        )


def _losses(trace: Session) -> Iterator[str]:
    losses = trace.sql("SELECT reason, records, detail FROM loss").fetchall()
    if not losses:
        yield "Nothing is lost."
        return
    shown = [
        f"<li>{_text(reason)} ({_text(count(records))}): {_text(detail)}</li>"
        for reason, records, detail in losses[:_LOSSES]
    ]
    rest = len(losses) - len(shown)
    more = f"<li>and {count(rest)} more in the view <code>loss</code></li>" if rest else ""
    yield f"Not whole (what, records, detail):<ul>{''.join(shown)}{more}</ul>"


def _views(trace: Session) -> Iterator[str]:
    topics = [
        f"<li>{_text(topic)}: "
        + ", ".join(
            f'<code title="{_beginning(view.comment)}">{_text(view.name)}</code>'
            for view in views
        )
        + "</li>"
        for topic, views in groupby(trace.views(), key=lambda view: view.topic)
    ]
    yield f"Views, by topic:<ul>{''.join(topics)}</ul>"


def _further() -> str:
    ways = (
        "trace.frame('task_runs')",
        "trace.sql('SELECT …').pl()",
        "trace.report('run.html')",
    )
    return "To go on: " + ", ".join(f"<code>{escape(way)}</code>" for way in ways)


def _text(value: object) -> str:
    return escape(shortened(" ".join(visible(str(value)).split(" ")), 200))


def _beginning(comment: str) -> str:
    """Give as much of a comment as is read where the pointer rests."""
    return escape(visible(re.split(r"[.:;](?=\s|$)", comment, maxsplit=1)[0]))
