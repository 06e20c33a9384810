"""Selection of profile stacks for the profile formats.

Both formats count each sample once. A sample for which Dask does not report which of several
functions was running is attributed to the stack of their caller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from roast_analyze.export.scope import Condition, Scope
    from roast_analyze.open.session import Session

#: Number of samples of a row of ``profile_stacks``.
SAMPLES: Final = "(coalesce(samples, 0) + coalesce(ambiguous_samples, 0))"


def condition_of(scope: Scope) -> Condition:
    """Return the condition for rows of ``profile_stacks`` from Dask's profilers."""
    condition = scope.condition(begin="start_t", end="stop_t")
    return replace(condition, sql=f"profiler = 'dask' AND {condition.sql}")


def refuse_if_none(trace: Session) -> None:
    """Raise a :class:`TraceError` if the trace has no profiles."""
    [(records,)] = trace.sql("SELECT count(*) FROM raw.profile").fetchall()
    if not records:
        raise TraceError(
            "the trace has no profiles: enable Dask's profiler "
            "(distributed.worker.profile.enabled) and the recorder's kind 'profile'"
        )
