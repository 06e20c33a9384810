"""Ctrl-C ends what is orderly in order, and what is not anyway."""

import subprocess
import sys
import threading

import pytest

from roast_analyze.open import interrupt

STUBBORN = """
import os, signal, time
from roast_analyze.open import interrupt
interrupt.GRACE_SECONDS = 0.2
signal.signal(signal.SIGINT, lambda *_: None)
with interrupt.listening():
    os.kill(os.getpid(), {number})
    time.sleep({seconds})
print("done")
"""


@pytest.mark.parametrize(
    ("number", "seconds", "code", "out"),
    [("signal.SIGINT", 60, 130, ""), ("signal.SIGINT", 0, 0, "done\n")],
    ids=["outlives it", "ends in time"],
)
def test_a_process_that_does_not_look_up(number, seconds, code, out):
    script = STUBBORN.format(number=number, seconds=seconds)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50
    )

    assert (done.returncode, done.stdout, done.stderr) == (code, out, "")


def test_nothing_is_left_behind():
    before = threading.active_count()

    with interrupt.listening():
        assert threading.active_count() == before + 1

    assert threading.active_count() == before


def test_other_threads_may_use_it_too():
    done = []

    def work():
        with interrupt.listening():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
