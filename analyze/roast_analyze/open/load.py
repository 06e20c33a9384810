"""Loading of segments into typed tables.

:func:`load_segment` appends the records of one file to one table per kind in the schema
``raw``, in the order of the file, which ``rowid`` preserves. Everything that is not loaded is
counted in an :class:`~roast_analyze.open.account.Account`.

A segment is first read strictly: every line begins as the recorder writes it, and has all
required fields and valid values (:mod:`roast_analyze.open.valid_values`). If any does not, the
segment is read again. Parts of it in which some line does not are read with loose types, which
takes longer, counts what is not valid, and replaces it by null.
"""

from __future__ import annotations

import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import duckdb

from roast_analyze.open.account import Account, Progress, required_names
from roast_analyze.open.block_reader import GroupedLines, Lines, group_lines, read_blocks
from roast_analyze.open.decompress import Content, open_for_content
from roast_analyze.open.tables import OWN_COLUMNS, field_names, quoted, transaction
from roast_analyze.open.valid_values import cleaned, condition, invalid, loose_type
from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from roast_analyze.open.checksum import Checksum
    from roast_analyze.open.decompress import Breaks
    from roast_analyze.open.discover import Identity, Segment

_Item = TypeVar("_Item")

#: Two thirds of the records of a trace have this kind.
_MOST_FREQUENT: Final = "transition"

#: Temporary table for lines of mixed kinds.
_STAGED: Final = "staged"

#: Size of a write to a file for DuckDB.
_WRITE_BYTES: Final = 2**20

#: Lines that are read with loose types at a time: nested values take 160 times their bytes.
_LOOSE_BYTES: Final = 256 * 2**10


class _NotStrictError(Exception):
    """A line of a known kind is not as the recorder writes it."""


def load_segment(
    connection: duckdb.DuckDBPyConnection,
    segment: Segment,
    begin: Progress,
    report: Callable[[int], None],
) -> tuple[Account, Progress]:
    """Append a segment, or what was added to it since `begin`, to the tables.

    The connection must have no open transaction. `report` is called with the number of bytes of
    the file that have been read. Returns the account of the whole segment, and where to
    continue when it has grown. Raises duckdb.Error if memory or disk space runs out.
    """
    try:
        return _load_segment(connection, segment, begin, report, strict=True)
    except (_NotStrictError, duckdb.InvalidInputException):
        return _load_segment(connection, segment, begin, report, strict=False)


def _load_segment(
    connection: duckdb.DuckDBPyConnection,
    segment: Segment,
    begin: Progress,
    report: Callable[[int], None],
    *,
    strict: bool,
) -> tuple[Account, Progress]:
    offset, account_there = begin.offset, begin.account
    account = deepcopy(begin.account)
    [(database,)] = connection.execute("SELECT current_database()").fetchall()
    # A cursor is a separate connection, which begins in the default database.
    second = connection.cursor()
    second.execute(f"USE {quoted(database)}")
    with (
        open_for_content(segment.path) as file,
        TemporaryDirectory(prefix="roast-") as folder,
        closing(second),
        transaction(second),
        transaction(connection),
        ThreadPoolExecutor(max_workers=1) as thread,
    ):
        frequent = _Lane(second, Path(folder) / "frequent.jsonl", segment.identity)
        others = _Lane(connection, Path(folder) / "others.jsonl", segment.identity)
        loader = _Loader(frequent, others, thread, account, strict)
        content = Content(
            file, segment.compression, offset, segment.nbytes, replace(account.breaks)
        )
        can_continue = True  # whether reading can continue after what was loaded
        for read in _one_ahead(_read(content, replace(account.checksum))):
            if can_continue and read.end is None:
                account_there, can_continue = loader.settled_account(), False
            loader.load(read.lines)
            account.breaks, account.checksum = read.breaks, read.checksum
            if read.end is not None:
                offset, can_continue = read.end, True
            report(read.offset)
        if can_continue:
            account_there = loader.settled_account()
        loader.settle()
        account.breaks = content.breaks
    return account, Progress(offset, account_there, loader.rows, content.digest)


class _Read(NamedTuple):
    """The lines of a block, and the state of reading after it."""

    lines: GroupedLines
    end: int | None  # where reading can continue, as in Block
    offset: int  # in the file, up to which it was read
    breaks: Breaks
    checksum: Checksum


def _read(content: Content, checksum: Checksum) -> Iterator[_Read]:
    for block in read_blocks(content, anywhere=content.compression == "uncompressed"):
        offset = content.file.tell()
        lines = group_lines(block)
        checksum.add(block.data, lines.by_kind)
        yield _Read(lines, block.end, offset, replace(content.breaks), replace(checksum))


def _one_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield items while a thread produces the next one; DuckDB releases Python's lock."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item


@dataclass
class _Loader:
    """Loads the blocks of one segment: all of them, or none.

    Only one thread can append to a table at a time. So records of the most frequent kind have
    their own lane, which may be one block behind the lane of all other kinds.
    """

    frequent: _Lane
    others: _Lane
    thread: ThreadPoolExecutor
    account: Account
    strict: bool
    rows: int = 0  # appended since :meth:`settled_account`
    pending: deque[tuple[int, Future[int]]] = field(default_factory=deque)

    def load(self, found: GroupedLines) -> None:
        """Append the records of a block, and count the lines that are not records."""
        account = self.account
        by_kind = {
            kind: lines._replace(numbers=lines.numbers + account.lines)
            for kind, lines in found.by_kind.items()
        }
        account.lines += found.lines
        account.too_long += found.too_long
        if self.strict:
            self._load_strictly(by_kind)
        else:
            for kind, lines in by_kind.items():
                self._load_carefully(kind, lines)

    def _load_strictly(self, by_kind: dict[str | None, Lines]) -> None:
        """Append the records of known kinds; raise an error if any is not valid."""
        mixed = by_kind.pop(None, None)
        if frequent := by_kind.pop(_MOST_FREQUENT, None):
            appended = self.thread.submit(self.frequent.append, _MOST_FREQUENT, frequent)
            self.pending.append((len(frequent.numbers), appended))
        for kind, lines in by_kind.items():
            if kind is not None:
                self._count(kind, len(lines.numbers), self.others.append(kind, lines))
        if mixed:
            self._load_carefully(None, mixed)
        self.settle(blocks_behind=1)

    def settle(self, blocks_behind: int = 0) -> None:
        """Wait until all blocks but the last `blocks_behind` are loaded and counted."""
        while len(self.pending) > blocks_behind:
            records, appended = self.pending.popleft()
            self._count(_MOST_FREQUENT, records, appended.result())

    def settled_account(self) -> Account:
        """Return a copy of the account of everything loaded, and restart counting rows."""
        self.settle()
        self.rows = 0
        return deepcopy(self.account)

    def _count(self, kind: str, records: int, appended: int) -> None:
        if appended < records:
            raise _NotStrictError
        self.rows += appended
        _add(self.account.records_by_kind, kind, appended)

    def _load_carefully(self, kind: str | None, lines: Lines) -> None:
        """Append the records of a kind; read loosely only parts that are not as written."""
        lane = self.frequent if kind == _MOST_FREQUENT else self.others
        if kind is not None and lane.is_strict(kind, lines):
            self._count(kind, len(lines.numbers), lane.append(kind, lines))
        elif lines.nbytes > _LOOSE_BYTES and len(lines.numbers) > 1:
            for part in lines.parts(max(lines.nbytes // 8, _LOOSE_BYTES)):
                self._load_carefully(kind, part)
        else:
            self._load_loosely(lines)

    def _load_loosely(self, lines: Lines) -> None:
        """Append the records of lines of any kind, and count what is not valid in them."""
        lines = lines.select([bool(line.strip()) for line in lines.each()])
        if not lines.nbytes:
            return
        self.settle()
        with self.others.staged(lines) as records_by_kind:
            for kind, records in records_by_kind.items():
                _add(self.account.records_by_kind, kind, records)
            self._insert(
                self.others, records_by_kind.keys() - {_MOST_FREQUENT}, records_by_kind
            )
            for row in self.others.unreadable_rows():
                self.account.add_unreadable(int(lines.numbers[row]) + 1)
        if _MOST_FREQUENT in records_by_kind:
            with self.frequent.staged(lines):
                self._insert(self.frequent, {_MOST_FREQUENT}, records_by_kind)

    def _insert(
        self, lane: _Lane, wanted: Iterable[str], records_by_kind: Mapping[str, int]
    ) -> None:
        """Append the complete records of some kinds among staged lines."""
        for kind in kinds():
            if kind in wanted:
                for name, is_kept, records, example in lane.invalid_values(kind):
                    if is_kept:
                        self.account.add_invalid(kind, name, records, example)
                    elif name in required_names(kind):
                        text = f"{name} cannot be {example}"
                        self.account.incomplete_examples.setdefault(kind, text)
                complete = lane.insert_staged(kind)
                self.rows += complete
                _add(self.account.incomplete, kind, records_by_kind[kind] - complete)


@dataclass
class _Lane:
    """A connection that appends records, and the file through which DuckDB reads them."""

    connection: duckdb.DuckDBPyConnection
    path: Path
    identity: Identity

    def append(self, kind: str, lines: Lines) -> int:
        """Append the valid records of a kind among some lines; return their number.

        Raises duckdb.InvalidInputException if a line is not JSON, or has a value of a type that
        cannot be read.
        """
        columns, table, conditions, parameters = self._typed(kind, lines)
        return self._insert(kind, columns, table, conditions, parameters)

    def is_strict(self, kind: str, lines: Lines) -> bool:
        """Return whether :meth:`append` would append all lines, which fails as a whole."""
        columns, table, conditions, parameters = self._typed(kind, lines)
        # Only a column that is used is read. An error would end the lane's transaction.
        counts = ", ".join(f"count({name})" for name in columns.values())
        with closing(self.connection.cursor()) as cursor:
            try:
                row = cursor.execute(
                    f"SELECT count(*) FILTER ({conditions}), "  # noqa: S608
                    f"{counts} FROM {table}",
                    {**parameters, "kind": kind},
                ).fetchone()
            except duckdb.InvalidInputException:
                return False
        return row is not None and row[0] == len(lines.numbers)

    def _typed(
        self, kind: str, lines: Lines
    ) -> tuple[dict[str, str], str, str, dict[str, object]]:
        """Write lines to be read with the types of a kind.

        Returns the columns, the table function that reads them, the condition that a record has
        all required fields and valid values, and parameters.
        """
        types = {name: duckdb_columns()[name] for name in field_names(kind)}
        table, parameters = self._write(lines, types, strict=True)
        columns = {name: quoted(name) for name in types}
        tests = [test for field in kinds()[kind].fields if (test := condition(field))]
        return columns, table, " AND ".join([_is_complete(kind, columns), *tests]), parameters

    @contextmanager
    def staged(self, lines: Lines) -> Iterator[dict[str, int]]:
        """Copy lines of any kind into a temporary table; yield the number of each kind."""
        types = {
            field.name: loose_type(field.type)
            for kind in kinds().values()
            for field in kind.fields
        }
        table, parameters = self._write(lines, types, strict=False)
        self.connection.execute(f"CREATE TEMP TABLE {_STAGED} AS FROM {table}", parameters)
        counts = self.connection.execute(
            f"SELECT kind, count(*) FROM {_STAGED} WHERE kind IS NOT NULL GROUP BY kind"  # noqa: S608
        ).fetchall()
        yield dict(counts)
        self.connection.execute(f"DROP TABLE {_STAGED}")

    def unreadable_rows(self) -> list[int]:
        """Return the numbers of the staged lines that are not records, from 0."""
        rows = self.connection.execute(
            "SELECT row FROM "  # noqa: S608
            f"(SELECT kind, row_number() OVER () - 1 AS row FROM {_STAGED}) "
            "WHERE kind IS NULL ORDER BY row"
        ).fetchall()
        return [row for (row,) in rows]

    def invalid_values(self, kind: str) -> list[tuple[str, bool, int, str]]:
        """Return the invalid values of the staged records of a kind.

        Each row is a field, whether the records have all required fields, the number of records
        in which it is not valid, and an example.
        """
        fields = kinds()[kind].fields
        found = [values for field in fields if (values := invalid(field))]
        required = [f"{cleaned(field)} IS NOT NULL" for field in fields if field.required]
        rows: list[tuple[str, bool, int, str]] = self.connection.execute(
            "SELECT found.field, is_kept, count(DISTINCT row), "  # noqa: S608
            "left(any_value(found.value), 100) "
            f"FROM (SELECT row, {' AND '.join(required)} AS is_kept, "
            f"unnest(flatten([{', '.join(found)}])) AS found "
            f"FROM (SELECT *, row_number() OVER () AS row FROM {_STAGED}) WHERE kind = ?) "
            "GROUP BY ALL ORDER BY ALL",
            [kind],
        ).fetchall()
        return rows

    def insert_staged(self, kind: str) -> int:
        """Append the complete records of a kind among the staged lines; return their number."""
        columns = {field.name: cleaned(field) for field in kinds()[kind].fields}
        return self._insert(kind, columns, _STAGED, _is_complete(kind, columns), {})

    def _insert(
        self,
        kind: str,
        columns: dict[str, str],
        table: str,
        conditions: str,
        parameters: dict[str, object],
    ) -> int:
        selected = ", ".join(sql for name, sql in columns.items() if name not in OWN_COLUMNS)
        inserted: int = self.connection.execute(
            # The names are those of the schema, not of the file.
            f"INSERT INTO raw.{quoted(kind)} "  # noqa: S608
            f"SELECT {selected}, $segment, $trace_id FROM {table} WHERE {conditions}",
            {**parameters, "kind": kind, **self.identity._asdict()},
        ).fetchall()[0][0]
        return inserted

    def _write(
        self, lines: Lines, types: Mapping[str, str], *, strict: bool
    ) -> tuple[str, dict[str, object]]:
        """Write lines to the file; return a table function that reads them, with parameters.

        If not `strict`, an unreadable line is a row of nulls.
        """
        # The file is overwritten rather than recreated, which reuses its pages in memory.
        self.path.touch()
        with self.path.open("r+b", _WRITE_BYTES) as file:
            file.writelines(lines.runs)
            file.truncate()
        columns = ", ".join(f"{quoted(name)}: '{type_}'" for name, type_ in types.items())
        sql = (
            f"read_json($path, format = 'newline_delimited', columns = {{{columns}}}, "
            f"records = true, compression = 'uncompressed', ignore_errors = {not strict})"
        )
        # DuckDB treats a path as a pattern; special characters in brackets are literal.
        return sql, {"path": re.sub(r"([*?\[])", r"[\1]", str(self.path))}


def _is_complete(kind: str, columns: Mapping[str, str]) -> str:
    """Return the condition that a record is of a kind and has all of its required fields."""
    required = [f"{columns[name]} IS NOT NULL" for name in required_names(kind)]
    return " AND ".join(["kind = $kind", *required])


def _add(counts: dict[str, int], kind: str, count: int) -> None:
    if count:
        counts[kind] = counts.get(kind, 0) + count
