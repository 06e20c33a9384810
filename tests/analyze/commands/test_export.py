"""The command ``export``: targets, and errors before anything is written."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest


@pytest.fixture
def path(write_trace, worker, task, run):
    return write_trace(
        worker("tcp://w1", name="alpha"), task("load-1"), *run("load-1", 1.0, 2.0, "tcp://w1")
    )


@pytest.fixture
def error(analyze):
    """Run a command that fails; return its message."""

    def error(*words: object) -> str:
        code, out, err = analyze("export", *words)
        assert (code, out, err[:15], err.count("\n")) == (2, "", "roast-analyze: ", 1)
        return err.removeprefix("roast-analyze: ")

    return error


@pytest.mark.exhaustive
def test_selections_that_do_not_exist(error, path, tmp_path):
    for options, message in [
        ("--worker beta", "unknown worker 'beta': use one of alpha"),
        ("--worker alphas", "unknown worker 'alphas': did you mean 'alpha'?"),
        ("--prefix laod", "unknown prefix 'laod': did you mean 'load'?"),
        ("--from 5 --to 2", "empty time range from '5' to '2', which are 5 s and 2 s after"),
        ("--from nan", "invalid time 'nan': use seconds (90), 5m"),
        ("--from 500", "'500' is after the end of the run; the run lasted 100 s"),
        ("--to 0", "'0' is not after the start of the run"),
    ]:
        found = error(path, "--perfetto", tmp_path / "out", *options.split())
        assert found.startswith(message) or message.split(";")[0] in found
        assert not (tmp_path / "out").exists()


def test_an_error_names_the_first_of_many_workers(error, write_trace, worker, tmp_path):
    path = write_trace(*(worker(f"tcp://w{number}") for number in range(9)))

    found = error(path, "--perfetto", tmp_path / "out", "--worker", "beta")

    assert found.endswith("tcp://w6, tcp://w7 and 1 more\n")


def test_invalid_targets(error, path, tmp_path):
    before = path.read_bytes()
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
    assert [file.name for file in tmp_path.iterdir()] == ["trace.jsonl"]
    assert path.read_bytes() == before


def test_nothing_to_export(analyze, path, write_trace, worker, tmp_path):
    profile = {"kind": "profile", "t": 9.0, "worker": "tcp://w1", "prefix": "load", "tree": {}}
    profiled = write_trace(
        worker("tcp://w1"), {**profile, "start_t": 0.0, "stop_t": 9.0}, name="p"
    )
    for trace, options, message in (
        (path, "", "the trace has no profiles: enable Dask's profiler"),
        (
            profiled,
            "--worker scheduler",
            "the trace has no profile of the scheduler: Dask does ",
        ),
        (
            profiled,
            "--from 20",
            "no profile in this part of the trace: choose another worker, ",
        ),
    ):
        for form in ("--speedscope", "--folded"):
            code, out, err = analyze("export", trace, form, tmp_path / "out", *options.split())

            assert (code, out, err.count("\n")) == (1, "", 1)
            assert err.startswith(f"roast-analyze: {message}")
            assert not (tmp_path / "out").exists()


def test_an_older_file_stays_until_the_new_one_is_complete(error, path, tmp_path, monkeypatch):
    from roast_analyze.export import perfetto

    out = tmp_path / "out.json"
    out.write_text("old")

    def fails(*_):
        yield {"ph": "M"}
        assert out.read_text() == "old"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(perfetto, "events", fails)
    assert "No space left" in error(path, "--perfetto", out)
    assert out.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "trace.jsonl"]


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
