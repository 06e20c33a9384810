"""Stores, and small traces to add to them."""

import shutil
from pathlib import Path

import pytest

from roast_analyze import Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def run_lines(lines, task, run, worker):
    """Return the bytes of a trace with tasks, each with one attempt of 1 s."""

    def run_lines(trace_id: str, tasks: int = 2, start: float = 0.0) -> bytes:
        records = [worker("w1", start)]
        for i in range(tasks):
            records += [task(f"x-{i}", start), *run(f"x-{i}", start + i, start + i + 1.0)]
        content = lines(*records, trace_id=trace_id, stop_t=start + 100.0)
        header = b'{"kind": "header", "t": %f'
        return content.replace(header[:-2] + b"0.0", header % start, 1)

    return run_lines


@pytest.fixture
def write_run(run_lines, tmp_path):
    """Write a trace with tasks; return its path."""

    def write_run(trace_id: str, name: str | None = None, **options) -> Path:
        path = tmp_path / (name or f"{trace_id}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(run_lines(trace_id, **options))
        return path

    return write_run


@pytest.fixture(scope="module")
def original(run_lines, tmp_path_factory) -> Path:
    """Return the folder of the traces A and B, of 2 and 3 tasks, and of a store of them."""
    folder = tmp_path_factory.mktemp("original")
    for trace_id, tasks in (("A", 2), ("B", 3)):
        (folder / f"{trace_id}.jsonl").write_bytes(run_lines(trace_id, tasks))
    added = Store(folder / "store").add([folder / "A.jsonl", folder / "B.jsonl"])
    assert (added.added, added.unchanged) == (2, 0)
    return folder


@pytest.fixture
def filled(original, tmp_path) -> Store:
    """Return a copy of the store of the traces A and B: creating one takes long."""
    return Store(shutil.copytree(original / "store", tmp_path / "filled"))
