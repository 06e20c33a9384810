"""Damaged caches, caches shared by processes, and truncated files."""

# ruff: noqa: F401, F811 - fixtures of tests/analyze are imported and requested by name

import contextlib
import gzip
import os
import random
import shutil
import subprocess
import sys
import time

import duckdb
import pytest
import zstandard

from analyze.conftest import own_cache, small_disk, templates
from analyze.open.test_database import (
    answers,
    databases,
    folder,
    records,
    truth,
)
from roast_analyze import Trace
from roast_analyze.cli import main
from roast_analyze.errors import CacheNotUsed, TraceError
from roast_analyze.open import database


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst", ".jsonl.gz"])
def test_a_growing_file_that_ends_at_any_byte(tmp_path, lines, records, ending):
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


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.999])
def test_a_truncated_template_is_rewritten(write_trace, records, folder, kept):
    path = write_trace(*records(0, 5))
    first = answers(path)
    [file] = folder.glob("templates/*.empty")
    os.truncate(file, int(kept * file.stat().st_size))
    for entry in databases(folder):
        shutil.rmtree(entry.parent)

    assert answers(path) == first
    assert answers(path) == first


def test_a_damaged_database_never_returns_wrong_rows(write_trace, records, folder):
    path = write_trace(*records(0, 500))
    first = answers(path)
    [file] = databases(folder)
    whole = file.read_bytes()
    random.seed(3)
    found = []
    for _ in range(20):
        offset = random.randrange(len(whole) - 64)
        damaged = bytes(byte ^ 0xFF for byte in whole[offset : offset + 64])
        for file in databases(folder):
            file.write_bytes(whole[:offset] + damaged + whole[offset + 64 :])
        with contextlib.suppress(TraceError, duckdb.Error):
            found.append(answers(path))
        # Keep the templates, which are slow to create.
        for entry in folder.iterdir():
            if entry.name != "templates":
                shutil.rmtree(entry)
        assert answers(path) == first
        [file] = databases(folder)
        whole = file.read_bytes()

    assert found == [first] * len(found)
    assert 0 < len(found) < 20  # some damage is in bytes that no query reads


#: Opens a trace four times, and removes the cache each time.
OPEN_AND_REMOVE = """
import os, shutil, sys
from roast_analyze import Trace
from roast_analyze.open import database
database.UNCACHED_BYTES = 0
for _ in range(4):
    with Trace(sys.argv[1]) as trace:
        print(trace.sql("SELECT count(*), sum(compute_seconds) FROM task_runs").fetchall())
    shutil.rmtree(os.environ["ROAST_CACHE_DIR"], ignore_errors=True)
"""


def test_the_command_line_reports_a_damaged_cache(write_trace, records, folder, capsys):
    path = write_trace(*records(0, 2000))
    answers(path)
    [file] = databases(folder)
    whole = bytearray(file.read_bytes())
    whole[20_000:] = bytes(byte ^ 0xFF for byte in whole[20_000:])
    file.write_bytes(whole)

    code = main(["sql", str(path), "SELECT count(DISTINCT key), sum(t) FROM transitions"])
    captured = capsys.readouterr()

    # Rebuilt if the damage is found on opening, else reported: never a wrong answer.
    assert (code, captured.out.split()[-2:]) == (0, ["2000", "4000000.0"]) or (
        code == 2 and "is damaged: remove it, or use --no-cache" in captured.err
    )


def test_several_processes_build_the_same_cache(write_trace, records):
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
    outputs = [process.communicate(timeout=120) for process in processes]

    assert [out.splitlines() for out, _ in outputs] == [["[(300, 150.0)]"] * 4] * 3, outputs


DERIVE = """
import sys
from roast_analyze import Trace
from roast_analyze.open import database
database.UNCACHED_BYTES = 0
print(Trace(sys.argv[1]).sql(sys.argv[2]).fetchall())
"""


def test_processes_that_derive_the_same_tables_at_once_and_are_killed(
    write_trace, records, folder
):
    path = write_trace(*records(0, 3000))
    query = "SELECT count(*), sum(seconds) FROM core_time"
    first = repr(Trace(path, cache=False).sql(query).fetchall())
    answers(path)
    command = [sys.executable, "-W", "ignore", "-c", DERIVE, str(path), query]
    random.seed(11)
    for _ in range(6):
        for file in folder.glob("*/*.tables"):
            file.unlink()
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        others = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        time.sleep(random.uniform(0.3, 3))
        killed.kill()
        killed.wait()

        assert [process.communicate(timeout=120)[0].strip() for process in others] == [
            first
        ] * 2
    assert repr(Trace(path).sql(query).fetchall()) == first


def test_a_damaged_template_is_ignored(write_trace, records, folder):
    path = write_trace(*records(0, 5))
    first = answers(path)
    [file] = folder.glob("templates/*.empty")
    whole = file.read_bytes()
    random.seed(5)
    for _ in range(8):
        offset = random.randrange(len(whole) - 64)
        damaged = bytes(byte ^ 0xFF for byte in whole[offset : offset + 64])
        file.write_bytes(whole[:offset] + damaged + whole[offset + 64 :])
        for entry in databases(folder):
            shutil.rmtree(entry.parent)

        assert answers(path) == first


def test_a_full_disk_of_the_cache(monkeypatch, small_disk, write_trace, records):
    disk = small_disk(400_000)
    monkeypatch.setenv("ROAST_CACHE_DIR", str(disk))
    path = write_trace(*records(0, 5))

    with pytest.warns(CacheNotUsed, match="cannot use the cache .*; reading without it"):
        found = answers(path)

    assert found == truth(path)


def test_a_small_trace_needs_no_disk_space_for_the_cache(
    monkeypatch, small_disk, write_trace, records
):
    disk = small_disk(400_000)
    monkeypatch.setattr(database, "UNCACHED_BYTES", 10**6)
    path = write_trace(*records(0, 5))
    expected = truth(path)
    monkeypatch.setenv("ROAST_CACHE_DIR", str(disk))

    assert answers(path) == expected
    assert list(disk.glob("*/*")) == []
