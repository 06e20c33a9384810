r"""Compare new runs with base runs, and fail if a metric became worse.

Exits with 1 if a rule applies, and with 0 otherwise. A rule is a metric, > or <, and a limit: a
change (+10%, -5%, +2.5) or a value (0). With several base or new runs, a change must also lie
outside of their spread: beyond the 95 % prediction interval for runs like the bases. Without
--fail-if, the rules are "wall_seconds > +10%", "failures > +0" and "events < -1%", because
a run that fails early is short; the last two apply if a base has the metric.

BASE and NEW are traces, or files of metrics (.json), as `roast-analyze metrics` prints them.

For example:

    roast-analyze gate before.jsonl.zst -- after.jsonl.zst
    roast-analyze gate main-*.json -- new.jsonl.zst --fail-if "wall_seconds > +5%"
    roast-analyze gate base.json -- new.json --fail-if "failures > 0" \
        --fail-if "events_per_second < -10%" --format markdown
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.commands.formats import add_format, complete_options, write_frame
from roast_analyze.commands.messages import print_note
from roast_analyze.commands.trace_args import add_reading, open_trace, trace_argument
from roast_analyze.errors import NotATrace, TraceError

if TYPE_CHECKING:
    from roast_analyze.algorithms.regression import Change

#: Rules without --fail-if. A run that fails early is short.
DEFAULT_RULES: Final = ("wall_seconds > +10%", "failures > +0", "events < -1%")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "roast-analyze gate BASE… -- NEW… [--fail-if RULE]… [options]"
    parser.add_argument(
        "bases", metavar="BASE", nargs="+", type=trace_argument, help="base runs"
    )
    parser.add_argument(
        "--fail-if",
        metavar="RULE",
        action="append",
        help='such as "wall_seconds > +10%%" or "failures > 0"; can be repeated '
        "(default: see above)",
    )
    add_reading(parser)
    add_format(parser)


def parse(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse the words of a command line; all runs after ``--`` are new."""
    place = words.index("--") if "--" in words else len(words)
    before, after = words[:place], words[place + 1 :]
    if "--" in after:
        raise TraceError("expected one --, between the base runs and the new ones")
    options = parser.parse_intermixed_args(before)
    bases = vars(options).pop("bases")
    if after:
        options = parser.parse_intermixed_args(after, options)
    options.new = vars(options).pop("bases", [])
    options.bases = bases
    return options


def run(options: argparse.Namespace) -> bool:
    """Print the metrics of both, or write them; return whether no rule fails."""
    from roast_analyze.algorithms.regression import compare, parse_rule
    from roast_analyze.metrics import METRICS

    if not options.new:
        raise TraceError("no new run: name them after --, as in BASE… -- NEW…")
    rules = [parse_rule(text, METRICS) for text in options.fail_if or DEFAULT_RULES]
    complete_options(options, [*options.bases, *options.new])
    bases, news = (
        [_metrics(path, options) for path in paths] for paths in (options.bases, options.new)
    )
    changes = {
        name: compare(name, [m[name] for m in bases], [m[name] for m in news])
        for name in METRICS
        if all(_is_number(metrics.get(name)) for metrics in (*bases, *news))
    }
    if not options.fail_if:
        # The bases can lack events, of results from checkpoints, and failures.
        measured = {name for metrics in bases for name in metrics if _is_number(metrics[name])}
        rules = [rule for rule in rules if rule.metric in measured | {"wall_seconds"}]
    # A rule about a metric that was not measured must not pass silently.
    unknown = next((rule.metric for rule in rules if rule.metric not in changes), None)
    if unknown is not None:
        raise TraceError(f"{unknown!r} was not measured in all runs: use another metric")
    failed = [rule.text for rule in rules if rule.fails(changes[rule.metric])]
    outcome = f"failed: {', '.join(failed)}" if failed else "passed"
    is_read = options.format in ("table", "markdown")
    rows = []
    for change in changes.values():
        fails = [rule.fails(change) for rule in rules if rule.metric == change.metric]
        if fails:
            verdict = "failed" if any(fails) else "passed"
        else:
            # A metric without a rule is only marked if it is outside of the spread of the
            # bases.
            verdict = "changed" if change.is_expected is False else ""
        cells = _texts(change) if is_read else _values(change)
        rows.append({"metric": change.metric, **cells, "verdict": verdict})
    if options.format != "table" or options.output:
        import polars as pl

        # A column can begin with nulls.
        write_frame(pl.DataFrame(rows, infer_schema_length=None), options)
        print_note(outcome)
    else:
        from roast_analyze.commands.terminal import cell, print_out, table

        columns = ["metric", ">base", ">expected", ">new", ">change", "verdict"]
        print_out(table(columns, [list(row.values()) for row in rows]), cell(outcome))
    return not failed


def _metrics(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the metrics of a trace, or those in a file."""
    from roast_analyze.metrics import VERSION, read_metrics

    if path.suffix != ".json":
        with open_trace([path], options) as trace:
            return read_metrics(trace)
    try:
        metrics = json.loads(path.read_bytes())
    except ValueError as error:
        raise NotATrace(f"{str(path)!r} is not JSON: {error}") from None
    except OSError as error:
        raise NotATrace(f"cannot read {str(path)!r}: {error.strerror}") from None
    version = metrics.get("metrics_version") if isinstance(metrics, dict) else None
    if version != VERSION:
        raise NotATrace(
            f"{str(path)!r} has no metrics of version {VERSION}: "
            "write it with roast-analyze metrics"
        )
    return dict(metrics)


def _is_number(value: object) -> bool:
    # A file of metrics can contain NaN, with which no rule fails.
    return isinstance(value, int | float) and math.isfinite(value)


def _texts(change: Change) -> dict[str, Any]:
    """Return the cells of a change for readers."""
    from roast_analyze.report import quantities as q

    def shown(value: float) -> str:
        if change.metric.endswith("_seconds"):
            return q.seconds(value)
        if "bytes" in change.metric.split("_"):
            return q.byte_size(value)
        return q.count(value) if value == int(value) else q.number(value)

    return {
        "base": shown(change.base),
        "expected": None if change.reach is None else f"± {shown(change.reach)}",
        "new": shown(change.new),
        "change": f"{change.relative_change:+.1%}" if change.base else None,
    }


def _values(change: Change) -> dict[str, Any]:
    """Return the cells of a change for programs."""
    return {
        "base": float(change.base),
        "expected_change": change.reach,
        "new": float(change.new),
        "change": float(change.change),
        "relative_change": change.relative_change if change.base else None,
    }
