"""Traces to import into, in each format."""

import gzip
import shutil

import pytest
import zstandard

from measured import darshan_log
from roast_analyze import Trace
from roast_analyze.cli import main


def framed(compress):
    """Compress the last line as a separate frame, as the recorder does."""

    def by_line(data):
        *others, last = data.splitlines(keepends=True)
        return compress(b"".join(others)) + compress(last)

    return by_line


STORED = {
    "trace.jsonl": bytes,
    "trace.jsonl.zst": framed(zstandard.compress),
    "trace.jsonl.gz": framed(gzip.compress),
}


@pytest.fixture
def log(tmp_path):
    """A Darshan log of three MPI-IO calls, with one segment each."""
    return shutil.copy(darshan_log("sample-dxt-simple.darshan"), tmp_path / "log.darshan")


@pytest.fixture
def stored(tmp_path, lines, task):
    """Write a small trace; a name without suffix is a folder of two segments."""

    def store(name):
        path = tmp_path / name
        if name in STORED:
            path.write_bytes(STORED[name](lines(task("a"))))
            return path
        path.mkdir()
        for number in (1, 2):
            (path / f"00000{number}.jsonl").write_bytes(
                lines(task(f"a-{number}"), segment=number)
            )
        return path

    return store


@pytest.fixture
def ask():
    def ask(path, query):
        with Trace(path) as trace:
            return trace.sql(query).fetchall()

    return ask


@pytest.fixture
def command(capsys):
    """Run ``roast-analyze``; return its exit code, stdout and stderr."""

    def command(*words):
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command
