"""Health of recordings: Dask's /metrics, notes of the preload, and ``roast-record status``."""

import contextlib
import json
import resource
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from distributed import Client

from roast_recorder.cli import main

pytestmark = pytest.mark.cluster

#: Within this time, metrics and status must report a problem.
SECONDS = 5.0


class Recorded:
    """A scheduler from the shell, which its preload records in a folder."""

    def __init__(self, process: subprocess.Popen, address: str, folder: Path) -> None:
        self.process, self.address, self.folder = process, address, folder
        with Client(address) as client:
            info = client.scheduler_info()
        self.metrics_url = f"http://127.0.0.1:{info['services']['dashboard']}/metrics"

    @property
    def trace(self) -> Path:
        [path] = (path for path in self.folder.iterdir() if path.is_dir())
        return path

    def writer(self) -> psutil.Process | None:
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if "roast_recorder.writer.process" in " ".join(child.cmdline()):
                    return child
        return None

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(self.metrics_url, timeout=10) as response:
            lines = response.read().decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if line.startswith("roast_"))
        return {name: float(value) for name, _, value in samples}

    def state(self) -> str:
        prefix = 'roast_recording_state{state="'
        states = {name: value for name, value in self.metrics().items() if prefix in name}
        assert sorted(states.values()) == [0, 0, 0, 1]
        [name] = (name for name, value in states.items() if value)
        return name.removeprefix(prefix).removesuffix('"}')


@pytest.fixture
def start_recorded(tmp_path, start_scheduler, monkeypatch):
    """Start a recorded scheduler whose traces are in a folder."""

    def start(folder: Path = tmp_path / "traces", **settings: object) -> Recorded:
        folder.mkdir(exist_ok=True)
        for name, value in {"directory": folder, **settings}.items():
            monkeypatch.setenv(f"DASK_ROAST__RECORDER__{name.upper()}", str(value))
        arguments = (
            "--preload",
            "roast_recorder.preload",
            "--dashboard-address",
            "127.0.0.1:0",
        )
        return Recorded(*start_scheduler(*arguments, workers=1, bare=False), folder)

    return start


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def status(*arguments: object, capsys) -> tuple[int, list[dict]]:
    """Call ``roast-record status``; return its exit code and the recordings."""
    capsys.readouterr()
    code = main(["status", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert code < 2, err
    return code, json.loads(out)


def within(seconds: float, check) -> None:
    """Call a function until its assertions hold."""
    until = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def test_a_recording_that_works(start_recorded, capsys):
    recorded = start_recorded()
    with Client(recorded.address) as client:
        client.gather(client.map(abs, range(50), pure=False))
    time.sleep(1.5)

    metrics = recorded.metrics()
    assert metrics['roast_records_total{kind="task"}'] == 50
    assert metrics['roast_records_total{kind="transition"}'] >= 250
    assert not [name for name in metrics if "dropped_total" in name]
    assert metrics["roast_last_write_age_seconds"] < 3
    assert 0 <= metrics["roast_buffer_bytes"] < 10**6
    assert recorded.state() == "recording"

    code, [found] = status(recorded.folder, capsys=capsys)
    assert (code, found["state"], found["dropped"]) == (0, "recording", 0)
    assert found["path"] == str(recorded.trace)
    assert time.time() - 60 < found["start_t"] < found["written_t"] < time.time()
    code, [asked] = status("--scheduler", recorded.address, capsys=capsys)
    assert (code, asked["state"], asked["dropped"]) == (0, "recording", 0)
    assert asked["path"] == str(recorded.trace)
    assert abs(asked["start_t"] - found["start_t"]) < 5

    recorded.process.terminate()
    recorded.process.wait(30)
    code, [found] = status(recorded.trace, capsys=capsys)
    assert (code, found["state"], found["detail"]) == (0, "ended", "the scheduler closed")
    assert main(["status", "--scheduler", recorded.address]) == 2
    error = f"no scheduler answers at {recorded.address!r}: timed out after 10 s"
    assert error in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_writing_process_that_is_killed_once_is_replaced(start_recorded, capsys):
    recorded = start_recorded()
    first = recorded.writer()
    first.kill()

    def check():
        assert recorded.writer() not in (None, first)
        assert recorded.state() == "recording"
        assert recorded.metrics()["roast_last_write_age_seconds"] < 2
        code, [found] = status(recorded.folder, capsys=capsys)
        assert (code, found["state"], found["dropped"]) == (0, "recording", 0)

    within(SECONDS, check)


@pytest.mark.exhaustive
def test_a_writing_process_that_is_killed_again_and_again(start_recorded, capsys):
    recorded = start_recorded()
    time.sleep(1)
    until = time.monotonic() + 60
    while recorded.state() != "ended":
        assert time.monotonic() < until
        round_ends = time.monotonic() + 2
        while time.monotonic() < round_ends:
            if writer := recorded.writer():
                with contextlib.suppress(psutil.Error):
                    writer.kill()

    def check():
        assert recorded.state() == "ended"
        assert sum(v for k, v in recorded.metrics().items() if "dropped_total" in k) > 0
        code, [found] = status(recorded.folder, capsys=capsys)
        assert (code, found["state"]) == (1, "failing")
        assert found["detail"] == (
            "stopped without a trailer: the writing process died repeatedly"
        )
        code, [asked] = status("--scheduler", recorded.address, capsys=capsys)
        assert (code, asked["state"]) == (1, "failing")
        assert asked["detail"] == "the writing process died repeatedly"

    within(SECONDS, check)


def check_failing(recorded: Recorded, capsys, reason: str, state: str = "failing") -> None:
    def check():
        assert recorded.state() == "failing"
        metrics = recorded.metrics()
        assert sum(v for k, v in metrics.items() if "dropped_total" in k) > 0
        assert metrics["roast_last_write_age_seconds"] > 1
        for place in ([recorded.folder], ["--scheduler", recorded.address]):
            code, [found] = status(*place, capsys=capsys)
            assert code == 1
            assert found["state"] == (state if len(place) == 1 else "failing")
            assert reason in found["detail"]

    within(SECONDS, check)


@pytest.mark.exhaustive
def test_a_full_disk(start_recorded, small_disk, capsys):
    recorded = start_recorded(small_disk)
    time.sleep(1)
    (small_disk / "other").write_bytes(b"x" * shutil.disk_usage(small_disk).free)
    check_failing(recorded, capsys, "the disk is almost full")

    (small_disk / "other").unlink()

    def check():
        assert recorded.state() == "recording"
        code, [found] = status(recorded.folder, capsys=capsys)
        assert (code, found["state"]) == (0, "recording")
        assert found["dropped"] > 0

    within(SECONDS, check)


@pytest.mark.exhaustive
def test_a_disk_that_is_full_when_the_scheduler_starts(start_recorded, small_disk, capsys):
    """The trace is created and remains empty, and so does its note."""
    (small_disk / "other").write_bytes(b"x" * shutil.disk_usage(small_disk).free)

    recorded = start_recorded(small_disk)

    check_failing(recorded, capsys, "the disk is almost full")
    assert not sum(file.stat().st_size for file in recorded.trace.iterdir())


@pytest.mark.exhaustive
def test_a_limit_of_the_size_of_files(start_recorded, capsys):
    """As a quota, it is not seen in the free space of the disk: the preload notes it."""
    recorded = start_recorded()
    resource.prlimit(recorded.writer().pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
    with Client(recorded.address) as client:
        client.gather(client.map(abs, range(300), pure=False))
    check_failing(recorded, capsys, "File too large")


def test_a_folder_that_is_deleted(start_recorded, capsys):
    recorded = start_recorded()
    shutil.rmtree(recorded.trace)
    check_failing(recorded, capsys, "removed or replaced", state="not recorded")

    # The note was written for the trace, not for its folder.
    recorded.process.terminate()
    recorded.process.wait(30)
    assert status(recorded.folder, capsys=capsys)[0] == 1


def test_a_scheduler_that_cannot_be_recorded(start_recorded, capsys):
    recorded = start_recorded(flush_interval_seconds=-1)

    assert recorded.state() == "not started"
    assert set(recorded.metrics()) == {
        f'roast_recording_state{{state="{state}"}}'
        for state in ("recording", "failing", "ended", "not started")
    }
    code, [found] = status(recorded.folder, capsys=capsys)
    assert (code, found["state"], found["dropped"]) == (1, "not recorded", None)
    assert "invalid flush_interval_seconds=-1" in found["detail"]
    assert recorded.address in found["detail"]
    code, [asked] = status("--scheduler", recorded.address, capsys=capsys)
    assert (code, asked["state"]) == (1, "not started")
    assert "invalid flush_interval_seconds=-1" in asked["detail"]


def test_a_scheduler_without_a_recorder(start_scheduler, capsys):
    _, address = start_scheduler(workers=0, bare=False)
    assert status("--scheduler", address, capsys=capsys) == (1, [])
