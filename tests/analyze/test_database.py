"""Databases of traces: what is kept of them, and that it never tells anything but the truth."""

import contextlib
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.cli import main
from roast_analyze.errors import CacheNotUsed, TraceError
from roast_analyze.open import cache, database

QUERIES = (
    "SELECT key, attempt, outcome FROM task_runs ORDER BY ALL",
    "FROM tasks ORDER BY ALL",
    "SELECT reason, records, detail FROM loss ORDER BY ALL",
    "SELECT segment, start_t, stop_t FROM trace_info ORDER BY ALL",
    "SELECT t, key, start, finish FROM transitions",
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A cache with nothing in it but the pattern of databases, which takes long to make."""
    folder = tmp_path_factory.mktemp("empty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROAST_CACHE_DIR", str(folder))
        (folder / "trace.jsonl").write_text('{"kind":"event","t":0.0,"topic":"x"}\n')
        Trace(folder / "trace.jsonl").close()
        (folder / "trace.jsonl").unlink()
    assert [path.parent.name for path in folder.glob("*/*")] == ["empty"]
    return folder


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path, empty):
    """Keep every trace, however small, in a cache of its own."""
    monkeypatch.setattr(database, "SMALL_BYTES", 0)
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "cache"))
    return Path(shutil.copytree(empty, tmp_path / "cache"))


@pytest.fixture
def records(task, run):
    """Some tasks and their runs."""

    def records(first: int, last: int) -> list[dict]:
        return [
            record
            for i in range(first, last)
            for record in (task(f"a-{i}", float(i)), *run(f"a-{i}", i + 0.25, i + 0.75))
        ]

    return records


@pytest.fixture
def read_bytes(monkeypatch):
    """Count the bytes of files that are parsed."""
    read = []
    load = database.load_segment

    def counted(connection, segment, identity, begin, report):
        read.append(segment.nbytes - begin.place)
        return load(connection, segment, identity, begin, report)

    monkeypatch.setattr(database, "load_segment", counted)
    return read


def answers(*paths, **options):
    with Trace(*paths, **options) as trace:
        return [trace.sql(query).fetchall() for query in QUERIES]


def truth(*paths):
    """The answers of a database that is built for this once, in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "SMALL_BYTES", 10**9)
        return answers(*paths)


def databases(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.duckdb"))


# -- a trace that stays as it is ---------------------------------------------------------


def test_a_trace_is_parsed_once(write_trace, records, read_bytes, folder):
    path = write_trace(*records(0, 5))
    first = answers(path)

    assert answers(path) == first == answers(path, cache=False)
    assert read_bytes == [path.stat().st_size] * 2  # for the cache, and without it
    assert len(databases(folder)) == 1


def test_small_traces_are_not_kept(monkeypatch, write_trace, records, folder):
    monkeypatch.setattr(database, "SMALL_BYTES", 10**6)

    answers(write_trace(*records(0, 5)))

    assert databases(folder) == []


def test_nothing_is_kept_without_the_cache(write_trace, records, folder):
    shutil.rmtree(folder)

    answers(write_trace(*records(0, 5)), cache=False)

    assert not folder.exists()


@pytest.mark.parametrize("change", [shutil.copy, shutil.move, os.link])
def test_a_trace_that_lies_elsewhere_is_known_by_its_content(
    tmp_path, write_trace, records, read_bytes, change
):
    path = write_trace(*records(0, 5))
    answers(path)
    change(path, tmp_path / "other.jsonl")

    with Trace(tmp_path / "other.jsonl") as trace:
        assert trace.sql("SELECT count(*) FROM tasks").fetchall() == [(5,)]
        assert trace.sql("SELECT path FROM trace_info").fetchall() == [
            (str(tmp_path / "other.jsonl"),)
        ]
    assert len(read_bytes) == 1


def test_a_change_that_leaves_the_size_alone_is_seen(write_trace, records):
    path = write_trace(*records(0, 5))
    answers(path)
    path.write_bytes(path.read_bytes().replace(b'"a-3"', b'"b-3"'))

    assert answers(path) == truth(path)
    assert "b-3" in str(answers(path))


def test_two_traces_of_one_identity_do_not_answer_for_each_other(write_trace, records):
    one = write_trace(*records(0, 5), name="one.jsonl")
    two = write_trace(*records(5, 9), name="two.jsonl")

    assert [answers(path) for path in (one, two, one)] == [
        truth(path) for path in (one, two, one)
    ]


def test_other_definitions_need_another_database(monkeypatch, write_trace, records, folder):
    path = write_trace(*records(0, 5))
    answers(path)
    monkeypatch.setattr(cache, "definitions_digest", lambda: "of a newer roast")

    answers(path)

    assert len(databases(folder)) == 2


# -- a trace that grows ------------------------------------------------------------------


def test_only_what_is_new_is_parsed_as_a_trace_grows(tmp_path, lines, records, read_bytes):
    path = tmp_path / "trace.jsonl"
    whole = lines(*records(0, 30)).splitlines(keepends=True)
    parts = [b"".join(whole[i : i + 13]) for i in range(0, len(whole), 13)]
    sizes = []
    for part in parts:
        with path.open("ab") as file:
            file.write(part)
        sizes.append(len(part))

        assert answers(path) == truth(path)

    assert read_bytes[::2] == sizes


def test_a_frame_that_is_extended_is_read_anew(tmp_path, lines, records):
    path = tmp_path / "trace.jsonl.zst"
    whole = lines(*records(0, 30)).splitlines(keepends=True)
    end = b"\x01\x00\x00"  # an empty last block, which the recorder writes over
    frame = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    held = b""
    for i in range(0, len(whole), 13):
        held += frame.compress(b"".join(whole[i : i + 13]))
        held += frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        path.write_bytes(held + end)

        assert answers(path) == truth(path)
    assert answers(path)[2] == []


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst", ".jsonl.gz"])
def test_wherever_a_growing_file_ends_for_now_the_answers_are_right(
    tmp_path, lines, records, ending
):
    path = tmp_path / f"trace{ending}"
    whole = lines(*records(0, 6))
    if ending.endswith("zst"):
        whole = b"".join(map(zstandard.compress, whole.splitlines(keepends=True)))
    if ending.endswith("gz"):
        whole = b"".join(map(gzip.compress, whole.splitlines(keepends=True)))
    random.seed(7)
    for stop in [*sorted(random.sample(range(300, len(whole)), 12)), len(whole)]:
        path.write_bytes(whole[:stop])

        assert answers(path) == truth(path)


def test_new_segments_are_appended(tmp_path, lines, records, read_bytes):
    traces = tmp_path / "traces"
    traces.mkdir()
    for number in (1, 2, 3):
        path = traces / f"{number}.jsonl"
        path.write_bytes(lines(*records(5 * number, 5 * number + 5), segment=number))

        assert answers(traces) == truth(traces)

    assert len(read_bytes) == 3 + 1 + 2 + 3  # each once for the cache, and for the truth


@pytest.mark.parametrize("gone", ["1.jsonl", "2.jsonl", "3.jsonl"])
def test_a_segment_that_vanishes_takes_its_records_along(tmp_path, lines, records, gone):
    traces = tmp_path / "traces"
    traces.mkdir()
    for number in (1, 2, 3):
        content = lines(*records(5 * number, 5 * number + 5), segment=number)
        (traces / f"{number}.jsonl").write_bytes(content)
    answers(traces)
    (traces / gone).unlink()

    assert answers(traces) == truth(traces)


def test_a_segment_that_comes_late_takes_its_place(tmp_path, lines, records):
    traces = tmp_path / "traces"
    traces.mkdir()
    for number in (1, 3, 2):
        content = lines(*records(5 * number, 5 * number + 5), segment=number)
        (traces / f"{number}.jsonl").write_bytes(content)

        assert answers(traces) == truth(traces)


def test_who_reads_a_trace_goes_on_reading_what_it_was(write_trace, records):
    path = write_trace(*records(0, 5))
    with Trace(path) as before:
        path.write_bytes(path.read_bytes() + b'{"kind":"task","t":9.0,"key":"new"}\n')
        with Trace(path) as after:
            assert after.sql("SELECT count(*) FROM tasks").fetchall() == [(6,)]
            assert before.sql("SELECT count(*) FROM tasks").fetchall() == [(5,)]


# -- harm to the cache -------------------------------------------------------------------


def test_a_cache_that_is_deleted_is_built_anew(write_trace, records, folder):
    path = write_trace(*records(0, 5))
    first = answers(path)
    shutil.rmtree(folder)

    assert answers(path) == first


@pytest.mark.parametrize("name", ["manifest.json", "*.duckdb"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.7, 0.999])
def test_a_cache_that_is_cut_short_is_built_anew(write_trace, records, folder, name, kept):
    path = write_trace(*records(0, 5))
    first = answers(path)
    [file] = folder.glob(f"*/{name}")
    os.truncate(file, int(kept * file.stat().st_size))

    assert answers(path) == first


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.999])
def test_a_pattern_of_databases_that_is_cut_short_is_made_anew(
    write_trace, records, folder, kept
):
    path = write_trace(*records(0, 5))
    first = answers(path)
    [file] = folder.glob("empty/*")
    os.truncate(file, int(kept * file.stat().st_size))
    for entry in databases(folder):
        shutil.rmtree(entry.parent)

    assert answers(path) == first
    assert answers(path) == first


@pytest.mark.parametrize("manifest", [b"", b"null", b"[]", b"{}", b'{"database": 7}', b"\xff"])
def test_a_manifest_that_makes_no_sense(write_trace, records, folder, manifest):
    path = write_trace(*records(0, 5))
    first = answers(path)
    [file] = folder.glob("*/manifest.json")
    file.write_bytes(manifest)

    assert answers(path) == first


def test_damage_within_a_database_is_never_taken_for_an_answer(write_trace, records, folder):
    path = write_trace(*records(0, 500))
    first = answers(path)
    [file] = databases(folder)
    whole = file.read_bytes()
    random.seed(3)
    told = []
    for _ in range(20):
        place = random.randrange(len(whole) - 64)
        spoilt = bytes(byte ^ 0xFF for byte in whole[place : place + 64])
        for file in databases(folder):
            file.write_bytes(whole[:place] + spoilt + whole[place + 64 :])
        with contextlib.suppress(TraceError, duckdb.Error):
            told.append(answers(path))
        # All but the pattern of databases, which takes long to make.
        for entry in folder.iterdir():
            if entry.name != "empty":
                shutil.rmtree(entry)
        assert answers(path) == first
        [file] = databases(folder)
        whole = file.read_bytes()

    assert all(answer == first for answer in told)


#: Opens a trace four times, and takes the cache away each time.
OPEN_AND_REMOVE = """
import os, shutil, sys
from roast_analyze import Trace
from roast_analyze.open import database
database.SMALL_BYTES = 0
for _ in range(4):
    with Trace(sys.argv[1]) as trace:
        print(trace.sql("SELECT count(*), sum(compute_seconds) FROM task_runs").fetchall())
    shutil.rmtree(os.environ["ROAST_CACHE_DIR"], ignore_errors=True)
"""


def test_the_command_line_says_what_to_do_about_a_damaged_cache(
    write_trace, records, folder, capsys
):
    path = write_trace(*records(0, 2000))
    answers(path)
    [file] = databases(folder)
    whole = bytearray(file.read_bytes())
    whole[20_000:] = bytes(byte ^ 0xFF for byte in whole[20_000:])
    file.write_bytes(whole)

    code = main(["sql", str(path), "SELECT count(DISTINCT key), sum(t) FROM transitions"])
    said = capsys.readouterr()

    # Built anew if it was seen at once, else said: never a wrong answer.
    assert (code, said.out.split()[-2:]) == (0, ["2000", "4000000.0"]) or (
        code == 2 and "is damaged; remove it, or use --no-cache" in said.err
    )


def test_several_processes_may_build_the_same_cache_at_once(write_trace, records):
    path = write_trace(*records(0, 300))
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", OPEN_AND_REMOVE, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=120) for process in processes]

    assert [out.splitlines() for out, _ in said] == [["[(300, 150.0)]"] * 4] * 3, said


def test_a_cache_that_cannot_be_written_is_done_without(
    monkeypatch, tmp_path, write_trace, records
):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "file" / "cache"))
    path = write_trace(*records(0, 5))

    with pytest.warns(CacheNotUsed, match="cannot be used .*; reading without it"):
        found = answers(path)

    assert found == truth(path)


def test_a_small_trace_needs_no_cache_that_can_be_written(
    monkeypatch, tmp_path, write_trace, records
):
    monkeypatch.setattr(database, "SMALL_BYTES", 10**6)
    path = write_trace(*records(0, 5))
    expected = truth(path)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "file" / "cache"))

    assert answers(path) == expected


def test_damage_within_the_pattern_of_databases_costs_nothing(write_trace, records, folder):
    path = write_trace(*records(0, 5))
    first = answers(path)
    [file] = folder.glob("empty/*")
    whole = file.read_bytes()
    random.seed(5)
    for _ in range(8):
        place = random.randrange(len(whole) - 64)
        spoilt = bytes(byte ^ 0xFF for byte in whole[place : place + 64])
        file.write_bytes(whole[:place] + spoilt + whole[place + 64 :])
        for entry in databases(folder):
            shutil.rmtree(entry.parent)

        assert answers(path) == first


def test_segments_that_stay_are_not_read_again_to_be_known(
    monkeypatch, tmp_path, lines, records
):
    traces = tmp_path / "traces"
    traces.mkdir()
    digested = []
    digest = cache._digest
    monkeypatch.setattr(
        cache,
        "_digest",
        lambda path, nbytes: digested.append(path.name) or digest(path, nbytes),
    )
    for number in (1, 2, 3):
        path = traces / f"{number}.jsonl"
        path.write_bytes(lines(*records(5 * number, 5 * number + 5), segment=number))
        answers(traces)

    assert digested == ["1.jsonl", "2.jsonl", "3.jsonl"]


def test_a_full_disk_under_the_cache(monkeypatch, small_disk, write_trace, records):
    disk = small_disk(400_000)
    monkeypatch.setenv("ROAST_CACHE_DIR", str(disk))
    path = write_trace(*records(0, 5))

    with pytest.warns(CacheNotUsed, match="cannot be used .*; reading without it"):
        found = answers(path)

    assert found == truth(path)


def test_a_small_trace_needs_no_room_under_the_cache(
    monkeypatch, small_disk, write_trace, records
):
    disk = small_disk(400_000)
    monkeypatch.setattr(database, "SMALL_BYTES", 10**6)
    path = write_trace(*records(0, 5))
    expected = truth(path)
    monkeypatch.setenv("ROAST_CACHE_DIR", str(disk))

    assert answers(path) == expected
    assert list(disk.glob("*/*")) == []


# -- bounds ------------------------------------------------------------------------------


def test_the_cache_is_bounded_and_what_was_not_used_for_longest_goes(
    monkeypatch, write_trace, records, folder
):
    paths = []
    for i in range(3):
        path = write_trace(*records(0, 5), name=f"{i}.jsonl")
        path.write_bytes(path.read_bytes().replace(b'"T"', b'"%d"' % i))
        paths.append(path)
        answers(path)
        for file in folder.glob("*/*"):  # time passes
            os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 100))
    answers(paths[0])
    size = sum(file.stat().st_size for file in folder.glob("*/*"))
    monkeypatch.setenv("ROAST_CACHE_BYTES", str(size + 10_000))
    path = write_trace(*records(0, 6), name="new.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"T"', b'"new"'))
    answers(path)

    kept = {
        json.loads(file.read_text())["segments"][0]["trace_id"]
        for file in folder.glob("*/manifest.json")
    }
    assert kept == {"0", "2", "new"}


def test_a_bound_that_is_no_number(monkeypatch, write_trace, records):
    monkeypatch.setenv("ROAST_CACHE_BYTES", "10 GB")

    with pytest.raises(
        TraceError, match="ROAST_CACHE_BYTES is '10 GB'; give a number of bytes"
    ):
        answers(write_trace(*records(0, 5)))


def test_old_databases_do_not_pile_up(write_trace, records, folder):
    path = write_trace(*records(0, 5))
    for i in range(3):
        answers(path)
        with path.open("ab") as file:
            file.write(b'{"kind":"task","t":9.0,"key":"new-%d"}\n' % i)
    answers(path)

    assert len(databases(folder)) == 1
    assert {path.suffix for path in folder.glob("*/*")} == {".duckdb", ".json", ""}
