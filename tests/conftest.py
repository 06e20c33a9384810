"""Fixtures of all tests: clusters of real processes, a browser, and a plain trace reader."""

import contextlib
import functools
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import pytest
import zstandard

from chromium import launched

# Without this, child processes ignore SIGINT if a shell starts pytest in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers of clusters are forked from a process that has imported distributed, as in its own
# tests: a worker starts in a fifth of the CPU time. Older versions read the setting on import.
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})

# For formats of addresses, which no test checks, jsonschema would compile grammars for 3 s.
sys.modules["rfc3987_syntax"] = None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run each file in one process, and all files that start clusters in the same one."""
    from xdist.scheduler import LoadScopeScheduling

    @functools.cache
    def starts_clusters(file: str) -> bool:
        return "pytest.mark.cluster" in (config.rootpath / file).read_text(encoding="utf-8")

    class OneClusterAtATime(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "clusters" if starts_clusters(file) else file

    return OneClusterAtATime(config, log)


@pytest.fixture(scope="session", autouse=True)
def temporary_cache(tmp_path_factory) -> Iterator[Path]:
    """Isolate the tests from the user's trace cache and views."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROAST_CACHE_DIR", str(folder))
        patch.setenv("ROAST_VIEWS", "")
        yield folder


@pytest.fixture(scope="session")
def read_lines():
    """Read a trace as a list of dicts, without roast."""

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
    """A LocalCluster of two single-threaded worker processes."""
    from distributed import LocalCluster

    sizes = {"n_workers": 2, "threads_per_worker": 1}
    dashboard = {"dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**sizes, **dashboard, silence_logs=logging.CRITICAL) as cluster:
        yield cluster


@pytest.fixture
def client(cluster) -> Iterator:
    from distributed import Client

    with Client(cluster) as client:
        yield client


DISTRIBUTED_ALONE = """
import sys
sys.modules.update(dict.fromkeys(["roast_recorder", "roast_schemas", "orjson", "zstandard"]))
from dask.cli import run_cli
sys.argv[0] = "dask"
run_cli()
"""


@pytest.fixture
def in_another_process() -> Callable:
    """Call a function in a new process, for example one that starts an in-process cluster.

    Such a cluster unpickles the recorder's plugins by value. That replaces the methods of the
    recorder's classes, and patches in later tests would have no effect.
    """

    def call(function: Callable, *arguments) -> None:
        process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
        process.start()
        process.join(100)
        assert process.exitcode == 0

    return call


@pytest.fixture
def start_scheduler(tmp_path) -> Iterator[Callable]:
    """Start schedulers with workers, in processes that end with the test.

    In a `bare` process only distributed can be imported, not the recorder and its other
    dependencies. Returns the scheduler's process and address.
    """

    def dask(bare: bool, *arguments: str) -> subprocess.Popen:
        program = ["-c", DISTRIBUTED_ALONE] if bare else ["-m", "dask"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([sys.executable, *program, *arguments], **quiet)
        stack.callback(_terminate, process)
        return process

    with contextlib.ExitStack() as stack:

        def start(*arguments: str, workers: int, bare: bool = True):
            file = tmp_path / f"scheduler-{len(list(tmp_path.glob('scheduler-*')))}.json"
            quiet = ["--no-dashboard", "--host", "127.0.0.1"]
            named = ["--scheduler-file", str(file), "--port", "0"]
            scheduler = dask(bare, "scheduler", *named, *quiet, *arguments)
            address = _address(file, scheduler)
            for _ in range(workers):
                alone = ["--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path)]
                dask(bare, "worker", address, *quiet, *alone)
            return scheduler, address

        yield start


def _terminate(process: subprocess.Popen) -> None:
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
    raise RuntimeError("the scheduler did not start")


@pytest.fixture
def scheduler_process(start_scheduler) -> tuple[subprocess.Popen, str]:
    """A scheduler and two workers in processes with distributed only."""
    return start_scheduler(workers=2)


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    """A running Chromium.

    It is closed after the module, because Playwright's running event loop would break tests
    of asynchronous clients.
    """
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            browser = launched(playwright)
        except Error as error:
            required = os.environ.get("CI") or os.environ.get("ROAST_REQUIRE_BROWSER") == "1"
            reason = f"no Chromium that starts: set ROAST_CHROMIUM ({error.message[:200]})"
            (pytest.fail if required else pytest.skip)(reason)
        yield browser
        browser.close()
