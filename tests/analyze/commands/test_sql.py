"""A query, answered in a format."""

import polars as pl

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
