"""The command ``check``: verdict and exit code."""

import json


def test_a_complete_and_an_incomplete_trace(analyze, write_trace, task, run, worker):
    records = [task("a"), worker("w1"), *run("a", 1.0, 2.0)]
    whole = write_trace(*records, name="whole.jsonl", trace_id="W")
    loss = {"kind": "loss", "t": 1.0, "reason": "\x1b[2J[red]late", "records": 3}
    cut = write_trace(task("a"), loss, name="cut.jsonl")
    cut.write_text("\n".join(cut.read_text().splitlines()[:-1]) + "\ngarb")

    verdict = "whole.jsonl: complete, 6 records in 1 segment: 1 task, 1 attempt, 1 worker\n"
    assert analyze("check", whole) == (0, verdict, "")
    code, out, _ = analyze("check", cut, whole)
    assert code == 1
    assert out.startswith("cut.jsonl: incomplete, 3 records in 1 segment: 1 task, 0 attempts")
    assert out.endswith(verdict)
    for part in ("last line unreadable", "the file was cut off there", "␛[2J[red]late"):
        assert part in out
    assert "\x1b" not in out

    code, out, _ = analyze("check", "--json", whole, cut)
    assert code == 1
    [first, second] = json.loads(out)
    assert first == {
        "path": str(whole), "is_complete": True, "records": 6, "segments": 1, "tasks": 1,
        "task_runs": 1, "workers": 1, "loss": [],
    }  # fmt: skip
    assert not second["is_complete"]
    assert {"reason": loss["reason"], "records": 3, "detail": ""} in second["loss"]
