"""Client program of the campaign, which records and computes.

It reads commands as lines of JSON, ``[name, keywords]``, from standard input and answers each
with a line on standard output::

    python recorded_client.py SCHEDULER_FILE
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import sys
import time
from typing import Any

from distributed import Client, Future

import roast_recorder

TASKS_PER_BATCH = 150
TASKS_PER_WAVE = 200


class Program:
    """Commands of the program."""

    def __init__(self, scheduler_file: str) -> None:
        self.client = Client(scheduler_file=scheduler_file, timeout=60)
        self.client.wait_for_workers(2, timeout=60)
        self.recording: roast_recorder.Recording | None = None

    def record(self, path: str, **settings: Any) -> dict:
        """Start recording."""
        self.recording = roast_recorder.record(self.client, path, **settings)
        self.recording.start()
        return {}

    def small_tasks(self, seconds: float) -> dict:
        """Compute small tasks for some seconds, or until the cluster fails."""
        answer("busy")
        until = time.monotonic() + seconds
        # Futures raise the CancelledError of concurrent.futures if the scheduler is gone.
        with contextlib.suppress(OSError, RuntimeError, concurrent.futures.CancelledError):
            while time.monotonic() < until:
                numbers = self.client.map(successor, range(TASKS_PER_BATCH), pure=False)
                total = self.client.submit(sum, self.client.map(successor, numbers))
                if total.result() != sum(range(2, TASKS_PER_BATCH + 2)):
                    return {"right": False}
            return {"right": True}
        return {"right": None}

    def run(self, tasks: int, task_seconds: float, key_bytes: int) -> dict:
        """Compute tasks that sleep, two waves at a time; return the wall time.

        Keys are random, so that they fill buffers and disks even when compressed.
        """
        begin = time.perf_counter()
        waves: list[list[Future]] = []
        results: list[int] = []
        for first in range(0, tasks, TASKS_PER_WAVE):
            numbers = range(first, min(first + TASKS_PER_WAVE, tasks))
            keys = [f"{os.urandom(key_bytes // 2).hex()}-{number}" for number in numbers]
            waves.append(
                self.client.map(wait_and_square, numbers, seconds=task_seconds, key=keys)
            )
            if len(waves) > 1:
                results += self.client.gather(waves.pop(0))
        for wave in waves:
            results += self.client.gather(wave)
        return {
            "right": results == [number * number for number in range(tasks)],
            "wall_seconds": time.perf_counter() - begin,
        }

    def stop(self) -> dict:
        """Stop the recording; return the counts of the recorder."""
        begin = time.perf_counter()
        self.recording.stop()
        return {
            "stop_seconds": time.perf_counter() - begin,
            "in_order": self.recording.ended_in_order(),
            "records_by_kind": dict(self.recording.records_by_kind),
            "dropped_by_kind": dict(self.recording.dropped_by_kind),
        }


def successor(number: int) -> int:
    return number + 1


def wait_and_square(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number * number


def answer(value: Any) -> None:
    print(json.dumps(value), flush=True)


def main() -> None:
    program = Program(sys.argv[1])
    answer("ready")
    for line in sys.stdin:
        name, keywords = json.loads(line)
        answer(getattr(program, name)(**keywords))


if __name__ == "__main__":
    main()
