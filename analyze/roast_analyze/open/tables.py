"""The tables of the schema ``raw``: one for each kind of record, the segments and the damage.

The table of a kind has the fields declared in :mod:`roast_schemas.records`, except ``kind``,
and then ``segment`` and ``trace_id``.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import duckdb

from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roast_analyze.open.account import Account
    from roast_analyze.open.damage import Damage
    from roast_analyze.open.discover import Segment

#: Keys dominate the text of a trace and repeat a few times; without a fixed method DuckDB would
#: try every compression on each row group.
_COMPRESSED: Final = {"key": "USING COMPRESSION zstd"}

#: Columns of the tables that are not fields of a record.
OWN_COLUMNS: Final = ("kind", "segment", "trace_id")

_TABLES: Final = """
CREATE SCHEMA raw;
CREATE TABLE raw.segments (
    path VARCHAR, has_header BOOLEAN, has_trailer BOOLEAN, records BIGINT,
    records_by_kind MAP(VARCHAR, BIGINT), unreadable BIGINT, start_t DOUBLE, stop_t DOUBLE,
    segment BIGINT, trace_id VARCHAR
);
CREATE TABLE raw.damage (
    reason VARCHAR, records BIGINT, detail VARCHAR, segment BIGINT, trace_id VARCHAR
);
"""


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the empty tables for :func:`roast_analyze.open.load.load_segment`."""
    connection.execute(_TABLES)
    for kind in kinds():
        columns = ", ".join(
            f"{quoted(name)} {duckdb_columns()[name]} {_COMPRESSED.get(name, '')}"
            for name in field_names(kind)
            if name not in OWN_COLUMNS
        )
        connection.execute(
            f"CREATE TABLE raw.{quoted(kind)} ({columns}, segment BIGINT, trace_id VARCHAR)"
        )


def write_accounts(
    connection: duckdb.DuckDBPyConnection,
    accounts: Iterable[tuple[Segment, Account]],
    left_out: Iterable[tuple[Damage, str, int | None]],
) -> None:
    """Rewrite ``raw.segments`` and ``raw.damage``, after all segments are loaded."""
    # A segment that has grown may be complete now.
    connection.execute("DELETE FROM raw.segments; DELETE FROM raw.damage")
    accounts = list(accounts)
    present = set().union(*(account.records_by_kind for _, account in accounts))
    tables = " UNION ALL ".join(
        f"SELECT trace_id, segment, min(t) AS start_t, max(t) AS stop_t "  # noqa: S608
        f"FROM raw.{quoted(kind)} GROUP BY ALL"
        for kind in kinds()
        if kind in present
    )
    extents = {}
    if tables:
        rows = connection.execute(
            f"SELECT trace_id, segment, min(start_t), max(stop_t) FROM ({tables}) GROUP BY ALL"  # noqa: S608
        ).fetchall()
        extents = {(trace_id, number): extent for trace_id, number, *extent in rows}
    damage: list[tuple[Damage, str, int | None]] = []
    for segment, account in accounts:
        trace_id, number = segment.identity
        counts = account.records_by_kind
        known = {kind: n for kind, n in counts.items() if kind in kinds()}
        connection.execute(
            "INSERT INTO raw.segments VALUES (?, ?, ?, ?, map(?, ?), ?, ?, ?, ?, ?)",
            [
                str(segment.path.resolve()),
                segment.schema_version is not None,
                "trailer" in known,
                sum(known.values()),
                list(counts),
                list(counts.values()),
                account.unreadable,
                *extents.get((trace_id, number), (None, None)),
                number,
                trace_id,
            ],
        )
        found = account.damage(segment.schema_version)
        damage += ((one, trace_id, number) for one in found)
    for one, trace_id, place in (*damage, *left_out):
        connection.execute(
            "INSERT INTO raw.damage VALUES (?, ?, ?, ?, ?)", [*one, place, trace_id]
        )


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run the block in one transaction; each statement alone would wait for the disk."""
    connection.begin()
    try:
        yield
    except BaseException:
        # DuckDB has already ended a transaction in which a statement failed.
        with suppress(duckdb.Error):
            connection.rollback()
        raise
    connection.commit()


def field_names(kind: str) -> list[str]:
    """Return the names of the fields of a kind."""
    return [field.name for field in kinds()[kind].fields]
