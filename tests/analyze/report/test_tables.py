import polars as pl
import pytest

from roast_analyze.report import tables
from roast_analyze.report.listing import Listing
from roast_analyze.report.tables import Cell, Field, Sparkline


@pytest.fixture
def table():
    """A table of columns given as ``name=(values, kind)``."""

    def build(total=None, expandable=None, **columns):
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
            expandable=expandable,
            chosen="the first",
        )

    return build


COLUMNS = [
    ([1.5, 22.25, None], "seconds", "s", ["1.50", "22.25", ""]),
    ([0.001, 0.05], "seconds", "ms", ["1.00", "50.00"]),
    ([100.0, 0.00001, 0.0], "seconds", "s", ["100.0", "<0.1", "0.0"]),
    ([0.00001, 0.00005], "seconds", "µs", ["10.00", "50.00"]),
    ([float("inf")], "seconds", "s", ["–"]),
    ([12.5, -1234.0, 0.0, -0.01, None], "difference", "s", ["+12", "−1,234", "0", "0", ""]),
    ([100.0, -0.01], "difference", "s", ["+100.0", "0.0"]),
    ([512, 2048], "bytes", "KiB", ["0.50", "2.00"]),
    ([-2048, -1, 4], "bytes", "KiB", ["-2.00", ">-0.01", "<0.01"]),
    ([3 * 1024**3], "bytes", "GiB", ["3.00"]),
    ([512.0, 2048.0], "byte_rate", "KiB/s", ["0.50", "2.00"]),
    ([1.0, 2.5], "ratio", "", ["1.00", "2.50"]),
    ([1234567], "count", "", ["1,234,567"]),
    ([0.5], "share", "%", ["50"]),
    ([101.5], "since", "s", ["1.500"]),
    (["x\x00", None], "text", "", ["x␀", ""]),
]


def test_a_column_has_one_unit(table):
    built = [table(a=(values, kind)) for values, kind, *_ in COLUMNS]

    shown = [(one.columns[0].unit, [cell.text for (cell,) in one.rows]) for one in built]
    assert shown == [(unit, texts) for _, _, unit, texts in COLUMNS]


def test_a_cell_keeps_the_number_of_the_view(table):
    assert table(a=([2048], "bytes")).rows == ((Cell("2.00", 2048),),)


def test_failures_are_marked(table):
    built = table(a=([0, 2], "trouble"), b=(["memory", "erred"], "outcome"))

    assert [[cell.tone for cell in row] for row in built.rows] == [["", "good"], ["bad", "bad"]]


def test_empty_columns_are_omitted(table):
    built = table(
        a=([None, None], "count"),
        b=([None, None], "count"),
        c=([0, 0], "count"),
        d=([0, None], "count?"),
        e=([0, 1], "count?"),
    )

    assert [column.name for column in built.columns] == ["a", "c", "e"]


def test_descriptions_of_columns(table):
    assert table(a=([1], "count")).columns[0].help == "What a is."


def test_expandable_cells(table):
    built = table(
        a=(["KeyError", None], "text"), b=(["line 1\nline 2", None], ""), expandable=("a", "b")
    )

    assert [row[0].more for row in built.rows] == ["line 1\nline 2", ""]


def test_omitted_rows_are_counted(table):
    assert table(a=([1], "count")).note == ""
    assert table(total=2000, a=([1], "count")).note == (
        "1 of 2,000 rows: the first. All rows: roast-analyze view x v"
    )


def test_a_table_without_a_view():
    listing = Listing("v", "SELECT 1 LIMIT 1", pl.DataFrame({"a": [1]}), 5)

    built = tables.build("t", "T", listing, (Field("a", "a"),), comments={}, command="")

    assert built.note.endswith("All rows: the query, without its limit")


def test_sparklines():
    listing = Listing("v", "SELECT 1", pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), 2)
    curve = Sparkline("M0 1h9", "1 to 2")
    fields = (Field("b", "b"), Field("a", "a", "ratio", help="What it is here."))

    built = tables.build(
        "t",
        "T",
        listing,
        fields,
        comments={"a": "?"},
        command="",
        sparklines={"a": [None, curve]},
    )

    assert [row[1].sparkline for row in built.rows] == [None, curve]
    assert [row[0].sparkline for row in built.rows] == [None, None]
    assert built.columns[1].help == "What it is here."


def test_columns_of_a_group_have_the_unit_of_the_largest_of_them():
    rows = pl.DataFrame({"a": [0.001], "b": [12.5], "c": [0.001]})
    fields = (
        Field("a", "a", "seconds", group="g"),
        Field("b", "b", "seconds", group="g"),
        Field("c", "c", "seconds"),
    )

    built = tables.build("t", "T", Listing("v", "", rows, 1), fields, comments={}, command="")

    assert [column.unit for column in built.columns] == ["s", "s", "ms"]
    assert [cell.text for cell in built.rows[0]] == ["<0.01", "12.50", "1.00"]


def test_ratios_beside_values():
    rows = pl.DataFrame({"a": [2, 5, 1], "a times": [None, 2.5, 0.5]})
    field = Field("a", "a", "count", times="a times")

    built = tables.build("t", "T", Listing("v", "", rows, 3), (field,), comments={}, command="")

    assert [(row[0].text, row[0].value, row[0].beside) for row in built.rows] == [
        ("2", 2, ""), ("5", 5, "×2.5"), ("1", 1, "×0.5"),
    ]  # fmt: skip
