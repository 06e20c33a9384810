"""Runs of dask-awkward: chunks of each task, identified on the scheduler and the worker.

dask-awkward does not support the newest Dask, so `make test-oldest` runs these tests.
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

from coffea_runs import expected_sizes, measured_sizes

#: Steps of each file, which are also its baskets.
STEPS = [(0, 100), (100, 200), (200, 250)]

pytestmark = pytest.mark.cluster

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def dataset(path, bad_file=None, /, **metadata):
    """Return a dataset with steps, as coffea's preprocessing does; a bad file has one step."""

    def steps(steps):
        return {"object_path": "Events", "steps": list(map(list, steps))}

    bad = {} if bad_file is None else {str(bad_file): steps(STEPS[:1])}
    return {"files": {str(path): steps(STEPS), **bad}, "metadata": metadata}


def count_jets(events):
    return {
        "events": dask_awkward.num(events.nJet, axis=0),
        "jets": ak.sum(events.nJet),
        "hard": ak.sum(events.Jet_pt > 30),
    }


def compute(fileset, processor=count_jets, retries=0, **uproot_options):
    applied = apply_to_fileset(
        processor, fileset, schemaclass=BaseSchema, uproot_options=uproot_options
    )
    [computed] = dask.compute(applied, retries=retries)
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


def entries_of(chunk):
    return chunk["filename"], chunk.get("entry_start"), chunk.get("entry_stop")


@pytest.fixture
def record(client, tmp_path, read_lines):
    """Record what a function computes; return identities, measured chunks and all lines."""

    def record(function):
        with roast_recorder.record(client, tmp_path / "trace.jsonl"):
            function()
        lines = read_lines(tmp_path / "trace.jsonl")
        return *chunks_in(lines), lines

    return record


@pytest.fixture(scope="module")
def recorded(cluster, folder, tmp_path_factory, read_lines):
    """Return the lines of a trace, and the results with and without a recorder."""
    trace = tmp_path_factory.mktemp("dask-awkward") / "trace.jsonl"
    fileset = {
        "DY": dataset(folder / "a.root", year=2018, path="/store/mc"),
        "TT": dataset(folder / "b.root"),
    }
    with Client(cluster) as client:
        unrecorded = compute(fileset)
        with roast_recorder.record(client, trace):
            computed = compute(fileset)
    assert computed == unrecorded
    return read_lines(trace), computed


def test_each_chunk_is_measured_until_it_is_read(recorded, folder):
    lines, computed = recorded
    identities, measured = chunks_in(lines)

    assert [identity(chunk)[1:] for chunk in measured] == [
        (dataset, str(folder / name), "Events", *step)
        for dataset, name in (("DY", "a.root"), ("TT", "b.root"))
        for step in STEPS
    ]
    # The scheduler identified the same chunks before.
    assert list(map(identity, identities)) == list(map(identity, measured))
    tasks = {line["key"] for line in lines if line.get("finish") == "memory"}
    keys = {chunk["key"] for chunk in measured}
    assert (len(keys), keys <= tasks) == (6, True)
    for chunk in measured:
        values = chunk["measured"]
        assert (values["until"], values["source"]) == ("read", "TTree")
        assert values["events"] == chunk["entry_stop"] - chunk["entry_start"]
        assert values["read_seconds"] > 0 < values["open_seconds"]
        # The task continues, and so does its thread's CPU time.
        assert not {"cpu_seconds", "process_seconds"} & values.keys()
        # The branches are those that the task needs.
        expected = expected_sizes(chunk["filename"], "TTree", chunk)
        sizes = {name: expected[name] for name in ("Jet_pt", "nJet")}
        assert measured_sizes(values) == sizes
        assert values["bytes_read"] > sum(size for size, _ in sizes.values())
    assert {name: counts["events"] for name, counts in computed.items()} == {
        "DY": 250,
        "TT": 250,
    }
    usermeta = {"year": 2018, "path": "/store/mc"}
    assert [c.get("usermeta") for c in identities] == [usermeta] * 3 + [None] * 3
    validator = jsonschema.Draft202012Validator(json_schema())
    for line in lines:
        validator.validate(line)


def test_sections_belong_to_the_chunk_that_their_task_reads(record, folder):
    def in_section(events):
        def unchanged(x):
            with section("total"):
                return x

        return ak.sum(events.nJet.map_partitions(unchanged))

    _, measured, lines = record(lambda: compute({"DY": dataset(folder / "a.root")}, in_section))

    parts = [line for line in lines if line["kind"] == "section"]
    assert {part["name"] for part in parts} == {"total"}
    assert {(part["key"], part["run_id"]) for part in parts} == {
        (chunk["key"], chunk["run_id"]) for chunk in measured
    }


# -- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize("reported", [False, True], ids=["raised", "in a report"])
def test_a_missing_file_is_the_chunk_that_failed(record, folder, tmp_path, reported, caplog):
    missing = str(tmp_path / "missing.root")
    fileset = {"DY": dataset(folder / "a.root", missing)}

    def run():
        if reported:
            computed, _ = compute(fileset, allow_read_errors_with_report=True)
            assert computed["DY"]["events"] == 250
        else:
            with pytest.raises(FileNotFoundError):
                compute(fileset)

    with caplog.at_level(logging.WARNING, "roast_recorder"):
        identities, measured, lines = record(run)

    [failed] = [chunk for chunk in measured if "exception" in chunk]
    assert failed["filename"] == missing
    assert identity(failed) in list(map(identity, identities))
    assert failed["exception"].startswith("FileNotFoundError(")
    assert "events" not in failed["measured"]
    erred = {line["key"] for line in lines if line.get("finish") == "erred"}
    assert (failed["key"] in erred) != reported
    assert caplog.text == ""


def test_each_attempt_at_a_damaged_file_is_recorded(record, folder, tmp_path):
    damaged = tmp_path / "damaged.root"
    damaged.write_bytes((folder / "a.root").read_bytes()[:5_000])

    def run():
        with pytest.raises(Exception):  # noqa: B017, PT011 - uproot's own
            compute({"DY": dataset(folder / "a.root", damaged)}, retries=2)

    _, measured, _ = record(run)

    failed = [chunk for chunk in measured if chunk["filename"] == str(damaged)]
    assert all("exception" in chunk for chunk in failed)
    assert len({chunk["run_id"] for chunk in failed}) == 3
    assert len({chunk["key"] for chunk in failed}) == 1


# -- uproot without coffea -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"open_files": True, "step_size": 125}, {"open_files": False, "steps_per_file": 2}],
    ids=["open", "not open"],
)
def test_uproot_without_coffea(record, folder, options):
    paths = [str(folder / name) for name in ("a.root", "b.root")]
    heavy = []

    def run():
        events = uproot.dask(dict.fromkeys(paths, "Events"), **options)
        heavy.append(int(ak.sum(events.weight > 4).compute()))

    identities, measured, _ = record(run)

    weights = [uproot.open(path)["Events"]["weight"].array() for path in paths]
    assert heavy == [sum(int(ak.sum(weight > 4)) for weight in weights)]
    assert list(map(entries_of, measured)) == [
        (path, *step) for path in paths for step in ((0, 125), (125, 250))
    ]
    for chunk in measured:
        assert [branch["branch"] for branch in chunk["measured"]["branches"]] == ["weight"]
        assert (chunk["treename"], "dataset" in chunk) == ("Events", False)
        assert ("open_seconds" in chunk["measured"]) != options["open_files"]
    # The entries of a step are unknown until the file is opened.
    assert all("entry_start" not in chunk for chunk in identities)


def test_a_task_that_reads_two_files_has_two_chunks(record, folder):
    paths = [str(folder / name) for name in ("a.root", "b.root")]

    def run():
        one, other = (
            uproot.dask({path: "Events"}, open_files=False, steps_per_file=2).run
            for path in paths
        )
        int(ak.sum(one + other).compute())

    identities, measured, _ = record(run)

    assert identities == []
    assert sorted(Counter(chunk["run_id"] for chunk in measured).values()) == [2, 2]
    assert list(map(entries_of, measured)) == [
        (path, *step) for path in paths for step in ((0, 125), (125, 250))
    ]


def test_steps_of_a_missing_file_have_no_entries(record, folder, tmp_path):
    missing = str(tmp_path / "missing.root")

    def run():
        paths = dict.fromkeys([str(folder / "a.root"), missing], "Events")
        events = uproot.dask(paths, open_files=False, steps_per_file=2)
        with pytest.raises(FileNotFoundError):
            ak.sum(events.weight).compute()

    _, measured, _ = record(run)

    failed = [entries_of(chunk) for chunk in measured if chunk["filename"] == missing]
    assert 1 <= len(failed) <= 2
    assert set(failed) == {(missing, None, None)}
