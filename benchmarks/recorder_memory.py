"""Measure the memory of the recorder over ten million transitions: ``make benchmark-recorder``.

The recorder's hook is called on a real Scheduler without network, a real writing process
writes the trace, and the resident memory of the scheduler's process is sampled throughout.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import tempfile
import time
from pathlib import Path

import psutil
from distributed import Scheduler  # noqa: TC002

from roast_recorder.scheduler.recording import SchedulerRecording
from roast_recorder.settings import Settings
from simulated import CLIENT, fresh_keys, simulated_scheduler

#: Transitions of a root task with Dask's default, which queues root tasks.
LIFE = [
    ("released", "waiting"),
    ("waiting", "queued"),
    ("queued", "processing"),
    ("processing", "memory"),
    ("memory", "released"),
    ("released", "forgotten"),
]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transitions", type=int, default=10_000_000)
    options = parser.parse_args()
    transitions = options.transitions // len(LIFE) * len(LIFE)  # of whole tasks
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        async with simulated_scheduler(workers=20) as scheduler:
            target = str(Path(folder) / "t.jsonl.zst")
            recorder = SchedulerRecording(scheduler, target, Settings(), retain_root=folder)
            await recorder.start()
            seen = await work(scheduler, recorder, transitions)
        first, second = halves(seen)
    state = recorder._writer.state
    written, dropped = state.records_by_kind["transition"], state.dropped_by_kind.total()
    print("| transitions | written | dropped | trace | peak of 1st half | of 2nd half |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    print(
        f"| {transitions:,} | {written:,} | {dropped:,} | "
        f"{state.nbytes / 2**20:.0f} MiB | "
        f"{max(first) / 2**20:.1f} MiB | {max(second) / 2**20:.1f} MiB |"
    )


async def work(
    scheduler: Scheduler, recorder: SchedulerRecording, transitions: int
) -> list[int]:
    """Call the hook for each transition; return samples of the resident memory in bytes."""
    process, seen = psutil.Process(), []
    plugin, buffer = recorder._recorder, recorder._recorder._buffer
    # Use one TaskState for all keys, so that the memory of Dask's states is not measured.
    task = scheduler.new_task("work-0", None, "released")
    worker = next(iter(scheduler.workers.values()))
    done = 0
    for key in itertools.islice(fresh_keys(), transitions // len(LIFE)):
        scheduler.tasks[key] = task
        stimulus, now = f"task-finished-{time.time()}", time.time()
        for start, finish in LIFE:
            task.processing_on = worker if finish == "processing" else None
            details = {}
            if start == "processing":
                part = {"action": "compute", "start": now - 0.01, "stop": now}
                details = {
                    "worker": worker.address,
                    "thread": 140_263_267_907_264,
                    "nbytes": 28,
                    "typename": "int",
                    "startstops": (part,),
                }
            plugin.transition(key, start, finish, stimulus_id=stimulus, **details)
        del scheduler.tasks[key]
        done += len(LIFE)
        if done % 60_000 == 0:
            seen.append(process.memory_info().rss)
            # Yield to the event loop as a scheduler does, until the writer has caught up.
            while len(buffer._batches) > 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    scheduler.tasks.clear()
    scheduler.client_releases_keys([], CLIENT, "end")
    return seen


def halves(seen: list[int]) -> tuple[list[int], list[int]]:
    """Split a series into two halves."""
    return seen[: len(seen) // 2], seen[len(seen) // 2 :]


if __name__ == "__main__":
    asyncio.run(main())
