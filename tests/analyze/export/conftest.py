"""Synthetic profiles, and exports as fixtures."""

import io
from importlib import import_module

import pytest

from roast_analyze import Trace
from roast_analyze.export.scope import find_scope


@pytest.fixture
def profile():
    """Return a profile of one stack with `counts` samples, by slice.

    On workers, Dask counts a sample in all functions but the innermost one; on the scheduler,
    in all. `recorder` names the functions of roast.
    """

    def profile(
        worker: str | None = "w1",
        prefix: str | None = "a",
        functions: tuple[str, ...] = ("outer", "inner"),
        counts: tuple[int, ...] = (3,),
        start_t: float = 1.0,
        recorder: tuple[str, ...] = (),
        **fields,
    ) -> dict:
        nodes = list(range(len(functions) + 1))
        lines = range(10, 10 + len(functions))
        tree = {
            "frames": [
                {
                    "name": name,
                    "filename": f"/lib/{'roast_recorder/' * (name in recorder)}code.py",
                    "line_number": line,
                }
                for name, line in zip(functions, lines, strict=True)
            ],
            "parents": [None, *nodes[:-1]],
            "node_frames": [None, *range(len(functions))],
            "line_numbers": [None, *lines],
            "slices": [
                {
                    "start_t": start_t + number,
                    "stop_t": start_t + number + 1,
                    "nodes": nodes,
                    "counts": [*[count] * len(functions), 0 if worker else count],
                }
                for number, count in enumerate(counts)
            ],
        }
        times = {"start_t": start_t, "stop_t": start_t + len(counts), "interval_seconds": 0.01}
        known = {"worker": worker} if worker else {}
        known |= {"prefix": prefix} if prefix else {}
        return {"kind": "profile", "t": start_t, **known, **times, "tree": tree, **fields}

    return profile


@pytest.fixture
def export():
    """Export a trace, or a part of it, to a text format; return the text."""

    def export(trace: Trace, form: str, start=None, stop=None, **part: object) -> str:
        file = io.StringIO()
        writer = import_module(f"roast_analyze.export.{form}")
        with Trace(*trace.paths, start=start, stop=stop) as opened:
            writer.write(opened, find_scope(opened, **part), file)
        return file.getvalue()

    return export
