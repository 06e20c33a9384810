"""A query, wherever it is, with its parameters, answered in a format."""

import io
import json
import sys

import polars as pl
import pytest

from roast_analyze.cli import main


def test_a_query(capsys, write_trace, run):
    path = write_trace(*run("a", 1.0, 3.0), *run("b", 2.0, 3.0))
    query = "SELECT key, compute_seconds FROM task_runs ORDER BY key"

    assert main(["sql", str(path), query]) == 0
    assert capsys.readouterr().out == (
        "key  compute_seconds\n"
        "───  ───────────────\n"
        "a                2.0\n"
        "b                1.0\n"
    )  # fmt: skip


def test_the_ending_of_the_file_tells_the_format(tmp_path, write_trace, task):
    path = write_trace(task("a"))

    for name in ("x.csv", "x.json", "x.jsonl", "x.md", "x.parquet", "x.txt"):
        output = str(tmp_path / name)
        assert main(["sql", str(path), "SELECT key FROM tasks", "-o", output]) == 0

    assert (tmp_path / "x.csv").read_text() == "key\na\n"
    assert (tmp_path / "x.json").read_text() == '[\n{"key": "a"}\n]\n'
    assert (tmp_path / "x.jsonl").read_text() == '{"key": "a"}\n'
    assert (tmp_path / "x.md").read_text() == "| key |\n| --- |\n| a |\n"
    assert pl.read_parquet(tmp_path / "x.parquet").rows() == [("a",)]
    assert (tmp_path / "x.txt").read_text() == "key\n───\na\n"


def test_a_format_that_is_asked_for_overrules_the_ending(tmp_path, write_trace):
    output = tmp_path / "x.csv"

    main(["sql", str(write_trace()), "SELECT 1 AS a", "--format", "jsonl", "-o", str(output)])

    assert output.read_text() == '{"a": 1}\n'


def test_a_query_that_fails_leaves_an_older_file_alone(tmp_path, write_trace):
    output = tmp_path / "x.csv"
    output.write_text("precious")

    for query in ("SELECT nothing", "SELECT error('late')"):
        assert main(["sql", str(write_trace()), query, "-o", str(output)]) == 2

    assert output.read_text() == "precious"


# -- where the query is ------------------------------------------------------------------


@pytest.fixture
def stdin(monkeypatch):
    """Let bytes be what is read from standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_a_query_in_a_file(capsys, tmp_path, write_trace):
    (tmp_path / "q.sql").write_bytes("\ufeff-- What?\nSELECT 'é' AS a;\n".encode())

    for option in ("-f", "--file"):
        code = main(
            ["sql", str(write_trace()), option, str(tmp_path / "q.sql"), "--format", "csv"]
        )
        assert (code, capsys.readouterr().out) == (0, "a\né\n")


@pytest.mark.parametrize("words", [["-"], ["-f", "-"]])
def test_a_query_from_standard_input(capsys, stdin, write_trace, words):
    stdin("SELECT 'é' AS a".encode())

    assert main(["sql", str(write_trace()), *words, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a\né\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no query is given: name one as QUERY, --file FILE, or - for stdin"),
        (["SELECT 1", "-f", "{folder}/q.sql"], "a query and --file, and only one can be given"),
        (["-f", "{folder}/q.sql"], "q.sql' is not UTF-8; save it as that"),
        (["-f", "{folder}"], "' cannot be read: Is a directory"),
        (["-f", "nowhere.sql"], "the query 'nowhere.sql' cannot be read: No such file"),
        (["-"], "the query in stdin is not UTF-8"),
    ],
)
def test_a_query_that_cannot_be_had(capsys, tmp_path, stdin, write_trace, words, said):
    (tmp_path / "q.sql").write_bytes(b"\xff")
    stdin(b"\xff")

    assert main(["sql", str(write_trace()), *(w.format(folder=tmp_path) for w in words)]) == 2
    assert said in capsys.readouterr().err


def test_two_things_cannot_come_from_standard_input(capsys):
    assert main(["sql", "-", "-"]) == 2
    assert "stdin is the trace already" in capsys.readouterr().err


# -- parameters --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "type_", "seen"),
    [
        ("12", "INTEGER", 12),
        ("-1", "INTEGER", -1),
        ("1.5", "DOUBLE", 1.5),
        ("1e3", "DOUBLE", 1000.0),
        ("10000000000", "BIGINT", 10000000000),
        ("true", "BOOLEAN", True),
        ("null", '"NULL"', None),
        ('["a", "b"]', "VARCHAR[]", ["a", "b"]),
        ('"12"', "VARCHAR", "12"),
        ("w1", "VARCHAR", "w1"),
        ("", "VARCHAR", ""),
        ("a=b", "VARCHAR", "a=b"),
        ("True", "VARCHAR", "True"),
        ("007", "VARCHAR", "007"),
        ("nan", "VARCHAR", "nan"),
        ("NaN", "VARCHAR", "NaN"),
        ("-Infinity", "VARCHAR", "-Infinity"),
        ('{"a": 1}', "VARCHAR", '{"a": 1}'),
        ("[" * 100_000, "VARCHAR", "[" * 100_000),
        ("('x', 0)", "VARCHAR", "('x', 0)"),
        ("'; DROP VIEW tasks; --", "VARCHAR", "'; DROP VIEW tasks; --"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_is_json_or_else_text(capsys, write_trace, value, type_, seen):
    query = "SELECT typeof($v) AS type, $v AS value"

    assert main(["sql", str(write_trace()), query, "-p", f"v={value}", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"type": type_, "value": seen}]


def test_parameters_anywhere_among_the_words(capsys, write_trace, run):
    path = str(write_trace(*run("a", 1.0, 3.0), *run("b", 1.0, 2.0)))
    query = "SELECT key FROM task_runs WHERE compute_seconds > $least AND key <> $not"

    words = ["-p", "least=0.5", path, "--parameter", "$not=b", query, "--format", "csv"]
    assert main(["sql", *words]) == 0
    assert capsys.readouterr().out == "key\na\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-p", "a"], "'a' is no parameter; write NAME=VALUE, as in -p worker=w1"),
        (["-p", "=1"], "'=1' is no parameter; write NAME=VALUE, as in -p worker=w1"),
        (["-p", "a=1", "-p", "a=2"], "two values are given for $a; one is enough"),
        (["-p", "b=1"], "no value is given for $a in the query; -p NAME=VALUE gives one"),
        (["-p", "a=1", "-p", "b=1"], "given for $b, not in the query; it has $a"),
    ],
)
def test_parameters_that_are_wrong(capsys, write_trace, words, said):
    assert main(["sql", str(write_trace()), "SELECT $a", *words]) == 2
    assert said in capsys.readouterr().err


# -- rows, errors, and trust -------------------------------------------------------------


def test_a_table_has_so_many_rows_and_other_formats_all(capsys, write_trace):
    words = ["sql", str(write_trace()), "SELECT range AS a FROM range(1500)"]

    for options, lines, said in [
        ([], 1002, "only the first 1000 rows; --limit 0 gives all\n"),
        (["--limit", "0"], 1502, ""),
        (["--limit", "7"], 9, "only the first 7 rows; --limit 0 gives all\n"),
        (["--format", "csv"], 1501, ""),
        (
            ["--format", "csv", "--limit", "7"],
            8,
            "only the first 7 rows; --limit 0 gives all\n",
        ),
    ]:
        assert main([*words, *options]) == 0
        captured = capsys.readouterr()
        assert (len(captured.out.splitlines()), captured.err) == (lines, said)


@pytest.mark.parametrize(
    ("query", "said", "drawn"),
    [
        (
            "SELECT key,\n  kye\nFROM tasks",
            "line 2, column 3: Binder Error: Referenced column",
            "    kye\n    ^\n",
        ),
        ("SELECT 1 AS a,\n  error('late') AS b", "Invalid Input Error: late", ""),
        (
            "SELECT count(*) AS n,\n  any_value(key)::INTEGER AS i\nFROM tasks",
            "line 2, column 17: Conversion Error: Could not convert string 'a' to INT32",
            "    any_value(key)::INTEGER AS i\n                  ^\n",
        ),
    ],
)
def test_an_error_points_at_the_place(capsys, write_trace, task, query, said, drawn):
    assert main(["sql", str(write_trace(task("a"))), query]) == 2

    first, _, rest = capsys.readouterr().err.partition("\n")
    assert first.startswith(f"roast-analyze: {said}")
    assert rest == drawn


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("FROM '{folder}/x.csv'", "opening '{folder}/x.csv'"),
        ("COPY tasks TO '{folder}/y.csv'", "COPY"),
        ("LOAD httpfs", "LOAD"),
        ("FROM 'http://127.0.0.1:9/x.csv'", "opening 'http://127.0.0.1:9/x.csv'"),
        ("FROM duckdb_secrets()", "reading secrets"),
    ],
)
def test_a_query_that_wants_more_is_told_what_allows_it(
    capsys, tmp_path, write_trace, query, wanted
):
    assert main(["sql", str(write_trace()), query.format(folder=tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"roast-analyze: {wanted.format(folder=tmp_path)} is not allowed: a query reads the "
        "trace and nothing else; --unsafe allows it, or Trace(…, unsafe=True) in Python\n"
    )
    assert not (tmp_path / "y.csv").exists()


def test_a_query_that_is_trusted(capsys, tmp_path, write_trace, task):
    (tmp_path / "owners.csv").write_text("prefix,owner\na,Ada\n")
    query = f"FROM tasks JOIN '{tmp_path}/owners.csv' USING (prefix) SELECT key, owner"
    path = str(write_trace(task("a-1"), task("b-1")))

    assert main(["sql", "--unsafe", path, query, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "key,owner\na-1,Ada\n"
    assert main(["sql", "--unsafe", path, f"COPY ({query}) TO '{tmp_path}/y.csv'"]) == 0
    assert (tmp_path / "y.csv").read_text() == "key,owner\na-1,Ada\n"


# -- the user's own views ----------------------------------------------------------------


def test_views_of_the_users_own(capsys, tmp_path, write_trace, task):
    (tmp_path / "keys.sql").write_text("SELECT key FROM tasks")

    words = ["--views", str(tmp_path), "--format", "csv"]
    assert main(["sql", str(write_trace(task("a"))), "FROM keys", *words]) == 0
    assert capsys.readouterr().out == "key\na\n"


def test_one_that_is_broken_is_an_error_only_if_its_folder_was_named(
    capsys, tmp_path, monkeypatch, write_trace
):
    (tmp_path / "keys.sql").write_text("SELECT kye FROM tasks")
    monkeypatch.setenv("ROAST_VIEWS", str(tmp_path))
    words = ["sql", str(write_trace()), "SELECT 1 AS a", "--format", "csv"]
    said = f"'{tmp_path}/keys.sql': line 1, column 8: Binder Error: "

    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.out == "a\n1\n"
    assert captured.err.startswith(f"roast-analyze: left out: {said}")
    assert main([*words, "--views", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"roast-analyze: {said}")
