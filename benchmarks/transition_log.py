"""Log of the transitions on a scheduler, independent of the recorder.

As a Dask preload, it adds a plugin to the scheduler that writes each transition as a line, with
one unbuffered ``write``, so that the file is complete up to the moment of a kill.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from distributed import Scheduler, SchedulerPlugin

#: Environment variable with the path of the file.
VARIABLE = "CAMPAIGN_TRANSITION_LOG"


class Transition(NamedTuple):
    """A line of the log without its time; a trace must contain the same transition."""

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
    """Add the plugin to a scheduler."""
    scheduler.add_plugin(TransitionLog(os.environ[VARIABLE]))


def read(path: Path, start: int = 0) -> list[tuple[float, Transition]]:
    """Read the transitions and their times, beginning at an offset in bytes."""
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().split(b"\n")[:-1]
    rows = [json.loads(line) for line in lines]
    return [(t, Transition(*rest)) for t, *rest in rows]
