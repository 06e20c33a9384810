import polars as pl
import pytest

from roast_analyze.report import tables
from roast_analyze.report.data import Listing
from roast_analyze.report.tables import Cell, Field


@pytest.fixture
def table():
    """A table of columns given as ``name=(values, kind)``."""

    def build(total=None, more=None, **columns):
        rows = pl.DataFrame({name: values for name, (values, _) in columns.items()})
        return tables.build(
            "t",
            "T",
            Listing("v", "SELECT 1", rows, total or rows.height),
            tuple(
                Field(name, name, kind.removesuffix("?"), optional=kind.endswith("?"))
                for name, (_, kind) in columns.items()
                if kind
            ),
            comments={"a": "What a is."},
            command="roast-analyze view x v",
            start_t=100.0,
            more=more,
            left_out="the first",
        )

    return build


def column(built, index=0):
    return [row[index].text for row in built.rows]


@pytest.mark.parametrize(
    ("values", "kind", "unit", "texts"),
    [
        ([1.5, 22.25, None], "seconds", "s", ["1.50", "22.25", ""]),
        ([0.001, 0.05], "seconds", "ms", ["1.00", "50.00"]),
        ([100.0, 0.00001, 0.0], "seconds", "s", ["100.0", "<0.1", "0.0"]),
        ([0.00001, 0.00005], "seconds", "µs", ["10.00", "50.00"]),
        ([512.0, 2048.0], "byte_rate", "KiB/s", ["0.50", "2.00"]),
        ([1.0, 2.5], "ratio", "", ["1.00", "2.50"]),
        ([512, 2048], "bytes", "KiB", ["0.50", "2.00"]),
        ([3 * 1024**3], "bytes", "GiB", ["3.00"]),
        ([1234567], "count", "", ["1,234,567"]),
        ([0.5], "share", "%", ["50"]),
        ([101.5], "since", "s", ["1.500"]),
        ([float("inf")], "seconds", "s", ["–"]),
        (["x\x00", None], "text", "", ["x␀", ""]),
    ],
)
def test_a_column_has_one_unit(table, values, kind, unit, texts):
    built = table(a=(values, kind))

    assert (built.columns[0].unit, column(built)) == (unit, texts)


def test_a_cell_keeps_the_number_of_the_view(table):
    assert table(a=([2048], "bytes")).rows == ((Cell("2.00", 2048),),)


def test_trouble_is_marked_only_where_there_is_some(table):
    built = table(a=([0, 2], "trouble"), b=(["memory", "erred"], "outcome"))

    assert [[cell.tone for cell in row] for row in built.rows] == [["", "good"], ["bad", "bad"]]


def test_columns_without_anything_to_tell_are_left_out(table):
    built = table(
        a=([None, None], "count"),
        b=([None, None], "count"),
        c=([0, 0], "count"),
        d=([0, None], "count?"),
        e=([0, 1], "count?"),
    )

    assert [column.name for column in built.columns] == ["a", "c", "e"]


def test_a_column_says_what_it_means(table):
    assert table(a=([1], "count")).columns[0].help == "What a is."


def test_text_that_opens_below_a_cell(table):
    built = table(
        a=(["KeyError", None], "text"), b=(["line 1\nline 2", None], ""), more=("a", "b")
    )

    assert [row[0].more for row in built.rows] == ["line 1\nline 2", ""]


def test_what_is_left_out_is_said_with_the_command_that_shows_it(table):
    assert table(a=([1], "count")).note == ""
    assert table(total=2000, a=([1], "count")).note == (
        "1 of 2,000 rows: the first. All of them: roast-analyze view x v"
    )
