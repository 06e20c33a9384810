"""Which files somebody meant, what each is a part of, and what is not read."""

import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import NotATrace, TraceNotFound
from roast_analyze.open.discover import find_inputs, group_by_trace


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
    """Trace and number of the segments that are read, and their files, in order."""
    return [
        (part.identity.trace_id, part.identity.segment, part.segment.path.name)
        for part in find_inputs(names).parts
    ]


def keys(*names):
    with Trace(*names) as trace:
        return trace.sql("SELECT trace_id, key FROM tasks").fetchall()


def lost(*names):
    with Trace(*names) as trace:
        return trace.sql("SELECT reason, records, detail FROM loss").fetchall()


def test_several_traces_are_told_apart(segment):
    a, b = segment("a.jsonl", trace_id="A"), segment("b.jsonl", trace_id="B")

    assert keys(b, a) == [("B", "a-b.jsonl"), ("A", "a-a.jsonl")] or keys(b, a) == [
        ("A", "a-a.jsonl"),
        ("B", "a-b.jsonl"),
    ]


def test_a_folder_may_hold_several_traces(tmp_path, segment):
    segment("f/a.jsonl", trace_id="A")
    segment("f/b.jsonl", trace_id="B")

    assert found(tmp_path / "f") == [("A", 1, "a.jsonl"), ("B", 1, "b.jsonl")]


def test_a_pattern_is_for_files_and_folders(tmp_path, segment):
    segment("run-1.jsonl", trace_id="A")
    segment("run-2/1.jsonl", trace_id="B")
    segment("other.jsonl", trace_id="C")

    assert found(tmp_path / "run-*") == [("A", 1, "run-1.jsonl"), ("B", 1, "1.jsonl")]
    assert found(tmp_path / "**" / "1.jsonl") == [("B", 1, "1.jsonl")]


def test_a_pattern_that_fits_nothing(tmp_path):
    with pytest.raises(TraceNotFound, match=r"there is no '.*x\*'; name a trace"):
        find_inputs([tmp_path / "x*"])


def test_segments_come_in_the_order_of_their_headers_whatever_their_names(tmp_path, segment):
    segment("f/a.jsonl", 3)
    segment("f/b.jsonl", 1)
    segment("f/c.jsonl", 2)

    assert [number for _, number, _ in found(tmp_path / "f")] == [1, 2, 3]
    assert lost(tmp_path / "f") == []


def test_a_segment_that_is_missing_is_counted(tmp_path, segment):
    segment("f/1.jsonl", 1)
    segment("f/3.jsonl", 3)

    assert [reason for reason, *_ in lost(tmp_path / "f")] == ["segment missing"]


def test_a_copy_of_a_segment_is_left_out(tmp_path, segment):
    path = segment("f/a.jsonl")
    (tmp_path / "f" / "a.jsonl.zst").write_bytes(zstandard.compress(path.read_bytes()))

    assert keys(tmp_path / "f") == [("T", "a-f/a.jsonl")]
    assert lost(tmp_path / "f") == [
        (
            "duplicate segment",
            0,
            "a.jsonl.zst was left out for a.jsonl, which has all that is in it",
        )
    ]


def test_of_two_copies_the_longer_one_is_read(tmp_path, segment):
    path = segment("f/b.jsonl")
    whole = path.read_bytes()
    (tmp_path / "f" / "a.jsonl").write_bytes(whole[: len(whole) // 2])

    assert keys(tmp_path / "f") == [("T", "a-f/b.jsonl")]
    assert lost(tmp_path / "f")[0][1:] == (
        0,
        "a.jsonl was left out for b.jsonl, which has all that is in it",
    )


def test_two_segments_of_one_number_that_differ(tmp_path, segment):
    segment("f/long-name.jsonl")
    segment("f/b.jsonl")

    assert keys(tmp_path / "f") == [("T", "a-f/long-name.jsonl")]
    assert lost(tmp_path / "f") == [
        (
            "duplicate segment",
            None,
            "b.jsonl was left out for long-name.jsonl, which is longer and not the same",
        )
    ]


def test_a_file_that_is_named_twice_is_one(tmp_path, segment):
    path = segment("f/a.jsonl")
    (tmp_path / "link.jsonl").symlink_to(path)

    names = (path, path, tmp_path / "f", tmp_path / "link.jsonl")
    assert keys(*names) == [("T", "a-f/a.jsonl")]
    assert lost(*names) == []


def test_each_of_several_names_must_be_a_trace(tmp_path, segment):
    path = segment("a.jsonl")
    (tmp_path / "notes.txt").write_text("hello\n")

    with pytest.raises(NotATrace, match=r"notes.txt' is no trace: no line of it is a record"):
        Trace(path, tmp_path / "notes.txt")


def test_no_name_at_all():
    with pytest.raises(TraceNotFound, match="no trace is named"):
        Trace()


# -- which traces were named -------------------------------------------------------------


def test_each_name_is_a_trace(segment):
    a, b = segment("a.jsonl", trace_id="A"), segment("b.jsonl", trace_id="B")

    assert group_by_trace([b, a]) == [(b,), (a,)]


def test_segments_and_copies_of_one_trace_are_one(tmp_path, segment):
    one, two = segment("f/1.jsonl", 1), segment("f/2.jsonl", 2)
    copy, other = segment("copy.jsonl", 1), segment("other.jsonl", trace_id="B")

    assert group_by_trace([one, other, two, copy]) == [(one, two, copy), (other,)]
    assert group_by_trace([tmp_path / "f"]) == [(tmp_path / "f",)]


def test_what_holds_several_traces_is_taken_apart(tmp_path, segment):
    a, b = segment("f/a.jsonl", trace_id="A"), segment("f/b.jsonl", trace_id="B")
    more = segment("more.jsonl", 2, trace_id="A")

    assert group_by_trace([tmp_path / "f", more]) == [(a, more), (b,)]
    assert group_by_trace([tmp_path / "f" / "*.jsonl"]) == [(a,), (b,)]


def test_traces_without_a_header_are_known_by_where_they_lie(tmp_path):
    """Of both, the name of the file is all that is known: it is the same."""
    paths = [tmp_path / "x" / "run.jsonl", tmp_path / "y" / "run.jsonl"]
    for path in paths:
        path.parent.mkdir()
        path.write_text('{"kind":"task","t":1.0,"key":"a"}\n')

    assert group_by_trace(paths) == [(path,) for path in paths]


def test_every_name_must_be_a_trace(tmp_path, segment):
    (tmp_path / "empty.jsonl").touch()

    with pytest.raises(NotATrace, match="empty"):
        group_by_trace([segment("a.jsonl"), tmp_path / "empty.jsonl"])
    with pytest.raises(TraceNotFound, match="nowhere"):
        group_by_trace([segment("a.jsonl"), tmp_path / "nowhere.jsonl"])
