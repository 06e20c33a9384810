"""The list of runs: what is known of each, which of them are live, and what has changed.

A thread renews the list. Its other methods can be called from any thread.
"""

from __future__ import annotations

import pwd
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import xxhash

from roast_analyze.errors import TraceError
from roast_analyze.open.discover import trace_name
from roast_analyze.report.live import ABANDONED_SECONDS
from roast_analyze.safe_text import one_line
from roast_analyze.server.facts import Facts
from roast_analyze.server.folder import MOST_ENTRIES, Folder
from roast_analyze.server.following import Following
from roast_analyze.server.kept import Kept
from roast_analyze.server.listing import Listed, progress, row
from roast_analyze.server.sources import StoreSource, TraceSource
from roast_schemas.urls import safe_message

if TYPE_CHECKING:
    from roast_analyze.server.folder import FoundTrace

#: Time between two looks at a folder: at least, as a multiple of what one takes, and at most.
INTERVAL_SECONDS: Final = 1.0
_PAUSE_RATIO: Final = 10
_MOST_PAUSE_SECONDS: Final = 30.0

#: Time between two looks at a store, whose runs do not change.
_STORE_SECONDS: Final = 10.0

#: Time in which appended records of a live run are read, before others are; and the pause after
#: that if there are more.
_READING_SECONDS: Final = 0.25

#: Time in which the first records of a trace are read whose facts are not known yet.
_GLANCE_SECONDS: Final = 0.05

#: The facts of so many runs are read before they are opened, the newest ones, unless a trace is
#: larger than this.
_READ_AHEAD: Final = 1_000
_READ_AHEAD_BYTES: Final = 64 * 2**20

#: Called with a run whose facts are not known.
Reader = Callable[[Listed], None]


class Catalog(ABC):
    """The runs of a folder or a store."""

    #: What is served, and what to do if it has no run.
    name: str
    hint: str

    def __init__(self, cache_folder: Path, read: Reader) -> None:
        self._cache_folder = cache_folder
        self._read = read
        self._lock = threading.Lock()
        self._runs: dict[str, Listed] = {}
        #: Identities of removed runs, with the renewal in which they were removed.
        self._removed: dict[str, int] = {}
        self._version = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="roast-catalog", daemon=True)
        self.note = ""
        #: Whether the runs were looked for once.
        self.is_known = False

    def start(self) -> None:
        """Begin to renew the list."""
        self._thread.start()

    def close(self) -> None:
        """Stop renewing the list."""
        self._ended.set()
        self._thread.join()

    def find(self, run_id: str) -> Listed | None:
        """Return a run of the list."""
        with self._lock:
            return self._runs.get(run_id)

    def changes(self, since: int) -> dict[str, Any]:
        """Return the runs that changed after a version of the list, and those removed."""
        with self._lock:
            return {
                "version": self._version,
                "rows": [run.row for run in self._runs.values() if run.version > since],
                "removed": [name for name, version in self._removed.items() if version > since],
                "note": self.note,
                "is_known": self.is_known,
            }

    def learned(self, run: Listed, facts: Facts | None, error: str) -> None:
        """Add what a process has read of a run."""
        with self._lock:
            # The run may have changed meanwhile, and is then another object.
            if self._runs.get(run.id) is run:
                run.is_expected, run.glance = False, None
                if facts is not None:
                    run.facts, run.error = facts, ""
                elif run.facts is None and run.live is None:
                    run.error = one_line(error, 1_000)
                self._publish(run)

    @abstractmethod
    def renew(self) -> float:
        """Look for runs and changes; return the time until the next look."""

    def _renew(self) -> None:
        while not self._ended.is_set():
            pause = self.renew()
            self.is_known = True
            self._ended.wait(pause)

    def _publish(self, run: Listed) -> None:
        """Add a changed run to the next answer."""
        self._version += 1
        run.version = self._version
        run.row = row(run)
        if run.live is not None:
            run.progress = progress(run, run.live)
        self._runs[run.id] = run
        self._removed.pop(run.id, None)

    def _remove_others(self, present: set[str]) -> None:
        for run_id in self._runs.keys() - present:
            self._version += 1
            del self._runs[run_id]
            self._removed[run_id] = self._version

    def _read_ahead(self, new: list[Listed]) -> None:
        """Request the facts of new runs, the newest run first."""
        unknown = [run for run in new if not run.error and _is_unknown(run.facts)]
        unknown = [run for run in unknown if run.nbytes <= _READ_AHEAD_BYTES]
        unknown.sort(key=lambda run: run.changed_t or 0.0, reverse=True)
        for run in unknown[:_READ_AHEAD]:
            with self._lock:
                run.is_expected = True
                self._publish(run)
            self._read(run)


def _is_unknown(facts: Facts | None) -> bool:
    return facts is None or facts.finding is None


class FolderCatalog(Catalog):
    """The traces in a folder, and in those in it."""

    def __init__(
        self,
        folder: Path,
        cache_folder: Path,
        read: Reader,
        memory_limit: str | None,
        *,
        cache: bool,
    ) -> None:
        super().__init__(cache_folder, read)
        self._folder = Folder(folder)
        self._source = partial(TraceSource, memory_limit=memory_limit, cache=cache)
        #: The traces as they were found last.
        self._found: dict[str, FoundTrace] = {}
        #: Runs of which nothing was read.
        self._unseen: deque[tuple[Listed, Following]] = deque()
        #: When each live run was last seen to change, on the monotonic clock.
        self._changed: dict[str, float] = {}
        self.name = one_line(str(folder), 300)
        self.hint = (
            "No trace yet. Traces of roast that are written to this folder, or to one in it, "
            "appear here."
        )

    def renew(self) -> float:
        """Look for new and changed files, and read what was appended to those of live runs."""
        begin = time.monotonic()
        new, present = [], set()
        for found in self._folder.traces():
            present.add(found.id)
            if self._found.get(found.id) != found:
                run = self._changed_run(found)
                if run.live is None:
                    new.append(run)
        if self._folder.is_cut:
            self.note = f"Only the first {MOST_ENTRIES:,} files and folders were looked at."
        with self._lock:
            self._remove_others(present)
            live = [run for run in self._runs.values() if run.live is not None]
        for gone in self._found.keys() - present:
            del self._found[gone], self._changed[gone]
        took = time.monotonic() - begin
        pause = min(max(INTERVAL_SECONDS, _PAUSE_RATIO * took), _MOST_PAUSE_SECONDS)
        are_read = [self._follow(run) for run in live]
        self._read_ahead(new + [run for run in live if run.live is None])
        are_read.append(self._glance())
        return pause if all(are_read) else _READING_SECONDS

    def _changed_run(self, found: FoundTrace) -> Listed:
        """Add a trace that is new or has changed to the list."""
        known = self.find(found.id)
        before, self._found[found.id] = self._found.get(found.id), found
        source = self._source(found.paths)
        run = Listed(
            id=found.id,
            source=source,
            kept=Kept.of(self._cache_folder, source.key, found.stamp),
            name=found.name,
            place=found.place,
            copy_of=found.copy_of,
            owner=_user_name(found.owner),
            nbytes=found.nbytes,
            changed_t=found.changed_t,
            error=found.error,
        )
        if before is None:
            age = max(time.time() - found.changed_t, 0.0)
            self._changed[run.id] = time.monotonic() - age
        elif before.stamp != found.stamp:
            self._changed[run.id] = time.monotonic()
        age = time.monotonic() - self._changed[run.id]
        if not run.error:
            if known is not None and known.source == source:
                run.live = known.live
            run.facts = run.kept.read_facts()
            following = Following(*found.paths)
            is_live = run.facts is None and (
                age < ABANDONED_SECONDS or bool(following.is_locked())
            )
            if run.live is None and is_live:
                run.live = following
            elif run.facts is None and run.live is None:
                self._unseen.append((run, following))
        with self._lock:
            self._publish(run)
        return run

    def _follow(self, run: Listed) -> bool:
        """Read what was appended to a live run; return whether that was all."""
        following, is_read = run.live, True
        if following is None:
            return True
        silent_seconds = time.monotonic() - self._changed[run.id]
        try:
            is_read = following.read(_READING_SECONDS)
            run.silence = following.silence(silent_seconds)
            # The stamp is that of the whole trace once no more is written.
            has_ended = following.has_ended and silent_seconds > INTERVAL_SECONDS
            if has_ended or (is_read and not run.silence.is_live):
                run.live, run.progress = None, progress(run, following)
        except (TraceError, OSError) as error:
            # Its report has the reason as well.
            run.live, run.progress = None, {"facts": [("Damaged", one_line(str(error), 400))]}
        with self._lock:
            self._publish(run)
        return is_read

    def _glance(self) -> bool:
        """Read the first records of some unknown runs, for names and starts.

        Return whether those were all unknown runs.
        """
        until = time.monotonic() + _READING_SECONDS
        while self._unseen and time.monotonic() < until:
            run, following = self._unseen.popleft()
            with suppress(TraceError, OSError):  # its report has the reason
                following.read(_GLANCE_SECONDS)
                run.glance = following.progress
            with self._lock:
                if self._runs.get(run.id) is run:
                    self._publish(run)
        return not self._unseen


class StoreCatalog(Catalog):
    """The traces of a store."""

    def __init__(
        self,
        store: str,
        cache_folder: Path,
        read: Reader,
        memory_limit: str | None,
        *,
        cache: bool,
    ) -> None:
        from roast_analyze.store.store import Store

        super().__init__(cache_folder, read)
        self._store = Store(store)
        self._source = partial(StoreSource, memory_limit=memory_limit, cache=cache)
        self._seen: int | None = None
        self.name = one_line(safe_message(store), 300)
        self.hint = "The store is empty. roast-analyze store add TRACE --to STORE adds runs."
        self._store.version()  # an error if it is none

    def renew(self) -> float:
        """Read the table of runs if it has changed."""
        try:
            version = self._store.version()
            if version != self._seen:
                self._read_runs()
                self._seen, self.note = version, ""
        except (TraceError, OSError) as error:
            self.note = one_line(str(error), 300)  # it may be there again later
        return _STORE_SECONDS

    def _read_runs(self) -> None:
        new = [run for run in map(self._listed, self._rows()) if self._is_new(run)]
        with self._lock:
            for run in new:
                self._publish(run)
        self._read_ahead(new)

    def _rows(self) -> Iterator[dict[str, Any]]:
        rows = self._store.runs().to_dicts()
        with self._lock:
            self._remove_others({_digest(row["trace_id"]) for row in rows})
        yield from rows

    def _is_new(self, run: Listed) -> bool:
        known = self.find(run.id)
        return known is None or known.kept != run.kept

    def _listed(self, row: dict[str, Any]) -> Listed:
        trace_id = row["trace_id"]
        source = self._source(self._store.path, trace_id)
        kept = Kept.of(self._cache_folder, source.key, _digest(str(row["addition"])))
        paths = row["paths"] or ()
        return Listed(
            id=_digest(trace_id),
            source=source,
            kept=kept,
            name=trace_name(Path(paths[0])) if paths else trace_id,
            place=trace_id,
            owner=row["owner"],
            nbytes=row["trace_bytes"] or 0,
            changed_t=row["start_t"],
            facts=kept.read_facts() or Facts.of(row),
        )


def _digest(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode(errors="surrogateescape"))


@cache
def _user_name(uid: int) -> str | None:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return None
