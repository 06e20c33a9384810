"""Chunks are identified in every form in which tasks contain them; other tasks are not."""

import dataclasses
from types import SimpleNamespace

import pytest

from roast_recorder.coffea.task_identity import (
    MAX_USERMETA_LENGTH,
    chunk_identity,
    events_identity,
    reader_identity,
)

executor = pytest.importorskip("coffea.processor.executor")
Task = pytest.importorskip("dask._task_spec").Task

ITEM = executor.WorkItem(
    "ttbar", "root://site//f.root", "Events", 50, 100, b"\x01\xff", {"xsec": 831.8}
)
IDENTITY = {
    "dataset": "ttbar",
    "filename": "root://site//f.root",
    "treename": "Events",
    "entry_start": 50,
    "entry_stop": 100,
    "file_uuid": "01ff",
    "usermeta": {"xsec": 831.8},
}


@pytest.mark.parametrize(
    "task",
    [
        Task("key", print, ITEM),
        Task("key", print, (ITEM, "processor")),
        Task("key", print, Task("inner", tuple, ITEM, "processor")),
        (print, ITEM),
    ],
    ids=["bare", "zipped", "wrapped by Dask", "legacy task"],
)
def test_a_work_item_is_found(task):
    assert chunk_identity(task) == IDENTITY


def test_a_task_that_counts_entries_has_no_entry_range():
    counts = executor.FileMeta("ttbar", "root://site//f.root", "Events")

    unknown = dict.fromkeys(("entry_start", "entry_stop", "file_uuid", "usermeta"))
    assert chunk_identity(Task("key", print, counts)) == {**IDENTITY, **unknown}


def test_other_tasks_have_no_identity():
    like_tasks = [SimpleNamespace(args=arguments) for arguments in ((), ((),))]
    for task in (
        None, b"pickled", *like_tasks, Task("key", print), Task("key", print, "text")
    ):  # fmt: skip
        assert chunk_identity(task) is None


def test_large_metadata_is_cut_and_shared_by_the_chunks_of_a_dataset():
    item, seen = dataclasses.replace(ITEM, usermeta={"files": "x" * 10_000}), {}

    first, second = (chunk_identity(Task("key", print, item), seen) for _ in range(2))

    assert len(first["usermeta"]) == MAX_USERMETA_LENGTH + 1
    assert first["usermeta"].endswith("…")
    assert first["usermeta"] is second["usermeta"]


@pytest.mark.parametrize(
    ("metadata", "dataset", "usermeta"),
    [
        ({"dataset": "DY", "year": 2018}, "DY", {"year": 2018}),
        ({"dataset": 7}, "7", None),
        (None, None, None),
    ],
)
def test_metadata_of_uproots_reader(metadata, dataset, usermeta):
    before = metadata and dict(metadata)
    reader = SimpleNamespace(form_mapping_info=SimpleNamespace(metadata=metadata))

    assert reader_identity(reader, "f.root", "t", 1, 2, False) == {
        "dataset": dataset,
        "usermeta": usermeta,
        "filename": "f.root",
        "treename": "t",
        "entry_start": None,
        "entry_stop": None,
    }
    assert metadata == before


def test_dataset_of_events_is_text():
    events = SimpleNamespace(metadata={"filename": "f.root", "dataset": ("DY", 2018)})

    assert events_identity(events)["dataset"] == "('DY', 2018)"
