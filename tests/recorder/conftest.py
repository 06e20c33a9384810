"""Fixtures of the recorder's tests."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture
def trace(tmp_path) -> Path:
    return tmp_path / "trace.jsonl"


@pytest.fixture(scope="session")
def by_kind(read_lines) -> Callable[[Path], dict[str, list[dict]]]:
    """Return a function that reads the records of a trace as a list for each kind."""

    def read(path: Path) -> dict[str, list[dict]]:
        found = defaultdict(list)
        for line in read_lines(path):
            found[line["kind"]].append(line)
        return found

    return read


@pytest.fixture(scope="session")
def own_cluster() -> Callable:
    """Return a function that starts a cluster for one test, which may kill its workers."""
    from distributed import Client, LocalCluster

    @contextmanager
    def start(n_workers: int, **options):
        defaults = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
        with (
            LocalCluster(n_workers=n_workers, **{**defaults, **options}) as cluster,
            Client(cluster) as client,
        ):
            yield cluster, client

    return start
