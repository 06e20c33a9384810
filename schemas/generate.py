"""Generate README.md, trace.schema.json and roast.sql from records and views.

Run this after a record, a view or a comment changed. With ``--check`` nothing is written, and
the exit code is 1 if a file is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from roast_analyze.export.shell_script import shell_script
from roast_analyze.open.database import documented_views
from roast_analyze.store.layout import store_views
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import json_schema, records_markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent

INTRODUCTION = f"""<!-- Written by `python schemas/generate.py`: change the declarations. -->

# Records and views of a trace

Schema version {SCHEMA_VERSION}. The recorder writes [records](#records), one JSON object per
line. They are declared in [roast_schemas/records.py](roast_schemas/records.py), and
[trace.schema.json](trace.schema.json) is the JSON Schema of a line. `roast_analyze.Trace` and
`roast-analyze sql` provide [views](#views) of the records. They are declared in
[analyze/roast_analyze/sql](../analyze/roast_analyze/sql).

[roast.sql](roast.sql) creates the views in a plain DuckDB, without roast. The comment at its
beginning describes the use:

```sh duckdb
duckdb -c "SET VARIABLE trace = 'trace.jsonl.zst'" -c ".read schemas/roast.sql" \\
       -c "FROM prefixes"
```

Times are in seconds since 1970-01-01 UTC on the scheduler's clock. An absent field and null
mean the same.
"""

RECORDS = """## Records

Every record has the fields `kind` and `t`, the time of the record. Fields with a star are in
every record of the kind. Types are those of DuckDB.
"""

VIEWS = """## Views

Durations end in `_seconds` and sizes in `_bytes`. Times are `t` or end in `_t`.
"""


STORE_VIEWS = """## Views of a store

A store of many runs (`roast-analyze store`) has the views above, of all its runs, and these.
`runs` also has columns about the trace in the store: `addition`, `added_t`, `paths`, `owner`,
`trace_bytes`, `fingerprint`, `table_rows` and `month`.
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
            print(f"{path.name} is stale: run python schemas/generate.py", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
    return 1 if check and stale else 0


def generated() -> dict[Path, str]:
    """Return the text of each generated file by path."""
    sections = []
    for view in documented_views():
        rows = [f"| `{c.name}` | `{c.type}` | {c.comment} |" for c in view.columns]
        table = "\n".join(["| column | type | meaning |", "| --- | --- | --- |", *rows])
        sections.append(f"### `{view.name}`\n\n{view.comment}\n\n{table}")
    stored = []
    for stored_view in store_views():
        rows = [f"| `{name}` | {comment} |" for name, comment in stored_view.columns.items()]
        table = "\n".join(["| column | meaning |", "| --- | --- |", *rows])
        stored.append(f"### `{stored_view.name}`\n\n{stored_view.comment}\n\n{table}")
    readme = [
        INTRODUCTION,
        RECORDS,
        records_markdown() + "\n",
        VIEWS,
        "\n\n".join(sections) + "\n",
        STORE_VIEWS,
        "\n\n".join(stored),
    ]
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    return {
        HERE / "README.md": "\n".join(readme) + "\n",
        HERE / "trace.schema.json": schema,
        HERE / "roast.sql": shell_script(),
    }


if __name__ == "__main__":
    sys.exit(main())
