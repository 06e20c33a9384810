"""View worker_samples."""


def test_columns_of_a_sample(rows, sample):
    fields = {
        "cpu": 150.5, "memory": 1, "memory_limit": 2, "managed_bytes": 7, "spilled_memory": 4,
        "spilled_disk": 5, "nthreads": 6, "processing": 7, "executing": 8, "ready": 9,
        "occupancy": 10.5, "nbytes": 11, "last_seen": 12.5, "event_loop_interval": 0.02,
        "num_fds": 13, "incoming_bytes": 14, "outgoing_bytes": 15, "host_net_read_bps": 16.0,
        "host_net_write_bps": 17.0, "host_disk_read_bps": 18.0, "host_disk_write_bps": 19.0,
        "server_id": "id",
    }  # fmt: skip

    # A memory limit of 0 means no limit, and metrics can be missing. 4 of the 7 managed bytes
    # are on disk.
    samples = [sample(3.0, "w1", **fields), sample(4.0, memory_limit=0)]
    assert rows("SELECT * FROM worker_samples", *samples) == [
        (
            3.0, "w1", 150.5, 1, 2, 3, 5, 6, 7, 8, 9, 10.5, 11, 12.5, 0.02, 13, 14, 15,
            16.0, 17.0, 18.0, 19.0, "id", "T",
        ),
        (4.0, "w1", *[None] * 21, "T"),
    ]  # fmt: skip
