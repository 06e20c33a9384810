"""Profiles for https://www.speedscope.app: one per worker, in order of time.

The format is speedscope's own for sampled profiles; the file names its schema. A sample is
one stack in one cycle of Dask's profiler. Its weight is the time in seconds, or the number
of samples if the sampling interval is unknown.
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

from roast_analyze.export.profiles import SAMPLES, condition_of
from roast_analyze.export.rows import rows
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"

_STACKS: Final = """
SELECT worker, frames, {samples}::DOUBLE AS samples, seconds
FROM profile_stacks
WHERE {samples} > 0 AND {condition}
ORDER BY worker NULLS LAST, start_t, stop_t, prefix, stack
"""

_UNWEIGHTED: Final = """
SELECT count(*) FROM profile_stacks WHERE seconds IS NULL AND {samples} > 0 AND {condition}
"""

Row = dict[str, Any]


def write(trace: Session, scope: Scope, file: IO[str]) -> None:
    """Write the profiles in a scope of a trace.

    Parameters
    ----------
    trace : Session
    scope : Scope
    file : text file
    """
    condition = condition_of(scope)
    names = dict(trace.sql("SELECT worker, name FROM workers").fetchall())
    [(unweighted,)] = trace.sql(
        _UNWEIGHTED.format(samples=SAMPLES, condition=condition.sql),
        condition.parameters or None,
    ).fetchall()
    unit = "none" if unweighted else "seconds"
    frames = _Frames()
    stacks = rows(
        trace, _STACKS.format(samples=SAMPLES, condition=condition.sql), condition.parameters
    )

    head = {"$schema": SCHEMA, "exporter": "roast", "name": visible(trace.path.name)}
    file.write(json.dumps(head)[:-1] + ',\n"profiles": [')
    separator = "\n"
    for worker, of_worker in itertools.groupby(stacks, key=lambda row: row["worker"]):
        file.write(separator)
        _write_profile(file, _name(worker, names), unit, frames.sampled(of_worker, unit))
        separator = ",\n"
    file.write('],\n"shared": {"frames": [')
    file.writelines(frames.as_json())
    file.write("]}}\n")


def _name(worker: str | None, names: dict[str, str | None]) -> str:
    if worker is None:
        return "scheduler"
    name = names.get(worker)
    return visible(worker if name in (None, worker) else f"{name} {worker}")


def _write_profile(
    file: IO[str], name: str, unit: str, sampled: Iterator[tuple[list[int], float]]
) -> None:
    """Write one profile, keeping the weights, which follow the samples, in a file."""
    total = 0.0
    file.write(json.dumps({"type": "sampled", "name": name, "unit": unit})[:-1])
    file.write(', "samples": [')
    with tempfile.TemporaryFile("w+", encoding="ascii") as weights:
        separator = ""
        for stack, weight in sampled:
            file.write(separator + json.dumps(stack, separators=(",", ":")))
            weights.write(separator + json.dumps(weight))
            total += weight
            separator = ","
        file.write('], "weights": [')
        weights.seek(0)
        shutil.copyfileobj(weights, file)
    file.write(f'], "startValue": 0, "endValue": {json.dumps(total)}}}')


@dataclass
class _Frames:
    """Functions by number."""

    numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def sampled(self, stacks: Iterator[Row], unit: str) -> Iterator[tuple[list[int], float]]:
        """Yield each stack as numbers of functions, root first, and its weight."""
        for row in stacks:
            stack = [
                self.numbers.setdefault(tuple(frame.values()), len(self.numbers))
                for frame in row["frames"]
            ]
            yield stack, row["seconds"] if unit == "seconds" else row["samples"]

    def as_json(self) -> Iterator[str]:
        separator = "\n"
        for name, filename, line_number in self.numbers:
            frame: dict[str, Any] = {"name": visible(name or "") or "?"}
            if filename:
                frame["file"] = visible(filename)
            if line_number is not None:
                frame["line"] = line_number
            yield separator + json.dumps(frame)
            separator = ",\n"
