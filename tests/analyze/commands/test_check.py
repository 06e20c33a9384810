"""The command ``check``: verdict and exit code."""

from roast_analyze.cli import main


def test_a_complete_trace(capsys, write_trace, task, run, worker):
    path = write_trace(task("a"), worker("w1"), *run("a", 1.0, 2.0))

    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == (
        "trace.jsonl: complete, 6 records in 1 segment: 1 task, 1 attempt, 1 worker\n"
    )


def test_losses_of_one_of_several_traces(capsys, write_trace, task):
    whole = write_trace(task("a"), name="whole.jsonl", trace_id="W")
    reason = "\x1b[2J[red]late"
    path = write_trace(task("a"), {"kind": "loss", "t": 1.0, "reason": reason, "records": 3})
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\ngarb")

    assert main(["check", str(path), str(whole)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("trace.jsonl: incomplete, 3 records in 1 segment: 1 task, 0 attempts")
    assert "\nwhole.jsonl: complete, " in out
    assert "last line unreadable" in out
    assert "the file was cut off there" in out
    assert "␛[2J[red]late" in out
    assert "\x1b" not in out


def test_a_file_that_is_no_trace(capsys, tmp_path):
    (tmp_path / "notes.jsonl").write_text("hello\n")

    assert main(["check", str(tmp_path / "notes.jsonl")]) == 2
    assert "contains no records" in capsys.readouterr().err
