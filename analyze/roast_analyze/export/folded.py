"""Profiles as folded stacks, for flamegraph.pl, inferno and similar programs.

A line is a stack and its number of samples: functions separated by ``;``, the outermost
first, then a space and the number. Samples of all workers are added up. The scheduler is
included only on request, because its event loop is sampled continuously. Functions of the
recorder are folded (see ``sql/profiles/_fold_recorder.sql``).
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from roast_analyze.export.scope import rows
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session

# A sample for which Dask does not report which of several functions was running counts for
# the stack of their caller.
_STACKS: Final = """
SELECT _folded_frames(frames) AS frames, try_cast(sum(samples) AS BIGINT) AS total
FROM (
    SELECT frames, sum(coalesce(samples, 0) + coalesce(ambiguous_samples, 0)) AS samples
    FROM profile_stacks
    WHERE profiler = 'dask' AND (worker IS NOT NULL OR $of_scheduler) AND {condition}
    GROUP BY frames
)
GROUP BY ALL
HAVING total > 0
ORDER BY ALL
"""


def write(trace: Session, scope: Scope, file: IO[str]) -> None:
    """Write the stacks in a scope of a trace to a text file."""
    condition = scope.condition()
    condition.parameters["of_scheduler"] = scope.scheduler
    for row in rows(trace, _STACKS, condition):
        labels = []
        for name, filename, line_number in (frame.values() for frame in row["frames"]):
            place = f"{filename or '?'}:{line_number}" if line_number is not None else filename
            label = visible(f"{name or '?'} ({place})" if place else name or "?")
            # A semicolon separates functions, and the last space the number of samples.
            labels.append(" ".join(label.replace(";", ",").split()) or "?")
        file.write(f"{';'.join(labels) or '(no function)'} {row['total']}\n")
