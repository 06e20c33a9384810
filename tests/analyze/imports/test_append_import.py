"""Imports are appended to the recording: completely, once, or not at all."""

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

from roast_analyze import Trace
from sealing import sealed

NAMES = ["trace.jsonl", "trace.jsonl.zst", "trace.jsonl.gz", "folder"]


def content(path):
    """Everything in a trace, decompressed."""
    if path.is_dir():
        return b"".join(content(file) for file in sorted(path.iterdir()))
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        return reader.read()
    return data


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_appended_once(stored, log, ask, command, tmp_path, name):
    trace = stored(name)
    twin = shutil.copy(log, tmp_path / "twin.darshan")
    before, [run] = content(trace), ask(trace, "FROM run")

    assert command("import", "darshan", log, twin, "--into", trace) == (
        0,
        (
            "log.darshan: imported 64 files and 3 segments\n"
            "twin.darshan: already imported, skipped\n"
        ),
        "",
    )
    once = content(trace)
    assert command("import", "darshan", log, "--into", trace)[:2] == (
        0, "log.darshan: already imported, skipped\n"
    )  # fmt: skip

    assert content(trace) == once
    assert once.startswith(before)
    assert all(json.loads(line)["kind"] for line in once.splitlines())
    assert command("check", trace)[0] == 0
    assert ask(trace, "FROM run") == [run]
    assert ask(trace, "SELECT count(*) FROM io_files") == [(64,)]
    assert ask(trace, "SELECT tool, filename, records FROM imports") == [
        ("darshan", "log.darshan", 67)
    ]


def test_one_wrong_file_among_several_leaves_the_trace_untouched(
    stored, log, command, tmp_path
):
    trace = stored("trace.jsonl")
    before = trace.read_bytes()
    wrong = tmp_path / "wrong.darshan"
    wrong.write_bytes(b"no log")

    code, said, error = command("import", "darshan", log, wrong, "--into", trace)

    assert (code, said) == (2, "")
    assert error.count("\n") == 1
    assert repr(str(wrong)) in error
    assert trace.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("nbytes", [1, 30])
@pytest.mark.parametrize("name", NAMES[:3])
def test_a_trace_that_was_cut_can_be_imported_into(stored, log, ask, command, name, nbytes):
    trace = stored(name)
    os.truncate(trace, trace.stat().st_size - nbytes)
    [clean] = ask(trace, "SELECT clean_end FROM trace_info")

    assert command("import", "darshan", log, "--into", trace)[0] == 0

    assert ask(trace, "SELECT key FROM tasks") == [("a",)]
    assert ask(trace, "SELECT count(*) FROM io_files") == [(64,)]
    assert ask(trace, "SELECT clean_end FROM trace_info") == [clean]
    lost = [reason for (reason,) in ask(trace, "SELECT reason FROM loss")]
    assert ("no trailer" in lost) == (not clean[0])
    assert "cut import" not in lost
    assert "changed import" not in lost


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


@pytest.mark.parametrize(("synced", "files"), [("file", 0), ("folder", 64)])
@pytest.mark.parametrize("name", NAMES)
def test_a_killed_import_leaves_all_or_nothing(stored, log, ask, command, name, synced, files):
    trace = stored(name)

    done = subprocess.run([sys.executable, "-c", KILLED, log, trace, synced])

    assert done.returncode == -signal.SIGKILL
    assert command("check", trace)[0] == 0
    assert ask(trace, "SELECT count(*) FROM io_files") == [(files,)]
    assert command("import", "darshan", log, "--into", trace)[0] == 0
    assert ask(trace, "SELECT count(*) FROM io_files") == [(64,)]
    assert not list(trace.parent.glob("**/.*importing"))


def test_changed_and_cut_imports_are_losses(stored, log, ask, command):
    trace = stored("trace.jsonl")
    recorded = len(trace.read_bytes())
    command("import", "darshan", log, "--into", trace)
    data = trace.read_bytes()
    for old, new in [
        (b'"opens":1,', b'"opens":3,'),
        (b'"rank":0', b'"rank":7'),
        (b'"crc32":', b'"crc32":9'),
    ]:
        assert old in data[recorded:]
        trace.write_bytes(data[:recorded] + data[recorded:].replace(old, new, 1))
        assert ask(trace, "SELECT reason FROM loss") == [("changed import",)]

    trace.write_bytes(b"".join(data.splitlines(keepends=True)[:-2]))

    assert ask(trace, "SELECT reason, records FROM loss ORDER BY reason") == [
        ("cut import", None), ("records missing", 2)
    ]  # fmt: skip


def test_traces_that_cannot_be_appended_to(tmp_path, stored, lines, task, log, command):
    trace = stored("trace.jsonl")
    with trace.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        code, _, error = command("import", "darshan", log, "--into", trace)
    assert code == 2
    assert "is being recorded or imported into" in error

    cut = tmp_path / "cut.jsonl.zst"
    cut.write_bytes(before := zstandard.compress(lines(task("a")))[:60])
    code, _, error = command("import", "darshan", log, "--into", cut)
    assert (code, cut.read_bytes()) == (2, before)
    assert "nothing can be imported into it" in error

    several = tmp_path / "several"
    several.mkdir()
    for name in "ab":
        (several / f"{name}.jsonl").write_bytes(lines(trace_id=name))
    code, _, error = command("import", "darshan", log, "--into", several)
    assert code == 2
    assert "contains several traces: name one of them" in error


def test_a_trace_in_a_folder_that_cannot_be_written(stored, log, command):
    trace = stored("folder")
    before = content(trace)
    trace.chmod(0o500)
    try:
        if os.access(trace, os.W_OK):
            pytest.skip("this user may write anywhere")
        code, _, error = command("import", "darshan", log, "--into", trace)
    finally:
        trace.chmod(0o700)

    assert (code, content(trace)) == (2, before)
    assert "; it is unchanged" in error


def test_a_cached_trace_is_extended_by_an_import(tmp_path, lines, task, log, command, ask):
    trace = tmp_path / "large.jsonl"
    padding = "x" * 100_000
    trace.write_bytes(sealed(lines(*(task(f"a-{n}-{padding}") for n in range(200)))))
    assert ask(trace, "SELECT count(*) FROM tasks") == [(200,)]

    command("import", "darshan", log, "--into", trace)

    with Trace(trace, cache=False) as anew:
        expected = anew.sql("FROM io_files").fetchall()
    assert ask(trace, "FROM io_files") == expected
    assert len(expected) == 64
    assert ask(trace, "FROM loss") == []


def test_traces_of_version_2_1_are_whole(tmp_path, lines, task, ask):
    path = tmp_path / "older.jsonl"
    path.write_bytes(sealed(lines(task("a")).replace(b'"2.2"', b'"2.1"')))

    assert (
        ask(path, "FROM loss") == ask(path, "FROM imports") == ask(path, "FROM io_jobs") == []
    )
