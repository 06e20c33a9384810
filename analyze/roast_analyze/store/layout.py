"""Tables of a store, and the queries that read their rows from a trace.

There is one table for each record kind, ``segments`` and ``damage`` (what was read of each
file), one for each view in :data:`VIEWS`, and ``runs``. Each has the columns of the trace and

- ``addition``: number of the addition of the trace,
- ``record_number``: place of the row among those of a file, in the order of the trace,
- ``month``: in which the run began, such as ``2026-09``, by which the files are partitioned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import pyarrow as pa

from roast_analyze.open.views import comments_in
from roast_schemas.describe import kinds

#: Views that are stored because they are often queried and take long to compute.
VIEWS: Final = ("task_runs", "chunks", "files", "workers", "datasets", "sessions")

#: Tables of the schema ``raw`` of a trace.
RAW: Final = (*kinds(), "segments", "damage")

#: Table with one row per trace, committed last.
RUNS: Final = "runs"

#: Columns of all tables: see above.
ADDITION: Final = "addition"
RECORD_NUMBER: Final = "record_number"
MONTH: Final = "month"

#: Maximum number of rows of a row group of a Parquet file.
GROUP_ROWS: Final = 2**16

#: Row numbers of a file are smaller than 2 to this power.
RECORD_BITS: Final = 36

#: Columns of ``runs`` that describe the trace in the store: types and comments.
CATALOG: Final = {
    ADDITION: (
        pa.int64(),
        "Number of the addition. Only rows of other tables with this number are valid.",
    ),
    "added_t": (
        pa.float64(),
        "Time at which the trace was added, in seconds since the epoch.",
    ),
    "paths": (pa.list_(pa.string()), "Files and folders of the trace when it was added."),
    "owner": (pa.string(), "Owner of its first file."),
    "trace_bytes": (pa.int64(), "Size of its files."),
    "fingerprint": (pa.string(), "Digest of its files."),
    "table_rows": (pa.map_(pa.string(), pa.int64()), "Number of rows in each table."),
    MONTH: (pa.string(), "Month in which the run began."),
}

#: Comments of the columns that all other tables have.
COMMENTS: Final = {
    ADDITION: "Number of the addition; valid if it is in the table runs.",
    RECORD_NUMBER: "Place of the row, in the order of the trace.",
    MONTH: "Month in which the run began.",
}


@dataclass(frozen=True)
class StoreView:
    """A view of a store that a trace does not have."""

    name: str
    query: str
    statements: str  # that create the comments
    comment: str  # what a row is
    columns: Mapping[str, str]  # comments by name


def relation(table: str) -> str:
    """Return the name of the relation of a trace with the rows of a table."""
    return f'raw."{table}"' if table in RAW else table


@cache
def store_views() -> tuple[StoreView, ...]:
    """Return the views of a store that a trace does not have, ``runs`` first."""
    folder = files("roast_analyze").joinpath("sql", "store")
    found = []
    for file in sorted(folder.iterdir(), key=lambda file: (file.name != "runs.sql", file.name)):
        name = file.name.removesuffix(".sql")
        statements, comment, rest = file.read_text("utf-8").partition("COMMENT ON ")
        query = statements.partition(f"CREATE VIEW {name} AS\n")[2].rstrip().removesuffix(";")
        comments = comments_in(comment + rest)[name]
        found.append(StoreView(name, query, comment + rest, comments.pop(""), comments))
    return tuple(found)
