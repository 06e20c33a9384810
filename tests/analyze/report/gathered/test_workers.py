import polars as pl
from roast_analyze.report.gathered import workers

from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import POINT_LIMIT


def test_workers_come_by_number_and_then_by_time(open_trace, worker, gone):
    trace = open_trace(
        worker("a", t=3.0, name="10"),
        worker("b", t=1.0, name="9"),
        worker("c", t=2.0, name="x"),
        gone("a", 4.0, "handle-worker-cleanup-4.0"),
        gone("b", 5.0, "retire-workers-5.0"),
    )

    everyone = workers.everyone(trace)

    assert everyone.select("worker", "lost").rows() == [("b", False), ("a", True), ("c", False)]


def test_samples_are_put_together_by_stretches_of_time(open_trace, sample):
    ticks = [
        sample(1.0, server_id="i", cpu=10.0, memory=5, executing=1),
        sample(1.01, server_id="i", cpu=30.0, memory=9, executing=0),
        sample(7.0, server_id="i", cpu=50.0, memory=1, executing=0),
    ]

    samples = workers.samples(open_trace(*ticks), TimeAxis(0.0, 10.0))

    assert samples.select(
        "t", "worker", "server_id", "samples", "cpu_percent", "memory_bytes", "executing"
    ).rows() == [(1.0, "w1", "i", 2, 20.0, 9, 0.5), (7.0, "w1", "i", 1, 50.0, 1, 0.0)]


def test_however_many_samples_there_are_few_are_drawn(open_trace, sample):
    ticks = [sample(i / 100, address, memory=i) for i in range(1000) for address in "ab"]

    samples = workers.samples(open_trace(*ticks), TimeAxis(0.0, 10.0))

    assert samples.group_by("worker").len().filter(pl.col("len") > POINT_LIMIT).is_empty()
    assert samples["samples"].sum() == 2000
