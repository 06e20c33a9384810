"""What all tests share: a cluster of real processes, and reading a trace by hand."""

import contextlib
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard


@pytest.fixture(scope="session")
def read_lines():
    """Read a trace without anything of ours: a list of dicts."""

    def read(path: Path) -> list[dict]:
        data = Path(path).read_bytes()
        if str(path).endswith(".zst"):
            data = (
                zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
            )
        return [json.loads(line) for line in data.splitlines()]

    return read


@pytest.fixture(scope="module")
def cluster() -> Iterator:
    """A LocalCluster of two worker processes of one thread."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster) -> Iterator:
    from distributed import Client

    with Client(cluster) as client:
        yield client


@pytest.fixture
def scheduler_process(tmp_path) -> Iterator[tuple[subprocess.Popen, str]]:
    """A scheduler and two workers in processes that have distributed alone.

    What else the recorder uses cannot be imported there. Gives the scheduler's process
    and address.
    """
    file = tmp_path / "scheduler.json"
    with contextlib.ExitStack() as stack:
        scheduler = _dask(
            stack,
            "scheduler",
            "--scheduler-file",
            str(file),
            "--no-dashboard",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
        )
        address = _address(file, scheduler)
        for _ in range(2):
            _dask(
                stack,
                "worker",
                address,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--host",
                "127.0.0.1",
                "--local-directory",
                str(tmp_path),
            )
        yield scheduler, address


DISTRIBUTED_ALONE = """
import sys
sys.modules.update(dict.fromkeys(["roast_recorder", "roast_schemas", "orjson", "zstandard"]))
from dask.cli import run_cli
sys.argv[0] = "dask"
run_cli()
"""


def _dask(stack: contextlib.ExitStack, *arguments: str) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", DISTRIBUTED_ALONE, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _address(file: Path, scheduler: subprocess.Popen) -> str:
    until = time.monotonic() + 30
    while time.monotonic() < until and scheduler.poll() is None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            return json.loads(file.read_text())["address"]
        time.sleep(0.05)
    raise RuntimeError("the scheduler did not come up")
