"""View cluster_samples."""


def test_sums_by_tick(rows, sample):
    one = {"nthreads": 1, "cpu": 50.0, "memory": 10, "memory_limit": 100, "managed_bytes": 1,
           "spilled_disk": 2, "processing": 3, "executing": 1, "ready": 2, "occupancy": 0.5,
           "nbytes": 7}  # fmt: skip

    assert rows(
        "SELECT * FROM cluster_samples",
        sample(1.0, "w1", **one),
        sample(1.0, "w2", **one),
        sample(2.0, "w1", **one | {"memory_limit": 0}),
    ) == [
        (1.0, 2, 2, 100.0, 20, 200, 2, 4, 6, 2, 4, 1.0, 14, "T"),
        (2.0, 1, 1, 50.0, 10, None, 1, 2, 3, 1, 2, 0.5, 7, "T"),
    ]
