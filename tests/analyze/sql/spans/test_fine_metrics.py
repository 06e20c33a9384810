"""View fine_metrics."""


def test_sum_of_deltas(rows):
    metric = {
        "kind": "fine_metric", "worker": "w1", "server_id": "id", "context": "execute",
        "span_id": "s", "prefix": "add", "activity": "thread-cpu", "unit": "seconds",
    }  # fmt: skip

    assert rows(
        "SELECT * FROM fine_metrics",
        {**metric, "t": 1.0, "delta": 0.5},
        {**metric, "t": 2.0, "delta": 0.25},
        {**metric, "t": 2.0, "delta": 7.0, "unit": "bytes"},
    ) == [
        ("w1", "id", "execute", "s", "add", "thread-cpu", "bytes", 7.0, "T"),
        ("w1", "id", "execute", "s", "add", "thread-cpu", "seconds", 0.75, "T"),
    ]
