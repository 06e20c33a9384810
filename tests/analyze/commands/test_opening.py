"""Traces from standard input."""

import io
import sys

import pytest

from roast_analyze.cli import main


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", "what came from stdin is empty; name a trace that roast recorded"),
        (b"hello\n", "what came from stdin is no trace: no line of it is a record; "),
    ],
)
def test_what_is_wrong_with_standard_input_names_no_file(monkeypatch, capsys, given, said):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))

    assert main(["sql", "-", "FROM run"]) == 2
    assert f"roast-analyze: {said}" in capsys.readouterr().err


def test_a_trace_from_standard_input(monkeypatch, capsys, lines, task):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(task("a")))))

    assert main(["sql", "-", "SELECT key FROM tasks", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "key\na\n"
