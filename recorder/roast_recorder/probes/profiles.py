"""Read the profiles that Dask's statistical profiler collects, each cycle once.

Every second Dask closes a cycle: a tree of call counts for each task prefix, in the worker's
``profile_keys_history`` (its ``profile_history`` adds up all prefixes). Nothing is sampled
here. The cycles of an interval are merged into one tree that names each function once, and
keeps the counts of each cycle apart, with those of :mod:`roast_recorder.worker.innermost`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from random import random
from time import time
from typing import TYPE_CHECKING, Any

import dask
from dask.utils import parse_timedelta

from roast_recorder.probes import SchedulerProbe, WorkerProbe
from roast_recorder.scheduler.wire_format import Row, loss, pack
from roast_recorder.worker.innermost import (
    CALL_SECONDS,
    CALLS,
    INNERMOST,
    SECONDS,
    Tree,
    count_innermost,
    stop_counting_innermost,
    time_samples,
)

if TYPE_CHECKING:
    from distributed import Scheduler, Worker


#: End of a cycle, and its trees by prefix.
Cycle = tuple[float, Mapping[Any, Tree]]

#: Most nodes in a record; cycles that would exceed it are dropped and counted.
MAX_NODES = 20_000

#: The scheduler's profile takes one sample a cycle; the newest tree may still be changing.
SETTLED_SECONDS = 0.1


class OnScheduler(SchedulerProbe):
    """Record the profile of the scheduler's event loop."""

    def _install(self) -> None:
        core = self.core
        self._reader = ProfileReader.of_scheduler(core.scheduler, time())
        if self._reader is not None:
            interval = core.settings["profile_interval_seconds"]
            core.tap.every("profile", interval, self.finish, interval)

    def finish(self) -> None:
        """Record the cycles since the last call."""
        records = self._reader.take() if self._reader else []
        if records:
            server_id = self.core.tap.read("profile", self.core.scheduler, "id")
            self.core.append(
                ("profile", time(), len(records), packed(records, None, server_id))
            )


class OnWorker(WorkerProbe):
    """Report the profiles of a worker's tasks."""

    def _install(self) -> None:
        core = self.core
        name = core.name_here
        core.tap.until_closed(lambda: stop_counting_innermost(name))
        count_innermost(name)
        time_samples(core.tap, core.worker)
        since = time() + core.delay()
        self._reader: ProfileReader | None = ProfileReader.of_worker(core.worker, since)
        interval = core.settings["profile_interval_seconds"]
        # Spread the messages of a thousand workers over the interval.
        core.tap.every("profile", interval, self._send, interval * random())  # noqa: S311

    def _send(self) -> None:
        self.core.send(self._rows())

    def _rows(self, running: Cycle | None = None) -> list[Row]:
        # Without a reader if it raises: each call would.
        reader, self._reader = self._reader, None
        records = reader.take(running) if reader else []
        self._reader = reader
        if not records:
            return []
        read = partial(self.core.read, "profile")
        return [("profile", len(records), packed(records, read("address"), read("id")))]

    def take_last(self) -> list[Row]:
        """Return the profiles since the last call, with the running cycle: none follow."""
        trees = self.core.read("profile", "profile_keys") if self._reader else None
        rows = self._rows(None if trees is None else (time() + self.core.delay(), dict(trees)))
        self._reader = None
        return rows


def packed(records: list[dict[str, Any]], worker: str | None, server_id: str | None) -> bytes:
    """Encode what :meth:`ProfileReader.take` returned, with the process that was profiled."""
    about = {"worker": worker, "server_id": server_id}
    return pack([fields if "kind" in fields else {**about, **fields} for fields in records])


@dataclass
class ProfileReader:
    """Read the cycles of one profiler that were not read before."""

    #: Returns the cycles, newest first.
    history: Callable[[], Iterable[Cycle]]
    #: Length of a cycle that does not follow another one directly.
    cycle_seconds: float
    #: Time between two samples.
    interval_seconds: float
    #: End of what was read, on the clock of the history; at first, where to begin.
    read_until: float

    def __post_init__(self) -> None:
        self._newest_t = next((t for t, _ in self.history() if t <= self.read_until), None)

    @classmethod
    def of_worker(cls, worker: Worker, since: float) -> ProfileReader:
        """Return a reader of a worker's profiles."""
        cycle, interval = _setting_seconds("cycle"), _setting_seconds("interval")
        return cls(lambda: reversed(worker.profile_keys_history), cycle, interval, since)

    @classmethod
    def of_scheduler(cls, scheduler: Scheduler, since: float) -> ProfileReader | None:
        """Return a reader of the profile of a scheduler's event loop, or None without one."""
        log = getattr(scheduler.io_loop, "profile", None)
        if log is None:
            return None

        def history() -> Iterable[Cycle]:
            settled = time() - SETTLED_SECONDS
            return ((t, {None: tree}) for t, tree in reversed(list(log)) if t < settled)

        return cls(history, _setting_seconds("cycle"), _setting_seconds("cycle"), since)

    def take(self, running: Cycle | None = None) -> list[dict[str, Any]]:
        """Return the fields of ``profile`` and ``loss`` records since the last call.

        `running` is the current time and the trees of the cycle that is not closed yet. Pass
        it in the last call only, since the rest of that cycle is not read.
        """
        # Do not compare times with `<`: on a busy machine the worker's estimate of the
        # scheduler's clock can go back by more than a cycle.
        cycles = list(takewhile(lambda cycle: cycle[0] != self._newest_t, self.history()))
        if cycles:
            self._newest_t = cycles[0][0]
        cycles.reverse()
        merged: dict[str | None, MergedTrees] = {}
        for stop_t, trees in [*cycles, *([running] if running else ())]:
            follows = 0 <= stop_t - self.read_until < 2 * self.cycle_seconds
            start_t = self.read_until if follows else stop_t - self.cycle_seconds
            self.read_until = stop_t
            for prefix, tree in trees.items():
                merged.setdefault(prefix, MergedTrees()).add(tree, start_t, stop_t)
        return [
            {"prefix": None if prefix is None else str(prefix), **fields}
            for prefix, trees in merged.items()
            for fields in trees.records(self.interval_seconds)
        ]


class MergedTrees:
    """Trees of call counts merged into one, with the counts of each tree."""

    def __init__(self) -> None:
        #: As in :class:`roast_schemas.records.ProfileTree`. Node 0 is the root.
        self._tree: dict[str, list[Any]] = {
            "frames": [],
            "parents": [None],
            "node_frames": [None],
            "line_numbers": [None],
            "calls": [],
            "slices": [],
        }
        self._call_numbers: dict[str, int] = {}
        self._frame_numbers: dict[str, int] = {}
        self._nodes: dict[tuple[int, str], int] = {}
        #: Start and stop of the trees that had too many nodes.
        self._dropped: list[tuple[float, float]] = []

    def add(self, tree: Tree, start_t: float, stop_t: float) -> None:
        """Add the tree of one cycle."""
        frames, parents = self._tree["frames"], self._tree["parents"]
        nodes, counts, innermost, seconds = [0], [tree["count"]], [0], [0.0]
        calls: list[tuple[int, str, int, float]] = []
        # Not recursive: a stack can be as deep as Python's recursion limit.
        queue = [(0, child) for child in tree["children"].values()]
        while queue:
            parent, child = queue.pop()
            if len(nodes) == MAX_NODES or len(parents) == MAX_NODES:
                self._dropped.append((start_t, stop_t))
                return
            identifier, description = child["identifier"], child["description"]
            node = self._nodes.setdefault((parent, identifier), len(parents))
            if node == len(parents):
                frame = self._frame_numbers.setdefault(identifier, len(frames))
                if frame == len(frames):
                    function = {name: description[name] for name in ("name", "filename")}
                    # The description has the first sampled line, the identifier the function's.
                    line_number = identifier.rpartition(";")[2]
                    if line_number.isdecimal():
                        function["line_number"] = int(line_number)
                    frames.append(function)
                parents.append(parent)
                self._tree["node_frames"].append(frame)
                self._tree["line_numbers"].append(description.get("line_number"))
            nodes.append(node)
            counts.append(child["count"])
            innermost.append(child.get(INNERMOST, 0))
            seconds.append(round(child.get(SECONDS, 0.0), 4))
            if called := child.get(CALLS):
                spent = child[CALL_SECONDS]
                calls += [(node, name, n, spent[name]) for name, n in called.items()]
            queue += [(node, grandchild) for grandchild in child["children"].values()]
        if not tree["count"]:
            return
        cycle = {"start_t": start_t, "stop_t": stop_t, "nodes": nodes, "counts": counts}
        # If recording began during the cycle, innermost counts lack its first samples.
        if sum(innermost) == tree["count"]:
            cycle["innermost"] = innermost
            names = self._call_numbers
            cycle["call_nodes"] = [node for node, *_ in calls]
            cycle["call_names"] = [names.setdefault(name, len(names)) for _, name, *_ in calls]
            cycle["call_samples"] = [samples for *_, samples, _ in calls]
            if any(seconds):
                cycle["innermost_seconds"] = seconds
                cycle["call_seconds"] = [round(spent, 4) for *_, spent in calls]
        self._tree["slices"].append(cycle)

    def records(self, interval_seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the fields of a ``profile`` record, and of a ``loss`` of the dropped trees."""
        if slices := self._tree["slices"]:
            self._tree["calls"] = list(self._call_numbers)
            times = {"start_t": slices[0]["start_t"], "stop_t": slices[-1]["stop_t"]}
            yield {**times, "interval_seconds": interval_seconds, "tree": self._tree}
        if self._dropped:
            reason = f"the profile of a cycle had more than {MAX_NODES} nodes"
            limits = self._dropped[0][0], self._dropped[-1][1]
            yield {"kind": "loss", **loss(reason, "profile", len(self._dropped), *limits)}


def _setting_seconds(name: str) -> float:
    setting = dask.config.get(f"distributed.worker.profile.{name}")
    return float(parse_timedelta(setting, default="ms"))
