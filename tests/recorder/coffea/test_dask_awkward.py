"""Runs of dask-awkward: what each task reads, identified on the scheduler and the worker.

dask-awkward needs an older dask than the newest, so `make test-oldest` runs these tests.
"""

import logging
import sys
from collections import Counter

import jsonschema
import pytest

import roast_recorder
from roast_recorder import section
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
from distributed import Client

from roast_recorder.demo import files

DATASETS = (
    files.Dataset("DYJets", files=2, events=300, jets=2.0, resonance_mass=91.0),
    files.Dataset("TTbar", files=1, events=250, jets=5.0, resonance_mass=173.0),
)
STEP = 100

pytestmark = pytest.mark.cluster

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


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
    """Return a fileset with steps, as coffea's preprocessing does."""
    paths = files.fileset(folder, datasets)

    def spec(dataset):
        steps = {"object_path": "Events", "steps": steps_of(dataset)}
        return {"files": dict.fromkeys(paths[dataset.name], steps), "metadata": metadata}

    return {dataset.name: spec(dataset) for dataset in datasets}


def count_jets(events):
    return {
        "events": dask_awkward.num(events.nJet, axis=0),
        "jets": ak.sum(events.nJet),
        "hard": ak.sum(events.Jet_pt > 30),
    }


def compute(fileset, processor=count_jets, **uproot_options):
    applied = apply_to_fileset(
        processor, fileset, schemaclass=BaseSchema, uproot_options=uproot_options
    )
    [computed] = dask.compute(applied)
    return computed


def chunks_in(lines):
    """Return identities and measurements of chunks, each in the order of the files."""
    chunks = [line for line in lines if line["kind"] == "chunk"]
    chunks.sort(key=lambda chunk: (chunk["filename"], chunk.get("entry_start", -1)))
    identities = [chunk for chunk in chunks if "run_id" not in chunk]
    return identities, [chunk for chunk in chunks if "run_id" in chunk]


def identity(chunk):
    names = ("key", "dataset", "filename", "treename", "entry_start", "entry_stop")
    return tuple(chunk.get(name) for name in names)


def is_patched():
    import uproot._dask as reading

    functions = reading._UprootOpenAndRead._call_impl, reading.UprootReadMixin.read_tree
    return tuple(hasattr(function, "__wrapped__") for function in functions)


@pytest.fixture(scope="module")
def recorded(cluster, folder, tmp_path_factory, read_lines):
    """The trace, and what was computed with and without a recorder."""
    trace = tmp_path_factory.mktemp("dask-awkward") / "trace.jsonl"
    fileset = fileset_of(folder, DATASETS[:1], year=2018, path="/store/mc")
    fileset |= fileset_of(folder, DATASETS[1:])
    with Client(cluster) as client:
        unrecorded = compute(fileset)
        with roast_recorder.record(client, trace):
            computed = compute(fileset)
            assert set(client.run(is_patched).values()) == {(True, True)}
        assert set(client.run(is_patched).values()) == {(False, False)}
    assert computed == unrecorded
    return trace, read_lines(trace), computed


def test_each_chunk_is_measured_until_it_is_read(recorded, folder):
    _, lines, computed = recorded
    identities, measured = chunks_in(lines)

    assert [identity(chunk)[2:] for chunk in measured] == [
        (path, "Events", start, stop)
        for dataset in DATASETS
        for path in files.fileset(folder, DATASETS)[dataset.name]
        for start, stop in steps_of(dataset)
    ]
    # The scheduler identified the same chunks before.
    assert list(map(identity, identities)) == list(map(identity, measured))
    assert len({chunk["key"] for chunk in measured}) == len(measured) == 9
    tasks = {line["key"] for line in lines if line.get("finish") == "memory"}
    assert {chunk["key"] for chunk in measured} <= tasks
    for chunk in measured:
        values = chunk["measured"]
        assert (values["until"], values["source"]) == ("read", "TTree")
        assert values["events"] == chunk["entry_stop"] - chunk["entry_start"]
        assert values["read_seconds"] > 0 < values["open_seconds"]
        # The task continues, and so does its thread's CPU time.
        assert not {"cpu_seconds", "process_seconds"} & values.keys()
    for dataset in DATASETS:
        own = [c["measured"]["events"] for c in measured if c["dataset"] == dataset.name]
        assert sum(own) == computed[dataset.name]["events"] == dataset.files * dataset.events
        usermeta = {"DYJets": {"year": 2018, "path": "/store/mc"}, "TTbar": None}[dataset.name]
        own = [c.get("usermeta") for c in identities if c["dataset"] == dataset.name]
        assert own == [usermeta] * len(own)
    validator = jsonschema.Draft202012Validator(json_schema())
    for line in lines:
        validator.validate(line)


def test_branches_are_those_that_the_task_needs(recorded):
    _, lines, _ = recorded
    for chunk in chunks_in(lines)[1]:
        sizes = {}
        with uproot.open(chunk["filename"]) as file:
            for name in ("Jet_pt", "nJet"):
                branch = file["Events"][name]
                offsets = branch.entry_offsets
                [n] = [n for n in range(len(offsets) - 1) if offsets[n] < offsets[n + 1]]
                sizes[name] = (
                    branch.basket_compressed_bytes(n),
                    branch.basket_uncompressed_bytes(n),
                )
        assert {
            branch["branch"]: (branch["compressed_bytes"], branch["uncompressed_bytes"])
            for branch in chunk["measured"]["branches"]
        } == sizes
        assert chunk["measured"]["bytes_read"] > sum(size for size, _ in sizes.values())


def test_sections_belong_to_the_chunk_that_their_task_reads(
    client, folder, tmp_path, read_lines
):
    def in_section(events):
        def unchanged(x):
            with section("total"):
                return x

        return ak.sum(events.nJet.map_partitions(unchanged))

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        compute(fileset_of(folder, DATASETS[1:]), in_section)

    lines = read_lines(tmp_path / "trace.jsonl")
    parts = [line for line in lines if line["kind"] == "section"]
    assert {part["name"] for part in parts} == {"total"}
    assert {(part["key"], part["run_id"]) for part in parts} == {
        (chunk["key"], chunk["run_id"]) for chunk in chunks_in(lines)[1]
    }


def test_the_views_add_up(recorded):
    pytest.importorskip("duckdb")
    from roast_analyze import Trace

    with Trace(recorded[0]) as trace:
        assert trace.sql(
            "SELECT dataset, count(*), sum(events)::BIGINT FROM chunks"
            " WHERE outcome = 'memory' AND attempt = 1 GROUP BY ALL ORDER BY ALL"
        ).fetchall() == [("DYJets", 6, 600), ("TTbar", 3, 250)]


# -- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize("reported", [False, True], ids=["raised", "in a report"])
def test_a_missing_file_is_the_chunk_that_failed(
    client, folder, tmp_path, read_lines, reported, caplog
):
    fileset = fileset_of(folder, DATASETS[1:])
    missing = str(folder / "missing.root")
    fileset["TTbar"]["files"][missing] = {"object_path": "Events", "steps": [[0, 100]]}

    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
    ):
        if reported:
            computed, _ = compute(fileset, allow_read_errors_with_report=True)
            assert computed["TTbar"]["events"] == 250
        else:
            with pytest.raises(FileNotFoundError):
                compute(fileset)

    lines = read_lines(tmp_path / "trace.jsonl")
    identities, measured = chunks_in(lines)
    failed = [chunk for chunk in measured if "exception" in chunk]
    assert [chunk["filename"] for chunk in failed] == [missing]
    assert identity(failed[0]) in list(map(identity, identities))
    assert failed[0]["exception"].startswith("FileNotFoundError(")
    assert "events" not in failed[0]["measured"]
    erred = {line["key"] for line in lines if line.get("finish") == "erred"}
    assert (failed[0]["key"] in erred) != reported
    assert caplog.text == ""


def test_each_attempt_at_a_damaged_file_is_recorded(client, folder, tmp_path, read_lines):
    damaged = tmp_path / "TTbar_0.root"
    damaged.write_bytes((folder / "TTbar_0.root").read_bytes()[:5_000])
    fileset = fileset_of(folder, DATASETS[1:])
    fileset["TTbar"]["files"][str(damaged)] = {"object_path": "Events", "steps": [[0, 100]]}
    applied = apply_to_fileset(count_jets, fileset, schemaclass=BaseSchema)

    with (
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
        pytest.raises(Exception),  # noqa: B017, PT011 - uproot's own
    ):
        dask.compute(applied, retries=2)

    _, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    failed = [chunk for chunk in measured if chunk["filename"] == str(damaged)]
    assert all("exception" in chunk for chunk in failed)
    assert len({chunk["run_id"] for chunk in failed}) == 3
    assert len({chunk["key"] for chunk in failed}) == 1


# -- uproot without coffea -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"open_files": True, "step_size": STEP},
        {"open_files": False, "steps_per_file": 3},
    ],
    ids=["open", "not open"],
)
def test_uproot_without_coffea(client, folder, tmp_path, read_lines, options):
    paths = [str(folder / f"DYJets_{part}.root") for part in range(2)]

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        events = uproot.dask(dict.fromkeys(paths, "Events"), **options)
        hard = int(ak.sum(events.MET_pt > 30).compute())

    expected = sum(
        int(ak.sum(uproot.open(path)["Events"]["MET_pt"].array() > 30)) for path in paths
    )
    assert hard == expected > 0
    identities, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    assert [(c["filename"], c["entry_start"], c["entry_stop"]) for c in measured] == [
        (path, start, start + 100) for path in paths for start in (0, 100, 200)
    ]
    for chunk in measured:
        assert [branch["branch"] for branch in chunk["measured"]["branches"]] == ["MET_pt"]
        assert (chunk["treename"], "dataset" in chunk) == ("Events", False)
    # The entries of a step are unknown until the file is opened.
    assert all("entry_start" not in chunk for chunk in identities)


def test_a_task_that_reads_two_files_has_two_chunks(client, folder, tmp_path, read_lines):
    paths = [str(folder / f"DYJets_{part}.root") for part in range(2)]

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        one, other = (
            uproot.dask({path: "Events"}, open_files=False, steps_per_file=3).nJet
            for path in paths
        )
        int(ak.sum(one + other).compute())

    identities, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    assert identities == []
    assert sorted(Counter(chunk["run_id"] for chunk in measured).values()) == [2, 2, 2]
    assert [(chunk["filename"], chunk["entry_start"]) for chunk in measured] == [
        (path, start) for path in paths for start in (0, 100, 200)
    ]


def test_steps_of_a_missing_file_have_no_entries(client, folder, tmp_path, read_lines):
    paths = [str(folder / "TTbar_0.root"), str(folder / "missing.root")]

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        events = uproot.dask(dict.fromkeys(paths, "Events"), open_files=False, steps_per_file=2)
        with pytest.raises(FileNotFoundError):
            ak.sum(events.MET_pt).compute()

    _, measured = chunks_in(read_lines(tmp_path / "trace.jsonl"))
    failed = [chunk for chunk in measured if chunk["filename"] == paths[1]]
    assert 1 <= len(failed) <= 2
    assert not any("entry_start" in chunk or "entry_stop" in chunk for chunk in failed)
