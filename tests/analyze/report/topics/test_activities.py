"""Activities of workers, by prefix and by worker."""

import polars as pl
import pytest

from analyze.report.reading import plain, texts
from roast_analyze.figures import palette
from roast_analyze.report.topics.activities import figures


def metric(activity, delta, t=1.0, unit="seconds", **fields):
    """Return a fine metric of tasks ``add`` on w1."""
    known = {"worker": "w1", "context": "execute", "prefix": "add", "activity": activity}
    return {"kind": "fine_metric", "t": t, **known, "unit": unit, "delta": delta, **fields}


def outside(context, activity, delta, **fields):
    return metric(activity, delta, context=context, prefix=None, **fields)


def bars(figure):
    """Return the values of the bars of a figure, by name."""
    return {bar.name: (bar.x if bar.orientation == "h" else bar.y) for bar in figure.data}


def test_the_section(section, worker):
    built = section(
        "activities",
        worker("w1", nthreads=2, name="0"),
        worker("w2", nthreads=2, name="1"),
        metric("thread-cpu", 12.0),
        metric("thread-cpu", 4.0, prefix="sub", worker="w2"),
        metric("thread-noncpu", 6.0, t=3.0),
        metric("memory-read", 2048.0, unit="bytes"),
        metric("memory-read", 2.0, unit="count"),
        outside("gather-dep", "network", 3.0),
        outside("get-data", "network", 1.0, worker="w2"),
        # Excluded, as in the view activities.
        outside("p2p", "idle", 50.0),
        metric("disk-read", 0.5, context="p2p", prefix="foreground"),
    )

    tasks, others = map(plain, built.sentences)
    assert tasks.startswith(
        "Dask's fine performance metrics report 22 s in tasks, 55 % of the thread time of all "
        "workers: thread-cpu 40 % and thread-noncpu 15 %. In Dask's names,"
    )
    assert others == (
        "Outside of tasks, workers were receiving results (gather-dep) for 3 s and sending "
        "results (get-data) for 1 s."
    )
    totals, by_prefix, by_worker = map(texts, built.tables)
    assert totals == [
        ["execute", "thread-cpu", "16.00", "40", "", ""],
        ["execute", "thread-noncpu", "6.00", "15", "", ""],
        ["gather-dep", "network", "3.00", "", "", ""],
        ["get-data", "network", "1.00", "", "", ""],
        ["execute", "memory-read", "", "", "2.00", "2"],
    ]
    assert by_prefix == [
        ["add", "18.00", "12.00", "6.00", "2.00"],
        ["sub", "4.00", "4.00", "", ""],
    ]
    assert by_worker == [
        ["worker 0", "21.00", "12.00", "6.00", "3.00", "2.00"],
        ["worker 1", "5.00", "4.00", "", "1.00", ""],
    ]
    prefixes, workers = (bars(plot.figure) for plot in built.plots)
    assert prefixes == {"thread-cpu": (12.0, 4.0), "thread-noncpu": (6.0, 0.0)}
    assert workers["network (gather-dep)"] == (3.0, 0.0)
    assert built.plots[1].figure.layout.yaxis.ticktext == ("worker 0", "worker 1")


def spent(*rows):
    """Return a frame of ``(worker, context, activity, seconds)``."""
    names = ("worker", "context", "activity")
    schema = {**dict.fromkeys(names, pl.String), "seconds": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_activities_of_the_least_time_share_a_part():
    rows = spent(
        *(("w", "execute", f"a{i}", 100.0 - i) for i in range(8)),
        *(("w", "get-data", f"b{i}", 50.0 - i) for i in range(5)),
        ("w", "execute", "failed", 0.5),
        ("w", None, "<b>", 1000.0),
    )

    kinds = figures.rank(rows)

    assert {kind.words: kind.color for kind in kinds.values()} == {
        **{f"a{i}": palette.RANKED[i] for i in range(6)},
        "&lt;b&gt; (unknown)": palette.RANKED[6],
        **{f"b{i} (get-data)": palette.RANKED[7 + i] for i in range(3)},
        "4 other activities": palette.OTHER,
        "failed": palette.FAILURE,
    }
    assert bars(figures.by_name(rows, "worker", kinds, {}))["4 other activities"] == (
        93.0 + 94.0 + 46.0 + 47.0,
    )


def test_further_workers_are_drawn_as_their_mean():
    rows = spent(*((f"w{i:02}", "execute", "cpu", 10.0 - i / 10) for i in range(24)))

    drawn = figures.by_name(rows, "worker", figures.rank(rows), {"w00": "worker 0"})

    assert drawn.layout.yaxis.ticktext[0] == "worker 0"
    assert drawn.layout.yaxis.ticktext[-1] == "mean of 4\N{NO-BREAK SPACE}others"
    assert bars(drawn)["cpu"][-1] == pytest.approx(10 - 0.1 * (20 + 21 + 22 + 23) / 4)
    # Further prefixes are added up.
    prefixes = rows.rename({"worker": "prefix"})
    drawn = figures.by_name(prefixes, "prefix", figures.rank(rows), {})
    assert drawn.layout.yaxis.ticktext[-1] == "4\N{NO-BREAK SPACE}other prefixes"
    assert bars(drawn)["cpu"][-1] == pytest.approx(4 * 10 - 0.1 * (20 + 21 + 22 + 23))
