"""The database of a trace: built once, and opened.

A small trace is read into memory. The database of a larger one lies in the cache
(:mod:`roast_analyze.open.cache`), and is read when it is needed, so that a trace may be larger
than the memory; it is built when a trace is opened for the first time, and grows as the
trace grows. Without the cache it lies in a temporary folder.
"""

from __future__ import annotations

import uuid
import warnings
import weakref
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Final, Protocol

import duckdb

from roast_analyze.errors import CacheNotUsed, NoRoom, NotATrace, TraceError, first_paragraph
from roast_analyze.open.cache import Entry, Loaded, cache_folder, empty_database
from roast_analyze.open.discover import find_inputs
from roast_analyze.open.load import (
    Progress,
    create_tables,
    load_segment,
    transaction,
    write_accounts,
)
from roast_analyze.open.memory_limit import limit_bytes
from roast_analyze.open.views import create_views, describe_views, fill_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roast_analyze.open.discover import Identity, Inputs, Part
    from roast_analyze.open.load import Account
    from roast_analyze.open.views import View

#: Name of the database of a trace within a connection.
NAME: Final = "trace"

#: Name of the database beside it, in memory: the other one may be read-only.
VIEWS_NAME: Final = "memory"

#: Traces with less than this in their files are read faster than a cache is looked after.
#: What is compressed counts as so many times its size.
SMALL_BYTES: Final = 16 * 2**20
_COMPRESSED_TIMES: Final = 12

#: Reading gets no faster with more memory than this.
READING_BYTES: Final = 2**30

#: A database may be removed, in favour of a newer one, just before it is opened.
_TRIES: Final = 3

_IN_MEMORY: Final = Path(":memory:")

#: Name of the database that others begin as a copy of.
_EMPTY: Final = "empty"

#: What DuckDB says of a file whose checksums are wrong.
_DAMAGED: Final = "Corrupt database file"

#: What DuckDB and the operating system say of a full disk.
_NO_SPACE: Final = "No space left on device"


class Listener(Protocol):
    """Who wants to know how far opening a trace has come."""

    def __call__(self, stage: str, share: float) -> None:
        """Be told what is being done, and how much of it is done, from 0 to 1."""


def open_database(
    names: Sequence[Path], *, cache: bool, memory_bytes: int, listener: Listener
) -> duckdb.DuckDBPyConnection:
    """Open the database of some traces, with all views.

    Parameters
    ----------
    names : sequence of Path
        Files, folders of segments, or patterns.
    cache : bool
        Use the cache, if the traces are not small.
    memory_bytes : int
        What DuckDB may take; it uses the disk for more.
    listener : Listener

    Returns
    -------
    duckdb.DuckDBPyConnection
        It finds names in the database of the traces, :data:`NAME`, and then in an empty one,
        :data:`VIEWS_NAME`. It can still reach files.

    Raises
    ------
    TraceError
        If there is no trace, or none that can be read.
    """
    inputs = find_inputs(names)
    connection = _connect(memory_bytes)
    try:
        if _content_bytes(inputs) < SMALL_BYTES:
            _attach(connection, _IN_MEMORY)
            _load(connection, inputs, {}, listener, cache=cache)
        elif not cache or not _attach_cached(connection, inputs, memory_bytes, listener):
            _attach_temporary(connection, inputs, memory_bytes, listener)
        connection.execute(f"SET search_path = '{NAME},{VIEWS_NAME}'")
    except BaseException:
        connection.close()
        raise
    return connection


def as_trace_error(error: Exception) -> TraceError:
    """Convert an error of DuckDB during a computation into one that says what to do."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return NoRoom(
            f"this takes more memory: {first_paragraph(error)}; allow it with --memory-limit"
        )
    if _DAMAGED in str(error):
        return TraceError(
            f"the cache in {str(cache_folder())!r} is damaged; remove it, or use --no-cache"
        )
    return TraceError(first_paragraph(error))


def documented_views() -> list[View]:
    """Return the public views with their descriptions, without a trace."""
    with _connect(limit_bytes(None)) as connection:
        _attach(connection, _IN_MEMORY)
        _create_all(connection)
        return describe_views(connection)


def _create_all(connection: duckdb.DuckDBPyConnection) -> None:
    with transaction(connection):
        create_tables(connection)
        create_views(connection)


def _copy_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all tables and views: copied, which is twenty times faster than made."""
    empty = empty_database()
    try:
        if not empty.exists():
            _make_empty(empty)
        connection.execute(f"ATTACH {_literal(empty)} AS {_EMPTY} (READ_ONLY)")
        try:
            with transaction(connection):
                connection.execute(f"COPY FROM DATABASE {_EMPTY} TO {NAME}")
        finally:
            connection.execute(f"DETACH {_EMPTY}")
    except (OSError, duckdb.Error):
        # It cannot be written, or is damaged: then the next one begins anew.
        with suppress(OSError):
            empty.unlink(missing_ok=True)
        _create_all(connection)


def _make_empty(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(uuid.uuid4().hex)
    try:
        with _connect(limit_bytes(None)) as connection:
            _attach(connection, draft)
            _create_all(connection)
            # Closing would do so too, but would not tell that the disk is full.
            connection.execute(f"CHECKPOINT {NAME}")
        draft.replace(path)
    finally:
        for leftover in (draft, draft.with_name(f"{draft.name}.wal")):
            leftover.unlink(missing_ok=True)


def _connect(memory_bytes: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={"memory_limit": f"{memory_bytes}B", "temp_directory": _spill_folder()},
    )
    connection.execute("SET enable_progress_bar = false")
    # This rewrite of `row_number() … = 1` fails on rowid in 2.0.0, and loses rows in other
    # versions (duckdb/duckdb#23677, #24363, #24710).
    connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    return connection


def _spill_folder() -> str:
    """Name a folder that DuckDB makes if it needs one, and removes again."""
    return str(Path(gettempdir()) / f"roast-spill-{uuid.uuid4().hex}")


def _content_bytes(inputs: Inputs) -> int:
    return sum(
        part.segment.nbytes
        * (1 if part.segment.compression == "uncompressed" else _COMPRESSED_TIMES)
        for part in inputs.parts
    )


def _attach(
    connection: duckdb.DuckDBPyConnection, path: Path, *, read_only: bool = False
) -> None:
    options = " (READ_ONLY)" if read_only else ""
    connection.execute(f"ATTACH {_literal(path)} AS {NAME}{options}")
    connection.execute(f"USE {NAME}")


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _attach_temporary(
    connection: duckdb.DuckDBPyConnection, inputs: Inputs, memory_bytes: int, listener: Listener
) -> None:
    """Build a database for this once."""
    folder = TemporaryDirectory(prefix="roast-")
    # It goes with the connection, or with the process.
    weakref.finalize(connection, folder.cleanup)
    path = Path(folder.name) / "trace.duckdb"
    try:
        _build(path, inputs, {}, memory_bytes, listener, cache=False)
        _attach(connection, path, read_only=True)
    except (OSError, duckdb.IOException) as error:
        raise NoRoom(
            f"no database of the trace can be written to {folder.name!r}: {first_paragraph(error)}; "
            "name a larger disk with TMPDIR"
        ) from None


def _attach_cached(
    connection: duckdb.DuckDBPyConnection, inputs: Inputs, memory_bytes: int, listener: Listener
) -> bool:
    """Attach the database that lies in the cache, built or grown if it has to be.

    Returns
    -------
    bool
        False, with a warning, if the cache cannot be used.
    """
    entry = Entry(inputs)
    problem: Exception = OSError()
    for _ in range(_TRIES):
        try:
            path = _up_to_date(entry, inputs, memory_bytes, listener)
            _attach(connection, path, read_only=True)
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise
        except (OSError, duckdb.Error) as error:
            # The disk is full or may not be written; or another process has just put a newer
            # database in the place of this one, or it is damaged: then trying again helps.
            problem = error
            if _NO_SPACE in str(error):
                break
            entry.drop()
        else:
            return True
    warnings.warn(
        f"the cache {str(entry.folder.parent)!r} cannot be used ({first_paragraph(problem)}); "
        "reading without it",
        CacheNotUsed,
        stacklevel=2,
    )
    return False


def _up_to_date(entry: Entry, inputs: Inputs, memory_bytes: int, listener: Listener) -> Path:
    """Give the database in the cache, built or grown if it has to be."""
    manifest = entry.manifest()
    known = manifest.still_known(inputs) if manifest else {}
    left_out = [asdict(file) for file in inputs.left_out]
    if (
        manifest
        and manifest.left_out == left_out
        and len(known) == len(inputs.parts)
        and all(known[part.identity].is_same(part.segment) for part in inputs.parts)
    ):
        entry.touch()
        return entry.database(manifest)
    with entry.building(manifest if known else None) as path:
        accounts = _build(path, inputs, known, memory_bytes, listener, cache=True)
        segments = tuple(
            Loaded.of(*account, before=known.get(account[0].identity)) for account in accounts
        )
        return entry.keep(path, segments, left_out)


def _build(
    path: Path,
    inputs: Inputs,
    known: Mapping[Identity, Loaded],
    memory_bytes: int,
    listener: Listener,
    *,
    cache: bool,
) -> list[tuple[Part, Account, Progress]]:
    """Build a database in a file, or let one grow."""
    connection = _connect(min(memory_bytes, READING_BYTES))
    try:
        _attach(connection, path)
        return _load(connection, inputs, known, listener, cache=cache)
    finally:
        connection.close()


def _load(
    connection: duckdb.DuckDBPyConnection,
    inputs: Inputs,
    known: Mapping[Identity, Loaded],
    listener: Listener,
    *,
    cache: bool,
) -> list[tuple[Part, Account, Progress]]:
    """Read what the database does not have yet, and make the views of it."""
    if not known:
        (_copy_all if cache else _create_all)(connection)
    # Two lanes of one thread each are faster than one of two, and pack the rows better.
    connection.execute("SET threads = 1")
    # Rows are written as soon as a row group is full, so that memory is there again.
    connection.execute("SET GLOBAL write_buffer_row_group_count = 1")
    reading = _Reading(listener, inputs)
    accounts: list[tuple[Part, Account, Progress]] = []
    for part in inputs.parts:
        loaded = known.get(part.identity)
        if loaded and loaded.nbytes == part.segment.nbytes:
            accounts.append((part, loaded.account, loaded.progress))
        else:
            begin = loaded.progress if loaded else Progress()
            account, progress = load_segment(
                connection, part.segment, part.identity, begin, reading.report
            )
            accounts.append((part, account, progress))
        reading.end(part)
    connection.execute("RESET threads")
    _refuse_what_is_no_trace(accounts)
    with transaction(connection):
        write_accounts(
            connection, [(part, account) for part, account, _ in accounts], inputs.left_out
        )
        fill_tables(connection, lambda share: listener("computing tables", share))
    connection.execute(f"CHECKPOINT {NAME}")
    return accounts


class _Reading:
    """How far reading has come, over all segments."""

    def __init__(self, listener: Listener, inputs: Inputs) -> None:
        self._listener = listener
        self._total_bytes = max(1, inputs.nbytes)
        self._ended_bytes = 0

    def report(self, place: int) -> None:
        """Say how far the segment that is being read was read."""
        self._listener("reading", (self._ended_bytes + place) / self._total_bytes)

    def end(self, part: Part) -> None:
        """Note that a segment is done."""
        self._ended_bytes += part.segment.nbytes


def _is_cut_in_its_first_line(part: Part, account: Account) -> bool:
    """Tell what may be a trace, of which nothing can be read yet, or any more."""
    nothing_read = not account.records_by_kind and account.lines == account.unreadable <= 1
    nothing_wrong = not account.too_long and not account.breaks.damaged
    return part.segment.begins_well and nothing_read and nothing_wrong


def _refuse_what_is_no_trace(accounts: list[tuple[Part, Account, Progress]]) -> None:
    lines: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for part, account, _ in accounts:
        if _is_cut_in_its_first_line(part, account):
            continue
        lines[part.name] += account.lines
        records[part.name] += account.whole_records
    for name, count in lines.items():
        if not count:
            raise NotATrace(f"{name!r} is empty; name a trace that roast recorded")
        if not records[name]:
            raise NotATrace(
                f"{name!r} is no trace: no line of it is a record; "
                "name a trace that roast recorded"
            )
