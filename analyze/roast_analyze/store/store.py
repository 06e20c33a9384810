"""The class :class:`Store`: many runs in Delta Lake tables."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from roast_analyze.dask_cluster import call_each
from roast_analyze.errors import UnknownTrace, first_paragraph
from roast_analyze.open.discover import segment_paths
from roast_analyze.open.readable import TraceFailure, readable_traces
from roast_analyze.open.remote import shown_name
from roast_analyze.store.conversion import Converted, Source, convert, runs_schema
from roast_analyze.store.delta import Location
from roast_analyze.store.maintenance import Problem, check_tables, compact_tables
from roast_analyze.store.session import StoreSession, named_traces
from roast_schemas.urls import safe_message

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from roast_analyze.dask_cluster import Client
    from roast_analyze.open.database import Listener

#: Size of the trace files that one call converts, which it exceeds by at most one trace. The
#: traces of a call share files of the store.
BATCH_BYTES: Final = 16 * 2**20

#: Time between commits, each of which costs a few files per table.
_COMMIT_SECONDS: Final = 10.0

#: Removed rows and files of interrupted additions are kept for this time, because another
#: process may be about to commit or to read them.
GRACE_HOURS: Final = 24.0


@dataclass
class Added:
    """Result of adding traces: numbers of traces, and those that could not be read."""

    added: int = 0
    unchanged: int = 0  # in the store already, or in a longer version
    failures: tuple[TraceFailure, ...] = ()


class Store:
    """Runs in Delta Lake tables, in a folder or an object store.

    Parameters
    ----------
    path : path-like or str
        Folder or URL (``s3://…``, ``gs://…``, ``az://…``).
    storage_options : dict, optional
        Options of the object store, as those of the library ``deltalake``. The default is the
        environment, such as ``AWS_REGION``. Queries read with fsspec, which uses only the
        environment and its own configuration.
    memory_limit : str or int, optional
        Memory limit of queries, as for :class:`roast_analyze.Trace`.
    cache : bool
        Keep tables that queries compute in the cache.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        memory_limit: str | int | None = None,
        cache: bool = True,
    ) -> None:
        self._place = Location.of(os.fspath(path), storage_options)
        self._memory_limit = memory_limit
        self._cache = cache
        self._session: StoreSession | None = None

    @property
    def path(self) -> str:
        """Absolute path or URL of the store."""
        return self._place.uri

    def add(
        self,
        traces: Sequence[str | os.PathLike[str]],
        *,
        client: Client | None = None,
        listener: Listener = lambda _stage, _share: None,
    ) -> Added:
        """Add traces, or replace shorter versions of them; create the store if necessary.

        Parameters
        ----------
        traces : sequence of path-like
            Trace files, folders of segments, patterns for either, or URLs.
        client : distributed.Client, optional
            Client of a cluster that converts the traces. Its workers need access to the
            traces and to the store, and roast-trace[analyze,store].
        listener : callable, optional
            Called with the current stage and the finished share, from 0 to 1.

        Returns
        -------
        Added
            Traces that cannot be read are listed; all others are added.
        """
        groups, failures = readable_traces(traces)
        result = Added()
        if not groups:
            result.failures = tuple(failures)
            return result
        sizes = [
            sum(path.stat().st_size for name in paths for path in segment_paths(name))
            for paths in groups
        ]
        # A cluster can be without workers at first.
        threads = max(1, sum(client.nthreads().values())) if client else 1
        batches = in_batches(self._sources(groups, sizes), sizes, threads)
        # A call takes one thread of its worker.
        call = partial(convert, store=self._place, threads=1 if client else None)
        waiting = Converted()
        committed_at = monotonic()
        finished = 0
        # A batch whose worker was killed is repeated trace by trace.
        while batches:
            alone: list[list[Source]] = []
            for batch, converted in call_each(call, batches, client):
                if isinstance(converted, Converted):
                    waiting += converted
                elif len(batch) > 1:
                    # The worker was killed, possibly because of one of the traces.
                    alone += ([source] for source in batch)
                    continue
                else:
                    failures.append(
                        TraceFailure(shown_name(batch[0].paths[0]), first_paragraph(converted))
                    )
                finished += len(batch)
                listener("converting", finished / len(groups))
                if monotonic() - committed_at > _COMMIT_SECONDS:
                    self._commit(waiting, result)
                    waiting, committed_at = Converted(), monotonic()
            batches = alone
        self._commit(waiting, result)
        result.failures = (*failures, *result.failures)
        return result

    def version(self) -> int:
        """Return a number that changes with the table ``runs``."""
        return self._place.open_runs().version()

    def runs(self) -> pl.DataFrame:
        """Return the table ``runs``, one row per trace, the newest run first."""
        runs = pl.DataFrame(self._place.read_runs())
        return runs.sort("start_t", "trace_id", descending=True, nulls_last=True)

    def remove(self, trace_ids: Sequence[str]) -> None:
        """Remove traces at once; :meth:`compact` removes their files.

        Raises
        ------
        UnknownTrace
            If the store does not have one of them.
        """
        self._check_traces(trace_ids)
        if trace_ids:
            self._place.delete_runs(trace_ids)

    def expired(
        self, *, before_t: float | None = None, most_bytes: int | None = None
    ) -> list[str]:
        """Return the traces that a limit of age or size removes, the oldest first.

        Parameters
        ----------
        before_t : float, optional
            Traces of runs that began before this time, in seconds since the epoch.
        most_bytes : int, optional
            Maximum total size of the files from which the remaining traces were added: the
            oldest traces beyond it are returned.
        """
        newest_first = self.runs().select("trace_id", "start_t", "trace_bytes")
        is_expired = pl.lit(value=False)
        if before_t is not None:
            is_expired |= pl.col("start_t") < before_t
        if most_bytes is not None:
            # From the newest run on.
            is_expired |= pl.col("trace_bytes").cum_sum() > most_bytes
        return newest_first.filter(is_expired)["trace_id"].reverse().to_list()

    def compact(
        self,
        *,
        grace_hours: float = GRACE_HOURS,
        listener: Listener = lambda _stage, _share: None,
    ) -> None:
        """Merge small files, and remove rows that are not part of the store.

        Parameters
        ----------
        grace_hours : float
            Minimum age of rows of interrupted additions, and of files without a table, to be
            removed. If it is 0, no other process may write to the store or read from it.
        listener : callable, optional
            Called with the current stage and the finished share, from 0 to 1.
        """
        compact_tables(self._place, grace_hours, listener)

    def check(self) -> list[Problem]:
        """Compare the rows of all tables with those that were added."""
        return check_tables(self._place)

    def sql(
        self, query: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> DuckDBPyRelation:
        """Run a query in DuckDB's SQL, on the views of a trace and of the store.

        A query of which all rows depend only on certain traces (``WHERE trace_id = '…'``)
        reads only the files of these.

        Parameters
        ----------
        query, parameters
            As for :meth:`roast_analyze.Trace.sql`.
        """
        return self.session_for(query, parameters).sql(query, parameters)

    def session_for(
        self, query: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> StoreSession:
        """Open the traces that a query can have rows of."""
        return self._open(named_traces(query, parameters))

    def trace(self, *trace_ids: str) -> StoreSession:
        """Open some traces of the store; raise UnknownTrace if it does not have one of them."""
        self._check_traces(trace_ids)
        return self._open(trace_ids)

    def __repr__(self) -> str:
        return safe_message(f"Store({self.path!r})")

    def _open(self, trace_ids: Sequence[str] | None) -> StoreSession:
        runs = self._place.open_runs()
        # A session is used again until another trace is asked for or the store changes.
        key = (runs.version(), None if trace_ids is None else tuple(sorted(trace_ids)))
        if self._session is None or self._session.key != key:
            self._session = StoreSession(
                self._place, runs, key, self._memory_limit, cache=self._cache
            )
        return self._session

    def _check_traces(self, trace_ids: Sequence[str]) -> None:
        rows = self._place.read_runs(["trace_id"], trace_ids)
        if missing := sorted(set(trace_ids) - set(rows["trace_id"].to_pylist())):
            raise UnknownTrace(
                f"{self.path!r} has no trace {missing[0]!r}: see roast-analyze store list"
            )

    def _sources(
        self, groups: Sequence[tuple[Path, ...]], sizes: Sequence[int]
    ) -> list[Source]:
        """Return the traces with the numbers of their additions."""
        self._place.create_runs(runs_schema)
        # Numbers are reserved at once, because each reservation is a commit.
        first = self._place.reserve(len(groups))
        # The fingerprints of traces in the store that have one of the sizes.
        rows = pl.DataFrame(self._place.read_runs(["trace_bytes", "fingerprint"]))
        same_size = rows.filter(pl.col("trace_bytes").is_in(sizes))
        by_size = same_size.group_by("trace_bytes").all()
        known = {size: frozenset(digests) for size, digests in by_size.iter_rows()}
        return [
            Source(paths, addition, known.get(nbytes, frozenset()))
            for addition, (paths, nbytes) in enumerate(zip(groups, sizes, strict=True), first)
        ]

    def _commit(self, converted: Converted, result: Added) -> None:
        """Commit what was converted, and count it in the result."""
        result.unchanged += len(converted.unchanged)
        result.failures += converted.failures
        if not converted.runs:
            return
        self._place.append(converted.files)
        new = pa.concat_tables(converted.runs, promote_options="default")
        added = new.select(["trace_id", "records", "fingerprint"]).to_pylist()
        chosen: list[int] = []

        def choose(current: Sequence[Mapping[str, Any]]) -> list[int]:
            # A trace is replaced by another version of it that has as many records, or more.
            best = {row["trace_id"]: row for row in current}
            for row in added:
                known = best.get(row["trace_id"], {"records": -1, "fingerprint": None})
                if (
                    row["fingerprint"] != known["fingerprint"]
                    and row["records"] >= known["records"]
                ):
                    best[row["trace_id"]] = row
            chosen[:] = [i for i, row in enumerate(added) if best[row["trace_id"]] is row]
            return chosen

        self._place.merge_runs(new, choose)
        self._place.compact_runs()
        result.added += len(chosen)
        result.unchanged += new.num_rows - len(chosen)


def in_batches(
    sources: Sequence[Source], sizes: Sequence[int], threads: int
) -> list[list[Source]]:
    """Divide traces into batches of about the same size.

    If there are enough traces, each thread has the same number of batches.
    """
    total = max(1, sum(sizes))
    parts = threads * math.ceil(total / threads / BATCH_BYTES)
    batches: dict[int, list[Source]] = {}
    begin = 0
    for source, nbytes in zip(sources, sizes, strict=True):
        # The part of all bytes that contains the middle of the trace.
        batches.setdefault(int((begin + nbytes / 2) / total * parts), []).append(source)
        begin += nbytes
    return [*batches.values()]
