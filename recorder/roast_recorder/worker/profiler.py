"""Read the profiles that Dask's statistical profiler collects, each cycle once.

Every second Dask closes a cycle: a tree of call counts for each task prefix, in the worker's
``profile_keys_history`` (its ``profile_history`` adds up all prefixes). Nothing is sampled
here. The cycles of an interval are merged into one tree that names each function once, and
keeps the counts of each cycle apart.

Dask counts a sample in every function of its stack except the innermost one. During a
recording, the function of Dask's that counts a sample is wrapped, so that the tree also
contains the number of samples that ended in each node, and what it was calling: compiled
functions have no node. Samples are late while a function holds the GIL or the host is busy, so
the time since the previous samples is added up beside their number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import dask
from dask.utils import parse_timedelta
from distributed import profile

from roast_recorder.process_state import here
from roast_recorder.scheduler.wire_format import loss
from roast_recorder.worker.compiled_calls import compiled_call

if TYPE_CHECKING:
    from distributed import Scheduler, Worker

    from roast_recorder.scheduler.tap import Tap

#: A tree of Dask's: count, identifier, description, children.
Tree = dict[str, Any]

#: End of a cycle, and its trees by prefix.
Cycle = tuple[float, Mapping[Any, Tree]]

#: Most nodes in a record; cycles that would exceed it are dropped and counted.
MAX_NODES = 20_000

#: Name in Dask's trees for the number of samples that ended in a node.
INNERMOST = "roast_innermost"

#: Name in Dask's trees for those of them in which the node called each compiled function.
CALLS = "roast_calls"

#: Name in Dask's trees for the time before the samples that ended in a node, and of those of
#: them in which it called each compiled function.
SECONDS = "roast_seconds"
CALL_SECONDS = "roast_call_seconds"

#: The scheduler's profile takes one sample a cycle; the newest tree may still be changing.
SETTLED_SECONDS = 0.1


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
            yield loss(reason, "profile", len(self._dropped), *limits)


def count_innermost(name: str) -> None:
    """Start counting the samples that end in each node, for the recording `name`.

    All recordings in this process share one wrapper around Dask's function.
    """
    shared = here()
    with shared.lock:
        shared.profiled_for.add(name)
        # By an attribute, because another copy of this module may have wrapped it.
        if hasattr(profile.process, "roast_original"):
            return
        original = profile.process

        @functools.wraps(original)
        def process(frame: Any, child: Any, state: Tree, **keywords: Any) -> Any:
            node = original(frame, child, state, **keywords)
            # Dask calls this recursively for the callers, with a frame as `child`.
            if child is True and node is not None:
                node[INNERMOST] = node.get(INNERMOST, 0) + 1
                seconds = shared.sampled_seconds or 0.0
                node[SECONDS] = node.get(SECONDS, 0.0) + seconds
                if (called := compiled_call(frame)) is not None:
                    calls, spent = node.setdefault(CALLS, {}), node.setdefault(CALL_SECONDS, {})
                    calls[called] = calls.get(called, 0) + 1
                    spent[called] = spent.get(called, 0.0) + seconds
            return node

        process.roast_original = original  # type: ignore[attr-defined]
        profile.process = process


def time_samples(tap: Tap, worker: Worker) -> None:
    """Note the time since the previous samples while a worker samples its threads."""
    sampler = worker.periodic_callbacks.get("profile")
    if sampler is None:  # the profiler is disabled
        return
    shared, sampled_at = here(), perf_counter()

    def begin(_: Any) -> None:
        nonlocal sampled_at
        now = perf_counter()
        shared.sampled_seconds, sampled_at = now - sampled_at, now

    def end(_: Any) -> None:
        shared.sampled_seconds = None

    tap.method("profile", sampler, "callback", before=begin, after=end)


def stop_counting_innermost(name: str) -> None:
    """Restore Dask's function when the last recording ends."""
    state = here()
    with state.lock:
        state.profiled_for.discard(name)
        if not state.profiled_for:
            profile.process = getattr(profile.process, "roast_original", profile.process)


def _setting_seconds(name: str) -> float:
    setting = dask.config.get(f"distributed.worker.profile.{name}")
    return float(parse_timedelta(setting, default="ms"))
