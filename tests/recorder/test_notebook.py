"""The cell magic %%record, in an IPython shell of this process."""

import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

import roast_recorder

pytestmark = pytest.mark.cluster


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A shell replaces this module; worker processes are started from the original.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "roast_recorder")
    yield shell
    shell.reset()
    InteractiveShell.clear_instance()


def keys_in(lines):
    return {line["key"] for line in lines if line.get("finish") == "memory"}


def test_a_cell_is_recorded_shown_and_displays_its_value(shell, client, capsys, read_lines):
    shell.user_ns["client"] = client
    cell = "%%record cell.jsonl\nfound = client.submit(abs, -42, key='of-42').result()\nfound"

    shell.run_cell(cell, store_history=True).raise_error()

    assert shell.user_ns["found"] == 42
    value, trace, timeline = capsys.readouterr().out.splitlines()
    assert value.endswith("42")
    assert (trace, timeline) == ("Trace('cell.jsonl')", "Timeline of cell.jsonl")
    lines = read_lines("cell.jsonl")
    assert keys_in(lines) == {"of-42"}
    assert lines[-1]["kind"] == "trailer"


@pytest.mark.exhaustive
def test_a_failing_cell_keeps_its_exception_and_the_trace(shell, client, capsys, read_lines):
    shell.user_ns["client"] = client
    cell = "%%record cell.jsonl\nclient.submit(abs, -1, key='early').result()\n1 / 0"

    result = shell.run_cell(cell, store_history=True)

    assert isinstance(result.error_in_exec, ZeroDivisionError)
    out = capsys.readouterr().out
    assert out.index("Trace('cell.jsonl')") < out.index("ZeroDivisionError")
    assert "1 / 0" in out, "the line of the cell is missing"
    assert "notebook.py" not in out, "the traceback has frames of the recorder"
    assert keys_in(read_lines("cell.jsonl")) == {"early"}


def test_calls_that_cannot_be_recorded_do_not_run_the_cell(shell):
    for words in ("two words", "nowhere/trace.jsonl"):
        result = shell.run_cell(f"%%record {words}\nran = True")
        assert result.error_in_exec is not None
    assert "ran" not in shell.user_ns


def test_a_cell_that_creates_its_client_prints_a_hint(shell, cluster, monkeypatch, capsys):
    monkeypatch.setattr(roast_recorder.notebook, "_show", print)
    shell.user_ns["address"] = cluster.scheduler_address

    shell.run_cell(
        "%%record cell.jsonl\nfrom distributed import Client\nclient = Client(address)"
    ).raise_error()
    shell.user_ns["client"].close()

    assert "create the client in an earlier cell" in capsys.readouterr().err
