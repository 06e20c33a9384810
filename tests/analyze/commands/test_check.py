"""The command ``check``: verdict and exit code."""

import json


def test_a_complete_trace(analyze, write_trace, task, run, worker):
    assert analyze("check", write_trace(task("a"), worker("w1"), *run("a", 1.0, 2.0))) == (
        0,
        "trace.jsonl: complete, 6 records in 1 segment: 1 task, 1 attempt, 1 worker\n",
        "",
    )


def test_losses_of_one_of_several_traces(analyze, write_trace, task):
    whole = write_trace(task("a"), name="whole.jsonl", trace_id="W")
    reason = "\x1b[2J[red]late"
    path = write_trace(task("a"), {"kind": "loss", "t": 1.0, "reason": reason, "records": 3})
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\ngarb")

    code, out, _ = analyze("check", path, whole)
    assert code == 1
    assert out.startswith("trace.jsonl: incomplete, 3 records in 1 segment: 1 task, 0 attempts")
    assert "\nwhole.jsonl: complete, " in out
    assert "last line unreadable" in out
    assert "the file was cut off there" in out
    assert "␛[2J[red]late" in out
    assert "\x1b" not in out


def test_json(analyze, write_trace, task, run, worker):
    whole = write_trace(task("a"), worker("w1"), *run("a", 1.0, 2.0))
    lossy = write_trace({"kind": "loss", "t": 1.0, "reason": "late"}, name="lossy.jsonl")

    code, out, _ = analyze("check", "--json", whole, lossy)

    assert code == 1
    assert json.loads(out) == [
        {
            "path": str(whole), "is_complete": True, "records": 6, "segments": 1, "tasks": 1,
            "task_runs": 1, "workers": 1, "loss": [],
        },
        {
            "path": str(lossy), "is_complete": False, "records": 3, "segments": 1, "tasks": 0,
            "task_runs": 0, "workers": 0,
            "loss": [{"reason": "late", "records": None, "detail": ""}],
        },
    ]  # fmt: skip


def test_a_file_that_is_no_trace(analyze, tmp_path):
    (tmp_path / "notes.jsonl").write_text("hello\n")

    code, _, err = analyze("check", tmp_path / "notes.jsonl")
    assert code == 2
    assert "contains no records" in err
