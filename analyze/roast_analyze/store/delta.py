"""Delta Lake tables of a store: reading their files, and committing new ones.

Commits of several processes to one table are serialized by Delta Lake. Those that contradict
each other fail, and are repeated with the new content of the table.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from roast_analyze.errors import MissingExtra, NotAStore, NotWritable, TraceError
from roast_analyze.open.tables import literal
from roast_analyze.store.layout import ADDITION, MONTH, RUNS

try:
    import deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
    from deltalake.transaction import AddAction
except ModuleNotFoundError as error:
    if error.name != "deltalake":
        raise
    raise MissingExtra(
        "a store needs deltalake, which is not installed: "
        "pip install '.[store]' in a clone of roast"
    ) from None

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_Result = TypeVar("_Result")

#: Attempts to commit while other processes commit to the same table.
_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.1

#: Files of ``runs`` beyond which they are merged.
_RUNS_FILES: Final = 10

#: Commits between checkpoints of a table's log: a reader opens the commits after the last one.
_CHECKPOINT_COMMITS: Final = 10

#: Errors of Delta Lake, pyarrow and the file system.
_ERRORS: Final = (DeltaError, pa.ArrowException, OSError)
#: What separates the causes in a message of Delta Lake.
_CAUSE: Final = re.compile(r"\s*\x1b\[31m↳\x1b\[0m\s*")

#: What Delta Lake reports of a server without TLS, and how to allow it.
_NO_TLS: Final = "URL scheme is not allowed"
_ALLOW_HTTP: Final = (
    "set AWS_ALLOW_HTTP=true (for Azure, AZURE_ALLOW_HTTP), or use an address with https://"
)

#: Application id under which Delta Lake records how many additions were numbered.
_NUMBERS: Final = "roast.additions"


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, which is part of the table once it is committed."""

    table: str
    path: str  # relative to the folder of the table
    nbytes: int
    month: str
    rows: Mapping[int, int]  # numbers of rows by addition
    schema: pa.Schema  # with comments, and without the partition column

    def action(self) -> AddAction:
        """Return the entry of the file in Delta Lake's log."""
        # Readers skip files that cannot have an addition.
        stats = {
            "numRecords": sum(self.rows.values()),
            "minValues": {ADDITION: min(self.rows)},
            "maxValues": {ADDITION: max(self.rows)},
            "nullCount": {ADDITION: 0},
        }
        return AddAction(
            path=self.path,
            size=self.nbytes,
            partition_values={MONTH: self.month},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps(stats),
        )


@dataclass(frozen=True)
class Location:
    """Place of a store: a folder or a URL, and the options of its file system.

    The options are those of the library ``deltalake``; without them it reads the environment.
    """

    uri: str
    options: dict[str, str] | None = None

    @classmethod
    def of(cls, path: str, options: Mapping[str, str] | None = None) -> Location:
        """Return the location for the path or URL of a user."""
        scheme, is_url, place = path.partition("://")
        if is_url and not (place if scheme == "file" else place.strip("/")):
            raise NotAStore(f"{path!r} names no store: write the whole URL, or a folder")
        # A local store is a folder for pyarrow and DuckDB.
        text = path.removeprefix("file://")
        uri = text.rstrip("/") if "://" in text else str(Path(text).absolute())
        return cls(uri, dict(options) if options else None)

    @property
    def is_local(self) -> bool:
        """True for a folder."""
        return "://" not in self.uri

    def table(self, name: str) -> str:
        """Return the place of a table."""
        return f"{self.uri}/{name}"

    def filesystem(self, table: str) -> pafs.FileSystem:
        """Return the file system below a table."""
        import pyarrow.fs as pafs

        if self.is_local:
            folder = Path(self.table(table))
            folder.mkdir(parents=True, exist_ok=True)
            return pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(self.table(table), self.options))

    def reading(self, name: str) -> AbstractContextManager[None]:
        """Raise NotAStore if a table cannot be read in the block."""
        remedy = "check its files and your permissions"
        return _errors_as(NotAStore, f"cannot read {self.table(name)!r}", remedy)

    def writing(self, name: str) -> AbstractContextManager[None]:
        """Raise NotWritable if a table cannot be written in the block."""
        remedy = "name a folder or a URL that you can write to"
        return _errors_as(NotWritable, f"cannot write {self.table(name)!r}", remedy)

    def open(self, name: str) -> deltalake.DeltaTable | None:
        """Open a table; return None if it does not exist."""
        with self.reading(name), suppress(TableNotFoundError):
            return deltalake.DeltaTable(self.table(name), storage_options=self.options)
        return None

    def open_runs(self) -> deltalake.DeltaTable:
        """Open the table of runs; raise NotAStore if it does not exist."""
        runs = self.open(RUNS)
        if runs is None:
            raise NotAStore(
                f"{self.uri!r} is not a store: create it with roast-analyze store add"
            )
        return runs

    def create_runs(self, schema: Callable[[], pa.Schema]) -> None:
        """Create the table of runs if it is missing; raise NotWritable if that fails."""
        table = self.open(RUNS)
        # Until the first addition, a table of an older version has few columns.
        if table is None or not table.file_uris():
            with self.writing(RUNS):
                self.create(RUNS, schema())

    def create(self, name: str, schema: pa.Schema) -> deltalake.DeltaTable:
        """Open a table, after creating it or adding the columns that it lacks."""
        table = self.open(name)
        if table is None:
            partition = pa.field(MONTH, pa.string())
            with suppress(CommitFailedError):  # another process has just created it
                deltalake.DeltaTable.create(
                    self.table(name),
                    # Parquet files do not contain the column that is in the name of their
                    # folder.
                    schema if MONTH in schema.names else schema.append(partition),
                    mode="ignore",
                    partition_by=[MONTH],
                    description=(schema.metadata or {}).get(b"comment", b"").decode(),
                    configuration={"delta.checkpointInterval": str(_CHECKPOINT_COMMITS)},
                    storage_options=self.options,
                )
            table = deltalake.DeltaTable(self.table(name), storage_options=self.options)
        known = {field.name for field in table.schema().fields}
        wanted = deltalake.Schema.from_arrow(schema).fields
        if new := [field for field in wanted if field.name not in known]:
            table.alter.add_columns(new)
        return table

    def append(self, files: Iterable[DataFile]) -> None:
        """Commit files to their tables, one commit per table."""
        by_table: dict[str, list[DataFile]] = {}
        for file in files:
            by_table.setdefault(file.table, []).append(file)

        def append(name: str) -> None:
            added = by_table[name]
            table = self.create(name, added[0].schema)
            table.create_write_transaction(
                [file.action() for file in added],
                mode="append",
                schema=table.schema(),
                partition_by=[MONTH],
            )

        for name in by_table:
            # Another process may create the table at the same time.
            self._repeat(name, partial(append, name))

    def reserve(self, count: int) -> int:
        """Return the first of `count` numbers that no other addition has or will have."""

        def reserve() -> int:
            table = self.open_runs()
            used = table.transaction_version(_NUMBERS) or 0
            properties = deltalake.CommitProperties(
                app_transactions=[deltalake.Transaction(_NUMBERS, used + count)]
            )
            table.create_write_transaction(
                # The commit has no files: only the counter changes, and conflicts are detected.
                [],
                mode="append",
                schema=table.schema(),
                partition_by=[MONTH],
                commit_properties=properties,
            )
            return used + 1

        return self._repeat(RUNS, reserve)

    def merge_runs(
        self, new: pa.Table, choose: Callable[[Sequence[dict[str, Any]]], Sequence[int]]
    ) -> None:
        """Insert rows into ``runs``, or replace those of the same traces, in one commit.

        `choose` is called with the current rows of these traces, of the columns trace_id,
        addition, records and fingerprint, and returns the indices of the new ones to use. It
        is called again if another process has changed the table in between.
        """

        def merge() -> None:
            # The rows are read from the version on which the merge is based, so that Delta
            # Lake detects any commit since.
            table = self.create(RUNS, new.schema)
            trace_ids = new["trace_id"].to_pylist()
            chosen = choose(self.read_runs(_IDENTITY, trace_ids, table).to_pylist())
            if chosen:
                table.merge(
                    new.take(pa.array(chosen, pa.int64())),
                    "old.trace_id = new.trace_id",
                    source_alias="new",
                    target_alias="old",
                    # A stream has no statistics, by which files of the table are skipped.
                    streamed_exec=False,
                ).when_matched_update_all().when_not_matched_insert_all().execute()

        self._repeat(RUNS, merge)

    def compact_runs(self) -> None:
        """Merge the files of ``runs``, to which each commit adds one."""
        table = self.open(RUNS)
        if table and len(table.file_uris()) > _RUNS_FILES:
            # The process with the conflicting commit will merge them.
            with self.writing(RUNS), suppress(CommitFailedError):
                table.optimize.compact()

    def delete_runs(self, trace_ids: Sequence[str]) -> None:
        """Delete rows of ``runs`` in one commit."""
        if refused := _NOT_DELETABLE & set(self.uri):
            raise NotWritable(
                f"cannot remove traces from {self.uri!r}: deltalake cannot delete rows of a "
                f"table with {min(refused)!r} in its path; rename the folder"
            )
        record = deltalake.CommitProperties(
            custom_metadata={_REMOVED: json.dumps(list(trace_ids))}
        )
        self._repeat(
            RUNS,
            lambda: self.open_runs().delete(_is_one_of(trace_ids), commit_properties=record),
        )

    def lost_runs(self) -> set[str]:
        """Return the traces that vanished from ``runs`` without a call of :meth:`delete_runs`.

        They are found as long as the log of the table has the commit and its files exist.
        """
        import pyarrow.fs as pafs

        current = self.read_runs(["trace_id"])["trace_id"].to_pylist()
        removed: set[str] = set()
        present: set[str] = set()
        is_damaged = False
        with self.reading(RUNS):
            files = self.filesystem(RUNS)
            for info in files.get_file_info(pafs.FileSelector("_delta_log")):
                if not (commit := _COMMIT.fullmatch(info.base_name)):
                    continue
                with files.open_input_stream(info.path) as stream:
                    actions = _actions(stream.read())
                is_damaged |= not any("commitInfo" in action for action in actions)
                for action in actions:
                    removed.update(json.loads(action.get("commitInfo", {}).get(_REMOVED, "[]")))
                if any(action.get("remove", {}).get("dataChange") for action in actions):
                    # Older files may have been removed from the log, or by a compaction.
                    with suppress(NotAStore, *_ERRORS):
                        before = deltalake.DeltaTable(
                            self.table(RUNS),
                            version=int(commit[1]) - 1,
                            storage_options=self.options,
                        )
                        present.update(
                            self.read_runs(["trace_id"], None, before)["trace_id"].to_pylist()
                        )
            # What a damaged commit added is unknown, but the rows of other tables remain.
            segments = self.open("segments") if is_damaged else None
            if segments is not None:
                rows = self.read_runs(["trace_id"], None, segments)
                present.update(rows["trace_id"].to_pylist())
        return present - removed - set(current)

    def _repeat(self, name: str, commit: Callable[[], _Result]) -> _Result:
        """Repeat a commit to a table while other processes commit to it."""
        with self.writing(name):
            for attempt in range(1, _ATTEMPTS):
                with suppress(CommitFailedError):
                    return commit()
                # The pause grows, because many processes may commit.
                time.sleep(_PAUSE_SECONDS * attempt)
            return commit()

    def read_runs(
        self,
        columns: Sequence[str] | None = None,
        trace_ids: Sequence[str] | None = None,
        table: deltalake.DeltaTable | None = None,
    ) -> pa.Table:
        """Return rows of ``runs``, or of a version of it: all, or those of some traces."""
        predicate = None if trace_ids is None else _is_one_of(trace_ids)
        table = table or self.open_runs()
        with self.reading(RUNS):
            reader = table.scan(columns=list(columns) if columns else None, predicate=predicate)
            return pa.table(pa.RecordBatchReader.from_stream(reader).read_all())

    def files(self, name: str, additions: Sequence[int] | None) -> list[str]:
        """Return the files of a table that can have rows of some additions, or all files."""
        table = self.open(name)
        if table is None:
            return []
        return self.paths(
            name,
            [
                action
                for action in data_files(table).to_pylist()
                if additions is None
                or any(
                    action[f"min.{ADDITION}"] <= addition <= action[f"max.{ADDITION}"]
                    for addition in additions
                )
            ],
        )

    def paths(self, name: str, actions: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the paths of files of a table.

        Those of ``DeltaTable.file_uris`` are encoded as in a URL.
        """
        return [f"{self.table(name)}/{action['path']}" for action in actions]


#: Characters in the path of a table with which deltalake 1 panics when it deletes rows.
_NOT_DELETABLE: Final = frozenset("[]^|")

#: Columns that decide whether a trace replaces another one.
_IDENTITY: Final = ("trace_id", ADDITION, "records", "fingerprint")


#: Name of the file of a commit.
_COMMIT: Final = re.compile(r"(\d{20})\.json")

#: Name under which a commit records the traces that it removes, as a JSON list.
_REMOVED: Final = "roast.removed"


def _actions(content: bytes) -> list[dict[str, Any]]:
    """Return the actions of a commit; none if it is damaged, which Delta Lake ignores."""
    try:
        actions = [json.loads(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        return []
    return actions if all(isinstance(action, dict) for action in actions) else []


def _is_one_of(trace_ids: Sequence[str]) -> str:
    literals = ", ".join(map(literal, trace_ids))
    return f"trace_id IN ({literals})" if literals else "false"


def data_files(table: deltalake.DeltaTable) -> pa.Table:
    """Return the files of a table: path, size_bytes, modification_time and statistics."""
    return pa.table(table.get_add_actions(flatten=True))


@contextmanager
def _errors_as(kind: type[TraceError], problem: str, remedy: str) -> Iterator[None]:
    """Raise errors of the block as another kind, with their causes in one line."""
    try:
        yield
    except CommitFailedError:
        remedy = "another process is changing it: repeat the command later"
        raise kind(f"{problem}: {remedy}") from None
    except _ERRORS as error:
        causes = _CAUSE.sub(": ", str(error)).partition("\n")[0]
        if _NO_TLS in causes:
            causes = "the address of its server begins with http://, without encryption"
            remedy = _ALLOW_HTTP
        raise kind(f"{problem} ({causes}): {remedy}") from None
