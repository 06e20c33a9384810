"""Profiles as folded stacks, for flamegraph.pl, inferno and their like.

A line is a stack and how often it was seen: functions, the outermost first, with ``;``
between them, then a space and the number of samples. Workers are taken together. The
scheduler is not among them unless it is asked for: its event loop is sampled all the time.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any, Final

from roast_analyze.export.profiles import SAMPLES, condition_of
from roast_analyze.export.rows import rows
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session

_STACKS: Final = """
SELECT frames, sum({samples})::BIGINT AS samples
FROM profile_stacks
WHERE {condition}
GROUP BY frames
HAVING sum({samples}) > 0
ORDER BY frames
"""


def write(trace: Session, scope: Scope, file: IO[str]) -> None:
    """Write the stacks of a part of a trace.

    Parameters
    ----------
    trace : Session
    scope : Scope
    file : text file
    """
    condition = condition_of(scope)
    sql = condition.sql if scope.scheduler else f"{condition.sql} AND worker IS NOT NULL"
    for row in rows(
        trace, _STACKS.format(samples=SAMPLES, condition=sql), condition.parameters
    ):
        line = ";".join(map(_label, row["frames"]))
        file.write(f"{line or '(no function)'} {row['samples']}\n")


def _label(frame: dict[str, Any]) -> str:
    """Name a function in a way that the format can hold: function (file:line)."""
    name, filename, line_number = frame.values()
    place = f"{filename or '?'}:{line_number}" if line_number is not None else filename
    label = f"{name or '?'} ({place})" if place else name or "?"
    return re.sub(r"\s+", " ", visible(label)).replace(";", ",").strip() or "?"
