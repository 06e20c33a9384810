"""Activity of the recording client's program, by samples of its main thread."""

import os
import sys
import time

import pytest
from dask.base import tokenize
from distributed import as_completed, progress, wait

import roast_recorder
from roast_analyze import Trace
from roast_recorder import client_recording
from roast_recorder.probes.client_activity import describe_activity

pytestmark = pytest.mark.cluster

SECONDS = 1.2


def compute(_client):
    until = time.thread_time() + SECONDS
    while time.thread_time() < until:
        pass


def idle(_client):
    time.sleep(SECONDS)


def wait_for_result(client):
    client.submit(time.sleep, SECONDS, pure=False).result()


def wait_for_futures(client):
    wait(client.map(time.sleep, [SECONDS], pure=False))


def iterate(client):
    list(as_completed(client.map(time.sleep, [SECONDS], pure=False)))


def show_progress(client):
    progress(client.map(time.sleep, [SECONDS], pure=False), notebook=False)


def make_keys(_client):
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        tokenize(list(range(1000)))


WORK = {
    compute: "own", idle: "own", wait_for_result: "wait", wait_for_futures: "wait",
    iterate: "wait", show_progress: "wait", make_keys: "dask",
}  # fmt: skip


@pytest.mark.parametrize(
    "library",
    [
        os.__file__,
        "/home/me/.local/lib/python3.11/site-packages/coffea/executor.py",
        "/cvmfs/sft.cern.ch/lcg/views/x/lib/python3.11/site-packages/coffea/executor.py",
        "/usr/lib/python3/dist-packages/coffea/executor.py",
    ],
)
def test_functions_of_libraries_are_not_the_users(library):
    functions = {}
    for path, call in ("/home/me/analysis.py", "analyze"), (library, "execute"):
        code = compile(f"def {call}(function, *others): return function(*others)", path, "exec")
        exec(code, functions)

    found = functions["analyze"](
        functions["execute"], lambda: describe_activity(sys._getframe(1))
    )

    assert found == {"activity": "own", "name": "analyze", "filename": "analysis.py"}


@pytest.mark.exhaustive
def test_seconds_of_each_activity_by_function(client, trace):
    times = {}
    with roast_recorder.record(client, trace):
        for work in WORK:
            started = time.time()
            work(client)
            times[work] = started, time.time()

    with Trace(trace) as opened:
        rows = opened.rows(
            """SELECT "function", max_by(activity, seconds), min(start_t), max(stop_t),
            sum(seconds), sum(cpu_seconds), any_value(filename) FROM client_activity
            GROUP BY "function" """
        )
    found = {function: others for function, *others in rows}
    for work, expected in WORK.items():
        activity, start_t, stop_t, seconds, cpu_seconds, filename = found[work.__name__]
        assert activity == expected, work
        assert (start_t, stop_t) == pytest.approx(times[work], abs=0.5)
        assert seconds == pytest.approx(stop_t - start_t, abs=0.7)
        if expected == "own":
            assert cpu_seconds == pytest.approx(SECONDS if work is compute else 0, abs=0.5)
        assert filename == "test_client_activity.py"


def test_records_that_the_client_cannot_keep_are_counted(client, trace, by_kind, monkeypatch):
    monkeypatch.setattr(client_recording, "MAX_PENDING", 0)
    with roast_recorder.record(client, trace):
        idle(client)

    records = by_kind(trace)
    assert "client_activity" not in records
    losses = {(loss["reason"], loss["record_kind"]) for loss in records["loss"]}
    assert ("the client's buffer was full", "client_activity") in losses
    assert min(loss["records"] for loss in records["loss"]) > 0
