"""A flight recorder for Dask: records what happens on a cluster, while it happens.

>>> with roast_recorder.record(client, "trace.jsonl.zst"):  # doctest: +SKIP
...     run_the_analysis()

Data flows one way. The hooks of :mod:`~roast_recorder.scheduler.plugin` append to a
:mod:`~roast_recorder.scheduler.buffer` on the scheduler. The pump of
:mod:`~roast_recorder.scheduler.recording` pulls batches of rows from it, in the client or in
the scheduler, and passes them to a writing process (:mod:`~roast_recorder.writer.client`).
There, :mod:`~roast_recorder.scheduler.wire_format` decodes records and
:mod:`~roast_recorder.writer.segments` writes them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roast_recorder.api import record
    from roast_recorder.client_recording import Recording
    from roast_recorder.coffea.section import section
    from roast_recorder.coffea.tracking import track
    from roast_recorder.notebook import load_ipython_extension

__version__ = "0.7.0"

__all__ = ["Recording", "__version__", "load_ipython_extension", "record", "section", "track"]

_MODULES = {
    "Recording": "roast_recorder.client_recording",
    "load_ipython_extension": "roast_recorder.notebook",
    "record": "roast_recorder.api",
    "section": "roast_recorder.coffea.section",
    "track": "roast_recorder.coffea.tracking",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: Dask takes a second, and the writing process does not need it.
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
