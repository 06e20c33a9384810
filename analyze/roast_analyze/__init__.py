"""Offline analysis of traces recorded by roast.

>>> with roast_analyze.Trace("trace.jsonl.zst") as trace:  # doctest: +SKIP
...     trace.frame("task_runs")
...     trace.sql("SELECT outcome, count(*) FROM task_runs GROUP BY ALL")

Data flows in one direction: :mod:`~roast_analyze.open` reads segments into typed tables, the
files of ``sql/`` define views of them, and :class:`Trace`, the report, the exports and the
commands query these views.
"""

from __future__ import annotations

# As in the module cli: importing typing would dominate the start-up time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from roast_analyze.open.views import Column, View
    from roast_analyze.trace import Trace

__all__ = ["Column", "Trace", "View"]


def __getattr__(name: str) -> Any:
    # DuckDB is imported on first use: `roast-analyze --help` should not wait for it.
    if name in __all__:
        from roast_analyze import trace
        from roast_analyze.open import views

        return getattr(trace if name == "Trace" else views, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
