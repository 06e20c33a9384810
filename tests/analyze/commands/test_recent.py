"""roast-analyze without arguments: the newest traces in the working directory."""

import os

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_newest_traces_come_first(analyze, write_trace, tmp_path):
    names = ["old.jsonl", "segments/000001.jsonl", "my run.jsonl"]
    for age, name in enumerate(reversed(names)):
        os.utime(write_trace(name=name), (1e9 - age, 1e9 - age))
    (tmp_path / "notes.jsonl").write_text('{"kind": "no header"}\n')
    (tmp_path / "empty").mkdir()

    code, out, err = analyze()

    assert (code, err) == (0, "")
    traces, commands = out.split("\n\n")
    assert [line.split("  ")[0] for line in traces.splitlines()[3:]] == [
        "my run.jsonl", "segments", "old.jsonl",
    ]  # fmt: skip
    assert "roast-analyze explain 'my run.jsonl'  where the time went" in commands


def test_only_ten_are_listed(analyze, write_trace):
    for number in range(12):
        write_trace(name=f"{number}.jsonl")

    assert analyze()[1].split("\n\n")[0].count(".jsonl") == 10


def test_without_a_trace_the_command_that_records_one_is_named(analyze):
    code, out, err = analyze()

    assert (code, out) == (2, "")
    assert "roast-record run -o trace.jsonl.zst -- python analysis.py" in err
