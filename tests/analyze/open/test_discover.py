"""Files selected by a name, their traces and segments, and files that are left out."""

import os
from pathlib import Path

import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import NotATrace, TraceNotFound
from roast_analyze.open.discover import (
    find_inputs,
    group_by_trace,
    segment_paths,
    trace_name,
)
from roast_analyze.open.readable import readable_traces
from roast_schemas import SCHEMA_VERSION


@pytest.fixture
def segment(tmp_path, lines, task):
    """Write a segment with one task, named after its file."""

    def segment(name: str, number: int = 1, trace_id: str = "T", *, header: bool = True):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        content = lines(task(f"a-{name}"), segment=number, trace_id=trace_id)
        path.write_bytes(content if header else content.partition(b"\n")[2])
        return path

    return segment


def found(*names):
    return [(*part.identity, part.path.name) for part in find_inputs(names).segments]


def test_content_of_compressed_files_is_estimated(segment):
    plain = segment("run/1.jsonl", 1)
    compressed = segment("run/2.jsonl.zst", 2)
    compressed.write_bytes(zstandard.compress(compressed.read_bytes()))

    nbytes = plain.stat().st_size + 12 * compressed.stat().st_size
    assert find_inputs([plain.parent]).content_bytes == nbytes


def test_folders_and_patterns(tmp_path, segment, keys_and_losses):
    segment("run-1.jsonl", trace_id="A")
    segment("run-2/1.jsonl", trace_id="B")
    segment("run-2/2.jsonl", trace_id="C")
    segment("other.jsonl", trace_id="D")
    # Other files are ignored.
    (tmp_path / "run-1.txt").write_text("hello")
    (tmp_path / "run-2" / "notes.txt").write_text("hello")
    (tmp_path / "run-2" / "._1.jsonl").write_bytes(b"\0")
    (tmp_path / "run-2" / "3.jsonl").mkdir()

    in_folder = [("B", 1, "1.jsonl"), ("C", 1, "2.jsonl")]
    assert found(tmp_path / "run-2") == in_folder
    assert found(tmp_path / "run-*") == [("A", 1, "run-1.jsonl"), *in_folder]
    assert found(tmp_path / "**" / "1.jsonl") == in_folder[:1]
    segment("copy-1")
    assert found(tmp_path / "copy-*") == [("T", 1, "copy-1")]
    with pytest.raises(TraceNotFound, match=r"no file matches '.*x\*': name a trace file"):
        find_inputs([tmp_path / "x*"])
    expected = ["a-run-2/1.jsonl", "a-run-2/2.jsonl"], []
    assert keys_and_losses(tmp_path / "run-2") == expected


def test_segments_are_ordered_by_their_headers_or_else_by_name(tmp_path, segment):
    for name, number in [("a", 3), ("b", 1), ("c", 2)]:
        segment(f"f/{name}.jsonl", number)
    for number in (10, 9):
        segment(f"g/{number}.jsonl", header=False)

    assert [name for *_, name in found(tmp_path / "f")] == ["b.jsonl", "c.jsonl", "a.jsonl"]
    assert [name for *_, name in found(tmp_path / "g" / "*")] == ["9.jsonl", "10.jsonl"]


def test_a_segment_without_header_belongs_to_its_neighbors(tmp_path, segment, keys_and_losses):
    segment("f/1.jsonl", header=False)
    segment("f/2.jsonl", 2)

    assert found(tmp_path / "f") == [("T", 1, "1.jsonl"), ("T", 2, "2.jsonl")]
    _, losses = keys_and_losses(tmp_path / "f")
    detail = "segment 1: the recorder's version and settings are unknown"
    assert ("no header", None, detail) in losses


def test_missing_and_empty_files_are_reported(tmp_path, segment, keys_and_losses):
    segment("f/1.jsonl", 1)
    for name in ("0.jsonl", "2.jsonl"):
        (tmp_path / "f" / name).touch()
        losses = [("empty file", None, f"{name} is empty")]
        assert keys_and_losses(tmp_path / "f") == (["a-f/1.jsonl"], losses)
        (tmp_path / "f" / name).unlink()

    segment("f/3.jsonl", 3)

    _, losses = keys_and_losses(tmp_path / "f")
    assert [reason for reason, *_ in losses] == ["segment missing"]


def test_of_several_files_of_a_segment_the_longest_is_read(tmp_path, segment, keys_and_losses):
    whole = segment("f/long-name.jsonl").read_bytes()
    (tmp_path / "f" / "a.jsonl").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "f" / "n.jsonl.zst").write_bytes(zstandard.compress(whole))
    segment("f/b.jsonl")

    keys, losses = keys_and_losses(tmp_path / "f")

    assert keys == ["a-f/long-name.jsonl"]
    skipped = "{} was skipped in favor of long-name.jsonl, which {}"
    assert sorted(losses, key=str) == [
        ("duplicate segment", 0, skipped.format("a.jsonl", "contains all its records")),
        ("duplicate segment", 0, skipped.format("n.jsonl.zst", "contains all its records")),
        (
            "duplicate segment",
            None,
            skipped.format("b.jsonl", "is no shorter and differs"),
        ),
    ]


def test_a_file_that_is_named_twice_is_read_once(tmp_path, segment, keys_and_losses):
    path = segment("f/a.jsonl")
    (tmp_path / "link.jsonl").symlink_to(path)

    names = (path, path, tmp_path / "f", tmp_path / "link.jsonl")
    assert keys_and_losses(*names) == (["a-f/a.jsonl"], [])


@pytest.mark.exhaustive
def test_file_names_are_literal(tmp_path, segment, keys_and_losses):
    for decoy in ("ab.jsonl", "axxx.jsonl", "ab", "a.jsonl"):
        segment(decoy)
    for name in [
        "a*.jsonl", "a[b].jsonl", "it's.jsonl", "a{b,c}.jsonl", "$path.jsonl", "a\nb.jsonl",
        "новый файл.jsonl", "back\\slash.jsonl",
    ]:  # fmt: skip
        assert keys_and_losses(segment(name)) == ([f"a-{name}"], [])
    segment("a[1]*?'/1.jsonl")
    assert keys_and_losses(tmp_path / "a[1]*?'") == (["a-a[1]*?'/1.jsonl"], [])


def test_trace_names():
    names = {
        "run.jsonl": "run", "run.jsonl.zst": "run", "run.jsonl.gz": "run",
        "run.v2.jsonl": "run.v2", "run": "run", ".jsonl": ".jsonl", "run/": "run",
    }  # fmt: skip

    assert {name: trace_name(Path("/x") / name) for name in names} == names


def test_names_are_grouped_by_trace(tmp_path, segment):
    one, two = segment("f/1.jsonl", 1), segment("f/2.jsonl", 2)
    copy, other = segment("copy.jsonl", 1), segment("other.jsonl", trace_id="B")

    assert group_by_trace([other, one]) == [(other,), (one,)]
    assert group_by_trace([one, other, two, copy]) == [(one, two, copy), (other,)]
    assert group_by_trace([tmp_path / "f"]) == [(tmp_path / "f",)]

    # A folder with several traces is split.
    a, b = segment("g/a.jsonl", trace_id="A"), segment("g/b.jsonl", trace_id="B")
    more = segment("more.jsonl", 2, trace_id="A")
    assert group_by_trace([tmp_path / "g", more]) == [(a, more), (b,)]
    assert group_by_trace([tmp_path / "g" / "*.jsonl"]) == [(a,), (b,)]

    # A file without a header can belong to any of them, or to none.
    (tmp_path / "g" / "noise.jsonl").write_bytes(os.urandom(100))
    assert group_by_trace([tmp_path / "g"]) == [(a,), (b,), (tmp_path / "g" / "noise.jsonl",)]

    # Traces without a header are identified by their paths.
    x, y = segment("x/run.jsonl", header=False), segment("y/run.jsonl", header=False)
    assert group_by_trace([x, y]) == [(x,), (y,)]


def test_a_bad_file_does_not_hide_its_neighbors(tmp_path, segment):
    folder = tmp_path / "f"
    a, b = segment("f/a.jsonl", trace_id="A"), segment("f/b.jsonl", trace_id="B")
    new, link = segment("f/new.jsonl", trace_id="C"), folder / "link.jsonl"
    new.write_bytes(new.read_bytes().replace(SCHEMA_VERSION.encode(), b"99.0", 1))
    link.symlink_to(tmp_path / "nowhere")

    for names, bad in [
        ([folder], [new]),
        ([folder / "*.jsonl"], [link, new]),
        ([a, b, link, new], [link, new]),
    ]:
        traces, failures = readable_traces(names)
        assert traces == [(a,), (b,)]
        assert [failure.path for failure in failures] == [str(path) for path in bad]
    assert failures[0].reason.startswith(f"'{link}' does not exist: ")


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


@pytest.mark.parametrize("url", ["http://", "s3://", "file://"])
def test_a_url_of_nothing(url):
    with pytest.raises(TraceNotFound, match=f"^'{url}' names no trace: write the whole URL"):
        Trace(url)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(segment):
    path = segment("a.jsonl")
    path.chmod(0)

    with pytest.raises(NotATrace, match="Permission denied"):
        Trace(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ttbar.jsonl", "did you mean '{folder}/ttbar.jsonl.zst'?"),
        ("other.jsonl", "'{folder}/other.jsonl' does not exist: name a trace file or a folder"),
        (
            "other*.jsonl",
            "no file matches '{folder}/other*.jsonl': name a trace file or a folder",
        ),
    ],
)
def test_a_trace_that_does_not_exist(tmp_path, name, message):
    (tmp_path / "ttbar.jsonl.zst").touch()

    with pytest.raises(TraceNotFound) as error:
        segment_paths(tmp_path / name)

    assert message.format(folder=tmp_path) in str(error.value)
