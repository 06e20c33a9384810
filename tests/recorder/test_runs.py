"""Real coffea runs: the records are valid, and the views contain what coffea reports."""

import os
import signal
import time
from pathlib import Path

import jsonschema
import pytest
from distributed import Client, LocalCluster

import roast_recorder
from roast_schemas.describe import json_schema

pytest.importorskip("coffea")
pytest.importorskip("duckdb")
from coffea import processor
from coffea.nanoevents import NanoAODSchema

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


def assert_valid(lines):
    schema = json_schema()
    validators = [jsonschema.Draft202012Validator(kind) for kind in schema["oneOf"]]
    by_kind = {validator.schema["title"]: validator for validator in validators}
    for line in lines:
        # Of the kind's own schema: its messages name what is wrong.
        by_kind[line["kind"]].validate(line)
    jsonschema.validate(lines[-1], schema)


def test_the_views_of_a_run_are_what_coffea_reports(cluster, folder, read_lines):
    path = folder / "trace.jsonl.zst"
    with Client(cluster) as client, roast_recorder.record(client, path):
        result, report = run_analysis(client, files.fileset(folder, DATASETS), chunksize=500)

    assert_valid(read_lines(path))
    with Trace(path) as trace:
        query = "SELECT count(*), sum(events) FROM chunks WHERE outcome = 'memory'"
        [row] = trace.rows(query)
        assert row == (report["chunks"], report["entries"]) == (14, 7_100)
        events = dict(trace.rows("SELECT dataset, events FROM datasets"))
        assert events == {name: part["entries"] for name, part in result.items()}
        rows = trace.rows(
            "SELECT dataset, filename, treename, entry_start, entry_stop, worker FROM chunks"
        )
        for dataset, filename, treename, start, stop, worker in rows:
            assert Path(filename).name.startswith(dataset)
            assert treename == "Events"
            assert 0 <= start < stop <= start + 517  # coffea makes chunks of equal sizes
            assert worker.startswith("tcp://127.0.0.1:")
        joined = trace.rows(
            "SELECT count(*) FROM chunks JOIN task_runs USING (trace_id, key, attempt) "
            "WHERE chunks.worker = task_runs.worker AND chunks.outcome = task_runs.outcome"
        )
        assert joined == [(14,)]
        assert trace.frame("loss").is_empty()
        assert trace.rows("SELECT clean_end FROM trace_info") == [(True,)]


class Broken(processor.ProcessorABC):
    def process(self, events):
        if events.metadata["dataset"] == "TTbar":
            raise ValueError("no such <b>trigger</b>")
        return {"entries": len(events)}

    def postprocess(self, accumulator):
        return accumulator


@pytest.mark.exhaustive
def test_an_exception_of_the_processor_is_recorded_and_raised(cluster, folder):
    path = folder / "broken.jsonl.gz"
    with Client(cluster) as client:
        executor = processor.DaskExecutor(client=client, retries=1, status=False)
        runner = processor.Runner(executor=executor, schema=NanoAODSchema, chunksize=500)
        fileset = files.fileset(folder, DATASETS)
        with pytest.raises(Exception, match="trigger"), roast_recorder.record(client, path):
            runner(fileset, treename="Events", processor_instance=Broken())

    with Trace(path) as trace:
        failed = trace.rows(
            "SELECT DISTINCT dataset, outcome FROM chunks WHERE exception LIKE '%trigger%'"
        )
    assert ("TTbar", "erred") in failed
    assert {dataset for dataset, _ in failed} == {"TTbar"}


def test_a_failed_run_is_recorded_to_its_end(folder, read_lines):
    """A file is missing, a worker is killed, and coffea raises."""
    fileset = files.fileset(folder, DATASETS)
    fileset["TTbar"].append(str(folder / "missing.root"))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as own,
        Client(own) as client,
        roast_recorder.record(client, folder / "bad.jsonl"),
    ):
        futures = client.map(lambda _: time.sleep(0.1), range(20), pure=False)
        time.sleep(0.3)
        os.kill(next(iter(own.scheduler.workers.values())).pid, signal.SIGKILL)
        client.gather(futures)
        with pytest.raises(FileNotFoundError):
            run_analysis(client, fileset, chunksize=500, retries=1)

    lines = read_lines(folder / "bad.jsonl")
    assert_valid(lines)
    erred = [line for line in lines if line.get("finish") == "erred"]
    [failed] = [line for line in erred if line.get("cause") == line["key"]]
    file, *attempts = (
        line for line in lines if line["kind"] == "chunk" and line["key"] == failed["key"]
    )
    assert file["filename"].endswith("missing.root")
    assert "entry_start" not in file
    assert {attempt["measured"]["until"] for attempt in attempts} == {"metadata"}
    assert [line["kind"] for line in lines].count("worker_removed") == 1
    assert lines[-1]["kind"] == "trailer"
