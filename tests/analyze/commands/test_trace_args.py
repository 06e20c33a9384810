"""Traces from standard input, time ranges, and several traces."""

import io
import sys

import pytest

from roast_analyze.cli import main


@pytest.fixture
def stdin(monkeypatch):
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_a_trace_from_stdin(stdin, capsys, lines, task):
    stdin(lines(task("a")))

    assert main(["sql", "-", "SELECT key FROM tasks", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "key\na\n"
    for content, message in [(b"", "is empty"), (b"hello\n", "contains no records")]:
        stdin(content)
        assert main(["sql", "-", "FROM run"]) == 2
        assert capsys.readouterr().err.startswith(f"roast-analyze: standard input {message}: ")


def test_time_ranges_of_commands(capsys, write_trace, worker, task, run):
    path = str(write_trace(worker("w1"), task("a-1"), *run("a-1", 10.0, 30.0)))
    query = "SELECT compute_seconds FROM run"

    # A time before the end looks like an option.
    assert main(["sql", path, query, "--from", "-80", "--to", "1970-01-01T00:00:25"]) == 0
    assert "5.0" in capsys.readouterr().out.split()
    assert main(["view", path, "transitions", "--to=20s", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    for words in (["sql", path, query], [path], ["export", path, "--perfetto", "-"]):
        assert main([*words, "--from", "noon"]) == 2
        assert "invalid time 'noon': use seconds (90), 5m" in capsys.readouterr().err


def test_several_traces_are_identified_by_trace_id(capsys, write_trace, task):
    paths = [str(write_trace(task(n), name=f"{n}.jsonl", trace_id=n)) for n in ("a", "b")]

    assert main(["sql", *paths, "SELECT trace_id, key FROM tasks", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "trace_id,key\na,a\nb,b\n"
    assert main(["view", *paths, "tasks", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
