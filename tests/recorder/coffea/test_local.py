"""Recordings without a cluster contain what coffea itself counts."""

import concurrent.futures
import gc
import json
import logging
import multiprocessing
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter
from itertools import pairwise
from pathlib import Path

import cloudpickle
import jsonschema
import pytest

import roast_recorder
from roast_recorder import section
from roast_recorder.coffea import local
from roast_recorder.coffea.local import Carried, LocalRecording, Spool
from roast_recorder.process_state import here
from roast_schemas.describe import json_schema

pytest.importorskip("coffea")
import awkward as ak
import numpy as np
from coffea.nanoevents import BaseSchema
from coffea.processor import FuturesExecutor, IterativeExecutor, ProcessorABC, Runner

from roast_recorder.demo import files

DATASETS = (
    files.Dataset("DYJets", files=2, events=300, jets=2.0, resonance_mass=91.0),
    files.Dataset("TTbar", files=1, events=250, jets=5.0, resonance_mass=173.0),
)
#: Two files of three chunks, one of two.
CHUNK, CHUNKS = 100, 8


@pytest.fixture(scope="module", autouse=True)
def by_value():
    """The processes of a pool cannot import this file."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nanoaod")
    list(files.write_files(folder, DATASETS))
    return folder


@pytest.fixture
def spools(tmp_path, monkeypatch):
    """The folder in which temporary folders are created."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def count_jets(events):
    with section("jets"):
        jets = int(ak.sum(events.nJet))
    with section("momenta"):
        hard = int(ak.sum(events.Jet_pt > 30))
    dataset = events.metadata["dataset"]
    return {dataset: {"events": len(events), "jets": jets, "hard": hard}}


class JetCounter(ProcessorABC):
    def process(self, events):
        return count_jets(events)

    def postprocess(self, accumulator):
        return accumulator


def run(executor, fileset, processor=count_jets):
    """Run an analysis as any coffea user would."""
    runner = Runner(
        executor=executor,
        schema=BaseSchema,
        chunksize=CHUNK,
        savemetrics=True,
        metadata_cache={},  # the default one would be kept between the tests
    )
    return runner(fileset, treename="Events", processor_instance=processor)


def of_kind(lines, kind):
    return [line for line in lines if line["kind"] == kind]


def entries_of(chunk):
    return Path(chunk["filename"]).name, chunk["entry_start"], chunk["entry_stop"]


def nothing_is_left():
    threads = [thread for thread in threading.enumerate() if thread.name == "roast-local"]
    for thread in threads:
        thread.join(10)  # one that failed to start is just ending
    alive = [thread for thread in threads if thread.is_alive()]
    return not (here().listeners or here().patched or here().carriers or alive)


@pytest.fixture(autouse=True)
def leaves_nothing():
    assert nothing_is_left()
    yield
    assert nothing_is_left()


# -- executors -------------------------------------------------------------------------------


class Forks(concurrent.futures.ProcessPoolExecutor):
    """Processes that inherit the listeners of this one."""

    def __init__(self, max_workers):
        super().__init__(max_workers, mp_context=multiprocessing.get_context("fork"))


class Spawns(concurrent.futures.ProcessPoolExecutor):
    """Processes that start empty."""

    def __init__(self, max_workers):
        super().__init__(max_workers, mp_context=multiprocessing.get_context("spawn"))


def iterative(**options):
    return IterativeExecutor(status=False, **options)


def futures(**options):
    return FuturesExecutor(workers=2, status=False, **options)


#: Executor, most processes that work, and whether this process is one of them.
EXECUTORS = {
    "iterative": (iterative, 1, True),
    "loky": (futures, 2, False),
    "forks": (lambda: futures(pool=Forks, compression=None), 2, False),
    "spawns": (lambda: futures(pool=Spawns), 2, False),
    "threads": (lambda: futures(pool=concurrent.futures.ThreadPoolExecutor), 1, True),
}
PROCESSORS = {"loky": JetCounter(), "threads": JetCounter()}


@pytest.fixture(scope="module")
def unrecorded(folder):
    result, _ = run(iterative(), files.fileset(folder, DATASETS))
    return result


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_run_of_each_executor(folder, tmp_path, read_lines, unrecorded, name, spools):
    executor, most_processes, is_here = EXECUTORS[name]
    trace = tmp_path / "trace.jsonl.zst"
    processor = PROCESSORS.get(name, count_jets)
    with roast_recorder.record(path=trace):
        result, report = run(executor(), files.fileset(folder, DATASETS), processor)

    assert result == unrecorded
    lines = read_lines(trace)
    chunks, sections = of_kind(lines, "chunk"), of_kind(lines, "section")
    # What coffea reports.
    measured = [chunk["measured"] for chunk in chunks]
    assert len(chunks) == report["chunks"] == CHUNKS
    assert sum(chunk["events"] for chunk in measured) == report["entries"] == 850
    assert sum(chunk["bytes_read"] for chunk in measured) == report["bytesread"]
    columns = {column for chunk in measured for column in chunk["columns"]}
    assert columns == set(report["columns"])
    assert len(columns) > 1
    # The chunks tile the files, and each has a key and a number.
    for dataset in DATASETS:
        for part in range(dataset.files):
            name_of_file = f"{dataset.name}_{part}.root"
            own = [c for c in chunks if Path(c["filename"]).name == name_of_file]
            assert {chunk["dataset"] for chunk in own} == {dataset.name}
            edges = sorted(entries_of(chunk)[1:] for chunk in own)
            assert (edges[0][0], edges[-1][1]) == (0, dataset.events)
            assert all(before[1] == after[0] for before, after in pairwise(edges))
    assert len({chunk["key"] for chunk in chunks}) == CHUNKS
    assert [chunk["run_id"] for chunk in chunks] == list(range(1, CHUNKS + 1))
    # Sections belong to their chunks, and chunks to the processes that worked.
    assert len(sections) == 2 * CHUNKS
    for chunk in chunks:
        own = [part for part in sections if part["run_id"] == chunk["run_id"]]
        assert [part["name"] for part in own] == ["jets", "momenta"]
        for part in own:
            assert all(part[field] == chunk[field] for field in ("key", "worker", "thread"))
    workers = of_kind(lines, "worker_added")
    assert 1 <= len(workers) <= most_processes
    assert {line["worker"] for line in workers} == {chunk["worker"] for chunk in chunks}
    assert all(line["worker"] == f"pid:{line['pid']}" for line in workers)
    assert (os.getpid() in {line["pid"] for line in workers}) == is_here
    # The trace is complete.
    validator = jsonschema.Draft202012Validator(json_schema())
    for line in lines:
        validator.validate(line)
    assert {line["kind"] for line in lines} == {
        "header", "environment", "worker_added", "chunk", "section", "trailer"
    }  # fmt: skip
    assert lines[-1]["reason"] == "recording was stopped"
    assert lines[-1]["dropped_by_kind"] == {}
    assert list(spools.iterdir()) == []


def test_the_analysis_of_a_run_without_a_cluster(folder, tmp_path, capsys, monkeypatch):
    pytest.importorskip("duckdb")
    from roast_analyze import Trace
    from roast_analyze.cli import main

    path = tmp_path / "trace.jsonl"
    with roast_recorder.record(path=path):
        _, report = run(EXECUTORS["forks"][0](), files.fileset(folder, DATASETS))

    with Trace(path) as trace:
        [sums] = trace.sql(
            "SELECT count(*) FILTER (outcome = 'memory' AND attempt = 1),"
            " sum(events)::BIGINT, sum(bytes_read)::BIGINT FROM chunks"
        ).fetchall()
        assert sums == (CHUNKS, report["entries"], report["bytesread"])
        [info] = trace.view("run").to_dicts()
        assert (info["chunks"], info["events"], info["tasks"]) == (CHUNKS, 850, 0)
        datasets = trace.sql("SELECT dataset, chunks, events FROM datasets ORDER BY 1")
        assert datasets.fetchall() == [("DYJets", 6, 600), ("TTbar", 2, 250)]
        assert trace.sql("FROM loss").fetchall() == []
    monkeypatch.setenv("COLUMNS", "120")
    assert main([str(path)]) == main([str(path), "--html"]) == main(["check", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "850" in printed.out
    page = re.sub(r"(<[^>]+>|\s)+", " ", (tmp_path / "trace.html").read_text())
    assert "8 chunks, 850 events" in page


# -- contents --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iterative", "forks"])
def test_metadata_is_recorded_without_secrets(folder, tmp_path, read_lines, name, unrecorded):
    secret, word = "ghp_" + "a1B2c3D4e5" * 4, "hunter2hunter2"
    (tmp_path / secret).mkdir()
    path = tmp_path / secret / "TTbar_0.root"
    path.symlink_to(folder / "TTbar_0.root")
    metadata = {"year": np.float64(2018), ("a", 1): {"is": {"mc"}}, "password": word}
    fileset = {"TTbar": {"files": [str(path)], "metadata": metadata}}

    def fails(_):
        with section("fails"):
            raise ValueError(f"no entry with password={word!r}")

    with roast_recorder.record(path=tmp_path / "trace.jsonl"):
        result, _ = run(EXECUTORS[name][0](), fileset)
        executor = EXECUTORS[name][0]()
        executor.retries = 0
        with pytest.raises(Exception, match=word):  # the user still sees it
            run(executor, fileset, fails)

    assert result["TTbar"] == unrecorded["TTbar"]
    written = (tmp_path / "trace.jsonl").read_text()
    assert secret not in written
    assert word not in written
    chunks = of_kind(read_lines(tmp_path / "trace.jsonl"), "chunk")
    assert len(chunks) >= 3
    for chunk in chunks:
        assert chunk["usermeta"] == {
            "year": 2018,
            "('a', 1)": {"is": ["mc"]},
            "password": "<redacted>",
        }
        assert Path(chunk["filename"]).name == "TTbar_0.root"


def test_only_the_kinds_in_the_settings_are_recorded(folder, tmp_path, read_lines):
    fileset = files.fileset(folder, DATASETS[1:])
    settings = {
        "chunk": {"kinds": ("chunk",)},
        "section": {"kinds": ("section",)},
        "": {"kinds": ()},
        "environment": {"measure_chunks": False},
    }
    for kind, options in settings.items():
        path = tmp_path / f"trace-{kind}.jsonl"
        with roast_recorder.record(path=path, **options):
            assert bool(here().listeners) == ("measure_chunks" not in options)
            run(iterative(), fileset)
        kinds = {line["kind"] for line in read_lines(path)}
        assert kinds & {"chunk", "section", "environment"} == ({kind} if kind else set())


def test_a_section_outside_of_chunks(tmp_path, read_lines):
    with roast_recorder.record(path=tmp_path / "trace.jsonl"), section("merging"):
        pass

    [part] = of_kind(read_lines(tmp_path / "trace.jsonl"), "section")
    assert (part["name"], part["key"]) == ("merging", "(no chunk)")
    assert part["worker"] == f"pid:{os.getpid()}"
    assert "run_id" not in part


class FailsTwice(ProcessorABC):
    """Raises for the first chunk as often as there are files to remove."""

    def __init__(self, folder):
        self.folder = folder

    def process(self, events):
        left = sorted(Path(self.folder).iterdir())
        if events.metadata["entrystart"] == 0 and left:
            left[0].unlink()
            raise OSError("no luck")
        return {"events": len(events)}

    def postprocess(self, accumulator):
        return accumulator


@pytest.mark.parametrize("name", ["iterative", "forks"])
def test_every_attempt_is_recorded(folder, tmp_path, read_lines, name):
    (tmp_path / "times").mkdir()
    for number in range(2):
        (tmp_path / "times" / str(number)).touch()
    fileset = files.fileset(folder, DATASETS[1:])
    options = {"pool": Forks} if name == "forks" else {}
    make = futures if name == "forks" else iterative

    with roast_recorder.record(path=tmp_path / "trace.jsonl"):
        with pytest.raises(Exception, match="no luck"):
            run(make(retries=0, **options), fileset, FailsTwice(str(tmp_path / "times")))
        if name == "iterative":
            with pytest.warns(UserWarning, match="Performed attempt 1 out of 3"):
                result, _ = run(make(retries=2), fileset, FailsTwice(str(tmp_path / "times")))
            assert result == {"events": 250}

    lines = read_lines(tmp_path / "trace.jsonl")
    first = [c for c in of_kind(lines, "chunk") if c["entry_start"] == 0]
    expected = [True, True, False] if name == "iterative" else [True]
    assert ["exception" in chunk for chunk in first] == expected
    assert "no luck" in first[0]["exception"]
    assert len({chunk["key"] for chunk in first}) == 1
    assert len({chunk["run_id"] for chunk in first}) == len(first)
    assert lines[-1]["kind"] == "trailer"


# -- several recordings ----------------------------------------------------------------------


def test_one_pool_in_several_recordings(folder, tmp_path, read_lines, spools):
    fileset = files.fileset(folder, DATASETS[1:])
    paths = [tmp_path / f"{number}.jsonl" for number in range(3)]
    with Forks(2) as pool:

        def run_in_pool():
            return run(FuturesExecutor(pool=pool, status=False), fileset)[0]

        results = [run_in_pool()]
        with roast_recorder.record(path=paths[0]):
            results.append(run_in_pool())
        results.append(run_in_pool())
        with roast_recorder.record(path=paths[1]):
            inner = roast_recorder.record(path=paths[2]).start()
            results.append(run_in_pool())
            inner.stop()
            results.append(run_in_pool())

    assert results == [results[0]] * 5
    once = Counter([("TTbar_0.root", 0, 125), ("TTbar_0.root", 125, 250)])
    found = [Counter(map(entries_of, of_kind(read_lines(path), "chunk"))) for path in paths]
    assert found == [once, once + once, once]
    assert list(spools.iterdir()) == []


# -- start and stop --------------------------------------------------------------------------


def test_a_recording_is_started_once_and_can_be_stopped_repeatedly(
    folder, tmp_path, read_lines, spools
):
    fileset = files.fileset(folder, DATASETS[1:])
    recording = roast_recorder.record(path=tmp_path / "trace.jsonl")
    recording.stop()
    assert isinstance(recording, LocalRecording)
    for name in ("records_by_kind", "dropped_by_kind", "nbytes"):
        with pytest.raises(RuntimeError, match="has not been started"):
            getattr(recording, name)
    assert not (tmp_path / "trace.jsonl").exists()

    assert recording.start() is recording
    assert [stat.S_IMODE(spool.stat().st_mode) for spool in spools.iterdir()] == [0o700]
    with pytest.raises(RuntimeError, match="was started before"):
        recording.start()
    with pytest.raises(ValueError, match=r"trace\.jsonl"):
        roast_recorder.record(path=tmp_path / "trace.jsonl").start()
    assert len(list(spools.iterdir())) == 1
    run(iterative(), fileset)
    recording.stop()
    recording.stop()
    with pytest.raises(RuntimeError, match="was started before"):
        recording.start()
    run(iterative(), fileset)

    lines = read_lines(tmp_path / "trace.jsonl")
    kinds = Counter(line["kind"] for line in lines)
    assert (kinds["chunk"], kinds["trailer"]) == (2, 1)
    assert lines[0]["trace_id"] == recording.trace_id
    assert recording.records_by_kind == kinds
    assert recording.dropped_by_kind == Counter()
    assert recording.nbytes == (tmp_path / "trace.jsonl").stat().st_size
    assert list(spools.iterdir()) == []
    reference = weakref.ref(recording)
    del recording
    gc.collect()
    assert reference() is None


def test_a_trace_that_cannot_be_written_is_refused_at_the_start(tmp_path, spools, read_lines):
    missing = roast_recorder.record(path=tmp_path / "nowhere" / "trace.jsonl")
    (tmp_path / "analysis.py").write_text("precious")

    with pytest.raises(FileNotFoundError, match=r"nowhere/trace\.jsonl"):
        missing.start()
    with pytest.raises(ValueError, match=r"analysis\.py"):
        roast_recorder.record(path=tmp_path / "analysis.py").start()

    assert nothing_is_left()
    assert list(spools.iterdir()) == []
    assert (tmp_path / "analysis.py").read_text() == "precious"
    (tmp_path / "nowhere").mkdir()
    with missing:
        pass
    assert read_lines(tmp_path / "nowhere" / "trace.jsonl")[-1]["kind"] == "trailer"


def test_a_full_disk_does_not_stop_the_run(folder, tmp_path, unrecorded, caplog):
    (tmp_path / "full.jsonl").symlink_to("/dev/full")

    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        roast_recorder.record(path=tmp_path / "full.jsonl") as recording,
    ):
        result, _ = run(iterative(), files.fileset(folder, DATASETS))

    assert result == unrecorded
    assert recording.dropped_by_kind["chunk"] == CHUNKS
    assert recording.records_by_kind.total() == 0
    assert "cannot be written" in caplog.text


def test_chunks_are_in_the_file_during_the_run(folder, tmp_path):
    trace = tmp_path / "trace.jsonl"
    with roast_recorder.record(path=trace, flush_interval_seconds=0.05):
        run(EXECUTORS["forks"][0](), files.fileset(folder, DATASETS[1:]))
        until = time.monotonic() + 20
        while trace.read_text().count('"kind":"chunk"') < 2:
            assert time.monotonic() < until, "nothing was written during the run"
            time.sleep(0.02)


#: Runs in an interpreter of its own: `{folder}`, `{trace}`, and code after the run.
PROGRAM = """
import os, sys, signal, time
from pathlib import Path
from coffea.nanoevents import BaseSchema
from coffea.processor import IterativeExecutor, Runner
import roast_recorder

recording = roast_recorder.record(path={trace!r}, flush_interval_seconds=0.05).start()

def process(events):
    if events.metadata["entrystart"] == {hang_at}:
        time.sleep(600)
    return {{"events": int(len(events.nJet))}}

def run(name):
    runner = Runner(executor=IterativeExecutor(status=False), schema=BaseSchema, chunksize=100)
    runner({{"data": [{folder!r} + "/" + name]}}, treename="Events", processor_instance=process)

run({name!r})
{then}
"""


@pytest.fixture
def start(folder, tmp_path):
    """Start a program that records; return it and its folder for temporary folders."""
    started = []
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def start(then="", name="TTbar_0.root", hang_at=None):
        trace = str(tmp_path / "trace.jsonl")
        values = {"trace": trace, "name": name, "then": then, "hang_at": hang_at}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(folder=str(folder), **values)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        started.append(process)
        return process, temporary

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_an_exception_ends_the_program_and_its_trace_in_order(start, tmp_path, read_lines):
    process, temporary = start("raise ValueError('mine')")
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "ValueError: mine" in errors
    assert "roast" not in errors
    lines = read_lines(tmp_path / "trace.jsonl")
    assert sorted(chunk["entry_stop"] for chunk in of_kind(lines, "chunk")) == [125, 250]
    assert lines[-1]["kind"] == "trailer"
    assert list(temporary.iterdir()) == []


def test_a_killed_program_loses_only_the_running_chunk(start, tmp_path, read_lines):
    trace = tmp_path / "trace.jsonl"
    process, _ = start(name="DYJets_0.root", hang_at=200)
    until = time.monotonic() + 60
    while not trace.exists() or trace.read_text().count('"kind":"chunk"') < 2:
        assert time.monotonic() < until, "nothing was written"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)

    process.send_signal(signal.SIGKILL)
    process.wait()

    lines = read_lines(trace)
    assert [chunk["entry_stop"] for chunk in of_kind(lines, "chunk")] == [100, 200]
    if lines[-1]["kind"] == "trailer":
        assert lines[-1]["reason"] != "recording was stopped"


# -- the spool -------------------------------------------------------------------------------


@pytest.fixture
def spool(spools):
    spool = Spool("test")
    yield spool
    spool.remove()
    assert list(spools.iterdir()) == []


RECORDS = [["chunk", {"dataset": "ü"}]]


def test_the_spool_collects_complete_files_once_in_order(spool, monkeypatch):
    for number in (2, 1):
        path = spool.folder / f"{number}-77-1.json"
        path.write_text(json.dumps([number, RECORDS]), encoding="utf-8")
    (spool.folder / "3-77-1.incomplete").write_text('[3, [["chunk", {"da')
    spool.put(RECORDS)
    monkeypatch.setattr(local, "MAX_PENDING", 1)
    spool.put(RECORDS)

    assert list(spool.take()) == [(os.getpid(), RECORDS), (1, RECORDS), (2, RECORDS)]
    assert list(spool.take()) == []
    losses = [(loss["reason"], loss["record_kind"], loss["records"]) for loss in spool.losses()]
    assert losses == [
        ("a process of a pool could not write a chunk", "chunk", 1),
        ("a recording's buffer was full", "chunk", 1),
    ]


def test_losses_of_the_spool_are_recorded(tmp_path, spools, read_lines):
    with roast_recorder.record(path=tmp_path / "trace.jsonl"):
        [folder] = spools.iterdir()
        (folder / "1-77-1.incomplete").touch()

    [loss] = of_kind(read_lines(tmp_path / "trace.jsonl"), "loss")
    assert (loss["record_kind"], loss["records"]) == ("chunk", 1)


def test_a_carried_function_listens_until_the_recording_ends(spool):
    carried = Carried(spool, lambda *arguments, **keywords: (arguments, keywords))
    assert carried(1, 2, three=3) == ((1, 2), {"three": 3})

    copy = cloudpickle.loads(cloudpickle.dumps(carried))
    assert copy(1, 2, three=3) == ((1, 2), {"three": 3})
    assert list(here().listeners) == ["test"]
    here().listeners["test"](RECORDS)
    assert list(spool.take()) == [(os.getpid(), RECORDS)]
    spool.remove()
    here().listeners["test"](RECORDS)

    assert here().listeners == {}
