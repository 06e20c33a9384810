"""Real coffea runs on a real cluster: the chunks in the trace are what coffea itself counts."""

import logging
import os
import signal
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_worker

import roast_recorder

processor = pytest.importorskip("coffea.processor")
NanoAODSchema = pytest.importorskip("coffea.nanoevents").NanoAODSchema
ak = pytest.importorskip("awkward")
hist = pytest.importorskip("hist")
uproot = pytest.importorskip("uproot")

pytestmark = pytest.mark.cluster

# Workers can't import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

#: Entries of the baskets, clusters and row groups of every file.
PIECES = (100, 100, 50)
ENTRIES = sum(PIECES)

JETS = ("pt", "eta", "phi", "mass")
FLAT = {"weight": "f4", "run": "u4", "luminosityBlock": "u4", "event": "u8"}


def make_events(entries, seed):
    random = np.random.default_rng(seed)
    counts = random.poisson(2.5, entries)
    events = {name: random.integers(1, 9, entries).astype(kind) for name, kind in FLAT.items()}
    for name in JETS:
        values = random.exponential(30.0, counts.sum()).astype("f4")
        events[f"Jet_{name}"] = ak.unflatten(values, counts)
    return {"nJet": counts.astype("i4"), **events}


def write_ttree(path, seed=0):
    jets = ", ".join(f"{name}: float32" for name in JETS)
    jets = ak.types.from_datashape(f"var * {{{jets}}}", highlevel=False)
    with uproot.recreate(path) as file:
        tree = file.mktree("Events", {"Jet": jets, **FLAT})
        for number, entries in enumerate(PIECES):
            events = make_events(entries, seed + number)
            together = ak.zip({name: events[f"Jet_{name}"] for name in JETS})
            tree.extend({"Jet": together, **{name: events[name] for name in FLAT}})


def write_rntuple(path):
    with uproot.recreate(path) as file:
        first, *others = (make_events(entries, seed) for seed, entries in enumerate(PIECES))
        written = file.mkrntuple("Events", first)
        for events in others:
            written.extend(events)


def write_parquet(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = [make_events(entries, seed) for seed, entries in enumerate(PIECES)]
    whole = {name: ak.concatenate([part[name] for part in parts]) for name in parts[0]}
    table = pa.table({name: pa.array(ak.to_list(values)) for name, values in whole.items()})
    pq.write_table(table, path, row_group_size=100)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """``a.root`` and ``b.root`` with trees, and the events of the first in other forms."""
    folder = tmp_path_factory.mktemp("files")
    write_ttree(folder / "a.root")
    write_ttree(folder / "b.root", seed=10)
    write_rntuple(folder / "ntuple.root")
    write_parquet(folder / "a.parquet")
    return folder


SOURCES = {"TTree": "a.root", "RNTuple": "ntuple.root", "Parquet": "a.parquet"}


def needs(source):
    if source == "Parquet":
        # What awkward reads it with.
        pytest.importorskip("pyarrow", minversion="17")


def process(events):
    """An analysis that reads 4 of 9 branches; it counts in integers, in whatever order."""
    central = events.Jet[abs(events.Jet.eta) < 40]
    pt = hist.Hist.new.Reg(20, 0, 200, name="pt").Int64()
    pt.fill(pt=ak.flatten(central.pt))
    weight = int(ak.sum(events.weight))
    return {events.metadata["dataset"]: {"pt": pt, "entries": len(events), "weight": weight}}


READ = ["Jet_eta", "Jet_pt", "nJet", "weight"]
COLUMNS = ["Jet_eta-data", "Jet_pt-data", "nJet-offsets", "weight-data"]


class Analysis(processor.ProcessorABC):
    def process(self, events):
        return process(events)

    def postprocess(self, accumulator):
        return accumulator


def run(
    cluster, fileset, analysis, trace=None, *, of_executor=None, chunksize=100, **of_runner
):
    """Run an analysis; with a trace, recorded."""
    with Client(cluster) as client:
        executor = processor.DaskExecutor(client=client, status=False, **(of_executor or {}))
        # A cache of its own, or coffea would take what it knows of the file from other tests.
        usual = {"schema": NanoAODSchema, "savemetrics": True, "metadata_cache": {}}
        of_runner = usual | of_runner
        runner = processor.Runner(executor=executor, chunksize=chunksize, **of_runner)
        if trace is None:
            return runner(fileset, treename="Events", processor_instance=analysis)
        with roast_recorder.record(client, trace):
            return runner(fileset, treename="Events", processor_instance=analysis)


def run_source(cluster, folder, source, trace=None, **options):
    fileset = {"DY": [str(folder / SOURCES[source])]}
    return run(cluster, fileset, process, trace, format=format_of(source), **options)


def format_of(source):
    return "parquet" if source == "Parquet" else "root"


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def measured(trace, read_lines):
    """Read what was measured of chunks: a flat dict of each."""

    def measured():
        chunks = [line for line in read_lines(trace) if line["kind"] == "chunk"]
        return [{**line, **line["measured"]} for line in chunks if "run_id" in line]

    return measured


@pytest.fixture
def ask(trace):
    """Ask the views of the trace."""
    pytest.importorskip("duckdb")
    roast_analyze = pytest.importorskip("roast_analyze")

    def ask(sql):
        with roast_analyze.Trace(trace) as opened:
            return opened.sql(sql).fetchall()

    return ask


def bins(result):
    """Whatever an analysis gave, with histograms as lists."""
    if isinstance(result, dict):
        return {key: bins(value) for key, value in result.items()}
    return result.values(flow=True).tolist() if isinstance(result, hist.Hist) else result


# -- what coffea reports ---------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("chunksize", [7, 60, 1_000])
def test_the_sums_over_chunks_are_coffeas_own_report(
    cluster, folder, trace, measured, source, chunksize
):
    needs(source)
    _, report = run_source(cluster, folder, source, trace, chunksize=chunksize)

    chunks = measured()
    assert len(chunks) == report["chunks"] == {7: 36, 60: 4, 1_000: 1}[chunksize]
    assert sum(chunk["events"] for chunk in chunks) == report["entries"] == ENTRIES
    columns = {column for chunk in chunks for column in chunk["columns"]}
    assert columns == set(report["columns"]) == set(COLUMNS)
    assert {chunk["source"] for chunk in chunks} == {source}
    if source == "Parquet":
        # Nobody counts them: unknown is not 0.
        assert "bytesread" not in report
        assert not any("bytes_read" in chunk or "requests" in chunk for chunk in chunks)
    else:
        assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"] > 0
        assert min(chunk["requests"] for chunk in chunks) > 0


@pytest.mark.parametrize("source", SOURCES)
def test_the_view_adds_up_to_the_report_as_well(cluster, folder, trace, ask, source):
    needs(source)
    _, report = run_source(cluster, folder, source, trace, chunksize=60)

    [sums] = ask(
        "SELECT count(*), sum(events), sum(bytes_read), "
        "list_sort(list_distinct(flatten(list(columns)))) FROM chunks WHERE outcome = 'memory'"
    )

    assert sums == (
        report["chunks"],
        report["entries"],
        report.get("bytesread"),
        sorted(report["columns"]),
    )


def test_chunks_tile_their_files(cluster, folder, trace, measured):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    run(cluster, fileset, process, trace, chunksize=60)

    chunks = [
        (chunk["dataset"], Path(chunk["filename"]).name, chunk["entry_start"], chunk["events"])
        for chunk in measured()
    ]

    assert sorted(chunks) == [
        (dataset, name, *part)
        for dataset, name in (("DY", "a.root"), ("TT", "b.root"))
        for part in ((0, 63), (63, 63), (126, 63), (189, 61))
    ]


def test_what_else_is_known_of_a_chunk(cluster, folder, trace, ask):
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
    known = (True, 1, "Events", '{"xsec":1.5}', 4, 4, 9, path.stat().st_size, uuid)
    assert row == (*known, True, True, True, True)


def test_a_file_in_two_datasets_is_two_chunks(cluster, folder, trace, measured, ask):
    file = str(folder / "a.root")
    _, report = run(cluster, {"DY": [file], "TT": [file]}, process, trace, chunksize=1_000)

    assert sorted(chunk["dataset"] for chunk in measured()) == ["DY", "TT"]
    assert sum(chunk["bytes_read"] for chunk in measured()) == report["bytesread"]
    assert ask("SELECT dataset, sum(events) FROM chunks GROUP BY 1 ORDER BY 1") == [
        ("DY", ENTRIES),
        ("TT", ENTRIES),
    ]


def test_a_tree_without_entries_is_a_chunk_without_events(cluster, trace, measured, tmp_path):
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
    for branch in chunk["branches"]:
        assert (branch["compressed_bytes"], branch["uncompressed_bytes"]) == (0, 0)


def test_a_processor_that_reads_nothing_reads_nothing(cluster, folder, trace, measured):
    def count(events):
        return {"entries": len(events)}

    _, report = run(cluster, {"DY": [str(folder / "a.root")]}, count, trace)

    for chunk in measured():
        assert chunk["columns"] == chunk["branches"] == report["columns"] == []
        assert chunk["read_seconds"] == 0
    assert sum(chunk["bytes_read"] for chunk in measured()) == report["bytesread"]


def test_other_files_that_a_processor_reads_are_not_the_chunks(
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
        ak.sum(corrections.Jet.phi)
        return process(events)

    fileset = {"DY": [str(folder / "a.root")]}
    _, report = run(cluster, fileset, with_corrections, trace, chunksize=1_000)

    [chunk] = measured()
    assert (chunk["events"], chunk["columns"]) == (ENTRIES, COLUMNS)
    assert [branch["branch"] for branch in chunk["branches"]] == READ
    assert chunk["bytes_read"] == report["bytesread"]


def test_threads_of_a_worker_are_told_apart(folder, trace, measured):
    with LocalCluster(
        n_workers=1,
        threads_per_worker=4,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as own:
        run(own, {"DY": [str(folder / "a.root")]}, process)  # nobody waits for imports below
        _, report = run(own, {"DY": [str(folder / "a.root")]}, process, trace, chunksize=7)

    chunks = measured()
    assert len(chunks) == report["chunks"]
    assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"]
    pieces = {name: pieces_of_tree(folder / "a.root", name) for name in READ}
    for chunk in chunks:
        assert chunk["columns"] == COLUMNS
        assert sizes_of(chunk) == sizes_between(pieces, chunk)
    assert len({chunk["thread"] for chunk in chunks}) > 1


# -- nothing changes -------------------------------------------------------------------------


@pytest.mark.parametrize("analysis", [Analysis(), process], ids=["ProcessorABC", "callable"])
@pytest.mark.parametrize("compression", [1, None])
@pytest.mark.parametrize("savemetrics", [True, False])
def test_the_result_is_that_of_the_unrecorded_run(
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
    assert recorded["DY"]["entries"] == ENTRIES
    assert [chunk["columns"] for chunk in measured()] == [COLUMNS] * 4


@pytest.mark.parametrize("source", ["RNTuple", "Parquet"])
def test_so_it_is_with_other_sources(cluster, folder, trace, source):
    needs(source)
    recorded, _ = run_source(cluster, folder, source, trace)
    plain, _ = run_source(cluster, folder, source)

    assert bins(recorded) == bins(plain)


@pytest.mark.parametrize(
    "of_executor",
    [{"treereduction": 2}, {"worker_affinity": True}, {"retries": 0}, {"priority": 3}],
    ids=str,
)
def test_so_it_is_with_options_of_the_executor(cluster, folder, trace, measured, of_executor):
    options = {"of_executor": of_executor, "chunksize": 30}
    recorded, report = run_source(cluster, folder, "TTree", trace, **options)
    plain, _ = run_source(cluster, folder, "TTree", **options)

    assert bins(recorded) == bins(plain)
    chunks = measured()
    assert len(chunks) == report["chunks"] == 8
    assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"]
    if "worker_affinity" in of_executor:
        assert len({chunk["worker"] for chunk in chunks}) == 2


def test_dataframes_are_measured(cluster, folder, trace, measured):
    pd = pytest.importorskip("pandas")

    def frame(events):
        return pd.DataFrame({"weight": ak.to_numpy(events.weight)})

    def together(trace=None):
        with Client(cluster) as client:
            executor = processor.DaskExecutor(client=client, status=False, use_dataframes=True)
            runner = processor.Runner(executor=executor, schema=NanoAODSchema, chunksize=100)
            fileset = {"DY": [str(folder / "a.root")]}
            if trace is None:
                return runner(fileset, treename="Events", processor_instance=frame).compute()
            with roast_recorder.record(client, trace):
                return runner(fileset, treename="Events", processor_instance=frame).compute()

    recorded = together(trace)

    pd.testing.assert_frame_equal(recorded, together())
    chunks = measured()
    # coffea makes chunks of equal sizes.
    assert sorted((chunk["entry_start"], chunk["events"]) for chunk in chunks) == [
        (0, 125),
        (125, 125),
    ]
    assert {tuple(chunk["columns"]) for chunk in chunks} == {("weight-data",)}


def test_what_comes_from_a_checkpoint_is_neither_read_nor_processed(
    cluster, folder, trace, measured, tmp_path
):
    def again():
        checkpointer = processor.SimpleCheckpointer(str(tmp_path / "checkpoints"))
        result, _ = run_source(cluster, folder, "TTree", trace, checkpointer=checkpointer)
        return bins(result), measured()

    first, made = again()
    second, loaded = again()

    assert first == second
    assert len(made) == len(loaded) == 2
    assert not any("from_checkpoint" in chunk for chunk in made)
    assert sum(chunk["events"] for chunk in made) == ENTRIES
    for chunk in loaded:
        assert chunk["from_checkpoint"] is True
        assert not {"events", "bytes_read", "columns", "branches"} & chunk.keys()


def test_the_view_counts_no_events_of_a_checkpoint(cluster, folder, trace, ask, tmp_path):
    for _ in range(2):
        checkpointer = processor.SimpleCheckpointer(str(tmp_path / "checkpoints"))
        run_source(cluster, folder, "TTree", trace, checkpointer=checkpointer)

    assert (
        ask("SELECT from_checkpoint, outcome, events FROM chunks")
        == [(True, "memory", None)] * 2
    )


def test_columns_that_are_preloaded_are_read(cluster, folder, trace, measured):
    file = str(folder / "a.root")
    fileset = {"DY": {"files": [file], "preload": ["weight", "Jet_phi"]}}

    recorded, report = run(cluster, fileset, process, trace)
    plain, _ = run(cluster, fileset, process)

    assert bins(recorded) == bins(plain)
    chunks = measured()
    assert sum(chunk["bytes_read"] for chunk in chunks) == report["bytesread"]
    assert {column for chunk in chunks for column in chunk["columns"]} == set(report["columns"])
    for chunk in chunks:
        # It was read, although nobody asked for it.
        assert [branch["branch"] for branch in chunk["branches"]] == sorted([*READ, "Jet_phi"])


# -- bytes by branch -------------------------------------------------------------------------


def pieces_of_tree(path, name):
    """First entry, end, and sizes of each basket, as uproot reads it off the file."""
    with uproot.open(path, array_cache=None) as file:
        branch = file["Events"][name]
        return [
            (
                *branch.basket_entry_start_stop(number),
                branch.basket_compressed_bytes(number),
                branch.basket_uncompressed_bytes(number),
            )
            for number in range(branch.num_baskets)
        ]


def pieces_of_ntuple(path, name):
    """The same of each cluster: all pages of the columns of a field and those below it."""
    with uproot.open(path) as file:
        ntuple = file["Events"]
        names = {name}
        numbers = [
            number
            for number, record in enumerate(ntuple.field_records)
            if record.field_name in names
            or ntuple.field_records[record.parent_field_id].field_name in names
        ]
        columns = [c for c in ntuple.column_records if c.field_id in numbers]
        pieces = []
        for cluster, pages in zip(ntuple.cluster_summaries, ntuple.page_link_list, strict=True):
            start, entries = cluster.num_first_entry, cluster.num_entries
            of_field = [
                (p, column.nbits) for column in columns for p in pages[column.idx].pages
            ]
            packed = sum(page.locator.num_bytes for page, _ in of_field)
            unpacked = sum(-(-page.num_elements * nbits // 8) for page, nbits in of_field)
            pieces.append((start, start + entries, packed, unpacked))
        return pieces


def pieces_of_parquet(path, name):
    """The same of each row group."""
    import pyarrow.parquet as pq

    metadata, pieces, start = pq.read_metadata(path), [], 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(leaf) for leaf in range(group.num_columns)]
        [of_name] = [c for c in columns if c.path_in_schema.split(".")[0] == name]
        sizes = of_name.total_compressed_size, of_name.total_uncompressed_size
        pieces.append((start, start + group.num_rows, *sizes))
        start += group.num_rows
    return pieces


PIECES_OF = {
    "TTree": pieces_of_tree,
    "RNTuple": pieces_of_ntuple,
    "Parquet": pieces_of_parquet,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("chunksize", [7, 60, 1_000])
def test_bytes_of_a_branch_are_those_of_its_pieces_that_overlap(
    cluster, folder, trace, measured, source, chunksize
):
    needs(source)
    run_source(cluster, folder, source, trace, chunksize=chunksize)
    pieces = {name: PIECES_OF[source](folder / SOURCES[source], name) for name in READ}
    assert {(start, stop) for start, stop, *_ in pieces["Jet_pt"]} == {
        (0, 100),
        (100, 200),
        (200, 250),
    }

    for chunk in measured():
        assert sizes_of(chunk) == sizes_between(pieces, chunk)


def sizes_of(chunk):
    return {
        branch["branch"]: (branch["compressed_bytes"], branch["uncompressed_bytes"])
        for branch in chunk["branches"]
    }


def sizes_between(pieces, chunk):
    """What the pieces that overlap a chunk add up to."""
    start, stop = chunk["entry_start"], chunk["entry_stop"]
    overlap = {
        name: [sizes for first, end, *sizes in of_name if first < stop and end > start]
        for name, of_name in pieces.items()
    }
    return {name: tuple(map(sum, zip(*sizes, strict=True))) for name, sizes in overlap.items()}


def test_chunks_as_large_as_baskets_add_up_to_the_branch(cluster, folder, trace, measured):
    run_source(cluster, folder, "TTree", trace, chunksize=50, align_clusters=True)

    chunks = measured()
    assert sorted(chunk["entry_start"] for chunk in chunks) == [0, 100, 200]
    with uproot.open(folder / "a.root") as file:
        for name in READ:
            sizes = [
                (branch["compressed_bytes"], branch["uncompressed_bytes"])
                for chunk in chunks
                for branch in chunk["branches"]
                if branch["branch"] == name
            ]
            branch = file["Events"][name]
            assert tuple(map(sum, zip(*sizes, strict=True))) == (
                branch.compressed_bytes,
                branch.uncompressed_bytes,
            )


# -- what fails ------------------------------------------------------------------------------


def fails_on_tt(events):
    if events.metadata["dataset"] == "TT":
        raise ValueError(f"{ak.count(events.weight, axis=0)} bad events")
    return process(events)


def error_of(cluster, fileset, analysis, trace=None, **options):
    """Type, text and cause of what a run raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - it is compared
        run(cluster, fileset, analysis, trace, **options)
    return type(caught.value), str(caught.value), repr(caught.value.__cause__)


ATTEMPTS = (
    "SELECT attempt, outcome, entry_start, worker IS NOT NULL, events, exception FROM chunks "
    "WHERE dataset = 'TT' ORDER BY entry_start, attempt"
)


def test_each_attempt_of_a_processor_that_raises_is_a_row(cluster, folder, trace, ask):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    options = {"chunksize": 1_000, "of_executor": {"retries": 2}}

    recorded = error_of(cluster, fileset, fails_on_tt, trace, **options)

    assert recorded == error_of(cluster, fileset, fails_on_tt, **options)
    assert "ValueError('250 bad events')" in recorded[1]
    rows = ask(ATTEMPTS)
    assert [row[:5] for row in rows] == [
        (1, "retried", 0, True, None),
        (2, "retried", 0, True, None),
        (3, "erred", 0, True, None),
    ]
    for row in rows:
        assert "ValueError('250 bad events')" in row[5].replace("\\", "")


def test_an_attempt_that_fails_before_another_does_not_counts_once(
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


def test_what_a_failed_attempt_did_is_measured(cluster, folder, trace, measured):
    fileset = {"TT": [str(folder / "b.root")]}
    options = {"chunksize": 1_000, "of_executor": {"retries": 2}}
    error_of(cluster, fileset, fails_on_tt, trace, **options)

    chunks = measured()
    assert len({chunk["run_id"] for chunk in chunks}) == len(chunks) == 3
    for chunk in chunks:
        assert chunk["exception"].startswith("Exception(")
        assert "250 bad events" in chunk["exception"]
        assert (chunk["events"], chunk["columns"]) == (250, ["weight-data"])
        assert chunk["bytes_read"] > 0


def damaged(folder, tmp_path):
    """A file with a basket that cannot be decompressed."""
    path = tmp_path / "damaged.root"
    path.write_bytes((folder / "b.root").read_bytes())
    with uproot.open(path) as file:
        branch = file["Events"]["Jet_pt"]
        seek = branch.member("fBasketSeek")[1]
        nbytes = branch.basket_compressed_bytes(1)
    with path.open("r+b") as file:
        file.seek(seek + 100)
        file.write(b"\xff" * (nbytes - 100))
    return str(path)


def test_a_damaged_file_fails_where_it_is_damaged(cluster, folder, trace, ask, tmp_path):
    fileset = {"TT": [damaged(folder, tmp_path)]}
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
    # The others ended well, or nobody wanted them any more.
    assert {row[1] for row in ask(ATTEMPTS) if row[2] != 100} <= {"memory", "cancelled"}


def test_a_file_that_is_missing_from_the_beginning_has_no_chunks(cluster, folder, trace, ask):
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


@pytest.fixture
def vanished(folder, tmp_path):
    """A file that was there when coffea looked, and is not when a chunk is read."""
    path = tmp_path / "vanished.root"
    path.write_bytes((folder / "b.root").read_bytes())
    runner = processor.Runner(executor=processor.IterativeExecutor(status=False), chunksize=100)
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(path)]}
    chunks = list(runner.preprocess(fileset, treename="Events"))
    path.unlink()
    return chunks


def test_a_file_that_vanishes_fails_its_chunks(cluster, vanished, trace, ask):
    options = {"of_executor": {"retries": 0, "treereduction": 1_000}}
    of_tt = [item for item in vanished if item.dataset == "TT"][:1]

    recorded = error_of(cluster, of_tt, process, trace, **options)

    assert recorded == error_of(cluster, of_tt, process, **options)
    assert recorded[1].startswith("Failed to open file")
    [row] = ask(ATTEMPTS)
    assert row[:5] == (1, "erred", 0, True, None)
    assert "FileNotFoundError" in row[5]


def test_a_bad_file_that_is_skipped_is_a_row_with_its_exception(cluster, vanished, trace, ask):
    options = {"skipbadfiles": True}

    recorded, report = run(cluster, vanished, process, trace, **options)
    plain, _ = run(cluster, vanished, process, **options)

    assert bins(recorded) == bins(plain)
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


class Killer(processor.ProcessorABC):
    """Kills the worker of one dataset's chunk, unless one was killed before."""

    def __init__(self, marker):
        self.marker = str(marker)

    def process(self, events):
        if events.metadata["dataset"] == "TT" and not os.path.exists(self.marker):  # noqa: PTH110
            with open(self.marker, "w") as file:  # noqa: PTH123 - it travels
                file.write(get_worker().address)
            os.kill(os.getpid(), signal.SIGKILL)
        return process(events)

    def postprocess(self, accumulator):
        return accumulator


def test_a_worker_that_is_killed_with_its_chunk_has_a_row(
    cluster, folder, trace, ask, tmp_path
):
    fileset = {"DY": [str(folder / "a.root")], "TT": [str(folder / "b.root")]}
    marker = tmp_path / "killed"

    recorded, report = run(cluster, fileset, Killer(marker), trace, chunksize=1_000)
    plain, _ = run(cluster, fileset, Killer(marker), chunksize=1_000)

    assert bins(recorded) == bins(plain)
    killed = marker.read_text()
    lost, done = ask(
        "SELECT attempt, outcome, worker, events, bytes_read, exception FROM chunks "
        "WHERE dataset = 'TT' ORDER BY attempt"
    )
    assert lost == (1, "lost", killed, None, None, None)
    assert done[:2] == (2, "memory")
    assert done[2] != killed
    assert done[3] == ENTRIES
    # One result of each chunk counts, however often it was made.
    [sums] = ask("SELECT sum(chunks), sum(events) FROM datasets")
    assert sums == (report["chunks"], report["entries"]) == (2, 2 * ENTRIES)


def test_a_chunk_that_is_given_up_has_the_reason(
    cluster, folder, trace, ask, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    marker = tmp_path / "killed"
    fileset = {"TT": [str(folder / "b.root")]}

    error, text, _ = error_of(cluster, fileset, Killer(marker), trace, chunksize=1_000)

    assert error is RuntimeError
    assert "caused a KilledWorker exception" in text
    [row] = ask("SELECT attempt, outcome, worker, exception FROM chunks")
    assert row[:3] == (1, "erred", marker.read_text())
    assert row[3].startswith("KilledWorker: Attempted to run task")
