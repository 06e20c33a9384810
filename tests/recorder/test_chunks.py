"""Chunk identity: found in whatever shape the work item travels, never mistaken."""

from dataclasses import dataclass, field

import pytest

from roast_recorder.coffea.task_identity import MAX_USERMETA_LENGTH, chunk_identity

coffea_executor = pytest.importorskip("coffea.processor.executor")
Task = pytest.importorskip("dask._task_spec").Task


def work_item(**usermeta):
    return coffea_executor.WorkItem(
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
    "first_argument",
    [
        work_item(xsec=831.8),
        (work_item(xsec=831.8), "processor"),
        Task("inner", tuple, work_item(xsec=831.8), "processor"),
    ],
    ids=["bare", "zipped", "wrapped by Dask"],
)
def test_a_chunk_is_recognised(first_argument):
    assert chunk_identity(Task("key", print, first_argument)) == IDENTITY


def test_a_file_that_is_asked_for_its_entries_has_none():
    file = coffea_executor.FileMeta("ttbar", "f.root", "Events")

    assert chunk_identity(Task("key", print, file)) == {
        "dataset": "ttbar",
        "filename": "f.root",
        "treename": "Events",
        "entry_start": None,
        "entry_stop": None,
        "file_uuid": None,
        "usermeta": None,
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
        Task("key", print),
        Task("key", print, "text"),
        Lookalike(((),)),
    ],
)
def test_other_tasks_are_not(run_spec):
    assert chunk_identity(run_spec) is None


def test_large_metadata_is_cut():
    identity = chunk_identity(Task("key", print, work_item(files="x" * 10_000)))

    assert len(identity["usermeta"]) == MAX_USERMETA_LENGTH + 1
    assert identity["usermeta"].endswith("…")
