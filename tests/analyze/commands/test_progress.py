"""The progress bar on stderr."""

import io
import time

from roast_analyze.commands import progress


def test_a_bar_is_shown_only_for_a_long_wait_in_a_terminal(monkeypatch):
    def output(*, is_terminal=True, delay_seconds=0.0, **options) -> str:
        """Return what is written during a block that lasts until the bar appears."""
        stderr = io.StringIO()
        stderr.isatty = lambda: is_terminal
        monkeypatch.setattr("sys.stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(progress, "DELAY_SECONDS", delay_seconds)
        with progress.progress("\x1b[31mx", "reading", **options):
            until = time.monotonic() + (10 if is_terminal and not delay_seconds else 0.05)
            while "reading" not in stderr.getvalue() and time.monotonic() < until:
                time.sleep(0.01)
        return stderr.getvalue()

    measured, unmeasured = output(), output(measured=False)
    assert "␛[31mx: reading" in measured
    assert ("0%" in measured, "0%" in unmeasured) == (True, False)
    assert "reading" not in output(delay_seconds=60.0)
    assert output(is_terminal=False) == ""
