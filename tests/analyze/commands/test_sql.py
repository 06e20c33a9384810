"""The command ``sql``: queries, parameters, formats and errors."""

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


def test_the_suffix_of_the_file_determines_the_format(tmp_path, write_trace, task):
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


def test_an_explicit_format_overrides_the_suffix(tmp_path, write_trace):
    output = tmp_path / "x.csv"

    main(["sql", str(write_trace()), "SELECT 1 AS a", "--format", "jsonl", "-o", str(output)])

    assert output.read_text() == '{"a": 1}\n'


def test_a_failed_query_keeps_an_existing_file(tmp_path, write_trace):
    output = tmp_path / "x.csv"
    output.write_text("precious")

    for query in ("SELECT nothing", "SELECT error('late')"):
        assert main(["sql", str(write_trace()), query, "-o", str(output)]) == 2

    assert output.read_text() == "precious"


# -- sources of the query ------------------------------------------------------------------


@pytest.fixture
def stdin(monkeypatch):
    """Replace standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_a_query_in_a_file(capsys, tmp_path, write_trace):
    (tmp_path / "q.sql").write_bytes("\ufeff-- What?\nSELECT 'é' AS a;\n".encode())

    for option in ("-f", "--file"):
        code = main(
            ["sql", str(write_trace()), option, str(tmp_path / "q.sql"), "--format", "csv"]
        )
        assert (code, capsys.readouterr().out) == (0, "a\né\n")


@pytest.mark.parametrize("words", [["-"], ["-f", "-"]])
def test_a_query_from_stdin(capsys, stdin, write_trace, words):
    stdin("SELECT 'é' AS a".encode())

    assert main(["sql", str(write_trace()), *words, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a\né\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected TRACE… QUERY, got one argument: pass the query last"),
        (["-f", "{folder}/q.sql"], "q.sql' is not UTF-8: save it as UTF-8"),
        (["SELECT 1", "-f", "{folder}/ok.sql"], "'SELECT 1' does not exist: name a trace"),
        (["-f", "{folder}"], "cannot read the query '{folder}': Is a directory"),
        (["-f", "nowhere.sql"], "cannot read the query 'nowhere.sql': No such file"),
        (["-"], "the query in stdin is not UTF-8"),
    ],
)
def test_missing_and_unreadable_queries(capsys, tmp_path, stdin, write_trace, words, message):
    (tmp_path / "q.sql").write_bytes(b"\xff")
    (tmp_path / "ok.sql").write_text("SELECT 1")
    stdin(b"\xff")

    assert main(["sql", str(write_trace()), *(w.format(folder=tmp_path) for w in words)]) == 2
    assert message.format(folder=tmp_path) in capsys.readouterr().err


def test_trace_and_query_cannot_both_come_from_stdin(capsys):
    assert main(["sql", "-", "-"]) == 2
    assert "the trace is read from stdin" in capsys.readouterr().err


# -- parameters --------------------------------------------------------------------------


VALUES = [
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
]


def test_a_value_is_json_or_else_text(capsys, write_trace):
    path = str(write_trace())
    query = "SELECT typeof($v) AS type, $v AS value"
    for value, type_, expected in VALUES:
        assert main(["sql", path, query, "-p", f"v={value}", "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found == [{"type": type_, "value": expected}], value[:20]


def test_options_can_stand_anywhere(capsys, write_trace, run):
    path = str(write_trace(*run("a", 1.0, 3.0), *run("b", 1.0, 2.0)))
    query = "SELECT key FROM task_runs WHERE compute_seconds > $least AND key <> $not"

    words = ["-p", "least=0.5", path, "--parameter", "$not=b", query, "--format", "csv"]
    assert main(["sql", *words]) == 0
    assert capsys.readouterr().out == "key\na\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-p", "a"], "invalid parameter 'a': use NAME=VALUE, such as -p worker=w1"),
        (["-p", "=1"], "invalid parameter '=1': use NAME=VALUE"),
        (["-p", "a=1", "-p", "a=2"], "$a has two values: pass one"),
        (["-p", "b=1"], "no value for $a in the query; pass it with -p NAME=VALUE"),
        (["-p", "a=1", "-p", "b=1"], "$b is not a parameter of the query; it has $a"),
    ],
)
def test_invalid_parameters(capsys, write_trace, words, message):
    assert main(["sql", str(write_trace()), "SELECT $a", *words]) == 2
    assert message in capsys.readouterr().err


# -- rows and errors -------------------------------------------------------------


def test_limits_of_rows(capsys, write_trace):
    words = ["sql", str(write_trace()), "SELECT range AS a FROM range(1500)"]

    for options, lines, said in [
        ([], 1002, "only the first 1000 rows are shown; use --limit 0 for all\n"),
        (["--limit", "0"], 1502, ""),
        (["--limit", "7"], 9, "only the first 7 rows are shown; use --limit 0 for all\n"),
        (["--format", "csv"], 1501, ""),
        (
            ["--format", "csv", "--limit", "7"],
            8,
            "only the first 7 rows are shown; use --limit 0 for all\n",
        ),
    ]:
        assert main([*words, *options]) == 0
        captured = capsys.readouterr()
        assert (len(captured.out.splitlines()), captured.err) == (lines, said)


@pytest.mark.parametrize(
    ("query", "message", "quoted"),
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
def test_an_error_shows_the_place(capsys, write_trace, task, query, message, quoted):
    assert main(["sql", str(write_trace(task("a"))), query]) == 2

    first, _, rest = capsys.readouterr().err.partition("\n")
    assert first.startswith(f"roast-analyze: {message}")
    assert rest == quoted


@pytest.mark.parametrize(
    ("query", "action"),
    [
        ("FROM '{folder}/x.csv'", "opening '{folder}/x.csv'"),
        ("COPY tasks TO '{folder}/y.csv'", "COPY"),
        ("LOAD httpfs", "LOAD"),
        ("FROM 'http://127.0.0.1:9/x.csv'", "opening 'http://127.0.0.1:9/x.csv'"),
        ("FROM duckdb_secrets()", "reading secrets"),
    ],
)
def test_an_unsafe_query_names_the_option(capsys, tmp_path, write_trace, query, action):
    assert main(["sql", str(write_trace()), query.format(folder=tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"roast-analyze: {action.format(folder=tmp_path)} is not allowed: a query may only "
        "read the trace; use --unsafe, or Trace(…, unsafe=True) in Python, to allow it\n"
    )
    assert not (tmp_path / "y.csv").exists()


def test_the_option_unsafe(capsys, tmp_path, write_trace, task):
    (tmp_path / "owners.csv").write_text("prefix,owner\na,Ada\n")
    query = f"FROM tasks JOIN '{tmp_path}/owners.csv' USING (prefix) SELECT key, owner"
    path = str(write_trace(task("a-1"), task("b-1")))

    assert main(["sql", "--unsafe", path, query, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "key,owner\na-1,Ada\n"
    assert main(["sql", "--unsafe", path, f"COPY ({query}) TO '{tmp_path}/y.csv'"]) == 0
    assert (tmp_path / "y.csv").read_text() == "key,owner\na-1,Ada\n"


# -- the user's own views ----------------------------------------------------------------


def test_user_views(capsys, tmp_path, write_trace, task):
    (tmp_path / "keys.sql").write_text("SELECT key FROM tasks")

    words = ["--views", str(tmp_path), "--format", "csv"]
    assert main(["sql", str(write_trace(task("a"))), "FROM keys", *words]) == 0
    assert capsys.readouterr().out == "key\na\n"


def test_a_broken_user_view_is_an_error_only_in_a_named_folder(
    capsys, tmp_path, monkeypatch, write_trace
):
    (tmp_path / "keys.sql").write_text("SELECT kye FROM tasks")
    monkeypatch.setenv("ROAST_VIEWS", str(tmp_path))
    words = ["sql", str(write_trace()), "SELECT 1 AS a", "--format", "csv"]
    said = f"'{tmp_path}/keys.sql': line 1, column 8: Binder Error: "

    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.out == "a\n1\n"
    assert captured.err.startswith(f"roast-analyze: skipped: {said}")
    assert main([*words, "--views", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"roast-analyze: {said}")
