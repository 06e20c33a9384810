"""Rows in every format, and values that a format cannot represent."""

import csv
import io
import json

import duckdb
import polars as pl
import pytest

from roast_analyze.commands import formats
from roast_analyze.errors import NotWritable

VALUES = """
    SELECT
        'a|b' AS text, NULL AS nothing, [1, NULL, 3] AS list, {'x': 1, 'y': 'z'} AS struct,
        map {'k': 2} AS map, 'nan'::DOUBLE AS nan, 'infinity'::DOUBLE AS infinity,
        1.25 AS decimal, 170141183460469231731687303715884105727::HUGEINT AS huge,
        true AS yes, to_timestamp(0) AS moment, DATE '2020-01-02' AS day,
        'ab'::BLOB AS blob, INTERVAL 90 SECONDS AS span, '{"j": [1]}'::JSON AS json
"""


def written(query: str, name: str, output=None, limit=None) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        formats.write(connection.sql(query), name, output, limit)


def test_json_has_the_nearest_value_of_every_type(capsys):
    written(VALUES, "json")

    assert json.loads(capsys.readouterr().out) == [
        {
            "text": "a|b",
            "nothing": None,
            "list": [1, None, 3],
            "struct": {"x": 1, "y": "z"},
            "map": {"k": 2},
            "nan": None,
            "infinity": None,
            "decimal": 1.25,
            "huge": 170141183460469231731687303715884105727,
            "yes": True,
            "moment": "1970-01-01 00:00:00+00",
            "day": "2020-01-02",
            "blob": "6162",
            "span": "0:01:30",
            "json": '{"j": [1]}',
        }
    ]


def test_jsonl_is_one_object_per_line(capsys):
    written("SELECT unnest([1, 2]) AS a", "jsonl")

    assert capsys.readouterr().out == '{"a": 1}\n{"a": 2}\n'


def test_csv_quotes_text_and_writes_structures_as_json(capsys):
    written(
        """SELECT 'a,"b"' || chr(10) || 'c' AS text, NULL AS n, [1, 2] AS l, 1.5 AS x""", "csv"
    )

    out = capsys.readouterr().out
    assert list(csv.reader(io.StringIO(out))) == [
        ["text", "n", "l", "x"],
        ['a,"b"\nc', "", "[1, 2]", "1.5"],
    ]


def test_markdown_escapes_cells(capsys):
    written(r"SELECT 'a|b\' || chr(10) || 'c' AS text, [1] AS list", "markdown")

    assert capsys.readouterr().out == (
        "| text | list |\n"
        "| --- | --- |\n"
        "| a\\|b\\\\ c | [1] |\n"
    )  # fmt: skip


def test_parquet_keeps_types(tmp_path):
    written("SELECT 1.5::DOUBLE AS x, [1, 2] AS l, {'a': 'b'} AS s", "parquet", tmp_path / "f")

    frame = pl.read_parquet(tmp_path / "f")
    assert frame.to_dicts() == [{"x": 1.5, "l": [1, 2], "s": {"a": "b"}}]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("csv", "a\n"), ("json", "[]\n"), ("jsonl", ""), ("markdown", "| a |\n| --- |\n"),
     ("table", "a\n─\n")],
)  # fmt: skip
def test_no_rows(capsys, name, expected):
    written("SELECT 1 AS a WHERE false", name)

    assert capsys.readouterr().out == expected


def test_duplicate_column_names_become_unique(capsys):
    written("SELECT 1 AS a, 2 AS a, 3 AS A", "json")

    assert json.loads(capsys.readouterr().out) == [{"a": 1, "a_1": 2, "A_2": 3}]


FIRST_TWO = {
    "table": "a\n─\n1\n2\n",
    "csv": "a\n1\n2\n",
    "json": '[\n{"a": 1},\n{"a": 2}\n]\n',
    "jsonl": '{"a": 1}\n{"a": 2}\n',
    "markdown": "| a |\n| --- |\n| 1 |\n| 2 |\n",
}


OMITTED = "only the first 2 rows are shown; use --limit 0 for all\n"


def test_omitted_rows_are_reported(capsys, tmp_path):
    for rows, message in [("[1, 2, 3]", OMITTED), ("[1, 2]", "")]:
        for name, text in FIRST_TWO.items():
            written(f"SELECT unnest({rows}) AS a", name, limit=2)
            captured = capsys.readouterr()
            assert (captured.out, captured.err) == (text, message)
        written(f"SELECT unnest({rows}) AS a", "parquet", tmp_path / "x.parquet", limit=2)
        assert pl.read_parquet(tmp_path / "x.parquet").rows() == [(1,), (2,)]
        assert capsys.readouterr().err == message


def test_the_limit_respects_the_order(capsys):
    written("SELECT range AS a FROM range(100_000) ORDER BY a DESC", "csv", limit=2)

    assert capsys.readouterr().out == "a\n99999\n99998\n"


def test_a_table_in_a_pipe_is_as_wide_as_necessary(capsys):
    written("SELECT repeat('x', 300) AS a, repeat('y', 90) AS b", "table")

    assert "x" * 300 + "  " + "y" * 90 in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_row_too_wide_for_the_terminal_has_one_column_per_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()

    formats._WRITERS["table"](["one", "number"], iter([("x" * 60, 2)]), terminal)

    assert terminal.getvalue().splitlines() == [
        "── row 1 ────────────────────",
        "one     " + "x" * 60,
        "number  2",
    ]


def test_a_file_that_cannot_be_written(tmp_path):
    for name in ("csv", "parquet"):
        with pytest.raises(NotWritable, match="cannot write"):
            written("SELECT 1 AS a", name, tmp_path / "no" / "folder")


def test_parquet_needs_a_file():
    with pytest.raises(NotWritable, match="cannot be written to stdout: use -o FILE"):
        written("SELECT 1 AS a", "parquet")


def test_control_characters(monkeypatch, capsys):
    """A terminal gets none; tables and Markdown, which are for reading, never contain any."""
    query = "SELECT 'a' || chr(27) || '[2J' || chr(155) || chr(8238) || chr(10) || 'b' AS x"
    for name in FIRST_TWO:
        written(query, name)
        piped = capsys.readouterr().out
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", terminal := Terminal())
            written(query, name)
        assert not {"\x1b", "\x9b", "\u202e"} & set(terminal.getvalue()), name
        assert ("\x1b" in piped) == (name == "csv")
        assert ("a␛[2J⟨U+009B⟩⟨U+202E⟩ b" in piped) == (name in ("table", "markdown"))
        assert ("\\u001b[2J" in piped) == (name in ("json", "jsonl"))


def test_an_empty_table(capsys):
    written("SELECT 1 AS x WHERE false", "table")

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("x\n─\n", "(0 rows)\n")
