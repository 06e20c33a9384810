"""Traces from standard input, and a sign of life while a trace is read."""

import io
import sys
import time

import pytest

from roast_analyze.cli import main
from roast_analyze.commands import opening


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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


def test_a_long_wait_is_explained_where_somebody_sees_it(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(opening, "PATIENCE_SECONDS", 0.0)

    with opening._progress("\x1b[31mx"):
        until = time.monotonic() + 10
        while "reading" not in terminal.getvalue() and time.monotonic() < until:
            time.sleep(0.01)

    assert "␛[31mx: reading" in terminal.getvalue()


def test_a_short_wait_is_not(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(opening, "PATIENCE_SECONDS", 60.0)

    with opening._progress("x"):
        pass

    assert "reading" not in terminal.getvalue()


def test_nothing_is_written_where_nobody_sees_it(monkeypatch):
    monkeypatch.setattr("sys.stderr", file := io.StringIO())
    monkeypatch.setattr(opening, "PATIENCE_SECONDS", 0.0)

    with opening._progress("x"):
        time.sleep(0.05)

    assert file.getvalue() == ""
