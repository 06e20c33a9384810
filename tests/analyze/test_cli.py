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
from marks import exhaustive
from roast_analyze.cli import COMMANDS, main
from roast_analyze.commands import summary
from roast_analyze.errors import TraceNotFound


def process(*words, **options):
    """Run Python in a subprocess."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, **{"capture_output": True, "text": True, **options})


def test_help_lists_every_command_and_option(analyze, capsys):
    parser = argparse.ArgumentParser()
    summary.add_arguments(parser)
    for words in (["--help"], ["-h"], ["trace.jsonl", "--help"]):
        code, text, _ = analyze(*words)
        assert code == 0
        assert max(map(len, text.splitlines())) <= 82
        for line in summary.__doc__.splitlines():
            assert line in text
        for action in parser._actions:
            if action.dest != "help":
                assert all(option in text for option in action.option_strings)
                plain = " ".join(action.help.replace("%%", "%").split())
                start = plain.split(";")[0].split(",")[0]
                assert start in " ".join(text.split()), action.dest
    assert analyze("--version") == (0, f"roast-trace {metadata.version('roast-trace')}\n", "")
    for command in COMMANDS:
        with pytest.raises(SystemExit, match=r"^0$"):
            main([command, "--help"])
        module = importlib.import_module(f"roast_analyze.commands.{command.replace('-', '_')}")
        assert module.__doc__.strip() in capsys.readouterr().out
        assert f"\n  {command:7} {module.__doc__.splitlines()[0]}\n" in text


def test_help_imports_almost_nothing():
    code = (
        "import os, sys\n"
        "before = {*sys.modules}\n"
        "from roast_analyze.cli import main\n"
        "assert main(['--help']) == 0\n"
        "print(*({*sys.modules} - before))"
    )
    # Without site-packages, whose .pth files import modules too.
    environment = {**os.environ, "PYTHONPATH": str(Path(roast_analyze.__file__).parents[1])}
    loaded = {*process("-S", "-c", code, env=environment).stdout.splitlines()[-1].split()}

    modules = {"roast_analyze", "roast_analyze.cli", "roast_analyze.errors"}
    assert loaded - {"__future__"} == modules


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("roast-analyze ", {*COMMANDS, "run.jsonl", "text.csv"}),
        ("roast-analyze w", {"why", "what-if"}),
        ("roast-analyze ru", {"run.jsonl"}),
        ("roast-analyze run.jsonl --me", {"--memory-limit"}),
        ("roast-analyze export run.jsonl --pe", {"--perfetto"}),
        ("roast-analyze sql run.jsonl --format ma", {"markdown"}),
        ("roast-record at", {"attach"}),
        ("roast-record attach --tls-c", {"--tls-ca-file", "--tls-cert"}),
    ],
)
def test_completion_in_a_shell(tmp_path, line, completions):
    folder, found = tmp_path / "folder", tmp_path / "found"
    folder.mkdir()
    for name in ("run.jsonl", "text.csv"):
        (folder / name).touch()
    package = {"roast-analyze": "roast_analyze", "roast-record": "roast_recorder"}
    variables = {
        "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
    }  # fmt: skip

    process(
        "-m", package[line.split()[0]], env={**os.environ, **variables}, cwd=folder,
        check=True,
    )  # fmt: skip

    assert {word.strip() for word in found.read_text().split("\n")} == {*completions}


INVALID_CALLS = """
--html
{trace} {trace} --json --html
--nonsense {trace}
{trace} another
{trace} --title T
nowhere.jsonl
{trace} --html no/such/folder/x.html
{trace} --html .
{trace} --html {trace}
{trace} link --html {trace}
. --html {trace}
sql {trace} SELECT_nothing
sql {trace} SELECT_1 --format xml
sql {trace} SELECT_1 -o link --format parquet
sql {trace} DROP_VIEW_tasks
sql {trace} SELECT_1 --limit -1
sql {trace} SELECT_1 --views nowhere
sql . SELECT_1 -o link
view --views .
view {trace} nothing
view {trace} chunks -o {trace}
view {trace} --limit some
view {trace} --limit 9223372036854775808
check nowhere.jsonl
check
"""


def test_an_invalid_call_exits_with_2_and_one_message(
    capsys, monkeypatch, tmp_path, write_trace
):
    monkeypatch.chdir(tmp_path)
    trace = write_trace()
    (tmp_path / "link").symlink_to(trace)
    before = trace.read_bytes()
    for line in INVALID_CALLS.strip().splitlines():
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


#: Calls with secrets in a URL that is mistyped, or where a path is expected.
SECRET_CALLS = """
serve URL
serve http:/u:SECRET@h/x
sql http:/u:SECRET@h/x?a=SECRET QUERY
sql https//u:SECRET@h/x QUERY
https//h/x?a=SECRET
check //u:SECRET@h/x
store list URL
store add http:/u:SECRET@h/x --to store
store check s4://u:SECRET@h/x?a=SECRET
export TRACE --perfetto URL
TRACE --html http:/u:SECRET@h/x
TRACE --unknown URL
TRACE --from URL
each https//u:SECRET@h/x SELECT
scrub TRACE -o URL
import yappi x --into URL
explain TRACE --views https:/u:SECRET@h/x
"""


def test_no_message_has_the_secrets_of_a_url(write_trace, task, capsys, monkeypatch, tmp_path):
    trace = str(write_trace(task("a")))
    monkeypatch.chdir(tmp_path)
    url = "http://u:SECRET@127.0.0.1:1/x?sig=SECRET"
    for line in SECRET_CALLS.strip().splitlines():
        words = [{"URL": url, "TRACE": trace}.get(word, word) for word in line.split()]
        code = main(words)
        out, err = capsys.readouterr()
        assert code in (1, 2), line
        assert err.startswith("roast-analyze: "), line
        assert "SECRET" not in out + err, (line, err)


def test_messages_in_python_have_no_secrets():
    for name in ("https//u:SECRET@h/x", Path("https://u:SECRET@h/x?a=SECRET")):
        with pytest.raises(TraceNotFound) as caught:
            roast_analyze.Trace(name)
        assert "SECRET" not in str(caught.value)
        assert "pass a URL as a text, not as a path, and with ://" in str(caught.value)


def test_messages_suggest_a_correction(analyze, write_trace, task):
    trace = write_trace(task("\x1b[31mred"))
    for words, message in [
        (["report", trace], "unknown command 'report': use roast-analyze TRACE --html"),
        (["report"], "unknown command 'report': use roast-analyze TRACE --html"),
        (["reprot", trace], "unknown command 'reprot'; use roast-analyze TRACE --html"),
        (["compare", trace], "unknown command 'compare': use roast-analyze BEFORE AFTER"),
        (["run", "x.py"], "unknown command 'run': use roast-record run -- python PROGRAM"),
        ([trace, "check"], "the command comes first: roast-analyze check TRACE"),
        (
            ["check"],
            "the following arguments are required: TRACE; see roast-analyze check --help",
        ),
        (
            [trace, "--jsn"],
            "unrecognized arguments: --jsn; did you mean --json? see roast-analyze --help",
        ),
        (
            [trace, "-o", "x.html"],
            "unrecognized arguments: -o x.html; did you mean --html FILE? see roast-analyze …",
        ),
        (["chekc", trace], "unknown command 'chekc'; did you mean 'check'?"),
        (["viwe", trace, "tasks"], "unknown command 'viwe'; did you mean 'view'?"),
        (["zzz", trace], f"unknown command 'zzz'; choose from {', '.join(COMMANDS)}"),
        (["a.jsonl", "b.jsonl"], "'a.jsonl' does not exist: name a trace file or a folder …"),
        (["-", trace], "stdin cannot be compared with other traces: write it to a file"),
        (["sql", trace, "SELECT 1; SELECT 2"], "expected one query, got 2"),
    ]:
        code, out, err = analyze(*words)
        assert (code, out) == (2, "")
        assert err.startswith(f"roast-analyze: {message.removesuffix('…')}")
    code, _, err = analyze("sql", trace, "SELECT key::INTEGER FROM tasks")
    assert (code, "␛[31mred" in err, "\x1b" in err) == (2, True, False)


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch, analyze, write_trace
):
    path = write_trace()
    # One library is needed by the command, the other one to parse its arguments.
    for library in ("duckdb", "xxhash"):
        code = (
            "import sys\n"
            f"sys.modules['{library}'] = None\n"
            "from roast_analyze.cli import main\n"
            "sys.exit(main(sys.argv[1:]))"
        )
        done = process("-c", code, path)
        message = f"roast-analyze: the analysis needs {library}, which is not installed: "
        assert done.returncode == 2
        assert done.stderr == message + "pip install -U '.[analyze]' in a clone of roast\n"
    # A missing module of roast is a bug.
    monkeypatch.setitem(sys.modules, "roast_analyze.commands.check", None)
    with pytest.raises(ModuleNotFoundError):
        analyze("check", path)


def test_a_reader_that_stops_early_is_not_an_error(write_trace, task):
    path = write_trace(*(task(f"a-{i}", annotations={"x": "y" * 500}) for i in range(2000)))
    command = [sys.executable, "-m", "roast_analyze", "view", path, "tasks", "--format", "csv"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as opened:
        assert opened.stdout.readline().startswith(b"key,prefix")
        opened.stdout.close()
        stderr = opened.stderr.read()

    assert (opened.returncode, stderr) == (0, b"")


MISSING = "roast-analyze: no: 'no' does not exist: name a trace file or a folder of segments\n"
FULL = "roast-analyze: cannot write to stdout: No space left on device\n"


@pytest.mark.parametrize("unbuffered", ["", exhaustive("1")])
@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("check $TRACE | true", 0, ""),
        ("each $TRACE no 'FROM run' | true", 1, MISSING),
        ("check no 2>&1 | true", 2, ""),
        ("check $TRACE >/dev/full", 2, FULL),
        ("check $TRACE 2>/dev/full >/dev/null", 0, ""),
        ("check $TRACE >&- 2>&-", 0, ""),
        ("sql $TRACE 'SELECT 1' >&-", 0, ""),
        exhaustive("sql $TRACE 'SELECT 1 WHERE false' >&-", 0, ""),
        exhaustive("sql $TRACE 'SELECT 1 WHERE false' <&-", 0, "(0 rows)\n"),
        exhaustive("sql $TRACE 'SELECT 1' --format csv >&-", 0, ""),
        exhaustive("view $TRACE run >&-", 0, ""),
        exhaustive("$TRACE >&-", 0, ""),
    ],
)
@pytest.mark.exhaustive
def test_the_exit_code_does_not_depend_on_a_reader(
    monkeypatch, write_trace, command, code, error, unbuffered
):
    monkeypatch.setenv("TRACE", str(write_trace()))
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    line = f"{sys.executable} -m roast_analyze {command}; exit ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (code, error)


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
    done = process("-c", INTERRUPTED, write_trace(), endless, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_characters_that_the_terminal_cannot_show_are_escaped(write_trace, task):
    words = ["sql", write_trace(task("é-к😀")), "SELECT key FROM tasks", "--format", "jsonl"]

    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = process("-m", "roast_analyze", *words, env=environment)
    # Also in JSON.
    assert (done.returncode, done.stdout) == (0, '{"key": "\\u00e9-\\u043a\\ud83d\\ude00"}\n')
