"""The traces below a folder."""

import os

import pytest

from roast_analyze.server import folder as module
from roast_analyze.server.folder import Folder


def places(path) -> dict[str, tuple[str, ...]]:
    """Return the files of each trace by its place."""
    found = Folder(path.resolve()).traces()
    return {trace.place: tuple(path.name for path in trace.paths) for trace in found}


def test_files_segments_and_folders(tmp_path, write_trace):
    write_trace(name="a.jsonl", trace_id="a")
    write_trace(name="day/b.jsonl", trace_id="b")
    for segment in (1, 2):
        write_trace(name=f"c/00000{segment}.jsonl", segment=segment, trace_id="c")
    assert places(tmp_path) == {
        "a.jsonl": ("a.jsonl",),
        "day/b.jsonl": ("b.jsonl",),
        "c": ("c",),
    }
    # Served itself, a folder of segments is one run.
    assert places(tmp_path / "c") == {"c": ("c",)}


def test_segments_beside_other_traces(tmp_path, write_trace):
    for segment in (1, 2):
        write_trace(name=f"00000{segment}.jsonl", segment=segment, trace_id="a")
    write_trace(name="b.jsonl", trace_id="b")
    assert places(tmp_path) == {
        "000001.jsonl": ("000001.jsonl", "000002.jsonl"),
        "b.jsonl": ("b.jsonl",),
    }


def copies(path) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return the files of each trace and what it is a copy of, by its place."""
    found = Folder(path.resolve()).traces()
    return {it.place: (tuple(path.name for path in it.paths), it.copy_of) for it in found}


def test_a_copy_is_a_trace_of_its_own(tmp_path, write_trace, task):
    """The largest file is the trace, whatever its name."""
    whole = write_trace(task("a-1"), task("a-2"), name="z-full.jsonl")
    (tmp_path / "a-partial.jsonl").write_bytes(whole.read_bytes()[:300])
    (tmp_path / "m-same.jsonl").write_bytes(whole.read_bytes())
    assert copies(tmp_path) == {
        "m-same.jsonl": (("m-same.jsonl",), ""),
        "z-full.jsonl": (("z-full.jsonl",), "m-same.jsonl"),
        "a-partial.jsonl": (("a-partial.jsonl",), "m-same.jsonl"),
    }
    ids = {trace.id for trace in Folder(tmp_path.resolve()).traces()}
    assert len(ids) == 3


def test_copies_of_segments(tmp_path, write_trace, task):
    segments = [
        write_trace(task("a-1"), name=f"c/00000{number}.jsonl", segment=number)
        for number in (1, 2, 3)
    ]
    for path in segments[:2]:
        path.with_name(f"old-{path.name}").write_bytes(path.read_bytes()[:300])
    assert copies(tmp_path) == {
        "c/000001.jsonl": (("000001.jsonl", "000002.jsonl", "000003.jsonl"), ""),
        "c/old-000001.jsonl": (("old-000001.jsonl", "old-000002.jsonl"), "c/000001.jsonl"),
    }


def test_a_copy_keeps_its_identity_and_that_of_the_trace(tmp_path, write_trace, task):
    folder = Folder(tmp_path.resolve())
    whole = write_trace(task("a-1"), name="full.jsonl")
    [before] = folder.traces()
    (tmp_path / "cut.jsonl").write_bytes(whole.read_bytes()[:300])
    [after, copy] = folder.traces()
    assert (after.id, after.stamp) == (before.id, before.stamp)
    write_trace(task("a-1"), task("a-2"), name="full.jsonl")
    assert [trace.id for trace in folder.traces()] == [before.id, copy.id]


def test_what_is_not_listed(tmp_path, write_trace):
    kept = write_trace(name="inside/a.jsonl")
    (tmp_path / "inside" / "link.jsonl").symlink_to(kept)
    (tmp_path / "inside" / "linked").symlink_to(tmp_path)
    write_trace(name="inside/.hidden/b.jsonl", trace_id="b")
    (tmp_path / "inside" / "other.jsonl").write_text('{"kind": "something"}\n')
    (tmp_path / "inside" / "empty.jsonl").touch()
    os.mkfifo(tmp_path / "inside" / "pipe.jsonl")
    assert places(tmp_path / "inside") == {"a.jsonl": ("a.jsonl",)}


def test_a_trace_keeps_its_identity_and_changes_its_stamp(tmp_path, write_trace, task):
    folder = Folder(tmp_path.resolve())
    path = write_trace(name="a.jsonl")
    [before] = folder.traces()
    path.rename(tmp_path / "renamed.jsonl")
    [renamed] = folder.traces()
    write_trace(task("a-1"), name="renamed.jsonl")
    [after] = folder.traces()
    assert before.id == renamed.id == after.id
    assert len({before.stamp, renamed.stamp, after.stamp}) == 3


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_large_folder_is_cut(tmp_path, write_trace, monkeypatch, most):
    monkeypatch.setattr(module, "MOST_ENTRIES", most)
    for number in range(3):
        write_trace(name=f"{'x/' * number}a.jsonl", trace_id=str(number))
    folder = Folder(tmp_path.resolve())
    assert len([*folder.traces()]) < 3
    assert folder.is_cut
