"""Recorded coffea runs with more options, sources and failures than the short suite has."""

import os
import sys

import cloudpickle
import pytest
from distributed import Client, get_worker

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
    measured_chunks,
    measured_sizes,
    process,
    run,
    run_source,
    write_files,
)

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
    def ask(sql):
        with roast_analyze.Trace(trace) as opened:
            return opened.sql(sql).fetchall()

    return ask


# -- sources and options ---------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("chunksize", "chunks"), [(7, 36), (1_000, 1)])
def test_bytes_of_chunks_smaller_and_larger_than_the_pieces(
    cluster, folder, trace, measured, source, chunksize, chunks
):
    _, report = run_source(cluster, folder, source, trace, chunksize=chunksize)

    found = measured()
    assert len(found) == report["chunks"] == chunks
    for chunk in found:
        expected = expected_sizes(folder / SOURCES[source], source, chunk)
        assert measured_sizes(chunk) == expected
    if source != "Parquet":
        assert sum(chunk["bytes_read"] for chunk in found) == report["bytesread"]


def test_chunks_as_large_as_baskets_add_up_to_the_branch(cluster, folder, trace, measured):
    run_source(cluster, folder, "TTree", trace, chunksize=50, align_clusters=True)

    chunks = measured()
    assert sorted(chunk["entry_start"] for chunk in chunks) == [0, 100, 200]
    with uproot.open(folder / "a.root") as file:
        for name in READ:
            sizes = [measured_sizes(chunk)[name] for chunk in chunks]
            branch = file["Events"][name]
            assert tuple(map(sum, zip(*sizes, strict=True))) == (
                branch.compressed_bytes,
                branch.uncompressed_bytes,
            )


@pytest.mark.parametrize("analysis", [Analysis(), process], ids=["ProcessorABC", "callable"])
@pytest.mark.parametrize("compression", [1, None])
@pytest.mark.parametrize("savemetrics", [True, False])
def test_results_and_reports_are_those_of_the_unrecorded_run(
    cluster, folder, trace, measured, analysis, compression, savemetrics
):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    options = {
        "of_executor": {"compression": compression},
        "processor_compression": compression,
        "savemetrics": savemetrics,
    }

    recorded = run(cluster, fileset, analysis, trace, **options)
    plain = run(cluster, fileset, analysis, **options)

    if savemetrics:
        (recorded, report), (plain, other) = recorded, plain
        del report["processtime"], other["processtime"]
        report["columns"], other["columns"] = map(sorted, (report["columns"], other["columns"]))
        assert report == other
    assert bins(recorded) == bins(plain)
    assert [chunk["columns"] for chunk in measured()] == [COLUMNS] * 4


@pytest.mark.parametrize("of_executor", [{"treereduction": 2}, {"retries": 0}, {"priority": 3}])
def test_options_of_the_executor(cluster, folder, trace, measured, of_executor):
    options = {"of_executor": of_executor, "chunksize": 30}
    recorded, report = run_source(cluster, folder, "TTree", trace, **options)
    plain, _ = run_source(cluster, folder, "TTree", **options)

    assert bins(recorded) == bins(plain)
    chunks = measured()
    assert len(chunks) == report["chunks"] == 8
    assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"]


def test_dataframes(cluster, folder, trace, measured):
    pd = pytest.importorskip("pandas")

    def frame(events):
        return pd.DataFrame({"weight": ak.to_numpy(events.weight)})

    with Client(cluster) as client:
        executor = processor.DaskExecutor(client=client, status=False, use_dataframes=True)
        runner = processor.Runner(executor=executor, schema=NanoAODSchema, chunksize=100)
        arguments = {
            "fileset": {"DY": [str(folder / "a.root")]},
            "treename": "Events",
            "processor_instance": frame,
        }
        plain = runner(**arguments).compute()
        with roast_recorder.record(client, trace):
            recorded = runner(**arguments).compute()

    pd.testing.assert_frame_equal(recorded, plain)
    chunks = measured()
    assert sorted((c["entry_start"], c["events"]) for c in chunks) == [(0, 125), (125, 125)]
    assert {tuple(chunk["columns"]) for chunk in chunks} == {("weight-data",)}


# -- datasets and processors -----------------------------------------------------------------


def test_a_file_in_two_datasets_is_two_chunks(cluster, folder, trace, measured, ask):
    file = str(folder / "a.root")
    _, report = run(cluster, {"DY": [file], "TT": [file]}, process, trace, chunksize=1_000)

    assert sorted(chunk["dataset"] for chunk in measured()) == ["DY", "TT"]
    assert sum(chunk["bytes_read"] for chunk in measured()) == report["bytesread"]
    assert ask("SELECT dataset, sum(events) FROM chunks GROUP BY 1 ORDER BY 1") == [
        ("DY", ENTRIES),
        ("TT", ENTRIES),
    ]


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


def test_a_processor_that_reads_no_column(cluster, folder, trace, measured):
    def count(events):
        return {"entries": len(events)}

    _, report = run(cluster, {"DY": [str(folder / "a.root")]}, count, trace)

    for chunk in measured():
        assert chunk["columns"] == chunk["branches"] == report["columns"] == []
        assert chunk["read_seconds"] == 0
    assert sum(chunk["bytes_read"] for chunk in measured()) == report["bytesread"]


# -- failures --------------------------------------------------------------------------------


def error_of(cluster, fileset, analysis, trace=None, **options):
    """Return type, text and cause of what a run raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - it is compared
        run(cluster, fileset, analysis, trace, **options)
    return type(caught.value), str(caught.value), repr(caught.value.__cause__)


def test_an_attempt_that_fails_before_a_good_one_counts_once(
    cluster, folder, trace, ask, tmp_path
):
    marker = str(tmp_path / "failed")

    def fails_once(events):
        if events.metadata["dataset"] == "TT" and not os.path.exists(marker):  # noqa: PTH110
            os.mkdir(marker)  # noqa: PTH102
            raise OSError("not yet")
        return process(events)

    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    result, report = run(cluster, fileset, fails_once, trace, chunksize=1_000)

    assert result["TT"]["entries"] == ENTRIES
    assert [row[:5] for row in ask(ATTEMPTS)] == [
        (1, "retried", 0, True, None),
        (2, "memory", 0, True, ENTRIES),
    ]
    [sums] = ask(
        "SELECT count(*), sum(events), sum(bytes_read) FROM chunks WHERE outcome = 'memory'"
    )
    assert sums == (report["chunks"], report["entries"], report["bytesread"])


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
    options = {"align_clusters": True, "of_executor": {"retries": 1}}

    recorded = error_of(cluster, fileset, process, trace, **options)

    assert recorded == error_of(cluster, fileset, process, **options)
    rows = [row for row in ask(ATTEMPTS) if row[2] == 100]
    assert [row[:5] for row in rows] == [
        (1, "retried", 100, True, None),
        (2, "erred", 100, True, None),
    ]
    for row in rows:
        assert "Failed processing file" in row[5]
    # The others succeeded or were cancelled.
    assert {row[1] for row in ask(ATTEMPTS) if row[2] != 100} <= {"memory", "cancelled"}


def test_a_missing_file_fails_before_there_are_chunks(cluster, folder, trace, ask):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "missing.root")]}

    recorded = error_of(cluster, fileset, process, trace, of_executor={"retries": 1})

    assert recorded == error_of(cluster, fileset, process, of_executor={"retries": 1})
    assert recorded[0] is FileNotFoundError
    assert ask("SELECT count(*) FROM chunks") == [(0,)]
    runs = ask(
        "SELECT outcome, exception FROM task_runs WHERE role = 'file metadata' "
        "AND exception IS NOT NULL ORDER BY attempt"
    )
    assert [outcome for outcome, _ in runs] == ["retried", "erred"]
    assert "missing.root" in runs[0][1] or "FileNotFoundError" in runs[0][1]


def test_a_file_that_is_removed_after_its_entries_were_counted(
    cluster, folder, trace, ask, tmp_path
):
    path = tmp_path / "removed.root"
    path.write_bytes((folder / "b.root").read_bytes())
    runner = processor.Runner(executor=processor.IterativeExecutor(status=False), chunksize=100)
    chunks = list(runner.preprocess({"TT": [str(path)]}, treename="Events"))[:1]
    path.unlink()
    options = {"of_executor": {"retries": 0, "treereduction": 1_000}}

    recorded = error_of(cluster, chunks, process, trace, **options)

    assert recorded == error_of(cluster, chunks, process, **options)
    assert recorded[1].startswith("Failed to open file")
    [row] = ask(ATTEMPTS)
    assert row[:5] == (1, "erred", 0, True, None)
    assert "FileNotFoundError" in row[5]


def test_a_chunk_that_kills_too_many_workers(cluster, folder, trace, ask, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)

    def kill(_events):
        os.kill(os.getpid(), 9)

    fileset = {"TT": [str(folder / "b.root")]}
    error, text, _ = error_of(cluster, fileset, kill, trace, chunksize=1_000)

    assert error is RuntimeError
    assert "caused a KilledWorker exception" in text
    [row] = ask("SELECT attempt, outcome, worker IS NOT NULL, exception FROM chunks")
    assert row[:3] == (1, "erred", True)
    assert row[3].startswith("KilledWorker: Attempted to run task")


class Killer(Analysis):
    """Kills the worker of one dataset's chunk, unless one was killed before."""

    def __init__(self, marker):
        self.marker = str(marker)

    def process(self, events):
        if events.metadata["dataset"] == "TT" and not os.path.exists(self.marker):  # noqa: PTH110
            with open(self.marker, "w") as file:  # noqa: PTH123 - it is pickled
                file.write(get_worker().address)
            os.kill(os.getpid(), 9)
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
