"""Segments of a trace into typed tables.

:func:`load_segment` is a function of one segment alone: it appends the records of a file
to one table per kind in the schema ``raw``, in the order of the file (``rowid`` keeps it),
one line in ``raw.segments`` and, for every way in which the file is damaged, one line in
``raw.damage``. Nothing is dropped without being counted there.

The tables of the kinds have the fields that :mod:`roast_schemas.records` declares, but for
``kind``, and then ``segment`` and ``trace_id``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb

from roast_analyze.errors import INSTALL_COMMAND, NotATrace, SchemaTooNew, TraceNotFound
from roast_analyze.salvage import compression_of, salvage
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names of the files that a folder is searched for.
SUFFIXES = (".jsonl", ".jsonl.zst", ".jsonl.gz")

#: Kinds with more records than this are read from the file by themselves, which costs a
#: pass over the file; the others are read together, into a table as wide as all of them.
ABUNDANT_RECORDS = 50_000

#: Unknown kinds beyond so many are counted together.
UNKNOWN_KINDS_NAMED = 20

_TABLES = """
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


@dataclass(frozen=True)
class Damage:
    """A way in which a segment is not whole.

    Parameters
    ----------
    reason : str
    records : int or None
        How many records it cost; None if nobody can know.
    detail : str
    """

    reason: str
    records: int | None
    detail: str


@dataclass
class _Census:
    """What a first look at a segment shows: records by kind, lines that are none."""

    records_by_kind: dict[str, int]
    start_t: float | None
    stop_t: float | None
    unreadable: int
    damage: list[Damage] = field(default_factory=list)

    @property
    def known(self) -> dict[str, int]:
        return {name: n for name, n in self.records_by_kind.items() if name in kinds()}


def segment_paths(path: Path) -> list[Path]:
    """List the segments of a trace, in order.

    Parameters
    ----------
    path : Path
        A file, or a folder of segments whose names count up.

    Raises
    ------
    TraceNotFound
        If nothing lies at the path.
    NotATrace
        If it is neither a file nor a folder with segments in it.
    """
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            return _segments_in(path)
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise TraceNotFound(f"{str(path)!r} cannot be looked at: {error}") from None
    if exists:
        raise NotATrace(f"{str(path)!r} is neither a file nor a folder; name a trace")
    raise TraceNotFound(f"there is no {str(path)!r}; name a trace file or a folder of segments")


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the empty tables that :func:`load_segment` fills."""
    connection.execute(_TABLES)
    for kind in kinds():
        columns = ", ".join(
            f"{_quoted(name)} {duckdb_columns()[name]}" for name in _field_names(kind)
        )
        connection.execute(
            f"CREATE TABLE raw.{_quoted(kind)} ({columns}, segment BIGINT, trace_id VARCHAR)"
        )


def load_segment(
    connection: duckdb.DuckDBPyConnection, path: Path, number: int = 1, trace_id: str = ""
) -> None:
    """Append one segment to the tables.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where :func:`create_tables` was called.
    path : Path
        A file of JSON lines, plain or compressed; what it holds decides, not its name.
    number, trace_id
        What to call the segment if its header is missing.

    Raises
    ------
    NotATrace
        If the file cannot be read at all.
    SchemaTooNew
        If it was recorded with a newer major version of the schema.
    """
    with TemporaryDirectory(prefix="roast-") as scratch:
        source, census = _open(connection, path, Path(scratch))
        _Segment(connection, path, source, census).load(number, trace_id)


class _Source:
    """A readable file of lines, as SQL sees it."""

    def __init__(self, path: Path, compression: str) -> None:
        self._path = path
        self._compression = compression

    def read(self, columns: dict[str, str]) -> tuple[str, dict[str, str]]:
        """Give an SQL table function and its parameters; a bad line is a row of NULLs."""
        types = ", ".join(f"{_quoted(name)}: '{type_}'" for name, type_ in columns.items())
        return (
            f"read_json($path, format = 'newline_delimited', columns = {{{types}}}, "
            "compression = $compression, ignore_errors = true)",
            {"path": _literal_glob(self._path), "compression": self._compression},
        )


def _open(
    connection: duckdb.DuckDBPyConnection, path: Path, scratch: Path
) -> tuple[_Source, _Census]:
    """Look at a file for the first time; rescue what can be, if DuckDB cannot read it."""
    try:
        source = _Source(path, compression_of(path))
        return source, _census(connection, source)
    except OSError as error:
        raise NotATrace(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except duckdb.Error:
        rescued = scratch / "rescued.jsonl"
        damage = [Damage(*found) for found in salvage(path, rescued)]
        source = _Source(rescued, "uncompressed")
        census = _census(connection, source)
        census.damage += damage
        return source, census


def _census(connection: duckdb.DuckDBPyConnection, source: _Source) -> _Census:
    table, parameters = source.read({"kind": "VARCHAR", "t": "DOUBLE"})
    rows = connection.execute(
        f"SELECT kind, count(*), count(t), min(t), max(t) FROM {table} GROUP BY kind "
        "ORDER BY count(*) DESC, kind",
        parameters,
    ).fetchall()
    census = _Census(
        records_by_kind={kind: n for kind, n, *_ in rows if kind is not None},
        start_t=min((row[3] for row in rows if row[0] in kinds() and row[2]), default=None),
        stop_t=max((row[4] for row in rows if row[0] in kinds() and row[2]), default=None),
        unreadable=sum(n for kind, n, *_ in rows if kind is None),
    )
    if census.unreadable:
        census.damage += _unreadable_lines(connection, source, census.unreadable)
    unknown = [(kind, n) for kind, n in census.records_by_kind.items() if kind not in kinds()]
    census.damage += _unknown_kinds(unknown)
    return census


def _unreadable_lines(
    connection: duckdb.DuckDBPyConnection, source: _Source, count: int
) -> Iterator[Damage]:
    table, parameters = source.read({"kind": "VARCHAR"})
    first, last, lines = connection.execute(
        "SELECT min(line) FILTER (kind IS NULL), max(line) FILTER (kind IS NULL), max(line) "
        f"FROM (SELECT kind, row_number() OVER () AS line FROM {table})",
        parameters,
    ).fetchall()[0]
    if last == lines:
        yield Damage("last line unreadable", 1, f"line {last}: the file was cut off, or it is no JSON")
        count -= 1
    if count:
        detail = f"the first is line {first} (blank lines not counted)"
        yield Damage("unreadable lines", count, detail)


def _unknown_kinds(unknown: list[tuple[str, int]]) -> Iterator[Damage]:
    for kind, count in unknown[:UNKNOWN_KINDS_NAMED]:
        yield Damage("unknown kind", count, f"kind {kind[:100]!r}")
    if rest := unknown[UNKNOWN_KINDS_NAMED:]:
        yield Damage("unknown kind", sum(n for _, n in rest), f"{len(rest)} more kinds")


class _Segment:
    """One segment on its way into the tables."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        source: _Source,
        census: _Census,
    ) -> None:
        self._connection = connection
        self._path = path
        self._source = source
        self._census = census
        self._rare = [n for n, count in census.known.items() if count <= ABUNDANT_RECORDS]

    def load(self, number: int, trace_id: str) -> None:
        self._stage_rare_kinds()
        header = self._header()
        self._number = header.get("segment", number)
        self._trace_id = header.get("trace_id", trace_id)
        damage = [*self._census.damage, *_version_damage(self._path, header)]
        damage += [lost for kind in self._census.known if (lost := self._load_kind(kind))]
        self._connection.execute("DROP TABLE rare")
        for found in damage:
            self._write_damage(found)
        self._write_segment(has_header=bool(header))

    def _stage_rare_kinds(self) -> None:
        """Read the kinds with few records together: one pass for all of them."""
        names = {"kind"} | {name for kind in self._rare for name in _all_field_names(kind)}
        columns = {name: duckdb_columns()[name] for name in names}
        table, parameters = self._source.read(columns)
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE rare AS SELECT * FROM {table} "
            "WHERE list_contains($kinds, kind)",
            {**parameters, "kinds": self._rare},
        )

    def _header(self) -> dict[str, Any]:
        if "header" not in self._rare:
            return {}
        rows = self._connection.execute(
            "SELECT trace_id, segment, schema_version FROM rare WHERE kind = 'header' "
            "AND trace_id IS NOT NULL AND segment IS NOT NULL AND schema_version IS NOT NULL "
            "LIMIT 1"
        ).fetchall()
        names = ("trace_id", "segment", "schema_version")
        return dict(zip(names, rows[0], strict=True)) if rows else {}

    def _load_kind(self, kind: str) -> Damage | None:
        """Append the records of a kind; count those without a field that they must have."""
        names = _field_names(kind)
        parameters: dict[str, object] = {}
        table = "rare"
        if kind not in self._rare:
            columns = {name: duckdb_columns()[name] for name in _all_field_names(kind)}
            table, parameters = self._source.read(columns)
        whole = " AND ".join(f"{_quoted(name)} IS NOT NULL" for name in _required_names(kind))
        inserted = self._connection.execute(
            f"INSERT INTO raw.{_quoted(kind)} SELECT {', '.join(map(_quoted, names))}, "
            f"$segment, $trace_id FROM {table} WHERE kind = $kind AND {whole}",
            {
                **parameters,
                "kind": kind,
                "segment": self._number,
                "trace_id": self._trace_id,
            },
        ).fetchall()[0][0]
        missing = self._census.known[kind] - inserted
        if missing <= 0:
            return None
        detail = f"records of kind {kind!r} lack {', '.join(_required_names(kind))} or have it wrong"
        return Damage("incomplete records", missing, detail)

    def _write_damage(self, damage: Damage) -> None:
        self._connection.execute(
            "INSERT INTO raw.damage VALUES (?, ?, ?, ?, ?)",
            [damage.reason, damage.records, damage.detail, self._number, self._trace_id],
        )

    def _write_segment(self, *, has_header: bool) -> None:
        census = self._census
        self._connection.execute(
            "INSERT INTO raw.segments SELECT $path, $has_header, $has_trailer, $records, "
            "map($kinds, $counts), $unreadable, $start_t, $stop_t, $segment, $trace_id",
            {
                "path": str(self._path),
                "has_header": has_header,
                "has_trailer": "trailer" in census.known,
                "records": sum(census.known.values()),
                "kinds": list(census.records_by_kind),
                "counts": list(census.records_by_kind.values()),
                "unreadable": census.unreadable,
                "start_t": census.start_t,
                "stop_t": census.stop_t,
                "segment": self._number,
                "trace_id": self._trace_id,
            },
        )


def _version_damage(path: Path, header: dict[str, Any]) -> Iterator[Damage]:
    if not header:
        yield Damage("no header", 1, "which trace this is and who recorded it is not known")
        return
    version = str(header["schema_version"])
    if not re.fullmatch(r"\d{1,9}\.\d{1,9}", version):
        yield Damage("unknown schema version", None, f"schema version {version[:100]!r}")
        return
    theirs = tuple(map(int, version.split(".")))
    ours = tuple(map(int, SCHEMA_VERSION.split(".")))
    if theirs[0] > ours[0]:
        raise SchemaTooNew(
            f"{str(path)!r} has schema version {version}, this roast reads up to "
            f"{SCHEMA_VERSION}: {INSTALL_COMMAND}"
        )
    if theirs > ours:
        detail = f"schema version {version}, read as {SCHEMA_VERSION}; newer fields are left out"
        yield Damage("newer schema version", None, f"{detail}: {INSTALL_COMMAND}")


def _segments_in(folder: Path) -> list[Path]:
    found = [
        entry
        for entry in folder.iterdir()
        if entry.name.endswith(SUFFIXES) and not entry.name.startswith(".") and entry.is_file()
    ]
    if not found:
        endings = ", ".join(SUFFIXES)
        raise NotATrace(f"no trace lies in the folder {str(folder)!r}; segments end in {endings}")
    return sorted(found, key=_counting_order)


def _counting_order(path: Path) -> list[tuple[int, str]]:
    """Order names as people count: 2 before 10."""
    parts = re.findall(r"\d+|\D+", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _literal_glob(path: Path) -> str:
    """Write a path so that DuckDB, which takes it for a pattern, finds just this file."""
    return re.sub(r"([*?\[])", r"[\1]", str(path.resolve()))


def _field_names(kind: str) -> list[str]:
    ours = ("kind", "segment", "trace_id")
    return [name for name in _all_field_names(kind) if name not in ours]


def _all_field_names(kind: str) -> list[str]:
    return [field.name for field in kinds()[kind].fields]


def _required_names(kind: str) -> list[str]:
    return [field.name for field in kinds()[kind].fields if field.required]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_trace(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Load every segment of a trace into new tables.

    Raises
    ------
    TraceNotFound, NotATrace, SchemaTooNew
    """
    create_tables(connection)
    for number, segment in enumerate(segment_paths(path), start=1):
        load_segment(connection, segment, number, trace_id=trace_name(path))
    _refuse_what_is_no_trace(connection, path)


def trace_name(path: Path) -> str:
    """Give the name of a trace without the ending that says how it is stored."""
    name = path.resolve().name
    ending = next((s for s in sorted(SUFFIXES, key=len)[::-1] if name.endswith(s)), "")
    return name.removesuffix(ending) or name


def _refuse_what_is_no_trace(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    (records, unreadable) = connection.execute(
        "SELECT coalesce(sum(records) FILTER (start_t IS NOT NULL), 0), "
        "coalesce(sum(unreadable), 0) FROM raw.segments"
    ).fetchall()[0]
    if not records and not unreadable:
        raise NotATrace(f"{str(path)!r} is empty; was it recorded?")
    if not records:
        raise NotATrace(
            f"{str(path)!r} is no trace: no line of it is a record; "
            "name a file that roast-record wrote"
        )
    traces = connection.execute(
        "SELECT trace_id, min(path) FROM raw.segments WHERE has_header "
        "GROUP BY trace_id ORDER BY 2"
    ).fetchall()
    if len(traces) > 1:
        raise NotATrace(
            f"{str(path)!r} holds {len(traces)} different traces; name one of them, "
            f"such as {traces[0][1]!r}"
        )
    twice = connection.execute(
        "SELECT segment, min(path), max(path) FROM raw.segments WHERE has_header "
        "GROUP BY segment HAVING count(*) > 1 ORDER BY segment"
    ).fetchall()
    if twice:
        number, one, other = twice[0]
        raise NotATrace(f"segment {number} is there twice, in {one!r} and {other!r}; remove one")
