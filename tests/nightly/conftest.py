"""Fixtures of the browser tests, and those that write small traces."""

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

__all__ = [
    "chunk_fixture",
    "coffea_trace",
    "lines_fixture",
    "move_fixture",
    "open_page",
    "open_trace",
    "report",
    "run_fixture",
    "task_fixture",
    "worker_fixture",
    "write_trace",
]
