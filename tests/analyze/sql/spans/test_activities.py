"""Views activities and fine_metric_deltas."""

import pytest

METRIC = {"kind": "fine_metric", "worker": "w1", "context": "execute", "prefix": "add"}


def metric(activity, delta, unit="seconds", t=1.0, **fields):
    return {**METRIC, "t": t, "activity": activity, "unit": unit, "delta": delta, **fields}


def test_each_metric_belongs_to_one_column(open_trace):
    names = {
        "thread-cpu": "cpu",
        "thread-noncpu": "noncpu",
        "serialize": "serialize",
        "deserialize": "deserialize",
        "compress": "compress",
        "decompress": "decompress",
        "disk-read": "disk",
        "disk-write": "disk",
        "network": "network",
        "failed": "failed",
        "cancelled": "failed",
        "executor": "other",
        "my own": "other",
    }
    metrics = [metric(name, 2.0**i) for i, name in enumerate(names)]

    [row] = open_trace(*metrics, *metrics).frame("activities").to_dicts()

    expected = {}
    for i, name in enumerate(names.values()):
        expected[f"{name}_seconds"] = expected.get(f"{name}_seconds", 0) + 2 * 2.0**i
    assert {name: row[name] for name in expected} == expected
    assert row["seconds"] == sum(expected.values()) == pytest.approx(2 * (2.0**13 - 1))


def test_idle_time_is_excluded(open_trace):
    background = {"context": "p2p", "prefix": "background-comms"}

    [row] = (
        open_trace(metric("idle", 5.0, **background), metric("send", 2.0, **background))
        .frame("activities")
        .to_dicts()
    )

    assert (row["seconds"], row["other_seconds"]) == (2.0, 2.0)


def test_shuffle_time_reported_twice_counts_once(open_trace):
    """As foreground of p2p and in execute, by design of `ShuffleRun._capture_metrics`."""
    frame = open_trace(
        metric("thread-cpu", 1.0),
        metric("p2p-disk-read", 0.5),
        metric("disk-read", 0.5, context="p2p", prefix="foreground"),
        metric("p2p-disk-read", 64.0, "bytes"),
        metric("disk-read", 64.0, "bytes", context="p2p", prefix="foreground"),
    ).frame("activities")

    columns = ("context", "prefix", "seconds", "disk_seconds", "disk_read_bytes")
    assert frame.select(columns).rows() == [("execute", "add", 1.5, 0.5, 64)]


def test_bytes_and_missing_metrics(open_trace):
    frame = open_trace(
        metric("disk-write", 7.0, "bytes"), metric("network", 1.0, worker="w2", prefix=None)
    ).frame("activities")

    assert frame.select("worker", "seconds", "network_seconds", "disk_write_bytes").rows() == [
        ("w2", 1.0, 1.0, None),
        ("w1", None, None, 7),
    ]


def test_deltas_in_order_of_time(rows):
    query = "SELECT t, worker, activity, delta FROM fine_metric_deltas"

    assert rows(query, metric("compress", 1.0, t=3.0), metric("network", 2.0, t=2.0)) == [
        (2.0, "w1", "network", 2.0),
        (3.0, "w1", "compress", 1.0),
    ]
