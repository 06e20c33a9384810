"""Calls spread over a Dask cluster."""

import os
import signal

import pytest

from roast_analyze import Store, each
from roast_analyze.dask_cluster import call_each, connect
from roast_analyze.errors import NoCluster, QueryError

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def client():
    with connect(workers=2) as client:
        yield client


def fail_once(marker):
    """Kill the worker on the first call."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def test_a_scheduler_file_that_does_not_exist(tmp_path):
    missing = connect(scheduler=str(tmp_path / "none.json"))

    with pytest.raises(NoCluster, match=r"none\.json' does not exist"), missing:
        pass


def test_results_and_errors(client):
    found = dict(call_each(lambda n: 1 // n, range(20), client))  # not all at once

    assert type(found.pop(0)) is ZeroDivisionError
    assert found == {1: 1, **dict.fromkeys(range(2, 20), 0)}


def test_a_killed_worker(client, tmp_path):
    [(_, result)] = call_each(fail_once, [tmp_path / "marker"], client)

    assert result == "done"


@pytest.mark.exhaustive
def test_traces_on_a_cluster(client, write_traces, task, tmp_path):
    paths = write_traces(*[[task("x-1")]] * 3)
    store = Store(tmp_path / "store")

    assert store.add(paths, client=client).added == 3
    assert store.check() == []
    assert each("SELECT count(*) AS n FROM tasks", paths, client=client)["n"].to_list() == [
        1, 1, 1,
    ]  # fmt: skip
    with pytest.raises(QueryError, match="nothing"):
        each("FROM nothing", paths, client=client)
