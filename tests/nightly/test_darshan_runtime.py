"""Runs measured by Darshan's own library, whose path is in ROAST_DARSHAN_LIBRARY."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nightly.comparison import Answer
from nightly.recording import Recording
from nightly.test_views import all_differences, differences_of
from roast_analyze import Trace
from roast_analyze.cli import main

pytestmark = pytest.mark.cluster

#: Each task reads the file that its key names; importing coffea opens over 1,024 files.
PROGRAM = """
import random, sys, time
from pathlib import Path
from distributed import Client, LocalCluster

def read(path, seconds):
    import coffea.nanoevents, coffea.processor
    time.sleep(seconds)
    with open(path, "rb") as file:
        nbytes = len(file.read())
    time.sleep(seconds)
    return nbytes

if __name__ == "__main__":
    paths = [Path(f"data-{n:02}.bin").resolve() for n in range(40)]
    for path in paths:
        path.write_bytes(b"x" * 100_000)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    draw = random.Random(1).uniform
    with cluster, Client(cluster) as client:
        runs = [
            client.submit(read, str(path), draw(0.005, 0.03), key=path.stem) for path in paths
        ]
        assert client.gather(runs) == [100_000] * 40
"""


@pytest.fixture(scope="module")
def library():
    path = os.environ.get("ROAST_DARSHAN_LIBRARY")
    if not path:
        pytest.skip("ROAST_DARSHAN_LIBRARY is not the path of libdarshan.so")
    return Path(path).resolve(strict=True)


@pytest.fixture(scope="module", params=["roast's limits", "Darshan's limits"])
def measured(request, library, tmp_path_factory):
    """Record the program; return the limits, the trace and the independent recording."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "program.py").write_text(PROGRAM)
    variables = dict(os.environ)
    if request.param == "Darshan's limits":
        (folder / "empty.conf").touch()
        variables["DARSHAN_CONFIG_PATH"] = str(folder / "empty.conf")
    command = [sys.executable, "-m", "roast_recorder", "run", "-o", "t.jsonl.zst"]
    command += ["--darshan", str(library), "--", sys.executable, "program.py"]
    subprocess.run(command, cwd=folder, env=variables, check=True, timeout=200)
    logs = sorted((folder / "t.darshan").glob("*.darshan"))
    path = folder / "t.jsonl.zst"
    assert main(["import", "darshan", *map(str, logs), "--into", str(path)]) == 0
    with Trace(path) as opened:
        yield request.param, opened, Recording.read(path)


def test_files_of_tasks_are_measured_or_the_log_is_a_loss(measured):
    limits, opened, _ = measured

    [(files,)] = opened.sql(
        "SELECT count(DISTINCT filename) FROM io_files "
        "WHERE worker IS NOT NULL AND filename LIKE '%/data-%' AND bytes_read = 100000"
    ).fetchall()
    losses = opened.sql("SELECT reason FROM loss").fetchall()

    if limits == "roast's limits":
        assert (files, losses) == (40, [])
    else:
        assert files == 0
        assert set(losses) == {("partial Darshan log",)}


def test_calls_are_assigned_to_the_tasks_that_made_them(measured):
    limits, opened, _ = measured
    if limits != "roast's limits":
        pytest.skip("Darshan measured no file of a task")

    calls = opened.sql(
        "SELECT regexp_extract(filename, 'data-[0-9]+') AS made_by, key, candidate_keys "
        "FROM io_segments WHERE worker IS NOT NULL AND filename LIKE '%/data-%'"
    ).fetchall()

    named = [(made_by, key) for made_by, key, _ in calls if key is not None]
    assert len(named) >= 0.5 * len(calls)
    assert all(made_by == key for made_by, key in named)
    among = sum(made_by in candidates for made_by, _, candidates in calls)
    assert among >= 0.9 * len(calls)


def test_relations_and_loss(measured):
    _, opened, recording = measured

    assert all_differences(opened, recording) == {}
    assert differences_of("loss", Answer.of(opened.view("loss")), recording) == []
