"""Traces from standard input, time ranges, and several traces."""

import io
import os
import sys
from threading import Thread

import pytest


@pytest.mark.exhaustive
def test_a_trace_from_stdin(monkeypatch, analyze, tmp_path, lines, task):
    def with_stdin(text, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return analyze("sql", "-", "SELECT key FROM tasks", *options)

    trace, output = lines(task("a")), tmp_path / "x.csv"
    assert with_stdin(trace, "--format", "csv") == (0, "key\na\n", "")
    assert with_stdin(trace, "-o", output) == (0, "", "")
    assert output.read_text() == "key\na\n"
    for content, message in [(b"", "is empty"), (b"hello\n", "contains no records")]:
        code, _, err = with_stdin(content)
        assert code == 2
        assert err.startswith(f"roast-analyze: standard input {message}: ")


@pytest.fixture
def pipe(tmp_path):
    """Create a pipe into which a text is written once."""

    def pipe(text, name="pipe"):
        path = tmp_path / name
        os.mkfifo(path)
        Thread(target=path.write_bytes, args=(text,), daemon=True).start()
        return path

    return pipe


@pytest.mark.exhaustive
def test_a_pipe_is_read_as_a_trace(pipe, analyze, tmp_path, lines, task):
    trace = lines(task("a"))
    found = analyze("sql", pipe(trace), "SELECT key FROM tasks", "--format", "csv")
    assert found == (0, "key\na\n", "")
    other = pipe(b"hello\n", "other")
    code, _, err = analyze("check", other)
    assert (code, err.partition(": name")[0]) == (
        2, f"roast-analyze: '{other}' contains no records",
    )  # fmt: skip
    _, _, err = analyze(pipe(trace, "third"), "--html")
    assert err.endswith("the trace is read from a pipe: name the report with --html FILE\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "pipe", "third"]


@pytest.mark.exhaustive
def test_commands_of_several_traces_read_one_from_stdin(monkeypatch, analyze, lines, task):
    for words in (["-"], ["explain", "-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(task("a-1")))))
        code, _, err = analyze(*words)
        assert (code, err) == (0, "")


@pytest.mark.exhaustive
def test_time_ranges_and_several_traces(analyze, write_trace, worker, task, run):
    path = write_trace(worker("w1"), task("a-1"), *run("a-1", 10.0, 30.0))

    # A time relative to the end begins with -, as options do.
    words = ["--from", "-80", "--to", "1970-01-01T00:00:25", "--format", "csv"]
    found = analyze("sql", path, "SELECT compute_seconds FROM run", *words)
    assert found == (0, "compute_seconds\n5.0\n", "")
    _, out, _ = analyze("view", path, "transitions", "--to=20s", "--format", "csv")
    assert len(out.splitlines()) == 2
    for words in (["sql", path, "FROM run"], [path], ["export", path, "--perfetto", "-"]):
        code, _, err = analyze(*words, "--from", "noon")
        assert (code, "invalid time 'noon': use seconds (90), 5m" in err) == (2, True)

    paths = [write_trace(task(n), name=f"{n}.jsonl", trace_id=n) for n in ("a", "b")]
    found = analyze("sql", *paths, "SELECT trace_id, key FROM tasks", "--format", "csv")
    assert found == (0, "trace_id,key\na,a\nb,b\n", "")
