"""Functions that Yappi measured: totals are Yappi's own, and no file of its runs code."""

import marshal
import os
import pickle
import pickletools
from pathlib import Path

import pytest

from measured import yappi_files
from roast_analyze import Trace

ALL = ("ystat", "pstat", "callgrind")


@pytest.fixture(scope="module", params=["cpu", "wall"])
def saved(request, tmp_path_factory):
    """What Yappi saved of a run, with what it says itself: total, functions, clock."""
    folder = tmp_path_factory.mktemp("yappi")
    return folder, *yappi_files(folder, request.param), request.param


@pytest.fixture
def trace(stored):
    return stored("trace.jsonl")


@pytest.mark.parametrize("format_", ALL)
def test_totals_are_yappis(saved, trace, ask, command, format_):
    folder, total, functions, clock = saved

    code, said, _ = command(
        "import", "yappi", folder / f"work.{format_}", "--into", trace, "--clock", clock
    )
    assert code == 0
    if format_ != "callgrind":  # it names what was called and not measured, too
        assert said == f"work.{format_}: imported {len(functions)} functions\n"

    whole = "SELECT sum(self_seconds), any_value(clock) FROM yappi_functions"
    stacks = "SELECT sum(seconds) FROM profile_stacks WHERE profiler = 'yappi'"
    # callgrind has whole microseconds.
    lost = len(functions) * 1e-6 if format_ == "callgrind" else 1e-12
    [(ours, said)] = ask(trace, whole)
    assert (ours, said) == (pytest.approx(total, abs=lost), clock)
    assert ask(trace, stacks) == [(pytest.approx(ours, abs=1e-12),)]
    assert command("check", trace)[0] == 0


@pytest.mark.parametrize("format_", ["ystat", "pstat"])
def test_each_function_is_a_row_as_yappi_has_it(saved, trace, ask, command, format_):
    folder, _, functions, _ = saved
    command("import", "yappi", folder / f"work.{format_}", "--into", trace)

    rows = ask(
        trace,
        "SELECT name, filename, line_number, calls, actual_calls, self_seconds, total_seconds "
        "FROM yappi_functions ORDER BY ALL",
    )

    assert rows == sorted(functions)


def test_a_stack_is_told_as_far_as_callers_are_known(saved, trace, command):
    folder, *_ = saved
    command("import", "yappi", folder / "work.ystat", "--into", trace)

    with Trace(trace) as opened:
        nodes = opened.flamegraph(profiler="yappi").nodes
    seconds = {
        tuple(frame["name"] for frame in row["frames"]): row["seconds"]
        for row in opened_stacks(trace)
    }
    # Two threads: first and what it calls; and second by itself. leaf is called by both.
    assert seconds["run", "first", "leaf"] > 0
    assert seconds["run", "first", "second", "leaf"] > seconds["second", "leaf"] > 0
    assert seconds["run", "first", "second", "fib"] > 0
    assert nodes.row(0, named=True)["total_seconds"] == pytest.approx(sum(seconds.values()))
    assert not [path for path in seconds if len(path) != len(set(path))]  # no recursion


def opened_stacks(path):
    with Trace(path) as opened:
        stacks = opened.frame("profile_stacks")
        return [row for row in stacks.iter_rows(named=True) if row["profiler"] == "yappi"]


def test_what_dask_sampled_is_told_apart(tmp_path, saved, command, ask):
    sample = Path(__file__).parents[3] / "sample_traces" / "coffea.jsonl.zst"
    trace = tmp_path / "trace.jsonl.zst"
    trace.write_bytes(sample.read_bytes())
    whole = "SELECT sum(seconds) FROM profile_stacks WHERE profiler = 'dask'"
    before = ask(trace, whole)
    with Trace(trace) as opened:
        flame = opened.flamegraph().stacks["seconds"].sum()

    command("import", "yappi", saved[0] / "work.ystat", "--into", trace, "--worker", "0")

    assert ask(trace, whole) == before
    with Trace(trace) as opened:
        assert opened.flamegraph().stacks["seconds"].sum() == flame
    [(worker, address)] = ask(
        trace,
        "SELECT DISTINCT f.worker, w.worker FROM yappi_functions f, workers w "
        "WHERE w.name = '0'",
    )
    assert worker == address


def test_the_report_has_it_to_choose(tmp_path, saved, trace, command):
    command("import", "yappi", saved[0] / "work.ystat", "--into", trace)
    page = tmp_path / "report.html"

    assert command(trace, "--html", page)[0] == 0

    text = page.read_text()
    assert '<option value="-2">Yappi: work.ystat</option>' in text
    assert "What Yappi measured, in 1\xa0file, is chosen in the place of workers" in text


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--worker", "nobody"], "unknown worker 'nobody': the trace has none"),
        (["--clock", "wall"], "was measured with the cpu clock: omit --clock wall"),
    ],
)
def test_invalid_options(tmp_path, trace, command, words, error):
    yappi_files(tmp_path)

    code, _, said = command("import", "yappi", tmp_path / "work.ystat", "--into", trace, *words)

    assert code == 2
    assert error in said


# -- files that do harm ----------------------------------------------------------------------


class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def pickled(path):
    return pickle.dumps(([Exploit(path)], "cpu"), 2)


def marshalled(value):
    return lambda _: marshal.dumps(value)


CODE = compile("1 / 0", "x", "exec")
F = ("f", 1, "g")

HOSTILE = {
    "a pickle that runs code": pickled,
    "a pickle of other things": lambda _: pickle.dumps([1, 2], 2),
    "a pickle of numbers": lambda _: pickle.dumps((1, "cpu"), 2),
    "a pickle that was cut": lambda _: b"\x80\x02cyappi\nYFuncStats\n",
    "a pickle of builtins": lambda _: b"\x80\x02cbuiltins\neval\n(X\x03\0\0\x001/0tR.",
    "a pickle that asks for all memory": lambda _: b"\x80\x04Nr\xff\xff\xff\xff.",
    "marshal of a list": marshalled([1]),
    "marshal of code": marshalled({F: (1, 1, CODE, 1, {})}),
    "marshal without numbers": marshalled({F: (1,)}),
    "marshal of endless time": marshalled({F: (1, 1, float("inf"), 1.0, {})}),
    "marshal of a text for a number": marshalled({F: ("1", 1, 1.0, 1.0, {})}),
    "marshal of unknown callers": marshalled({F: (1, 1, 1.0, 1.0, 7)}),
    "marshal that was cut": lambda _: marshal.dumps({F: (1, 1, 1.0, 1.0, {})})[:-4],
    "callgrind without functions": lambda _: b"version: 1\ncreator: yappi\n",
    "callgrind of an unknown function": lambda _: b"version: 1\nfn=(7)\n1 5\n",
    "callgrind with times of nothing": lambda _: b"version: 1\nfn=(1) f x.py:1\n1 5\n",
    "text": lambda _: b"hello\n",
    "nothing": lambda _: b"",
    "noise": lambda _: bytes(range(256)) * 40,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_clear_line_and_nothing_else(tmp_path, trace, command, name):
    target = tmp_path / "run"
    path = tmp_path / "file"
    path.write_bytes(HOSTILE[name](target))
    before = trace.read_bytes()

    code, said, error = command("import", "yappi", path, "--into", trace)

    assert (code, said, error.count("\n")) == (2, "", 1)
    assert f"{str(path)!r} is not a file saved by Yappi, or is truncated: " in error
    assert "Traceback" not in error
    assert trace.read_bytes() == before
    assert not target.exists()


def test_the_exploit_would_have_worked(tmp_path):
    pickle.loads(pickled(tmp_path / "run"))

    assert (tmp_path / "run").exists()


@pytest.mark.parametrize("format_", ALL)
def test_a_truncated_file_does_not_change_the_trace(tmp_path, trace, command, format_):
    yappi_files(tmp_path)
    path = tmp_path / f"work.{format_}"
    data = path.read_bytes()
    before = trace.read_bytes()
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(data[: int(len(data) * share)])

        code, _, error = command("import", "yappi", path, "--into", trace)

        if format_ == "callgrind":  # it has no end of its own
            assert command("check", trace)[0] == 0
        else:
            assert (code, error.count("\n"), trace.read_bytes()) == (2, 1, before)


def test_hostile_names_stay_text(tmp_path, trace, command):
    name = "</script><b onload=alert(1)>\x1b[31m"
    path = tmp_path / "p.pstat"
    path.write_bytes(marshal.dumps({("x.py", 1, name): (1, 1, 1.0, 1.0, {})}))
    assert command("import", "yappi", path, "--into", trace)[0] == 0

    page = tmp_path / "report.html"
    assert command(trace, "--html", page)[0] == 0
    assert "<b onload" not in page.read_text()


def test_what_yappi_pickles_is_what_is_allowed(tmp_path):
    """Were Yappi to save other classes, this says so before a user does."""
    yappi_files(tmp_path)
    asked = {
        argument
        for opcode, argument, _ in pickletools.genops((tmp_path / "work.ystat").read_bytes())
        if opcode.name == "GLOBAL"
    }

    assert asked == {
        "yappi YFuncStats", "yappi YFuncStat", "yappi YChildFuncStats", "yappi YChildFuncStat"
    }  # fmt: skip
