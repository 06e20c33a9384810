"""Segments of a trace into typed tables.

:func:`load_segment` is a function of one segment alone: it appends the records of a file
to one table per kind in the schema ``raw``, in the order of the file (``rowid`` keeps it),
one row to ``raw.segments`` and, for every way in which the file is damaged, one row to
``raw.damage``. Nothing is left out without being counted there.

The table of a kind has the fields that :mod:`roast_schemas.records` declares, but for
``kind``, and then ``segment`` and ``trace_id``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from roast_analyze.damage import Damage
from roast_analyze.errors import INSTALL_COMMAND, NotATrace, SchemaTooNew, TraceNotFound
from roast_analyze.segment import Segment, quoted
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

#: Names of the files that a folder is searched for.
SUFFIXES = (".jsonl", ".jsonl.zst", ".jsonl.gz")

#: A kind with more records than this is read from the file by itself, at the price of one
#: more pass over it: DuckDB then parses only the fields of that kind. The others are read
#: in one pass together, into a table as wide as all of them. On a trace of 1.5 GB and
#: 5 million transitions this takes half the time, and a quarter of the memory, of reading
#: everything at once.
ABUNDANT_RECORDS = 50_000

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
class Identity:
    """What a segment is a part of: trace and place in it."""

    trace_id: str
    segment: int


def read_trace(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Load every segment of a trace into new tables.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    path : Path
        A file, or a folder of segments whose names count up.

    Raises
    ------
    TraceNotFound, NotATrace, SchemaTooNew
        As :mod:`roast_analyze.errors` tells them apart.
    """
    create_tables(connection)
    with TemporaryDirectory(prefix="roast-") as scratch:
        segments = [
            Segment(connection, segment, Path(scratch) / f"{number}.jsonl")
            for number, segment in enumerate(segment_paths(path))
        ]
        _refuse_what_is_no_trace(path, segments)
        full = [segment for segment in segments if segment.census.lines]
        for segment, identity in zip(full, _identities(path, full), strict=True):
            load_segment(connection, segment, identity)
        for segment in segments:
            if not segment.census.lines:
                _write_empty(connection, segment, identity.trace_id)


def segment_paths(path: Path) -> list[Path]:
    """List the segments of a trace, in order.

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
    except OSError as error:
        raise NotATrace(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if exists:
        raise NotATrace(f"{str(path)!r} is neither a file nor a folder; name a trace")
    raise TraceNotFound(f"there is no {str(path)!r}; name a trace file or a folder of segments")


def trace_name(path: Path) -> str:
    """Give the name of a trace without the ending that says how it is stored."""
    name = path.absolute().name
    ending = next((s for s in sorted(SUFFIXES, key=len)[::-1] if name.endswith(s)), "")
    return name.removesuffix(ending) or name


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the empty tables that :func:`load_segment` fills."""
    connection.execute(_TABLES)
    for kind in kinds():
        columns = ", ".join(
            f"{quoted(name)} {duckdb_columns()[name]}" for name in _table_columns(kind)
        )
        connection.execute(
            f"CREATE TABLE raw.{quoted(kind)} ({columns}, segment BIGINT, trace_id VARCHAR)"
        )


def load_segment(
    connection: duckdb.DuckDBPyConnection, segment: Segment, identity: Identity
) -> None:
    """Append one segment to the tables.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where :func:`create_tables` was called.
    segment : Segment
    identity : Identity
        What the segment is a part of.

    Raises
    ------
    SchemaTooNew
        If it was recorded with a newer major version of the schema.
    """
    damage = [*segment.census.damage, *_header_damage(segment)]
    loading = _Loading(connection, segment, identity)
    damage += loading.load_kinds()
    loading.write_segment()
    for found in damage:
        loading.write_damage(found)


class _Loading:
    """One segment on its way into the tables."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, segment: Segment, identity: Identity
    ) -> None:
        self._connection = connection
        self._segment = segment
        self._identity = identity
        self._known = segment.census.known
        self._rare = [kind for kind, n in self._known.items() if n <= ABUNDANT_RECORDS]

    def load_kinds(self) -> Iterator[Damage]:
        self._stage_rare_kinds()
        for kind in self._known:
            yield from self._load_kind(kind)
        self._connection.execute("DROP TABLE rare")

    def _stage_rare_kinds(self) -> None:
        names = {"kind"} | {name for kind in self._rare for name in _field_names(kind)}
        table, parameters = self._segment.rows({n: duckdb_columns()[n] for n in sorted(names)})
        self._connection.execute(
            f"CREATE TEMP TABLE rare AS FROM {table} WHERE list_contains($kinds, kind)",
            {**parameters, "kinds": self._rare},
        )

    def _load_kind(self, kind: str) -> Iterator[Damage]:
        """Append the records of a kind; count those without a field that they must have."""
        parameters: dict[str, object] = {}
        table = "rare"
        if kind not in self._rare:
            columns = {name: duckdb_columns()[name] for name in _field_names(kind)}
            table, parameters = self._segment.rows(columns)
        inserted = self._connection.execute(
            # Only names of the schema's own declarations are written into the text.
            f"INSERT INTO raw.{quoted(kind)} "  # noqa: S608
            f"SELECT {', '.join(map(quoted, _table_columns(kind)))}, $segment, $trace_id "
            f"FROM {table} WHERE kind = $kind AND {_is_whole(kind)}",
            {**parameters, "kind": kind, **vars(self._identity)},
        ).fetchall()[0][0]
        if (incomplete := self._known[kind] - inserted) > 0:
            required = ", ".join(_required_names(kind))
            detail = f"kind {kind!r} needs {required}"
            yield Damage("incomplete records", incomplete, detail)

    def write_damage(self, damage: Damage) -> None:
        self._connection.execute(
            "INSERT INTO raw.damage VALUES ($reason, $records, $detail, $segment, $trace_id)",
            {**vars(damage), **vars(self._identity)},
        )

    def write_segment(self) -> None:
        census = self._segment.census
        self._connection.execute(
            "INSERT INTO raw.segments SELECT $path, $has_header, $has_trailer, $records, "
            "map($kinds, $counts), $unreadable, $start_t, $stop_t, $segment, $trace_id",
            {
                "path": str(self._segment.path),
                "has_header": self._segment.header is not None,
                "has_trailer": "trailer" in self._known,
                "records": sum(self._known.values()),
                "kinds": list(census.records_by_kind),
                "counts": list(census.records_by_kind.values()),
                "unreadable": census.unreadable,
                "start_t": census.start_t,
                "stop_t": census.stop_t,
                **vars(self._identity),
            },
        )


def _write_empty(
    connection: duckdb.DuckDBPyConnection, segment: Segment, trace_id: str
) -> None:
    """Count a file without a line; nobody knows which segment it is, or whether it is one."""
    detail = "; ".join(
        [f"{segment.path.name} is empty", *(d.detail for d in segment.census.damage)]
    )
    connection.execute(
        "INSERT INTO raw.damage VALUES ('empty file', NULL, $detail, NULL, $trace_id)",
        {"detail": detail, "trace_id": trace_id},
    )


def _header_damage(segment: Segment) -> Iterator[Damage]:
    if segment.header is None:
        yield Damage("no header", None, "what recorded it, and with which settings, is lost")
        return
    version = segment.header.schema_version
    if not re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", version):
        yield Damage("unknown schema version", None, f"{version[:100]!r} is no version")
        return
    theirs, ours = (tuple(map(int, v.split("."))) for v in (version, SCHEMA_VERSION))
    if theirs[0] > ours[0]:
        raise SchemaTooNew(
            f"{str(segment.path)!r} has schema version {version}, but this roast reads up to "
            f"{SCHEMA_VERSION}; upgrade it: {INSTALL_COMMAND}"
        )
    if theirs[0] < ours[0]:
        detail = f"version {version} read as {SCHEMA_VERSION}: what has moved is not found"
        yield Damage("older schema version", None, detail)
    elif theirs > ours:
        detail = f"version {version} read as {SCHEMA_VERSION}; upgrade: {INSTALL_COMMAND}"
        yield Damage("newer schema version", None, detail)


def _identities(path: Path, segments: list[Segment]) -> Iterator[Identity]:
    """Tell what the segments are; one without header goes with its neighbours."""
    headers = [segment.header for segment in segments if segment.header]
    trace_id = headers[0].trace_id if headers else trace_name(path)
    number = 0
    for segment in segments:
        number = segment.header.segment if segment.header else number + 1
        yield Identity(trace_id, number)


def _segments_in(folder: Path) -> list[Path]:
    found = [
        entry
        for entry in folder.iterdir()
        if entry.name.endswith(SUFFIXES) and not entry.name.startswith(".") and entry.is_file()
    ]
    if not found:
        endings = ", ".join(SUFFIXES)
        raise NotATrace(
            f"no trace lies in the folder {str(folder)!r}; segments end in {endings}"
        )
    return sorted(found, key=_counting_order)


def _counting_order(path: Path) -> list[tuple[int, str]]:
    """Order names as people count: 2 before 10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _refuse_what_is_no_trace(path: Path, segments: list[Segment]) -> None:
    wanted = "name a trace that roast recorded"
    if not any(segment.census.lines for segment in segments):
        raise NotATrace(f"{str(path)!r} is empty; {wanted}")
    if all(segment.census.start_t is None for segment in segments):
        raise NotATrace(f"{str(path)!r} is no trace: no line of it is a record; {wanted}")
    first: dict[tuple[str, int], Segment] = {}
    for segment in segments:
        if segment.header is None:
            continue
        header = segment.header
        if first and header.trace_id not in {trace_id for trace_id, _ in first}:
            raise NotATrace(
                f"{str(path)!r} holds several traces; name one, such as {str(segment.path)!r}"
            )
        earlier = first.setdefault((header.trace_id, header.segment), segment)
        if earlier is not segment:
            raise NotATrace(
                f"segment {header.segment} is there twice: {str(earlier.path)!r} and "
                f"{str(segment.path)!r}; remove one"
            )


def _is_whole(kind: str) -> str:
    there = (f"{quoted(name)} IS NOT NULL" for name in _required_names(kind))
    return " AND ".join([*there, "isfinite(t)"])


def _table_columns(kind: str) -> list[str]:
    apart = ("kind", "segment", "trace_id")
    return [name for name in _field_names(kind) if name not in apart]


def _field_names(kind: str) -> list[str]:
    return [field.name for field in kinds()[kind].fields]


def _required_names(kind: str) -> list[str]:
    return [field.name for field in kinds()[kind].fields if field.required]
