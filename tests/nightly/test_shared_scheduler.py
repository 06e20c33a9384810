"""A scheduler of two programs, an hour apart, which its preload records."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from roast_analyze import Store, Trace
from roast_analyze.cli import main
from roast_analyze.report import unexplained

pytestmark = pytest.mark.cluster

#: Each thread computes for a few seconds.
PROGRAM = """
import sys, time
from distributed import Client

def work(number):
    time.sleep(0.05)
    return number

with Client(sys.argv[1]) as client:
    client.gather(client.map(work, range(60), pure=False))
"""

IDLE_SECONDS = 3_600.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> list[dict]:
    """Return the records of a scheduler for two programs of two users, 2 s apart."""
    folder = tmp_path_factory.mktemp("shared")
    preload = {"DASK_DISTRIBUTED__CLIENT__PRELOAD": '["roast_recorder.client_program"]'}
    directory = {"DASK_ROAST__RECORDER__DIRECTORY": str(folder)}
    quiet = ["--no-dashboard", "--host", "127.0.0.1"]
    file = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    scheduler = subprocess.Popen(
        [*dask, "scheduler", *quiet, "--port", "0", "--scheduler-file", str(file),
         "--preload", "roast_recorder.preload"],
        env={**os.environ, **directory},
    )  # fmt: skip
    worker = None
    try:
        until = time.monotonic() + 60
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.1)
        address = json.loads(file.read_bytes())["address"]
        alone = ["--nthreads", "2", "--no-nanny", "--local-directory", str(folder)]
        worker = subprocess.Popen([*dask, "worker", address, *quiet, *alone])
        for user, name in (("ada", "fit.py"), ("bob", "hist.py")):
            (folder / name).write_text(PROGRAM)
            environment = {**os.environ, **preload, "JUPYTERHUB_USER": user}
            command = [sys.executable, str(folder / name), address]
            subprocess.run(command, env=environment, check=True, timeout=100)
            time.sleep(2)
    finally:
        for process in filter(None, (worker, scheduler)):
            process.terminate()
            process.wait(30)
    [segment] = folder.glob("*/000001.jsonl.zst")
    import zstandard

    data = zstandard.ZstdDecompressor().stream_reader(
        segment.open("rb"), read_across_frames=True
    )
    return [json.loads(line) for line in data.read().splitlines()]


@pytest.fixture(scope="module")
def trace(recorded, tmp_path_factory) -> Path:
    """Write a trace in which the time between the programs is an hour, with its samples."""
    left = [record["t"] for record in recorded if record["kind"] == "client_removed"]
    gap_t = left[0] + 1.0

    def later(value: object, seconds: float) -> object:
        if isinstance(value, dict):
            return {name: later(item, seconds) for name, item in value.items()}
        if isinstance(value, list):
            return [later(item, seconds) for item in value]
        is_time = isinstance(value, float) and gap_t - 2 < value < gap_t + 10_000
        return value + seconds if is_time else value

    # The counters of hosts are not moved.
    records = [record for record in recorded if record["kind"] != "host_sample"]
    before = [record for record in records[:-1] if record["t"] <= gap_t]
    after = [later(record, IDLE_SECONDS) for record in records[:-1] if record["t"] > gap_t]
    samples = [
        next(record for record in reversed(before) if record["kind"] == kind)
        for kind in ("worker_sample", "scheduler_sample")
    ]
    between = [
        {**later(sample, seconds), "t": gap_t + seconds}
        for seconds in range(1, int(IDLE_SECONDS))
        for sample in samples
    ]
    lines = [*before, *between, *after]
    trailer = later(records[-1], IDLE_SECONDS)
    del trailer["crc32"]
    trailer["records_by_kind"] = Counter(record["kind"] for record in lines)
    path = tmp_path_factory.mktemp("trace") / "shared.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, trailer]))
    return path


def test_two_sessions_with_their_programs(trace):
    with Trace(trace) as opened:
        assert opened.rows(
            "SELECT program, user_name, tasks, compute_seconds > 2 FROM sessions"
        ) == [("fit.py", "ada", 60, True), ("hist.py", "bob", 60, True)]
        [(between,)] = opened.rows("SELECT max(start_t) - min(stop_t) FROM sessions")
        assert between > IDLE_SECONDS
        [(hosts,)] = opened.rows("SELECT count(DISTINCT (host, pid)) FROM sessions")
        assert hosts == 2
        # Only because the records between were added here.
        assert opened.rows("SELECT reason FROM loss") == [("changed content",)]


def test_no_finding_is_about_the_time_between(trace):
    """The only ones are about what the tasks did."""
    with Trace(trace) as opened:
        found = opened.rows("SELECT id, sentence FROM findings")
        rest = unexplained.query(opened, ())
    assert {rule for rule, _ in found} <= {"inside-tasks"}, found
    assert rest.uses["between graphs"] < 60


def test_the_summary_names_the_programs(trace, capsys):
    assert main([str(trace)]) == 0

    words = " ".join(capsys.readouterr().out.split())
    assert "1 fit.py ada " in words
    assert "2 hist.py bob " in words
    assert "Client-" not in words


def test_two_rows_in_the_history(trace, tmp_path):
    store = Store(tmp_path / "store")
    store.add([trace])

    assert store.sql("SELECT program, user_name, is_shared FROM runs").fetchall() == [
        ("fit.py, hist.py", None, True)
    ]
    history = store.sql(
        "SELECT program, user_name, run_number, compute_hours * 3600 BETWEEN 3 AND 30, "
        "wall_seconds < 100, core_hours * 3600 < 200, failures FROM program_history"
    ).fetchall()
    assert history == [
        ("fit.py", "ada", 1, True, True, True, 0),
        ("hist.py", "bob", 1, True, True, True, 0),
    ]
