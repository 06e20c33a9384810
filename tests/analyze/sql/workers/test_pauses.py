"""View pauses."""

import pytest

from roast_analyze import Trace


@pytest.fixture
def status():
    """Return an event of a worker's status change."""

    def status(t: float, worker: str, status: str) -> dict:
        payload = {"action": "worker-status-change", "prev-status": "x", "status": status}
        return {"kind": "event", "t": t, "topic": worker, "worker": worker, "payload": payload}

    return status


def test_pause_ends_when_the_worker_resumes(rows, status):
    assert rows(
        "SELECT * FROM pauses",
        status(1.0, "w1", "paused"),
        status(1.5, "w2", "paused"),
        status(3.0, "w1", "running"),
    ) == [("w1", 1.0, 3.0, 2.0, "T"), ("w2", 1.5, None, None, "T")]


def test_pause_ends_when_the_worker_leaves(rows, worker, gone, status):
    assert rows(
        "SELECT start_t, stop_t FROM pauses",
        worker("w1"),
        status(1.0, "w1", "paused"),
        gone("w1", 4.0, "handle-worker-cleanup-4.0"),
    ) == [(1.0, 4.0)]


def test_pause_is_clipped_to_a_time_range(write_trace, move, status):
    path = write_trace(
        move(0.0, "x", "released>waiting"),
        status(2.0, "w1", "paused"),
        status(8.0, "w1", "running"),
    )

    with Trace(path, start=4, stop=6) as part:
        assert part.sql("SELECT start_t, stop_t, seconds FROM pauses").fetchall() == [
            (4.0, 6.0, 2.0)
        ]
    with Trace(path, start=9) as part:
        assert part.sql("FROM pauses").fetchall() == []
