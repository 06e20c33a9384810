"""Dispatch to commands, exit codes, and errors on stderr."""

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
    return subprocess.run(
        [sys.executable, "-m", "roast_analyze", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )


def test_the_version_is_that_of_the_distribution(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"roast-trace {metadata.version('roast-trace')}\n"


def test_the_help_of_a_command_is_its_docstring(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        module = sys.modules[f"roast_analyze.commands.{command}"]
        assert ended.value.code == 0
        assert module.__doc__.strip() in capsys.readouterr().out


def test_help_lists_every_command_and_option(capsys):
    parser = argparse.ArgumentParser()
    summary.add_arguments(parser)
    for words in (["--help"], ["-h"], ["trace.jsonl", "--help"]):
        assert main(words) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 82
        for command in COMMANDS:
            module = importlib.import_module(f"roast_analyze.commands.{command}")
            assert f"\n  {command:7} {module.__doc__.splitlines()[0]}\n" in text
        for line in summary.__doc__.splitlines():
            assert line in text
        for action in parser._actions:
            if action.dest == "help":
                continue
            assert all(option in text for option in action.option_strings)
            plain = " ".join(action.help.replace("%%", "%").split()).split(";")[0].split(",")[0]
            assert plain in " ".join(text.split()), action.dest


def test_help_imports_almost_nothing():
    code = (
        "import sys, contextlib\n"
        "before = {*sys.modules}\n"
        "from roast_analyze.cli import main\n"
        "assert main(['--help']) == 0\n"
        "print(*({*sys.modules} - before))"
    )
    # Without site-packages, whose .pth files import modules too.
    environment = {**os.environ, "PYTHONPATH": str(Path(roast_analyze.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment
    )

    assert set(done.stdout.splitlines()[-1].split()) - {"__future__"} == {
        "roast_analyze",
        "roast_analyze.cli",
        "roast_analyze.errors",
        "roast_analyze.usage",
    }


INVALID_CALLS = """
--html
--nonsense {trace}
{trace} another
{trace} --title T
nowhere.jsonl
{trace} --html no/such/folder/x.html
{trace} --html .
{trace} --html {trace}
{trace} link --html {trace}
. --html {trace}
sql {trace}
sql {trace} SELECT_nothing
sql {trace} SELECT_error('late')
sql {trace} SELECT_1 --format xml
sql {trace} SELECT_1 --format parquet
sql {trace} SELECT_1 -o no/such/folder/x.csv
sql {trace} SELECT_1 -o link --format parquet
sql {trace} DROP_VIEW_tasks
sql {trace} SELECT_1 -p a=1
sql {trace} SELECT_1 --limit -1
sql {trace} SELECT_1 --views nowhere
sql . SELECT_1 -o link
view {trace} nothing
view {trace} nothing --describe
view {trace} chunks -o {trace}
view {trace} --limit some
check nowhere.jsonl
check
export {trace} --duckdb x.duckdb --views nowhere
"""


def test_an_invalid_call_exits_with_2_and_one_message(
    capsys, monkeypatch, tmp_path, write_trace
):
    monkeypatch.chdir(tmp_path)
    trace = write_trace()
    (tmp_path / "link").symlink_to(trace)
    before = trace.read_bytes()
    for line in ["", *INVALID_CALLS.strip().splitlines()]:
        words = [word.format(trace=trace) for word in line.split()]
        words = [word.replace("_", " ") if word[:2].isupper() else word for word in words]
        try:
            code = main(words)
        except SystemExit as ended:  # argparse
            code = ended.code
        captured = capsys.readouterr()
        assert (code, captured.out) == (2, ""), line
        messages = [m for m in captured.err.splitlines() if m.startswith("roast-analyze")]
        assert len(messages) == 1, line
        assert "Traceback" not in captured.err
        assert trace.read_bytes() == before


def test_hints(capsys, write_trace):
    trace = str(write_trace())
    for words, message in [
        (["chekc", trace], "unknown command 'chekc'; did you mean 'check'?"),
        (["viwe", trace, "tasks"], "unknown command 'viwe'; did you mean 'view'?"),
        (["zzz", trace], "unknown command 'zzz'; choose from sql, view, export, import, check"),
        (
            ["a.jsonl", "b.jsonl"],
            "'a.jsonl' does not exist: name a trace file or a folder of segments",
        ),
        (["-", trace], "stdin cannot be compared with other traces: write it to a file"),
        (["sql", trace, "SELECT 1; SELECT 2"], "expected one query, got 2"),
    ]:
        assert main(words) == 2
        assert capsys.readouterr().err == f"roast-analyze: {message}\n"


def test_a_missing_library_is_named_with_the_command_that_installs_it(write_trace):
    code = (
        "import sys\n"
        "sys.modules['duckdb'] = None\n"
        "from roast_analyze.cli import main\n"
        f"sys.exit(main([{str(write_trace())!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (
        2,
        (
            "roast-analyze: the analysis needs duckdb, which is not installed: "
            "pip install -U 'roast-trace[analyze]'\n"
        ),
    )


def test_a_missing_module_of_roast_is_a_bug(monkeypatch, write_trace):
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
def test_the_exit_code_of_check_does_not_depend_on_a_reader(write_trace, loss, code):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "roast_analyze", "check", write_trace(*loss)]

    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)

    assert (done.returncode, done.stderr) == (code, b"")


INTERRUPTED = """
import os, signal, sys, threading
from roast_analyze.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(2, os.kill, [os.getpid(), signal.SIGINT]).start()
sys.exit(main(["sql", *sys.argv[1:]]))
"""


def test_ctrl_c_ends_a_long_query_without_a_traceback(write_trace):
    endless = (
        "SELECT count(*) FROM range(10000000) a, range(10000000) b "
        "WHERE (a.range * b.range) % 7 = 3"
    )
    command = [sys.executable, "-c", INTERRUPTED, write_trace(), endless]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_characters_that_the_terminal_lacks_are_escaped(write_trace, task):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    query = "SELECT key FROM tasks"

    done = analyze("sql", write_trace(task("ключ")), query, "--format", "csv", env=environment)

    assert (done.returncode, done.stdout) == (0, "key\n\\u043a\\u043b\\u044e\\u0447\n")


def test_errors_contain_no_control_characters(capsys, write_trace, task):
    path = write_trace(task("\x1b[31mred"))

    assert main(["sql", str(path), "SELECT key::INTEGER FROM tasks"]) == 2
    err = capsys.readouterr().err
    assert "␛[31mred" in err
    assert "\x1b" not in err
