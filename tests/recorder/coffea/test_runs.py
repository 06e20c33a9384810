"""Recorded coffea runs on a cluster: the trace agrees with coffea's own report."""

import contextvars
import logging
import os
import signal
import sys
import threading
import time

import cloudpickle
import jsonschema
import pytest
from distributed import Client, LocalCluster, get_worker

pytest.importorskip("coffea")
pytest.importorskip("roast_analyze")
import awkward as ak
import uproot
from coffea import processor
from coffea.nanoevents import NanoAODSchema

import roast_analyze
import roast_recorder
from coffea_runs import (
    ATTEMPTS,
    COLUMNS,
    ENTRIES,
    FLAT,
    READ,
    SOURCES,
    Analysis,
    bins,
    expected_sizes,
    fails_on_tt,
    measured_chunks,
    measured_sizes,
    process,
    run,
    run_source,
)
from roast_analyze.report.comparison.data import query
from roast_analyze.report.comparison.sentences import chunk_costs
from roast_recorder import section, track
from roast_schemas.describe import json_schema

pytestmark = pytest.mark.cluster

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def cluster():
    """Start one worker with several threads, so that coffea is imported once."""
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=1, threads_per_worker=4, **options) as cluster:
        yield cluster


@pytest.fixture
def measured(trace, read_lines):
    return lambda: measured_chunks(read_lines(trace))


@pytest.fixture
def ask(trace):
    """Return a function that queries the views of the trace."""

    def ask(sql):
        with roast_analyze.Trace(trace) as opened:
            return opened.rows(sql)

    return ask


def validate(lines):
    # One validator per kind: the errors of ``oneOf`` do not name the invalid field.
    kinds = {kind["title"]: kind for kind in json_schema()["oneOf"]}
    validators = {name: jsonschema.Draft202012Validator(kind) for name, kind in kinds.items()}
    for line in lines:
        validators[line["kind"]].validate(line)


# -- coffea's own report ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def unrecorded(cluster, folder):
    """Return the result of an unrecorded run, which is the same for each source."""
    return bins(run_source(cluster, folder, "TTree")[0])


def takes_its_time(events):
    """Take 0.2 s, and 8 ms for each event."""
    time.sleep(0.2 + 0.008 * len(events))
    return {"entries": len(events)}


@pytest.mark.exhaustive
def test_costs_of_chunks_from_runs_of_two_sizes(cluster, folder, tmp_path):
    """The fixed time of a chunk is known from both runs together, as when they are compared."""
    fileset = {"DY": [str(folder / name) for name in ("a.root", "b.root")]}
    traces = [tmp_path / f"{size}.jsonl" for size in (25, 50)]
    for trace, chunksize in zip(traces, (25, 50), strict=True):
        run(cluster, fileset, takes_its_time, trace, chunksize=chunksize)

    with roast_analyze.Trace(*traces) as opened:
        alone = opened.rows("SELECT is_known, note FROM chunk_costs")
        rows = opened.rows(
            "SELECT is_known, runs, median_events, fixed_seconds, seconds_per_event "
            "FROM joint_chunk_costs ORDER BY median_events"
        )
    compared = query([(trace,) for trace in traces], lambda names: roast_analyze.Trace(*names))

    assert [is_known for is_known, _ in alone] == [False, False]
    assert all("the same size; record a run with two chunk sizes" in note for _, note in alone)
    assert [row[:3] for row in rows] == [(True, 2, 25), (True, 2, 50)]
    assert rows[0][3] == pytest.approx(0.2, abs=0.15)  # it also opens the file
    assert rows[0][4] == pytest.approx(0.008, rel=0.3)
    [sentence] = chunk_costs(compared)
    assert sentence.startswith("Of dataset DY, a chunk takes ")
    text = sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert "per event: fitted to 2 runs with 25 to 50 events per chunk" in text


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("chunksize", "n_chunks"),
    # Chunks that divide the pieces of the files evenly, that do not, and that are larger.
    [
        (25, 10),
        *(pytest.param(*of, marks=pytest.mark.exhaustive) for of in ((7, 36), (1_000, 1))),
    ],
)
@pytest.mark.exhaustive
def test_result_report_and_bytes_of_each_source(
    cluster, folder, trace, measured, unrecorded, source, chunksize, n_chunks
):
    if source == "Parquet":
        pytest.importorskip("pyarrow", minversion="17")  # as awkward needs it
    path = folder / SOURCES[source]
    recorded, report = run_source(cluster, folder, source, trace, chunksize=chunksize)

    assert bins(recorded) == unrecorded
    chunks = measured()
    assert len(chunks) == report["chunks"] == n_chunks
    assert sum(chunk["events"] for chunk in chunks) == report["entries"] == ENTRIES
    assert set(report["columns"]) == set(COLUMNS)
    if source == "Parquet":
        # They are not counted; unknown values are absent, not 0.
        assert "bytesread" not in report
        assert not any("bytes_read" in chunk or "requests" in chunk for chunk in chunks)
    else:
        assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"] > 0
        assert min(chunk["requests"] for chunk in chunks) > 0
    for chunk in chunks:
        assert (chunk["source"], chunk["columns"]) == (source, COLUMNS)
        assert measured_sizes(chunk) == expected_sizes(path, source, chunk)
    assert len({chunk["thread"] for chunk in chunks}) > 1 or n_chunks == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("compression", [1, None])
@pytest.mark.parametrize("savemetrics", [True, False])
def test_results_and_reports_are_those_of_the_unrecorded_run(
    cluster, folder, trace, measured, compression, savemetrics
):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    options = {
        "of_executor": {"compression": compression},
        "processor_compression": compression,
        "savemetrics": savemetrics,
    }

    recorded = run(cluster, fileset, Analysis(), trace, **options)
    plain = run(cluster, fileset, Analysis(), **options)

    if savemetrics:
        (recorded, report), (plain, other) = recorded, plain
        del report["processtime"], other["processtime"]
        report["columns"], other["columns"] = map(sorted, (report["columns"], other["columns"]))
        assert report == other
    assert bins(recorded) == bins(plain)
    assert [chunk["columns"] for chunk in measured()] == [COLUMNS] * 4


def test_all_values_of_a_chunk(cluster, folder, trace, ask):
    fileset = {"DY": {"files": [str(folder / "a.root")], "metadata": {"xsec": 1.5}}}
    run(cluster, fileset, process, trace, chunksize=1_000)

    [row] = ask(
        "SELECT key = (SELECT key FROM task_runs WHERE role = 'chunk'), attempt, treename, "
        "usermeta, columns_read, branches_read, file_branches, file_bytes, file_uuid, "
        "worker = (SELECT worker FROM task_runs WHERE role = 'chunk'), "
        "compute_seconds >= stop_t - start_t, "
        "least(open_seconds, read_seconds, process_seconds - read_seconds, cpu_seconds) > 0, "
        "least(memory_before_bytes, memory_after_bytes) <= memory_peak_bytes FROM chunks"
    )

    path = folder / "a.root"
    with uproot.open(path) as file:
        uuid = file.file.uuid.hex
    expected = (True, 1, "Events", '{"xsec":1.5}', 4, 4, 9, path.stat().st_size, uuid)
    assert row == (*expected, True, True, True, True)


def test_preloaded_columns_count_as_read_and_other_files_do_not(
    cluster, folder, trace, measured
):
    other = {str(folder / "b.root"): "Events"}

    def with_corrections(events):
        from coffea.nanoevents import NanoAODSchema, NanoEventsFactory

        with uproot.open(next(iter(other))) as file:
            file["Events/Jet_mass"].array()
        corrections = NanoEventsFactory.from_root(
            other, schemaclass=NanoAODSchema, mode="virtual"
        ).events()
        ak.sum(corrections.Jet.mass)
        return process(events)

    fileset = {"DY": {"files": [str(folder / "a.root")], "preload": ["weight", "Jet_phi"]}}
    _, report = run(cluster, fileset, with_corrections, trace, chunksize=1_000)

    [chunk] = measured()
    assert (chunk["events"], chunk["bytes_read"]) == (ENTRIES, report["bytesread"])
    assert chunk["columns"] == sorted(report["columns"])
    assert [branch["branch"] for branch in chunk["branches"]] == sorted([*READ, "Jet_phi"])


@pytest.mark.exhaustive
def test_a_chunk_from_a_checkpoint_is_neither_read_nor_processed(
    cluster, folder, trace, measured, ask, tmp_path
):
    def run_again():
        checkpointer = processor.SimpleCheckpointer(str(tmp_path / "checkpoints"))
        result, _ = run_source(cluster, folder, "TTree", trace, checkpointer=checkpointer)
        return bins(result), measured()

    first, processed = run_again()
    second, loaded = run_again()

    assert first == second
    assert len(processed) == len(loaded) == 2
    assert not any("from_checkpoint" in chunk for chunk in processed)
    for chunk in loaded:
        assert chunk["from_checkpoint"] is True
        assert not {"events", "bytes_read", "columns", "branches"} & chunk.keys()
    rows = ask("SELECT from_checkpoint, outcome, events FROM chunks")
    assert rows == [(True, "memory", None)] * 2


@pytest.mark.exhaustive
def test_an_empty_tree_is_a_chunk_without_events(cluster, trace, measured, tmp_path):
    with uproot.recreate(tmp_path / "empty.root") as file:
        file.mktree("some/Events", FLAT)

    def count(events):
        return {"entries": len(events), "weight": float(ak.sum(events.weight))}

    fileset = {"DY": {"treename": "some/Events", "files": [str(tmp_path / "empty.root")]}}
    result, report = run(cluster, fileset, count, trace)

    assert result == {"entries": 0, "weight": 0}
    [chunk] = measured()
    assert (chunk["entry_start"], chunk["entry_stop"], chunk["events"]) == (0, 0, 0)
    assert chunk["treename"] == "some/Events"
    assert chunk["bytes_read"] == report["bytesread"] > 0
    assert set(chunk["columns"]) == set(report["columns"])
    assert set(measured_sizes(chunk).values()) <= {(0, 0)}


# -- failures --------------------------------------------------------------------------------


def test_every_failed_attempt_is_measured(cluster, folder, trace, measured, ask):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    with pytest.raises(Exception, match="250 bad events"):
        run(cluster, fileset, fails_on_tt, trace, {"retries": 2}, chunksize=1_000)

    rows = ask(ATTEMPTS)
    assert [row[:5] for row in rows] == [
        (1, "retried", 0, True, None),
        (2, "retried", 0, True, None),
        (3, "erred", 0, True, None),
    ]
    for row in rows:
        assert "ValueError('250 bad events')" in row[5].replace("\\", "")
    failed = [chunk for chunk in measured() if chunk["dataset"] == "TT"]
    assert len({chunk["run_id"] for chunk in failed}) == len(failed) == 3
    for chunk in failed:
        assert chunk["exception"].startswith("Exception(")
        assert (chunk["events"], chunk["columns"]) == (250, ["weight-data"])
        assert chunk["bytes_read"] > 0


@pytest.mark.exhaustive
def test_a_file_that_is_skipped_before_its_entries_are_known(
    cluster, folder, trace, ask, tmp_path
):
    """coffea's result lacks the events of the second file, and so does its report."""
    (tmp_path / "bad.root").write_bytes(b"not a ROOT file")
    files = [str(folder / "a.root"), str(tmp_path / "bad.root")]

    run(cluster, {"DY": files}, process, trace, skipbadfiles=True)

    counts = "split_part(filename, '/', -1), chunks, events, failed_attempts"
    assert sorted(ask(f"SELECT {counts} FROM files")) == [
        ("a.root", 2, ENTRIES, 0),
        ("bad.root", 0, 0, 1),
    ]
    [(what, exception, detail, worker)] = ask(
        "SELECT what, exception, detail, worker FROM failures"
    )
    assert (what, detail) == (
        "file skipped",
        f"DY, {files[1]}, its events are missing",
    )
    assert "bad.root" in exception
    assert worker.startswith("tcp://")
    assert ask("SELECT skipped_files, skipped, chunks FROM run") == [(1, 0, 2)]


def test_a_skipped_file_is_recorded_with_its_exception(cluster, folder, trace, ask, tmp_path):
    path = tmp_path / "removed.root"
    path.write_bytes((folder / "b.root").read_bytes())
    runner = processor.Runner(executor=processor.IterativeExecutor(status=False), chunksize=100)
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(path)]}
    chunks = list(runner.preprocess(fileset, treename="Events"))
    path.unlink()  # after coffea has counted its entries

    recorded, report = run(cluster, chunks, process, trace, skipbadfiles=True)

    assert list(recorded) == ["DY"]
    rows = ask(ATTEMPTS)
    assert [row[:5] for row in rows] == [
        (1, "skipped", 0, True, None),
        (1, "skipped", 125, True, None),
    ]
    assert all("FileNotFoundError" in row[5] for row in rows)
    [sums] = ask(
        "SELECT count(*), sum(events), sum(bytes_read) FROM chunks WHERE outcome = 'memory'"
    )
    assert sums == (2, report["entries"], report["bytesread"])


@pytest.mark.exhaustive
def test_a_damaged_basket_fails_its_chunk(cluster, folder, trace, ask, tmp_path):
    path = tmp_path / "damaged.root"
    path.write_bytes((folder / "b.root").read_bytes())
    with uproot.open(path) as file:
        branch = file["Events"]["Jet_pt"]
        seek = branch.member("fBasketSeek")[1]
        nbytes = branch.basket_compressed_bytes(1)
    with path.open("r+b") as file:
        file.seek(seek + 100)
        file.write(b"\xff" * (nbytes - 100))
    fileset = {"TT": [str(path)]}
    options, errors = {"align_clusters": True, "of_executor": {"retries": 1}}, []

    for recorded in (trace, None):
        with pytest.raises(Exception, match="Failed processing file") as raised:  # unchanged
            run(cluster, fileset, process, recorded, **options)
        errors.append((type(raised.value), str(raised.value), repr(raised.value.__cause__)))

    assert errors[0] == errors[1]
    rows = [row for row in ask(ATTEMPTS) if row[2] == 100]
    assert [row[:5] for row in rows] == [
        (1, "retried", 100, True, None),
        (2, "erred", 100, True, None),
    ]
    for row in rows:
        assert "Failed processing file" in row[5]
    # The others succeeded or were cancelled.
    assert {row[1] for row in ask(ATTEMPTS) if row[2] != 100} <= {"memory", "cancelled"}


@pytest.mark.exhaustive
def test_a_chunk_that_kills_too_many_workers(cluster, folder, trace, ask, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)

    def kill(_events):
        os.kill(os.getpid(), 9)

    fileset = {"TT": [str(folder / "b.root")]}
    with pytest.raises(RuntimeError, match="caused a KilledWorker exception"):
        run(cluster, fileset, kill, trace, chunksize=1_000)

    [row] = ask("SELECT attempt, outcome, worker IS NOT NULL, exception FROM chunks")
    assert row[:3] == (1, "erred", True)
    assert row[3].startswith("KilledWorker: Attempted to run task")


class Killer(Analysis):
    """Kill the worker of one dataset's chunk, unless one was killed before."""

    def __init__(self, marker):
        self.marker = str(marker)

    def process(self, events):
        if events.metadata["dataset"] == "TT" and not os.path.exists(self.marker):  # noqa: PTH110
            with open(self.marker, "w") as file:  # noqa: PTH123 - it is pickled
                file.write(get_worker().address)
            os.kill(os.getpid(), 9)
        return process(events)


@pytest.mark.exhaustive
def test_the_chunk_of_a_killed_worker_is_lost_and_repeated(
    cluster, folder, trace, ask, tmp_path
):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    marker = tmp_path / "killed"

    _, report = run(cluster, fileset, Killer(marker), trace, chunksize=1_000)

    killed = marker.read_text()
    lost, done = ask(
        "SELECT attempt, outcome, worker, events, bytes_read, exception FROM chunks "
        "WHERE dataset = 'TT' ORDER BY attempt"
    )
    assert lost == (1, "lost", killed, None, None, None)
    assert done[:2] == (2, "memory")
    assert (done[2] != killed, done[3]) == (True, ENTRIES)
    # One result of each chunk counts, however often it was computed.
    [sums] = ask("SELECT sum(chunks), sum(events) FROM datasets")
    assert sums == (report["chunks"], report["entries"]) == (2, 2 * ENTRIES)


def test_a_failed_run_is_recorded_to_its_end(own_cluster, folder, trace, by_kind):
    """A file is missing, a worker is killed, and coffea raises."""
    fileset = {"DY": [str(folder / "a.root"), str(folder / "missing.root")]}
    with own_cluster(2) as (own, client), roast_recorder.record(client, trace):
        futures = client.map(lambda _: time.sleep(0.1), range(20), pure=False)
        time.sleep(0.3)
        os.kill(next(iter(own.scheduler.workers.values())).pid, signal.SIGKILL)
        client.gather(futures)
        executor = processor.DaskExecutor(client=client, status=False, retries=1)
        runner = processor.Runner(executor=executor, schema=NanoAODSchema, chunksize=50)
        with pytest.raises(FileNotFoundError):
            runner(fileset, treename="Events", processor_instance=process)

    records = by_kind(trace)
    validate(line for lines in records.values() for line in lines)
    erred = [line for line in records["transition"] if line["finish"] == "erred"]
    [failed] = [line for line in erred if line.get("cause") == line["key"]]
    file, *attempts = (line for line in records["chunk"] if line["key"] == failed["key"])
    assert file["filename"].endswith("missing.root")
    assert "entry_start" not in file
    assert {attempt["measured"]["until"] for attempt in attempts} == {"metadata"}
    assert (len(records["worker_removed"]), len(records["trailer"])) == (1, 1)


# -- sections and tracked processors ---------------------------------------------------------


def in_sections(events):
    """Read weight in a section, run in a nested one, weight in another, and run outside."""
    with section("outer"):
        total = ak.sum(events.weight)
        with section("inner"):
            total += ak.sum(events.run)
    with section("again"):
        total += ak.sum(events.weight)
    return {"total": int(total + ak.sum(events.run))}


def by_hand(path, start, stop):
    from coffea.nanoevents import BaseSchema, NanoEventsFactory

    events = NanoEventsFactory.from_root(
        {path: "Events"},
        schemaclass=BaseSchema,
        mode="virtual",
        metadata={"dataset": "DY"},
        entry_start=start,
        entry_stop=stop,
    ).events()
    return track(in_sections)(events)


def twice(name, error=None):
    for _ in range(2):
        with section(name):
            if error:
                raise error
    return name


def in_a_thread(name):
    # The second thread has the context of the task, as those of ``asyncio.to_thread``.
    for context in (contextvars.Context(), contextvars.copy_context()):
        thread = threading.Thread(target=context.run, args=(twice, name))
        thread.start()
        thread.join()


@pytest.fixture(scope="module")
def lines(cluster, folder, tmp_path_factory, read_lines):
    """Return the lines of a coffea run, tracked calls, and tasks that are not chunks."""
    path = str(folder / "a.root")
    trace = tmp_path_factory.mktemp("sections") / "trace.jsonl"
    with Client(cluster) as client:
        with roast_recorder.record(client, trace):
            executor = processor.DaskExecutor(client=client, status=False)
            runner = processor.Runner(executor=executor, chunksize=50)
            runner({"DY": [path]}, treename="Events", processor_instance=in_sections)
            client.submit(by_hand, path, 150, 250, key="by hand").result()
            assert client.submit(twice, "plain", key="plain").result() == "plain"
            error = ValueError("no luck")
            with pytest.raises(ValueError, match="no luck"):
                client.submit(twice, "fails", error, key="fails", retries=1).result()
            client.submit(in_a_thread, "apart", key="apart").result()
        assert client.submit(twice, "later", key="later").result() == "later"
    validate(lines := read_lines(trace))
    return lines


def requested_bytes(path, branch, start, stop):
    """Return the bytes that uproot itself requests to read a branch."""
    with uproot.open(path, array_cache=None) as file:
        tree = file["Events"]
        before = tree.file.source.num_requested_bytes
        tree[branch].array(entry_start=start, entry_stop=stop)
        return tree.file.source.num_requested_bytes - before


@pytest.mark.exhaustive
def test_sections_of_chunks_and_their_bytes(lines):
    chunks = measured_chunks(lines)
    parts = [line for line in lines if line["kind"] == "section"]
    assert len(chunks) == 5 + 1

    for chunk in chunks:
        attempt = chunk["key"], chunk["run_id"]
        own = [part for part in parts if (part["key"], part["run_id"]) == attempt]
        where = chunk["filename"], chunk["entry_start"], chunk["entry_stop"]
        weight, run_number = (
            requested_bytes(where[0], b, *where[1:]) for b in ("weight", "run")
        )
        assert [(part["name"], part["measured"]["bytes_read"]) for part in own] == [
            ("inner", run_number),
            ("outer", weight + run_number),
            ("again", 0),  # cached by coffea
        ]
        for part in own:
            assert (part["worker"], part["thread"]) == (chunk["worker"], chunk["thread"])
            assert chunk["start_t"] <= part["start_t"] <= part["stop_t"] <= chunk["stop_t"]


def test_a_tracked_call_is_the_chunk_of_its_task(lines):
    [chunk] = [chunk for chunk in measured_chunks(lines) if chunk["key"] == "by hand"]

    assert (chunk["dataset"], chunk["treename"]) == ("DY", "Events")
    assert (chunk["entry_start"], chunk["events"]) == (150, 100)
    run_ids = {line.get("run_id") for line in lines if line.get("finish") == "memory"}
    assert chunk["run_id"] in run_ids


def test_sections_in_a_thread_of_a_task_are_counted_as_lost(lines):
    assert "apart" not in {line.get("name") for line in lines}
    losses = [line for line in lines if line["kind"] == "loss"]
    assert [(loss["reason"], loss["record_kind"], loss["records"]) for loss in losses] == [
        ("measured in a thread that a task started", "section", 4)
    ]


def test_sections_of_tasks_that_are_not_chunks(lines):
    parts = {
        key: [line for line in lines if line["kind"] == "section" and line["key"] == key]
        for key in ("later", "plain", "fails")
    }

    assert parts["later"] == []
    assert [part["name"] for part in parts["plain"]] == ["plain", "plain"]
    for part in parts["plain"]:
        assert part["measured"].keys() == {"cpu_seconds", "memory_delta"}
        assert "exception" not in part
    [run_id] = {part["run_id"] for part in parts["plain"]}
    ends = [line for line in lines if line.get("finish") == "memory"]
    assert [line["run_id"] for line in ends if line["key"] == "plain"] == [run_id]
    assert [part["exception"] for part in parts["fails"]] == ["ValueError('no luck')"] * 2
    assert len({part["run_id"] for part in parts["fails"]}) == 2
