"""A sign of life while a trace is read."""

import io
import time

from roast_analyze.commands import opening


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
