"""The progress bar on stderr."""

import io
import time

from roast_analyze.commands import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def output(monkeypatch, stderr, delay_seconds, **options) -> str:
    """Return what is written during a block that lasts until the bar appears."""
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY_SECONDS", delay_seconds)
    with progress.progress("\x1b[31mx", "reading", **options):
        until = time.monotonic() + (10 if stderr.isatty() and not delay_seconds else 0.05)
        while "reading" not in stderr.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    return stderr.getvalue()


def test_a_bar_is_shown_only_for_a_long_wait_in_a_terminal(monkeypatch):
    measured = output(monkeypatch, Terminal(), 0.0)
    unmeasured = output(monkeypatch, Terminal(), 0.0, measured=False)

    assert "␛[31mx: reading" in measured
    assert ("0%" in measured, "0%" in unmeasured) == (True, False)
    assert "reading" not in output(monkeypatch, Terminal(), 60.0)
    assert output(monkeypatch, io.StringIO(), 0.0) == ""
