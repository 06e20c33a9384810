"""A sign of life while somebody waits."""

import io
import time

from roast_analyze.commands import progress as waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_wait_is_explained_where_somebody_sees_it(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0.0)

    with waiting.progress("\x1b[31mx", "reading"):
        until = time.monotonic() + 10
        while "reading" not in terminal.getvalue() and time.monotonic() < until:
            time.sleep(0.01)

    assert "␛[31mx: reading" in terminal.getvalue()


def test_how_far_it_has_come_is_shown_if_anybody_tells(monkeypatch):
    shown = {}
    for is_told in (True, False):
        monkeypatch.setattr("sys.stderr", terminal := Terminal())
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0.0)
        with waiting.progress("x", "making the report", is_told=is_told):
            until = time.monotonic() + 10
            while "report" not in terminal.getvalue() and time.monotonic() < until:
                time.sleep(0.01)
        shown[is_told] = "0%" in terminal.getvalue()

    assert shown == {True: True, False: False}


def test_a_short_wait_is_not_explained(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 60.0)

    with waiting.progress("x", "reading"):
        pass

    assert "reading" not in terminal.getvalue()


def test_nothing_is_written_where_nobody_sees_it(monkeypatch):
    monkeypatch.setattr("sys.stderr", file := io.StringIO())
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0.0)

    with waiting.progress("x", "reading"):
        time.sleep(0.05)

    assert file.getvalue() == ""
