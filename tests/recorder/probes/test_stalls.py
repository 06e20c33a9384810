"""Load of the scheduler, and stalls of event loops, on the scheduler and on workers."""

import ctypes
import sys
import time

import cloudpickle
import pytest

import roast_recorder
from roast_analyze import Trace

pytestmark = pytest.mark.cluster

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 0.4

#: Error of Dask's clock estimate on a busy machine.
CLOCK_ERROR_SECONDS = 0.2


def hold_the_interpreter():
    """Sleep without releasing the GIL, as some compiled code does."""
    started = time.time()
    ctypes.PyDLL(None).usleep(int(SECONDS * 1e6))
    return started


def block_the_loop():
    started = time.time()
    time.sleep(SECONDS)
    return started


def compute():
    until = time.thread_time() + SECONDS
    while time.thread_time() < until:
        pass


def test_stalls_of_the_worker_and_of_the_scheduler(client, trace):
    with roast_recorder.record(client, trace):
        client.submit(time.sleep, SECONDS).result()  # not a stall
        worker = min(client.has_what())
        future = client.submit(hold_the_interpreter, workers=[worker])
        begins = {worker: future.result(), None: client.run_on_scheduler(block_the_loop)}

    with Trace(trace) as opened:
        stalls = opened.rows("SELECT worker, start_t, seconds FROM stalls")
    for process, began in begins.items():
        # A busy machine causes further stalls, and makes Dask's estimate of the worker's clock
        # worse.
        assert any(
            worker == process
            and seconds > SECONDS - 0.05
            and began - seconds - CLOCK_ERROR_SECONDS < start_t < began + SECONDS
            for worker, start_t, seconds in stalls
        ), (process, began, stalls)


def test_load_of_the_scheduler(client, trace):
    with roast_recorder.record(client, trace, sample_interval_seconds=0.1):
        time.sleep(0.5)
        client.run_on_scheduler(compute)

    with Trace(trace) as opened:
        [(loop_seconds, processes, memory)] = opened.rows(
            "SELECT sum(loop_cpu_percent / 100 * seconds), count(DISTINCT server_id), "
            "min(memory_bytes) FROM (SELECT *, t - lag(t) OVER (ORDER BY t) AS seconds "
            "FROM scheduler_samples)"
        )
    assert 0.9 * SECONDS < loop_seconds < 4 * SECONDS
    assert processes == 1
    assert memory > 10_000_000
