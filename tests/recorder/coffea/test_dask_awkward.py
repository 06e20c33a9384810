"""Runs of dask-awkward: what each task reads of which file, told twice and alike."""

import logging
import sys
from collections import Counter
from types import SimpleNamespace

import jsonschema
import pytest

import roast_recorder
from roast_recorder import section
from roast_recorder.coffea.task_identity import MAX_USERMETA_LENGTH, metadata_of
from roast_schemas.describe import json_schema

pytest.importorskip("dask_awkward")
pytest.importorskip("coffea")
import awkward as ak
import cloudpickle
import dask
import dask_awkward
import uproot
from coffea.dataset_tools import apply_to_fileset
from coffea.nanoevents import BaseSchema
from coffea.processor import ProcessorABC
from distributed import Client

from roast_recorder.demo import files

DATASETS = (
    files.Dataset("DYJets", files=2, events=300, jets=2.0, resonance_mass=91.0),
    files.Dataset("TTbar", files=1, events=250, jets=5.0, resonance_mass=173.0),
)
STEP = 100

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nanoaod")
    list(files.write_files(folder, DATASETS))
    return folder


def steps_of(dataset):
    return [
        [begin, min(begin + STEP, dataset.events)] for begin in range(0, dataset.events, STEP)
    ]


def fileset_of(folder, datasets=DATASETS, **metadata):
    """Give a fileset as coffea's preprocessing gives it, with steps of some entries."""
    paths = files.fileset(folder, datasets)

    def spec(dataset):
        steps = {"object_path": "Events", "steps": steps_of(dataset)}
        return {"files": dict.fromkeys(paths[dataset.name], steps), "metadata": metadata}

    return {dataset.name: spec(dataset) for dataset in datasets}


def count_jets(events):
    """Numbers that are whole, so that they are the same in whatever order they are added."""
    return {
        "events": dask_awkward.num(events.nJet, axis=0),
        "jets": ak.sum(events.nJet),
        "hard": ak.sum(events.Jet_pt > 30),
    }


class JetCounter(ProcessorABC):
    def process(self, events):
        return count_jets(events)

    def postprocess(self, accumulator):
        return accumulator


def compute(processor, fileset, **uproot_options):
    """Apply a processor as any user of dask-awkward's would."""
    applied = apply_to_fileset(
        processor, fileset, schemaclass=BaseSchema, uproot_options=uproot_options
    )
    [computed] = dask.compute(applied)
    return computed


def chunks_in(lines):
    """The identities and the measurements of chunks, each in the order of the files."""
    chunks = [line for line in lines if line["kind"] == "chunk"]
    chunks.sort(key=lambda chunk: (chunk["filename"], chunk.get("entry_start", -1)))
    identities = [chunk for chunk in chunks if "run_id" not in chunk]
    return identities, [chunk for chunk in chunks if "run_id" in chunk]


IDENTITY = ("key", "dataset", "filename", "treename", "entry_start", "entry_stop")


def identity(chunk):
    return {name: chunk.get(name) for name in IDENTITY}


# -- a run -----------------------------------------------------------------------------------


@pytest.fixture(
    scope="module", params=[count_jets, JetCounter()], ids=["function", "processor"]
)
def recorded(request, cluster, folder, tmp_path_factory, read_lines):
    """The lines of the trace, what was computed, and what was computed without a recorder."""
    trace = tmp_path_factory.mktemp("dask-awkward") / "trace.jsonl"
    fileset = fileset_of(folder, DATASETS[:1], year=2018, path="/store/mc")
    fileset |= fileset_of(folder, DATASETS[1:])
    with Client(cluster):
        unrecorded = compute(request.param, fileset)
    with Client(cluster) as client, roast_recorder.record(client, trace):
        computed = compute(request.param, fileset)
    return read_lines(trace), computed, unrecorded


def test_what_is_computed_is_the_same(recorded):
    _, computed, unrecorded = recorded

    assert unrecorded["DYJets"]["events"] == 600
    assert computed == unrecorded


def test_each_chunk_is_measured_until_it_is_read(recorded, folder):
    lines, _, _ = recorded
    _, measured = chunks_in(lines)

    expected = [
        (path, "Events", start, stop)
        for dataset in DATASETS
        for path in files.fileset(folder, DATASETS)[dataset.name]
        for start, stop in steps_of(dataset)
    ]
    assert [tuple(identity(chunk).values())[2:] for chunk in measured] == expected
    assert {chunk["measured"]["until"] for chunk in measured} == {"read"}
    for chunk in measured:
        figures = chunk["measured"]
        assert figures["events"] == chunk["entry_stop"] - chunk["entry_start"]
        assert figures["source"] == "TTree"
        assert figures["read_seconds"] > 0 < figures["open_seconds"]
        # The task goes on with it, and its thread's CPU time.
        assert "cpu_seconds" not in figures
        assert "process_seconds" not in figures


def test_the_sums_are_those_of_the_datasets(recorded):
    lines, computed, _ = recorded
    _, measured = chunks_in(lines)

    for dataset in DATASETS:
        own = [chunk["measured"] for chunk in measured if chunk["dataset"] == dataset.name]
        entries = sum(chunk["events"] for chunk in own)
        assert entries == computed[dataset.name]["events"] == dataset.files * dataset.events


def test_the_scheduler_and_the_worker_speak_of_the_same_chunk(recorded):
    lines, _, _ = recorded
    identities, measured = chunks_in(lines)

    assert len(measured) == 9
    assert list(map(identity, identities)) == list(map(identity, measured))
    tasks = {line["key"] for line in lines if line.get("finish") == "memory"}
    assert {chunk["key"] for chunk in measured} <= tasks
    assert len({chunk["key"] for chunk in measured}) == 9


def test_metadata_is_the_users_and_the_dataset_is_apart(recorded):
    lines, _, _ = recorded
    identities, _ = chunks_in(lines)

    assert {
        dataset.name: [c.get("usermeta") for c in identities if c["dataset"] == dataset.name]
        for dataset in DATASETS
    } == {
        "DYJets": [{"year": 2018, "path": "/store/mc"}] * 6,
        "TTbar": [None] * 3,
    }


def test_branches_are_those_that_the_task_needs_and_as_large_as_in_the_file(recorded):
    lines, _, _ = recorded
    _, measured = chunks_in(lines)

    for chunk in measured:
        with uproot.open(chunk["filename"]) as file:
            sizes = {name: size_of_basket(file["Events"][name]) for name in ("Jet_pt", "nJet")}
        assert {
            branch["branch"]: (branch["compressed_bytes"], branch["uncompressed_bytes"])
            for branch in chunk["measured"]["branches"]
        } == sizes
        assert chunk["measured"]["bytes_read"] > sum(size for size, _ in sizes.values())


def size_of_basket(branch):
    """Give the size of the only basket that has entries."""
    starts = branch.entry_offsets[:-1]
    [number] = [n for n in range(len(starts)) if starts[n] < branch.entry_offsets[n + 1]]
    return branch.basket_compressed_bytes(number), branch.basket_uncompressed_bytes(number)


def test_every_line_is_valid(recorded):
    lines, _, _ = recorded
    validator = jsonschema.Draft202012Validator(json_schema())

    for line in lines:
        validator.validate(line)


def test_the_analysis_adds_them_up(cluster, folder, tmp_path):
    pytest.importorskip("duckdb")
    from roast_analyze import Trace

    with Client(cluster) as client, roast_recorder.record(client, tmp_path / "trace.jsonl"):
        compute(count_jets, fileset_of(folder))

    with Trace(tmp_path / "trace.jsonl") as trace:
        assert trace.sql(
            "SELECT dataset, count(*), sum(events)::BIGINT FROM chunks"
            " WHERE outcome = 'memory' AND attempt = 1 GROUP BY ALL ORDER BY ALL"
        ).fetchall() == [("DYJets", 6, 600), ("TTbar", 3, 250)]
        assert trace.sql("SELECT chunks, events FROM run").fetchall() == [(9, 850)]


# -- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize("swallowed", [False, True], ids=["raised", "swallowed"])
def test_a_file_that_is_missing_is_the_one_that_failed(
    client, folder, tmp_path, read_lines, swallowed
):
    fileset = fileset_of(folder, DATASETS[1:])
    missing = str(folder / "missing.root")
    fileset["TTbar"]["files"][missing] = {"object_path": "Events", "steps": [[0, 100]]}
    options = {"allow_read_errors_with_report": True} if swallowed else {}

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        if swallowed:
            computed, _ = compute(count_jets, fileset, **options)
            assert computed["TTbar"]["events"] == 250
        else:
            with pytest.raises(FileNotFoundError):
                compute(count_jets, fileset)

    lines = read_lines(tmp_path / "trace.jsonl")
    identities, measured = chunks_in(lines)
    failed = [chunk for chunk in measured if "exception" in chunk]
    assert [chunk["filename"] for chunk in failed] == [missing]
    assert identity(failed[0]) in list(map(identity, identities))
    assert failed[0]["exception"].startswith("FileNotFoundError(")
    assert "events" not in failed[0]["measured"]
    erred = {line["key"] for line in lines if line.get("finish") == "erred"}
    assert (failed[0]["key"] in erred) == (not swallowed)


def test_each_attempt_at_a_file_is_told(client, folder, tmp_path, read_lines):
    damaged = tmp_path / "TTbar_0.root"
    damaged.write_bytes((folder / "TTbar_0.root").read_bytes()[:5_000])
    fileset = fileset_of(folder, DATASETS[1:])
    fileset["TTbar"]["files"][str(damaged)] = {"object_path": "Events", "steps": [[0, 100]]}
    applied = apply_to_fileset(count_jets, fileset, schemaclass=BaseSchema)

    with (
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
        pytest.raises(Exception),  # noqa: B017, PT011 - whatever uproot says of it
    ):
        dask.compute(applied, retries=2)

    _, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    failed = [chunk for chunk in measured if chunk["filename"] == str(damaged)]
    assert all("exception" in chunk for chunk in failed)
    assert len({chunk["run_id"] for chunk in failed}) == 3
    assert len({chunk["key"] for chunk in failed}) == 1


# -- other ways ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        {"open_files": True, "step_size": STEP},
        {"open_files": True, "steps_per_file": 3},
        {"open_files": False, "steps_per_file": 3},
    ],
    ids=["open, by size", "open, by number", "not open"],
)
def test_uproot_without_coffea_is_measured(client, folder, tmp_path, read_lines, how):
    paths = [str(folder / f"DYJets_{part}.root") for part in range(2)]

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        events = uproot.dask(dict.fromkeys(paths, "Events"), **how)
        hard = int(ak.sum(events.MET_pt > 30).compute())

    expected = sum(
        int(ak.sum(uproot.open(path)["Events"]["MET_pt"].array() > 30)) for path in paths
    )
    assert hard == expected > 0
    identities, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    assert [(c["filename"], c["entry_start"], c["entry_stop"]) for c in measured] == [
        (path, start, start + 100) for path in paths for start in (0, 100, 200)
    ]
    assert {chunk["treename"] for chunk in measured} == {"Events"}
    for chunk in measured:
        assert [branch["branch"] for branch in chunk["measured"]["branches"]] == ["MET_pt"]
        assert "dataset" not in chunk
    # Which entries those of a file are that nobody has opened is not known before.
    assert all("entry_start" not in chunk for chunk in identities)


def test_steps_of_a_file_that_is_missing_have_no_entries(client, folder, tmp_path, read_lines):
    there, missing = str(folder / "TTbar_0.root"), str(folder / "missing.root")

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        events = uproot.dask(
            dict.fromkeys([there, missing], "Events"), open_files=False, steps_per_file=2
        )
        with pytest.raises(FileNotFoundError):
            ak.sum(events.MET_pt).compute()

    _, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    failed = [chunk for chunk in measured if chunk["filename"] == missing]
    assert 1 <= len(failed) <= 2
    assert not any("entry_start" in chunk or "entry_stop" in chunk for chunk in failed)


def test_of_a_task_that_reads_two_files_the_worker_alone_tells_what_it_read(
    client, folder, tmp_path, read_lines
):
    paths = [str(folder / f"DYJets_{part}.root") for part in range(2)]

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        one, other = (
            uproot.dask({path: "Events"}, open_files=False, steps_per_file=3).nJet
            for path in paths
        )
        together = int(ak.sum(one + other).compute())

    assert together == ak.sum(uproot.concatenate(dict.fromkeys(paths, "Events"), ["nJet"]).nJet)
    identities, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    assert identities == []
    in_one_task = Counter(chunk["run_id"] for chunk in measured)
    assert sorted(in_one_task.values()) == [2, 2, 2]
    assert [(chunk["filename"], chunk["entry_start"]) for chunk in measured] == [
        (path, start) for path in paths for start in (0, 100, 200)
    ]


def test_parts_of_a_task_have_the_chunk_that_it_reads(client, folder, tmp_path, read_lines):
    def in_parts(events):
        def total(x):
            with section("total"):
                return x

        return ak.sum(events.nJet.map_partitions(total))

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with roast_recorder.record(client, tmp_path / "trace.jsonl"):
            compute(in_parts, fileset_of(folder, DATASETS[1:]))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])

    lines = read_lines(tmp_path / "trace.jsonl")
    _, measured = chunks_in(lines)
    parts = [line for line in lines if line["kind"] == "section"]
    assert {part["name"] for part in parts} == {"total"}
    assert {(part["key"], part["run_id"]) for part in parts} == {
        (chunk["key"], chunk["run_id"]) for chunk in measured
    }


# -- the identity, by itself -----------------------------------------------------------------


def reader(metadata):
    return SimpleNamespace(form_mapping_info=SimpleNamespace(metadata=metadata))


@pytest.mark.parametrize(
    ("metadata", "dataset", "usermeta"),
    [
        ({"dataset": "DY", "year": 2018}, "DY", {"year": 2018}),
        ({"dataset": "DY"}, "DY", None),
        ({"dataset": 7, "year": 2018}, "7", {"year": 2018}),
        ({"year": 2018}, None, {"year": 2018}),
        ({}, None, None),
        (None, None, None),
    ],
)
def test_metadata_of_a_reader(metadata, dataset, usermeta):
    before = None if metadata is None else dict(metadata)

    assert metadata_of(reader(metadata)) == {"dataset": dataset, "usermeta": usermeta}
    assert metadata == before  # it is the user's


def test_a_reader_of_uproots_own_has_none():
    assert metadata_of(SimpleNamespace(form_mapping_info=object())) == {
        "dataset": None,
        "usermeta": None,
    }


def test_large_metadata_is_cut():
    usermeta = metadata_of(reader({"dataset": "DY", "files": "x" * 10_000}))["usermeta"]

    assert len(usermeta) == MAX_USERMETA_LENGTH + 1
    assert "dataset" not in usermeta


def test_nothing_of_the_recorder_stays(client, folder, tmp_path, caplog):
    def replaced():
        import uproot._dask as reading

        functions = reading._UprootOpenAndRead._call_impl, reading.UprootReadMixin.read_tree
        return [hasattr(function, "__wrapped__") for function in functions]

    def on_workers():
        return set(map(tuple, client.run(replaced).values()))

    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
    ):
        compute(count_jets, fileset_of(folder, DATASETS[1:]))
        assert on_workers() == {(True, True)}

    assert on_workers() == {(False, False)}
    assert caplog.text == ""
