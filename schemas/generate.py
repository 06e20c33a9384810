"""Write what is generated from the declarations: README.md, trace.schema.json, roast.sql.

Run it after a change of a record, a view or a comment; with ``--check`` it writes nothing
and exits with 1 if a file is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from roast_analyze.export.shell_script import shell_script
from roast_analyze.open.database import documented_views
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import json_schema, records_markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.open.views import View

HERE = Path(__file__).parent

INTRODUCTION = f"""<!-- Written by `python schemas/generate.py`: change the declarations. -->

# What a trace holds

Schema version {SCHEMA_VERSION}. [Records](#records) are what the recorder writes, one JSON
object a line; they are declared in [roast_schemas/records.py](roast_schemas/records.py),
and [trace.schema.json](trace.schema.json) is the JSON Schema of a line. [Views](#views) are
what `roast_analyze.Trace` and `roast-analyze sql` make of them; they are declared in
[analyze/roast_analyze/sql](../analyze/roast_analyze/sql).

[roast.sql](roast.sql) lays the views over a trace in a plain DuckDB, with nothing of ours
installed; its head says how:

```sh duckdb
duckdb -c "SET VARIABLE trace = 'trace.jsonl.zst'" -c ".read schemas/roast.sql" \\
       -c "FROM prefixes"
```

Instants are seconds since 1970-01-01 UTC on the scheduler's clock. Absent and null mean the
same.
"""

RECORDS = """## Records

Every record has `kind`, its name below, and `t`, when the recorder saw it. Fields with a
star are always there. Types are those in which DuckDB reads them.
"""

VIEWS = """## Views

Seconds end in `_seconds`, bytes in `_bytes`, instants are `t` or end in `_t`.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check = parser.parse_args(arguments).check
    stale = [path for path, text in generated().items() if not _holds(path, text)]
    for path in stale:
        if check:
            print(f"{path.name} is stale: run python schemas/generate.py", file=sys.stderr)
        else:
            path.write_text(generated()[path], encoding="utf-8")
            print(f"wrote {path.name}")
    return 1 if check and stale else 0


def generated() -> dict[Path, str]:
    """Give what the files have to hold, by path."""
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    return {
        HERE / "README.md": _readme(),
        HERE / "trace.schema.json": schema,
        HERE / "roast.sql": shell_script(),
    }


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _readme() -> str:
    views = "\n\n".join(_view_markdown(view) for view in documented_views())
    return "\n".join([INTRODUCTION, RECORDS, records_markdown() + "\n", VIEWS, views]) + "\n"


def _view_markdown(view: View) -> str:
    rows = [f"| `{c.name}` | `{c.type}` | {c.comment} |" for c in view.columns]
    table = "\n".join(["| column | type | meaning |", "| --- | --- | --- |", *rows])
    return f"### `{view.name}`\n\n{view.comment}\n\n{table}"


if __name__ == "__main__":
    sys.exit(main())
