"""A store is correct whichever process is killed while traces are added."""

import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import zstandard

from roast_analyze import Store

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "coffea_failures.jsonl.zst"
TRACES = 40


@pytest.fixture
def traces(tmp_path) -> list[Path]:
    """Write copies of a trace with other IDs."""
    with SAMPLE.open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    known = re.search(rb'"trace_id":"(\w+)"', text)[1]
    paths = [tmp_path / f"{number}.jsonl" for number in range(TRACES)]
    for path in paths:
        path.write_bytes(text.replace(known, uuid.uuid4().hex.encode()))
    return paths


def workers_of(pid: int) -> list[int]:
    """Return the worker processes of a local cluster, without multiprocessing's own process."""
    command = ["pgrep", "-P", str(pid), "-f", "spawn_main"]
    found = subprocess.run(command, capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


@pytest.mark.cluster
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(3))
def test_killed_clients_and_workers(traces, tmp_path, seed):
    draw = random.Random(seed)
    add = [sys.executable, "-m", "roast_analyze", "store", "add", *map(str, traces)]
    command = [*add, "--to", str(tmp_path / "store"), "--workers", "2"]
    for _ in range(3):
        client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (workers := workers_of(client.pid)):
            assert client.poll() is None
            time.sleep(0.05)
        # All traces take at least four seconds from here, on an idle machine.
        time.sleep(draw.uniform(0, 3))
        os.kill(draw.choice(workers), signal.SIGKILL)
        client.kill()
        assert client.wait() == -signal.SIGKILL

    # Two clients at once finish what the killed ones began.
    last = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [client.wait() for client in last] == [0, 0]

    store = Store(tmp_path / "store")
    assert all(problem.is_harmless for problem in store.check())
    runs = pl.read_delta(f"{store.path}/runs")
    assert runs["trace_id"].n_unique() == runs.height == TRACES
    kinds = re.findall(rb'^\{"kind":"(\w+)"', traces[0].read_bytes(), re.MULTILINE)
    for kind, records in Counter(kinds).items():
        rows = pl.read_delta(f"{store.path}/{kind.decode()}").join(runs, on="addition")
        assert (kind, rows.height) == (kind, records * TRACES)
