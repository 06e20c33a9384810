"""Checking and compacting the tables of a store."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
from deltalake import WriterProperties
from deltalake.exceptions import CommitFailedError

from roast_analyze.errors import NotAStore
from roast_analyze.store.delta import Location, data_files
from roast_analyze.store.layout import ADDITION, GROUP_ROWS, MONTH, RAW, RUNS, VIEWS

if TYPE_CHECKING:
    import deltalake

    from roast_analyze.open.database import Listener

#: Size that files of a table are merged to.
FILE_BYTES: Final = 128 * 2**20

_HOUR_SECONDS: Final = 3600.0
_MAX_HOURS: Final = 1_000_000


@dataclass(frozen=True)
class Problem:
    """A difference between the rows of a table and those that were added."""

    table: str
    trace_id: str | None  # None for rows of interrupted or replaced additions
    detail: str

    @property
    def is_harmless(self) -> bool:
        """True for unused space, which :func:`compact_tables` frees."""
        return self.trace_id is None


def check_tables(place: Location) -> list[Problem]:
    """Count the rows of all tables by addition, and compare them with ``runs``."""
    runs = place.read_runs(["trace_id", ADDITION, "table_rows"]).to_pylist()
    problems = [
        Problem(RUNS, trace_id, f"the trace has {count} rows instead of 1")
        for trace_id, count in Counter(row["trace_id"] for row in runs).items()
        if count > 1
    ]
    lost = place.lost_runs()
    problems += [
        Problem(RUNS, trace_id, "removed without store remove: add the trace again")
        for trace_id in sorted(lost)
    ]
    for name in (*RAW, *VIEWS):
        expected = {
            row[ADDITION]: (row["trace_id"], dict(row["table_rows"]).get(name, 0))
            for row in runs
        }
        try:
            table = place.open(name)
            with place.reading(name):
                found = {} if table is None else _rows_by_addition(table)
        # One broken file must not hide problems of other tables.
        except NotAStore as error:
            problems.append(Problem(name, "", str(error)))
            continue
        for addition, (trace_id, rows) in expected.items():
            if found.get(addition, 0) != rows:
                detail = f"{found.get(addition, 0)} rows instead of {rows}"
                problems.append(Problem(name, trace_id, detail))
        if unused := sum(n for addition, n in found.items() if addition not in expected):
            kinds = "interrupted, replaced or lost" if lost else "interrupted or replaced"
            problems.append(
                Problem(name, "" if lost else None, f"{unused} rows of {kinds} additions")
            )
    return problems


def compact_tables(place: Location, grace_hours: float, listener: Listener) -> None:
    """Merge the files of each table and month, in the order of additions, and drop old rows."""
    if lost := place.lost_runs():
        raise NotAStore(
            f"cannot compact {place.uri!r}: {min(lost)!r} is missing in runs, although nobody "
            "removed it, and its rows would be deleted; add it again"
        )
    valid = set(place.read_runs([ADDITION])[ADDITION].to_pylist())
    names = (*RAW, *VIEWS, RUNS)
    for i, name in enumerate(names):
        listener(f"compacting {name}", i / len(names))
        table = place.open(name)
        if table is not None:
            with place.writing(name):
                _compact(name, table, valid, grace_hours)


def _compact(
    name: str, table: deltalake.DeltaTable, valid: set[int], grace_hours: float
) -> None:
    """Merge the files of one table, and drop rows of additions that are not valid."""
    # Rows of runs are deleted when a trace is removed or replaced.
    if name != RUNS:
        # Rows of invalid additions, but only in old files: newer ones may belong to an
        # addition that is about to be committed.
        oldest = (time.time() - grace_hours * _HOUR_SECONDS) * 1000
        files = data_files(table)
        is_old = pc.less_equal(files["modification_time"], oldest)
        paths = set(files.filter(is_old)["path"].to_pylist())
        if unused := _rows_by_addition(table, paths).keys() - valid:
            # If another process has just changed the table, the next call deletes them.
            with suppress(CommitFailedError):
                table.delete(f"{ADDITION} IN ({', '.join(map(str, sorted(unused)))})")
    small = Counter(
        file[f"partition.{MONTH}"]
        for file in data_files(table).to_pylist()
        if file["size_bytes"] < FILE_BYTES / 2
    )
    for month in sorted(month for month, files in small.items() if files > 1):
        with suppress(CommitFailedError):  # another process has merged these files
            # In the order of additions, so that a query of one trace skips most row groups.
            table.optimize.z_order(
                [ADDITION],
                partition_filters=[(MONTH, "=", month)],
                target_size=FILE_BYTES,
                writer_properties=WriterProperties(
                    compression="ZSTD", max_row_group_size=GROUP_ROWS
                ),
            )
    table.vacuum(
        # The library accepts only whole hours, and panics if there are too many.
        retention_hours=math.ceil(min(grace_hours, _MAX_HOURS)),
        dry_run=False,
        enforce_retention_duration=False,
        full=True,
    )
    # Readers then need no commits from before.
    table.create_checkpoint()
    table.cleanup_metadata()


def _rows_by_addition(
    table: deltalake.DeltaTable, paths: set[str] | None = None
) -> Mapping[int, int]:
    """Return the number of rows of each addition, in all files or in some."""
    dataset = table.to_pyarrow_dataset()
    counts: Counter[int] = Counter()
    for fragment in dataset.get_fragments():
        if paths is None or fragment.path in paths:
            for batch in fragment.to_batches(columns=[ADDITION]):
                for entry in pc.value_counts(batch.column(0)).to_pylist():
                    counts[entry["values"]] += entry["counts"]
    return counts
