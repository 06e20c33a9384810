import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.bars import Part
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report.comparison.figures import largest_parts, over_time, stacked

AXIS = TimeAxis(0.0, 10.0)
CPU = [("cpu_percent", "CPU", 100.0), ("nthreads", "threads", 1.0)]


def panel(name: str, *samples: tuple) -> tuple[str, pl.DataFrame]:
    """Return a panel of ``(seconds since the start, CPU in percent, threads)``."""
    schema = {"t": pl.Float64, "cpu_percent": pl.Float64, "nthreads": pl.Int64}
    return name, pl.DataFrame(samples, schema=schema, orient="row")


def test_traces_have_panels_with_the_same_axes():
    traces = [panel("a", (0, 50.0, 1), (5, 100.0, 1)), panel("b", (1, 380.0, 4)), panel("c")]
    figure = over_time(traces, AXIS, CPU, "cores")

    curves = [(curve.yaxis, list(curve.x), list(curve.y)) for curve in figure.data]
    assert curves == [
        ("y", [0.0, 5.0], [0.5, 1.0]),
        ("y", [0.0, 5.0], [1, 1]),
        ("y2", [1.0], [3.8]),
        ("y2", [1.0], [4]),
        ("y3", [], []),
        ("y3", [], []),
    ]
    assert figure.data[0].name == "a: CPU"
    assert [curve.meta["columns"]["y"] for curve in figure.data[:2]] == [
        "cpu_percent_in_cores",
        "nthreads",
    ]
    assert "%{y:,.4~g} threads<" in figure.data[1].hovertemplate
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range == (0, 4.2)
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]
    notes = [note.text for note in figure.layout.annotations]
    assert notes == ["a", "b", "c · nothing recorded"]


def test_without_the_reference_and_without_samples():
    without = over_time([panel("a", (0, 50.0, 8))], AXIS, CPU[:1], "cores")
    nothing = over_time([panel("a", (0, None, None))], AXIS, CPU, "cores")

    assert len(without.data) == 1
    assert without.layout.yaxis.range == (0, 0.525)
    assert nothing.layout.annotations[0].text == "a · nothing recorded"
    assert nothing.layout.yaxis.range == (0, 1)


def test_a_long_trace_has_few_points():
    samples = ((n / 500, float(n % 7), 2) for n in range(5000))

    assert len(over_time([panel("a", *samples)], AXIS, CPU, "cores").data[0].x) <= 240


def test_stacked_bars():
    parts = [Part("kept", [2.0, 3.0], "#000"), Part("idle", [0.5, 0.0], "#fff")]
    figure = stacked(["a", "<b>"], parts, "s")

    assert [(bar.name, list(bar.x), list(bar.y)) for bar in figure.data] == [
        ("kept", [2.0, 3.0], [0, 1]),
        ("idle", [0.5, 0.0], [0, 1]),
    ]
    assert figure.layout.barmode == "stack"
    assert figure.layout.yaxis.ticktext == ("a", "&lt;b&gt;")


def test_the_largest_parts_have_colors():
    rows = pl.DataFrame(
        {
            "prefix": [*(f"p{n:02}" for n in range(12)), None],
            "a": [*map(float, range(12)), None],
            "b": [*[0.0] * 12, 99.0],
        }
    )

    parts = largest_parts(rows, "prefix", ["a", "b"])

    assert [part.words for part in parts] == [
        "(no name)", "p11", "p10", "p09", "p08", "p07", "p06", "p05", "p04",
        "4\N{NO-BREAK SPACE}others",
    ]  # fmt: skip
    assert [*parts[0].seconds] == [0.0, 99.0]
    assert [*parts[-1].seconds] == [0.0 + 1 + 2 + 3, 0.0]
    assert parts[-1].color == palette.OTHER
    assert len({part.color for part in parts}) == 10
