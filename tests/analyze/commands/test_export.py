"""The command ``export``: targets, and errors before anything is written."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from roast_analyze.export import perfetto


@pytest.fixture
def path(write_trace, worker, task, run):
    return write_trace(
        worker("tcp://w1", name="alpha"), task("load-1"), *run("load-1", 1.0, 2.0, "tcp://w1")
    )


@pytest.fixture
def error(analyze, tmp_path):
    """Run a command that fails and writes nothing; return its message."""

    def error(*words: object, code: int = 2) -> str:
        before = {file: file.read_bytes() for file in tmp_path.iterdir()}
        found, out, err = analyze("export", *words)
        assert (found, out, err[:15], err.count("\n")) == (code, "", "roast-analyze: ", 1)
        assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
        return err.removeprefix("roast-analyze: ")

    return error


def test_selections_that_do_not_exist(error, path, tmp_path, write_trace, worker):
    for options, message in [
        ("--worker beta", "unknown worker 'beta': use one of alpha\n"),
        ("--worker alphas", "unknown worker 'alphas': did you mean 'alpha'?"),
        ("--prefix laod", "unknown prefix 'laod': did you mean 'load'?"),
        ("--from 5 --to 2", "empty time range from '5' to '2', which are 5 s and 2 s after"),
    ]:
        found = error(path, "--perfetto", tmp_path / "out", *options.split())
        assert found.startswith(message)
    # A worker that was restarted has another address and the same name.
    restarted = write_trace(worker("tcp://w1", name="1"), worker("tcp://w2", name="1"))
    found = error(restarted, "--perfetto", tmp_path / "out", "--worker", "beta")
    assert found == "unknown worker 'beta': use one of 1\n"
    many = write_trace(*(worker(f"tcp://w{number}") for number in range(9)))
    found = error(many, "--perfetto", tmp_path / "out", "--worker", "beta")
    assert found.endswith("tcp://w6, tcp://w7 and 1 more\n")


def test_invalid_targets(error, path, tmp_path, monkeypatch):
    missing = tmp_path / "missing" / "out"

    assert error(path).startswith("no format given: choose from --perfetto FILE, ")
    for form in ("--perfetto", "--parquet", "--duckdb"):
        assert repr(str(missing.parent)) in error(path, form, missing)
    assert repr(str(tmp_path)) in error(path, "--perfetto", tmp_path)
    assert repr(str(path)) in error(path, "--parquet", path)
    for form in ("--perfetto", "--folded", "--duckdb"):
        assert "is the trace itself" in error(path, form, path)
    both = ["--perfetto", tmp_path / "out", "--duckdb", tmp_path / "out"]
    assert error(path, *both).startswith("two formats have the same file")
    assert "cannot be written to stdout: name a file" in error(path, "--duckdb", "-")
    if Path("/dev/full").exists():
        assert "No space left on device" in error(path, "--perfetto", "/dev/full")

    # An existing file is kept until the new one is complete.
    (tmp_path / "out.json").write_text("old")

    def fails(*_):
        yield {"ph": "M"}
        assert (tmp_path / "out.json").read_text() == "old"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(perfetto, "events", fails)
    assert "No space left" in error(path, "--perfetto", tmp_path / "out.json")


@pytest.mark.exhaustive
def test_nothing_to_export(error, path, write_trace, worker, tmp_path):
    profile = {"kind": "profile", "t": 9.0, "worker": "tcp://w1", "prefix": "load", "tree": {}}
    profile |= {"start_t": 0.0, "stop_t": 9.0}
    profiled = write_trace(worker("tcp://w1"), profile, name="profiled.jsonl")
    for trace, options, message in [
        (path, "", "the trace has no profiles: enable Dask's profiler"),
        (
            profiled,
            "--worker scheduler",
            "the trace has no profile of the scheduler: Dask does",
        ),
        (
            profiled,
            "--from 20",
            "no profile in this part of the trace: choose another worker, ",
        ),
    ]:
        for form in ("--speedscope", "--folded"):
            found = error(trace, form, tmp_path / "out", *options.split(), code=1)
            assert found.startswith(message)


@pytest.mark.exhaustive
def test_files_folders_stdout_and_pipes(analyze, path, tmp_path):
    command = [sys.executable, "-m", "roast_analyze", "export", str(path), "--perfetto", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    targets = ["--perfetto", pipe, "--parquet", tmp_path / "b", "--duckdb", tmp_path / "c"]
    assert analyze("export", path, *targets) == (0, "", "")
    reader.join()

    for text in (done.stdout, read[0]):
        assert any(event["name"] == "load" for event in json.loads(text))
    assert pipe.is_fifo()
    assert {file.name for file in tmp_path.iterdir()} == {"pipe", "b", "c", "trace.jsonl"}
