"""Traces from standard input, time ranges, and several traces."""

import io
import sys


def test_a_trace_from_stdin(monkeypatch, analyze, tmp_path, lines, task):
    def with_stdin(text, *words):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return analyze(*words)

    query = "SELECT key FROM tasks"
    found = with_stdin(lines(task("a")), "sql", "-", query, "--format", "csv")
    assert found == (0, "key\na\n", "")
    output = tmp_path / "x.csv"
    assert with_stdin(lines(task("a")), "sql", "-", query, "-o", output) == (0, "", "")
    assert output.read_text() == "key\na\n"
    for content, message in [(b"", "is empty"), (b"hello\n", "contains no records")]:
        code, _, err = with_stdin(content, "sql", "-", query)
        assert code == 2
        assert err.startswith(f"roast-analyze: standard input {message}: ")


def test_time_ranges_of_commands(analyze, write_trace, worker, task, run):
    path = write_trace(worker("w1"), task("a-1"), *run("a-1", 10.0, 30.0))
    query = "SELECT compute_seconds FROM run"

    # A time before the end looks like an option.
    words = ["--from", "-80", "--to", "1970-01-01T00:00:25", "--format", "csv"]
    assert analyze("sql", path, query, *words) == (0, "compute_seconds\n5.0\n", "")
    _, out, _ = analyze("view", path, "transitions", "--to=20s", "--format", "csv")
    assert len(out.splitlines()) == 2
    for words in (["sql", path, query], [path], ["export", path, "--perfetto", "-"]):
        code, _, err = analyze(*words, "--from", "noon")
        assert code == 2
        assert "invalid time 'noon': use seconds (90), 5m" in err


def test_several_traces_are_identified_by_trace_id(analyze, write_trace, task):
    paths = [write_trace(task(n), name=f"{n}.jsonl", trace_id=n) for n in ("a", "b")]

    query = "SELECT trace_id, key FROM tasks"
    expected = "trace_id,key\na,a\nb,b\n"
    assert analyze("sql", *paths, query, "--format", "csv") == (0, expected, "")
    assert len(analyze("view", *paths, "tasks", "--format", "csv")[1].splitlines()) == 3
