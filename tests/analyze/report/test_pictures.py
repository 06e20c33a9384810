import polars as pl
from roast_analyze.figures.sparklines import POINTS_OF_A_PAGE

from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report import pictures

AXIS = TimeAxis(0.0, 10.0)


def rows(*processes: tuple) -> pl.DataFrame:
    return pl.DataFrame(
        processes, schema={"worker": pl.String, "server_id": pl.String}, orient="row"
    )


def samples(*ticks: tuple, limit: int | None = 100, spilled: int = 0) -> pl.DataFrame:
    """Samples from ``(t, worker, server_id, cpu, memory, executing)``."""
    columns = {
        "t": pl.Float64,
        "worker": pl.String,
        "server_id": pl.String,
        "cpu_percent": pl.Float64,
        "memory_bytes": pl.Int64,
        "executing": pl.Float64,
    }
    return pl.DataFrame(ticks, schema=columns, orient="row").with_columns(
        pl.lit(1).alias("samples"),
        pl.lit(limit, pl.Int64).alias("memory_limit_bytes"),
        pl.lit(spilled).alias("spilled_bytes"),
    )


def spoken(drawn: pictures.Drawn, column: str) -> list[str | None]:
    return [
        picture and picture.spoken.replace("\N{NO-BREAK SPACE}", " ")
        for picture in drawn.pictures[column]
    ]


def test_each_worker_has_a_picture_of_each_quantity():
    drawn = pictures.draw(
        rows(("w1", "a"), ("w2", "b"), ("w3", "c")),
        samples(
            (1.0, "w1", "a", 20.0, 10, 1.0),
            (6.0, "w1", "a", 80.0, 50, 0.0),
            (1.0, "w2", "b", 40.0, 30, 2.0),
        ),
        AXIS,
    )

    assert [field.title for field in drawn.fields] == [
        "CPU",
        "memory, of limit",
        "running tasks",
    ]
    assert spoken(drawn, "max_cpu_cores") == ["20 to 80 %", "40 to 40 %", None]
    assert spoken(drawn, "max_memory_share") == ["10 to 50 %", "30 to 30 %", None]
    assert spoken(drawn, "max_executing") == ["0 to 1", "2 to 2", None]
    assert drawn.rows.select("worker", "max_cpu_cores", "max_memory_share").rows() == [
        ("w1", 0.8, 0.5),
        ("w2", 0.4, 0.3),
        ("w3", None, None),
    ]


def test_pictures_of_a_column_have_one_scale_and_memory_reaches_up_to_its_limit():
    drawn = pictures.draw(
        rows(("w1", "a"), ("w2", "b")),
        samples((0.0, "w1", "a", 50.0, 100, 0.0), (0.0, "w2", "b", 100.0, 50, 0.0)),
        AXIS,
    )

    half, full = "M0 8h0", "M0 1h0"
    assert [picture.path for picture in drawn.pictures["max_cpu_cores"]] == [half, full]
    assert [picture.path for picture in drawn.pictures["max_memory_share"]] == [full, half]


def test_a_curve_holds_between_samples_and_ends_with_the_last():
    drawn = pictures.draw(
        rows(("w1", "a")),
        samples((2.0, "w1", "a", 100.0, 1, 0.0), (5.0, "w1", "a", 100.0, 1, 0.0)),
        AXIS,
    )

    assert drawn.pictures["max_cpu_cores"][0].path == "M12 1h18"


def test_a_worker_that_came_back_under_its_address_is_another_process():
    drawn = pictures.draw(
        rows(("w1", "a"), ("w1", "b"), ("w1", None)),
        samples((1.0, "w1", "a", 10.0, 1, 0.0), (9.0, "w1", "b", 70.0, 1, 0.0)),
        AXIS,
    )

    assert spoken(drawn, "max_cpu_cores") == ["10 to 10 %", "70 to 70 %", None]


def test_without_a_limit_memory_is_told_in_bytes_and_spilling_only_if_there_was_any():
    drawn = pictures.draw(
        rows(("w1", "a")),
        samples((1.0, "w1", "a", 10.0, 2048, 0.0), limit=None, spilled=1024),
        AXIS,
    )

    assert [field.name for field in drawn.fields] == [
        "max_cpu_cores", "max_memory_bytes", "max_spilled_bytes",
    ]  # fmt: skip
    assert spoken(drawn, "max_memory_bytes") == ["2 to 2 KiB"]


def test_the_pictures_of_a_page_stay_small():
    processes = [(f"w{i}", f"id{i}") for i in range(300)]
    ticks = [
        (t / 10, *process, (7 * i * t) % 97, (13 * i * t) % 89, (i * t) % 3)
        for i, process in enumerate(processes)
        for t in range(100)
    ]

    drawn = pictures.draw(rows(*processes), samples(*ticks, spilled=5), AXIS)

    paths = [picture.path for column in drawn.pictures.values() for picture in column]
    assert len(paths) == 4 * 300
    assert sum(map(len, paths)) < 8 * POINTS_OF_A_PAGE


def test_without_samples_there_are_no_pictures():
    drawn = pictures.draw(rows(("w1", "a")), samples(), AXIS)

    assert (drawn.fields, drawn.pictures) == ((), {})
    assert drawn.rows.rows() == [("w1", "a")]
