"""roast-analyze without arguments: the newest traces in the working directory."""

import os


def test_the_newest_traces_come_first(analyze, write_trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = analyze()
    assert (code, out) == (2, "")
    assert "roast-record run -o trace.jsonl.zst -- python analysis.py" in err

    names = ["my run.jsonl", "segments/000001.jsonl", *(f"{n}.jsonl" for n in range(10))]
    for age, name in enumerate(names):
        os.utime(write_trace(name=name), (1e9 - age, 1e9 - age))
    (tmp_path / "notes.jsonl").write_text('{"kind": "no header"}\n')
    (tmp_path / "empty").mkdir()

    code, out, err = analyze()

    assert (code, err) == (0, "")
    traces, commands = out.split("\n\n")
    listed = [line.split("  ")[0] for line in traces.splitlines()[3:]]
    assert listed == ["my run.jsonl", "segments", *names[2:10]]
    assert "roast-analyze explain 'my run.jsonl'  where the time went" in commands
