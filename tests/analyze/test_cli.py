"""Which command is meant, and what becomes of errors: codes 0, 1, 2 and one line."""

import argparse
import importlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import roast_analyze
from roast_analyze.cli import COMMANDS, main
from roast_analyze.commands import summary


def analyze(*arguments, **options):
    """Run ``roast-analyze`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "roast_analyze", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )


@pytest.mark.parametrize("module", ["roast_analyze", "roast_analyze.cli"])
def test_a_module_that_runs(module):
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"], capture_output=True, text=True
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_version_is_that_of_the_distribution(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"roast-trace {metadata.version('roast-trace')}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_its_docstring(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])

    module = sys.modules[f"roast_analyze.commands.{command}"]
    assert ended.value.code == 0
    assert module.__doc__.strip() in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["trace.jsonl", "--help"]])
def test_help_names_every_command_and_option(capsys, words):
    assert main(words) == 0

    text = capsys.readouterr().out
    for command in COMMANDS:
        module = importlib.import_module(f"roast_analyze.commands.{command}")
        assert f"\n  {command:7} {module.__doc__.splitlines()[0]}\n" in text
    parser = argparse.ArgumentParser()
    summary.add_arguments(parser)
    for line in summary.__doc__.splitlines():
        assert line in text
    for action in parser._actions:
        for option in action.option_strings:
            assert option in text
        assert " ".join(action.help.split()).split(";")[0] in " ".join(text.split()) or (
            action.dest == "help"
        )


def test_help_loads_next_to_nothing():
    """All that Python loads by itself takes half of the time that there is."""
    code = (
        "import sys, contextlib\n"
        "before = {*sys.modules}\n"
        "from roast_analyze.cli import main\n"
        "assert main(['--help']) == 0\n"
        "print(*({*sys.modules} - before))"
    )
    # Without what an environment loads by itself, and so without its paths.
    here = {**os.environ, "PYTHONPATH": str(Path(roast_analyze.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env=here
    )

    ours = {"cli", "errors", "usage"}
    assert set(done.stdout.splitlines()[-1].split()) - {"__future__"} == {
        "roast_analyze",
        *(f"roast_analyze.{module}" for module in ours),
    }


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--html"],
        ["--nonsense", "{trace}"],
        ["{trace}", "another"],
        ["{trace}", "--title", "T"],
        ["nowhere.jsonl"],
        ["sql", "{trace}"],
        ["sql", "{trace}", "SELECT nothing"],
        ["sql", "{trace}", "SELECT error('while it runs')"],
        ["sql", "{trace}", "SELECT 1", "--format", "xml"],
        ["sql", "{trace}", "SELECT 1", "--format", "parquet"],
        ["sql", "{trace}", "SELECT 1", "-o", "no/such/folder/x.csv"],
        ["view", "{trace}", "nothing"],
        ["view", "{trace}", "nothing", "--describe"],
        ["check", "nowhere.jsonl"],
        ["{trace}", "--html", "no/such/folder/x.html"],
        ["{trace}", "--html", "."],
        ["{trace}", "--html", "{trace}"],
        ["{trace}", "link", "--html", "{trace}"],
        ["view", "{trace}", "chunks", "-o", "{trace}"],
        ["sql", "{trace}", "SELECT 1", "-o", "link", "--format", "parquet"],
        ["view", ".", "chunks", "-o", "{trace}"],
        ["sql", ".", "SELECT 1", "-o", "link"],
        [".", "--html", "{trace}"],
        ["sql", "{trace}", "DROP VIEW tasks"],
        ["sql", "{trace}", "SELECT $a"],
        ["sql", "{trace}", "SELECT 1", "-p", "a=1"],
        ["sql", "{trace}", "SELECT $a", "-p", "a"],
        ["sql", "{trace}", "SELECT $a", "-p", "a=1", "-p", "a=2"],
        ["sql", "{trace}", "SELECT 1", "-f", "query.sql"],
        ["sql", "{trace}", "-f", "nowhere.sql"],
        ["sql", "{trace}", "SELECT 1", "--limit", "-1"],
        ["sql", "{trace}", "SELECT 1", "--views", "nowhere"],
        ["view", "{trace}", "--limit", "some"],
        ["export", "{trace}", "--duckdb", "x.duckdb", "--views", "nowhere"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_ends_with_2_and_says_why(
    capsys, monkeypatch, tmp_path, write_trace, words
):
    monkeypatch.chdir(tmp_path)
    trace = write_trace()
    (tmp_path / "link").symlink_to(trace)
    before = trace.read_bytes()

    try:
        code = main([word.format(trace=trace) for word in words])
    except SystemExit as ended:  # argparse
        code = ended.code

    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    complaints = [line for line in captured.err.splitlines() if line[:13] == "roast-analyze"]
    assert len(complaints) == 1
    assert "Traceback" not in captured.err
    assert trace.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc", "{trace}"], "there is no command 'chekc'; did you mean 'check'?"),
        (["viwe", "{trace}", "tasks"], "there is no command 'viwe'; did you mean 'view'?"),
        (
            ["zzz", "{trace}"],
            "there is no command 'zzz'; there are sql, view, export, import, check",
        ),
        (
            ["a.jsonl", "b.jsonl"],
            "there is no 'a.jsonl'; name a trace file or a folder of segments",
        ),
        (
            ["-", "{trace}"],
            "what comes from stdin cannot be set beside other traces; write it to a file",
        ),
        (["check", "a.jsonl", "b.jsonl"], "one trace at a time, not 'a.jsonl' and 'b.jsonl'"),
        (["sql", "{trace}", "SELECT 1; SELECT 2"], "one query at a time, not 2"),
    ],
)
def test_a_word_that_is_not_understood_gets_a_hint(capsys, write_trace, words, said):
    assert main([word.format(trace=write_trace()) for word in words]) == 2

    assert capsys.readouterr().err == f"roast-analyze: {said}\n"


def test_a_missing_library_is_named_with_the_command_that_installs_it(write_trace):
    code = (
        "import sys\n"
        "sys.modules['duckdb'] = None\n"
        "from roast_analyze.cli import main\n"
        f"sys.exit(main([{str(write_trace())!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.returncode == 2
    assert done.stderr == (
        "roast-analyze: duckdb is not installed, which the analysis needs: "
        "pip install -U 'roast-trace[analyze]'\n"
    )


def test_a_missing_library_of_somebody_else_is_a_bug_and_stays_one(monkeypatch, write_trace):
    monkeypatch.setitem(sys.modules, "roast_analyze.commands.check", None)

    with pytest.raises(ModuleNotFoundError):
        main(["check", str(write_trace())])


def test_a_reader_that_stops_early_is_no_error(write_trace, task):
    path = write_trace(*(task(f"a-{i}", annotations={"x": "y" * 500}) for i in range(2000)))
    with subprocess.Popen(
        [sys.executable, "-m", "roast_analyze", "view", path, "tasks", "--format", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline().startswith(b"key,prefix")
        process.stdout.close()
        stderr = process.stderr.read()

    assert (process.returncode, stderr) == (0, b"")


@pytest.mark.parametrize(("loss", "code"), [([], 0), ([{"kind": "loss", "t": 1.0}], 1)])
def test_a_verdict_that_nobody_reads_stands(write_trace, loss, code):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "roast_analyze", "check", write_trace(*loss)]

    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)

    assert (done.returncode, done.stderr) == (code, b"")


QUERY_WITHOUT_END = (
    "SELECT count(*) FROM range(10000000) a, range(10000000) b "
    "WHERE (a.range * b.range) % 7 = 3"
)

INTERRUPTED = """
import os, signal, sys, threading
from roast_analyze.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(2, os.kill, [os.getpid(), signal.SIGINT]).start()
sys.exit(main(["sql", *sys.argv[1:]]))
"""


def test_ctrl_c_ends_a_long_query_without_a_traceback(write_trace):
    command = [sys.executable, "-c", INTERRUPTED, write_trace(), QUERY_WITHOUT_END]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_letters_gets_escapes(write_trace, task, encoding):
    path = write_trace(task("ключ"))

    done = analyze(
        "sql", path, "SELECT key FROM tasks", "--format", "csv",
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "key\n\\u043a\\u043b\\u044e\\u0447\n")


def test_what_a_trace_says_is_harmless_in_errors_too(capsys, write_trace, task):
    path = write_trace(task("\x1b[31mred"))

    assert main(["sql", str(path), "SELECT key::INTEGER FROM tasks"]) == 2
    err = capsys.readouterr().err
    assert "␛[31mred" in err
    assert "\x1b" not in err


def test_the_command_runs_in_a_process_of_its_own(write_trace):
    done = analyze("check", write_trace())

    assert (done.returncode, done.stderr) == (0, "")
    assert "whole" in done.stdout
