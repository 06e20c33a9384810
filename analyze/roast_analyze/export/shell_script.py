"""Generator of ``schemas/roast.sql``, which defines the views in a plain DuckDB.

The script does in SQL what :class:`roast_analyze.Trace` does: it loads JSON lines into one
typed table per kind in the schema ``raw``, in the order of the files, counts damage, and
creates the views. ``shell_script.sql`` is the template; tables are generated from
:mod:`roast_schemas` and views from the files below ``sql/``.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from roast_analyze.errors import INSTALL_COMMAND
from roast_analyze.open.views import computed_view_names, view_statements
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from roast_schemas.describe import Kind


def shell_script() -> str:
    """Return SQL statements that need the variable ``trace``.

    There are no shell commands among them, so that every DuckDB client can run them.
    """
    major, minor = SCHEMA_VERSION.split(".")
    required = {
        kind.name: [field.name for field in kind.fields if field.required]
        for kind in kinds().values()
    }
    parts = {
        "version": SCHEMA_VERSION,
        "major": major,
        "minor": minor,
        "upgrade": INSTALL_COMMAND.replace("'", "''"),
        "kinds": ",\n".join(
            f"        ('{kind}', '{', '.join(names)}')" for kind, names in required.items()
        ),
        "computed": ", ".join(computed_view_names()),
        "tables": "\n".join(_table(kind, required[kind.name]) for kind in kinds().values()),
        # S608: only names declared in roast_schemas are inserted.
        "counts": "\n    UNION ALL\n".join(
            f"    SELECT '{kind}' AS kind, segment, trace_id, count(*) AS records, "  # noqa: S608
            f"min(t) AS start_t, max(t) AS stop_t FROM raw.{kind} GROUP BY ALL"
            for kind in kinds()
        ),
        # Without their first lines, the dependencies; with OR REPLACE to run again.
        "views": re.sub(
            "^CREATE ",
            "CREATE OR REPLACE ",
            "\n".join(statements.partition("\n")[2] for statements in view_statements()),
            flags=re.MULTILINE,
        ),
    }
    template = files("roast_analyze.export").joinpath("shell_script.sql")
    # str.format() is not possible, since SQL contains braces.
    return re.sub(
        r"\{(" + "|".join(parts) + r")\}",
        lambda match: parts[match[1]],
        template.read_text(encoding="utf-8"),
    )


def _table(kind: Kind, required: list[str]) -> str:
    """Return statements that create the table of a kind and insert its complete records."""
    names = [f.name for f in kind.fields if f.name not in ("kind", "segment", "trace_id")]
    types = {name: duckdb_columns()[name] for name in names}
    columns = {**types, "segment": "BIGINT", "trace_id": "VARCHAR"}
    declared = ",\n".join(f'    "{name}" {type_}' for name, type_ in columns.items())
    whole = [f'"{name}" IS NOT NULL' for name in required if name != "kind"]
    conditions = "\n    AND ".join([*whole, "isfinite(t)"])
    return f"""\
-- {" ".join(kind.meaning.split())}
CREATE OR REPLACE TABLE raw.{kind.name} (
{declared}
);
SET VARIABLE roast_columns = _columns_of('{kind.name}');
INSERT INTO raw.{kind.name} BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('{kind.name}')
WHERE {conditions};
"""  # noqa: S608
