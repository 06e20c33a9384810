"""Recorded coffea runs on a cluster: the trace contains what coffea itself reports."""

import logging
import os
import signal
import sys
from pathlib import Path

import cloudpickle
import pytest
from distributed import Client, LocalCluster, get_worker

pytest.importorskip("coffea")
pytest.importorskip("roast_analyze")
import awkward as ak
import uproot
from coffea import processor

import roast_analyze
import roast_recorder
from coffea_runs import (
    ATTEMPTS,
    COLUMNS,
    ENTRIES,
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
    write_files,
)
from roast_recorder import section, track

pytestmark = pytest.mark.cluster

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def measured(trace, read_lines):
    return lambda: measured_chunks(read_lines(trace))


@pytest.fixture
def ask(trace):
    """Query the views of the trace."""

    def ask(sql):
        with roast_analyze.Trace(trace) as opened:
            return opened.sql(sql).fetchall()

    return ask


# -- coffea's own report ---------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_result_report_and_bytes_of_each_source(cluster, folder, trace, measured, ask, source):
    if source == "Parquet":
        pytest.importorskip("pyarrow", minversion="17")  # as awkward needs it
    recorded, report = run_source(cluster, folder, source, trace, chunksize=60)
    plain, _ = run_source(cluster, folder, source, chunksize=60)

    assert bins(recorded) == bins(plain)
    chunks = measured()
    assert len(chunks) == report["chunks"] == 4
    assert sum(chunk["events"] for chunk in chunks) == report["entries"] == ENTRIES
    columns = {column for chunk in chunks for column in chunk["columns"]}
    assert columns == set(report["columns"]) == set(COLUMNS)
    assert {chunk["source"] for chunk in chunks} == {source}
    if source == "Parquet":
        # Nothing counts them: unknown is not 0.
        assert "bytesread" not in report
        assert not any("bytes_read" in chunk or "requests" in chunk for chunk in chunks)
    else:
        assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"] > 0
        assert min(chunk["requests"] for chunk in chunks) > 0
    for chunk in chunks:
        path = folder / SOURCES[source]
        assert measured_sizes(chunk) == expected_sizes(path, source, chunk)
    [sums] = ask(
        "SELECT count(*), sum(events), sum(bytes_read), "
        "list_sort(list_distinct(flatten(list(columns)))) FROM chunks WHERE outcome = 'memory'"
    )
    assert sums == (4, ENTRIES, report.get("bytesread"), COLUMNS)


def test_chunks_of_two_files_without_compression(cluster, folder, trace, measured):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    options = {
        "of_executor": {"compression": None, "worker_affinity": True},
        "processor_compression": None,
        "savemetrics": False,
        "chunksize": 60,
    }

    recorded = run(cluster, fileset, Analysis(), trace, **options)

    assert bins(recorded) == bins(run(cluster, fileset, Analysis(), **options))
    chunks = measured()
    assert sorted(
        (chunk["dataset"], Path(chunk["filename"]).name, chunk["entry_start"], chunk["events"])
        for chunk in chunks
    ) == [
        (dataset, name, *part)
        for dataset, name in (("DY", "a.root"), ("TT", "b.root"))
        for part in ((0, 63), (63, 63), (126, 63), (189, 61))
    ]
    assert len({chunk["worker"] for chunk in chunks}) == 2


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


def test_other_files_that_a_processor_reads_are_not_counted(cluster, folder, trace, measured):
    other = {str(folder / "b.root"): "Events"}

    def with_corrections(events):
        from coffea.nanoevents import NanoAODSchema, NanoEventsFactory

        with uproot.open(next(iter(other))) as file:
            file["Events/Jet_mass"].array()
        corrections = NanoEventsFactory.from_root(
            other, schemaclass=NanoAODSchema, mode="virtual"
        ).events()
        ak.sum(corrections.Jet.phi)
        return process(events)

    fileset = {"DY": [str(folder / "a.root")]}
    _, report = run(cluster, fileset, with_corrections, trace, chunksize=1_000)

    [chunk] = measured()
    assert (chunk["events"], chunk["columns"]) == (ENTRIES, COLUMNS)
    assert [branch["branch"] for branch in chunk["branches"]] == READ
    assert chunk["bytes_read"] == report["bytesread"]


def test_threads_of_a_worker_are_measured_separately(folder, trace, measured):
    with LocalCluster(
        n_workers=1,
        threads_per_worker=4,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as threads:
        run_source(threads, folder, "TTree")  # imports, which would block the threads below
        _, report = run_source(threads, folder, "TTree", trace, chunksize=7)

    chunks = measured()
    assert len(chunks) == report["chunks"]
    assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"]
    for chunk in chunks:
        assert chunk["columns"] == COLUMNS
        assert measured_sizes(chunk) == expected_sizes(folder / "a.root", "TTree", chunk)
    assert len({chunk["thread"] for chunk in chunks}) > 1


def test_preloaded_columns_count_as_read(cluster, folder, trace, measured):
    file = str(folder / "a.root")
    fileset = {"DY": {"files": [file], "preload": ["weight", "Jet_phi"]}}

    _, report = run(cluster, fileset, process, trace)

    chunks = measured()
    assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"]
    for chunk in chunks:
        assert [branch["branch"] for branch in chunk["branches"]] == sorted([*READ, "Jet_phi"])


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


# -- failures --------------------------------------------------------------------------------


def test_every_failed_attempt_is_measured(cluster, folder, trace, measured, ask):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    errors = []
    for path in (trace, None):
        with pytest.raises(Exception, match="250 bad events") as caught:
            run(cluster, fileset, fails_on_tt, path, {"retries": 2}, chunksize=1_000)
        errors.append((type(caught.value), str(caught.value), repr(caught.value.__cause__)))

    assert errors[0] == errors[1]
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


@pytest.fixture
def chunks_of_missing_file(folder, tmp_path):
    """Chunks of a file that was removed after coffea had counted its entries."""
    path = tmp_path / "removed.root"
    path.write_bytes((folder / "b.root").read_bytes())
    runner = processor.Runner(executor=processor.IterativeExecutor(status=False), chunksize=100)
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(path)]}
    chunks = list(runner.preprocess(fileset, treename="Events"))
    path.unlink()
    return chunks


def test_a_skipped_file_is_recorded_with_its_exception(
    cluster, chunks_of_missing_file, trace, ask
):
    recorded, report = run(cluster, chunks_of_missing_file, process, trace, skipbadfiles=True)

    assert list(recorded) == ["DY"]
    rows = ask(ATTEMPTS)
    assert [row[:5] for row in rows] == [
        (1, "skipped", 0, True, None),
        (1, "skipped", 125, True, None),
    ]
    for row in rows:
        assert "FileNotFoundError" in row[5]
    [sums] = ask(
        "SELECT count(*), sum(events), sum(bytes_read) FROM chunks WHERE outcome = 'memory'"
    )
    assert sums == (2, report["entries"], report["bytesread"])


class Killer(Analysis):
    """Kills the worker of one dataset's chunk, unless one was killed before."""

    def __init__(self, marker):
        self.marker = str(marker)

    def process(self, events):
        if events.metadata["dataset"] == "TT" and not os.path.exists(self.marker):  # noqa: PTH110
            with open(self.marker, "w") as file:  # noqa: PTH123 - it is pickled
                file.write(get_worker().address)
            os.kill(os.getpid(), signal.SIGKILL)
        return process(events)


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


# -- sections and tracked processors ---------------------------------------------------------


def in_sections(events):
    """Read weight in one section, run in a section of that, weight again, run outside."""
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


@pytest.fixture(scope="module")
def lines(cluster, folder, tmp_path_factory, read_lines):
    """The lines of a coffea run, tracked calls, and tasks that are no chunks."""
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
        assert client.submit(twice, "later", key="later").result() == "later"
        wrapped = client.run(
            lambda: hasattr(uproot.models.TBasket.Model_TBasket.read_members, "__wrapped__")
        )
        assert set(wrapped.values()) == {False}
    return read_lines(trace)


def requested_bytes(path, branch, start, stop):
    """Bytes that uproot alone requests to read a branch."""
    with uproot.open(path, array_cache=None) as file:
        tree = file["Events"]
        before = tree.file.source.num_requested_bytes
        tree[branch].array(entry_start=start, entry_stop=stop)
        return tree.file.source.num_requested_bytes - before


def test_sections_of_chunks_and_their_bytes(lines):
    chunks = measured_chunks(lines)
    parts = [line for line in lines if line["kind"] == "section"]
    assert [chunk["entry_start"] for chunk in chunks if chunk["key"] == "by hand"] == [150]
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
            ("again", 0),  # kept by coffea
        ]
        for part in own:
            assert (part["worker"], part["thread"]) == (chunk["worker"], chunk["thread"])
            assert chunk["start_t"] <= part["start_t"] <= part["stop_t"] <= chunk["stop_t"]


def test_a_tracked_call_is_the_chunk_of_its_task(lines):
    [chunk] = [chunk for chunk in measured_chunks(lines) if chunk["key"] == "by hand"]

    assert (chunk["dataset"], chunk["treename"], chunk["events"]) == ("DY", "Events", 100)
    run_ids = {line.get("run_id") for line in lines if line.get("key") == "by hand"}
    assert chunk["run_id"] in run_ids


def test_sections_of_tasks_that_are_no_chunks(lines):
    parts = {}
    for line in lines:
        if line["kind"] == "section":
            parts.setdefault(line["key"], []).append(line)

    assert "later" not in parts
    assert [part["name"] for part in parts["plain"]] == ["plain", "plain"]
    [run_id] = {part["run_id"] for part in parts["plain"]}
    assert [
        line["finish"]
        for line in lines
        if line["kind"] == "transition" and line.get("run_id") == run_id
        if line["key"] == "plain"
    ] == ["processing", "memory"]
    for part in parts["plain"]:
        assert part["measured"].keys() == {"cpu_seconds", "memory_delta"}
        assert "exception" not in part
    assert [part["exception"] for part in parts["fails"]] == ["ValueError('no luck')"] * 2
    assert len({part["run_id"] for part in parts["fails"]}) == 2
