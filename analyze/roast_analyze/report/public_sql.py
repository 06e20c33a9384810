"""The SQL that the page shows for its tables and figures: the same rows, by public views only.

The report itself queries private tables and macros, whose names begin with an underscore, where
public views would take longer.
"""

from __future__ import annotations

import re
from typing import Final

#: Public SQL by private name.
_PUBLIC: Final = {
    "_activity_deltas": "(FROM fine_metric_deltas WHERE activity IS DISTINCT FROM 'idle' "
    "AND (context IS DISTINCT FROM 'p2p' OR prefix IS DISTINCT FROM 'foreground'))",
    "_core_time": "core_time",
    "_named_spans": "(FROM spans WHERE name IS DISTINCT FROM 'default')",
    "_profile_stacks": "profile_stacks",
    "_task_runs": "(SELECT *, compute_stop_t - compute_start_t AS whole_seconds "
    "FROM task_runs)",
    "_task_threads": "(SELECT core_seconds + coalesce((SELECT sum(phase.seconds) FROM "
    "task_phases AS phase WHERE phase.action = 'seceded'), 0) AS seconds FROM run)",
    "_trace_range": "run",
    "_is_recorder(called[1])": "(contains(called[1].filename, 'roast_recorder') "
    "AND NOT contains(called[1].filename, 'demo'))",
    # Without these, the stacks contain functions of the recorder.
    "_folded_stack(stack, frames)": "stack",
    "_folded_frames(frames)": "frames",
}
_PRIVATE: Final = re.compile(
    "|".join(rf"\b{re.escape(name)}" + r"\b" * name[-1].isalpha() for name in _PUBLIC)
)


def public_sql(query: str) -> str:
    """Replace private names in a query by public SQL."""
    return _PRIVATE.sub(lambda match: _PUBLIC[match[0]], query)
