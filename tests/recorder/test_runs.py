"""Real coffea runs: what they wrote is valid, and the chunks are coffea's own."""

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
from roast_recorder.demo import files
from roast_recorder.demo.run import run_analysis

pytestmark = pytest.mark.cluster

DATASETS = (
    files.Dataset("DYJets", files=2, events=1_000, jets=2.0, resonance_mass=91.0),
    files.Dataset("TTbar", files=1, events=1_500, jets=5.0, resonance_mass=173.0),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nanoaod")
    list(files.write_files(folder, DATASETS))
    return folder


@pytest.fixture(scope="module")
def good_run(cluster, folder):
    """The demo's analysis over three files in chunks of 300 events."""
    trace = folder / "good.jsonl"
    with Client(cluster) as client, roast_recorder.record(client, trace):
        outcome = run_analysis(client, files.fileset(folder, DATASETS), chunksize=300)
    return trace, outcome


@pytest.fixture(scope="module")
def bad_run(folder):
    """A file that is missing, a worker killed, and coffea's own exception."""
    trace = folder / "bad.jsonl"
    fileset = files.fileset(folder, DATASETS)
    fileset["TTbar"].append(str(folder / "missing.root"))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as own,
        Client(own) as client,
        roast_recorder.record(client, trace),
    ):
        victim = next(iter(own.scheduler.workers.values()))
        futures = client.map(lambda _: time.sleep(0.2), range(20), pure=False)
        time.sleep(0.3)
        os.kill(victim.pid, signal.SIGKILL)
        client.gather(futures)
        with pytest.raises(FileNotFoundError) as caught:
            run_analysis(client, fileset, chunksize=300, retries=1)
    return trace, caught.value


@pytest.mark.parametrize("run", ["good_run", "bad_run"])
def test_every_line_is_valid(run, request, read_lines):
    trace, _ = request.getfixturevalue(run)
    validator = jsonschema.Draft202012Validator(json_schema())
    by_kind = {kind["title"]: kind for kind in json_schema()["oneOf"]}

    for line in read_lines(trace):
        # Of the kind's own schema first: its messages say what is wrong.
        jsonschema.validate(line, by_kind[line["kind"]])
    validator.validate(line)


def test_chunks_are_those_that_coffea_counts(good_run, read_lines):
    trace, outcome = good_run
    records = [line for line in read_lines(trace) if line.get("entry_stop") is not None]
    chunks = [line for line in records if "run_id" not in line]

    assert len(chunks) == outcome.report["chunks"]
    assert sum(c["entry_stop"] - c["entry_start"] for c in chunks) == outcome.report["entries"]
    for chunk in chunks:
        assert chunk["treename"] == "Events"
        assert Path(chunk["filename"]).name.startswith(chunk["dataset"])


def test_each_chunk_is_a_task_that_ran(good_run, read_lines):
    trace, _ = good_run
    lines = read_lines(trace)
    finished = {line["key"] for line in lines if line.get("finish") == "memory"}

    assert {line["key"] for line in lines if line["kind"] == "chunk"} <= finished


def test_a_failed_run_is_recorded_to_its_end(bad_run, read_lines):
    trace, error = bad_run
    lines = read_lines(trace)
    erred = [line for line in lines if line.get("finish") == "erred"]

    assert isinstance(error, FileNotFoundError)
    [failed] = [line for line in erred if line["cause"] == line["key"]]
    [file] = [
        line for line in lines if line["kind"] == "chunk" and line["key"] == failed["key"]
    ]
    assert file["filename"].endswith("missing.root")
    assert "entry_start" not in file
    assert [line["kind"] for line in lines].count("worker_removed") == 1
    assert lines[-1]["kind"] == "trailer"
