import polars as pl
import pytest

from roast_analyze.report import tables
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing
from roast_analyze.report.tables import Cell, Field, Source, Sparkline


@pytest.fixture(autouse=True)
def comments(monkeypatch):
    monkeypatch.setattr(tables, "view_comments", lambda: {"v": {"a": "What a is."}})


class Trace(Source):
    chosen = "the first"
    start_t = 100.0

    def view_command(self, view):
        return f"roast-analyze view x {view}"


def table(*fields: Field, total=None, **rows):
    """Return a table of rows, given by column; settings begin with an underscore."""
    settings = {name[1:]: rows.pop(name) for name in list(rows) if name.startswith("_")}
    frame = pl.DataFrame(rows)
    listing = Listing("v", "SELECT 1", frame, total or frame.height)
    return Trace().table("t", "T", listing, fields, **settings)


@pytest.mark.parametrize(
    ("values", "kind", "unit", "texts"),
    [
        ([1.5, 22.25, None], "seconds", "s", ["1.50", "22.25", ""]),
        ([0.001, 0.05], "seconds", "ms", ["1.00", "50.00"]),
        ([100.0, 0.00001, 0.0], "seconds", "s", ["100.0", "<0.1", "0.0"]),
        ([0.00001, 0.00005], "seconds", "µs", ["10.00", "50.00"]),
        ([float("inf")], "seconds", "s", ["–"]),
        ([12.5, -1234.0, 0.0, -0.01, None], "difference", "s", ["+12", "−1,234", "0", "0", ""]),
        ([100.0, -0.01], "difference", "s", ["+100.0", "0.0"]),
        ([0.05, -0.5], "change", "%", ["+5", "−50"]),
        ([512, 2048], "bytes", "KiB", ["0.50", "2.00"]),
        ([-2048, -1, 4], "bytes", "KiB", ["-2.00", ">-0.01", "<0.01"]),
        ([3 * 1024**3], "bytes", "GiB", ["3.00"]),
        ([512.0, 2048.0], "byte_rate", "KiB/s", ["0.50", "2.00"]),
        ([12, 500], "byte_rate", "B/s", ["12", "500"]),
        ([0.125, 2.5], "rate", "1/s", ["0.12", "2.50"]),
        ([1.0, 2.5], "ratio", "", ["1.00", "2.50"]),
        ([1234567], "count", "", ["1,234,567"]),
        ([0.5], "share", "%", ["50"]),
        ([101.5], "since", "s", ["1.500"]),
        (["x\x00", None], "text", "", ["x␀", ""]),
    ],
)
def test_a_column_has_one_unit_and_its_cells_keep_the_raw_numbers(values, kind, unit, texts):
    built = table(Field("a", "A", kind), a=values)

    (column,) = built.columns
    assert (column.title, column.unit, column.help) == ("A", unit, "What a is.")
    assert [cell.text for (cell,) in built.rows] == texts
    if kind not in ("text", "since") and values != [float("inf")]:
        assert [cell.value for (cell,) in built.rows] == values


def test_workers_have_names_unless_the_table_has_both(monkeypatch):
    monkeypatch.setattr(Trace, "worker_names", {"tcp://a:1": "worker 0"})
    fields = columns("worker tasks")

    built = table(*fields, worker=["tcp://a:1", "tcp://b:2", None], tasks=[1, 2, 3])
    assert [row[0].text for row in built.rows] == ["worker 0", "tcp://b:2", ""]
    built = table(*fields, worker=["tcp://a:1"], tasks=[1], name=["0"])
    assert built.rows[0][0].text == "tcp://a:1"


def test_columns_of_a_group_have_the_unit_of_the_largest_of_them():
    built = table(
        Field("a", "a", "seconds", group="g"),
        Field("b", "b", "seconds", group="g"),
        Field("c", "c", "seconds"),
        a=[0.001], b=[12.5], c=[0.001],
    )  # fmt: skip

    assert [column.unit for column in built.columns] == ["s", "s", "ms"]
    assert [cell.text for cell in built.rows[0]] == ["<0.01", "12.50", "1.00"]


def test_failures_are_marked():
    fields = Field("a", "a", "trouble"), Field("b", "b", "outcome"), Field("c", "c")
    built = table(*fields, a=[0, 2, 0], b=["memory", "erred", None], c=["memory", "x", "y"])

    assert [[cell.tone for cell in row] for row in built.rows] == [
        ["", "good", ""], ["bad", "bad", ""], ["", "", ""],
    ]  # fmt: skip


def test_details_of_wide_tables_are_shown_on_demand():
    fields = [Field(name, name, detail=name in "bi") for name in "abcdefghi"]

    def details(*fields):
        built = table(*fields, **{field.name: ["x"] for field in fields})
        return [column.name for column in built.columns if column.detail]

    assert details(*fields) == ["b", "i"]
    assert details(*fields[:8]) == []  # as many as a table can show


def test_empty_columns_are_omitted():
    fields = [Field(name, name, "count", optional=name in "de") for name in "abcde"]
    none = [None, None]

    built = table(*fields, a=none, b=none, c=[0, 0], d=[0, None], e=[0, 1])

    assert [column.name for column in built.columns] == ["a", "c", "e"]


def test_sparklines_ratios_links_and_longer_texts_of_cells():
    curve = Sparkline("M0 1h9", "1 to 2")
    built = table(
        Field("a", "a", "count", times="ratio", help="What it is here."),
        Field("b", "b", link="page"),
        a=[2, 5], b=["x", "y"], ratio=[None, 2.5], trace=["line 1\nline 2", None],
        page=[None, "y.html"],
        _sparklines={"a": [None, curve]}, _expandable=("b", "trace"),
    )  # fmt: skip

    assert built.rows == (
        (Cell("2", 2, beside=""), Cell("x", more="line 1\nline 2")),
        (Cell("5", 5, sparkline=curve, beside="×2.5"), Cell("y", link="y.html")),
    )
    assert built.columns[0].help == "What it is here."
    # Without its column, the longer text is in the first one.
    alone = table(Field("b", "b"), b=["x"], c=["long"], _expandable=("d", "c"))
    assert alone.rows == ((Cell("x", more="long"),),)


def test_omitted_rows_are_counted():
    field = Field("a", "a")

    assert table(field, a=[1]).note == ""
    assert table(field, total=2000, a=[1]).note == (
        "1 of 2,000 rows: the first. All rows: roast-analyze view x v"
    )
    assert table(field, total=5, a=[1], _has_view=False, _chosen="some").note == (
        "1 of 5 rows: some. All rows: the query, without its limit"
    )
    listings = [Listing("v", "", pl.DataFrame({"a": [1]}), total) for total in (0, 1)]
    wanted = [(f"t{number}", "", some, [field], "") for number, some in enumerate(listings)]
    assert [built.name for built in Trace().tables(*wanted)] == ["t1"]


def test_columns_have_headings_and_kinds_by_name():
    shown = columns("prefix (wall_seconds) lost? total_tasks", {"prefix": "of"}, {"lost": "?"})

    assert shown == (
        Field("prefix", "of"),
        Field("wall_seconds", "wall time", "seconds", detail=True),
        Field("lost", "lost", "trouble", optional=True, help="?"),
        Field("total_tasks", "tasks", "count"),
    )


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("root://server.example//store/mc/Run3/DYJets/nano_1.root", "/Run3/DYJets/nano_1.root"),
        (
            "decompress (/lib/site-packages/uproot/compression.py:210)",
            "root/compression.py:210)",
        ),
        ("DeserializationError('cannot read <TBasket17:nMuon:Events:QCD_1.root>')", ""),
        ('{"action":"update-graph","stimulus_id":"update-graph-1795294745.77","met…', ""),
        ("nano_1.root", ""),
    ],
)
def test_long_names_are_cut_off_in_the_middle(text, tail):
    head, end = Cell(text).ends

    assert (head + end, end) == (text, tail)
