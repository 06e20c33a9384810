"""The command ``import``: which words go together."""

import pytest

from roast_analyze.cli import main


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["strace", "x", "--into", "t"], "nothing is known of 'strace'; there are darsh"),
        (["darshan", "x"], "say with --into TRACE where darshan is imported to"),
        (["darshan", "x", "--into", "t", "--worker", "w"], "--worker is not for darshan"),
        (["darshan", "x", "--into", "t", "--clock", "cpu"], "--clock is not for darshan"),
        (["yappi", "x", "--into", "t", "-o", "u"], "--output is not for yappi; use --into"),
        (["yappi", "x", "--into", "-"], "--into - cannot be: a trace is written in place"),
        (["yappi", "x", "--into", "missing"], "there is no 'missing'; name a trace file"),
        (["dump", "x", "--into", "t"], "say with --output TRACE where dump is imported to"),
    ],
)  # fmt: skip
def test_words_that_do_not_go_together(tmp_path, monkeypatch, capsys, words, error):
    monkeypatch.chdir(tmp_path)

    code = main(["import", *words])

    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert error in said.err


def test_a_file_that_is_missing_is_named(write_trace, task, capsys):
    path = write_trace(task("a"))

    code = main(["import", "darshan", "missing.darshan", "--into", str(path)])

    assert code == 2
    assert (
        "'missing.darshan' cannot be read: No such file or directory" in capsys.readouterr().err
    )
