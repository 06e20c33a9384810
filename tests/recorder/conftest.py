"""Fixtures of the recorder's tests."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def trace(tmp_path) -> Path:
    return tmp_path / "trace.jsonl"


@pytest.fixture(scope="session")
def by_kind(read_lines) -> Callable[[Path], dict[str, list[dict]]]:
    """Read the records of a trace as a list for each kind."""

    def read(path: Path) -> dict[str, list[dict]]:
        found = defaultdict(list)
        for line in read_lines(path):
            found[line["kind"]].append(line)
        return found

    return read
