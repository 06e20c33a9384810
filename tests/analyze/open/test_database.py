"""The cache of databases: reuse, growth, damage and limits."""

import json
import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import CacheNotUsed, TraceError
from roast_analyze.open import cache, database, load

QUERIES = (
    "SELECT key, attempt, outcome FROM task_runs ORDER BY ALL",
    "FROM tasks ORDER BY ALL",
    "SELECT reason, records, detail FROM loss ORDER BY ALL",
    "SELECT segment, start_t, stop_t FROM trace_info ORDER BY ALL",
    "SELECT t, key, start, finish FROM transitions",
)


@pytest.fixture(autouse=True)
def folder(own_cache):
    return own_cache


@pytest.fixture
def records(task, run):
    """Return some tasks and their runs."""

    def records(first: int, last: int) -> list[dict]:
        return [
            record
            for i in range(first, last)
            for record in (task(f"a-{i}", float(i)), *run(f"a-{i}", i + 0.25, i + 0.75))
        ]

    return records


@pytest.fixture
def read_bytes(monkeypatch):
    """Return a list to which each load appends the number of bytes that it parses."""
    read = []
    original = load.load_segment

    def counted(connection, segment, begin, report):
        read.append(segment.nbytes - begin.offset)
        return original(connection, segment, begin, report)

    monkeypatch.setattr(load, "load_segment", counted)
    return read


def answers(*paths, **options):
    with Trace(*paths, **options) as trace:
        return [trace.rows(query) for query in QUERIES]


def truth(*paths):
    """Return the answers of a new database in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "UNCACHED_BYTES", 10**9)
        return answers(*paths)


@pytest.fixture
def write_segments(tmp_path, lines, records):
    """Write segments of a trace, with five tasks each; yield after each of them."""

    def write_segments(*numbers: int):
        (tmp_path / "traces").mkdir()
        for number in numbers:
            path = tmp_path / "traces" / f"{number}.jsonl"
            path.write_bytes(lines(*records(5 * number, 5 * number + 5), segment=number))
            yield tmp_path / "traces"

    return write_segments


def databases(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.duckdb"))


# -- reuse ---------------------------------------------------------


def test_a_trace_is_parsed_once(write_trace, records, read_bytes, folder):
    path = write_trace(*records(0, 5))
    first = answers(path)

    assert answers(path) == first == answers(path, cache=False)
    assert read_bytes == [path.stat().st_size] * 2  # for the cache, and without it
    assert len(databases(folder)) == 1
    shutil.rmtree(folder)
    assert answers(path) == first


@pytest.mark.exhaustive
def test_a_path_can_be_written_in_several_ways(
    monkeypatch, tmp_path, write_segments, read_bytes
):
    [*_, traces] = write_segments(1, 2)
    (tmp_path / "link").symlink_to(traces)
    monkeypatch.chdir(tmp_path)
    names = [traces, "traces/", "./traces", "traces/../traces", "link", tmp_path / "link/."]
    files = [traces / "1.jsonl", "traces/1.jsonl", "link/1.jsonl", "traces/./1.jsonl"]

    found = {json.dumps(answers(name)) for name in names}
    of_file = {json.dumps(answers(name)) for name in files}

    assert len(found) == len(of_file) == 1
    assert found == {json.dumps(answers(traces))}
    # Each file once for the folder; the first one also for itself.
    sizes = [(traces / f"{number}.jsonl").stat().st_size for number in (1, 2, 1)]
    assert read_bytes == sizes


@pytest.mark.exhaustive
def test_traces_that_are_not_cached(monkeypatch, write_trace, records, folder):
    path = write_trace(*records(0, 5))
    nbytes = path.stat().st_size
    for uncached_bytes, cached in [(nbytes + 1, 0), (nbytes, 1)]:
        monkeypatch.setattr(database, "UNCACHED_BYTES", uncached_bytes)
        answers(path)
        assert len(databases(folder)) == cached
    shutil.rmtree(folder)
    answers(path, cache=False)
    assert not folder.exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", [shutil.copy, shutil.move, os.link])
def test_a_moved_trace_is_recognized_by_its_content(
    tmp_path, write_trace, records, read_bytes, change
):
    path = write_trace(*records(0, 5))
    answers(path)
    other = tmp_path / "other.jsonl"
    change(path, other)

    with Trace(other) as trace:
        query = "SELECT path, (SELECT count(*) FROM tasks) FROM trace_info"
        assert trace.rows(query) == [(str(other), 5)]
    assert len(read_bytes) == 1


@pytest.mark.exhaustive
def test_a_change_of_the_same_size_is_detected(write_trace, records):
    path = write_trace(*records(0, 5))
    answers(path)
    path.write_bytes(path.read_bytes().replace(b'"a-3"', b'"b-3"'))

    assert answers(path) == truth(path)
    assert "b-3" in str(answers(path))


@pytest.mark.exhaustive
def test_different_traces_with_the_same_id(write_trace, records):
    one = write_trace(*records(0, 5), name="one.jsonl")
    two = write_trace(*records(5, 9), name="two.jsonl")

    for path in (one, two, one):
        assert answers(path) == truth(path)


@pytest.mark.exhaustive
def test_other_view_definitions_use_another_entry(monkeypatch, write_trace, records, folder):
    path = write_trace(*records(0, 5))
    answers(path)
    monkeypatch.setattr(cache, "definitions_digest", lambda: "of a newer roast")

    answers(path)

    assert len(databases(folder)) == 2


# -- growth ------------------------------------------------------------------


def test_only_new_records_of_a_growing_trace_are_parsed(
    tmp_path, lines, records, read_bytes, folder
):
    path = tmp_path / "trace.jsonl"
    whole = lines(*records(0, 30)).splitlines(keepends=True)
    parts = [b"".join(whole[i : i + 13]) for i in range(0, len(whole), 13)]
    for part in parts:
        with path.open("ab") as file:
            file.write(part)
        assert answers(path) == truth(path)

    assert read_bytes[::2] == [len(part) for part in parts]
    # Replaced databases are removed together with their derived tables.
    [database] = databases(folder)
    tables = list(folder.glob("*/*.tables"))
    assert tables
    assert all(path.name.startswith(database.stem) for path in tables)
    assert {path.suffix for path in database.parent.iterdir()} == {
        ".duckdb",
        ".json",
        ".tables",
    }


@pytest.mark.parametrize(
    "compress", [bytes, pytest.param(zstandard.compress, marks=pytest.mark.exhaustive)]
)
def test_a_truncated_trace_grows(tmp_path, lines, records, compress):
    """Records of a last line or frame that was cut off are not loaded twice."""
    path = tmp_path / "trace.jsonl"
    *first, last = lines(*records(0, 5)).splitlines(keepends=True)
    whole = compress(b"".join(first[:3])) + compress(b"".join(first[3:]) + last)
    # A line without its newline is a complete record.
    for nbytes in (len(whole) - len(last) - 1, len(whole) - 9, len(whole)):
        path.write_bytes(whole[:nbytes])

        assert answers(path) == truth(path)


@pytest.mark.exhaustive
def test_an_extended_frame_is_read_again(tmp_path, lines, records):
    path = tmp_path / "trace.jsonl.zst"
    whole = lines(*records(0, 30)).splitlines(keepends=True)
    end = b"\x01\x00\x00"  # an empty last block, which the recorder overwrites
    frame = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    held = b""
    for i in range(0, len(whole), 13):
        held += frame.compress(b"".join(whole[i : i + 13]))
        held += frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        path.write_bytes(held + end)

        assert answers(path) == truth(path)
    assert answers(path)[2] == []


@pytest.mark.exhaustive
def test_new_segments_are_appended(monkeypatch, write_segments, read_bytes):
    digested = []
    digest = cache._digest
    monkeypatch.setattr(
        cache, "_digest", lambda path, n: digested.append(path.name) or digest(path, n)
    )

    for traces in write_segments(1, 2, 3):
        assert answers(traces) == truth(traces)

    assert len(read_bytes) == 3 + 1 + 2 + 3  # three for the cache, the others for the truth
    assert digested == []  # the digests are computed from the bytes that are parsed


@pytest.mark.exhaustive
def test_a_late_segment_is_loaded_in_order(write_segments):
    for traces in write_segments(1, 3, 2):
        assert answers(traces) == truth(traces)


@pytest.mark.parametrize(
    "gone", ["1.jsonl", pytest.param("3.jsonl", marks=pytest.mark.exhaustive)]
)
def test_a_removed_segment_removes_its_records(write_segments, gone):
    *_, traces = write_segments(1, 2, 3)
    answers(traces)
    (traces / gone).unlink()

    assert answers(traces) == truth(traces)


def test_an_open_trace_does_not_change(write_trace, records):
    path = write_trace(*records(0, 5))
    with Trace(path) as before:
        path.write_bytes(path.read_bytes() + b'{"kind":"task","t":9.0,"key":"new"}\n')
        with Trace(path) as after:
            assert after.sql("SELECT count(*) FROM tasks").fetchall() == [(6,)]
            assert before.sql("SELECT count(*) FROM tasks").fetchall() == [(5,)]


# -- damage -------------------------------------------------------------------


@pytest.mark.parametrize("kept", [pytest.param(0.0, marks=pytest.mark.exhaustive), 0.999])
def test_a_truncated_cache_is_rebuilt(write_trace, records, folder, kept):
    path = write_trace(*records(0, 5))
    first = answers(path)
    for name in ("manifest.json", "*.duckdb"):
        [file] = folder.glob(f"*/{name}")
        os.truncate(file, int(kept * file.stat().st_size))

        assert answers(path) == first, name


@pytest.mark.exhaustive
def test_an_invalid_manifest_is_ignored(write_trace, records, folder):
    path = write_trace(*records(0, 5))
    first = answers(path)
    [file] = folder.glob("*/manifest.json")
    for manifest in (b"null", b"[]", b"{}", b'{"database": 7}', b"\xff"):
        file.write_bytes(manifest)
        assert answers(path) == first


@pytest.mark.exhaustive
def test_a_cache_that_cannot_be_written_is_not_used(
    monkeypatch, tmp_path, write_trace, records
):
    path = write_trace(*records(0, 5))
    expected = truth(path)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "file" / "cache"))

    assert truth(path) == expected  # a small trace needs no cache
    with pytest.warns(CacheNotUsed, match="cannot use the cache .*; reading without it"):
        assert answers(path) == expected
    # A user without a home folder, as in a container.
    for variable in ("HOME", "XDG_CACHE_HOME", "ROAST_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", Mock(side_effect=KeyError))
    with pytest.warns(CacheNotUsed, match="cannot use the cache"):
        assert answers(path) == expected


def test_only_the_owner_can_read_the_cache(write_trace, records, folder):
    Trace(write_trace(*records(0, 5))).close()

    [manifest] = folder.glob("*/manifest.json")
    assert manifest.parent.stat().st_mode & 0o777 == 0o700


# -- limits ------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_the_least_recently_used_entries_are_removed(monkeypatch, write_trace, records, folder):
    def recorded(name: str, last: int = 5) -> Path:
        return write_trace(*records(0, last), name=f"{name}.jsonl", trace_id=name)

    for name in "abc":
        answers(recorded(name))
        for file in folder.glob("*/*"):
            os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 100))
    answers(recorded("a"))
    # The templates were used before all entries, so they are removed first.
    size = sum(file.stat().st_size for file in folder.glob("[0-9a-f]*/*"))
    monkeypatch.setenv("ROAST_CACHE_BYTES", str(size + 10_000))
    (folder / "others").mkdir()
    (folder / "others" / "file").touch()
    os.utime(folder / "others" / "file", (0, 0))
    answers(recorded("new", 6))

    kept = {
        json.loads(file.read_text())["segments"][0]["trace_id"]
        for file in folder.glob("*/manifest.json")
    }
    assert kept == {"a", "c", "new"}
    assert (folder / "others" / "file").exists()


def test_an_invalid_cache_size(monkeypatch, write_trace, records):
    monkeypatch.setenv("ROAST_CACHE_BYTES", "10 GB")

    with pytest.raises(TraceError, match="invalid ROAST_CACHE_BYTES '10 GB': use a number of"):
        answers(write_trace(*records(0, 5)))
