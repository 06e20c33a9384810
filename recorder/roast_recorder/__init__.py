"""A flight recorder for Dask: what happened on a cluster, written down while it happens.

>>> with roast_recorder.record(client, "trace.jsonl.zst"):  # doctest: +SKIP
...     run_the_analysis()

Data flows one way: the hooks of :mod:`~roast_recorder.scheduler.plugin` append to a
:mod:`~roast_recorder.scheduler.buffer` on the scheduler; a :mod:`~roast_recorder.scheduler.pump` pulls from it,
on the client or on the scheduler's own host, and hands over to a
:mod:`~roast_recorder.writer.client`: a process of its own, where :mod:`~roast_recorder.scheduler.expand`
makes records and :mod:`~roast_recorder.writer.segments` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roast_recorder.api import Recording, record
    from roast_recorder.coffea.section import section

__version__ = "0.4.0"

__all__ = ["Recording", "__version__", "record", "section"]


def __getattr__(name: str) -> Any:
    # The writing process imports parts of this package many times a day and needs no Dask.
    if name in ("Recording", "record"):
        from roast_recorder import api as recording

        return getattr(recording, name)
    if name == "section":
        from roast_recorder.coffea.section import section

        return section
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
