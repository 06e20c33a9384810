"""Tables that Python computes when a query first refers to them."""

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from roast_analyze import Trace, computed

COUNT = "SELECT count(*) > 0 FROM core_time"


@pytest.fixture
def calls(monkeypatch):
    """Count the computations of core_time."""
    counted = Mock(side_effect=computed.TABLES["_core_time"])
    monkeypatch.setattr(computed, "TABLES", {**computed.TABLES, "_core_time": counted})
    return counted


@pytest.fixture
def path(write_trace, worker, task, run):
    return write_trace(worker("w1"), task("a"), *run("a", 10.0, 20.0))


def test_computed_once_by_the_first_query_that_refers_to_it(path, calls):
    trace = Trace(path)
    trace.frame("tasks")
    assert calls.call_count == 0
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(lambda _: trace.sql(COUNT).fetchall(), range(8)))
    assert counts == [[(True,)]] * 8
    assert calls.call_count == 1


def test_views_of_the_user(path, calls, tmp_path):
    (tmp_path / "idle.sql").write_text("SELECT * FROM CORE_TIME WHERE category = 'idle'")
    (tmp_path / "tails.sql").write_text("SELECT * FROM idle WHERE use = 'tail'")
    trace = Trace(path, views=tmp_path)
    assert calls.call_count == 0
    assert trace.sql("SELECT count(*) FROM tails").fetchall() == [(0,)]
    assert trace.sql("SELECT sum(seconds) FROM idle").fetchall() == [(90.0,)]
    assert calls.call_count == 1


def test_a_time_range_has_its_own_rows(path):
    query = "SELECT sum(seconds) FROM core_time"
    assert Trace(path).sql(query).fetchall() == [(100.0,)]
    assert Trace(path, start=5, stop=15).sql(query).fetchall() == [(10.0,)]
