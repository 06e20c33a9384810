"""View scheduler_samples."""


def test_cpu_of_the_event_loop_is_that_since_the_previous_sample(rows):
    def sample(t, **metrics):
        return {"kind": "scheduler_sample", "t": t, "server_id": "s", "metrics": metrics}

    host = {f"host_{name}_bps": 1.0 for name in ("net_read", "net_write", "disk_read")}
    first = {"cpu": 120.0, "event_loop_interval": 0.02, "memory": 5, "num_fds": 6, **host}

    assert rows(
        "SELECT * FROM scheduler_samples",
        sample(1.0, loop_cpu_seconds=7.0, **first, host_disk_write_bps=2.0),
        sample(3.0, loop_cpu_seconds=8.0),
        sample(4.0, loop_cpu_seconds=0.1),  # of another thread, at the very end
    ) == [
        (1.0, 120.0, None, 0.02, 5, 6, 1.0, 1.0, 1.0, 2.0, "s", "T"),
        (3.0, None, 50.0, *[None] * 7, "s", "T"),
        (4.0, None, None, *[None] * 7, "s", "T"),
    ]
