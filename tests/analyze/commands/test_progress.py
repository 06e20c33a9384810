"""The progress bar on stderr."""

import io
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from roast_analyze.commands import progress


@pytest.fixture
def replace_stderr(monkeypatch):
    """Return a function to call within a test, since pytest replaces stderr before the test."""

    def replace_stderr(*, is_terminal=True, delay_seconds=0.0):
        stderr = io.StringIO()
        stderr.isatty = lambda: is_terminal
        monkeypatch.setattr("sys.stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(progress, "DELAY_SECONDS", delay_seconds)
        return stderr

    return replace_stderr


def test_bars_of_several_threads_are_in_one_display(replace_stderr):
    stderr = replace_stderr()

    def wait(stage):
        with progress.progress("x", stage):
            until = time.monotonic() + 10
            while not all(s in stderr.getvalue() for s in ("reading", "sorting", "writing")):
                assert time.monotonic() < until
                time.sleep(0.01)

    with progress.progress("x", "writing"), ThreadPoolExecutor(2) as threads:
        list(threads.map(wait, ["reading", "sorting"]))
        [display] = progress._displays
        assert [task.description for task in display.tasks] == ["x: writing"]
    assert progress._displays == []


def test_a_bar_is_shown_only_for_a_long_wait_in_a_terminal(replace_stderr):
    def output(*, is_terminal=True, delay_seconds=0.0, **options) -> str:
        """Return what is written during a block that lasts until the bar appears."""
        stderr = replace_stderr(is_terminal=is_terminal, delay_seconds=delay_seconds)
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
