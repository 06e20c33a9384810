"""Generate the files that are derived from declarations in the code.

These are ``schemas/trace.schema.json`` and the pages of ``docs/reference``. Run this after
changing a record, a view, a rule, a setting or an option.
With ``--check`` nothing is written, and the exit code is 1 if a file is stale.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args, get_origin, is_typeddict

import roast_analyze.cli
import roast_recorder.cli
import roast_schemas.records
from roast_analyze.computed.rules import rules
from roast_analyze.metrics import METRICS, VERSION
from roast_analyze.open.database import documented_views
from roast_analyze.store.layout import store_views
from roast_recorder.commands import attach, demo, run, status
from roast_recorder.settings import OPTIONAL_KINDS, Settings
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import duckdb_type, fields_of, json_schema, kinds
from roast_schemas.units import VALID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from roast_schemas.describe import FieldDescription

ROOT = Path(__file__).parents[1]

#: First line of each page.
MARK = "<!-- Written by `make generate`: change the declarations. -->"

VALID_VALUES = "\n".join(
    f"| {unit or 'none'} | {low:,} to {high:,} |" for unit, (low, high) in VALID.items()
)

RECORDS = f"""{MARK}

# Records

The recorder writes records, one JSON object per line (see [Trace format](trace-format.md)).
This is version {SCHEMA_VERSION}. Every record has the fields `kind` and `t`, the time at which
the recorder observed it, in seconds since 1970-01-01 UTC on the scheduler's clock. Fields with
a star are in every record of the kind. An absent field and null mean the same. Types are those
of DuckDB.

The unit of a number determines which values are valid, unless the meaning of the field states
others. `roast-analyze` reads other values as null, and counts the records in the view `loss`.

| unit | valid values |
| --- | --- |
{VALID_VALUES}

[trace.schema.json](../../schemas/trace.schema.json) is the JSON Schema of a line.
"""

VIEWS = f"""{MARK}

# Views

`roast_analyze.Trace`, `roast-analyze sql` and `roast-analyze view` provide these views of a
trace. Durations end in `_seconds` and sizes in `_bytes`. Times are `t` or end in `_t`: seconds
since 1970-01-01 UTC on the scheduler's clock. Unknown values are null.
"""

STORE_VIEWS = """## Views of a store

A [store of many runs](../how-to/store.md) has the views above, of all its runs, and these.
`runs` also has columns about the trace in the store: `addition`, `added_t`, `paths`, `owner`,
`trace_bytes`, `fingerprint`, `table_rows` and `month`.
"""

COMMANDS = f"""{MARK}

# Commands

`roast-record` records, `roast-analyze` analyzes. `--help` prints the same texts.
"""

SETTINGS = f"""{MARK}

# Settings of the recorder

Pass settings to `roast_recorder.record`, as `--set name=value` to `roast-record`, or set
`roast.recorder.<name>` in Dask's configuration: in a file, or by an environment variable such
as `DASK_ROAST__RECORDER__FLUSH_INTERVAL_SECONDS=1`. A call takes precedence over the
configuration. Sizes are whole numbers of bytes, or texts such as `64 MiB`. An unknown name or
an invalid value is an error before the recording starts.
"""

RULES = f"""{MARK}

# Findings

Each rule below is a query over the views of a trace, in `analyze/roast_analyze/sql/rules`.
[How findings are computed](../explanation/findings.md) describes costs, savings and severities.
"""

METRICS_PAGE = f"""{MARK}

# Metrics

`roast-analyze metrics TRACE` prints `metrics_version` ({VERSION}), `label`, `trace_id`,
`start_t` and these metrics as JSON. Those that were not measured are null. Names and meanings
do not change within a version; metrics can be added.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the generated files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a file is stale"
    )
    check = parser.parse_args(arguments).check
    stale = {
        path: text
        for path, text in generated().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run make generate", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


def generated() -> dict[Path, str]:
    """Return the text of each generated file by path."""
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    pages = {
        "records": records_page(),
        "views": views_page(),
        "commands": commands_page(),
        "settings": settings_page(),
        "findings": findings_page(),
        "metrics": metrics_page(),
    }
    return {
        ROOT / "schemas" / "trace.schema.json": schema,
        **{ROOT / "docs" / "reference" / f"{name}.md": text for name, text in pages.items()},
    }


def table(columns: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown; column names are separated by spaces."""
    names = columns.split()
    lines = [names, ["---"] * len(names), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
    # Markdown would treat it as an HTML element and not display it.
    return re.sub(r"<(?=\w)", "&lt;", text)


def records_page() -> str:
    """Return the data dictionary, and the history of the format."""
    history = inspect.cleandoc(roast_schemas.records.__doc__ or "").partition("History of ")[2]
    versions = history[history.index("* ") :].replace("``", "`")
    versions = re.sub(r":(?:data|class):`(\w+)`", r"`\1`", versions)
    versions = re.sub(r"^\* ([\d.]+):", r"* **\1**:", versions, flags=re.MULTILINE)
    text = "## Versions\n\nA new field or kind raises the minor number; a changed meaning or a "
    text += (
        "removed field raises the major number. Traces of all earlier versions can be read.\n\n"
    )
    sections = [RECORDS]
    for kind in kinds().values():
        fields = [field for field in kind.fields if field.name not in ("kind", "t")]
        rows = (row for field in fields for row in field_rows(field))
        head = f"## `{kind.name}`\n\n{kind.meaning}\n".replace("``", "`")
        sections.append(f"{head}\n{table('field type unit meaning', rows)}")
    return "\n".join([*sections, text + versions + "\n"])


def field_rows(field: FieldDescription, prefix: str = "") -> Iterator[list[str]]:
    """Yield a row for a field of a record, and one for each of its nested fields."""
    is_list = get_origin(field.type) is list
    inner = get_args(field.type)[0] if is_list else field.type
    suffix = "[]" if is_list else ""
    shown = f"STRUCT{suffix}" if is_typeddict(inner) else duckdb_type(field.type)
    name, star = f"{prefix}{field.name}", " *" if field.required else ""
    low, high = field.valid
    valid = "" if field.valid == VALID[field.unit] else f" ({low:,} to {high:,})"
    yield [f"`{name}`{star}", f"`{shown}`", field.unit, field.meaning + valid]
    if is_typeddict(inner):
        for part in fields_of(inner):
            yield from field_rows(part, f"{name}{suffix}.")


def views_page() -> str:
    """Return the views of a trace and of a store with their columns."""
    sections = [VIEWS]
    for view in documented_views():
        rows = [[f"`{c.name}`", f"`{c.type}`", str(c.comment)] for c in view.columns]
        columns = table("column type meaning", rows)
        sections.append(f"## `{view.name}`\n\n{view.comment}\n\n{columns}")
    sections.append(STORE_VIEWS)
    for stored in store_views():
        columns = table(
            "column meaning", ([f"`{name}`", text] for name, text in stored.columns.items())
        )
        sections.append(f"### `{stored.name}`\n\n{stored.comment}\n\n{columns}")
    return "\n".join(sections)


def commands_page() -> str:
    """Return the help of all commands, and the exit codes."""
    parsers: list[argparse.ArgumentParser] = []
    recorder = argparse.ArgumentParser(prog="roast-record").add_subparsers()
    for command in (run, attach, status, demo):
        command.add_to(recorder)
    parsers.extend(recorder.choices.values())
    for name in ("", *roast_analyze.cli.COMMANDS):
        module = importlib.import_module(
            f"roast_analyze.commands.{(name or 'summary').replace('-', '_')}"
        )
        parser = argparse.ArgumentParser(f"roast-analyze {name}".strip(), None, module.__doc__)
        module.add_arguments(parser)
        parsers.append(parser)
    sections = [COMMANDS, *map(command_section, parsers), "## Exit codes\n"]
    for program, module in (
        ("roast-record", roast_recorder.cli),
        ("roast-analyze", roast_analyze.cli),
    ):
        text = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[2].replace("``", "`")
        sections.append(f"`{program}`:\n\n{text}\n")
    return "\n".join(sections)


def command_section(parser: argparse.ArgumentParser) -> str:
    """Return the description and the options of a command."""
    description = inspect.cleandoc(parser.description or "")
    text, _, examples = description.partition("For example:\n")
    parts = [f"## {parser.prog}\n\n{text.strip()}\n"]
    if examples:
        mark = "# Not run in the tests: examples of the help text."
        parts.append(f"```sh\n{mark}\n{inspect.cleandoc(examples)}\n```\n")
    rows = []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or action.dest == "help":
            continue
        name = ", ".join(action.option_strings) or _placeholder(action)
        if action.option_strings and action.nargs != 0:
            name = f"{name} {_placeholder(action)}"
        shown = (action.help or "") % {**vars(action), "prog": parser.prog}
        rows.append([f"`{name}`", shown.replace("|", "\\|")])
    return "\n".join([*parts, table("argument meaning", rows)])


def _placeholder(action: argparse.Action) -> str:
    """Return the placeholder for the value of an option."""
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"{name}…" if action.nargs in ("+", "*") else name


def settings_page() -> str:
    """Return the settings with types, defaults and the comments above them."""
    source = inspect.getsource(Settings)
    comments = re.findall(r"((?:^    #: .*\n)+)((?:^    \w+: .*\n)+)", source, re.MULTILINE)
    meanings = {
        name: re.sub(r"\s*#: ", " ", comment).strip()
        for comment, declarations in comments
        for name in re.findall(r"^    (\w+):", declarations, re.MULTILINE)
    }
    optional = ", ".join(f"`{kind}`" for kind in OPTIONAL_KINDS)
    rows = []
    for f in fields(Settings):
        meaning = meanings[f.name].replace(":data:`OPTIONAL_KINDS`", optional)
        kind = f"`{f.type}`".replace("|", "\\|")
        rows.append([f"`{f.name}`", kind, default(f.default), meaning.replace("``", "`")])
    return "\n".join([SETTINGS, table("setting type default meaning", rows)])


def default(value: object) -> str:
    """Return the default of a setting as a user would write it."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) and value >= 2**20:
        return f"{value // 2**20} MiB"
    if value == OPTIONAL_KINDS:
        return "all"
    return f"`{value}`" if value else "none"


def findings_page() -> str:
    """Return the rules of the findings with their thresholds."""
    sections = [RULES]
    for rule in rules():
        comment = re.match(r"(?:-- .*\n)+", rule.sql)
        assert comment is not None  # noqa: S101 - the rule has been parsed
        lines = [line.removeprefix("-- ") for line in comment[0].splitlines()[1:]]
        labels = r"\n(?:Records|Applies|Missing threads|Explains|Source): "
        text = re.split(labels, "\n".join(lines))[0]
        thresholds = (
            [f"`{t.name}`", f"{t.value:g}", t.meaning.replace("|", "\\|")]
            for t in rule.thresholds
        )
        sections.append(f"## `{rule.id}`\n\n**{rule.title}.** {text}\n")
        if rule.records:
            sections.append(f"It needs records of kind `{rule.records}`.\n")
        if rule.explains:
            uses = ", ".join(rule.explains)
            sections.append(f"Uses of core time that it explains, in this order: {uses}.\n")
        sections.append(f"Source: [{rule.source}]({rule.documentation})\n")
        if rule.thresholds:
            sections.append(table("threshold value meaning", thresholds))
    return "\n".join(sections)


def metrics_page() -> str:
    """Return the metrics with their meanings."""
    rows = ([f"`{name}`", text] for name, (text, _) in METRICS.items())
    return "\n".join([METRICS_PAGE, table("metric meaning", rows)])


if __name__ == "__main__":
    sys.exit(main())
