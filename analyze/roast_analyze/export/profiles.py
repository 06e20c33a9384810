"""The stacks that Dask's profiler saw, as other programs want them.

Both formats count each sample once. Of a sample of which Dask does not say in which of some
functions it ended, the stack is that of their caller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from roast_analyze.export.scope import Condition, Scope
    from roast_analyze.open.session import Session

#: Samples that a row of ``profile_stacks`` stands for.
SAMPLES: Final = "(coalesce(samples, 0) + coalesce(ambiguous_samples, 0))"


def condition_of(scope: Scope) -> Condition:
    """Give the condition that rows of ``profile_stacks`` meet that Dask's profilers saw."""
    condition = scope.condition(begin="start_t", end="stop_t")
    return replace(condition, sql=f"profiler = 'dask' AND {condition.sql}")


def refuse_if_none(trace: Session) -> None:
    """Refuse a trace without profiles.

    Raises
    ------
    TraceError
    """
    [(records,)] = trace.sql("SELECT count(*) FROM raw.profile").fetchall()
    if not records:
        raise TraceError(
            "the trace has no profiles; they are recorded while Dask's profiler runs "
            "(distributed.worker.profile.enabled) and `profile` is among the recorder's kinds"
        )
