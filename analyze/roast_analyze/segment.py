"""A segment file as DuckDB reads it: lines to rows, and a first look at what is in them.

DuckDB reads what it can and gives a row of NULLs for a line that it cannot read; a file
that it refuses as a whole goes through :mod:`roast_analyze.salvage` first. Either way
:class:`Census` tells what there is and what is damaged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb

from roast_analyze.damage import Damage
from roast_analyze.errors import NotATrace, one_line
from roast_analyze.salvage import begins_with_mark, compression_of, salvage
from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Unknown kinds beyond so many are counted together.
UNKNOWN_KINDS_NAMED = 20


@dataclass(frozen=True)
class Header:
    """What the header of a segment says about where it belongs."""

    trace_id: str
    segment: int
    schema_version: str


@dataclass
class Census:
    """What a first look at a segment shows.

    Parameters
    ----------
    records_by_kind : dict of str to int
        Lines that name a kind, known or not.
    start_t, stop_t : float or None
        First and last finite ``t`` of the records of known kinds.
    unreadable : int
        Lines that are no JSON, or name no kind.
    damage : list of Damage
    """

    records_by_kind: dict[str, int]
    start_t: float | None
    stop_t: float | None
    unreadable: int
    damage: list[Damage] = field(default_factory=list)

    @property
    def known(self) -> dict[str, int]:
        """Records of the kinds that the schema declares."""
        return {name: n for name, n in self.records_by_kind.items() if name in kinds()}

    @property
    def lines(self) -> int:
        """Lines that are not blank."""
        return sum(self.records_by_kind.values()) + self.unreadable


class Segment:
    """A readable segment file.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    path : Path
    copy : Path
        Where a repaired copy of the file may be written; it must outlive the segment.

    Attributes
    ----------
    path : Path
    census : Census
    header : Header or None

    Raises
    ------
    NotATrace
        If the file cannot be read at all.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, copy: Path) -> None:
        self.path = path
        self._connection = connection
        try:
            self._use(path)
            if begins_with_mark(path):
                self._repair(copy)
            else:
                self.census = self._take_census()
        except OSError as error:
            raise NotATrace(f"{str(path)!r} cannot be read: {error.strerror}") from None
        except UnicodeEncodeError:
            raise NotATrace(f"the name {str(path)!r} is not UTF-8; rename the file") from None
        except duckdb.Error:
            self._repair(copy)
        self.header = self._find_header()

    def rows(self, columns: dict[str, str]) -> tuple[str, dict[str, object]]:
        """Give the lines as an SQL table function, and its parameters.

        Parameters
        ----------
        columns : dict of str to str
            Fields to read and their DuckDB types. A field that a line lacks, or has in
            another type, is null.
        """
        types = ", ".join(f"{quoted(name)}: '{type_}'" for name, type_ in columns.items())
        sql = (
            f"read_json($path, format = 'newline_delimited', columns = {{{types}}}, "
            "records = true, compression = $compression, ignore_errors = true)"
        )
        return sql, {"path": self._pattern, "compression": self._compression}

    def _use(self, path: Path) -> None:
        self._compression = compression_of(path)
        # DuckDB takes a path for a pattern; each special sign in brackets means itself.
        self._pattern = re.sub(r"([*?\[])", r"[\1]", str(path.resolve()))
        self._pattern.encode()  # DuckDB takes UTF-8 only

    def _repair(self, copy: Path) -> None:
        try:
            damage = salvage(self.path, copy)
            self._use(copy)
            self.census = self._take_census()
        except (OSError, duckdb.Error) as error:
            raise NotATrace(f"{str(self.path)!r} cannot be read: {one_line(error)}") from None
        self.census.damage += damage

    def _take_census(self) -> Census:
        rows = self._query(
            "SELECT kind, count(*), min(t) FILTER (isfinite(t)), max(t) FILTER (isfinite(t)) "
            "FROM {table} GROUP BY kind ORDER BY count(*) DESC, kind",
            {"kind": "VARCHAR", "t": "DOUBLE"},
        )
        known = [row for row in rows if row[0] in kinds()]
        census = Census(
            records_by_kind={kind: n for kind, n, *_ in rows if kind is not None},
            start_t=min((row[2] for row in known if row[2] is not None), default=None),
            stop_t=max((row[3] for row in known if row[3] is not None), default=None),
            unreadable=sum(n for kind, n, *_ in rows if kind is None),
        )
        census.damage += [*self._unreadable_lines(census.unreadable), *_unknown_kinds(census)]
        return census

    def _find_header(self) -> Header | None:
        if "header" not in self.census.records_by_kind:
            return None
        names = ("kind", "t", "trace_id", "segment", "schema_version")
        rows = self._query(
            "SELECT trace_id, segment, schema_version FROM {table} WHERE kind = 'header' "
            "AND COLUMNS(*) IS NOT NULL AND isfinite(t) LIMIT 1",
            {name: duckdb_columns()[name] for name in names},
        )
        return Header(*rows[0]) if rows else None

    def _unreadable_lines(self, count: int) -> Iterator[Damage]:
        if not count:
            return
        first, last, lines = self._query(
            "SELECT min(line) FILTER (kind IS NULL), max(line) FILTER (kind IS NULL), "
            "max(line) FROM (SELECT kind, row_number() OVER () AS line FROM {table})",
            {"kind": "VARCHAR"},
        )[0]
        if last == lines:
            yield Damage("last line unreadable", 1, f"line {last}; the file was cut off there")
            count -= 1
        if count:
            detail = f"the first is line {first}, not counting blank lines"
            yield Damage("unreadable lines", count, detail)

    def _query(self, sql: str, columns: dict[str, str]) -> list[Any]:
        table, parameters = self.rows(columns)
        return self._connection.execute(sql.format(table=table), parameters).fetchall()


def quoted(name: str) -> str:
    """Write a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _unknown_kinds(census: Census) -> Iterator[Damage]:
    unknown = [(kind, n) for kind, n in census.records_by_kind.items() if kind not in kinds()]
    for kind, count in unknown[:UNKNOWN_KINDS_NAMED]:
        yield Damage("unknown kind", count, f"kind {kind[:100]!r}")
    if rest := unknown[UNKNOWN_KINDS_NAMED:]:
        yield Damage("unknown kind", sum(n for _, n in rest), f"{len(rest)} more kinds")
