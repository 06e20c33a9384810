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

    from roast_analyze.batch_query import each, each_lazily
    from roast_analyze.open.views import Column, View
    from roast_analyze.store.store import Store
    from roast_analyze.trace import Trace

__all__ = ["Column", "Store", "Trace", "View", "each", "each_lazily"]

_MODULES = {
    "Column": "roast_analyze.open.views",
    "Store": "roast_analyze.store.store",
    "Trace": "roast_analyze.trace",
    "View": "roast_analyze.open.views",
    "each": "roast_analyze.batch_query",
    "each_lazily": "roast_analyze.batch_query",
}


def __getattr__(name: str) -> Any:
    # DuckDB is imported on first use: `roast-analyze --help` should not wait for it.
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
