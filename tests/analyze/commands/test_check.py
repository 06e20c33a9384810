"""Whole or not: the verdict, and the exit code."""

from roast_analyze.cli import main


def test_whole(capsys, write_trace, task, run, worker):
    path = write_trace(task("a"), worker("w1"), *run("a", 1.0, 2.0))

    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == (
        "trace.jsonl: whole, 6 records in 1 segment: 1 task, 1 attempt, 1 worker\n"
    )


def test_not_whole(capsys, write_trace, task):
    path = write_trace(task("a"), {"kind": "loss", "t": 1.0, "reason": "late", "records": 3})
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\ngarb")

    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("trace.jsonl: not whole, 3 records in 1 segment: 1 task, 0 attempts")
    rows = [line.split("  ")[0] for line in out.splitlines()[4:]]
    assert [row for row in rows if row] == ["last line unreadable", "late", "no trailer"]
    assert "the file was cut off there" in out


def test_unreadable(capsys, tmp_path):
    (tmp_path / "notes.jsonl").write_text("hello\n")

    assert main(["check", str(tmp_path / "notes.jsonl")]) == 2
    assert "is no trace" in capsys.readouterr().err


def test_a_reason_cannot_command_the_terminal(capsys, write_trace):
    path = write_trace(
        {"kind": "loss", "t": 1.0, "reason": "\x1b[2J[red]late", "detail": "\x1b]0;title\x07"}
    )

    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "␛[2J[red]late" in out
