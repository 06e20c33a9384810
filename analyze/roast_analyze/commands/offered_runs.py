"""Runs that a server offers by name: those of a file or folder, or of a store."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from roast_analyze.commands.trace_args import open_trace
from roast_analyze.errors import NotATrace, UnknownTrace
from roast_analyze.open.discover import segment_paths
from roast_analyze.open.readable import readable_traces
from roast_analyze.open.remote import shown_name
from roast_analyze.open.views import nearest
from roast_analyze.report.comparison.labels import distinct_labels
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from roast_analyze.open.session import Session
    from roast_analyze.store.store import Store


class OfferedRuns(Protocol):
    """Runs by name, at most one of which is open."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per run, the newest first, with its name in ``run``."""

    def open(self, run: str | None) -> Session:
        """Open a run; without a name, the only one. It stays open until the next call."""

    def open_for(self, run: str | None, query: str) -> Session:
        """Open what a query reads: a run; without a name, the only one or a whole store."""

    def close(self) -> None:
        """Close what is open, from any thread: a query that runs is interrupted."""


class TraceRuns:
    """The traces of a file, a folder, a pattern or a URL.

    A folder is read again when the runs are listed, and a trace that has grown when it is
    opened.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self._name = name
        self._options = options
        self._failures: dict[str, str] = {}
        self._traces: dict[str, tuple[Path, ...]] = {}
        self._opened: tuple[object, Session] | None = None
        self._lock = threading.Lock()
        self._discover()

    def rows(self) -> list[dict[str, Any]]:
        """Return name, paths, size and time of the last change; errors of unreadable files."""
        self._discover()
        found = []
        for run, paths in self._traces.items():
            states = [file.stat() for path in paths for file in segment_paths(path)]
            changed = datetime.fromtimestamp(max(it.st_mtime for it in states), UTC)
            found.append(
                {
                    "run": run,
                    "paths": [visible(shown_name(path)) for path in paths],
                    "bytes": sum(it.st_size for it in states),
                    "last_change": f"{changed:%F %T} UTC",
                }
            )
        found.sort(key=lambda row: str(row["last_change"]), reverse=True)
        failures = [{"path": path, "error": why} for path, why in self._failures.items()]
        return found + failures

    def open(self, run: str | None) -> Session:
        """Open a trace, unless it is open and has not grown."""
        if run is not None and run not in self._traces:
            self._discover()
        paths = self._traces[chosen(run, list(self._traces))]
        files = [file for path in paths for file in segment_paths(path)]
        key = [(file, file.stat().st_size) for file in files]
        with self._lock:
            opened = self._opened
        if opened is not None and opened[0] == key:
            return opened[1]
        self.close()
        session = open_trace(paths, self._options)
        with self._lock:
            self._opened = key, session
        return session

    def open_for(self, run: str | None, query: str) -> Session:  # noqa: ARG002
        """Open a trace: queries read one."""
        return self.open(run)

    def close(self) -> None:
        """Close the trace that is open."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()

    def _discover(self) -> None:
        traces, failures = readable_traces([self._name])
        if not traces:
            # A single file that is no trace is an error of the call.
            raise NotATrace(failures[0].reason)
        labels, _ = distinct_labels(traces)
        self._traces = dict(zip(map(visible, labels), traces, strict=True))
        self._failures = {visible(it.path): visible(it.reason) for it in failures}


class StoreRuns:
    """The traces of a store, named by their ``trace_id``."""

    #: Columns of the table ``runs`` that identify a run and its size.
    COLUMNS = (
        "label", "program", "owner", "start_t", "wall_seconds", "workers", "tasks", "task_runs",
        "chunks", "events", "failures", "lost_records",
    )  # fmt: skip

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self._name = name
        self._options = options
        self._store = self._new_store()
        self._opened: Session | None = None
        self._store.runs()  # an error if it is none

    def rows(self) -> list[dict[str, Any]]:
        """Return some columns of the table ``runs``."""
        runs = self._store.runs()
        columns = [name for name in self.COLUMNS if name in runs.columns]
        return [
            {"run": row.pop("trace_id"), **row}
            for row in runs.select("trace_id", *columns).to_dicts()
        ]

    def open(self, run: str | None) -> Session:
        """Open a trace of the store."""
        if run is None:
            run = chosen(None, self._store.runs()["trace_id"].to_list())
        self._opened = self._store.trace(run)
        return self._opened

    def open_for(self, run: str | None, query: str) -> Session:
        """Open a trace of the store, or those that a query can have rows of."""
        if run is not None:
            return self.open(run)
        self._opened = self._store.session_for(query)
        return self._opened

    def close(self) -> None:
        """Close the session of the store; the next one is that of a new object."""
        opened, self._opened = self._opened, None
        if opened is not None:
            # The store would use its last session again.
            self._store = self._new_store()
            opened.close()

    def _new_store(self) -> Store:
        # Its libraries are those of another extra.
        from roast_analyze.store.store import Store

        options = self._options
        return Store(self._name, memory_limit=options.memory_limit, cache=options.cache)


def chosen(run: str | None, names: Sequence[str]) -> str:
    """Return the name of a run, the only one if it is None; raise UnknownTrace without one."""
    if run is None and len(names) == 1:
        return names[0]
    if run is None:
        raise UnknownTrace(f"{len(names)} runs are offered: name one; the tool runs lists them")
    if run not in names:
        near = nearest(run, names)
        hint = f"did you mean {near!r}?" if near else "the tool runs lists them"
        raise UnknownTrace(f"no run {run!r}: {hint}")
    return run
