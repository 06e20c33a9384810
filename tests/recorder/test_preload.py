"""Dask's scheduler preload: every scheduler is recorded, or the log contains the reason."""

import asyncio
import signal
import time

import dask
import pytest
from distributed import Client, Scheduler

from roast_recorder import preload
from roast_recorder.scheduler.plugin import RecorderPlugin
from roast_recorder.writer import client

pytestmark = pytest.mark.cluster


def test_a_folder_for_each_scheduler(tmp_path, start_scheduler, read_lines, monkeypatch):
    monkeypatch.setenv("DASK_ROAST__RECORDER__DIRECTORY", str(tmp_path))
    monkeypatch.setenv("DASK_ROAST__RECORDER__KINDS", "['task', 'transition']")
    monkeypatch.setenv("DASK_ROAST__RECORDER__SEGMENT_LIMIT_BYTES", "5_000")
    monkeypatch.setenv("DASK_ROAST__RECORDER__FLUSH_INTERVAL_SECONDS", "0.1")
    for workers in (1, 0):
        process, address = start_scheduler(
            "--preload", "roast_recorder.preload", workers=workers, bare=False
        )
        with Client(address) as client:
            for _ in range(3 * workers):
                client.gather(client.map(abs, range(100), pure=False))
                time.sleep(0.3)
        process.terminate()
        process.wait(30)

    worked, idle = sorted(
        (path.parent for path in tmp_path.glob("*/000001.jsonl.zst")),
        key=lambda folder: -len(list(folder.iterdir())),
    )
    assert [path.name for path in idle.iterdir()] == ["000001.jsonl.zst"]
    assert worked.stat().st_mode & 0o777 == 0o700
    segments = [read_lines(path) for path in sorted(worked.iterdir())]
    assert [lines[0]["segment"] for lines in segments] == [*range(1, len(segments) + 1)]
    assert len(segments) >= 2
    kinds = [line["kind"] for lines in segments for line in lines]
    assert {"worker_sample", "event", "environment"}.isdisjoint(kinds)
    assert kinds.count("task") == 300


def test_a_scheduler_that_is_cancelled_while_it_starts_leaves_no_folder(tmp_path, monkeypatch):
    opened = []

    async def cancelled(*_):
        opened.extend(tmp_path.glob("*/*"))
        raise asyncio.CancelledError

    async def start():
        async with Scheduler(dashboard_address=":0", port=0) as scheduler:
            await asyncio.gather(preload.dask_setup(scheduler), return_exceptions=True)

    monkeypatch.setattr(RecorderPlugin, "start", cancelled)
    with dask.config.set({"roast.recorder.directory": str(tmp_path)}):
        asyncio.run(start())
    assert opened

    until = time.monotonic() + 20
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)  # the writing process ends on its own
    assert not list(tmp_path.iterdir())


def test_the_end_is_logged_once(tmp_path, caplog):
    async def start_and_close():
        async with Scheduler(dashboard_address=":0", port=0) as scheduler:
            await preload.dask_setup(scheduler)
        await asyncio.sleep(0.1)  # the event loop of a scheduler's process runs on a little

    caplog.set_level("INFO", "roast_recorder")
    with dask.config.set({"roast.recorder.directory": str(tmp_path)}):
        asyncio.run(start_and_close())

    [line] = [line for line in caplog.messages if "records in" in line]
    assert line.endswith("0 records were dropped; the scheduler closed")


def test_a_scheduler_runs_although_it_cannot_be_recorded(caplog, tmp_path):
    async def log_of_a_scheduler():
        caplog.clear()
        async with Scheduler(dashboard_address=":0", port=0) as scheduler:
            await preload.dask_setup(scheduler)
            assert not [name for name in scheduler.plugins if "roast" in str(name)]
        return caplog.text

    for settings, message in [
        ({}, "roast.recorder.directory is not set: name a folder"),
        ({"directory": "/no"}, "invalid roast.recorder.directory='/no': use an existing"),
        ({"directory": "~nouser/x"}, "invalid roast.recorder.directory='~nouser/x': use"),
        ({"directory": "/proc"}, "cannot write '/proc/"),
        (
            {"directory": str(tmp_path), "flush_interval_seconds": -1},
            "flush_interval_seconds=-1",
        ),
        ({"directory": str(tmp_path), "color": "red"}, "roast.recorder.color"),
    ]:
        with dask.config.set({"roast.recorder": settings}):
            log = asyncio.run(log_of_a_scheduler())
        [line] = [line for line in log.splitlines() if "is not recorded" in line]
        assert message in line


def test_a_scheduler_starts_although_the_disk_hangs(tmp_path, monkeypatch, caplog):
    """The scheduler waits for the writing process, and then runs without being recorded."""
    processes, spawn = [], client._spawn

    def spawn_stopped():
        processes.append(spawn())
        processes[0][0].send_signal(signal.SIGSTOP)
        return processes[0]

    async def log_of_a_scheduler():
        async with Scheduler(dashboard_address=":0", port=0) as scheduler:
            await preload.dask_setup(scheduler)
            assert not [name for name in scheduler.plugins if "roast" in str(name)]

    monkeypatch.setattr(client, "_spawn", spawn_stopped)
    monkeypatch.setattr(client, "OPEN_TIMEOUT_SECONDS", 0.2)
    with dask.config.set({"roast.recorder.directory": str(tmp_path)}):
        asyncio.run(log_of_a_scheduler())

    [line] = [line for line in caplog.messages if "roast" in line]
    assert line.startswith("roast: this scheduler is not recorded: ")
    assert "could not be opened within 0.2 s: check its disk" in line
    assert processes[0][0].wait(10) == -signal.SIGKILL
