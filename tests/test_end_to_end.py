"""A coffea run that is recorded, and the views of its trace once the cluster is closed."""

import asyncio
from pathlib import Path

import pytest
from distributed import Client

import roast_recorder

pytest.importorskip("coffea")
pytest.importorskip("duckdb")
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import LocalCluster

from roast_analyze import Trace
from roast_recorder.demo import files
from roast_recorder.demo.run import run_analysis

pytestmark = pytest.mark.cluster

DATASETS = (
    files.Dataset("DYJets", files=2, events=2_000, jets=2.0, resonance_mass=91.0),
    files.Dataset("TTbar", files=1, events=3_100, jets=5.0, resonance_mass=173.0),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nanoaod")
    list(files.write_files(folder, DATASETS))
    return folder


def test_the_views_of_a_run_are_what_coffea_reports(folder):
    path = folder / "trace.jsonl.zst"
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, path),
    ):
        outcome = run_analysis(client, files.fileset(folder, DATASETS), chunksize=500)

    with Trace(path) as trace:
        query = "SELECT count(*), sum(events) FROM chunks WHERE outcome = 'memory'"
        [row] = trace.sql(query).fetchall()
        assert row == (outcome.report["chunks"], outcome.report["entries"]) == (14, 7_100)
        events = dict(trace.sql("SELECT dataset, events FROM datasets").fetchall())
        assert events == {name: part["entries"] for name, part in outcome.result.items()}
        rows = trace.sql(
            "SELECT dataset, filename, treename, entry_start, entry_stop, worker FROM chunks"
        ).fetchall()
        for dataset, filename, treename, start, stop, worker in rows:
            assert Path(filename).name.startswith(dataset)
            assert treename == "Events"
            assert 0 <= start < stop <= start + 517  # coffea makes chunks of equal sizes
            assert worker.startswith("tcp://127.0.0.1:")
        joined = trace.sql(
            "SELECT count(*) FROM chunks JOIN task_runs USING (trace_id, key, attempt) "
            "WHERE chunks.worker = task_runs.worker AND chunks.outcome = task_runs.outcome"
        ).fetchall()
        assert joined == [(14,)]
        assert trace.frame("loss").is_empty()
        assert trace.sql("SELECT clean_end FROM trace_info").fetchall() == [(True,)]


class Broken(processor.ProcessorABC):
    def process(self, events):
        if events.metadata["dataset"] == "TTbar":
            raise ValueError("no such <b>trigger</b>")
        return {"entries": len(events)}

    def postprocess(self, accumulator):
        return accumulator


def test_an_exception_of_the_processor_is_recorded_and_raised(cluster, folder):
    path = folder / "broken.jsonl"
    with Client(cluster) as client:
        runner = processor.Runner(
            executor=processor.DaskExecutor(client=client, retries=1, status=False),
            schema=NanoAODSchema,
            chunksize=500,
        )
        fileset = files.fileset(folder, DATASETS)
        with (
            pytest.raises(Exception, match="trigger"),
            roast_recorder.record(client, path),
        ):
            runner(fileset, treename="Events", processor_instance=Broken())

    with Trace(path) as trace:
        failed = trace.sql(
            "SELECT DISTINCT dataset, outcome FROM chunks WHERE exception LIKE '%trigger%'"
        ).fetchall()
    assert ("TTbar", "erred") in failed
    assert {dataset for dataset, _ in failed} == {"TTbar"}


def test_an_asynchronous_client_records_the_same_trace(cluster, folder):
    path = folder / "asynchronous.jsonl.gz"

    async def work():
        async with (
            Client(cluster.scheduler_address, asynchronous=True) as client,
            roast_recorder.record(client, path),
        ):
            await client.gather(client.map(lambda number: number + 1, range(20)))

    asyncio.run(work())

    with Trace(path) as trace:
        outcomes = trace.sql("SELECT outcome, count(*) FROM task_runs GROUP BY 1").fetchall()
    assert outcomes == [("memory", 20)]
