"""Counting of the profiler's samples in the functions in which they ended.

Dask counts a sample in every function of its stack except the innermost one. During a
recording, the function of Dask's that counts a sample is wrapped, so that its trees also
contain the number of samples that ended in each node, and what it was calling: compiled
functions have no node. Samples are late while a function holds the GIL or the host is busy, so
the time since the previous samples is added up beside their number.
"""

from __future__ import annotations

import functools
from time import perf_counter
from typing import TYPE_CHECKING, Any

from distributed import profile

from roast_recorder.process_state import here
from roast_recorder.worker.compiled_calls import compiled_call

if TYPE_CHECKING:
    from distributed import Worker

    from roast_recorder.scheduler.tap import Tap

#: A tree of Dask's: count, identifier, description, children.
Tree = dict[str, Any]

#: Name in Dask's trees for the number of samples that ended in a node.
INNERMOST = "roast_innermost"

#: Name in Dask's trees for those of them in which the node called each compiled function.
CALLS = "roast_calls"

#: Name in Dask's trees for the time before the samples that ended in a node, and of those of
#: them in which it called each compiled function.
SECONDS = "roast_seconds"
CALL_SECONDS = "roast_call_seconds"


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
