import polars as pl

from roast_analyze.figures import samples
from roast_analyze.figures.layout import TimeAxis

MIB = 1024**2
AXIS = TimeAxis(0.0, 10.0)


def cluster(*ticks: tuple) -> pl.DataFrame:
    """Return samples from ``(t, memory, managed and spilled MiB, CPU)``; limit 1000 MiB."""
    names = ("t", "memory_bytes", "managed_bytes", "spilled_bytes", "cpu_percent")
    frame = pl.DataFrame(ticks, schema=dict.fromkeys(names, pl.Float64), orient="row")
    sized = pl.col(names[1:4]) * MIB
    return frame.with_columns(sized, nthreads=2, memory_limit_bytes=1000 * MIB)


def each(workers: int, ticks: int = 1) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"t": 10 * i / ticks, "worker": f"w{w}", "server_id": f"id{w}",
             "cpu_percent": 10.0 * w, "memory_bytes": (w + 1) * MIB,
             "memory_limit_bytes": 1000 * MIB}
            for i in range(ticks)
            for w in range(workers)
        ]
    )  # fmt: skip


def curves(figure) -> dict:
    return {trace.name: trace for trace in figure.data}


def test_the_memory_of_the_cluster_is_a_stack_of_the_fullest_tick_of_a_bucket():
    ticks = cluster((5.0, 700, 200, 10, 0.0), (5.001, 600, 500, 0, 0.0))

    figure = samples.memory(ticks, each(1), {}, AXIS)

    assert {trace.name: trace.y for trace in figure.data if trace.stackgroup} == {
        "stored results": (200,),
        "other memory of the processes": (500,),
        "spilled, on disk": (10,),
    }
    assert curves(figure)["w0"].y == (1,)
    titles = (figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text)
    assert titles == ("cluster (MiB)", "worker (MiB)")


def test_limits_that_fit_and_no_spilled_memory():
    near = samples.memory(cluster((0.0, 700, 0, 0, 0.0)), each(1), {}, AXIS)
    far = samples.memory(cluster((0.0, 10, 0, 0, 0.0)), each(1), {}, AXIS)
    fitting = each(1).with_columns(memory_limit_bytes=2 * MIB)
    per_worker = samples.memory(cluster((0.0, 10, 0, 0, 0.0)), fitting, {}, AXIS)

    assert curves(near).keys() == {
        "stored results", "other memory of the processes", "limit", "w0",
    }  # fmt: skip
    assert "limit" not in curves(far)
    assert curves(per_worker)["limit per worker"].y == (2,)


def test_cpu_is_drawn_in_cores():
    figure = samples.cpu(cluster((0.0, 1, 0, 0, 150.0)), each(2), {"w1": "worker 1"}, AXIS)

    shown = {name: (curve.y, curve.yaxis or "y") for name, curve in curves(figure).items()}
    assert shown == {
        "CPU": ((1.5,), "y"), "threads": ((2,), "y"),
        "worker 1": ((10.0,), "y2"), "w0": ((0.0,), "y2"),
    }  # fmt: skip
    assert "%{y:,.4~g} threads<" in figure.data[1].hovertemplate
    # Workers are drawn in the order of `names`, the others after them.
    assert list(shown) == ["CPU", "threads", "worker 1", "w0"]


def test_a_curve_of_many_samples_keeps_its_peak():
    ticks = [(i / 1000, 5, 0, 0, 0.0) for i in range(10_000)] + [(7.0, 99, 0, 0, 0.0)]

    figure = samples.memory(cluster(*ticks), each(1), {}, AXIS)

    curve = curves(figure)["other memory of the processes"]
    assert len(curve.x) <= samples.POINT_LIMIT + 1
    assert max(curve.y) == 99


def test_many_workers_are_drawn_as_bands():
    drawn = curves(samples.memory(cluster((0.0, 1, 0, 0, 0.0)), each(40, 3), {}, AXIS))

    assert drawn["middle 90 % of workers"].y == (38,) * 3
    assert drawn["median worker"].y == (20.5,) * 3
    assert drawn["highest worker"].y == (40,) * 3
    assert len(drawn) < 10
