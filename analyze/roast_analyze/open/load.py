"""Segments of a trace into typed tables.

:func:`load_segment` is a function of one segment alone: it appends the records of a file
to one table per kind in the schema ``raw``, in the order of the file (``rowid`` keeps it).
Nothing is left out without being counted: an :class:`Account` says what was read and what
could not be, and :func:`write_accounts` makes rows of ``raw.segments`` and ``raw.damage``
of it.

The table of a kind has the fields that :mod:`roast_schemas.records` declares, but for
``kind``, and then ``segment`` and ``trace_id``.
"""

from __future__ import annotations

import os
import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import duckdb
import orjson

from roast_analyze.errors import INSTALL_COMMAND, NotATrace, first_paragraph
from roast_analyze.open.block_reader import (
    MAX_LINE_BYTES,
    Lines,
    SortedBlock,
    blocks,
    each_line,
    selected,
    sort_lines,
    without_blank_lines,
)
from roast_analyze.open.checksum import Checksum
from roast_analyze.open.damage import Damage
from roast_analyze.open.decompress import Breaks, Content
from roast_analyze.open.segment import Segment, schema_versions
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from roast_analyze.open.discover import Identity, LeftOut, Part

_Item = TypeVar("_Item")

#: Unknown kinds beyond so many are counted together.
UNKNOWN_KINDS_NAMED: Final = 20

#: Errors that what stands in a file can be the cause of.
_OF_A_LINE: Final = (duckdb.DataError, duckdb.InvalidInputException)

#: Two thirds of the records of a trace are of this kind.
_MOST_ABUNDANT: Final = "transition"

#: Most of what is written are keys, each a few times: packed without trying each way to.
_COMPRESSED: Final = {"key": "USING COMPRESSION zstd"}

#: Name of a table with lines of any kind.
_STAGED: Final = "staged"

#: Since this version of the schema a trailer tells the checksum of its segment.
_WITH_CHECKSUMS: Final = (2, 1)

#: The kernel takes no more pieces than this in one call.
_PIECES_AT_ONCE: Final = 1024

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


@dataclass
class Account:
    """What was read of a segment so far, and what could not be.

    Parameters
    ----------
    lines : int
        Lines that are not blank.
    records_by_kind : dict of str to int
        Lines that name a kind, known or not.
    incomplete : dict of str to int
        Records among them without a field that their kind must have.
    unreadable : int
        Lines that are no JSON, or name no kind.
    first_unreadable, last_unreadable : int or None
        Numbers of such lines, from 1.
    too_long : int
        Lines that are longer than any record.
    breaks : Breaks
        Where the compression is broken.
    checksum : Checksum
        Of all that was read.
    """

    lines: int = 0
    records_by_kind: dict[str, int] = field(default_factory=dict)
    incomplete: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    first_unreadable: int | None = None
    last_unreadable: int | None = None
    too_long: int = 0
    breaks: Breaks = field(default_factory=Breaks)
    checksum: Checksum = field(default_factory=Checksum)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Account:
        """Make one of what :func:`dataclasses.asdict` gave."""
        breaks, checksum = Breaks(**values["breaks"]), Checksum(**values["checksum"])
        return cls(**{**values, "breaks": breaks, "checksum": checksum})

    @property
    def whole_records(self) -> int:
        """Records of known kinds that have what they must have."""
        known = sum(n for kind, n in self.records_by_kind.items() if kind in kinds())
        return known - sum(self.incomplete.values())

    def damage(self) -> Iterator[Damage]:
        """Say in words how the segment is not whole."""
        yield from self.breaks.damage()
        if self.too_long:
            detail = f"longer than {MAX_LINE_BYTES // 2**20} MiB, which no record is"
            yield Damage("overlong lines", self.too_long, detail)
        count = self.unreadable
        if count and self.last_unreadable == self.lines:
            detail = f"line {self.last_unreadable}; the file was cut off there"
            yield Damage("last line unreadable", 1, detail)
            count -= 1
        if count:
            detail = f"the first is line {self.first_unreadable}, not counting blank lines"
            yield Damage("unreadable lines", count, detail)
        yield from self._unknown_kinds()
        for kind, records in sorted(self.incomplete.items()):
            detail = f"kind {kind!r} needs {', '.join(_required_names(kind))}"
            yield Damage("incomplete records", records, detail)

    def _unknown_kinds(self) -> Iterator[Damage]:
        unknown = [
            (kind, n)
            for kind, n in sorted(
                self.records_by_kind.items(), key=lambda item: (-item[1], item[0])
            )
            if kind not in kinds()
        ]
        for kind, count in unknown[:UNKNOWN_KINDS_NAMED]:
            yield Damage("unknown kind", count, f"kind '{kind[:100]}'")
        if rest := unknown[UNKNOWN_KINDS_NAMED:]:
            yield Damage("unknown kind", sum(n for _, n in rest), f"{len(rest)} more kinds")


@dataclass(frozen=True)
class Progress:
    """How far a segment was read, so that reading can go on when it has grown.

    Parameters
    ----------
    place : int
        Where reading can begin again.
    account : Account
        Of what comes before that place.
    rows_behind : int
        Rows of what was read behind that place: a line or frame that was cut. With any,
        reading cannot go on: they would be there twice, and rows that are removed change
        the places of others, which tables tell apart by.
    """

    place: int = 0
    account: Account = field(default_factory=Account)
    rows_behind: int = 0

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """Make one of what :func:`dataclasses.asdict` gave."""
        return cls(values["place"], Account.from_dict(values["account"]), values["rows_behind"])


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the empty tables that :func:`load_segment` fills."""
    connection.execute(_TABLES)
    for kind in kinds():
        columns = ", ".join(
            f"{quoted(name)} {duckdb_columns()[name]} {_COMPRESSED.get(name, '')}"
            for name in _table_columns(kind)
        )
        connection.execute(
            f"CREATE TABLE raw.{quoted(kind)} ({columns}, segment BIGINT, trace_id VARCHAR)"
        )


def load_segment(
    connection: duckdb.DuckDBPyConnection,
    segment: Segment,
    identity: Identity,
    begin: Progress,
    report: Callable[[int], None],
) -> tuple[Account, Progress]:
    """Append one segment, or what it has grown by, to the tables.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where :func:`create_tables` was called; no transaction is open.
    segment : Segment
    identity : Identity
        What the segment is a part of.
    begin : Progress
        How far it was read before.
    report : callable
        Is told now and then how many bytes of the file have been read.

    Returns
    -------
    Account
        What was read of all of it.
    Progress
        From where to go on when it has grown.

    Raises
    ------
    NotATrace
        If the file cannot be read.
    duckdb.Error
        If there is no room on the disk, or in memory.
    """
    try:
        return _load(connection, segment, identity, begin, report, each_line_checked=False)
    except _OF_A_LINE:
        # A line that DuckDB neither reads nor passes over; which one, it does not say.
        pass
    try:
        return _load(connection, segment, identity, begin, report, each_line_checked=True)
    except _OF_A_LINE as error:
        raise NotATrace(
            f"{str(segment.path)!r} cannot be read: {first_paragraph(error)}"
        ) from None


def write_accounts(
    connection: duckdb.DuckDBPyConnection,
    accounts: Iterable[tuple[Part, Account]],
    left_out: Iterable[LeftOut],
) -> None:
    """Fill ``raw.segments`` and ``raw.damage``, in place of what was there.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where all of the segments are loaded.
    accounts : iterable of (Part, Account)
    left_out : iterable of LeftOut
    """
    connection.execute("DELETE FROM raw.segments; DELETE FROM raw.damage")
    extents = _extents(connection)
    for part, account in accounts:
        known = {kind: n for kind, n in account.records_by_kind.items() if kind in kinds()}
        identity = part.identity
        start_t, stop_t = extents.get((identity.trace_id, identity.segment), (None, None))
        connection.execute(
            "INSERT INTO raw.segments SELECT $path, $has_header, $has_trailer, $records, "
            "map($kinds, $counts), $unreadable, $start_t, $stop_t, $segment, $trace_id",
            {
                "path": str(part.segment.path),
                "has_header": part.segment.header is not None,
                "has_trailer": "trailer" in known,
                "records": sum(known.values()),
                "kinds": list(account.records_by_kind),
                "counts": list(account.records_by_kind.values()),
                "unreadable": account.unreadable,
                "start_t": start_t,
                "stop_t": stop_t,
                **vars(identity),
            },
        )
        damage = list(account.damage()) or list(_checksum_damage(part.segment, account))
        damage += account.checksum.import_damage()
        for found in (*damage, *_header_damage(part.segment)):
            _write_damage(connection, found, **vars(identity))
    for file in left_out:
        _write_damage(connection, file.damage, file.trace_id, file.segment)


def _extents(
    connection: duckdb.DuckDBPyConnection,
) -> dict[tuple[str, int], tuple[float | None, float | None]]:
    """Find the first and last instant of each segment."""
    tables = " UNION ALL ".join(
        f"SELECT trace_id, segment, min(t) AS start_t, max(t) AS stop_t "  # noqa: S608
        f"FROM raw.{quoted(kind)} GROUP BY ALL"
        for kind in kinds()
    )
    rows = connection.execute(
        f"SELECT trace_id, segment, min(start_t), max(stop_t) FROM ({tables}) GROUP BY ALL"  # noqa: S608
    ).fetchall()
    return {(trace_id, segment): (start, stop) for trace_id, segment, start, stop in rows}


def _write_damage(
    connection: duckdb.DuckDBPyConnection, damage: Damage, trace_id: str, segment: int | None
) -> None:
    connection.execute(
        "INSERT INTO raw.damage VALUES ($reason, $records, $detail, $segment, $trace_id)",
        {**vars(damage), "segment": segment, "trace_id": trace_id},
    )


def quoted(name: str) -> str:
    """Write a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _load(
    connection: duckdb.DuckDBPyConnection,
    segment: Segment,
    identity: Identity,
    begin: Progress,
    report: Callable[[int], None],
    *,
    each_line_checked: bool,
) -> tuple[Account, Progress]:
    place, account_there = begin.place, begin.account
    account = deepcopy(begin.account)
    with (
        segment.path.open("rb", buffering=0) as file,
        TemporaryDirectory(prefix="roast-") as scratch,
        _Loading(connection, identity, account, Path(scratch), each_line_checked) as loading,
    ):
        content = Content(
            file, segment.compression, place, segment.nbytes, replace(account.breaks)
        )
        checksum = replace(account.checksum)
        ends_there = True  # what was loaded so far ends at a place where reading can go on
        for read in _one_ahead(_read_blocks(content, checksum)):
            if ends_there and read.end is None:
                account_there, ends_there = loading.settled_account(), False
            loading.load(read.lines)
            account.breaks, account.checksum = read.breaks, read.checksum
            if read.end is not None:
                place, ends_there = read.end, True
            report(read.place)
        if ends_there:
            account_there = loading.settled_account()
        loading.settle()
        account.breaks = content.breaks
    return account, Progress(place, account_there, loading.rows)


@dataclass(frozen=True)
class _ReadBlock:
    """A block, taken apart, and how far the file was read when it came.

    Parameters
    ----------
    lines : SortedBlock
    end : int or None
        As :class:`roast_analyze.open.block_reader.Block` has it.
    place : int
        How far the file was read.
    breaks : Breaks
        Where its compression was broken so far.
    checksum : Checksum
        Of all that was read so far.
    """

    lines: SortedBlock
    end: int | None
    place: int
    breaks: Breaks
    checksum: Checksum


def _read_blocks(content: Content, checksum: Checksum) -> Iterator[_ReadBlock]:
    for block in blocks(content, anywhere=content.compression == "uncompressed"):
        place = content.file.tell()
        lines = sort_lines(block)
        checksum.add(block.data, *map(lines.places, ("trailer", "import")))
        yield _ReadBlock(lines, block.end, place, replace(content.breaks), replace(checksum))


def _one_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Give items while a thread makes the next one: DuckDB leaves Python's lock to it."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let what is done meanwhile be done at once: each statement alone waits for the disk."""
    connection.begin()
    try:
        yield
    except BaseException:
        # DuckDB has ended a transaction in which something failed.
        with suppress(duckdb.Error):
            connection.rollback()
        raise
    connection.commit()


class _Loading:
    """Blocks of one segment on their way into the tables.

    Records of the most abundant kind go their own lane, beside all others: a table is
    appended to by one thread at a time. That lane may be a block behind. All that is loaded
    is there at the end, or nothing.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        identity: Identity,
        account: Account,
        scratch: Path,
        each_line_checked: bool,
    ) -> None:
        self._account = account
        self._each_line_checked = each_line_checked
        self._beside = _Lane(_sibling(connection), scratch / "abundant.jsonl", identity)
        self._main = _Lane(connection, scratch / "others.jsonl", identity)
        self._appending: deque[tuple[Lines, Future[int]]] = deque()
        #: Rows that were appended since :meth:`settled_account`.
        self.rows = 0

    def __enter__(self) -> Self:
        self._held = ExitStack()
        self._held.enter_context(closing(self._beside.connection))
        for lane in (self._beside, self._main):
            self._held.enter_context(transaction(lane.connection))
        self._thread = self._held.enter_context(ThreadPoolExecutor(max_workers=1))
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.__exit__(*exception)  # type: ignore[arg-type]

    def load(self, found: SortedBlock) -> None:
        """Append the records of a block, and count what cannot be.

        The block must stay as it is until the one after it is loaded, or all is settled.
        """
        account = self._account
        by_kind = {
            kind: self._readable(kind, replace(lines, numbers=lines.numbers + account.lines))
            for kind, lines in found.by_kind.items()
        }
        account.lines += found.lines
        account.too_long += found.too_long
        mixed = by_kind.pop(None, None)
        if abundant := by_kind.pop(_MOST_ABUNDANT, None):
            appended = self._thread.submit(self._beside.append, _MOST_ABUNDANT, abundant)
            self._appending.append((abundant, appended))
        for kind, lines in by_kind.items():
            if kind is not None:
                self._count(kind, lines, self._main.append(kind, lines))
        if mixed:
            self._load_mixed(mixed)
        self._settle_but(1)

    def settle(self) -> None:
        """Wait until all that was loaded is in the tables, and counted."""
        self._settle_but(0)

    def _settle_but(self, blocks_behind: int) -> None:
        while len(self._appending) > blocks_behind:
            lines, appended = self._appending.popleft()
            self._count(_MOST_ABUNDANT, lines, appended.result())

    def settled_account(self) -> Account:
        """Give a copy of what was read, and count rows from here on."""
        self.settle()
        self.rows = 0
        return deepcopy(self._account)

    def _readable(self, kind: str | None, lines: Lines) -> Lines:
        if kind is None:
            lines = without_blank_lines(lines)
        return self._without_unreadable_lines(lines) if self._each_line_checked else lines

    def _count(self, kind: str, lines: Lines, appended: int) -> None:
        """Count lines that begin as records of a kind do, of which the whole ones are there."""
        self.rows += appended
        if appended < len(lines.numbers):
            self._load_mixed(lines, but=kind)
        else:
            _add(self._account.records_by_kind, kind, appended)

    def _load_mixed(self, lines: Lines, but: str | None = None) -> None:
        """Append lines of any kind, of which the whole ones of a kind are there already."""
        if not lines.nbytes:
            return
        self.settle()
        with self._main.staged(lines) as counts, self._beside.staged(lines):
            for kind, records in counts:
                _add(self._account.records_by_kind, kind, records)
                if kind not in kinds():
                    continue
                lane = self._beside if kind == _MOST_ABUNDANT else self._main
                if kind == but:
                    whole = lane.count_whole(kind)
                else:
                    whole = lane.insert(kind, _STAGED)
                    self.rows += whole
                _add(self._account.incomplete, kind, records - whole)
            for place in self._main.unreadable_places():
                self._note_unreadable(int(lines.numbers[place]))

    def _without_unreadable_lines(self, lines: Lines) -> Lines:
        """Leave out lines that are no JSON object with a kind, and count them."""
        readable = [_is_record(line) for line in each_line(lines)]
        for number, kept in zip(lines.numbers.tolist(), readable, strict=True):
            if not kept:
                self._note_unreadable(number)
        return selected(lines, readable)

    def _note_unreadable(self, place: int) -> None:
        account = self._account
        number = place + 1
        account.unreadable += 1
        account.first_unreadable = min(account.first_unreadable or number, number)
        account.last_unreadable = max(account.last_unreadable or number, number)


class _Lane:
    """A connection that appends records, and the file through which it is given them."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, path: Path, identity: Identity
    ) -> None:
        self.connection = connection
        self._path = path
        self._identity = identity

    def append(self, kind: str, lines: Lines) -> int:
        """Append the whole records of a kind among some lines; give their number."""
        if not lines.nbytes:
            return 0
        return self.insert(kind, *self._table(lines, _field_names(kind)))

    def insert(self, kind: str, table: str, parameters: dict[str, object] | None = None) -> int:
        """Append the whole records of a kind of a table; give their number."""
        inserted: int = self.connection.execute(
            # Only names of the schema's own declarations are written into the text.
            f"INSERT INTO raw.{quoted(kind)} "  # noqa: S608
            f"SELECT {', '.join(map(quoted, _table_columns(kind)))}, $segment, $trace_id "
            f"FROM {table} WHERE kind = $kind AND {_is_whole(kind)}",
            {**(parameters or {}), "kind": kind, **vars(self._identity)},
        ).fetchall()[0][0]
        return inserted

    @contextmanager
    def staged(self, lines: Lines) -> Iterator[list[tuple[str, int]]]:
        """Hold lines of any kind in a table for a while; give the records of each kind."""
        names = {name for kind in kinds() for name in _field_names(kind)}
        table, parameters = self._table(lines, sorted(names))
        self.connection.execute(f"CREATE TEMP TABLE {_STAGED} AS FROM {table}", parameters)
        yield self.connection.execute(
            f"SELECT kind, count(*) FROM {_STAGED} WHERE kind IS NOT NULL GROUP BY kind"  # noqa: S608
        ).fetchall()
        self.connection.execute(f"DROP TABLE {_STAGED}")

    def count_whole(self, kind: str) -> int:
        """Count the whole records of a kind among the lines that are held."""
        count: int = self.connection.execute(
            f"SELECT count(*) FROM {_STAGED} WHERE kind = $kind AND {_is_whole(kind)}",  # noqa: S608
            {"kind": kind},
        ).fetchall()[0][0]
        return count

    def unreadable_places(self) -> list[int]:
        """Give the places, from 0, of the lines that are held and are no records."""
        rows = self.connection.execute(
            "SELECT place FROM "  # noqa: S608
            f"(SELECT kind, row_number() OVER () - 1 AS place FROM {_STAGED}) "
            "WHERE kind IS NULL ORDER BY place"
        ).fetchall()
        return [place for (place,) in rows]

    def _table(self, lines: Lines, names: list[str]) -> tuple[str, dict[str, object]]:
        """Give lines as an SQL table function, and its parameters.

        A field that a line lacks, or has in another type, is null; a line that cannot be
        read is a row of nulls.
        """
        # Written over, not anew: the pages of the file are there already.
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            for begin in range(0, len(lines.runs), _PIECES_AT_ONCE):
                _write_all(file, lines.runs[begin : begin + _PIECES_AT_ONCE])
            os.ftruncate(file, lines.nbytes)
        finally:
            os.close(file)
        types = ", ".join(f"{quoted(name)}: '{duckdb_columns()[name]}'" for name in names)
        sql = (
            f"read_json($path, format = 'newline_delimited', columns = {{{types}}}, "
            "records = true, compression = 'uncompressed', ignore_errors = true)"
        )
        # DuckDB takes a path for a pattern; each special sign in brackets means itself.
        return sql, {"path": re.sub(r"([*?\[])", r"[\1]", str(self._path))}


def _sibling(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Make a connection to the same database."""
    [(name,)] = connection.execute("SELECT current_database()").fetchall()
    sibling = connection.cursor()
    sibling.execute(f"USE {quoted(name)}")
    return sibling


def _write_all(file: int, pieces: list[memoryview]) -> None:
    """Write pieces one after another; the kernel may take fewer bytes than it is given."""
    written = os.writev(file, pieces)
    for piece in pieces:
        if written >= len(piece):
            written -= len(piece)
            continue
        rest = piece[written:]
        while rest:
            rest = rest[os.write(file, rest) :]
        written = 0


def _is_record(line: bytes) -> bool:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(record, dict) and isinstance(record.get("kind"), str)


def _add(counts: dict[str, int], name: str, count: int) -> None:
    if count:
        counts[name] = counts.get(name, 0) + count


def _header_damage(segment: Segment) -> Iterator[Damage]:
    if segment.header is None:
        yield Damage("no header", None, "what recorded it, and with which settings, is lost")
        return
    version = segment.header.schema_version
    versions = schema_versions(version)
    if versions is None:
        yield Damage("unknown schema version", None, f"{version[:100]!r} is no version")
        return
    theirs, ours = versions
    if theirs[0] < ours[0]:
        detail = f"version {version} read as {SCHEMA_VERSION}: what has moved is not found"
        yield Damage("older schema version", None, detail)
    elif theirs > ours:
        detail = f"version {version} read as {SCHEMA_VERSION}; upgrade: {INSTALL_COMMAND}"
        yield Damage("newer schema version", None, detail)


def _checksum_damage(segment: Segment, account: Account) -> Iterator[Damage]:
    """Say that a segment does not hold what was written, if its trailer can tell.

    That is news only if nothing else was found.
    """
    versions = schema_versions(segment.header.schema_version) if segment.header else None
    if account.checksum.is_as_said is False:
        detail = "the checksum in the trailer is another one: any value may have changed"
        yield Damage("changed content", None, detail)
    elif (
        account.checksum.is_as_said is None
        and "trailer" in account.records_by_kind
        and versions is not None
        and versions[0] >= _WITH_CHECKSUMS
    ):
        detail = "the trailer has lost its checksum: any value may have changed"
        yield Damage("changed content", None, detail)


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
