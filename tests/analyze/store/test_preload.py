"""Traces that the scheduler's preload adds to a store."""

import contextlib
import time

import pytest
from distributed import Client

from roast_analyze import Store
from roast_analyze.errors import TraceError

pytestmark = pytest.mark.cluster


@pytest.mark.exhaustive
def test_a_finished_recording_is_added(tmp_path, start_scheduler, monkeypatch):
    traces, store = tmp_path / "traces", Store(tmp_path / "store")
    traces.mkdir()
    monkeypatch.setenv("DASK_ROAST__RECORDER__DIRECTORY", str(traces))
    monkeypatch.setenv("DASK_ROAST__RECORDER__STORE", store.path)
    process, address = start_scheduler(
        "--preload", "roast_recorder.preload", workers=1, bare=False
    )
    with Client(address) as client:
        client.submit(abs, -1).result()
    process.terminate()
    process.wait(30)

    runs = []
    until = time.monotonic() + 60
    while not runs and time.monotonic() < until:
        time.sleep(0.2)
        with contextlib.suppress(TraceError):  # there is no store yet
            runs = store.runs().rows(named=True)
    [run], [trace] = runs, traces.iterdir()
    assert (run["paths"], run["task_runs"]) == ([str(trace)], 1)
