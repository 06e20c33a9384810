"""Chunks are identified in whatever form a task contains them, and other tasks are not."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from roast_recorder.coffea.task_identity import (
    MAX_USERMETA_LENGTH,
    chunk_identity,
    reader_identity,
)

executor = pytest.importorskip("coffea.processor.executor")
Task = pytest.importorskip("dask._task_spec").Task


def work_item(**usermeta):
    return executor.WorkItem(
        "ttbar", "root://site//f.root", "Events", 50, 100, b"\x01\xff", usermeta
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
        Task("key", print, work_item(xsec=831.8)),
        Task("key", print, (work_item(xsec=831.8), "processor")),
        Task("key", print, Task("inner", tuple, work_item(xsec=831.8), "processor")),
        (print, work_item(xsec=831.8)),
    ],
    ids=["bare", "zipped", "wrapped by Dask", "legacy task"],
)
def test_a_work_item_is_found(task):
    assert chunk_identity(task) == IDENTITY


def test_a_task_that_counts_entries_has_none():
    task = Task("key", print, executor.FileMeta("ttbar", "f.root", "Events"))

    unknown = dict.fromkeys(("entry_start", "entry_stop", "file_uuid", "usermeta"))
    assert chunk_identity(task) == {
        "dataset": "ttbar",
        "filename": "f.root",
        "treename": "Events",
        **unknown,
    }


@dataclass
class Lookalike:
    args: tuple = field(default_factory=tuple)


@pytest.mark.parametrize(
    "run_spec",
    [
        None,
        b"pickled",
        Lookalike(),
        Lookalike(((),)),
        Task("key", print),
        Task("key", print, "text"),
    ],
)
def test_other_tasks_have_no_identity(run_spec):
    assert chunk_identity(run_spec) is None


def test_large_metadata_is_cut_and_shared_by_the_chunks_of_a_dataset():
    item, seen = work_item(files="x" * 10_000), {}

    first, second = (chunk_identity(Task("key", print, item), seen) for _ in range(2))

    assert len(first["usermeta"]) == MAX_USERMETA_LENGTH + 1
    assert first["usermeta"].endswith("…")
    assert first["usermeta"] is second["usermeta"]


@pytest.mark.parametrize(
    ("metadata", "dataset", "usermeta"),
    [
        ({"dataset": "DY", "year": 2018}, "DY", {"year": 2018}),
        ({"dataset": 7}, "7", None),
        ({"year": 2018}, None, {"year": 2018}),
        (None, None, None),
    ],
)
def test_metadata_of_uproots_reader(metadata, dataset, usermeta):
    before = None if metadata is None else dict(metadata)
    reader = SimpleNamespace(form_mapping_info=SimpleNamespace(metadata=metadata))

    found = reader_identity(reader, "f.root", "t", 1, 2, False)
    assert found == {
        "dataset": dataset,
        "usermeta": usermeta,
        "filename": "f.root",
        "treename": "t",
        "entry_start": None,
        "entry_stop": None,
    }
    assert metadata == before
