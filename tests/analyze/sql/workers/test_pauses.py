"""View pauses."""

import pytest


@pytest.fixture
def status():
    """Return an event of a worker's status change."""

    def status(t: float, worker: str, status: str) -> dict:
        payload = {"action": "worker-status-change", "prev-status": "x", "status": status}
        return {"kind": "event", "t": t, "topic": worker, "worker": worker, "payload": payload}

    return status


def test_pause_ends_when_the_worker_resumes_or_leaves(rows, worker, gone, status):
    assert rows(
        "SELECT * FROM pauses",
        worker("w3"),
        status(1.0, "w1", "paused"),
        status(1.5, "w2", "paused"),
        status(2.0, "w3", "paused"),
        status(3.0, "w1", "running"),
        gone("w3", 4.0, "handle-worker-cleanup-4.0"),
    ) == [
        ("w1", 1.0, 3.0, 2.0, "T"),
        ("w2", 1.5, None, None, "T"),
        ("w3", 2.0, 4.0, 2.0, "T"),
    ]
