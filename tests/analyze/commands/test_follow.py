"""``roast-analyze TRACE --follow`` in a terminal."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from roast_analyze.cli import main
from roast_analyze.commands.follow import paths_of, require_record
from roast_analyze.errors import NotATrace


@pytest.fixture
def follow():
    """Start the command in a terminal of 100 columns; return the process and a reader."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    os.set_blocking(ours, False)
    shown = bytearray()
    processes = []

    def start(path):
        command = [sys.executable, "-m", "roast_analyze", str(path), "--follow"]
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        processes.append(subprocess.Popen(command, **streams, env=environment))
        return processes[0]

    def wait_for(pattern: str, seconds: float = 60.0) -> str:
        until = time.monotonic() + seconds
        while True:
            try:
                shown.extend(os.read(ours, 2**16))
            except BlockingIOError:
                time.sleep(0.05)
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "replace"))
            text = text.replace("\N{NO-BREAK SPACE}", " ")
            if re.search(pattern, text):
                shown.clear()
                return text
            assert time.monotonic() < until, text

    yield start, wait_for, lambda keys: os.write(ours, keys)
    for process in processes:
        process.kill()
        process.wait()
    os.close(ours)
    os.close(theirs)


def test_a_run_from_before_its_begin_to_its_end(follow, tmp_path, lines, task, run, worker):
    start, wait_for, _ = follow
    path = tmp_path / "run.jsonl"
    process = start(path)
    wait_for("no record yet")

    records = [worker("w1"), task("a-1"), task("a-2"), *run("a-1", 0.0, 5.0)]
    *whole, trailer = lines(*records).splitlines(keepends=True)
    path.write_bytes(b"".join(whole))
    text = wait_for("1 of 2 done")
    assert "Workers  1 with 1 thread" in text
    # A text of a trace cannot move the cursor.
    odd = {**task("b-1"), "prefix": "\x1b[2J[red]odd"}
    with path.open("ab") as file:
        file.write(json.dumps(odd).encode() + b"\n")
        file.flush()
        assert "␛[2J[red]odd" in wait_for(r"\[red\]odd")
        wait_for("nothing was written for [5-9]")
        file.write(trailer)
    wait_for("Ended .*recording was stopped")
    assert process.wait(10) == 0


def test_a_trace_that_nobody_writes_any_more(follow, tmp_path, lines, task, run):
    start, wait_for, press = follow
    path = tmp_path / "run.jsonl"
    records = [task("a-1"), *run("a-1", 1.0, 5.0)]
    path.write_bytes(b"".join(lines(*records).splitlines(keepends=True)[:-1]))
    os.utime(path, (time.time() - 3600, time.time() - 3600))

    process = start(path)
    wait_for("nothing was written for 1 h")
    press(b"q")
    assert process.wait(10) == 0


def test_q_leaves(follow, tmp_path):
    start, wait_for, press = follow
    process = start(tmp_path / "none.jsonl")
    wait_for("q leaves")
    press(b"xq")
    assert process.wait(10) == 0


def test_a_finished_trace(follow, write_trace, task, run):
    start, wait_for, _ = follow
    process = start(write_trace(task("a-1"), *run("a-1", 0.0, 5.0)))
    wait_for("Ended .*recording was stopped")
    assert process.wait(10) == 0


def test_without_a_terminal(write_trace, capsys):
    assert main([str(write_trace()), "--follow"]) == 2
    assert "--follow needs a terminal" in capsys.readouterr().err
    assert main([str(write_trace()), "--follow", "--html"]) == 2


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--from", "1m"], "--from"),
        (["--to", "-1m", "--session", "1"], "--session, --to"),
        (["--session", "0"], "--session"),
        (["--json"], "--json"),
        (["--html"], "--html"),
        (["--open", "--title", "x"], "--open, --title"),
        (["--markdown", "--all"], "--all, --markdown"),
        (["other.jsonl"], "'other.jsonl'"),
    ],
)
def test_options_that_would_have_no_effect(write_trace, analyze, words, named):
    code, _, error = analyze(write_trace(), "--follow", *words)
    assert code == 2
    assert error.splitlines()[-1].endswith(f"from its first record on: leave out {named}")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("-", "cannot read standard input as it grows: name the file that is recorded"),
        ("pipe", "cannot read 'pipe' as it grows"),
        ("none/a.jsonl", "the folder 'none' does not exist: create it, or correct the name"),
        ("two", "'two' is 2 traces: name one for --follow, such as 'two/b.jsonl'"),
        ("two/*.jsonl", "'two/*.jsonl' is 2 traces"),
        ("x*.jsonl", "no file matches 'x*.jsonl': name a trace file"),
        ("http://", "'http://' names no trace: write the whole URL, or a path"),
        ("kept", "'kept' is a store: name a trace"),
        ("notes", "the folder 'notes' contains no trace: segments end in .jsonl"),
    ],
)
def test_names_that_are_none_of_a_trace(
    write_trace, analyze, tmp_path, monkeypatch, name, error
):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for trace in "ab":
        write_trace(name=f"two/{trace}.jsonl", trace_id=trace)
    (tmp_path / "kept" / "runs" / "_delta_log").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("x")
    code, _, printed = analyze(name, "--follow")
    assert (code, printed.count("\n")) == (2, 1)
    assert error in printed


def test_names_that_can_be_followed(write_trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for segment in (1, 2):
        write_trace(name=f"c/00000{segment}.jsonl", segment=segment)
    (tmp_path / "new").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "000001.jsonl.zst").touch()
    (tmp_path / "empty.jsonl").touch()
    for name in ("c", "new", "begun", "empty.jsonl", "later.jsonl", "c/000001.jsonl"):
        assert paths_of(name) == (Path(name),)
    assert paths_of("c/*.jsonl") == (Path("c/000001.jsonl"), Path("c/000002.jsonl"))


@pytest.mark.parametrize("text", ["hi", '{"a":1}', '{"kind": "x"}\n', "PAR1"])
def test_a_file_that_is_no_trace(tmp_path, text):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(NotATrace, match=r"a\.jsonl' .*: (name|query)"):
        require_record((path,))


@pytest.mark.parametrize("text", ["", '{"kind":"hea', '{"kind": "header", "t": 1.0, '])
def test_a_trace_whose_header_is_being_written(tmp_path, text):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    require_record((path,))
