"""A user's program that the campaign commands, and kills: it records and computes.

It takes commands as lines of JSON on standard input, ``[name, keywords]``, and answers
each with a line on standard output::

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
    """The commands."""

    def __init__(self, scheduler_file: str) -> None:
        self.client = Client(scheduler_file=scheduler_file, timeout=60)
        self.client.wait_for_workers(2, timeout=60)
        self.recording: roast_recorder.Recording | None = None

    def record(self, path: str, **settings: Any) -> dict:
        """Begin to record."""
        self.recording = roast_recorder.record(self.client, path, **settings)
        self.recording.start()
        return {}

    def small_tasks(self, seconds: float) -> dict:
        """Compute small tasks for a while, or until something breaks."""
        say("busy")
        until = time.monotonic() + seconds
        # concurrent.futures': what a future raises whose scheduler has gone.
        with contextlib.suppress(OSError, RuntimeError, concurrent.futures.CancelledError):
            while time.monotonic() < until:
                numbers = self.client.map(successor, range(TASKS_PER_BATCH), pure=False)
                total = self.client.submit(sum, self.client.map(successor, numbers))
                if total.result() != sum(range(2, TASKS_PER_BATCH + 2)):
                    return {"right": False}
            return {"right": True}
        return {"right": None}

    def run(self, tasks: int, task_seconds: float, key_bytes: int) -> dict:
        """Compute so many tasks that sleep, two waves at a time, and time that.

        Keys are random, since it is their bytes that are to fill buffers and disks.
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
        """End the recording, and say what the recorder says of it."""
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


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    program = Program(sys.argv[1])
    say("ready")
    for line in sys.stdin:
        name, keywords = json.loads(line)
        say(getattr(program, name)(**keywords))


if __name__ == "__main__":
    main()
