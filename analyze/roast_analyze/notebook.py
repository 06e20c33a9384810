"""Representations in a notebook: of a trace, its figures, findings, predictions, comparisons.

The page belongs to the notebook: all text is escaped, and there are no styles, so that the
theme of the notebook applies. Nothing is loaded from the network.
"""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import duckdb
import orjson
import polars as pl

from roast_analyze.errors import TraceError
from roast_analyze.report import findings, time_ranges, unexplained
from roast_analyze.report.comparison import reasons
from roast_analyze.report.quantities import count, counted, instant, seconds, share
from roast_analyze.report.run import (
    query_recording,
    query_run,
    query_uses,
)
from roast_analyze.report.topics import verdict
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plotly.graph_objects import Figure

    from roast_analyze.open.session import Session
    from roast_analyze.report.comparison.reasons import Reasons
    from roast_analyze.trace import Trace

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
    heading = ", ".join(path.name or str(path) for path in trace.paths)
    parts = [f"<b>{_text(heading)}</b>"]
    try:
        parts += [
            _text(
                f"Only {time_ranges.describe(part)}. {time_ranges.describe_omissions(part)}",
                limit=600,
            )
            for part in trace.time_ranges
        ]
        runs = trace.rows(_RUNS)
        for start_t, offset, wall, workers, tasks, attempts, failures in runs:
            totals = (
                counted(workers, "worker"),
                counted(tasks, "task"),
                counted(attempts, "attempt"),
                counted(failures, "failure"),
            )
            parts.append(
                _text(f"{seconds(wall)} from {instant(start_t, offset)}: {', '.join(totals)}")
            )
        if len(runs) == 1:
            run = query_run(trace)
            end_reason = query_recording(trace).end_reason
            outcome = verdict.describe_outcome(run, query_uses(trace), end_reason)
            parts.append(_text(f"{verdict.summarize(run)} {outcome}", limit=400))
        parts.append(_findings(trace))
        lines = []
        for topic, views in groupby(trace.views(), key=lambda view: view.topic):
            names = []
            for view in views:
                title = escape(visible(view.summary))
                names.append(f'<code title="{title}">{_text(view.name)}</code>')
            lines.append(f"{_text(topic)}: {', '.join(names)}")
        folded = f"<details><summary>Views, by topic</summary>{_list(lines)}</details>"
        losses = trace.rows("SELECT reason, records, detail FROM loss")
        lost = [
            f"{_text(reason)} ({_text(count(records))}): {_text(detail)}"
            for reason, records, detail in losses[:_LOSSES]
        ]
        if len(losses) > _LOSSES:
            lost.append(
                f"and {count(len(losses) - _LOSSES)} more in the view <code>loss</code>"
            )
        whole = "No loss was detected."
        parts.append(f"Incomplete (reason, records, detail):{_list(lost)}" if lost else whole)
        # Hundreds of names would push everything else out of sight.
        parts.append(folded)
        parts.append(
            "Next: " + ", ".join(f"<code>{escape(step)}</code>" for step in _NEXT_STEPS)
        )
    except (TraceError, duckdb.Error) as error:
        parts = [parts[0], _text(error)]
    return "".join(f"<p>{part}</p>" for part in parts)


class DisplayedFrame(pl.DataFrame):
    """A frame that a notebook displays as text for readers; a part of it, as polars does.

    Parameters
    ----------
    frame : polars.DataFrame
    to_html : callable
        Returns the HTML representation, or raises an error if the trace is closed.
    """

    _to_html: Callable[[], str] | None = None

    def __init__(self, frame: pl.DataFrame, to_html: Callable[[], str]) -> None:
        super().__init__(frame)
        self._to_html = to_html

    def _repr_html_(self, *, _from_series: bool = False) -> str:
        try:
            return self._to_html() if self._to_html else super()._repr_html_()
        except (TraceError, duckdb.Error):
            return super()._repr_html_()


def findings_to_html(trace: Session) -> str:
    """Return the HTML representation of all findings of a trace."""
    return f"<p>{_findings(trace, None)}</p>"


def predictions_to_html(predictions: pl.DataFrame) -> str:
    """Return the HTML representation of the frame of ``Trace.what_if``."""
    formats: dict[str, tuple[str, Callable[[Any], str]]] = {
        "workers": ("workers", count),
        "threads": ("threads per worker", count),
        "chunk_size": ("events per chunk", count),
        "without": ("without", str),
        "wall_seconds": ("wall time", seconds),
        "change": ("change", share),
        "core_seconds": ("core time", seconds),
        "replay_error": ("replay error", share),
        "note": ("note", str),
    }
    known = {
        name: formats[name]
        for name in formats
        if predictions[name].null_count() < len(predictions)
    }
    return _table(
        [heading for heading, _ in known.values()],
        (
            [
                "" if value is None else write(value)
                for value, (_, write) in zip(row, known.values(), strict=True)
            ]
            for row in predictions.select(*known).iter_rows()
        ),
    )


def reasons_to_html(found: Reasons) -> str:
    """Return the HTML representation of why a run took longer or less time than others."""
    sentences = (reasons.overview(found), *reasons.sentences(found), reasons.noise(found))
    headings = ("term", "base", "new", "wall time", "core time", "noise", "significant")
    texts = "".join(f"<p>{_text(sentence, limit=1000)}</p>" for sentence in sentences)
    return texts + _table(headings, reasons.term_rows(found))


def figure_bundle(figure: Figure, text: str) -> dict[str, Any]:
    """Return the representations of a figure: for plotly's own renderer, and as text."""
    # The renderers of JupyterLab and VS Code contain plotly.js; plotly's HTML would embed it.
    return {
        "application/vnd.plotly.v1+json": orjson.loads(figure.to_json()),
        "text/plain": text,
    }


def publish(trace: Trace) -> None:
    """Display a trace and its timeline below the cell that runs."""
    from IPython.display import publish_display_data

    from roast_analyze.figures.picture import bars_to_svg

    publish_display_data({"text/html": to_html(trace), "text/plain": repr(trace)})
    figure = trace.timeline()
    text = f"Timeline of {trace.path}"
    # Pages of nbconvert have no renderer of plotly.
    picture = {"image/svg+xml": bars_to_svg(figure, text)}
    publish_display_data(figure_bundle(figure, text) | picture)


class InlineReport:
    """The report of a trace, which a notebook displays below the cell.

    Parameters
    ----------
    page : str
        The page, which is displayed in a frame of its own.
    """

    def __init__(self, page: str) -> None:
        self.page = page

    def _repr_html_(self) -> str:
        # The frame has no access to the notebook.
        return (
            '<iframe title="report" sandbox="allow-scripts allow-downloads allow-popups" '
            f'width="100%" height="800" style="border: 0" srcdoc="{escape(self.page)}">'
            "</iframe>"
        )

    def __repr__(self) -> str:
        return f"InlineReport of {counted(len(self.page), 'character')}"


def _findings(trace: Session, limit: int | None = findings.SHOWN) -> str:
    found = findings.query(trace)
    rest = unexplained.describe(unexplained.query(trace, found), has_findings=bool(found))
    if not found:
        return _text(rest, limit=1000)
    lines = [
        f"<b>{_text(finding.title)}</b>{_text(f' {finding.entity}'.rstrip())}: "
        f"{_text(finding.sentence, limit=400)} {_text(finding.change, limit=400)}"
        for finding in found[:limit]
    ]
    return f"Findings:{_list(lines)}{_text(rest, limit=1000)}"


def _list(lines: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def line(cells: Iterable[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>"


def _text(value: object, limit: int = 200) -> str:
    return escape(shortened(visible(str(value)), limit))
