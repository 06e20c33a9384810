"""A digest of a trace in Markdown, of at most 40 lines: for an issue, a chat or an assistant.

It has the facts and sentences of the short summary. All text is escaped: names in a trace can
contain markup.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.summary_tables import (
    LOSSES,
    SHORT_FINDINGS,
    Summary,
    first_rows_title,
    more_findings,
    select,
    written,
)
from roast_analyze.report.quantities import count, counted
from roast_analyze.report.run import query_recording, query_run, query_uses
from roast_analyze.report.topics import verdict
from roast_analyze.safe_text import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from roast_analyze.commands.summary_tables import TableOfRows
    from roast_analyze.open.session import Session

#: Limit of the number of lines.
MOST_LINES: Final = 40

#: Length limit of a line.
_LINE_LIMIT: Final = 1500


def digest(trace: Session, name: str | None = None) -> list[str]:
    """Return the lines of the digest of a trace.

    ``name`` is that of the trace; by default the name of its file.
    """
    summary = select(trace, name)
    run, end_reason = query_run(trace), query_recording(trace).end_reason
    outcome = verdict.describe_outcome(run, query_uses(trace), end_reason)
    lines = [
        f"### {_escaped(summary.name)}",
        "",
        _escaped(f"{verdict.summarize(run)} {outcome}"),
        "",
        "#### Findings",
        "",
        *_findings(summary),
        "",
        "#### Numbers",
        "",
        *_facts(summary),
    ]
    losses = [table for table in summary.tables if table[0] is LOSSES]
    if losses:
        lines += ["", "#### Lost records", ""]
    for definition, _, rows in losses:
        lines += [
            f"- {_escaped(': '.join(filter(None, (_loss(*row[:2]), row[2]))))}"
            for row in rows[: definition.short]
        ]
        if len(rows) > definition.short:
            lines[-1] += f" … and {count(len(rows) - definition.short)} more."
    for definition, columns, rows in summary.tables:
        table = ["", *_table(definition, columns, rows)]
        if definition is not LOSSES and len(lines) + len(table) <= MOST_LINES:
            lines += table
    return lines


def _loss(reason: str, records: int | None) -> str:
    return f"{reason} ({counted(records, 'record')})" if records else reason


def _findings(summary: Summary) -> Iterator[str]:
    for finding in summary.findings[:SHORT_FINDINGS]:
        entity = f" ({finding.entity})" if finding.entity else ""
        saving = f", possible saving: {finding.saving}" if finding.saving else ""
        yield f"- **{_escaped(f'{finding.severity}: {finding.title}{entity}')}**{saving}"
        yield f"  {_escaped(f'{finding.sentence} Change: {finding.change}')}"
        cost = f"Cost: {finding.cost}. " if finding.cost else ""
        about = f"{cost}Confidence: {finding.confidence}. Rule: {finding.id}."
        yield f"  {_escaped(f'{about} Evidence: {finding.evidence}')}"
    if others := more_findings(summary, SHORT_FINDINGS):
        yield f"- {_escaped(others)}"
    if summary.rest:
        yield f"- {_escaped(summary.rest)}"


def _facts(summary: Summary) -> Iterator[str]:
    """Yield a line for each fact, with those that continue it."""
    names: list[str] = []
    for name, _ in summary.facts:
        names.append(name or names[-1])
    parts = zip(names, (text for _, text in summary.facts), strict=True)
    for name, facts in groupby(parts, key=lambda part: part[0]):
        yield f"- {name}: {_escaped('. '.join(text.rstrip('.') for _, text in facts))}"


def _table(
    definition: TableOfRows, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> list[str]:
    headings, cells = written(definition, names, rows[: definition.short])
    return [
        f"**{first_rows_title(definition, rows)}**",
        "",
        f"| {' | '.join(heading.removeprefix('>') for heading in headings)} |",
        f"|{'|'.join(' ---: ' if it.startswith('>') else ' --- ' for it in headings)}|",
        *(f"| {' | '.join(map(_escaped, row))} |" for row in cells),
    ]


def _escaped(text: str) -> str:
    return markdown(text, _LINE_LIMIT)
