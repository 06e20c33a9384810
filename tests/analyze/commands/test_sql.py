"""The command ``sql``: queries, parameters, formats and errors."""

import io
import json
import sys

import polars as pl
import pytest


@pytest.fixture
def sql(analyze, write_trace, task):
    """Run ``sql`` on a trace of one task; return the exit code, the output and the errors."""
    path = write_trace(task("a"))
    return lambda *words: analyze("sql", path, *words)


@pytest.fixture
def stdin(monkeypatch):
    """Replace standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_a_query(analyze, write_trace, run):
    path = write_trace(*run("a", 1.0, 3.0), *run("b", 2.0, 3.0))
    query = "SELECT key, compute_seconds FROM task_runs ORDER BY key"

    expected = (
        "key  compute_seconds\n"
        "───  ───────────────\n"
        "a                2.0\n"
        "b                1.0\n"
    )  # fmt: skip
    assert analyze("sql", path, query) == (0, expected, "")
    # Options can be anywhere.
    query = "SELECT key FROM task_runs WHERE compute_seconds > $least AND key <> $not"
    words = ["-p", "least=0.5", path, "--parameter", "$not=b", query, "--format", "csv"]
    assert analyze("sql", *words) == (0, "key\na\n", "")


def test_the_suffix_of_the_file_determines_the_format(sql, tmp_path):
    for name, text in [
        ("x.csv", "key\na\n"),
        ("x.json", '[\n{"key": "a"}\n]\n'),
        ("x.jsonl", '{"key": "a"}\n'),
        ("x.md", "| key |\n| --- |\n| a |\n"),
        ("x.txt", "key\n───\na\n"),
    ]:
        assert sql("SELECT key FROM tasks", "-o", tmp_path / name) == (0, "", "")
        assert (tmp_path / name).read_text() == text
    assert sql("SELECT key FROM tasks", "-o", tmp_path / "x.parquet") == (0, "", "")
    assert pl.read_parquet(tmp_path / "x.parquet").rows() == [("a",)]
    # An explicit format overrides the suffix, and a failed query keeps the file.
    sql("SELECT 1 AS a", "--format", "jsonl", "-o", tmp_path / "x.csv")
    assert sql("SELECT error('late')", "-o", tmp_path / "x.csv")[0] == 2
    assert (tmp_path / "x.csv").read_text() == '{"a": 1}\n'


def test_a_query_from_a_file_or_stdin(sql, tmp_path, stdin):
    file = tmp_path / "q.sql"
    file.write_bytes("\ufeff-- What?\nSELECT 'é' AS a;\n".encode())

    for words in (["-f", file], ["--file", file], ["-"], ["-f", "-"]):
        stdin("SELECT 'é' AS a".encode())
        assert sql(*words, "--format", "csv") == (0, "a\né\n", "")


def test_invalid_calls(sql, analyze, tmp_path, stdin):
    """Parameters that do not match the query are tested in test_session."""
    (tmp_path / "q.sql").write_bytes(b"\xff")
    (tmp_path / "ok.sql").write_text("SELECT 1")
    stdin(b"\xff")

    for words, message in [
        ([], "expected TRACE… QUERY, got one argument: pass the query last"),
        (["-f", tmp_path / "q.sql"], "q.sql' is not UTF-8: save it as UTF-8"),
        (["SELECT 1", "-f", tmp_path / "ok.sql"], "'SELECT 1' does not exist: name a trace"),
        (["-f", tmp_path], f"cannot read the query '{tmp_path}': Is a directory"),
        (["-"], "the query in stdin is not UTF-8"),
        (["SELECT $a", "-p", "a"], "invalid parameter 'a': use NAME=VALUE, such as -p worker"),
        (["SELECT $a", "-p", "=1"], "invalid parameter '=1': use NAME=VALUE"),
        (["SELECT $a", "-p", "a=1", "-p", "a=2"], "$a has two values: pass one"),
        (["-f", tmp_path / "ok.sql", "-o", tmp_path / "ok.sql"], "is the file of the query"),
        (["FROM duckdb_secrets()"], "reading secrets is not allowed: "),
    ]:
        code, _, err = sql(*words)
        assert (code, message in err) == (2, True), err
    assert "the trace is read from stdin" in analyze("sql", "-", "-")[2]


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
]
TEXTS = [
    "w1", "", "a=b", "True", "007", "nan", "NaN", "-Infinity", '{"a": 1}', "[" * 100_000,
    "('x', 0)", "'; DROP VIEW tasks; --",
]  # fmt: skip


def test_a_value_is_json_or_else_text(sql):
    values = [*VALUES, *((text, "VARCHAR", text) for text in TEXTS)]
    columns = (f"[typeof($v{i})] AS t{i}, $v{i} AS v{i}" for i in range(len(values)))
    words = [word for i, (text, *_) in enumerate(values) for word in ("-p", f"v{i}={text}")]

    code, out, _ = sql(f"SELECT {', '.join(columns)}", *words, "--format", "json")

    assert code == 0
    [found] = json.loads(out)
    for i, (text, type_, value) in enumerate(values):
        assert ([type_], value) == (found[f"t{i}"], found[f"v{i}"]), text[:20]


def test_limits_of_rows(sql):
    for options, lines, limit in [
        ([], 1002, 1000),
        (["--limit", "0"], 1502, None),
        (["--limit", "7"], 9, 7),
        (["--format", "csv"], 1501, None),
        (["--format", "csv", "--limit", "7"], 8, 7),
    ]:
        code, out, err = sql("SELECT range AS a FROM range(1500)", *options)
        note = f"only the first {limit} rows are shown; use --limit 0 for all\n"
        assert (code, len(out.splitlines()), err) == (0, lines, note if limit else "")


def test_an_error_while_rows_are_written_shows_the_place(sql):
    code, _, err = sql("SELECT count(*) AS n,\n  any_value(key)::INTEGER AS i\nFROM tasks")

    first, _, quoted = err.partition("\n")
    place = "roast-analyze: line 2, column 17: Conversion Error: Could not convert string 'a'"
    assert (code, first[: len(place)]) == (2, place)
    assert quoted == "    any_value(key)::INTEGER AS i\n                  ^\n"


def test_unsafe_queries_and_views_of_the_user(sql, tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("prefix,owner\na,Ada\n")
    query = f"FROM tasks JOIN '{tmp_path}/x.csv' USING (prefix) SELECT key, owner"
    assert sql("--unsafe", query, "--format", "csv") == (0, "key,owner\na,Ada\n", "")

    (tmp_path / "keys.sql").write_text("SELECT key FROM tasks")
    words = ["--format", "csv", "--views", tmp_path]
    assert sql("FROM keys", *words) == (0, "key\na\n", "")
    # A broken view is an error only in a folder that is named.
    (tmp_path / "keys.sql").write_text("SELECT kye FROM tasks")
    monkeypatch.setenv("ROAST_VIEWS", str(tmp_path))
    message = f"'{tmp_path}/keys.sql': line 1, column 8: Binder Error: "
    code, out, err = sql("SELECT 1 AS a", *words[:2])
    assert (code, out) == (0, "a\n1\n")
    assert err.startswith(f"roast-analyze: skipped: {message}")
    code, _, err = sql("SELECT 1 AS a", *words)
    assert code == 2
    assert err.startswith(f"roast-analyze: {message}")
