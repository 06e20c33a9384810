"""Imports are appended to the recording: each file completely, once, or not at all."""

import fcntl
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
import zstandard

from marks import exhaustive
from roast_analyze import Trace
from roast_schemas import SCHEMA_VERSION
from sealing import sealed

FILES = ["trace.jsonl.zst", exhaustive("trace.jsonl"), exhaustive("trace.jsonl.gz")]


def content(path):
    """Return everything in a trace, decompressed."""
    if path.is_dir():
        return b"".join(content(file) for file in sorted(path.iterdir()))
    data = path.read_bytes()
    if path.suffix == ".zst":
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        return reader.read()
    return gzip.decompress(data) if path.suffix == ".gz" else data


@pytest.fixture
def add(analyze, log):
    """Import the log into a trace."""

    def add(trace):
        assert analyze("import", "darshan", log, "--into", trace)[0] == 0

    return add


@pytest.mark.parametrize("name", [*FILES, exhaustive("folder")])
def test_a_file_is_appended_once(stored, log, rows_of, asked, analyze, tmp_path, name):
    trace = stored(name)
    twin = shutil.copy(log, tmp_path / "twin.darshan")
    before, [run] = content(trace), rows_of(trace, "FROM run")
    skipped = "{}.darshan: already imported, skipped\n"
    out = "log.darshan: imported 64 files and 3 segments\n" + skipped.format("twin")

    assert analyze("import", "darshan", log, twin, "--into", trace) == (0, out, "")
    once = content(trace)
    assert analyze("import", "darshan", log, "--into", trace) == (0, skipped.format("log"), "")

    assert content(trace) == once
    assert once.startswith(before)
    assert all(json.loads(line)["kind"] for line in once.splitlines())
    assert analyze("check", trace)[0] == 0
    rows = asked(trace)
    assert rows("FROM run") == [run]
    assert rows("SELECT count(*) FROM io_files") == [(64,)]
    imported = rows("SELECT tool, filename, records FROM imports")
    assert imported == [("darshan", "log.darshan", 67)]


@pytest.mark.parametrize("nbytes", [1, 30])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.exhaustive
def test_a_trace_that_was_cut_can_be_imported_into(stored, add, rows_of, asked, name, nbytes):
    trace = stored(name)
    os.truncate(trace, trace.stat().st_size - nbytes)
    [(clean,)] = rows_of(trace, "SELECT clean_end FROM trace_info")

    add(trace)

    rows = asked(trace)
    query = "SELECT key, (SELECT count(*) FROM io_files), clean_end FROM tasks, trace_info"
    assert rows(query) == [("a", 64, clean)]
    lost = {reason for (reason,) in rows("SELECT reason FROM loss")}
    assert ("no trailer" in lost) == (not clean)
    # A cut frame is removed; otherwise it would continue into the appended data.
    assert not lost & {"cut import", "changed import", "damaged compression"}


KILLED = """
import os, signal, sys
from roast_analyze.cli import main
calls = ["file", "folder"]
def fsync(descriptor):
    if calls.pop(0) == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
main(["import", "darshan", sys.argv[1], "--into", sys.argv[2]])
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(("synced", "files"), [("file", 0), ("folder", 64)])
@pytest.mark.parametrize("name", ["trace.jsonl.zst", "folder"])
def test_a_killed_import_leaves_all_or_nothing(
    stored, log, add, rows_of, analyze, name, synced, files
):
    trace = stored(name)

    done = subprocess.run([sys.executable, "-c", KILLED, log, trace, synced])

    assert done.returncode == -signal.SIGKILL
    assert analyze("check", trace)[0] == 0
    assert rows_of(trace, "SELECT count(*) FROM io_files") == [(files,)]
    add(trace)
    assert rows_of(trace, "SELECT count(*) FROM io_files") == [(64,)]
    assert not list(trace.parent.glob("**/.*importing"))


@pytest.mark.exhaustive
def test_changed_and_cut_imports_are_losses(stored, add, rows_of):
    trace = stored()
    recorded = trace.stat().st_size
    add(trace)
    data = trace.read_bytes()
    for old, new in [
        (b'"opens":1,', b'"opens":3,'),
        (b'"rank":0', b'"rank":7'),
        (b'"crc32":', b'"crc32":9'),
    ]:
        assert old in data[recorded:]
        trace.write_bytes(data[:recorded] + data[recorded:].replace(old, new, 1))
        assert rows_of(trace, "SELECT reason FROM loss") == [("changed import",)]

    trace.write_bytes(b"".join(data.splitlines(keepends=True)[:-2]))

    losses = rows_of(trace, "SELECT reason, records FROM loss ORDER BY reason")
    assert losses == [("cut import", None), ("records missing", 2)]


@pytest.mark.exhaustive
def test_traces_that_cannot_be_appended_to(tmp_path, stored, lines, task, log, refused):
    trace = stored()
    with trace.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        error = refused("darshan", log, "--into", trace)
        assert "is being recorded or imported into" in error

    cut = tmp_path / "cut.jsonl.zst"
    cut.write_bytes(zstandard.compress(lines(task("a")))[:60])
    assert "nothing can be imported into it" in refused("darshan", log, "--into", cut)

    several = tmp_path / "several"
    several.mkdir()
    for name in "ab":
        (several / f"{name}.jsonl").write_bytes(lines(trace_id=name))
    error = refused("darshan", log, "--into", several)
    assert "contains several traces: name one of them" in error

    # The only file cannot be read.
    wrong = tmp_path / "wrong.darshan"
    wrong.write_bytes(b"no log")
    assert repr(str(wrong)) in refused("darshan", wrong, "--into", trace)


@pytest.mark.exhaustive
def test_files_that_cannot_be_read_do_not_keep_others_out(
    stored, log, rows_of, analyze, tmp_path
):
    trace, cut, missing = stored(), tmp_path / "cut.darshan", tmp_path / "missing.darshan"
    cut.write_bytes(log.read_bytes()[:1000])

    code, out, error = analyze("import", "darshan", cut, log, missing, "--into", trace)

    assert (code, out) == (1, "log.darshan: imported 64 files and 3 segments\n")
    for file, line in zip((cut, missing), error.splitlines(), strict=False):
        assert repr(str(file)) in line
    assert error.endswith("roast-analyze: 2 of 3 files could not be read\n")
    assert error.count("\n") == 3
    assert rows_of(trace, "SELECT count(*) FROM io_files") == [(64,)]
    assert rows_of(trace, "FROM loss") == []
    # Nothing is left to import: the trace stays as it is.
    before = content(trace)
    assert analyze("import", "darshan", cut, missing, "--into", trace)[0] == 1
    assert content(trace) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_trace_in_a_folder_that_cannot_be_written(stored, log, refused):
    trace = stored("folder")
    trace.chmod(0o500)
    try:
        assert "; it is unchanged" in refused("darshan", log, "--into", trace)
    finally:
        trace.chmod(0o700)


@pytest.mark.exhaustive
def test_a_cached_trace_is_extended_by_an_import(tmp_path, lines, task, add, rows_of):
    trace = tmp_path / "large.jsonl"
    padding = "x" * 100_000
    trace.write_bytes(sealed(lines(*(task(f"a-{n}-{padding}") for n in range(200)))))
    assert rows_of(trace, "SELECT count(*) FROM tasks") == [(200,)]

    add(trace)

    with Trace(trace, cache=False) as anew:
        expected = anew.sql("FROM io_files").fetchall()
    assert rows_of(trace, "FROM io_files") == expected
    assert len(expected) == 64
    assert rows_of(trace, "FROM loss") == []


def test_traces_of_version_2_1_have_no_losses(tmp_path, lines, task, asked):
    path = tmp_path / "older.jsonl"
    version = f'"{SCHEMA_VERSION}"'.encode()
    path.write_bytes(sealed(lines(task("a")).replace(version, b'"2.1"')))

    rows = asked(path)
    for view in ("loss", "imports", "io_jobs"):
        assert rows(f"FROM {view}") == []
