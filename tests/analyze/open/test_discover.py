"""Which files a name means, which segment each file is, and which files are left out."""

import os
from pathlib import Path

import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import NotATrace, TraceNotFound
from roast_analyze.open.discover import find_inputs, group_by_trace, trace_name


@pytest.fixture
def segment(tmp_path, lines, task):
    """Write a segment with one task, named after its file."""

    def segment(name: str, number: int = 1, trace_id: str = "T"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        content = lines(task(f"a-{name}"), segment=number)
        path.write_bytes(content.replace(b'"T"', f'"{trace_id}"'.encode()))
        return path

    return segment


def found(*names):
    return [
        (part.identity.trace_id, part.identity.segment, part.segment.path.name)
        for part in find_inputs(names).parts
    ]


def keys_and_losses(*names):
    with Trace(*names) as trace:
        keys = [key for (key,) in trace.sql("SELECT key FROM tasks").fetchall()]
        return keys, trace.sql("SELECT reason, records, detail FROM loss").fetchall()


def test_folders_and_patterns(tmp_path, segment):
    segment("run-1.jsonl", trace_id="A")
    segment("run-2/1.jsonl", trace_id="B")
    segment("run-2/2.jsonl", trace_id="C")
    segment("other.jsonl", trace_id="D")

    assert found(tmp_path / "run-2") == [("B", 1, "1.jsonl"), ("C", 1, "2.jsonl")]
    assert found(tmp_path / "run-*") == [
        ("A", 1, "run-1.jsonl"),
        ("B", 1, "1.jsonl"),
        ("C", 1, "2.jsonl"),
    ]
    assert found(tmp_path / "**" / "1.jsonl") == [("B", 1, "1.jsonl")]
    with pytest.raises(TraceNotFound, match=r"x\*' does not exist: name a trace file"):
        find_inputs([tmp_path / "x*"])


def test_segments_are_ordered_by_their_headers_or_else_by_name(tmp_path, segment, lines, task):
    for name, number in [("a", 3), ("b", 1), ("c", 2)]:
        segment(f"f/{name}.jsonl", number)
    for number in (10, 9):
        headless = lines(task("a")).split(b"\n", 1)[1]
        (tmp_path / "g").mkdir(exist_ok=True)
        (tmp_path / "g" / f"{number}.jsonl").write_bytes(headless)

    assert [number for _, number, _ in found(tmp_path / "f")] == [1, 2, 3]
    assert [name for *_, name in found(tmp_path / "g" / "*")] == ["9.jsonl", "10.jsonl"]


def test_other_files_of_a_folder_are_ignored(tmp_path, segment):
    segment("f/1.jsonl")
    (tmp_path / "f" / "notes.txt").write_text("hello")
    (tmp_path / "f" / "._1.jsonl").write_bytes(b"\0")
    (tmp_path / "f" / "2.jsonl").mkdir()

    assert keys_and_losses(tmp_path / "f") == (["a-f/1.jsonl"], [])


def test_a_segment_without_header_belongs_to_its_neighbors(tmp_path, lines, task):
    headless = lines(task("a"), segment=1).split(b"\n", 1)[1]
    (tmp_path / "1.jsonl").write_bytes(headless.replace(b'"header": 1, ', b""))
    (tmp_path / "2.jsonl").write_bytes(lines(task("b"), segment=2))

    with Trace(tmp_path) as trace:
        assert trace.sql("SELECT trace_id, tasks FROM run").fetchall() == [("T", 2)]
    assert [(reason, detail) for reason, _, detail in keys_and_losses(tmp_path)[1]][-1] == (
        "no header",
        "segment 1: the recorder's version and settings are unknown",
    )


def test_a_missing_segment_is_reported(tmp_path, segment):
    segment("f/1.jsonl", 1)
    segment("f/3.jsonl", 3)

    assert [reason for reason, *_ in keys_and_losses(tmp_path / "f")[1]] == ["segment missing"]


@pytest.mark.parametrize("name", ["0.jsonl", "2.jsonl"])
def test_an_empty_file_next_to_a_segment_is_reported(tmp_path, segment, name):
    segment("f/1.jsonl")
    (tmp_path / "f" / name).touch()

    assert keys_and_losses(tmp_path / "f") == (
        ["a-f/1.jsonl"],
        [("empty file", None, f"{name} is empty")],
    )


def test_of_two_copies_the_longer_one_is_read(tmp_path, segment):
    path = segment("f/b.jsonl")
    whole = path.read_bytes()
    (tmp_path / "f" / "a.jsonl").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "f" / "b.jsonl.zst").write_bytes(zstandard.compress(whole))

    keys, losses = keys_and_losses(tmp_path / "f")

    assert keys == ["a-f/b.jsonl"]
    assert sorted(losses) == [
        (
            "duplicate segment",
            0,
            f"{name} was skipped in favor of b.jsonl, which contains all its records",
        )
        for name in ("a.jsonl", "b.jsonl.zst")
    ]


def test_two_different_segments_with_the_same_number(tmp_path, segment):
    segment("f/long-name.jsonl")
    segment("f/b.jsonl")

    assert keys_and_losses(tmp_path / "f") == (
        ["a-f/long-name.jsonl"],
        [
            (
                "duplicate segment",
                None,
                "b.jsonl was skipped in favor of long-name.jsonl, which is longer and differs",
            )
        ],
    )


def test_a_file_that_is_named_twice_is_read_once(tmp_path, segment):
    path = segment("f/a.jsonl")
    (tmp_path / "link.jsonl").symlink_to(path)

    names = (path, path, tmp_path / "f", tmp_path / "link.jsonl")
    assert keys_and_losses(*names) == (["a-f/a.jsonl"], [])


def test_file_names_are_literal(tmp_path, lines, task):
    for decoy in ("ab.jsonl", "axxx.jsonl", "ab", "a.jsonl"):
        (tmp_path / decoy).write_bytes(lines(task("decoy")))
    for name in [
        "a*.jsonl", "a[b].jsonl", "it's.jsonl", "a{b,c}.jsonl", "$path.jsonl", "a\nb.jsonl",
        "новый файл.jsonl", "back\\slash.jsonl",
    ]:  # fmt: skip
        (tmp_path / name).write_bytes(lines(task(name)))
        assert keys_and_losses(tmp_path / name) == ([name], [])
    folder = tmp_path / "a[1]*?'"
    folder.mkdir()
    (folder / "1.jsonl").write_bytes(lines(task("a")))
    assert keys_and_losses(folder) == (["a"], [])


def test_trace_names():
    names = {
        "run.jsonl": "run", "run.jsonl.zst": "run", "run.jsonl.gz": "run",
        "run.v2.jsonl": "run.v2", "run": "run", ".jsonl": ".jsonl", "run/": "run",
    }  # fmt: skip

    assert {name: trace_name(Path("/x") / name) for name in names} == names


# -- grouping by trace -------------------------------------------------------------------


def test_names_are_grouped_by_trace(tmp_path, segment):
    one, two = segment("f/1.jsonl", 1), segment("f/2.jsonl", 2)
    copy, other = segment("copy.jsonl", 1), segment("other.jsonl", trace_id="B")

    assert group_by_trace([other, one]) == [(other,), (one,)]
    assert group_by_trace([one, other, two, copy]) == [(one, two, copy), (other,)]
    assert group_by_trace([tmp_path / "f"]) == [(tmp_path / "f",)]


def test_a_folder_with_several_traces_is_split(tmp_path, segment):
    a, b = segment("f/a.jsonl", trace_id="A"), segment("f/b.jsonl", trace_id="B")
    more = segment("more.jsonl", 2, trace_id="A")

    assert group_by_trace([tmp_path / "f", more]) == [(a, more), (b,)]
    assert group_by_trace([tmp_path / "f" / "*.jsonl"]) == [(a,), (b,)]


def test_traces_without_headers_are_identified_by_path(tmp_path):
    paths = [tmp_path / "x" / "run.jsonl", tmp_path / "y" / "run.jsonl"]
    for path in paths:
        path.parent.mkdir()
        path.write_text('{"kind":"task","t":1.0,"key":"a"}\n')

    assert group_by_trace(paths) == [(path,) for path in paths]


# -- names that are refused --------------------------------------------------------------


def test_every_name_must_be_a_trace(tmp_path, segment):
    path = segment("a.jsonl")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    latin = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.jsonl"))
    latin.write_bytes(path.read_bytes())

    for name, error, message in [
        ("nowhere.jsonl", TraceNotFound, "does not exist: name a trace file or a folder"),
        ("empty.jsonl", NotATrace, "is empty: name a trace recorded by roast"),
        ("notes.txt", NotATrace, "notes.txt' contains no records: name a trace"),
        ("folder", NotATrace, "contains no trace: segments end in .jsonl, .jsonl.zst, "),
        ("pipe.jsonl", NotATrace, "is neither a file nor a folder"),
        (latin.name, NotATrace, "is not UTF-8: rename the file"),
    ]:
        with pytest.raises(error) as caught:
            Trace(path, tmp_path / name)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(TraceNotFound, match="no trace given"):
        Trace()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(segment):
    path = segment("a.jsonl")
    path.chmod(0)

    with pytest.raises(NotATrace, match="Permission denied"):
        Trace(path)
