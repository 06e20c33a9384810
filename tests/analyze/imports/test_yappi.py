"""Functions measured by Yappi: totals equal Yappi's own, and no file runs code."""

import marshal
import os
import pickle
import pickletools
import shutil
from pathlib import Path

import pytest
import yappi

from marks import exhaustive
from measured import yappi_files
from roast_analyze import Trace


@pytest.fixture(scope="module", params=["wall", exhaustive("cpu")])
def saved(request, tmp_path_factory):
    """Return the folder of the files that Yappi saved, its total, functions and clock."""
    folder = tmp_path_factory.mktemp("yappi")
    return folder, *yappi_files(folder, request.param), request.param


@pytest.fixture
def trace(stored):
    return stored()


@pytest.mark.parametrize("format_", ["ystat", exhaustive("pstat"), "callgrind"])
def test_totals_and_functions_are_yappis(saved, trace, rows_of, analyze, format_):
    folder, total, functions, clock = saved

    code, out, _ = analyze(
        "import", "yappi", folder / f"work.{format_}", "--into", trace, "--clock", clock
    )

    assert code == 0
    # callgrind has whole microseconds, and functions that were called but not measured.
    error = len(functions) * 1e-6 if format_ == "callgrind" else 1e-12
    query = "SELECT sum(self_seconds), any_value(clock) FROM yappi_functions"
    [(seconds, its_clock)] = rows_of(trace, query)
    assert (seconds, its_clock) == (pytest.approx(total, abs=error), clock)
    query = "SELECT sum(seconds) FROM profile_stacks WHERE profiler = 'yappi'"
    assert rows_of(trace, query) == [(pytest.approx(seconds, abs=1e-12),)]
    assert analyze("check", trace)[0] == 0
    if format_ != "callgrind":
        assert out == f"work.{format_}: imported {len(functions)} functions\n"
        columns = "name, filename, line_number, calls, actual_calls, self_seconds"
        query = f"SELECT {columns}, total_seconds FROM yappi_functions ORDER BY ALL"
        assert rows_of(trace, query) == sorted(functions)


def test_modules_in_the_working_directory_are_not_run(saved, trace, analyze, monkeypatch):
    (trace.parent / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(trace.parent)

    code, _, error = analyze("import", "yappi", saved[0] / "work.ystat", "--into", trace)

    assert (code, error) == (0, "")


def test_coroutines_and_threads(saved, trace, rows_of, analyze):
    for name in ("work.ystat", "without_flags.ystat"):
        analyze("import", "yappi", saved[0] / name, "--into", trace)

    # Coroutines are those with code flags.
    query = """SELECT name, list(is_coroutine ORDER BY log DESC) FROM yappi_functions
        WHERE name IN ('collect', 'values', 'first', 'thread_time') GROUP BY ALL ORDER BY 1"""
    assert rows_of(trace, query) == [
        ("collect", [True, None]),
        ("first", [False, None]),
        ("thread_time", [False, False]),
        ("values", [True, None]),
    ]
    # Functions have the thread that called them first.
    query = """SELECT DISTINCT name, thread, thread_name, tag FROM yappi_functions
        WHERE name IN ('collect', 'first') ORDER BY 1"""
    assert rows_of(trace, query) == [
        ("collect", 0, "_MainThread", 0),
        ("first", 1, "Thread", 0),
    ]


def test_stacks_are_built_from_direct_callers(saved, trace, analyze):
    path = saved[0] / "work.ystat"
    analyze("import", "yappi", path, "--into", trace)

    with Trace(trace) as opened:
        total = opened.flamegraph(profiler="yappi").nodes["total_seconds"][0]
        query = "SELECT frames, seconds FROM profile_stacks WHERE profiler = 'yappi'"
        stacks = opened.rows(query)
    seconds = {tuple(frame["name"] for frame in frames): time for frames, time in stacks}
    # Two threads run first, which calls second; the main thread calls second directly. The
    # time of leaf is divided as the time of second is, whatever the host was doing meanwhile.
    functions = {function.name: function for function in yappi.YFuncStats([str(path)])}
    second = functions["second"]
    [by_first] = [it.ttot for it in functions["first"].children if it.name == "second"]
    for callee in ("leaf", "fib"):
        under_first, under_second = (
            seconds["run", "first", "second", callee],
            seconds["second", callee],
        )
        share = under_first / (under_first + under_second)
        assert share == pytest.approx(by_first / second.ttot)
    assert seconds["run", "first", "leaf"] > 0
    assert total == pytest.approx(sum(seconds.values()))
    assert not [path for path in seconds if len(path) != len(set(path))]  # no recursion


@pytest.mark.exhaustive
def test_samples_of_dask_are_not_changed(tmp_path, saved, analyze, rows_of):
    sample = Path(__file__).parents[3] / "sample_traces" / "coffea.jsonl.zst"
    trace = shutil.copy(sample, tmp_path / "trace.jsonl.zst")

    def sampled():
        with Trace(trace) as opened:
            [sums] = opened.rows(
                "SELECT sum(seconds) FROM profile_stacks WHERE profiler = 'dask'"
            )
            return *sums, opened.flamegraph().stacks["seconds"].sum()

    before = sampled()

    analyze("import", "yappi", saved[0] / "work.ystat", "--into", trace, "--worker", "0")

    assert sampled() == before
    workers = "SELECT DISTINCT worker FROM yappi_functions"
    assert rows_of(trace, workers) == rows_of(
        trace, "SELECT worker FROM workers WHERE name = '0'"
    )


@pytest.mark.exhaustive
def test_the_report_offers_the_file_and_escapes_names(tmp_path, trace, analyze):
    name = "</script><b onload=alert(1)>\x1b[31m"
    path, page = tmp_path / "p.pstat", tmp_path / "report.html"
    path.write_bytes(marshal.dumps({("x.py", 1, name): (1, 1, 1.0, 1.0, {})}))
    assert analyze("import", "yappi", path, "--into", trace)[0] == 0

    assert analyze(trace, "--html", page)[0] == 0

    text = page.read_text()
    assert "<b onload" not in text
    assert '<option value="-2">Yappi: p.pstat</option>' in text
    assert "1\xa0Yappi file can be selected instead of a worker." in text


def test_a_clock_that_the_file_contradicts(tmp_path, trace, refused):
    yappi_files(tmp_path)
    words = ["yappi", tmp_path / "work.ystat", "--into", trace]

    error = refused(*words, "--clock", "wall")
    assert "was measured with the cpu clock: omit --clock wall" in error


# -- malicious files --------------------------------------------------------------------------


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


@pytest.mark.exhaustive
def test_malicious_files_are_refused(tmp_path, trace, refused):
    target, path = tmp_path / "run", tmp_path / "file"
    for name, content in HOSTILE.items():
        path.write_bytes(content(target))

        error = refused("yappi", path, "--into", trace)

        assert f"{str(path)!r} is not a file saved by Yappi, or is truncated: " in error, name
        assert not target.exists(), name
    pickle.loads(pickled(target))
    assert target.exists()  # the pickle works


@pytest.mark.exhaustive
def test_truncated_files_are_refused(tmp_path, trace, analyze, refused):
    yappi_files(tmp_path)
    for format_ in ("ystat", "pstat"):
        path = tmp_path / f"work.{format_}"
        data = path.read_bytes()
        for share in (0.1, 0.5, 0.9):
            path.write_bytes(data[: int(len(data) * share)])
            refused("yappi", path, "--into", trace)
    # callgrind has no end mark.
    path = tmp_path / "work.callgrind"
    path.write_bytes(path.read_bytes()[:-100])
    assert analyze("import", "yappi", path, "--into", trace)[0] == 0
    assert analyze("check", trace)[0] == 0


def test_yappi_pickles_the_allowed_classes_only(saved):
    content = (saved[0] / "work.ystat").read_bytes()
    operations = pickletools.genops(content)

    assert {argument for opcode, argument, _ in operations if opcode.name == "GLOBAL"} == {
        "yappi YFuncStats", "yappi YFuncStat", "yappi YChildFuncStats", "yappi YChildFuncStat"
    }  # fmt: skip
