"""Views activities and fine_metric_deltas."""

METRIC = {"kind": "fine_metric", "worker": "w1", "context": "execute", "prefix": "add"}


def metric(activity, delta, unit="seconds", t=1.0, **fields):
    return {**METRIC, "t": t, "activity": activity, "unit": unit, "delta": delta, **fields}


def test_each_metric_belongs_to_one_column(open_trace):
    activities = {
        "cpu": ["thread-cpu"],
        "noncpu": ["thread-noncpu"],
        "serialize": ["serialize"],
        "deserialize": ["deserialize"],
        "compress": ["compress"],
        "decompress": ["decompress"],
        "disk": ["disk-read", "disk-write"],
        "network": ["network"],
        "failed": ["failed", "cancelled"],
        "other": ["executor", "my own"],
    }
    names = [(column, name) for column, names in activities.items() for name in names]
    metrics = [metric(name, 2.0**i) for i, (_, name) in enumerate(names)]

    [row] = open_trace(*metrics, *metrics).frame("activities").to_dicts()
    for column in activities:
        expected = sum(2 * 2.0**i for i, (named, _) in enumerate(names) if named == column)
        assert row[f"{column}_seconds"] == expected
    assert row["seconds"] == 2 * (2.0 ** len(names) - 1)


def test_time_that_is_idle_or_reported_twice_is_excluded(ask):
    """Shuffles report their time as p2p foreground, too: `ShuffleRun._capture_metrics`."""
    foreground = {"context": "p2p", "prefix": "foreground"}
    background = {"context": "p2p", "prefix": "background-comms"}

    found = ask(
        metric("thread-cpu", 1.0),
        metric("p2p-disk-read", 0.5),
        metric("disk-read", 0.5, **foreground),
        metric("p2p-disk-read", 64.0, "bytes"),
        metric("disk-read", 64.0, "bytes", **foreground),
        metric("idle", 5.0, **background),
        metric("send", 2.0, **background),
        metric("disk-write", 7.0, "bytes", t=0.5, prefix="bytes alone"),
    )

    assert found(
        "SELECT context, prefix, seconds, disk_seconds, other_seconds, disk_read_bytes, "
        "disk_write_bytes FROM activities ORDER BY ALL"
    ) == [
        ("execute", "add", 1.5, 0.5, None, 64, None),
        ("execute", "bytes alone", None, None, None, None, 7),
        ("p2p", "background-comms", 2.0, None, 2.0, None, None),
    ]
    # Deltas are in order of time.
    query = "SELECT t, worker, activity, delta FROM fine_metric_deltas LIMIT 2"
    assert found(query) == [(0.5, "w1", "disk-write", 7.0), (1.0, "w1", "thread-cpu", 1.0)]
