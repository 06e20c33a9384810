"""The view `differences` of two runs that differ in one option and one package."""

import sys

import dask
import pytest
from distributed import Client, LocalCluster

import roast_recorder

pytest.importorskip("duckdb")
from roast_analyze import Trace

pytestmark = pytest.mark.cluster


@pytest.fixture
def record_run(tmp_path):
    """Record a run with a configuration, and workers that have a version of a package."""

    def record_run(name, version, **options):
        folder = tmp_path / name
        (folder / f"fakepkg-{version}.dist-info").mkdir(parents=True)

        def find(folder):
            sys.path.append(folder)

        names = {option.replace("__", "."): value for option, value in options.items()}
        with (
            dask.config.set({"temporary-directory": str(folder), **names}),
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster) as client,
        ):
            client.run(find, str(folder))
            with roast_recorder.record(client, tmp_path / f"{name}.jsonl"):
                client.gather(client.map(abs, range(10)))
        return tmp_path / f"{name}.jsonl"

    return record_run


def test_only_the_two_differences_are_shown(record_run):
    one = record_run("one", "1.0", distributed__worker__memory__spill=0.7)
    other = record_run("other", "2.0", distributed__worker__memory__spill=0.71)

    with Trace(one, other) as trace:
        found = trace.sql("SELECT * EXCLUDE (trace_id) FROM differences").fetchall()

    everywhere = ["client", "scheduler", "worker"]
    assert found == [
        ("configuration", "distributed.worker.memory.spill", "0.7", "0.71", everywhere),
        ("package", "fakepkg", "1.0", "2.0", ["worker"]),
    ]
