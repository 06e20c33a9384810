"""The database of a trace: building it, and opening it.

A small trace is read into memory. The database of a larger one is a file in the cache
(:mod:`roast_analyze.open.cache`), from which DuckDB reads what it needs, so that a trace can be
larger than the memory. It is built when the trace is first opened, and grows as the trace
grows. Without the cache the file is in a temporary folder.
"""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import CacheNotUsed, NoRoom, NotATrace, TraceError, first_paragraph
from roast_analyze.open.account import Progress
from roast_analyze.open.cache import Entry, Loaded, cache_folder, template_path, unfinished
from roast_analyze.open.decompress import Breaks
from roast_analyze.open.discover import find_inputs
from roast_analyze.open.foreign import describe
from roast_analyze.open.memory_limit import limit_bytes
from roast_analyze.open.spill import new_spill_folder, remove_abandoned_spills
from roast_analyze.open.tables import create_tables, literal, transaction, write_accounts
from roast_analyze.open.views import NAME, VIEWS_NAME, create_views, describe_views
from roast_schemas.documentation import docs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roast_analyze.open.account import Account
    from roast_analyze.open.discover import Identity, Inputs, Segment
    from roast_analyze.open.views import View

#: Observer of opening a trace: called with the current stage and its finished share.
Listener = Callable[[str, float], None]

#: Smaller traces are not cached, because an entry takes at least 1 MB.
UNCACHED_BYTES: Final = 2**16

#: For smaller traces, coordinating several threads takes longer than they save.
_ONE_THREAD_BYTES: Final = 2**19

#: DuckDB allocates whole blocks, of 256 KiB unless set. A cache entry of a smaller trace takes
#: 2 MB with small blocks instead of 16 MB. A large one is loaded more slowly with them.
_SMALL_BLOCKS_BYTES: Final = 2**23
_SMALL_BLOCK_BYTES: Final = 2**14

#: Loading is not faster with more memory than this.
LOADING_BYTES: Final = 2**30

#: Size of the log of changes at which DuckDB writes the database while it is loaded. With the
#: default, 16 MiB, it would write the database of many small traces after each of them.
_CHECKPOINT_BYTES: Final = 2**28

#: Another process can replace a database just before it is opened.
_ATTEMPTS: Final = 3

_IN_MEMORY: Final = Path(":memory:")

#: Name of the database that new ones are copied from, within a connection.
_TEMPLATE: Final = "template"

#: Errors of a query that exceeds the memory limit: raised by :class:`roast_analyze.Trace`, and
#: by DuckDB while a relation is computed.
OUT_OF_MEMORY: Final = (NoRoom, duckdb.OutOfMemoryException)

#: Texts in errors of DuckDB: a wrong checksum in a database file, and a full disk.
_DAMAGED: Final = "Corrupt database file"
_NO_SPACE: Final = "No space left on device"


def open_database(
    names: Sequence[Path],
    *,
    cache: bool,
    memory_bytes: int,
    listener: Listener,
    keep: bool = True,
    threads: int | None = None,
) -> duckdb.DuckDBPyConnection:
    """Open the database of some traces, with all views and without restrictions.

    The connection finds names in that database, :data:`NAME`, and then in an empty one,
    :data:`VIEWS_NAME`. Beyond its memory limit DuckDB spills to disk. Without `keep` the cache
    is used, but does not keep the tables. DuckDB's threads are `threads`, or else one for a
    small trace and one per core for others. Raises TraceError if there is no readable trace.
    """
    inputs = find_inputs(names)
    # A database in memory is faster. One that is not kept takes at most half of the memory.
    largest_in_memory = UNCACHED_BYTES if keep else memory_bytes // 2
    if threads is None and inputs.content_bytes < _ONE_THREAD_BYTES:
        threads = 1
    connection = _connect(memory_bytes, inputs, threads)
    try:
        if inputs.content_bytes < largest_in_memory:
            _attach(connection, _IN_MEMORY)
            _load(connection, inputs, {}, listener, cache=cache)
        elif not (
            cache and keep and _attach_cached(connection, inputs, memory_bytes, listener)
        ):
            folder = TemporaryDirectory(prefix="roast-")
            weakref.finalize(connection, folder.cleanup)
            path = Path(folder.name) / "trace.duckdb"
            try:
                _build(path, inputs, {}, memory_bytes, listener, cache=cache and not keep)
                _attach(connection, path, read_only=True)
            except (OSError, duckdb.IOException) as error:
                raise NoRoom(
                    f"cannot write the database of the trace to {folder.name!r} "
                    f"({first_paragraph(error)}): set TMPDIR to a larger disk "
                    f"{docs('reference/cache')}"
                ) from None
    except BaseException:
        connection.close()
        raise
    return connection


def open_empty_database(*, cache: bool, memory_bytes: int) -> duckdb.DuckDBPyConnection:
    """Open a database in memory with all tables and views, which are empty."""
    connection = _connect(memory_bytes)
    attach_empty(connection, cache=cache)
    return connection


def attach_empty(connection: duckdb.DuckDBPyConnection, *, cache: bool = False) -> None:
    """Attach a database in memory, and create all tables and views."""
    _attach(connection, _IN_MEMORY)
    _create_all(connection, cache=cache)


def as_trace_error(error: Exception) -> TraceError:
    """Convert an error of DuckDB into one that names the remedy."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return NoRoom(
            f"out of memory ({first_paragraph(error)}): allow more with --memory-limit "
            f"{docs('reference/cache')}"
        )
    if _DAMAGED in str(error):
        return TraceError(
            f"the cache {str(cache_folder())!r} is damaged: remove it, or use --no-cache"
        )
    return TraceError(first_paragraph(error))


def documented_views() -> list[View]:
    """Return the public views with their descriptions, without a trace."""
    with open_empty_database(cache=True, memory_bytes=limit_bytes(None)) as connection:
        return describe_views(connection)


def _create_all(connection: duckdb.DuckDBPyConnection, *, cache: bool) -> None:
    """Create all tables and views; with `cache`, copy them from an empty database."""
    if cache and copy_template(connection, "empty", NAME, attach_empty):
        return
    create_tables(connection)
    create_views(connection)


def copy_template(
    connection: duckdb.DuckDBPyConnection,
    template: str,
    name: str,
    create: Callable[[duckdb.DuckDBPyConnection], None],
) -> bool:
    """Copy a database without rows from the cache: twenty times faster than creating it.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Connection with an empty database of that name.
    template : str
        Name of the file in the cache.
    name : str
        Name of the database.
    create : callable
        Attaches a database with that name in memory and creates its content. It is called if
        the cache lacks the template.

    Returns
    -------
    bool
        False if the file is damaged, which removes it, or cannot be written.
    """
    file = template_path(template)
    try:
        if not file.exists():
            with unfinished(file.parent) as draft:
                with _connect(limit_bytes(None)) as new:
                    # In a file, each statement would be written to the write-ahead log.
                    create(new)
                    attach_file(new, draft, _TEMPLATE)
                    new.execute(f"COPY FROM DATABASE {name} TO {_TEMPLATE} (SCHEMA)")
                    # Closing would write the file too, but without an error on a full disk.
                    new.execute(f"CHECKPOINT {_TEMPLATE}")
                draft.replace(file)
        attach_file(connection, file, _TEMPLATE, read_only=True)
        try:
            with transaction(connection):
                # Planning to copy rows, of which there are none, would take as long as this.
                connection.execute(f"COPY FROM DATABASE {_TEMPLATE} TO {name} (SCHEMA)")
        finally:
            connection.execute(f"DETACH {_TEMPLATE}")
    except (OSError, duckdb.Error):
        with suppress(OSError):
            file.unlink(missing_ok=True)
        return False
    return True


def _connect(
    memory_bytes: int, inputs: Inputs | None = None, threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """Connect to DuckDB; new databases have small blocks if the inputs are small."""
    is_small = inputs is not None and inputs.content_bytes < _SMALL_BLOCKS_BYTES
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory_bytes}B",
            "temp_directory": str(new_spill_folder()),
            **({"threads": threads} if threads else {}),
            **({"default_block_size": _SMALL_BLOCK_BYTES} if is_small else {}),
        },
    )
    connection.execute("SET enable_progress_bar = false")
    # This rewrite of `row_number() … = 1` fails on rowid in 2.0.0, and loses rows in other
    # versions (duckdb/duckdb#23677, #24363, #24710).
    connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    return connection


def _attach(
    connection: duckdb.DuckDBPyConnection, path: Path, *, read_only: bool = False
) -> None:
    attach_file(connection, path, NAME, read_only=read_only)
    connection.execute(f"SET search_path = '{NAME},{VIEWS_NAME}'")


def attach_file(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    name: str,
    *,
    read_only: bool = False,
    has_log: bool = True,
) -> None:
    """Attach a database under a name; several processes can do so only with `read_only`.

    Without `has_log`, what was written since the last checkpoint is lost with the process.
    """
    options = " (READ_ONLY)" if read_only else ""
    if not has_log:
        options = " (RECOVERY_MODE no_wal_writes)"
    connection.execute(f"ATTACH {literal(str(path))} AS {name}{options}")


def _attach_cached(
    connection: duckdb.DuckDBPyConnection, inputs: Inputs, memory_bytes: int, listener: Listener
) -> bool:
    """Attach the database in the cache; return False, with a warning, if it cannot be used."""
    entry = Entry(inputs)
    problem: Exception = OSError()
    for attempt in range(_ATTEMPTS):
        try:
            path = _update_entry(entry, inputs, memory_bytes, listener)
            _attach(connection, path, read_only=True)
        # Another attempt would fail in the same way.
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise
        except (OSError, duckdb.Error) as error:
            # If another process has just replaced the database, another attempt helps; if it
            # is damaged, removing it does. If the disk is full, neither does.
            problem = error
            if _NO_SPACE in str(error):
                break
            if attempt:
                entry.remove()
        else:
            return True
    warnings.warn(
        f"cannot use the cache {str(entry.folder.parent)!r} ({first_paragraph(problem)}); "
        "reading without it",
        CacheNotUsed,
        stacklevel=2,
    )
    return False


def _update_entry(entry: Entry, inputs: Inputs, memory_bytes: int, listener: Listener) -> Path:
    """Return the database in the cache, after building or growing it if necessary."""
    manifest = entry.manifest()
    known = manifest.reusable(inputs) if manifest else {}
    left_out = repr(inputs.left_out)
    if (
        manifest
        and manifest.left_out == left_out
        and len(known) == len(inputs.segments)
        and all(known[segment.identity].is_current(segment) for segment in inputs.segments)
    ):
        entry.touch()
        return entry.database(manifest)
    with entry.building(manifest if known else None) as path:
        accounts = _build(path, inputs, known, memory_bytes, listener, cache=True)
        segments = [Loaded.of(*account) for account in accounts]
        return entry.publish(path, segments, left_out)


def _build(
    path: Path,
    inputs: Inputs,
    known: Mapping[Identity, Loaded],
    memory_bytes: int,
    listener: Listener,
    *,
    cache: bool,
) -> list[tuple[Segment, Account, Progress]]:
    """Build or grow a database in a file."""
    remove_abandoned_spills()
    with _connect(min(memory_bytes, LOADING_BYTES), inputs) as connection:
        _attach(connection, path)
        accounts = _load(connection, inputs, known, listener, cache=cache)
        # Closing would write the file too, but without an error on a full disk.
        connection.execute(f"CHECKPOINT {NAME}")
        return accounts


def _load(
    connection: duckdb.DuckDBPyConnection,
    inputs: Inputs,
    known: Mapping[Identity, Loaded],
    listener: Listener,
    *,
    cache: bool,
) -> list[tuple[Segment, Account, Progress]]:
    """Load what the database lacks."""
    # Imported here, because numpy is slow to import.
    from roast_analyze.open.load import load_segment

    if not known:
        _create_all(connection, cache=cache)
    # The loader appends in two lanes. One thread for each lane is faster than two threads for
    # one of them, and makes larger row groups.
    [(threads,)] = connection.execute("SELECT current_setting('threads')").fetchall()
    connection.execute("SET threads = 1")
    connection.execute(f"SET GLOBAL checkpoint_threshold = '{_CHECKPOINT_BYTES}B'")
    # Release the memory of each row group as soon as it is full.
    connection.execute("SET GLOBAL write_buffer_row_group_count = 1")
    finished_bytes = 0

    def report(offset: int) -> None:
        listener("reading", (finished_bytes + offset) / max(1, inputs.nbytes))

    accounts: list[tuple[Segment, Account, Progress]] = []
    for segment in inputs.segments:
        loaded = known.get(segment.identity)
        if loaded and loaded.nbytes == segment.nbytes:
            account, progress = loaded.account, loaded.progress
        else:
            begin = loaded.progress if loaded else Progress()
            account, progress = load_segment(connection, segment, begin, report)
        accounts.append((segment, account, progress))
        finished_bytes += segment.nbytes
    connection.execute(f"SET threads = {threads}")
    _check_records(accounts)
    with transaction(connection):
        write_accounts(
            connection,
            [(segment, account) for segment, account, _ in accounts],
            inputs.left_out,
        )
    return accounts


def _check_records(accounts: list[tuple[Segment, Account, Progress]]) -> None:
    """Raise NotATrace if a name refers to files without any record."""
    lines: Counter[Path] = Counter()
    records: Counter[Path] = Counter()
    first = {segment.name: segment.path for segment, _, _ in reversed(accounts)}
    reasons: dict[Path, str] = {}
    damaged = {s.name for s, account, _ in accounts if account.breaks != Breaks()}
    for segment, account, _ in accounts:
        nothing_read = not account.records_by_kind and account.lines == account.unreadable <= 1
        undamaged = not account.too_long and not account.breaks.damaged
        if segment.begins_well and nothing_read and undamaged:
            continue  # a trace that was cut within its first line
        lines[segment.name] += account.lines
        for example in account.incomplete_examples.values():
            reasons[segment.name] = (
                f" that can be read, since {example} (t is in seconds since 1970)"
            )
        records[segment.name] += account.complete_records
    for name, count in lines.items():
        if not count:
            what = "cannot be decompressed" if name in damaged else "is empty"
            raise NotATrace(f"{str(name)!r} {what}: name a trace recorded by roast")
        if not records[name]:
            what = describe(first[name]) or (
                f"contains no records{reasons.get(name, '')}: name a trace recorded by roast"
            )
            raise NotATrace(f"{str(name)!r} {what}")
