"""The whole road: a real coffea run, recorded, and what the trace says once it is over."""

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
    folder = tmp_path_factory.mktemp("road")
    list(files.write_files(folder, DATASETS))
    return folder


@pytest.fixture(scope="module", params=[1, None], ids=["compressed", "uncompressed"])
def run(request, folder):
    """Two analyses on one cluster, which is gone when the trace is opened."""
    path = folder / f"{request.param}.jsonl.zst"
    fileset = files.fileset(folder, DATASETS)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, path),
    ):
        outcome = run_analysis(client, fileset, chunksize=500, compression=request.param)
    with Trace(path) as trace:
        yield trace, outcome


def test_chunks_are_those_of_coffeas_own_report(run):
    trace, outcome = run

    [row] = trace.sql(
        "SELECT count(*), sum(events) FROM chunks WHERE outcome = 'memory'"
    ).fetchall()

    assert row == (outcome.report["chunks"], outcome.report["entries"]) == (14, 7_100)


def test_every_chunk_says_what_it_was_and_who_did_it(run):
    trace, _ = run

    rows = trace.sql(
        "SELECT dataset, filename, treename, entry_start, entry_stop, worker FROM chunks"
    ).fetchall()

    for dataset, filename, treename, entry_start, entry_stop, worker in rows:
        assert Path(filename).name.startswith(dataset)
        assert treename == "Events"
        assert 0 <= entry_start < entry_stop <= entry_start + 517  # coffea evens chunks out
        assert worker.startswith("tcp://127.0.0.1:")


def test_events_by_dataset_are_those_that_coffea_counted(run):
    trace, outcome = run

    events = dict(trace.sql("SELECT dataset, events FROM datasets").fetchall())

    assert events == {name: result["entries"] for name, result in outcome.result.items()}


def test_every_chunk_joins_to_its_task_run(run):
    trace, _ = run

    joined = trace.sql(
        "SELECT count(*) FROM chunks JOIN task_runs USING (trace_id, key, attempt) "
        "WHERE chunks.worker = task_runs.worker AND chunks.outcome = task_runs.outcome"
    ).fetchall()

    assert joined == trace.sql("SELECT count(*) FROM chunks").fetchall()


def test_the_trace_is_whole(run):
    trace, _ = run

    assert trace.frame("loss").is_empty()
    assert trace.sql("SELECT clean_end FROM trace_info").fetchall() == [(True,)]


def test_a_processor_that_raises_is_recorded_and_reaches_the_user(cluster, folder):
    class Broken(processor.ProcessorABC):
        def process(self, events):
            if events.metadata["dataset"] == "TTbar":
                raise ValueError("no such <b>trigger</b>")
            return {"entries": len(events)}

        def postprocess(self, accumulator):
            return accumulator

    path = folder / "broken.jsonl"
    with Client(cluster) as client:
        runner = processor.Runner(
            executor=processor.DaskExecutor(client=client, retries=1, status=False),
            schema=NanoAODSchema,
            chunksize=500,
        )
        fileset = files.fileset(folder, DATASETS)
        arguments = {"treename": "Events", "processor_instance": Broken()}
        with pytest.raises(Exception, match="trigger") as unrecorded:
            runner(fileset, **arguments)
        with (
            pytest.raises(Exception, match="trigger") as recorded,
            roast_recorder.record(client, path),
        ):
            runner(fileset, **arguments)

    assert type(recorded.value) is type(unrecorded.value)
    with Trace(path) as trace:
        failed = trace.sql(
            "SELECT DISTINCT dataset, outcome FROM chunks WHERE exception LIKE '%trigger%'"
        ).fetchall()
        assert ("TTbar", "erred") in failed
        assert {dataset for dataset, _ in failed} == {"TTbar"}


def test_an_asynchronous_client_makes_the_same_trace(cluster, folder):
    path = folder / "asynchronous.jsonl.gz"

    async def work():
        async with (
            Client(cluster.scheduler_address, asynchronous=True) as client,
            roast_recorder.record(client, path),
        ):
            await client.gather(client.map(lambda number: number + 1, range(20)))

    asyncio.run(work())

    with Trace(path) as trace:
        assert trace.sql("SELECT outcome, count(*) FROM task_runs GROUP BY 1").fetchall() == [
            ("memory", 20)
        ]
