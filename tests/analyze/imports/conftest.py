"""Traces to import into, in each format."""

import contextlib
import gzip
import shutil

import pytest
import zstandard

from measured import darshan_log
from roast_analyze import Trace


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
    """Return the path of a Darshan log of three MPI-IO calls, with one segment each."""
    return shutil.copy(darshan_log("sample-dxt-simple.darshan"), tmp_path / "log.darshan")


@pytest.fixture
def stored(tmp_path, lines, task):
    """Write a small trace; a name without suffix is a folder of two segments."""

    def store(name="trace.jsonl"):
        path = tmp_path / name
        if name in STORED:
            path.write_bytes(STORED[name](lines(task("a"))))
            return path
        path.mkdir()
        for n in (1, 2):
            (path / f"00000{n}.jsonl").write_bytes(lines(task(f"a-{n}"), segment=n))
        return path

    return store


@pytest.fixture
def rows_of():
    """Return the rows of a query of a trace that a command may have changed."""

    def rows_of(path, query):
        with Trace(path) as trace:
            return trace.rows(query)

    return rows_of


@pytest.fixture
def asked():
    """Open a trace; return a function that returns the rows of a query."""
    with contextlib.ExitStack() as opened:
        yield lambda path: opened.enter_context(Trace(path)).rows


@pytest.fixture
def refused(analyze, tmp_path):
    """Run an import that fails with an error of one line, and writes nothing; return it."""

    def refused(*words):
        def contents():
            files = tmp_path.rglob("*")
            return {path: path.read_bytes() for path in files if path.is_file()}

        before = contents()
        code, out, error = analyze("import", *words)
        assert (code, out, error.count("\n")) == (2, "", 1), words
        assert "Traceback" not in error
        assert contents() == before
        return error

    return refused
