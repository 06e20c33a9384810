"""The header of a trace."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
from time import localtime, time
from typing import TYPE_CHECKING, Any

from roast_recorder import __version__
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from distributed import Scheduler

    from roast_recorder.settings import Settings


def header_facts(scheduler: Scheduler | None = None) -> dict[str, Any]:
    """Return the fields of a header that describe a scheduler or, without one, this process."""
    facts: dict[str, Any] = {
        "t": time(),
        "versions": {"python": platform.python_version(), "roast-trace": __version__},
        "utc_offset_seconds": float(localtime().tm_gmtoff),
    }
    if scheduler is not None:
        for name in ("dask", "distributed"):
            facts["versions"][name] = importlib.metadata.version(name)
        about = {"scheduler": "address", "scheduler_id": "id"}
        for fact, name in about.items():
            with contextlib.suppress(Exception):  # the plugin reports it
                facts[fact] = getattr(scheduler, name)
    return facts


def header(
    trace_id: str, settings: Settings, facts: dict[str, Any], clock_offset_seconds: float = 0.0
) -> dict[str, Any]:
    """Return the header of a trace with :func:`header_facts`.

    The offset is the clock of the recording process minus the scheduler's.
    """
    return {
        "kind": "header",
        "schema_version": SCHEMA_VERSION,
        "trace_id": trace_id,
        "settings": settings.for_header(),
        "clock_offset_seconds": clock_offset_seconds,
        **facts,
    }
