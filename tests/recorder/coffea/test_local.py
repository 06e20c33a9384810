"""Recordings without a cluster agree with the counts of coffea itself."""

import gc
import json
import logging
import multiprocessing
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import cloudpickle
import jsonschema
import pytest

import roast_recorder
from roast_recorder import section
from roast_recorder.coffea import local
from roast_recorder.coffea.local import LocalRecording, Spool
from roast_recorder.process_state import here
from roast_schemas.describe import json_schema

pytest.importorskip("coffea")
import awkward as ak
import numpy as np
from coffea.nanoevents import BaseSchema
from coffea.processor import FuturesExecutor, IterativeExecutor, ProcessorABC, Runner

#: Chunks of the first file.
CHUNKS = [("a.root", 0, 125), ("a.root", 125, 250)]


@pytest.fixture(scope="module", autouse=True)
def by_value():
    """Pickle this module by value, because processes of a pool cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def nothing_is_left():
    threads = [thread.name for thread in threading.enumerate()]
    state = here()
    return not (state.listeners or state.patched or state.carriers or "roast-local" in threads)


@pytest.fixture(autouse=True)
def spools(tmp_path, monkeypatch):
    """Redirect temporary folders; check that nothing of the recorder is left at the end."""
    assert nothing_is_left()
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert nothing_is_left()
    assert not [path for path in folder.iterdir() if path.name.startswith("roast-")]


@pytest.fixture
def fileset(folder):
    return {"DY": [str(folder / "a.root")]}


def count(events):
    with section("jets"):
        jets = int(ak.sum(events.nJet))
    with section("weights"):
        weight = int(ak.sum(events.weight))
    return {events.metadata["dataset"]: {"events": len(events), "jets": jets, "w": weight}}


class Count(ProcessorABC):
    def process(self, events):
        return count(events)

    def postprocess(self, accumulator):
        return accumulator


def run(executor, fileset, processor=count):
    """Run an analysis as any coffea user would."""
    options = {"schema": BaseSchema, "chunksize": 100, "savemetrics": True}
    # coffea's default cache would keep metadata of files between tests.
    runner = Runner(executor=executor, metadata_cache={}, **options)
    return runner(fileset, treename="Events", processor_instance=processor)


def entries_of(chunk):
    return Path(chunk["filename"]).name, chunk["entry_start"], chunk["entry_stop"]


# -- executors -------------------------------------------------------------------------------


class Forks(ProcessPoolExecutor):
    """A pool of forked processes, which inherit listeners, unlike those of loky."""

    def __init__(self, max_workers):
        super().__init__(max_workers, mp_context=multiprocessing.get_context("fork"))


def iterative(**options):
    return IterativeExecutor(status=False, **options)


def futures(**options):
    return FuturesExecutor(status=False, **options)


#: Executor, processor, and whether this process does the work.
EXECUTORS = {
    "iterative": (iterative(retries=0), count, True),
    "loky": (futures(), Count(), False),
    "forks": (futures(workers=2, pool=Forks, compression=None), count, False),
    "threads": (futures(workers=2, pool=ThreadPoolExecutor), Count(), True),
}


@pytest.mark.parametrize(
    "name",
    [
        "iterative",
        "forks",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("loky", "threads")),
    ],
)
def test_a_run_of_each_executor(folder, tmp_path, read_lines, name):
    executor, processor, is_here = EXECUTORS[name]
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    trace = tmp_path / "trace.jsonl.zst"
    with roast_recorder.record(path=trace):
        result, report = run(executor, fileset, processor)

    assert result == run(iterative(), fileset)[0]
    lines = read_lines(trace)
    kinds = {line["kind"] for line in lines}
    assert kinds == {
        "header", "environment", "worker_added", "chunk", "section", "trailer"
    }  # fmt: skip
    chunks, sections, workers = (
        [line for line in lines if line["kind"] == kind]
        for kind in ("chunk", "section", "worker_added")
    )
    # coffea's own report
    measured = [chunk["measured"] for chunk in chunks]
    assert len(chunks) == report["chunks"]
    assert sum(chunk["events"] for chunk in measured) == report["entries"] == 500
    assert sum(chunk["bytes_read"] for chunk in measured) == report["bytesread"] > 0
    assert {tuple(chunk["columns"]) for chunk in measured} == {("nJet-data", "weight-data")}
    assert set(report["columns"]) == {"nJet-data", "weight-data"}
    # Each chunk has a key and a number.
    assert sorted((chunk["dataset"], *entries_of(chunk)) for chunk in chunks) == [
        (dataset, file, *entries)
        for dataset, file in (("DY", "a.root"), ("TT", "b.root"))
        for _, *entries in CHUNKS
    ]
    assert len({chunk["key"] for chunk in chunks}) == 4
    assert [chunk["run_id"] for chunk in chunks] == [1, 2, 3, 4]
    # Sections belong to their chunks, and chunks to the processes that worked.
    about = ("key", "run_id", "worker", "thread")
    assert Counter((part["name"], *map(part.get, about)) for part in sections) == Counter(
        (name, *map(chunk.get, about)) for chunk in chunks for name in ("jets", "weights")
    )
    assert 1 <= len(workers) <= 2
    assert {line["worker"] for line in workers} == {chunk["worker"] for chunk in chunks}
    for line in workers:
        assert line["worker"] == f"pid:{line['pid']}"
        assert (line["pid"] == os.getpid()) == is_here
    # The trace is complete.
    validator = jsonschema.Draft202012Validator(json_schema())
    for line in lines:
        validator.validate(line)
    assert (lines[-1]["reason"], lines[-1]["dropped_by_kind"]) == ("recording was stopped", {})


def test_the_views_of_a_run_without_a_cluster(fileset, trace):
    pytest.importorskip("duckdb")
    from roast_analyze import Trace

    with roast_recorder.record(path=trace):
        _, report = run(iterative(), fileset)

    with Trace(trace) as opened:
        [run_info] = opened.view("run").to_dicts()
        assert (run_info["chunks"], run_info["events"], run_info["tasks"]) == (2, 250, 0)
        datasets = opened.sql("SELECT dataset, chunks, events, bytes_read FROM datasets")
        assert datasets.fetchall() == [("DY", 2, 250, report["bytesread"])]
        assert opened.rows("FROM loss") == []


# -- contents --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iterative", "forks"])
def test_metadata_is_recorded_without_secrets(folder, tmp_path, trace, by_kind, name):
    secret, word = "ghp_" + "a1B2c3D4e5" * 4, "hunter2hunter2"
    (tmp_path / secret).mkdir()
    path = tmp_path / secret / "a.root"
    path.symlink_to(folder / "a.root")
    metadata = {"year": np.float64(2018), ("a", 1): {"is": {"mc"}}, "password": word}
    fileset = {"DY": {"files": [str(path)], "metadata": metadata}}

    def fails(_):
        with section("fails"):
            raise ValueError(f"no entry with password={word!r}")

    with (
        pytest.raises(Exception, match=word),  # the user still sees it
        roast_recorder.record(path=trace),
    ):
        run(EXECUTORS[name][0], fileset, fails)

    assert not [text for text in (secret, word) if text in trace.read_text()]
    chunks = by_kind(trace)["chunk"]
    [password] = {chunk["usermeta"]["password"] for chunk in chunks}
    assert password.startswith("<redacted:")
    usermeta = {"year": 2018, "('a', 1)": {"is": ["mc"]}, "password": password}
    assert [chunk["usermeta"] for chunk in chunks] == [usermeta] * len(chunks)
    assert all("ValueError" in chunk["exception"] for chunk in chunks)


def test_branches_read_in_a_thread_of_the_processor(fileset, trace, by_kind):
    def read(events):
        with ThreadPoolExecutor(1) as pool:
            return {"jets": pool.submit(lambda: int(ak.sum(events.nJet))).result()}

    with roast_recorder.record(path=trace):
        run(iterative(), fileset, read)

    measured = [chunk["measured"] for chunk in by_kind(trace)["chunk"]]
    assert [[part["branch"] for part in m["branches"]] for m in measured] == [["nJet"]] * 2
    assert all(0 < m["branches"][0]["compressed_bytes"] <= m["bytes_read"] for m in measured)


def test_chunks_of_a_file_with_a_secret_have_different_keys(folder, tmp_path, trace, by_kind):
    path = tmp_path / "a.root?authz=hunter2"
    path.symlink_to(folder / "a.root")

    with roast_recorder.record(path=trace):
        run(iterative(), {"DY": [str(path)]})

    chunks = by_kind(trace)["chunk"]
    hidden = chunks[0]["filename"]
    assert hidden.startswith(f"{tmp_path}/a.root?authz=<redacted:")
    assert [chunk["key"] for chunk in chunks] == [
        str(("DY", hidden, "Events", 0, 125)),
        str(("DY", hidden, "Events", 125, 250)),
    ]


def test_only_the_kinds_in_the_settings_are_recorded(fileset, tmp_path, read_lines):
    settings = {
        "chunk": {"kinds": ("chunk",)},
        "section": {"kinds": ("section",)},
        "environment": {"measure_chunks": False},
    }
    for kind, options in settings.items():
        path = tmp_path / f"trace-{kind}.jsonl"
        with roast_recorder.record(path=path, **options):
            assert bool(here().listeners) == ("measure_chunks" not in options)
            run(iterative(), fileset)
        kinds = {line["kind"] for line in read_lines(path)}
        assert kinds & {"chunk", "section", "environment"} == {kind}


def test_every_attempt_is_recorded(fileset, tmp_path, trace, by_kind):
    mark = tmp_path / "mark"

    def fails_once(events):
        if events.metadata["entrystart"] == 0 and not mark.exists():
            mark.touch()
            raise OSError("no luck")
        return {"events": len(events)}

    with (
        roast_recorder.record(path=trace),
        pytest.warns(UserWarning, match="Performed attempt 1 out of 3"),
    ):
        result, _ = run(iterative(retries=2), fileset, fails_once)

    assert result == {"events": 250}
    failed, first, _ = by_kind(trace)["chunk"]
    assert ("no luck" in failed["exception"], "exception" in first) == (True, False)
    assert failed["key"] == first["key"]
    assert failed["run_id"] != first["run_id"]


def test_one_pool_in_several_recordings(fileset, tmp_path, by_kind):
    paths = [tmp_path / f"{number}.jsonl" for number in range(3)]
    with Forks(2) as pool:

        def run_in_pool():
            return run(futures(pool=pool), fileset)[0]

        results = [run_in_pool()]
        with roast_recorder.record(path=paths[0]):
            results.append(run_in_pool())
        results.append(run_in_pool())
        with roast_recorder.record(path=paths[1]):
            with roast_recorder.record(path=paths[2]):
                results.append(run_in_pool())
            results.append(run_in_pool())

    assert results == [results[0]] * 5
    found = [sorted(map(entries_of, by_kind(path)["chunk"])) for path in paths]
    assert found == [CHUNKS, sorted(2 * CHUNKS), CHUNKS]


def test_a_pool_that_a_function_creates(fileset, trace, by_kind):
    pools = [Forks(1), Forks(1)]  # for the metadata and the chunks
    for pool in pools:
        pool.submit(int).result()  # forked before the recording

    with roast_recorder.record(path=trace):
        run(futures(pool=lambda max_workers: pools.pop()), fileset)  # noqa: ARG005

    assert sorted(map(entries_of, by_kind(trace)["chunk"])) == CHUNKS


# -- start and stop --------------------------------------------------------------------------


def test_a_recording_is_started_once_and_can_be_stopped_repeatedly(trace, read_lines, spools):
    recording = roast_recorder.record(path=trace)
    recording.stop()
    assert isinstance(recording, LocalRecording)
    for name in ("records_by_kind", "dropped_by_kind", "nbytes"):
        with pytest.raises(RuntimeError, match="has not been started"):
            getattr(recording, name)
    assert not trace.exists()

    assert recording.start() is recording
    assert [stat.S_IMODE(spool.stat().st_mode) for spool in spools.iterdir()] == [0o700]
    with pytest.raises(RuntimeError, match="was already started"):
        recording.start()
    with pytest.raises(ValueError, match=r"trace\.jsonl"):
        roast_recorder.record(path=trace).start()
    assert len(list(spools.iterdir())) == 1
    with section("merging"):  # outside of chunks
        pass
    recording.stop()
    recording.stop()
    with pytest.raises(RuntimeError, match="was already started"):
        recording.start()
    with section("later"):
        pass

    lines = read_lines(trace)
    [part] = [line for line in lines if line["kind"] == "section"]
    assert (part["name"], part["key"]) == ("merging", "(no chunk)")
    assert (part["worker"], "run_id" in part) == (f"pid:{os.getpid()}", False)
    assert lines[0]["trace_id"] == recording.trace_id
    assert recording.records_by_kind == Counter(line["kind"] for line in lines)
    assert recording.records_by_kind["trailer"] == 1
    assert recording.dropped_by_kind == Counter()
    assert recording.nbytes == trace.stat().st_size
    reference = weakref.ref(recording)
    del recording
    gc.collect()
    assert reference() is None


def test_an_error_of_the_recorder_is_no_clean_end(trace, monkeypatch, caplog):
    monkeypatch.setattr(Spool, "take", lambda _: 1 / 0)

    with caplog.at_level(logging.INFO, "roast_recorder"), roast_recorder.record(path=trace):
        pass

    *_, error, end = (record.message for record in caplog.records)
    assert error == f"roast: {trace} ends here; the run continues"
    assert end.endswith("; the recording did not end cleanly")


def test_a_trace_that_cannot_be_written_is_refused_at_the_start(tmp_path, by_kind):
    trace, script = tmp_path / "nowhere" / "trace.jsonl", tmp_path / "analysis.py"
    missing = roast_recorder.record(path=trace)
    script.write_text("precious")

    with pytest.raises(FileNotFoundError, match="nowhere' does not exist"):
        missing.start()
    with pytest.raises(ValueError, match=r"analysis\.py"):
        roast_recorder.record(path=script).start()

    assert nothing_is_left()
    assert script.read_text() == "precious"
    trace.parent.mkdir()
    with missing:
        pass
    assert len(by_kind(trace)["trailer"]) == 1


def test_a_full_disk_does_not_stop_the_run(fileset, trace, caplog):
    trace.symlink_to("/dev/full")
    caplog.set_level(logging.WARNING, "roast_recorder")

    with roast_recorder.record(path=trace) as recording:
        result, _ = run(iterative(), fileset)

    assert result["DY"]["events"] == 250
    assert recording.dropped_by_kind["chunk"] == 2
    assert recording.records_by_kind.total() == 0
    assert "cannot be written" in caplog.text


PROGRAM = """
import os, signal, sys, time
import roast_recorder

recording = roast_recorder.record(path=sys.argv[1], flush_interval_seconds=0.05).start()
with roast_recorder.section("done"):
    pass
while "done" not in open(sys.argv[1]).read():
    time.sleep(0.02)
{end}
"""

#: The end of a program in a section.
WITHIN = "with roast_recorder.section('running'): {}"

FORK = """
child = os.fork()
with roast_recorder.section("parent" if child else "child"):
    if child == 0:
        recording.stop()
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.parametrize(
    ("end", "code", "names"),
    [
        (WITHIN.format("raise ValueError('mine')"), 1, ["done", "running"]),
        (WITHIN.format("os.kill(os.getpid(), signal.SIGKILL)"), -9, ["done"]),
        *(
            pytest.param(*ending, marks=pytest.mark.exhaustive)
            for ending in (
                ("", 0, ["done"]),
                (WITHIN.format("sys.exit(3)"), 3, ["done", "running"]),
                ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2, ["done"]),
                # The end of a child does not end the recording.
                (FORK, 0, ["done", "child", "parent"]),
            )
        ),
    ],
)
def test_a_program_that_ends_without_stopping(tmp_path, trace, by_kind, end, code, names):
    folder = tmp_path / "of the program"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(end=end), str(trace)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "TMPDIR": str(folder)},
    )

    assert done.returncode == code, done.stderr
    assert "roast" not in done.stderr.replace("roast_recorder.section", "")
    records = by_kind(trace)
    assert [part["name"] for part in records["section"]] == names
    workers = {part["worker"] for part in records["section"]}
    assert len(workers) == (2 if "child" in names else 1)
    assert (len(records["trailer"]) == 1) == (list(folder.iterdir()) == []) == (code != -9)


# -- the spool -------------------------------------------------------------------------------

RECORDS = [["chunk", {"dataset": "ü"}]]


def test_the_spool_collects_complete_files_once_in_order():
    spool = Spool("test")
    for number in (2, 1):
        path = spool.folder / f"{number}-77-1.json"
        path.write_text(json.dumps([number, RECORDS]), encoding="utf-8")
    (spool.folder / "3-77-1.incomplete").write_text('[3, [["chunk", {"da')
    spool.put(RECORDS)

    assert list(spool.take()) == [(os.getpid(), RECORDS), (1, RECORDS), (2, RECORDS)]
    assert list(spool.take()) == []
    spool.remove()


def test_losses_of_the_spool_are_recorded(trace, spools, by_kind, monkeypatch):
    monkeypatch.setattr(local, "MAX_PENDING", 0)
    with roast_recorder.record(path=trace), section("lost"):
        [folder] = spools.iterdir()
        (folder / "1-77-1.incomplete").touch()

    losses = by_kind(trace)["loss"]
    assert [(loss["reason"], loss["record_kind"], loss["records"]) for loss in losses] == [
        ("a process of a pool could not write a chunk", "chunk", 1),
        ("a recording's buffer was full", "chunk", 1),
    ]


def test_a_carried_function_listens_until_the_recording_ends():
    spool = Spool("test")
    carried = spool.carry(lambda *arguments, **keywords: (arguments, keywords))

    # The pool decides how it is pickled: classes of __main__ remain the same ones.
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(carried)
    assert cloudpickle.loads(cloudpickle.dumps(carried))(1, two=2) == ((1,), {"two": 2})
    assert list(here().listeners) == ["test"]
    here().listeners["test"](RECORDS)
    assert list(spool.take()) == [(os.getpid(), RECORDS)]
    spool.remove()
    here().listeners["test"](RECORDS)

    assert here().listeners == {}
