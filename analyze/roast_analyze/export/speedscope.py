"""Profiles for https://www.speedscope.app: one per worker, in order of time.

The format is speedscope's own for sampled profiles; the file names its schema. A sample is
one stack in one cycle of Dask's profiler. Its weight is the time in seconds, or the number
of samples if the sampling interval is unknown. Functions of the recorder are folded (see
``sql/profiles/_fold_recorder.sql``).
"""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any, Final

from roast_analyze.export.scope import rows
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"

# A sample for which Dask does not report which of several functions was running counts for
# the stack of their caller.
_SELECTED: Final = """
FROM (
    FROM profile_stacks
    SELECT *, (coalesce(samples, 0) + coalesce(ambiguous_samples, 0))::DOUBLE AS counted
    WHERE profiler = 'dask' AND {condition}
)
WHERE counted > 0
"""
#: In the order of time, as speedscope draws the samples.
_STACKS: Final = f"""
SELECT worker, _folded_frames(frames) AS frames, counted, seconds {_SELECTED}
ORDER BY worker NULLS LAST, start_t, stop_t, prefix, stack
"""
#: True if the sampling interval of all samples is known.
_HAS_SECONDS: Final = f"SELECT coalesce(bool_and(seconds IS NOT NULL), true) AS all {_SELECTED}"


def write(trace: Session, scope: Scope, file: IO[str]) -> None:
    """Write the profiles in a scope of a trace to a text file."""
    condition = scope.condition()
    names = dict(trace.rows("SELECT worker, name FROM workers"))
    [row] = rows(trace, _HAS_SECONDS, condition)
    # Times and numbers of samples cannot be added up in one profile.
    unit, weight = ("seconds", "seconds") if row["all"] else ("none", "counted")
    numbers: dict[tuple[Any, ...], int] = {}  # of the functions, by their fields

    title = ", ".join(visible(path.name) for path in trace.paths)
    head = {"$schema": SCHEMA, "exporter": "roast", "name": title}
    file.write(json.dumps(head)[:-1] + ',\n"profiles": [')
    separator = "\n"
    stacks = rows(trace, _STACKS, condition)
    for worker, of_worker in itertools.groupby(stacks, key=lambda row: row["worker"]):
        called = names.get(worker)
        name = worker if called in (None, worker) else f"{called} {worker}"
        profile = {"type": "sampled", "name": visible(name or "scheduler"), "unit": unit}
        # Without the closing brace: the samples follow.
        file.write(separator + json.dumps(profile)[:-1])
        _write_samples(file, of_worker, weight, numbers)
        separator = ",\n"
    file.write('],\n"shared": {"frames": [')
    separator = "\n"
    for function, filename, line_number in numbers:
        frame: dict[str, Any] = {"name": visible(function or "") or "?"}
        frame |= {"file": visible(filename)} if filename else {}
        frame |= {"line": line_number} if line_number is not None else {}
        file.write(separator + json.dumps(frame))
        separator = ",\n"
    file.write("]}}\n")


def _write_samples(
    file: IO[str], stacks: Iterable[dict[str, Any]], weight: str, numbers: dict[Any, int]
) -> None:
    """Write the rest of a profile: each stack as numbers of functions, root first."""
    weights = array("d")  # they follow all samples
    file.write(', "samples": [')
    for row in stacks:
        functions = (tuple(frame.values()) for frame in row["frames"])
        stack = [numbers.setdefault(function, len(numbers)) for function in functions]
        separator = "," if weights else ""
        file.write(separator + json.dumps(stack, separators=(",", ":")))
        weights.append(row[weight])
    listed = ",".join(map(json.dumps, weights))
    file.write(f'], "weights": [{listed}], "startValue": 0, "endValue": {sum(weights)}}}')
