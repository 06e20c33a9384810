"""Recording every run of a cluster, for its admins: Dask's scheduler preload.

::

    dask scheduler --preload roast_recorder.preload

or ``distributed.scheduler.preload: [roast_recorder.preload]`` in Dask's configuration. The
traces go to the folder that ``roast.recorder.directory`` names, one folder a scheduler; the
other settings are those of :class:`roast_recorder.settings.Settings`, below
``roast.recorder`` as well. A recorder that cannot begin says why, and the scheduler runs.
"""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from roast_recorder.scheduler.recording import Resident

if TYPE_CHECKING:
    from distributed import Scheduler

logger = logging.getLogger("roast_recorder")


async def dask_setup(scheduler: Scheduler) -> None:
    """Begin to record."""
    from roast_recorder.settings import CONFIGURATION, Settings

    _log_where_the_scheduler_does()
    try:
        settings = Settings.from_keywords({})
        root = _directory()
        trace = root / trace_name(scheduler.id, datetime.now(UTC))
        await Resident(scheduler, str(trace), settings, retain_root=str(root)).start()
    except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler runs
        logger.error(  # noqa: TRY400 - one line, not a traceback
            "roast: this scheduler is not recorded: %s (see %s in Dask's configuration)",
            error,
            CONFIGURATION,
        )


def trace_name(scheduler_id: str, t: datetime) -> str:
    """Name the trace of a scheduler: when it began, and which it is."""
    identity = re.sub(r"[^A-Za-z0-9]", "", scheduler_id.rpartition("Scheduler-")[2])[:12]
    return f"{t:%Y-%m-%dT%H-%M-%SZ}-{identity}"


def _log_where_the_scheduler_does() -> None:
    """Let the recorder's lines be seen: a scheduler's process shows none but Dask's."""
    if not logger.hasHandlers():
        logger.setLevel(logging.INFO)
        for handler in logging.getLogger("distributed").handlers:
            logger.addHandler(handler)


def _directory() -> Path:
    import dask

    directory = dask.config.get("roast.recorder.directory", None)
    if not directory:
        raise ValueError("roast.recorder.directory does not say where traces go")
    path = Path(str(directory)).expanduser()
    if not path.is_dir():
        raise ValueError(f"roast.recorder.directory={str(directory)!r} is no folder")
    return path
