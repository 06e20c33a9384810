"""A test that fails if a program becomes slower than its last runs.

    pytest examples/test_duration.py

The metrics of runs that pass are kept in pytest's cache; the first run passes. To accept that
the program is slower, run it with ``--cache-clear``.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from roast_recorder import record

#: Number of runs that a new one is compared with.
KEPT_RUNS = 10


def analysis(client: Client) -> None:
    """Run the program to be measured; replace it with yours."""
    client.gather(client.map(time.sleep, [0.1] * 20, pure=False))


def roast_analyze(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "roast_analyze", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_analysis_is_not_slower(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder, trace = pytestconfig.cache.mkdir("roast"), tmp_path / "trace.jsonl.zst"
    bases = sorted(folder.glob("*.json"))[-KEPT_RUNS:]

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        record(client, trace),
    ):
        analysis(client)

    if bases:
        gate = roast_analyze("gate", *bases, "--", trace, "--fail-if", "busy_seconds > +30%")
        assert gate.returncode == 0, gate.stdout + gate.stderr
    metrics = roast_analyze("metrics", trace)
    (folder / f"{time.time_ns()}.json").write_text(metrics.stdout)
