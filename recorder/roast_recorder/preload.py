"""Dask's scheduler preload, with which admins record every run of a cluster.

::

    dask scheduler --preload roast_recorder.preload

or ``distributed.scheduler.preload: [roast_recorder.preload]`` in Dask's configuration.
``roast.recorder.directory`` names the folder for the traces, which has one folder for each
scheduler; ``roast.recorder.store`` names a store to which each trace is added at the end of
its recording. The other settings, also below ``roast.recorder``, are those of
:class:`roast_recorder.settings.Settings`. If recording cannot start, the reason is logged
and the scheduler runs without it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import uuid
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import dask

from roast_recorder.commands import unwritable
from roast_recorder.scheduler import health
from roast_recorder.scheduler.recording import SchedulerRecording
from roast_recorder.settings import CONFIGURATION, Settings

if TYPE_CHECKING:
    from distributed import Scheduler

logger = logging.getLogger("roast_recorder")


async def dask_setup(scheduler: Scheduler) -> None:
    """Start recording a scheduler."""
    if not logger.hasHandlers():
        # In a scheduler's process, only Dask's own loggers have handlers.
        logger.setLevel(logging.INFO)
        for handler in logging.getLogger("distributed").handlers:
            logger.addHandler(handler)
    target = ""
    try:
        root = _directory()
        scheduler_id = str(uuid.uuid4())
        with contextlib.suppress(Exception):  # a version of Dask that has no such name
            scheduler_id = str(scheduler.id)
        identity = re.sub(r"[^A-Za-z0-9]", "", scheduler_id.rpartition("Scheduler-")[2])[:12]
        target = str(root / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{identity}")
        settings = Settings.from_keywords({})
        store = dask.config.get(f"{CONFIGURATION}.store", None)
        if store and not (find_spec("roast_analyze") and find_spec("deltalake")):
            logger.warning(
                "roast: install the extras analyze and store of roast to add traces to a store"
            )
            store = None
        await SchedulerRecording(
            scheduler, target, settings, retain_root=str(root), store=store
        ).start()
    except Exception as error:  # noqa: BLE001 - the scheduler must run
        problem = str(unwritable(error))
        logger.error(  # noqa: TRY400 - one line, not a traceback
            "roast: this scheduler is not recorded: %s (see %s in Dask's configuration)",
            problem,
            CONFIGURATION,
        )
        with contextlib.suppress(Exception):
            health.report_not_started(scheduler, target, problem)


def _directory() -> Path:
    directory = dask.config.get(f"{CONFIGURATION}.directory", None)
    if not directory:
        raise ValueError(f"{CONFIGURATION}.directory is not set: name a folder for traces")
    # Unlike Path.expanduser, it does not raise for a user that does not exist.
    path = Path(os.path.expanduser(str(directory)))  # noqa: PTH111
    if not path.is_dir():
        raise ValueError(
            f"invalid {CONFIGURATION}.directory={str(directory)!r}: use an existing folder"
        )
    return path
