"""What is written where, and one line for what cannot be."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from roast_analyze.cli import main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(write_trace, worker, task, run):
    return write_trace(
        worker("tcp://w1", name="alpha"), task("load-1"), *run("load-1", 1.0, 2.0, "tcp://w1")
    )


def complaint(capsys, *words: object) -> str:
    """The one line that a command complains with."""
    assert main(["export", *map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("roast-analyze: ")
    assert err.count("\n") == 1
    return err.removeprefix("roast-analyze: ")


def test_nothing_chosen(capsys, path):
    assert complaint(capsys, path).startswith("say what to write: --perfetto FILE, ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--worker", "beta"], "no worker is 'beta'; there are alpha\n"),
        (["--worker", "alphas"], "no worker is 'alphas'; did you mean 'alpha'?\n"),
        (["--prefix", "laod"], "no task has the prefix 'laod'; did you mean 'load'?\n"),
        (["--prefix", "xyz"], "no task has the prefix 'xyz'; there are load\n"),
        (["--start", "5", "--stop", "2"], "--start 5 is not before --stop 2\n"),
        (["--start", "nan"], "--start nan is no time; give seconds since the start\n"),
        (["--start", "500"], "--start 500 is after the recording, which has 100 s\n"),
        (["--stop", "0"], "--stop 0 is before the recording; give a number above 0\n"),
    ],
)
def test_a_part_that_is_not_there(capsys, path, tmp_path, options, expected):
    assert complaint(capsys, path, "--perfetto", tmp_path / "out", *options) == expected
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["--speedscope", "--folded"])
def test_no_profiles(capsys, path, tmp_path, form):
    words = [form, tmp_path / "out", "--perfetto", tmp_path / "other"]

    assert complaint(capsys, path, *words).startswith("the trace has no profiles; ")
    assert [p.name for p in tmp_path.iterdir()] == ["trace.jsonl"]


@pytest.mark.parametrize("form", ["perfetto", "parquet", "duckdb"])
def test_a_folder_that_is_not_there(capsys, path, tmp_path, form):
    target = tmp_path / "missing" / "out"

    expected = f"there is no folder {str(target.parent)!r} to write to\n"
    assert complaint(capsys, path, f"--{form}", target) == expected


def test_a_folder_where_a_file_should_be(capsys, path, tmp_path):
    expected = f"{str(tmp_path)!r} is a folder; name a file\n"
    assert complaint(capsys, path, "--perfetto", tmp_path) == expected


def test_a_file_where_a_folder_should_be(capsys, path):
    expected = f"{str(path)!r} is no folder; name one, there or not\n"
    assert complaint(capsys, path, "--parquet", path) == expected


@pytest.mark.parametrize("form", ["perfetto", "folded", "duckdb"])
def test_the_trace_is_not_written_over(capsys, path, form):
    before = path.read_bytes()

    assert "is the trace itself" in complaint(capsys, path, f"--{form}", path)
    assert path.read_bytes() == before


def test_two_formats_cannot_share_a_file(capsys, path, tmp_path):
    out = tmp_path / "out"
    words = ["--perfetto", out, "--duckdb", out]
    assert complaint(capsys, path, *words).startswith("two formats cannot go to one file")


def test_a_database_is_not_for_stdout(capsys, path):
    assert (
        complaint(capsys, path, "--duckdb", "-") == "--duckdb is not for stdout; name a file\n"
    )
    assert complaint(capsys, path, "--parquet", "-") == "'-' is no folder; name one\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("form", ["perfetto", "parquet", "duckdb"])
def test_a_place_that_is_not_ours(capsys, path, tmp_path, form):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)

    complaint(capsys, path, f"--{form}", folder / "out")


def test_a_disk_that_is_full(capsys, path):
    if not Path("/dev/full").exists():
        pytest.skip("no device that is full")
    expected = "'/dev/full' cannot be written: No space left on device\n"
    assert complaint(capsys, path, "--perfetto", "/dev/full") == expected


def test_an_older_file_stays_until_the_new_one_is_whole(capsys, path, tmp_path, monkeypatch):
    from roast_analyze.export import perfetto

    out = tmp_path / "out.json"
    out.write_text("old")

    def breaks(*_):
        yield {"ph": "M"}
        assert out.read_text() == "old"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(perfetto, "events", breaks)
    assert "No space left" in complaint(capsys, path, "--perfetto", out)
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json", "trace.jsonl"]


@pytest.mark.parametrize("target", ["-", "/dev/stdout"])
def test_stdout(path, target):
    done = subprocess.run(
        [sys.executable, "-m", "roast_analyze", "export", str(path), "--perfetto", target],
        capture_output=True,
        check=True,
    )

    assert any(event["name"] == "load" for event in json.loads(done.stdout))


def test_a_pipe(path, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()

    assert main(["export", str(path), "--perfetto", str(pipe)]) == 0
    reader.join()
    assert any(event["name"] == "load" for event in json.loads(read[0]))
    assert pipe.is_fifo()


def test_several_at_once(path, tmp_path):
    words = [
        "--perfetto",
        tmp_path / "a",
        "--parquet",
        tmp_path / "b",
        "--duckdb",
        tmp_path / "c",
    ]

    assert main(["export", str(path), *map(str, words)]) == 0
    assert {"a", "b", "c"} <= {p.name for p in tmp_path.iterdir()}
