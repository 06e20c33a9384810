import polars as pl

from roast_analyze.figures import samples
from roast_analyze.figures.layout import TimeAxis

MIB = 1024**2
AXIS = TimeAxis(0.0, 10.0)


def cluster(*rows: tuple, limit=1000 * MIB) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "t": t,
                "nthreads": 2,
                "cpu_percent": cpu,
                "memory_bytes": memory * MIB,
                "managed_bytes": 0,
                "spilled_bytes": 0,
                "memory_limit_bytes": limit,
            }
            for t, memory, cpu in rows
        ]
    )


def each(workers: int, ticks: int) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "t": 10 * i / ticks,
                "worker": f"w{w}",
                "server_id": f"id{w}",
                "cpu_percent": 10.0 * w,
                "memory_bytes": (w + 1) * MIB,
                "memory_limit_bytes": 1000 * MIB,
            }
            for i in range(ticks)
            for w in range(workers)
        ]
    )


def named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_the_unit_of_memory():
    figure = samples.memory(cluster((0.0, 300, 0.0), (5.0, 700, 0.0)), each(1, 2), {}, AXIS)

    assert named(figure, "other memory of the processes").y == (300, 700)
    assert figure.layout.yaxis2.title.text == "cluster (MiB)"


def test_the_memory_of_the_cluster_is_a_stack_of_one_tick():
    """Of two ticks in a bucket, the one with more memory is drawn with its parts."""
    ticks = cluster((5.0, 700, 0.0), (5.001, 600, 0.0)).with_columns(
        managed_bytes=pl.Series([200 * MIB, 500 * MIB]), spilled_bytes=pl.Series([10 * MIB, 0])
    )

    figure = samples.memory(ticks, each(1, 1), {}, AXIS)

    stack = {trace.name: trace.y for trace in figure.data if trace.stackgroup}
    assert stack == {
        "stored results": (200,),
        "other memory of the processes": (500,),
        "spilled, on disk": (10,),
    }


def test_no_spilled_memory():
    figure = samples.memory(cluster((0.0, 300, 0.0)), each(1, 1), {}, AXIS)

    assert "spilled, on disk" not in {trace.name for trace in figure.data}


def test_a_limit_far_above_is_not_drawn():
    near = samples.memory(cluster((0.0, 700, 0.0)), each(1, 1), {}, AXIS)
    far = samples.memory(cluster((0.0, 10, 0.0)), each(1, 1), {}, AXIS)

    assert "limit" in {trace.name for trace in near.data}
    assert "limit" not in {trace.name for trace in far.data}


def test_cpu_is_drawn_in_cores():
    figure = samples.cpu(cluster((0.0, 1, 150.0)), each(2, 1), {"w1": "worker 1"}, AXIS)

    assert named(figure, "CPU").y == (1.5,)
    assert named(figure, "threads").y == (2,)
    assert named(figure, "worker 1").y == (10.0,)


def test_a_curve_keeps_its_peak_however_many_samples_there_are():
    rows = [(i / 1000, 5, 0.0) for i in range(10_000)] + [(7.0, 99, 0.0)]

    figure = samples.memory(cluster(*rows), each(1, 1), {}, AXIS)

    curve = named(figure, "other memory of the processes")

    assert len(curve.x) <= samples.POINT_LIMIT + 1
    assert max(curve.y) == 99


def test_many_workers_are_drawn_as_bands():
    figure = samples.memory(cluster((0.0, 1, 0.0)), each(40, 3), {}, AXIS)

    assert named(figure, "median worker").y == (20.5,) * 3
    assert named(figure, "highest worker").y == (40,) * 3
    assert len(figure.data) < 10
