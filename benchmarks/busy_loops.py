"""Processes that use as much of the cores as they get."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Run a number of busy loops, and end them."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
