"""Ctrl-C while the process does not respond."""

import subprocess
import sys
import threading

import pytest

from roast_analyze.open.interrupt import exit_on_interrupt

UNRESPONSIVE = """
import os, signal, time
from roast_analyze.open import interrupt
interrupt.GRACE_SECONDS = 0.2
signal.signal(signal.SIGINT, lambda *_: None)
with interrupt.exit_on_interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep({seconds})
print("done")
"""


@pytest.mark.parametrize(("seconds", "code", "out"), [(60, 130, ""), (0, 0, "done\n")])
def test_a_process_is_ended_only_after_the_grace_period(seconds, code, out):
    done = subprocess.run(
        [sys.executable, "-c", UNRESPONSIVE.format(seconds=seconds)],
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert (done.returncode, done.stdout, done.stderr) == (code, out, "")


def watchers():
    return [thread for thread in threading.enumerate() if thread.name == "roast-interrupt"]


def test_the_watching_thread_ends_with_the_block():
    with exit_on_interrupt():
        assert len(watchers()) == 1
    assert watchers() == []


def test_a_thread_that_cannot_handle_signals_is_not_watched():
    found = []

    def work():
        with exit_on_interrupt():
            found.append(watchers())

    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert found == [[]]
