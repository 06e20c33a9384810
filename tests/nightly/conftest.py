"""Fixtures of the browser tests, of recorded schedulers, and those that write small traces."""

from analyze.conftest import (
    chunk_fixture,
    lines_fixture,
    move_fixture,
    open_trace,
    run_fixture,
    task_fixture,
    worker_fixture,
    write_trace,
)
from browser.conftest import coffea_trace, open_page, report
from recorder.test_endings import logged, start_logged

__all__ = [
    "chunk_fixture",
    "coffea_trace",
    "lines_fixture",
    "logged",
    "move_fixture",
    "open_page",
    "open_trace",
    "report",
    "run_fixture",
    "start_logged",
    "task_fixture",
    "worker_fixture",
    "write_trace",
]
