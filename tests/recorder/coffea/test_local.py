"""Recordings without a cluster: what coffea counts is what the trace holds, come what may."""

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
from roast_recorder.coffea.local import LocalRecording, Spool
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
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def count_jets(events):
    """Numbers that are whole, so that they are the same in whatever order they are added."""
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
        metadata_cache={},  # else coffea keeps the user's metadata of a file between runs
    )
    return runner(fileset, treename="Events", processor_instance=processor)


def of_kind(lines, kind):
    return [line for line in lines if line["kind"] == kind]


def entries_of(chunk):
    return Path(chunk["filename"]).name, chunk["entry_start"], chunk["entry_stop"]


def nothing_is_left():
    state = here()
    threads = [thread for thread in threading.enumerate() if thread.name == "roast-local"]
    for thread in threads:
        thread.join(10)  # one that could not begin is just ending
    alive = [thread for thread in threads if thread.is_alive()]
    return not (state.listeners or state.patched or state.carriers or alive)


@pytest.fixture(autouse=True)
def leaves_nothing():
    assert nothing_is_left()
    yield
    assert nothing_is_left()


# -- the ways of running ---------------------------------------------------------------------


class Forks(concurrent.futures.ProcessPoolExecutor):
    """Processes that have all that this one has."""

    def __init__(self, max_workers):
        super().__init__(max_workers, mp_context=multiprocessing.get_context("fork"))


#: Executors, how many processes they take at most, and whether this one is among them.
EXECUTORS = {
    "iterative": (lambda: IterativeExecutor(status=False), 1, True),
    "processes": (lambda: FuturesExecutor(workers=2, status=False), 2, False),
    "processes, uncompressed": (
        lambda: FuturesExecutor(workers=2, status=False, compression=None),
        2,
        False,
    ),
    "forks": (lambda: FuturesExecutor(workers=2, status=False, pool=Forks), 2, False),
    "forks, uncompressed": (
        lambda: FuturesExecutor(workers=2, status=False, pool=Forks, compression=None),
        2,
        False,
    ),
    "threads": (
        lambda: FuturesExecutor(
            workers=2, status=False, pool=concurrent.futures.ThreadPoolExecutor
        ),
        1,
        True,
    ),
}
PROCESSORS = {"function": count_jets, "ProcessorABC": JetCounter()}


@pytest.fixture(scope="module")
def unrecorded(folder):
    result, _ = run(IterativeExecutor(status=False), files.fileset(folder, DATASETS))
    return result


@pytest.fixture(
    scope="module",
    params=[
        ("iterative", "function"),
        ("iterative", "ProcessorABC"),
        ("processes", "function"),
        ("processes, uncompressed", "ProcessorABC"),
        ("forks", "ProcessorABC"),
        ("forks, uncompressed", "function"),
        ("threads", "ProcessorABC"),
    ],
    ids=", ".join,
)
def recorded(request, folder, tmp_path_factory):
    """An executor's name, the trace, and what coffea gave."""
    name, processor = request.param
    trace = tmp_path_factory.mktemp("local") / "trace.jsonl.zst"
    with roast_recorder.record(path=trace):
        result, report = run(
            EXECUTORS[name][0](), files.fileset(folder, DATASETS), PROCESSORS[processor]
        )
    return name, trace, result, report


def test_the_result_is_that_of_the_unrecorded_run(recorded, unrecorded):
    _, _, result, _ = recorded

    assert unrecorded["TTbar"]["events"] == 250
    assert result == unrecorded


def test_the_sums_over_chunks_are_coffeas_own(recorded, read_lines):
    _, trace, _, report = recorded
    chunks = of_kind(read_lines(trace), "chunk")

    assert len(chunks) == report["chunks"] == CHUNKS
    measured = [chunk["measured"] for chunk in chunks]
    assert sum(chunk["events"] for chunk in measured) == report["entries"] == 850
    assert sum(chunk["bytes_read"] for chunk in measured) == report["bytesread"]
    assert {name for chunk in measured for name in chunk["columns"]} == set(report["columns"])
    assert len(report["columns"]) > 1


def test_the_chunks_tile_the_files(recorded, read_lines):
    _, trace, _, _ = recorded
    lines = read_lines(trace)
    chunks = of_kind(lines, "chunk")

    names = [f"{d.name}_{part}.root" for d in DATASETS for part in range(d.files)]
    tiled = Counter(name for name, *_ in map(entries_of, chunks))
    assert set(tiled) == set(names)
    for name in names:
        edges = sorted(entries_of(chunk)[1:] for chunk in chunks if name in chunk["filename"])
        assert edges[0][0] == 0
        assert all(before[1] == after[0] for before, after in pairwise(edges))
    assert all(Path(c["filename"]).name.startswith(c["dataset"]) for c in chunks)
    # Each has a key of its own, and each attempt a number.
    assert len({chunk["key"] for chunk in chunks}) == len(chunks)
    assert [chunk["run_id"] for chunk in chunks] == list(range(1, len(chunks) + 1))


def test_each_chunk_has_its_sections(recorded, read_lines):
    _, trace, _, _ = recorded
    lines = read_lines(trace)
    sections = of_kind(lines, "section")

    assert len(sections) == 2 * CHUNKS
    for chunk in of_kind(lines, "chunk"):
        own = [part for part in sections if part["run_id"] == chunk["run_id"]]
        assert [part["name"] for part in own] == ["jets", "momenta"]
        for part in own:
            assert all(part[name] == chunk[name] for name in ("key", "worker", "thread"))


def test_each_process_that_worked_is_a_worker(recorded, read_lines):
    name, trace, _, _ = recorded
    _, most, here_too = EXECUTORS[name]
    lines = read_lines(trace)
    workers = of_kind(lines, "worker_added")

    assert 1 <= len(workers) <= most
    assert {line["worker"] for line in workers} == {
        chunk["worker"] for chunk in of_kind(lines, "chunk")
    }
    assert all(line["worker"] == f"pid:{line['pid']}" for line in workers)
    assert (os.getpid() in {line["pid"] for line in workers}) == here_too


def test_every_line_is_valid_and_the_end_is_in_order(recorded, read_lines):
    _, trace, _, _ = recorded
    lines = read_lines(trace)
    validator = jsonschema.Draft202012Validator(json_schema())

    for line in lines:
        validator.validate(line)
    assert {line["kind"] for line in lines} == {
        "header", "environment", "worker_added", "chunk", "section", "trailer"
    }  # fmt: skip
    assert lines[-1]["reason"] == "recording was stopped"
    assert lines[-1]["dropped_by_kind"] == {}


# -- what the analysis makes of it -----------------------------------------------------------


def test_the_analysis_says_of_chunks_what_coffea_says(recorded):
    pytest.importorskip("duckdb")
    from roast_analyze import Trace

    name, path, _, report = recorded
    with Trace(path) as trace:
        [sums] = trace.sql(
            "SELECT count(*), count(*) FILTER (outcome = 'memory' AND attempt = 1),"
            " sum(events)::BIGINT, sum(bytes_read)::BIGINT FROM chunks"
        ).fetchall()
        assert sums == (CHUNKS, CHUNKS, report["entries"], report["bytesread"])
        columns = trace.sql("SELECT DISTINCT unnest(columns) FROM chunks").fetchall()
        assert {column for (column,) in columns} == set(report["columns"])
        [run] = trace.view("run").to_dicts()
        assert (run["chunks"], run["events"], run["tasks"]) == (CHUNKS, 850, 0)
        assert 1 <= run["workers"] <= EXECUTORS[name][1]
        assert trace.sql(
            "SELECT dataset, chunks, events FROM datasets ORDER BY 1"
        ).fetchall() == [
            ("DYJets", 6, 600),
            ("TTbar", 2, 250),
        ]
        assert trace.sql("FROM loss").fetchall() == []


@pytest.fixture
def words(folder, tmp_path, capsys, monkeypatch):
    """What the commands say of a run, or of none: the summary, and the report's text."""
    pytest.importorskip("duckdb")
    from roast_analyze.cli import main

    def words(*executors):
        trace = tmp_path / "trace.jsonl"
        with roast_recorder.record(path=trace):
            for executor in executors:
                run(executor, files.fileset(folder, DATASETS))
        monkeypatch.setenv("COLUMNS", "120")
        capsys.readouterr()
        assert (
            main([str(trace)])
            == main([str(trace), "--html"])
            == main(["check", str(trace)])
            == 0
        )
        said = capsys.readouterr()
        assert said.err == ""
        page = (tmp_path / "trace.html").read_text()
        return said.out, re.sub(r"(<[^>]+>|\s)+", " ", page)

    return words


def test_summary_and_report_of_a_run_without_tasks(words):
    said, report = words(EXECUTORS["forks"][0]())

    assert "8 done in 8 attempts" in said
    assert "850, " in said
    assert "Tasks " not in said
    assert "trace.jsonl: whole" in said
    assert "8 chunks, 850 events" in report
    assert "Without a cluster, chunks are no tasks" in report


def test_summary_and_report_of_nothing_at_all(words):
    said, report = words()

    assert "Chunks" not in said
    assert "trace.jsonl: whole" in said
    assert "No task was seen while this was recorded" in report


# -- what else is told -----------------------------------------------------------------------


def test_metadata_is_told_alike_of_a_pool_and_of_this_process(folder, tmp_path, read_lines):
    metadata = {"year": 2018, "weight": np.float64(0.5), ("a", 1): {"is": {"mc"}}}
    fileset = {
        "TTbar": {"files": [str(folder / "TTbar_0.root")], "metadata": metadata},
    }

    told = {}
    for name in ("iterative", "forks"):
        trace = tmp_path / f"{name}.jsonl"
        with roast_recorder.record(path=trace):
            run(EXECUTORS[name][0](), fileset)
        told[name] = [chunk["usermeta"] for chunk in of_kind(read_lines(trace), "chunk")]

    expected = {"year": 2018, "weight": 0.5, "('a', 1)": {"is": ["mc"]}}
    assert told == {"iterative": [expected] * 2, "forks": [expected] * 2}


@pytest.mark.parametrize("name", ["iterative", "forks"])
def test_secrets_do_not_reach_the_trace(folder, tmp_path, read_lines, name, unrecorded):
    secret, word = "ghp_" + "a1B2c3D4e5" * 4, "hunter2hunter2"
    (tmp_path / secret).mkdir()
    path = tmp_path / secret / "TTbar_0.root"
    path.symlink_to(folder / "TTbar_0.root")
    metadata = {"year": 2018, "password": word, "from": f"root://me:{word}@site//f.root"}
    fileset = {"TTbar": {"files": [str(path)], "metadata": metadata}}

    def fails(_):
        with section("fails"):
            raise ValueError(f"no entry with password={word!r}")

    with roast_recorder.record(path=tmp_path / "trace.jsonl"):
        result, _ = run(EXECUTORS[name][0](), fileset)
        with pytest.raises(Exception, match=word):  # the user still sees it
            run(
                EXECUTORS[name][0](),
                fileset,
                fails,
            )

    assert result["TTbar"] == unrecorded["TTbar"]
    written = (tmp_path / "trace.jsonl").read_text()
    assert secret not in written
    assert word not in written
    chunks = of_kind(read_lines(tmp_path / "trace.jsonl"), "chunk")
    assert {chunk["usermeta"]["password"] for chunk in chunks} == {"<redacted>"}
    assert {chunk["usermeta"]["year"] for chunk in chunks} == {2018}
    assert {Path(chunk["filename"]).name for chunk in chunks} == {"TTbar_0.root"}


def test_only_kinds_that_are_wanted_are_written(folder, tmp_path, read_lines):
    fileset = files.fileset(folder, DATASETS[1:])
    wanted = {"chunks": ("chunk",), "sections": ("section",), "nothing": ()}
    for name, kinds in wanted.items():
        with roast_recorder.record(path=tmp_path / f"{name}.jsonl", kinds=kinds):
            run(IterativeExecutor(status=False), fileset)
    with roast_recorder.record(path=tmp_path / "unmeasured.jsonl", measure_chunks=False):
        assert here().listeners == {}
        run(IterativeExecutor(status=False), fileset)

    def kinds_in(name):
        lines = read_lines(tmp_path / f"{name}.jsonl")
        return {line["kind"] for line in lines} & {"chunk", "section", "environment"}

    assert kinds_in("chunks") == {"chunk"}
    assert kinds_in("sections") == {"section"}
    assert kinds_in("nothing") == set()
    assert kinds_in("unmeasured") == {"environment"}


def test_parts_of_no_chunk_are_told_as_well(tmp_path, read_lines):
    with roast_recorder.record(path=tmp_path / "trace.jsonl"), section("merging"):
        pass

    [part] = of_kind(read_lines(tmp_path / "trace.jsonl"), "section")
    assert (part["name"], part["key"]) == ("merging", "(no chunk)")
    assert part["worker"] == f"pid:{os.getpid()}"
    assert "run_id" not in part


# -- exceptions and attempts -----------------------------------------------------------------


class FailsOn(ProcessorABC):
    """Raises for one dataset: as often as there are files to be taken away, or always."""

    def __init__(self, dataset, times=None):
        self.dataset = dataset
        self.times = times

    def process(self, events):
        name = events.metadata["dataset"]
        first = events.metadata["entrystart"] == 0
        if name == self.dataset and first and (self.times is None or self._once_more()):
            raise OSError(f"no luck with {name}")
        return {"events": len(events)}

    def _once_more(self):
        left = sorted(Path(self.times).iterdir())
        if left:
            left[0].unlink()
        return bool(left)

    def postprocess(self, accumulator):
        return accumulator


@pytest.mark.parametrize("name", ["iterative", "forks"])
def test_an_exception_is_that_of_the_unrecorded_run_and_told(
    folder, tmp_path, read_lines, name
):
    fileset = files.fileset(folder, DATASETS)

    def raised():
        executor = EXECUTORS[name][0]()
        executor.retries = 0
        with pytest.raises(Exception, match="no luck with TTbar") as caught:
            run(executor, fileset, FailsOn("TTbar"))
        return caught.value

    unrecorded = raised()
    with roast_recorder.record(path=tmp_path / "trace.jsonl"):
        recorded = raised()

    assert (type(recorded), str(recorded)) == (type(unrecorded), str(unrecorded))
    lines = read_lines(tmp_path / "trace.jsonl")
    failed = [chunk for chunk in of_kind(lines, "chunk") if "exception" in chunk]
    assert [entries_of(chunk)[:2] for chunk in failed] == [("TTbar_0.root", 0)]
    assert "no luck with TTbar" in failed[0]["exception"]
    assert lines[-1]["kind"] == "trailer"


def test_each_attempt_is_told_and_the_last_one_counts(folder, tmp_path, read_lines):
    pytest.importorskip("duckdb")
    from roast_analyze import Trace

    times = tmp_path / "times"
    times.mkdir()
    for number in range(2):
        (times / str(number)).touch()
    executor = IterativeExecutor(status=False, retries=2)

    with (
        pytest.warns(UserWarning, match="Performed attempt 2 out of 3"),
        roast_recorder.record(path=tmp_path / "trace.jsonl"),
    ):
        result, report = run(
            executor, files.fileset(folder, DATASETS[1:]), FailsOn("TTbar", str(times))
        )

    assert result == {"events": 250}
    with Trace(tmp_path / "trace.jsonl") as trace:
        attempts = trace.sql(
            "SELECT attempt, outcome, exception IS NULL, events FROM chunks"
            " WHERE entry_start = 0 ORDER BY attempt"
        ).fetchall()
        [(chunks, events)] = trace.sql("SELECT chunks, events FROM run").fetchall()
    lines = read_lines(tmp_path / "trace.jsonl")
    assert [row[:3] for row in attempts] == [
        (1, "retried", False),
        (2, "retried", False),
        (3, "memory", True),
    ]
    assert (chunks, events) == (report["chunks"], report["entries"]) == (2, 250)
    assert len({c["key"] for c in of_kind(lines, "chunk")}) == 2


# -- several recordings ----------------------------------------------------------------------


def test_the_same_pool_can_be_recorded_again_and_again(folder, tmp_path, read_lines, spools):
    fileset = files.fileset(folder, DATASETS[1:])
    found = []
    with Forks(2) as pool:

        def run_in_pool():
            return run(FuturesExecutor(pool=pool, status=False), fileset)[0]

        results = [run_in_pool()]
        for number in range(2):
            trace = tmp_path / f"{number}.jsonl"
            with roast_recorder.record(path=trace):
                results.append(run_in_pool())
            results.append(run_in_pool())
            found.append(sorted(map(entries_of, of_kind(read_lines(trace), "chunk"))))

    assert found == [[("TTbar_0.root", a, b) for a, b in ((0, 125), (125, 250))]] * 2
    assert results == [results[0]] * 5
    assert list(spools.iterdir()) == []


def test_two_recordings_at_once_hear_all_that_is_theirs(folder, tmp_path, read_lines):
    everything, some = files.fileset(folder, DATASETS), files.fileset(folder, DATASETS[1:])
    for name in ("iterative", "forks"):
        outer, inner = tmp_path / f"outer {name}.jsonl", tmp_path / f"inner {name}.jsonl"
        with roast_recorder.record(path=outer):
            recording = roast_recorder.record(path=inner).start()
            run(EXECUTORS[name][0](), some)
            recording.stop()
            run(EXECUTORS[name][0](), everything)

        in_inner = of_kind(read_lines(inner), "chunk")
        in_outer = of_kind(read_lines(outer), "chunk")
        assert Counter(map(entries_of, in_inner)) == Counter(map(entries_of, in_outer[:2]))
        assert (len(in_inner), len(in_outer)) == (2, 2 + CHUNKS)


# -- start and stop --------------------------------------------------------------------------


def test_what_is_not_started_can_be_stopped_but_not_asked(tmp_path):
    recording = roast_recorder.record(path=tmp_path / "trace.jsonl")

    recording.stop()

    assert isinstance(recording, LocalRecording)
    for name in ("records_by_kind", "dropped_by_kind", "nbytes"):
        with pytest.raises(RuntimeError, match="has not been started"):
            getattr(recording, name)
    assert not (tmp_path / "trace.jsonl").exists()


def test_it_starts_once_and_stops_as_often_as_one_likes(folder, tmp_path, read_lines, spools):
    recording = roast_recorder.record(path=tmp_path / "trace.jsonl")

    assert recording.start() is recording
    assert [stat.S_IMODE(spool.stat().st_mode) for spool in spools.iterdir()] == [0o700]
    with pytest.raises(RuntimeError, match="was started before"):
        recording.start()
    run(IterativeExecutor(status=False), files.fileset(folder, DATASETS[1:]))
    recording.stop()
    recording.stop()
    with pytest.raises(RuntimeError, match="was started before"):
        recording.start()
    run(IterativeExecutor(status=False), files.fileset(folder, DATASETS[1:]))

    lines = read_lines(tmp_path / "trace.jsonl")
    kinds = Counter(line["kind"] for line in lines)
    assert (kinds["chunk"], kinds["trailer"]) == (2, 1)
    assert lines[0]["trace_id"] == recording.trace_id
    assert recording.records_by_kind == kinds
    assert recording.dropped_by_kind == Counter()
    assert recording.nbytes == (tmp_path / "trace.jsonl").stat().st_size
    assert list(spools.iterdir()) == []


def test_nothing_holds_a_recording_that_has_been_stopped(tmp_path):
    recording = roast_recorder.record(path=tmp_path / "trace.jsonl").start()
    recording.stop()

    held = weakref.ref(recording)
    del recording
    gc.collect()

    assert held() is None


def test_a_trace_that_cannot_be_written_is_said_before_the_run(tmp_path, spools, read_lines):
    missing = roast_recorder.record(path=tmp_path / "nowhere" / "trace.jsonl")
    (tmp_path / "analysis.py").write_text("precious")

    with pytest.raises(FileNotFoundError, match=r"nowhere/trace\.jsonl"):
        missing.start()
    with pytest.raises(ValueError, match=r"analysis\.py"):
        roast_recorder.record(path=tmp_path / "analysis.py").start()

    assert nothing_is_left()
    assert list(spools.iterdir()) == []
    assert (tmp_path / "analysis.py").read_text() == "precious"
    # Once there is a folder, it can begin.
    (tmp_path / "nowhere").mkdir()
    with missing:
        pass
    assert read_lines(tmp_path / "nowhere" / "trace.jsonl")[-1]["kind"] == "trailer"


def test_two_recordings_into_one_file_are_refused(tmp_path, read_lines, spools):
    with roast_recorder.record(path=tmp_path / "trace.jsonl"):
        with pytest.raises(ValueError, match="is being recorded to"):
            roast_recorder.record(path=tmp_path / "trace.jsonl").start()
        assert len(list(spools.iterdir())) == 1

    assert read_lines(tmp_path / "trace.jsonl")[-1]["kind"] == "trailer"


def test_a_disk_that_is_full_does_not_stop_the_run(folder, tmp_path, unrecorded, caplog):
    (tmp_path / "full.jsonl").symlink_to("/dev/full")

    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        roast_recorder.record(path=tmp_path / "full.jsonl") as recording,
    ):
        result, _ = run(IterativeExecutor(status=False), files.fileset(folder, DATASETS))

    assert result == unrecorded
    assert recording.dropped_by_kind["chunk"] == CHUNKS
    assert recording.records_by_kind.total() == 0
    assert "cannot be written" in caplog.text


def test_a_folder_of_segments_is_a_trace_too(folder, tmp_path, read_lines):
    with roast_recorder.record(path=tmp_path / "trace"):
        run(IterativeExecutor(status=False), files.fileset(folder, DATASETS))

    [segment] = (tmp_path / "trace").iterdir()
    assert len(of_kind(read_lines(segment), "chunk")) == CHUNKS


def test_facts_are_in_the_file_while_the_run_goes_on(folder, tmp_path):
    trace = tmp_path / "trace.jsonl"
    with roast_recorder.record(path=trace, flush_interval_seconds=0.05):
        run(EXECUTORS["forks"][0](), files.fileset(folder, DATASETS[1:]))
        until = time.monotonic() + 20
        while trace.read_text().count('"kind":"chunk"') < 2:
            assert time.monotonic() < until, "nothing was written during the run"
            time.sleep(0.02)


# -- ends that nobody asked for --------------------------------------------------------------

#: Runs in an interpreter of its own: {trace}, {folder}, and what is done after the run.
PROGRAM = """
import os, sys, signal, time, warnings
from pathlib import Path
from coffea.nanoevents import BaseSchema
from coffea.processor import FuturesExecutor, IterativeExecutor, Runner
import roast_recorder

folder = Path({folder!r})
recording = roast_recorder.record(path={trace!r}, flush_interval_seconds=0.05).start()

def process(events):
    at = events.metadata["entrystart"]
    if at == {hang_at}:
        time.sleep(600)
    return {{"events": int(len(events.nJet))}}

def run(name):
    executor = IterativeExecutor(status=False)
    runner = Runner(executor=executor, schema=BaseSchema, chunksize=100)
    files = {{"data": [str(folder / name)]}}
    out = runner(files, treename="Events", processor_instance=process)
    print("\\n", out["events"], flush=True)

run({name!r})
{then}
"""


@pytest.fixture
def start(folder, tmp_path):
    """Start a program that records; give it, and where its temporary folders are."""
    started = []
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def start(then="", name="TTbar_0.root", hang_at=None):
        trace = str(tmp_path / "trace.jsonl")
        program = PROGRAM.format(
            folder=str(folder), trace=trace, name=name, then=then, hang_at=hang_at
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program],
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


@pytest.mark.parametrize(
    ("then", "code", "complaint"),
    [
        ("", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise ValueError('mine')", 1, "ValueError: mine"),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2, "KeyboardInterrupt"),
    ],
    ids=["its end", "exit", "exception", "Ctrl-C"],
)
def test_a_program_that_ends_without_stopping_ends_its_trace_in_order(
    start, tmp_path, read_lines, then, code, complaint
):
    process, temporary = start(then)
    output, errors = process.communicate(timeout=60)

    assert (process.returncode, output.split()[-1]) == (code, "250")
    assert complaint in errors
    assert "roast" not in errors
    lines = read_lines(tmp_path / "trace.jsonl")
    assert sorted(chunk["entry_stop"] for chunk in of_kind(lines, "chunk")) == [125, 250]
    assert lines[-1]["kind"] == "trailer"
    assert list(temporary.iterdir()) == []


def test_kill_9_costs_what_was_not_yet_in_the_file_and_no_more(start, tmp_path, read_lines):
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
    pytest.importorskip("duckdb")
    from roast_analyze import Trace

    with Trace(trace) as opened:
        assert opened.sql("SELECT chunks, events FROM run").fetchall() == [(2, 200)]


def test_what_a_forked_child_does_is_told_and_its_end_ends_nothing(start, tmp_path, read_lines):
    process, temporary = start(
        """
child = os.fork()
if child == 0:
    run("DYJets_0.root")
    recording.stop()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
run("DYJets_1.root")
print(child)
"""
    )
    output, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")
    *_, child = output.split()
    lines = read_lines(tmp_path / "trace.jsonl")
    by_file = {
        name: {
            chunk["worker"] for chunk in of_kind(lines, "chunk") if name in chunk["filename"]
        }
        for name in ("TTbar_0", "DYJets_0", "DYJets_1")
    }
    parent, its_child = {f"pid:{process.pid}"}, {f"pid:{child}"}
    assert by_file == {"TTbar_0": parent, "DYJets_0": its_child, "DYJets_1": parent}
    assert [line["kind"] for line in lines].count("trailer") == 1
    assert lines[-1]["kind"] == "trailer"
    assert list(temporary.iterdir()) == []


# -- the spool -------------------------------------------------------------------------------


@pytest.fixture
def spool(spools):
    spool = Spool("test")
    assert len(list(spools.iterdir())) == 1
    yield spool
    spool.remove()
    assert list(spools.iterdir()) == []


def of_another_process(spools, pid=1):
    [folder] = spools.iterdir()
    return folder / f"{pid}.jsonl"


def test_a_line_that_is_being_written_is_taken_when_it_is_whole(spool, spools):
    line = json.dumps({"pid": 1, "chunk": "ü"}) + "\n"
    file = of_another_process(spools)

    file.write_bytes(line.encode() + line.encode()[:-5])
    assert list(spool.take()) == [{"pid": 1, "chunk": "ü"}]
    assert list(spool.take()) == []
    file.write_bytes(2 * line.encode())
    assert list(spool.take()) == [{"pid": 1, "chunk": "ü"}]
    assert list(spool.take()) == []
    assert spool.take_lost() == 0


def test_a_line_of_which_a_part_is_missing_costs_no_other_and_is_counted(spool, spools):
    file = of_another_process(spools)

    file.write_text('{"pid": 1, "chu\n{"pid": 2}\n')

    assert list(spool.take()) == [{"pid": 2}]
    assert [spool.take_lost(), spool.take_lost()] == [1, 0]


def test_what_could_not_be_written_down_is_said_in_the_trace(tmp_path, spools, read_lines):
    with roast_recorder.record(path=tmp_path / "trace.jsonl"):
        of_another_process(spools).write_text('{"pid": 1, "chu\n')

    [loss] = of_kind(read_lines(tmp_path / "trace.jsonl"), "loss")
    assert (loss["record_kind"], loss["records"]) == ("chunk", 1)
    assert "a process of a pool could not write down" in loss["reason"]


def test_what_is_told_after_the_end_is_told_to_nobody(spool):
    there = cloudpickle.loads(cloudpickle.dumps(spool.carry(len)))
    assert there([1, 2]) == 2
    assert list(here().listeners) == ["test"]

    spool.remove()
    for listener in list(here().listeners.values()):
        listener({"chunk": None, "sections": [], "more_sections": 0})

    assert here().listeners == {}


def test_a_function_that_is_carried_is_called_with_all_that_it_takes(spool):
    carried = spool.carry(lambda *arguments, **keywords: (arguments, keywords))

    assert carried(1, 2, three=3) == ((1, 2), {"three": 3})
