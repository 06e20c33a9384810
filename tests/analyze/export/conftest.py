"""Synthetic profiles, and exports as fixtures."""

import json
from pathlib import Path

import pytest

from roast_analyze.cli import main


@pytest.fixture
def profile():
    """A profile of one stack, with the samples of its innermost function by slice.

    Dask counts a sample in all functions but the innermost one; the scheduler in all.
    """

    def profile(
        worker: str | None = "w1",
        prefix: str | None = "a",
        functions: tuple[str, ...] = ("outer", "inner"),
        counts: tuple[int, ...] = (3,),
        start_t: float = 1.0,
        **fields,
    ) -> dict:
        nodes = list(range(len(functions) + 1))
        slices = [
            {
                "start_t": start_t + number,
                "stop_t": start_t + number + 1,
                "nodes": nodes,
                "counts": [*[count] * len(functions), 0 if worker else count],
            }
            for number, count in enumerate(counts)
        ]
        frames = [
            {"name": name, "filename": "/lib/code.py", "line_number": line}
            for line, name in enumerate(functions, start=10)
        ]
        tree = {
            "frames": frames,
            "parents": [None, *nodes[:-1]],
            "node_frames": [None, *range(len(functions))],
            "line_numbers": [None, *range(10, 10 + len(functions))],
            "slices": slices,
        }
        times = {"start_t": start_t, "stop_t": start_t + len(counts), "interval_seconds": 0.01}
        who = {"worker": worker, "prefix": prefix}
        known = {name: value for name, value in who.items() if value is not None}
        return {"kind": "profile", "t": start_t, **known, **times, "tree": tree, **fields}

    return profile


@pytest.fixture
def export(tmp_path):
    """Export a trace in a text format; return the text."""

    def export(path: Path, form: str, *options: object) -> str:
        target = tmp_path / f"out.{form}"
        assert main(["export", str(path), f"--{form}", str(target), *map(str, options)]) == 0
        return target.read_text(encoding="utf-8")

    return export


@pytest.fixture
def events(export):
    """Export a trace for Perfetto; return the events."""

    def events(path: Path, *options: object) -> list[dict]:
        return json.loads(export(path, "perfetto", *options))

    return events
