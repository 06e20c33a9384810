"""Dask's scheduler preload: every scheduler is recorded, or the log contains the reason."""

import asyncio
import time

import dask
import pytest
from distributed import Client, Scheduler

from roast_recorder import preload

pytestmark = pytest.mark.cluster


def kinds(lines):
    return [line["kind"] for line in lines]


def test_a_folder_for_each_scheduler(tmp_path, start_scheduler, read_lines, monkeypatch):
    monkeypatch.setenv("DASK_ROAST__RECORDER__DIRECTORY", str(tmp_path))
    monkeypatch.setenv("DASK_ROAST__RECORDER__KINDS", "['task', 'transition']")
    monkeypatch.setenv("DASK_ROAST__RECORDER__SEGMENT_LIMIT_BYTES", "20_000")
    for _ in range(2):
        process, address = start_scheduler(
            "--preload", "roast_recorder.preload", workers=1, bare=False
        )
        with Client(address) as client:
            client.wait_for_workers(1, timeout=60)
            for _ in range(3):
                client.gather(client.map(abs, range(300), pure=False))
                time.sleep(0.7)
        process.terminate()
        process.wait(30)

    folders = sorted(path.parent for path in tmp_path.glob("*/000001.jsonl.zst"))
    assert len(folders) == 2
    for folder in folders:
        segments = sorted(folder.glob("*.jsonl.zst"))
        assert len(segments) >= 2
        assert [read_lines(segment)[0]["segment"] for segment in segments] == list(
            range(1, len(segments) + 1)
        )
        lines = [line for segment in segments for line in read_lines(segment)]
        assert {"worker_sample", "event", "environment"}.isdisjoint(kinds(lines))
        assert kinds(lines).count("task") == 900
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_scheduler_runs_although_it_cannot_be_recorded(caplog):
    async def log_of_a_scheduler():
        caplog.clear()
        async with Scheduler(dashboard_address=":0", port=0) as scheduler:
            await preload.dask_setup(scheduler)
            assert not [name for name in scheduler.plugins if "roast" in str(name)]
        return caplog.text

    for settings, message in [
        ({}, "roast.recorder.directory is not set: name a folder"),
        (
            {"directory": "/nowhere"},
            "invalid roast.recorder.directory='/nowhere': use an exist",
        ),
        ({"directory": "/tmp", "flush_interval_seconds": -1}, "flush_interval_seconds=-1"),
        ({"directory": "/tmp", "color": "red"}, "roast.recorder.color"),
    ]:
        with dask.config.set({"roast.recorder": settings}):
            log = asyncio.run(log_of_a_scheduler())
        [line] = [line for line in log.splitlines() if "is not recorded" in line]
        assert message in line
