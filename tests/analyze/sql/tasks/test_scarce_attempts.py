"""Table _scarce_attempts: idle time of other threads during attempts."""

import pytest


@pytest.mark.parametrize("workers", [3, 150])
def test_two_tasks_beside_idle_workers(rows, worker, task, run, workers):
    """With 150 workers a time bucket of core_time is 1 s long, and contains both tasks."""
    records = [worker(f"w{n}") for n in range(workers)]
    for key, start in (("a", 10.0), ("b", 10.5)):
        records += [task(key, t=start), *run(key, start, start + 0.4, worker="w0")]

    assert rows("SELECT key, idle_seconds FROM _scarce_attempts ORDER BY key", *records) == [
        ("a", pytest.approx((workers - 1) * 0.4)),
        ("b", pytest.approx((workers - 1) * 0.4)),
    ]
