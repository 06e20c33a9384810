"""Rows in every format, and values that a format cannot represent."""

import csv
import io
import json
from types import SimpleNamespace
from unittest.mock import Mock

import duckdb
import polars as pl
import pytest

from roast_analyze.commands import formats
from roast_analyze.errors import NotWritable


def write(query: str, name: str, output=None, limit=None) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        options = SimpleNamespace(format=name, output=output, limit=limit)
        formats.write(connection.sql(query), options)


@pytest.fixture
def written(capsys):
    """Write the rows of a query; return the output and the note."""

    def written(*arguments, **options) -> tuple[str, str]:
        write(*arguments, **options)
        return tuple(capsys.readouterr())

    return written


@pytest.fixture
def terminal(monkeypatch):
    """Write the rows of a query to a terminal of 40 columns; return the text."""

    def terminal(query: str, name: str) -> str:
        output = io.StringIO()
        output.isatty = lambda: True
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", "40")
            patch.setattr("sys.stdout", output)
            write(query, name)
        return output.getvalue()

    return terminal


def test_json_has_the_nearest_value_of_every_type(written):
    values = {
        "'a|b'": "a|b",
        "NULL": None,
        "[1, NULL, 3]": [1, None, 3],
        "{'x': 1, 'y': 'z'}": {"x": 1, "y": "z"},
        "map {'k': 2}": {"k": 2},
        "'nan'::DOUBLE": None,
        "'infinity'::DOUBLE": None,
        "1.25": 1.25,
        "170141183460469231731687303715884105727::HUGEINT": 2**127 - 1,
        "true": True,
        "to_timestamp(0)": "1970-01-01 00:00:00+00",
        "DATE '2020-01-02'": "2020-01-02",
        "'ab'::BLOB": "6162",
        "INTERVAL 90 SECONDS": "0:01:30",
        """'{"j": [1]}'::JSON""": '{"j": [1]}',
    }
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(values))

    [row] = json.loads(written(f"SELECT {columns}", "json")[0])
    assert dict(zip(values, row.values(), strict=True)) == values


def test_names_text_and_structures(written, tmp_path):
    # Columns of the same name become unique.
    found = written("SELECT 1 AS a, 2 AS a, 3 AS A", "jsonl")[0]
    assert found == '{"a": 1, "a_1": 2, "A_2": 3}\n'
    # Text is quoted, and structures are JSON.
    query = r"""SELECT 'a,"b|\' || chr(10) || 'c' AS text, NULL AS n, ['ü'] AS l, 1.5 AS x"""
    text = 'a,"b|\\\nc'
    assert list(csv.reader(io.StringIO(written(query, "csv")[0]))) == [
        ["text", "n", "l", "x"], [text, "", '["ü"]', "1.5"],
    ]  # fmt: skip
    head = "| text | n | l | x |\n| --- | --- | --- | --- |\n"
    assert written(query, "markdown")[0] == head + '| a,"b\\|\\\\ c |  | ["ü"] | 1.5 |\n'
    written(query, "parquet", tmp_path / "f")
    found = pl.read_parquet(tmp_path / "f").to_dicts()
    assert found == [{"text": text, "n": None, "l": ["ü"], "x": 1.5}]
    # Parquet has no intervals and no unions.
    written("SELECT INTERVAL 1 MONTH AS i, union_value(a := 1) AS u", "parquet", tmp_path / "f")
    assert pl.read_parquet(tmp_path / "f").rows() == [("1 month", "1")]


#: Texts of two rows and of none, by format.
TEXTS = {
    "table": ("a\n─\n1\n2\n", "a\n─\n"),
    "csv": ("a\n1\n2\n", "a\n"),
    "json": ('[\n{"a": 1},\n{"a": 2}\n]\n', "[]\n"),
    "jsonl": ('{"a": 1}\n{"a": 2}\n', ""),
    "markdown": ("| a |\n| --- |\n| 1 |\n| 2 |\n", "| a |\n| --- |\n"),
}


def test_omitted_rows_are_reported(written, tmp_path):
    omitted = "only the first 2 rows are shown; use --limit 0 for all\n"
    for rows, note in [("[1, 2, 3]", omitted), ("[1, 2]", "")]:
        query = f"SELECT unnest({rows}) AS a"
        for name, (text, _) in TEXTS.items():
            assert written(query, name, limit=2) == (text, note)
        assert written(query, "parquet", tmp_path / "x.parquet", limit=2) == ("", note)
        assert pl.read_parquet(tmp_path / "x.parquet").rows() == [(1,), (2,)]
    for name, (_, text) in TEXTS.items():
        note = "(0 rows)\n" if name == "table" else ""
        assert written("SELECT 1 AS a WHERE false", name) == (text, note)
    # The limit respects the order.
    query = "SELECT range AS a FROM range(100_000) ORDER BY a DESC"
    assert written(query, "csv", limit=2)[0] == "a\n99999\n99998\n"


def test_a_row_too_wide_for_the_terminal_has_one_column_per_line(written, terminal):
    query = "SELECT repeat('x', 300) AS one, 2 AS number"

    assert "x" * 300 + "       2" in written(query, "table")[0]  # a pipe has no width
    assert terminal(query, "table").splitlines() == [
        "── row 1 ────────────────────",
        "one     " + "x" * 300,
        "number  2",
    ]


def test_control_characters(written, terminal):
    """Text for a terminal contains none; tables and Markdown never contain any."""
    query = "SELECT 'a' || chr(27) || '[2J' || chr(155) || chr(8238) || chr(10) || 'b' AS x"
    for name in TEXTS:
        piped, _ = written(query, name)
        assert not {"\x1b", "\x9b", "\u202e"} & set(terminal(query, name)), name
        assert ("\x1b" in piped) == (name == "csv")
        assert ("a␛[2J⟨U+009B⟩⟨U+202E⟩ b" in piped) == (name in ("table", "markdown"))
        assert ("\\u001b[2J" in piped) == (name in ("json", "jsonl"))


def test_a_file_is_replaced_when_it_is_complete(monkeypatch, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("older")
    monkeypatch.setattr(formats, "_text", Mock(side_effect=["1", KeyboardInterrupt]))

    with pytest.raises(KeyboardInterrupt):
        write("SELECT unnest([1, 2]) AS a", "csv", path)

    assert [file.read_text() for file in tmp_path.iterdir()] == ["older"]


def test_the_file_is_checked_before_the_trace_is_read(analyze, write_trace, tmp_path):
    for output, message in [("no/x.csv", "create it, or name another"), (".", "is a folder")]:
        code, _, err = analyze("sql", "missing.jsonl", "FROM run", "-o", tmp_path / output)
        assert (code, message in err) == (2, True)
    words = ["sql", write_trace(), "SELECT 1 AS a", "--format", "csv"]
    for output in "-", "/dev/stdout":
        assert analyze(*words, "-o", output) == (0, "a\n1\n", "")


def test_files_that_cannot_be_written(tmp_path):
    for name in ("csv", "parquet"):
        with pytest.raises(NotWritable, match="cannot write"):
            write("SELECT 1 AS a", name, tmp_path / "no" / "folder")
    with pytest.raises(NotWritable, match="cannot be written to stdout: use -o FILE"):
        write("SELECT 1 AS a", "parquet")
