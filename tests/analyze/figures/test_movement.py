import polars as pl
from roast_analyze.figures.transfers import movement

WORKERS = pl.DataFrame(
    {
        "row": [0, 1, 2],
        "worker": ["tcp://a:1", "tcp://b:1", "tcp://c:1"],
        "name": ["0", "1", "<b>x"],
        "workers": [1, 1, 4],
    }
)


def cells(*rows: tuple) -> pl.DataFrame:
    """Rows of the map of who sent, and who received, and what."""
    columns = {
        "from_row": pl.Int64,
        "to_row": pl.Int64,
        "transfers": pl.Int64,
        "bytes": pl.Int64,
        "seconds": pl.Float64,
    }
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_a_row_sent_to_a_column():
    figure = movement(
        WORKERS, cells((0, 1, 3, None, 2.0), (2, 0, 1, None, 0.5)), in_bytes=False
    )

    (drawn,) = figure.data
    assert [list(row) for row in drawn.z] == [
        [None, 2.0, None],
        [None, None, None],
        [0.5, None, None],
    ]
    assert (drawn.zmin, drawn.zmax) == (0, 2.0)
    assert drawn.meta["columns"] == {"x": "destination", "y": "source", "z": "seconds_in_s"}


def test_bytes_have_a_unit_that_fits():
    figure = movement(WORKERS, cells((0, 1, 1, 3 * 1024**2, 1.0)), in_bytes=True)

    (drawn,) = figure.data
    assert drawn.z[0][1] == 3.0
    assert drawn.colorbar.ticktext == ("0", "3 MiB")


def test_little_time_is_told_in_milliseconds():
    figure = movement(WORKERS, cells((0, 1, 1, None, 0.02)), in_bytes=False)

    assert figure.data[0].colorbar.ticktext == ("0", "20 ms")


def test_rows_and_columns_have_the_names_of_workers_and_no_markup():
    figure = movement(WORKERS, cells(), in_bytes=False)

    names = ("worker 0", "worker 1", "&lt;b&gt;x and 3 more")
    assert figure.layout.yaxis.ticktext == figure.layout.xaxis.ticktext == names
    assert figure.layout.xaxis.showticklabels


def test_many_columns_have_no_names_below_them():
    many = pl.DataFrame(
        {"row": range(40), "worker": [f"tcp://w:{i}" for i in range(40)]}
    ).with_columns(name=None, workers=1)

    assert not movement(many, cells(), in_bytes=False).layout.xaxis.showticklabels
