"""Views as tables of a database of their own, and relations between them that must hold.

A view that is a `GROUP BY` of entities is compared with this `GROUP BY` of rows that are
computed a second time, of other views, or of the decoded lines. :mod:`nightly.relations` lists
the relations.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from nightly import chunks, core_time, processes, states, tasks
from nightly.comparison import Answer, differences, is_same
from nightly.recording import Recording, Row

if TYPE_CHECKING:
    from roast_analyze import Trace

TEXT, FLAG, COUNT, NUMBER = pl.String, pl.Boolean, pl.Int64, pl.Float64

#: Tables of the second computation, and their columns.
COMPUTED = {
    "records": {"kind": TEXT, "place": COUNT, "t": NUMBER, "record": TEXT},
    "processes": {
        "process": COUNT, "worker": TEXT, "server_id": TEXT, "name": TEXT, "nthreads": COUNT,
        "start_t": NUMBER, "stop_t": NUMBER, "kill_bytes": COUNT,
    },
    "buckets": {"t": NUMBER, "start": NUMBER, "stop": NUMBER},
    "stays": {"state": TEXT, "start_t": NUMBER, "stop_t": NUMBER},
    "attempts": {
        "key": TEXT, "prefix": TEXT, "attempt": COUNT, "worker": TEXT, "outcome": TEXT,
        "processing_t": NUMBER, "end_t": NUMBER, "compute_seconds": NUMBER,
        "transfer_seconds": NUMBER, "deserialize_seconds": NUMBER, "disk_seconds": NUMBER,
        "nbytes": COUNT, "role": TEXT, "kept": FLAG, "task_group": TEXT, "process": COUNT,
    },
    "chunk_attempts": {
        "key": TEXT, "attempt": COUNT, "dataset": TEXT, "filename": TEXT, "treename": TEXT,
        "worker": TEXT,
        "outcome": TEXT, "processing_t": NUMBER, "start_t": NUMBER, "stop_t": NUMBER,
        "end_t": NUMBER, "compute_seconds": NUMBER, "output_bytes": COUNT, "kept": FLAG,
        "events": COUNT, "bytes_read": COUNT, "process_seconds": NUMBER,
        "open_seconds": NUMBER, "read_seconds": NUMBER, "cpu_seconds": NUMBER,
        "wait_seconds": NUMBER, "requests": COUNT, "source": TEXT, "file_branches": COUNT,
        "branches_read": COUNT, "file_bytes": COUNT, "compressed_bytes": COUNT,
        "uncompressed_bytes": COUNT, "packed_bytes": COUNT, "unpacked_bytes": COUNT,
        "memory_peak_bytes": COUNT, "from_checkpoint": FLAG, "has_task": FLAG,
        "is_first_result": FLAG, "event_seconds": NUMBER, "process": COUNT,
        "is_warming_up": FLAG, "entry_stop": COUNT,
    },
}  # fmt: skip


class Copy:
    """A database with all views of one or several traces, and the tables :data:`COMPUTED`."""

    def __init__(
        self, trace: "Trace", recordings: dict[str, Recording], views: list[str], prepare: str
    ) -> None:
        """Copy the views, compute the tables, and run the statements of `prepare`."""
        self.database = duckdb.connect()
        self.types = {}
        for view in views:
            relation = trace.view(view)
            self.types[view] = dict(
                zip(relation.columns, map(str, relation.types), strict=True)
            )
            self._create(view, relation.to_arrow_table())
        for table, columns in COMPUTED.items():
            rows = [
                row | {"trace_id": trace_id}
                for trace_id, recording in recordings.items()
                for row in _ROWS[table](recording)
            ]
            schema = columns | {"trace_id": TEXT}
            narrow = [{name: row.get(name) for name in schema} for row in rows]
            self._create(table, pl.DataFrame(narrow, schema=schema, orient="row"))
        self.database.execute(prepare)

    def _create(self, table: str, content: object) -> None:
        self.database.register("content", content)
        self.database.execute(f'CREATE TABLE "{table}" AS FROM content')
        self.database.unregister("content")

    def rows(self, query: str) -> list[Row]:
        """Return the rows of a query."""
        return Answer.of(self.database.sql(query)).rows

    def without_type(self, view: str, columns: str) -> str:
        """Select columns of a view as they are in the trace: the copy has no JSON."""
        return ", ".join(
            f'"{name}"::JSON AS "{name}"' if self.types[view][name] == "JSON" else f'"{name}"'
            for name in columns.split()
        )


def _text(line: dict) -> str:
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def _record_rows(recording: Recording) -> Iterator[Row]:
    for place, line in enumerate(recording.lines):
        yield {"kind": line["kind"], "place": place, "t": line["t"], "record": _text(line)}


def _process_rows(recording: Recording) -> Iterator[Row]:
    present = processes.presence(recording)
    for number, process in enumerate(processes.processes(recording)):
        start_t, stop_t, nthreads = present[number]
        yield {
            "process": number, "worker": process.address, "nthreads": nthreads,
            "start_t": start_t, "stop_t": stop_t, "kill_bytes": process.kill_bytes,
            **{name: process.added.get(name) for name in ("server_id", "name")},
        }  # fmt: skip


def _stay_rows(recording: Recording) -> Iterator[Row]:
    _, stop_t = processes.extent(recording)
    for stay in states.stays(recording):
        until_t = stay.end["t"] if stay.end else stop_t
        yield {"state": stay.state, "start_t": stay.from_t, "stop_t": until_t}


def _attempt_rows(recording: Recording) -> Iterator[Row]:
    both = zip(tasks.attempts(recording), tasks.task_runs(recording), strict=True)
    for attempt, run in both:
        process = processes.process_of(recording, run["worker"], run["processing_t"])
        yield run | {"task_group": (attempt.task or {}).get("group"), "process": process}


_ROWS = {
    "records": _record_rows,
    "processes": _process_rows,
    "buckets": core_time.buckets,
    "stays": _stay_rows,
    "attempts": _attempt_rows,
    "chunk_attempts": chunks.chunk_attempts,
}


@dataclass(frozen=True)
class Total:
    """A view whose rows are groups of the rows of a source."""

    view: str
    #: Columns that identify a group within a trace, the same in view and source.
    by: str
    #: A table, or what follows FROM.
    source: str
    #: An aggregate of the source by column of the view. Groups without rows of the source are
    #: described by nulls, in one row that has no `is_row`.
    columns: dict[str, str]
    #: Which rows of the view are groups.
    where: str = "true"
    #: Whether the view may lack groups of the source.
    is_part: bool = False
    #: Whether a group may have several rows of the view.
    several: bool = False

    def differences(self, copy: Copy) -> list[str]:
        """Return the groups and columns that differ."""
        by = ["trace_id", *self.by.split()]
        types = copy.types[self.view]
        keys = ", ".join(f'"{name}" AS "_{name}"' for name in by)
        same = " AND ".join(f'"_{name}" IS NOT DISTINCT FROM source."{name}"' for name in by)
        groups = f'SELECT DISTINCT {keys} FROM "{self.view}" WHERE {self.where}'
        if not self.is_part:
            groups += f" UNION SELECT DISTINCT {keys} FROM source"
        grouping = ", ".join(f'"_{name}"' for name in by)
        sums = ", ".join(
            f'({sql})::{types[name]} AS "{name}"' for name, sql in self.columns.items()
        )
        expected = copy.rows(
            f"WITH source AS (SELECT *, true AS is_row FROM {self.source}), "
            f"groups AS ({groups}) "
            f"SELECT {grouping}, {sums} "
            f"FROM groups LEFT JOIN source ON {same} GROUP BY {grouping}"
        )
        names = " ".join([*by, *self.columns])
        found = copy.rows(
            f'SELECT {copy.without_type(self.view, names)} FROM "{self.view}" '
            f"WHERE {self.where}"
        )
        by_key = {_key(row, [f"_{name}" for name in by]): row for row in expected}
        named = [_key(row, by) for row in found]
        wrong = [
            f"{rows} rows of {key}"
            for key, rows in Counter(named).items()
            if rows > 1 and not self.several
        ]
        wrong += [f"no row of {key}" for key in by_key.keys() - {*named}]
        return wrong + [
            f"{key}: {name} is {row[name]!r}, not {by_key[key][name]!r}"
            for key, row in zip(named, found, strict=True)
            for name in self.columns
            if not is_same(name, row[name], by_key[key][name])
        ]


def _key(row: Row, names: list[str]) -> tuple:
    return tuple(str(row[name]) if row[name] is not None else None for name in names)


@dataclass(frozen=True)
class Same:
    """Columns of a view, with duplicates, that are those of a query."""

    view: str
    #: What follows FROM.
    source: str
    #: Expression by column of the view.
    columns: dict[str, str]
    #: Which rows of the view are meant.
    where: str = "true"

    def differences(self, copy: Copy) -> list[str]:
        """Return the rows and columns that differ."""
        types = copy.types[self.view]
        names = " ".join([*self.columns, "trace_id"])
        found = Answer.of(
            copy.database.sql(
                f'SELECT {copy.without_type(self.view, names)} FROM "{self.view}" '
                f"WHERE {self.where}"
            )
        )
        selected = ", ".join(
            f'({sql})::{types[name]} AS "{name}"' for name, sql in self.columns.items()
        )
        return differences(found, copy.rows(f"SELECT {selected}, trace_id FROM {self.source}"))


@dataclass(frozen=True)
class Fields:
    """Columns of a view that are fields of the records of a kind."""

    view: str
    kind: str
    #: Columns named like their field.
    alike: str
    #: Path of the field by column, as `measured.cpu_seconds`.
    renamed: dict[str, str] = field(default_factory=dict)
    #: Which records have a row.
    having: str = "true"
    #: Which rows of the view are records.
    where: str = "true"

    def differences(self, copy: Copy) -> list[str]:
        """Return the rows and columns that differ."""
        types = copy.types[self.view]
        paths = {name: name for name in self.alike.split()} | self.renamed
        columns = {name: extracted(path, types[name]) for name, path in paths.items()}
        source = f"records WHERE kind = '{self.kind}' AND {self.having}"
        return Same(self.view, source, columns, self.where).differences(copy)


def extracted(path: str, type_: str) -> str:
    """Return the expression for a field of a record."""
    if type_ == "VARCHAR":
        return f"record ->> '$.{path}'"
    if type_ == "JSON":
        return f"nullif(record -> '$.{path}', 'null'::JSON)"
    return f"(record -> '$.{path}')"


@dataclass(frozen=True)
class Never:
    """Rows that must not exist."""

    what: str
    query: str
    #: The view, if this says what its rows are.
    view: str | None = None

    def differences(self, copy: Copy) -> list[str]:
        """Return the rows."""
        return [f"{self.what}: {row}" for row in copy.rows(self.query)]


Relation = Total | Same | Fields | Never
