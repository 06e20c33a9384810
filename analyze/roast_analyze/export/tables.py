"""The public views as tables: Parquet files, or a DuckDB database.

A scope selects the rows of each view by worker and by prefix (or by keys with the prefix).
Views without such columns, and views of the recording itself, are written in full. The comments
of views and columns are included.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import NotWritable, first_paragraph
from roast_analyze.export.scope import MOVES_PREFIX, Condition, batches
from roast_analyze.open.tables import literal, quoted, transaction
from roast_analyze.output_paths import NOT_IN_PARQUET, replacing

if TYPE_CHECKING:
    import pyarrow as pa

    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session
    from roast_analyze.open.views import View

#: Views of the recording itself.
_WHOLE: Final = ("trace_info", "run", "environment", "loss")


def write_parquet(trace: Session, scope: Scope, folder: Path) -> None:
    """Write each view to a Parquet file of its name in a folder, which is created if missing.

    The file's metadata contains the view's comment as ``comment``, and those of its columns
    as ``column_comments``, a JSON object. The Arrow fields contain them, too. Raise
    :class:`NotWritable` if a file cannot be written.
    """
    import pyarrow.parquet as pq

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise NotWritable(f"{str(folder)!r} cannot be created: {error.strerror}") from None
    for view in trace.views():
        reader = _rows_of(trace, scope, view, as_text=NOT_IN_PARQUET)
        schema = _with_comments(reader.schema, view)
        with (
            replacing(folder / f"{view.name}.parquet") as unfinished,
            pq.ParquetWriter(unfinished, schema, compression="zstd") as writer,
        ):
            for batch in reader:
                writer.write_batch(batch.cast(schema))


def write_duckdb(trace: Session, scope: Scope, path: Path) -> None:
    """Write the views as tables of a database, or raise :class:`NotWritable`."""
    with replacing(path) as unfinished:
        try:
            with duckdb.connect(
                unfinished,
                # DuckDB 1 cannot open the format that DuckDB 2 writes by default.
                config={"storage_compatibility_version": "v1.0.0"},
            ) as database:
                # DuckDB would draw on the terminal.
                database.execute("SET enable_progress_bar = false")
                # A commit per table would wait for the disk.
                with transaction(database):
                    for view in trace.views():
                        name = quoted(view.name)
                        columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in view.columns)
                        database.execute(f"CREATE TABLE {name} ({columns})")
                        comments = {f"TABLE {name}": view.comment} | {
                            f"COLUMN {name}.{quoted(c.name)}": c.comment for c in view.columns
                        }
                        for place, comment in comments.items():
                            database.execute(f"COMMENT ON {place} IS {literal(comment)}")
                for view in trace.views():
                    database.register("_rows", _rows_of(trace, scope, view))
                    database.execute(f"INSERT INTO {quoted(view.name)} FROM _rows")
                    database.unregister("_rows")
                # Closing would do this, too, but would not raise if the disk is full.
                database.execute("CHECKPOINT")
        except (
            duckdb.IOException,
            duckdb.TransactionException,
            duckdb.FatalException,
        ) as error:
            unfinished.with_name(f"{unfinished.name}.wal").unlink(missing_ok=True)
            reason = first_paragraph(error)
            raise NotWritable(f"cannot write {str(path)!r}: {reason}") from None


def _rows_of(
    trace: Session, scope: Scope, view: View, as_text: tuple[str, ...] = ()
) -> pa.RecordBatchReader:
    columns = {column.name for column in view.columns}
    workers: tuple[str, ...] = ("worker",) if "worker" in columns else ()
    prefix: str | None = None
    if "prefix" in columns:
        prefix = "prefix = $prefix"
    elif "key" in columns:
        prefix = "key IN (SELECT key FROM tasks WHERE prefix = $prefix)"
    if view.name == "transfers":
        workers, prefix = ("source", "destination"), MOVES_PREFIX
    condition = scope.condition(workers=workers, prefix=prefix)
    # They describe the recording, regardless of the exported part.
    if view.name in _WHOLE:
        condition = Condition("true", {})
    texts = [quoted(c.name) for c in view.columns if c.type.startswith(as_text)]
    replaced = ", ".join(f"{name}::VARCHAR AS {name}" for name in texts)
    query = (
        f"SELECT * {f'REPLACE ({replaced})' if texts else ''} "  # noqa: S608
        f"FROM {quoted(view.name)} WHERE {{condition}}"
    )
    return batches(trace, query, condition)


def _with_comments(schema: pa.Schema, view: View) -> pa.Schema:
    import pyarrow as pa

    comments = {column.name: column.comment for column in view.columns}
    types = {field.name: field.type for field in schema}
    if hasattr(pa, "json_"):  # pyarrow 19
        types |= {c.name: pa.json_(pa.string()) for c in view.columns if c.type == "JSON"}
    fields = [
        pa.field(name, type_, metadata={"comment": comments[name]})
        for name, type_ in types.items()
    ]
    return pa.schema(
        fields, metadata={"comment": view.comment, "column_comments": json.dumps(comments)}
    )
