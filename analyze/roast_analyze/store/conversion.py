"""Conversion of traces to Parquet files of a store, on any machine.

:func:`convert` depends only on its arguments and can be repeated: each call writes new files,
which are not part of the store before they are committed.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from roast_analyze.errors import TraceError, first_paragraph
from roast_analyze.open.database import open_database, open_empty_database
from roast_analyze.open.discover import segment_paths
from roast_analyze.open.memory_limit import limit_bytes
from roast_analyze.open.readable import TraceFailure
from roast_analyze.open.remote import is_of_url, shown_name
from roast_analyze.open.session import Session
from roast_analyze.open.tables import quoted
from roast_analyze.store.delta import DataFile, Location
from roast_analyze.store.layout import (
    ADDITION,
    CATALOG,
    COMMENTS,
    GROUP_ROWS,
    MONTH,
    RAW,
    RECORD_NUMBER,
    VIEWS,
    relation,
    store_views,
)
from roast_schemas.describe import kinds

if TYPE_CHECKING:
    from roast_analyze.open.database import Listener

#: Memory limit of the database of a batch; it spills to disk beyond it.
MEMORY_LIMIT: Final = "512MiB"

#: Minimum number of rows of a row group that ends with its trace.
_LEAST_GROUP_ROWS: Final = 2**12

#: Schema of the columns that describe a trace in the store.
_CATALOG: Final = pa.schema({name: type_ for name, (type_, _) in CATALOG.items()})

#: Month of a trace whose records have no time, or one that is not a date.
_NO_MONTH: Final = "unknown"


@dataclass(frozen=True)
class Source:
    """A trace to add, and the number of its addition."""

    paths: tuple[Path, ...]
    addition: int
    #: Fingerprints of traces in the store that can be equal to it.
    known: frozenset[str] = frozenset()

    def files(self) -> list[Path]:
        """Return the files of the trace."""
        return [path for name in self.paths for path in segment_paths(name)]

    def fingerprint(self) -> str:
        """Return a digest of the files."""
        digest = xxhash.xxh3_128()
        for path in self.files():
            with path.open("rb", buffering=0) as file:
                hashlib.file_digest(file, lambda: digest)
        return digest.hexdigest()


@dataclass(frozen=True)
class Converted:
    """Files to commit, the rows of ``runs`` for them, and what was not converted."""

    files: tuple[DataFile, ...] = ()
    runs: tuple[pa.Table, ...] = ()
    unchanged: tuple[str, ...] = ()
    failures: tuple[TraceFailure, ...] = ()

    def __add__(self, other: Converted) -> Converted:
        return Converted(
            self.files + other.files,
            self.runs + other.runs,
            self.unchanged + other.unchanged,
            self.failures + other.failures,
        )


def convert(
    sources: Sequence[Source], store: Location, threads: int | None = None
) -> Converted:
    """Write the rows of traces that the store does not have to files of its tables.

    `threads` limits those of DuckDB; the default is one per core.
    """
    changed: dict[Source, str] = {}  # with their fingerprints
    done = Converted()
    for source in sources:
        try:
            digest = source.fingerprint()
        except (TraceError, OSError) as error:
            done += _failed(source, error)
            continue
        if digest in source.known:
            done += Converted(unchanged=(shown_name(source.paths[0]),))
        else:
            changed[source] = digest
    if not changed:
        return done
    try:
        return done + _convert(changed, store, threads)
    except (TraceError, duckdb.Error, OSError) as error:
        if len(changed) == 1:
            [source] = changed
            return done + _failed(source, error)
    # One of the traces cannot be read; the others are read alone.
    for source in changed:
        done += convert([replace(source, known=frozenset())], store, threads)
    return done


def _failed(source: Source, error: Exception) -> Converted:
    failure = TraceFailure(shown_name(source.paths[0]), first_paragraph(error))
    return Converted(failures=(failure,))


class _UnkeptSession(Session):
    """A session whose tables are not kept in the cache."""

    def __init__(self, *names: Path, threads: int | None) -> None:
        self._threads = threads
        super().__init__(*names, memory_limit=MEMORY_LIMIT, views=())

    def _open(
        self, paths: Sequence[Path], cache: bool, memory_bytes: int, listener: Listener
    ) -> duckdb.DuckDBPyConnection:
        return open_database(
            paths,
            cache=cache,
            memory_bytes=memory_bytes,
            listener=listener,
            keep=False,
            threads=self._threads,
        )


def _convert(digests: Mapping[Source, str], store: Location, threads: int | None) -> Converted:
    names = [path for source in digests for path in source.paths]
    with _UnkeptSession(*names, threads=threads) as trace:
        by_path = {str(path.resolve()): source for source in digests for path in source.files()}
        found = trace.rows(
            "SELECT trace_id, min_by(path, rowid), min(start_t) FROM raw.segments "
            "GROUP BY trace_id ORDER BY min(rowid)"
        )
        if len(found) < len(digests):
            raise TraceError("two files have the same trace and segment: name one of them")
        sources = {trace_id: by_path[path] for trace_id, path, _ in found}
        by_month: dict[str, dict[str, int]] = {}  # additions of the traces of each month
        for trace_id, _, t in found:
            month = _NO_MONTH
            with suppress(TypeError, ValueError, OverflowError, OSError):
                month = f"{datetime.fromtimestamp(t, UTC):%Y-%m}"
            by_month.setdefault(month, {})[trace_id] = sources[trace_id].addition
        # Comments of the columns of each table; the comment of a table has no column name.
        comments = {
            kind.name: {"": kind.meaning} | {field.name: field.meaning for field in kind.fields}
            for kind in kinds().values()
        } | {
            view.name: {"": view.comment} | {c.name: c.comment for c in view.columns}
            for view in trace.views()
            if view.name in VIEWS
        }
        # Most traces lack some kinds, whose tables need no query.
        filled = trace.rows(
            "SELECT table_name FROM duckdb_tables() "
            "WHERE schema_name = 'raw' AND estimated_size > 0 ORDER BY ALL"
        )
        files = []
        for month, additions in sorted(by_month.items()):
            for table in (*(name for (name,) in filled), *VIEWS):
                of_table = comments.get(table, {})
                if file := _write_table(trace, table, month, additions, of_table, store):
                    files.append(file)
        return Converted(tuple(files), (_runs(trace, sources, digests, files),))


def _write_table(
    trace: Session,
    table: str,
    month: str,
    additions: Mapping[str, int],
    comments: Mapping[str, str],
    store: Location,
) -> DataFile | None:
    """Write the rows of a table to a file, if there are any.

    `additions` has the number of the addition of each trace to write.
    """
    number = "rowid" if table in RAW else "row_number() OVER () - 1"
    source = relation(table)
    empty = trace.sql(f"FROM {source} LIMIT 0")
    columns = ", ".join(
        # Delta Lake has no type for JSON.
        f"{quoted(name)}::VARCHAR AS {quoted(name)}" if str(type_) == "JSON" else quoted(name)
        for name, type_ in zip(empty.columns, empty.types, strict=True)
    )
    rows = trace.sql(
        f"SELECT $additions[list_position($trace_ids, trace_id)] AS {ADDITION}, "  # noqa: S608
        f"{number} AS {RECORD_NUMBER}, {columns} "
        f"FROM {source} WHERE list_contains($trace_ids, trace_id)",
        {"trace_ids": [*additions], "additions": [*additions.values()]},
    )
    reader = rows.to_arrow_reader(GROUP_ROWS)
    schema = _with_comments(reader.schema, {**comments, **COMMENTS})
    counts: Counter[int] = Counter()
    batches = (batch for batch in reader if batch.num_rows)
    # A file without rows would cost each query that opens the table.
    first = next(batches, None)
    if first is None:
        return None
    path = f"{MONTH}={month}/{uuid.uuid4().hex}.parquet"
    filesystem = store.filesystem(table)
    # Object stores have no folders.
    with suppress(NotImplementedError):
        filesystem.create_dir(f"{MONTH}={month}", recursive=True)
    with (
        filesystem.open_output_stream(path) as sink,
        pq.ParquetWriter(
            sink, schema, compression="zstd", write_statistics=[ADDITION, "trace_id", "t"]
        ) as writer,
    ):
        for batch in chain([first], batches):
            written = previous = 0
            # The rows of a trace follow each other.
            runs = pc.run_end_encode(batch.column(0))
            for addition, end in zip(
                runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True
            ):
                counts[addition] += end - previous
                previous = end
                # A large row group has rows of one trace, and is skipped by queries of
                # others. Small ones would consist of metadata.
                if end - written >= _LEAST_GROUP_ROWS or end == batch.num_rows:
                    writer.write_batch(batch.slice(written, end - written).cast(schema))
                    written = end
    nbytes = filesystem.get_file_info(path).size
    return DataFile(table, path, nbytes, month, dict(counts), schema)


def _with_comments(schema: pa.Schema, comments: Mapping[str, str]) -> pa.Schema:
    return pa.schema(
        [
            f.with_metadata({"comment": comment}) if (comment := comments.get(f.name)) else f
            for f in schema
        ],
        metadata={"comment": " ".join(comments.get("", "").split())},
    )


def _runs(
    trace: Session,
    sources: Mapping[str, Source],
    digests: Mapping[Source, str],
    files: Sequence[DataFile],
) -> pa.Table:
    """Return the rows of ``runs`` of the traces of a session."""
    view = store_views()[0]
    rows = trace.sql(f"SELECT * FROM ({view.query}) ORDER BY trace_id").to_arrow_table()  # noqa: S608
    entries = []
    for trace_id in rows["trace_id"].to_pylist():
        source = sources[trace_id]
        own = [file for file in files if source.addition in file.rows]
        paths = source.files()
        try:
            # The copy of a trace at a URL belongs to the user who adds it.
            owner = None if is_of_url(source.paths[0]) else paths[0].owner()
        except (KeyError, OSError, NotImplementedError):  # a user without a name
            owner = None
        entries.append(
            {
                ADDITION: source.addition,
                "added_t": time.time(),
                "paths": [shown_name(name.absolute()) for name in source.paths],
                "owner": owner,
                "trace_bytes": sum(path.stat().st_size for path in paths),
                "fingerprint": digests[source],
                "table_rows": [(file.table, file.rows[source.addition]) for file in own],
                MONTH: own[0].month,
            }
        )
    catalog = pa.Table.from_pylist(entries, _CATALOG)
    return pa.table([*rows.columns, *catalog.columns], schema=_runs_schema(rows.schema))


def runs_schema() -> pa.Schema:
    """Return the schema of ``runs``, without a trace."""
    memory_bytes = limit_bytes(MEMORY_LIMIT)
    # The copy from the cache lacks the views that a session creates of its derived tables.
    with open_empty_database(cache=False, memory_bytes=memory_bytes) as connection:
        return _runs_schema(connection.sql(store_views()[0].query).to_arrow_table().schema)


def _runs_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of ``runs``, from that of its view."""
    view = store_views()[0]
    comments = {name: comment for name, (_, comment) in CATALOG.items()}
    schema = pa.unify_schemas([columns, _CATALOG])
    return _with_comments(schema, {"": view.comment, **view.columns, **comments})
