"""Log of the transitions on a scheduler, independent of the recorder.

Dask's preload puts a plugin into the scheduler that writes each transition as a line, with
one ``write`` and no buffer, so that the file has everything up to the moment of a kill.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from distributed import Scheduler, SchedulerPlugin

#: The environment variable that names the file.
VARIABLE = "CAMPAIGN_TRANSITION_LOG"


class Transition(NamedTuple):
    """A line of the log without its time: what a trace must have as well."""

    key: str
    start: str
    finish: str
    stimulus_id: str


class TransitionLog(SchedulerPlugin):
    """Writes each transition as a line."""

    name = "campaign-transition-log"

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def transition(
        self, key: Any, start: str, finish: str, *_: Any, stimulus_id: str, **__: Any
    ) -> None:
        line = json.dumps([time.time(), str(key), start, finish, stimulus_id])
        os.write(self._descriptor, line.encode() + b"\n")


def dask_setup(scheduler: Scheduler) -> None:
    """Begin to write."""
    scheduler.add_plugin(TransitionLog(os.environ[VARIABLE]))


def read(path: Path, start: int = 0) -> list[tuple[float, Transition]]:
    """Read the transitions and their times, from an offset in bytes on."""
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().split(b"\n")[:-1]
    rows = [json.loads(line) for line in lines]
    return [(t, Transition(*rest)) for t, *rest in rows]
