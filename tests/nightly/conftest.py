"""Fixtures of the browser tests, of recorded schedulers, and those that write small traces."""

from analyze.conftest import chunk, lines, move, open_trace, run, task, worker, write_trace
from browser.conftest import coffea_trace, open_page, report
from recorder.test_endings import logged

__all__ = [
    "chunk",
    "coffea_trace",
    "lines",
    "logged",
    "move",
    "open_page",
    "open_trace",
    "report",
    "run",
    "task",
    "worker",
    "write_trace",
]
