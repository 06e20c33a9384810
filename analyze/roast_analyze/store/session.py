"""Sessions of a store: the views of a trace, on the files of some or all of its traces.

The records are views of Parquet files instead of tables, with ``rowid`` computed from their
addition and place, so the views of a trace work without a change. Views that are stored are
read, the others are computed. A file is not opened before a query refers to its table.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import duckdb
import fsspec
import pyarrow as pa
import xxhash

from roast_analyze.errors import MissingExtra
from roast_analyze.open.cache import cache_folder
from roast_analyze.open.database import open_empty_database
from roast_analyze.open.derived_tables import INDIRECT, with_definitions, words_of
from roast_analyze.open.session import Session
from roast_analyze.open.tables import literal, quoted
from roast_analyze.open.views import (
    NAME,
    VIEWS_NAME,
    comment_statements,
    definitions,
    definitions_digest,
    view_names,
)
from roast_analyze.store.delta import data_files
from roast_analyze.store.layout import (
    ADDITION,
    CATALOG,
    RAW,
    RECORD_BITS,
    RECORD_NUMBER,
    RUNS,
    VIEWS,
    store_views,
)
from roast_analyze.store.read_only_files import PREFIX, ReadOnlyFiles

if TYPE_CHECKING:
    import deltalake

    from roast_analyze.open.database import Listener
    from roast_analyze.store.delta import Location

#: Table with the additions whose rows are part of the session.
_ADDITIONS: Final = f"{VIEWS_NAME}.main._additions"

#: Maximum number of traces for which files are selected. With more, rows are filtered while
#: reading.
_LISTED_TRACES: Final = 100

#: Beginning of a query that is explained; the query itself decides what is read.
_EXPLAIN: Final = re.compile(r"\A\s*EXPLAIN\s+(?:ANALYZE\s+)?(?:\([^)]*\)\s*)?", re.IGNORECASE)


class StoreSession(Session):
    """Some or all traces of a store, in a version of its table of runs.

    The key consists of this version and the identities of the traces, or None for all.
    """

    _stored = (*VIEWS, RUNS)

    def __init__(
        self,
        place: Location,
        runs: deltalake.DeltaTable,
        key: tuple[int, tuple[str, ...] | None],
        memory_limit: str | int | None,
        *,
        cache: bool = True,
    ) -> None:
        self.key = key
        self._cache = cache
        self._place = place
        _, trace_ids = key
        self._additions = place.read_runs([ADDITION, "fingerprint"], trace_ids, runs)
        # A few traces are a condition of the scan, which skips files and row groups without
        # them.
        self._listed = (
            self._additions[ADDITION].to_pylist()
            if trace_ids is not None and len(trace_ids) <= _LISTED_TRACES
            else None
        )
        self._runs = runs
        # Queries can come from several threads; filling tables runs queries, too.
        self._attaching = threading.RLock()
        self._attached: set[str] = set()
        # As a path, because nothing is downloaded.
        super().__init__(Path(place.uri), memory_limit=memory_limit, cache=cache)
        # Empty, because an output cannot overwrite a trace file.
        self.paths = ()

    def _fill_tables(self, query: str) -> None:
        """Attach the tables of the store that a query refers to, and fill the others."""
        histories = {view.name: view for view in store_views()}
        with self._attaching, self._connect() as connection:
            wanted = self._names(query)
            # In this order: views of the store read the tables before them.
            for name in (*RAW, *VIEWS, *histories):
                if name not in wanted or name in self._attached:
                    continue
                if name == RUNS and (
                    files := self._place.paths(RUNS, data_files(self._runs).to_pylist())
                ):
                    scan = self._scan(files, with_month=True)
                    # A store that an older version has filled lacks columns added since.
                    present = connection.sql(f"FROM {scan}").columns
                    missing = "".join(
                        f"NULL::VARCHAR AS {column}, "
                        for column in histories[name].columns
                        if column not in present
                    )
                    connection.execute(
                        f"CREATE VIEW {NAME}.main.{name} AS "  # noqa: S608 - names are fixed
                        f"SELECT * EXCLUDE ({ADDITION}), {missing}{ADDITION} FROM {scan} "
                        f"ORDER BY start_t, trace_id; {histories[name].statements}"
                    )
                    for column, (_, comment) in CATALOG.items():
                        connection.execute(
                            f"COMMENT ON COLUMN {NAME}.main.{name}.{column} "
                            f"IS {literal(comment)}"
                        )
                elif name == RUNS:
                    # An empty table has no file to read the columns from.
                    connection.register("_rows", pa.schema(self._runs.schema()).empty_table())
                    connection.execute(f"CREATE TABLE {NAME}.main.{name} AS FROM _rows")
                elif view := histories.get(name):
                    connection.execute(
                        f"CREATE VIEW {NAME}.main.{name} AS {view.query}; {view.statements}"
                    )
                elif paths := self._place.files(name, self._listed):
                    self._replace(connection, name, paths)
                self._attached.add(name)
        super()._fill_tables(query)

    def _open(
        self,
        paths: Sequence[Path],  # noqa: ARG002 - the files are those of the store
        cache: bool,
        memory_bytes: int,
        listener: Listener,  # noqa: ARG002 - nothing is read yet
    ) -> duckdb.DuckDBPyConnection:
        connection = open_empty_database(cache=cache, memory_bytes=memory_bytes)
        connection.register("_rows", self._additions.select([ADDITION]))
        connection.execute(f"CREATE TABLE {_ADDITIONS} AS FROM _rows")
        connection.unregister("_rows")
        uri = self._place.uri
        protocol = "file" if self._place.is_local else uri.partition("://")[0]
        try:
            self._files = ReadOnlyFiles(fsspec.filesystem(protocol), uri)
        except (ImportError, ValueError) as error:
            raise MissingExtra(f"cannot query {uri!r}: {error}") from None
        connection.register_filesystem(self._files)
        connection.execute("SET GLOBAL allowed_directories = ?", [[PREFIX]])
        return connection

    def _database(self) -> Path | None:
        """Return a path in the cache for a few traces, whose files cannot change."""
        if not self._cache:
            return None
        folder = cache_folder()
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        # Without a cache the tables stay in memory.
        if self._listed is None or not os.access(folder, os.W_OK):
            return None
        # With the digests of the files, because another store can have been at this place.
        additions = sorted(self._additions.to_pylist(), key=str)
        key = json.dumps([definitions_digest(), self._place.uri, additions])
        return folder / xxhash.xxh3_128_hexdigest(key.encode()) / "store.duckdb"

    def _names(self, query: str) -> set[str]:
        """Return the words of a query, and those in the views that it refers to."""
        words = words_of(query)
        if words & INDIRECT:
            return {*RAW, *VIEWS, *(view.name for view in store_views())}
        # A stored view needs no other table.
        stored: dict[str, set[str]] = {name: set() for name in self._stored}
        defined = _defined_words() | self._derived.users_views | stored
        return with_definitions(words, defined)

    def _replace(
        self, connection: duckdb.DuckDBPyConnection, name: str, paths: Sequence[str]
    ) -> None:
        schema = "raw" if name in RAW else "main"
        expected = connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = ? "
            "AND schema_name = ? AND table_name = ? ORDER BY column_index",
            [NAME, schema, name],
        ).fetchall()
        # Files of older versions lack columns that were added since.
        present = connection.sql(f"FROM {self._scan(paths)}").columns
        columns = ", ".join(
            f"{quoted(column) if column in present else 'NULL'}::{type_} AS {quoted(column)}"
            for column, type_ in expected
        )
        place = f"{NAME}.{schema}.{quoted(name)}"
        if name in RAW:
            connection.execute(
                f"DROP TABLE {place}; CREATE VIEW {place} AS "  # noqa: S608 - names are fixed
                f"SELECT {ADDITION} * {2**RECORD_BITS} + {RECORD_NUMBER} AS rowid, {columns} "
                f"FROM {self._scan(paths)}"
            )
            return
        connection.execute(
            f"CREATE OR REPLACE VIEW {place} AS SELECT {columns} "  # noqa: S608
            f"FROM {self._scan(paths)} ORDER BY trace_id, {ADDITION}, {RECORD_NUMBER}; "
            + comment_statements(name)
        )

    def _scan(self, paths: Sequence[str], *, with_month: bool = False) -> str:
        """Return the rows of some files that are part of the session."""
        listed = ", ".join(map(literal, self._files.allow(paths)))
        scan = (
            f"read_parquet([{listed}], union_by_name = true, "
            f"hive_partitioning = {with_month}, hive_types_autocast = false)"
        )
        if self._listed is not None:
            numbers = ", ".join(map(str, self._listed)) or "NULL"
            return f"(FROM {scan} WHERE {ADDITION} IN ({numbers}))"
        return f"(FROM {scan} SEMI JOIN {_ADDITIONS} USING ({ADDITION}))"


def named_traces(
    query: str, parameters: Mapping[str, object] | Sequence[object] | None = None
) -> tuple[str, ...] | None:
    """Return the traces that all rows of a query depend on; None if they can be any.

    They are found in queries of one table, or of tables joined by ``USING (trace_id)``, with a
    condition ``trace_id = '…'`` or ``trace_id IN (…)``, which all conditions include. Each
    table is ``runs``, a view of a trace or a raw table: a row of any other view, such as
    ``program_history`` or a view of the user, can depend on several traces.
    """
    if "trace_id" not in query:
        return None
    text = _EXPLAIN.sub("", query, count=1)
    with _parser().cursor() as connection:
        [(serialized,)] = connection.execute(
            "SELECT json_serialize_sql(?::VARCHAR, skip_null => true, skip_empty => true)",
            [text],
        ).fetchall()
    parsed = json.loads(serialized)
    # Errors are reported when the query runs.
    if parsed["error"] or len(parsed["statements"]) != 1:
        return None
    node = parsed["statements"][0]["node"]
    # Within subqueries and unions, the condition may hold for some of the rows only.
    is_plain = node["type"] == "SELECT_NODE" and not node.get("cte_map", {}).get("map")
    if not is_plain or '"SUBQUERY"' in serialized or not _is_joined(node["from_table"]):
        return None
    for condition in _conditions(node.get("where_clause")):
        if values := _values(condition):
            named = tuple(_text(value, parameters) for value in values)
            return None if None in named else cast("tuple[str, ...]", named)
    return None


def _is_joined(table: Mapping[str, Any]) -> bool:
    """Return whether a row of the result depends only on rows with its trace_id."""
    if table["type"] == "JOIN":
        return (
            table.get("join_type") == "INNER"
            and "trace_id" in table.get("using_columns", ())
            and _is_joined(table["left"])
            and _is_joined(table["right"])
        )
    if table["type"] != "BASE_TABLE":
        return False
    is_raw = table.get("schema_name") == "raw"
    # `differences` compares each trace with the first one.
    own = {*view_names(), RUNS} - {"differences"}
    return is_raw or table["table_name"].casefold() in own


def _conditions(clause: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Yield the conditions that must all hold."""
    if clause is None:
        return
    if clause["type"] == "CONJUNCTION_AND":
        for child in clause["children"]:
            yield from _conditions(child)
    else:
        yield clause


def _values(condition: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the values that a condition allows for ``trace_id``."""
    match condition["type"]:
        case "COMPARE_EQUAL":
            sides = [condition["left"], condition["right"]]
        case "COMPARE_IN":
            sides = condition["children"]
        case _:
            return []
    if sides[0]["class"] != "COLUMN_REF" and len(sides) == 2:
        sides.reverse()
    is_found = sides[0]["class"] == "COLUMN_REF" and sides[0]["column_names"][-1] == "trace_id"
    return sides[1:] if is_found else []


def _text(
    value: Mapping[str, Any], parameters: Mapping[str, object] | Sequence[object] | None
) -> str | None:
    if value["class"] == "CONSTANT":
        literal = value["literal"]
        return str(literal["text"]) if literal.get("kind") == "STRING" else None
    if value["class"] != "PARAMETER" or not parameters:
        return None
    if not isinstance(parameters, Mapping):
        parameters = {str(number): item for number, item in enumerate(parameters, start=1)}
    found = parameters.get(str(value["identifier"]))
    return found if isinstance(found, str) else None


@cache
def _defined_words() -> dict[str, set[str]]:
    """Return the words in the definition of each view and macro."""
    views = {view.name: view.query for view in store_views()}
    # All words, because it takes longer to find those that can name a table.
    return {
        name: set(re.findall(r"\w+", text.casefold()))
        for name, text in (definitions() | views).items()
    }


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """Return a connection that parses queries; opening one takes longer than parsing."""
    return duckdb.connect()
