"""What Dask's statistical profiler saw, each of its cycles once.

Every second Dask closes a cycle: a tree of call counts for each prefix. Nothing is sampled
here. The cycles of some seconds are laid over each other, so that their functions are
named once, and stay apart.

Dask counts a sample in all functions of its stack but the innermost one, and so loses what
matters most. While anybody records, the function of Dask's that counts a sample also notes
in the tree, beside the counts, where it ended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from time import time
from typing import TYPE_CHECKING, Any

from distributed import profile

from roast_recorder.process_state import here

if TYPE_CHECKING:
    from distributed import Scheduler, Worker

#: One of Dask's trees: count, identifier, description, children.
Tree = dict[str, Any]

#: The end of a cycle, and its trees by prefix.
Cycle = tuple[float, Mapping[Any, Tree]]

#: Nodes that a record has; cycles that would add more are left out and counted.
MAX_NODES = 20_000

#: What a node of Dask's trees also has: how many samples ended there.
INNERMOST = "roast_innermost"

#: Dask's scheduler is looked at once in a cycle; the newest is perhaps not done.
SETTLED_SECONDS = 0.1


class Profiler:
    """Takes the cycles of one profiler that were not taken before.

    Parameters
    ----------
    history : callable
        Gives the newest cycles first.
    cycle_seconds : float
        How long a cycle is that follows none.
    interval_seconds : float
        Time between two samples.
    since : float
        Cycles that ended before are somebody else's, on the clock of the history.
    """

    def __init__(
        self,
        history: Callable[[], Iterable[Cycle]],
        *,
        cycle_seconds: float,
        interval_seconds: float,
        since: float,
    ) -> None:
        self._history = history
        self._cycle_seconds = cycle_seconds
        self._interval_seconds = interval_seconds
        self._taken_until = since

    def take(self, going_on: Cycle | None = None) -> list[dict[str, Any]]:
        """Take what has come since the last time.

        Parameters
        ----------
        going_on : (float, dict), optional
            Until now, and trees of the cycle that is not closed yet. It is the last one
            that is taken.

        Returns
        -------
        list of dict
            Fields of ``profile`` records, but for worker and server; and of a ``loss``,
            which has a ``reason``.
        """
        new = list(takewhile(lambda cycle: cycle[0] > self._taken_until, self._history()))
        new.reverse()
        layers: dict[str | None, Layers] = {}
        for stop_t, trees in [*new, *([going_on] if going_on else ())]:
            is_next = stop_t - self._taken_until < 2 * self._cycle_seconds
            start_t = self._taken_until if is_next else stop_t - self._cycle_seconds
            self._taken_until = stop_t
            for prefix, tree in trees.items():
                layers.setdefault(prefix, Layers()).add(tree, start_t, stop_t)
        records = []
        for prefix, some in layers.items():
            about = {"prefix": None if prefix is None else str(prefix)}
            if some.slices:
                records.append({**about, **some.as_record(self._interval_seconds)})
            if some.left_out:
                records.append({**about, **some.as_loss()})
        return records


class Layers:
    """Trees of call counts, laid over each other.

    Attributes
    ----------
    slices : list of dict
        Nodes and counts of each tree.
    left_out : list of dict
        Ends and samples of the trees that had too many nodes.
    """

    def __init__(self) -> None:
        self.slices: list[dict[str, Any]] = []
        self.left_out: list[dict[str, Any]] = []
        self._frames: dict[str, int] = {}
        self._functions: list[dict[str, Any]] = []
        self._nodes: dict[tuple[int, str], int] = {}
        self._parents: list[int | None] = [None]
        self._node_frames: list[int | None] = [None]
        self._line_numbers: list[int | None] = [None]

    def add(self, tree: Tree, start_t: float, stop_t: float) -> None:
        """Lay one more tree over the others."""
        times = {"start_t": start_t, "stop_t": stop_t}
        nodes, counts, innermost = [0], [tree["count"]], [0]
        waiting = [(0, child) for child in tree["children"].values()]
        while waiting:
            parent, child = waiting.pop()
            if len(nodes) == MAX_NODES or len(self._parents) == MAX_NODES:
                self.left_out.append({**times, "samples": tree["count"]})
                return
            node = self._node(parent, child)
            nodes.append(node)
            counts.append(child["count"])
            innermost.append(child.get(INNERMOST, 0))
            waiting += [(node, grandchild) for grandchild in child["children"].values()]
        if not tree["count"]:
            return
        piece = {**times, "nodes": nodes, "counts": counts}
        # A cycle in which the recording began has samples of before.
        if sum(innermost) == tree["count"]:
            piece["innermost"] = innermost
        self.slices.append(piece)

    def _node(self, parent: int, tree: Tree) -> int:
        identifier = tree["identifier"]
        node = self._nodes.get((parent, identifier))
        if node is None:
            node = self._nodes[parent, identifier] = len(self._parents)
            self._parents.append(parent)
            self._node_frames.append(self._frame(identifier, tree["description"]))
            self._line_numbers.append(tree["description"].get("line_number"))
        return node

    def _frame(self, identifier: str, description: dict[str, Any]) -> int:
        number = self._frames.get(identifier)
        if number is None:
            number = self._frames[identifier] = len(self._functions)
            line_number = identifier.rpartition(";")[2]
            function = {"name": description["name"], "filename": description["filename"]}
            if line_number.isdecimal():
                function["line_number"] = int(line_number)
            self._functions.append(function)
        return number

    def as_record(self, interval_seconds: float) -> dict[str, Any]:
        """Give the fields of a ``profile`` record."""
        return {
            "start_t": self.slices[0]["start_t"],
            "stop_t": self.slices[-1]["stop_t"],
            "interval_seconds": interval_seconds,
            "tree": {
                "frames": self._functions,
                "parents": self._parents,
                "node_frames": self._node_frames,
                "line_numbers": self._line_numbers,
                "slices": self.slices,
            },
        }

    def as_loss(self) -> dict[str, Any]:
        """Give the fields of a ``loss`` record of what is left out."""
        samples = sum(some["samples"] for some in self.left_out)
        return {
            "reason": "profiles of a second had more nodes than are recorded",
            "record_kind": "profile",
            "records": len(self.left_out),
            "detail": f"{samples} samples",
            "start_t": self.left_out[0]["start_t"],
            "stop_t": self.left_out[-1]["stop_t"],
        }


def note_innermost(name: str) -> None:
    """Have Dask's profiler note where samples end, in this process.

    Parameters
    ----------
    name : str
        For whom.
    """
    state = here()
    with state.lock:
        state.profiled_for.add(name)
        if not hasattr(profile.process, "roast_original"):
            profile.process = _noting(profile.process)


def note_no_longer(name: str) -> None:
    """Leave Dask's profiler as it was when the last one goes for whom it notes."""
    state = here()
    with state.lock:
        state.profiled_for.discard(name)
        if not state.profiled_for:
            profile.process = getattr(profile.process, "roast_original", profile.process)


def _noting(original: Any) -> Any:
    @functools.wraps(original)
    def process(frame: Any, child: Any, state: Tree, **keywords: Any) -> Any:
        node = original(frame, child, state, **keywords)
        # It calls itself for the functions around; then the child is a frame.
        if child is True and node is not None:
            node[INNERMOST] = node.get(INNERMOST, 0) + 1
        return node

    process.roast_original = original  # type: ignore[attr-defined]
    return process


def profiler_of_worker(worker: Worker, since: float) -> Profiler:
    """Take the profiles of a worker."""
    cycle_seconds, interval_seconds = _seconds_of_profiler()

    return Profiler(
        lambda: reversed(worker.profile_keys_history),
        cycle_seconds=cycle_seconds,
        interval_seconds=interval_seconds,
        since=since,
    )


def profiler_of_scheduler(scheduler: Scheduler, since: float) -> Profiler | None:
    """Take the profile of a scheduler's event loop; None if it has none."""
    log = getattr(scheduler.io_loop, "profile", None)
    if log is None:
        return None
    cycle_seconds, _ = _seconds_of_profiler()

    def history() -> Iterable[Cycle]:
        settled = time() - SETTLED_SECONDS
        return ((t, {None: tree}) for t, tree in reversed(list(log)) if t < settled)

    # It is looked at once in a cycle.
    return Profiler(
        history, cycle_seconds=cycle_seconds, interval_seconds=cycle_seconds, since=since
    )


def _seconds_of_profiler() -> tuple[float, float]:
    """Read how long a cycle is, and the time between two samples."""
    import dask
    from dask.utils import parse_timedelta

    names = ("distributed.worker.profile.cycle", "distributed.worker.profile.interval")
    cycle, interval = (parse_timedelta(dask.config.get(name), default="ms") for name in names)
    return float(cycle), float(interval)
