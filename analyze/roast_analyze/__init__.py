"""Offline analysis of traces that roast recorded.

>>> with roast_analyze.Trace("trace.jsonl.zst") as trace:  # doctest: +SKIP
...     trace.frame("task_runs")
...     trace.sql("SELECT outcome, count(*) FROM task_runs GROUP BY ALL")

Data flows one way: :mod:`~roast_analyze.open.load` reads segments into typed tables, the files
below ``sql/`` make views of them, :class:`Trace` answers queries, and what is drawn or
printed is made of its answers.
"""

from __future__ import annotations

# As in the module cli: typing itself would take longer than a start should.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from roast_analyze.open.views import Column, View
    from roast_analyze.trace import Trace

__all__ = ["Column", "Trace", "View"]


def __getattr__(name: str) -> Any:
    # Importing DuckDB takes longer than `roast-analyze --help` should.
    if name in __all__:
        from roast_analyze import trace
        from roast_analyze.open import views

        return getattr(trace if name == "Trace" else views, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
