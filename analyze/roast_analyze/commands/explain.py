"""Explain where the time of a run went, and what to change.

Without an ID, all findings and the use of the core time are printed. The last argument is the
ID of a finding if a rule has this name and no file does: then the rule, its thresholds and its
evidence are printed. Of several traces, the findings of the last one are compared with those of
the others.

For example:

    roast-analyze explain trace.jsonl
    roast-analyze explain trace.jsonl slow-worker
    roast-analyze explain before.jsonl after.jsonl
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.formats import add_json, print_json, rows
from roast_analyze.commands.trace_args import add_traces_and, open_trace, traces_to_compare
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roast_analyze.open.session import Session
    from roast_analyze.report.findings import Finding

#: Rows of evidence that are printed.
_EVIDENCE_ROWS: Final = 10

#: Uses of the threads, the largest first.
_CORE_TIME: Final = """
SELECT
    category,
    use,
    sum(core_time.seconds) AS seconds,
    sum(core_time.seconds) / sum(sum(core_time.seconds)) OVER () AS share
FROM core_time
GROUP BY category, use
ORDER BY sum(core_time.seconds) DESC
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces_and(parser, "ID", "ID of a finding, such as slow-worker")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the explanation of a run, of one finding, or of the difference of findings."""
    from roast_analyze.commands.terminal import print_out
    from roast_analyze.computed.rules import rules
    from roast_analyze.open.views import suggest

    words = list(options.traces)
    ids = [rule.id for rule in rules()]
    name = words.pop() if words[-1] in ids and not Path(words[-1]).exists() else None
    if not words:
        raise TraceError(f"no trace given for {name!r}: roast-analyze explain TRACE… [ID]")
    # A word without a suffix is meant as an ID rather than as a file.
    if len(words) > 1 and not Path(words[-1]).exists() and "." not in str(words[-1]):
        raise TraceError(f"unknown finding {words[-1]!r}; {suggest(words[-1], ids)}")
    traces = traces_to_compare([Path(word) for word in words])
    if len(traces) > 1 and not name:
        _print_changes(traces, options)
        return
    with open_trace(traces[-1], options) as trace:
        if not options.json:
            print_out(*(_finding(trace, name) if name else _run(trace)))
            return
        found = rows(trace.sql("FROM findings ORDER BY rank"))
        if name is None:
            print_json({"findings": found, "core_time": rows(trace.sql(_CORE_TIME))})
            return
        found = [finding for finding in found if finding["id"] == name]
        for finding in found:
            finding["evidence_rows"] = rows(trace.sql(finding["evidence"]))
        print_json({"findings": found})


def _run(trace: Session) -> Iterator[RenderableType]:
    from roast_analyze.commands.terminal import cell, table
    from roast_analyze.report import findings, unexplained
    from roast_analyze.report.core_time_uses import USES
    from roast_analyze.report.quantities import seconds, share
    from roast_analyze.report.run import describe_without_workers, query_without_workers

    found = findings.query(trace)
    for finding in found:
        yield from finding_lines(finding, detailed=True)
        yield ""
    rest = unexplained.describe(unexplained.query(trace, found), has_findings=bool(found))
    if rest:
        yield cell(rest, limit=1000)
        yield ""
    if spent := trace.rows(_CORE_TIME):
        uses = [
            (name, USES[use].words, seconds(n), share(part)) for name, use, n, part in spent
        ]
        yield table(["category", "use", ">time", ">share"], uses, "Core time")
        if without := describe_without_workers(query_without_workers(trace)):
            yield cell(without, limit=400)
    if found:
        yield ""
        yield cell(
            f"`roast-analyze explain TRACE {found[0].id}` prints the rule and its evidence."
        )


def _finding(trace: Session, name: str) -> Iterator[RenderableType]:
    from roast_analyze.commands.terminal import cell, table
    from roast_analyze.computed.rules import rules
    from roast_analyze.report import findings

    [rule] = [rule for rule in rules() if rule.id == name]
    yield f"{rule.id}: {rule.title}."
    yield cell(f"Source: {rule.source}")
    yield cell(f"Documentation: {rule.documentation}")
    for threshold in rule.thresholds:
        yield cell(f"{threshold.name} = {threshold.value:g}: {threshold.meaning}")
    found = [finding for finding in findings.query(trace) if finding.id == name]
    if not found:
        yield ""
        yield "This run has no such finding."
    for finding in found:
        yield ""
        yield from finding_lines(finding, detailed=True)
        yield cell(finding.evidence, limit=10_000)
        relation = trace.sql(finding.evidence)
        evidence = relation.limit(_EVIDENCE_ROWS).fetchall()
        headings = [
            f">{name}" if any(isinstance(row[i], int | float) for row in evidence) else name
            for i, name in enumerate(relation.columns)
        ]
        yield table(headings, [list(map(_short, relation.columns, row)) for row in evidence])


def _short(column: str, value: object) -> object:
    """Round a number, except for an instant, and keep the last part of a path."""
    from roast_analyze.report.quantities import number

    if isinstance(value, float):
        return f"{value:.3f}" if column == "t" or column.endswith("_t") else number(value)
    if column == "filename" and isinstance(value, str) and "/" in value:
        return f"…/{value.rsplit('/', 1)[1]}"
    return value


def _print_changes(traces: list[tuple[Path, ...]], options: argparse.Namespace) -> None:
    """Compare the findings of the last trace with those of the others."""
    from roast_analyze.commands.terminal import print_out, table
    from roast_analyze.report import findings
    from roast_analyze.report.quantities import UNKNOWN

    costs = []
    for paths in traces:
        with open_trace(paths, options) as trace:
            costs.append(findings.query_costs(trace))
    changes = findings.changes(costs[:-1], costs[-1])
    if options.json:
        names = ("change", "id", "entity", "before_core_seconds", "after_core_seconds")
        numbers = [[cost and cost.seconds for cost in change[3:]] for change in changes]
        print_json(
            [
                dict(zip(names, (*change[:3], *costs), strict=True))
                for change, costs in zip(changes, numbers, strict=True)
            ]
        )
    elif not changes:
        print_out("No run has a finding.")
    else:
        columns = ["change", "finding", "entity", ">cost before", ">cost after"]
        shown = [
            (*change[:3], *(str(cost or UNKNOWN) for cost in change[3:])) for change in changes
        ]
        print_out(table(columns, shown, "Findings (cost in core time)"))


def finding_lines(
    finding: Finding, *, detailed: bool = False, most_lines: int | None = None
) -> Iterator[RenderableType]:
    """Yield the lines of a finding: title, sentence and change, then details if wanted.

    With `most_lines`, sentences after the first are left out if they take more lines.
    """
    from rich.padding import Padding

    from roast_analyze.commands.terminal import cell, leading_sentences

    entity = f" ({finding.entity})" if finding.entity else ""
    saving = f", possible saving: {finding.saving}" if finding.saving else ""
    yield cell(f"{finding.severity}: {finding.title}{entity}{saving}")
    lines = [finding.sentence, f"Change: {finding.change}"]
    if most_lines is not None:
        lines = [leading_sentences(line, most_lines) for line in lines]
    if detailed:
        cost = f"Cost: {finding.cost}. " if finding.cost else ""
        if finding.saving_range:
            note = f" {finding.saving_note}" if finding.saving_note else ""
            lines.append(f"Saving {finding.saving_range}.{note}")
        lines.append(f"{cost}Confidence: {finding.confidence}. Rule: {finding.id}")
    for line in lines:
        yield Padding(cell(line, limit=1000), (0, 0, 0, 2))
