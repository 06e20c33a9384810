"""Loading of segments into typed tables.

:func:`load_segment` appends the records of one file to one table per kind in the schema
``raw``, in the order of the file, which ``rowid`` preserves. Everything that is not loaded is
counted in an :class:`~roast_analyze.open.account.Account`.
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

from roast_analyze.open.account import Account, Progress, required_names
from roast_analyze.open.block_reader import GroupedLines, Lines, group_lines, read_blocks
from roast_analyze.open.decompress import Content, open_for_content
from roast_analyze.open.tables import OWN_COLUMNS, field_names, quoted, transaction
from roast_schemas.describe import duckdb_columns, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

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
        loader = _Loader(frequent, others, thread, account)
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
    rows: int = 0  # appended since :meth:`settled_account`
    pending: deque[tuple[Lines, Future[int]]] = field(default_factory=deque)

    def load(self, found: GroupedLines) -> None:
        """Append the records of a block, and count the lines that are not records."""
        account = self.account
        by_kind = {
            kind: lines._replace(numbers=lines.numbers + account.lines)
            for kind, lines in found.by_kind.items()
        }
        account.lines += found.lines
        account.too_long += found.too_long
        mixed = by_kind.pop(None, None)
        if frequent := by_kind.pop(_MOST_FREQUENT, None):
            appended = self.thread.submit(self.frequent.append, _MOST_FREQUENT, frequent)
            self.pending.append((frequent, appended))
        for kind, lines in by_kind.items():
            if kind is not None:
                self._count(kind, lines, self.others.append(kind, lines))
        if mixed:
            self._load_mixed(mixed.select([bool(line.strip()) for line in mixed.each()]))
        self.settle(blocks_behind=1)

    def settle(self, blocks_behind: int = 0) -> None:
        """Wait until all blocks but the last `blocks_behind` are loaded and counted."""
        while len(self.pending) > blocks_behind:
            lines, appended = self.pending.popleft()
            self._count(_MOST_FREQUENT, lines, appended.result())

    def settled_account(self) -> Account:
        """Return a copy of the account of everything loaded, and restart counting rows."""
        self.settle()
        self.rows = 0
        return deepcopy(self.account)

    def _count(self, kind: str, lines: Lines, appended: int) -> None:
        """Count lines that begin like records of a kind, after its valid ones were appended."""
        self.rows += appended
        if appended < len(lines.numbers):
            self._load_mixed(lines, kind, appended)
        else:
            _add(self.account.records_by_kind, kind, appended)

    def _load_mixed(
        self, lines: Lines, appended_kind: str | None = None, appended: int = 0
    ) -> None:
        """Append lines of any kind, except the appended records of a kind; count them all."""
        if not lines.nbytes:
            return
        self.settle()
        account = self.account
        with self.others.staged(lines) as counts, self.frequent.staged(lines):
            for kind, records in counts:
                _add(account.records_by_kind, kind, records)
                if kind not in kinds():
                    continue
                if kind == appended_kind:
                    complete = appended
                else:
                    lane = self.frequent if kind == _MOST_FREQUENT else self.others
                    complete = lane.insert(kind, _STAGED)
                    self.rows += complete
                _add(account.incomplete, kind, records - complete)
            for (row,) in self.others.connection.execute(
                "SELECT row FROM "  # noqa: S608
                f"(SELECT kind, row_number() OVER () - 1 AS row FROM {_STAGED}) "
                "WHERE kind IS NULL ORDER BY row"
            ).fetchall():
                number = int(lines.numbers[row]) + 1
                account.unreadable += 1
                account.first_unreadable = min(account.first_unreadable or number, number)
                account.last_unreadable = max(account.last_unreadable or number, number)


@dataclass
class _Lane:
    """A connection that appends records, and the file through which DuckDB reads them."""

    connection: duckdb.DuckDBPyConnection
    path: Path
    identity: Identity

    def append(self, kind: str, lines: Lines) -> int:
        """Append the complete records of a kind among some lines; return their number."""
        return self.insert(kind, *self._write(lines, field_names(kind)))

    def insert(self, kind: str, table: str, parameters: dict[str, object] | None = None) -> int:
        """Append the complete records of a kind in a table; return their number."""
        columns = [quoted(name) for name in field_names(kind) if name not in OWN_COLUMNS]
        required = [f"{quoted(name)} IS NOT NULL" for name in required_names(kind)]
        # JSON has no infinity, but DuckDB reads 1e999 as one.
        conditions = " AND ".join(["kind = $kind", *required, "isfinite(t)"])
        inserted: int = self.connection.execute(
            # The names are those of the schema, not of the file.
            f"INSERT INTO raw.{quoted(kind)} "  # noqa: S608
            f"SELECT {', '.join(columns)}, $segment, $trace_id "
            f"FROM {table} WHERE {conditions}",
            {**(parameters or {}), "kind": kind, **self.identity._asdict()},
        ).fetchall()[0][0]
        return inserted

    @contextmanager
    def staged(self, lines: Lines) -> Iterator[list[tuple[str, int]]]:
        """Copy lines of any kind into a temporary table; yield the number of each kind."""
        names = {name for kind in kinds() for name in field_names(kind)}
        table, parameters = self._write(lines, sorted(names))
        self.connection.execute(f"CREATE TEMP TABLE {_STAGED} AS FROM {table}", parameters)
        yield self.connection.execute(
            f"SELECT kind, count(*) FROM {_STAGED} WHERE kind IS NOT NULL GROUP BY kind"  # noqa: S608
        ).fetchall()
        self.connection.execute(f"DROP TABLE {_STAGED}")

    def _write(self, lines: Lines, names: list[str]) -> tuple[str, dict[str, object]]:
        """Write lines to the file; return a table function that reads them, with parameters.

        A field that a line lacks or has with another type is null; an unreadable line is a row
        of nulls.
        """
        # The file is overwritten rather than recreated, which reuses its pages in memory.
        self.path.touch()
        with self.path.open("r+b", _WRITE_BYTES) as file:
            file.writelines(lines.runs)
            file.truncate()
        types = ", ".join(f"{quoted(name)}: '{duckdb_columns()[name]}'" for name in names)
        sql = (
            f"read_json($path, format = 'newline_delimited', columns = {{{types}}}, "
            "records = true, compression = 'uncompressed', ignore_errors = true)"
        )
        # DuckDB treats a path as a pattern; special characters in brackets are literal.
        return sql, {"path": re.sub(r"([*?\[])", r"[\1]", str(self.path))}


def _add(counts: dict[str, int], kind: str, count: int) -> None:
    if count:
        counts[kind] = counts.get(kind, 0) + count
