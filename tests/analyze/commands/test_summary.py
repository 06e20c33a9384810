"""The summary and the comparison in the terminal, and writing the report."""

import re
import webbrowser
from pathlib import Path

import pytest

from roast_analyze.cli import main


@pytest.fixture
def summarize(capsys, write_trace, monkeypatch):
    """Return the summary of a trace at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def summarize(*records, **options) -> str:
        path = write_trace(*records, **options)
        capsys.readouterr()
        assert main([str(path)]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        assert max(map(len, captured.out.splitlines())) <= 80
        return captured.out

    return summarize


def section(text: str, title: str) -> list[list[str]]:
    """Return the cells of a section without its heading."""
    [found] = [part for part in text.split("\n\n") if part.startswith(title)]
    return [re.split(r"  +", line.strip()) for line in found.splitlines()[3:]]


def test_a_run_of_chunks_with_failures(summarize, worker, gone, task, run, move, chunk):
    def part(key, dataset, filename):
        entries = {"entry_start": 0, "entry_stop": 1000}
        return chunk(key, dataset=dataset, filename=filename, treename="Events", **entries)

    text = summarize(
        worker("tcp://10.0.0.1:1", nthreads=2, name="one"),
        worker("tcp://10.0.0.2:2", nthreads=2, name="two"),
        *(task(key) for key in ("Proc-a", "Proc-b", "sum-c")),
        part("Proc-a", "DY", "root://site//store/dy.root"),
        part("Proc-b", "QCD", "qcd.root"),
        *run("Proc-a", 10.0, 40.0, worker="tcp://10.0.0.1:1"),
        *run("sum-c", 40.0, 42.0, worker="tcp://10.0.0.1:1"),
        move(10.0, "Proc-b", "waiting>processing", worker="tcp://10.0.0.2:2"),
        move(30.0, "Proc-b", "processing>released", "handle-worker-cleanup-30.0"),
        gone("tcp://10.0.0.2:2", 30.0, "handle-worker-cleanup-30.0"),
        move(31.0, "Proc-b", "waiting>processing", worker="tcp://10.0.0.1:1"),
        move(33.0, "Proc-b", "processing>erred", "task-erred-33.0",
             worker="tcp://10.0.0.1:1", exception="OSError('unreadable')"),
        stop_t=100.0,
    )  # fmt: skip

    head = text.split("\n\n")[0]
    assert "1 min 40 s from 1970-01-01 00:00:00 (UTC)" in head
    assert "dask 2026.8.0, Python 3.11.7" in head
    assert "Complete  yes" in head
    assert "2, at most 2 at once with 4 threads" in head
    assert "32 s in 4 min 20 s of core time: 12 %" in head
    assert "3, 4 attempts: 2 memory, 1 erred, 1 lost" in head
    assert "1 done in 3 attempts, 2 failed\nEvents    1,000, 33.3 events/s over 30 s" in head
    assert section(text, "Tasks by prefix") == [
        ["Proc", "3", "1", "1", "1", "30 s", "30 s", "30 s"],
        ["sum", "1", "1", "0", "0", "2 s", "2 s", "2 s"],
    ]
    assert section(text, "Datasets")[0] == ["DY", "1", "1", "0", "1,000", "30 s", "33.3"]
    assert section(text, "Workers") == [
        ["one", "tcp://10.0.0.1:1", "2", "3", "32 s", "16 %", "–", "–"],
        ["two", "tcp://10.0.0.2:2", "2", "1", "0 s", "0 %", "–", "30 s"],
    ]
    assert section(text, "Slowest attempts")[0] == [
        "30 s", "memory", "tcp://10.0.0.1:1", "Proc-a",
    ]  # fmt: skip
    assert section(text, "Slowest files")[0][-1] == "root://site//store/dy.root"
    failures = "\n".join(map(" ".join, section(text, "Failures")))
    assert "attempt lost tcp://10.0.0.2:2 Proc-b: its worker went" in failures
    assert "worker lost tcp://10.0.0.2:2 handle-worker-cleanup" in failures
    assert "task erred tcp://10.0.0.1:1 Proc-b: OSError('unreadable')" in failures


def test_a_run_of_measured_chunks(summarize, worker, task, run, chunk):
    slow = {"2.root": 3.0, "w1": 2.0}

    def made(number, file, name, events, **fields):
        key, start = f"Proc-{number}", 10.0 * number
        seconds = (0.5 + 1e-3 * events) * slow.get(file, 1.0) * slow.get(name, 1.0)
        entries = {"entry_start": 0, "entry_stop": events}
        about = {"dataset": "DY", "filename": file, **entries}
        times = {"start_t": start, "stop_t": start + seconds}
        x = {"branch": "x", "compressed_bytes": 1024, "read_seconds": 0.25}
        named = {"kind": "section", "t": start, "key": key, "run_id": number, "name": "jets"}
        return [
            task(key),
            chunk(key, **about),
            *run(key, start, start + seconds, worker=name, run_id=number),
            chunk(key, run_id=number, branches=[x], **about, **times, **fields),
            {**named, "start_t": start, "stop_t": start + 0.5},
        ]

    files = [f"{i}.root" for i in range(5)]
    parts = [(f, w) for f in files for w in ("w0", "w1", "w2") for _ in range(3)]
    text = summarize(
        *map(worker, ("w0", "w1", "w2")),
        *(r for i, (f, w) in enumerate(parts) for r in made(i, f, w, 1000 + 10 * i)),
        *made(97, "1.root", "w0", 1000, exception="OSError()"),
        *made(98, "1.root", "w0", 1000, from_checkpoint=True),
        task("reduce-1", dependencies=["Proc-0"]),
        *run("reduce-1", 990.0, 991.0),
        stop_t=1000.0,
    ).replace("\N{NO-BREAK SPACE}", " ")

    head = text.split("\n\n")[0]
    assert "Chunks    46 done in 47 attempts, 1 skipped, 1 from checkpoints" in head
    assert "Merging   1 s, <1 % of the time of chunks" in head
    [cost] = section(text, "Chunk cost")[:1]
    assert cost[0] == "DY"
    assert [row[1:] for row in section(text, "Slow files and workers")] == [
        ["file", "9", "2.root"],
        ["worker", "15", "w1"],
    ]
    assert section(text, "Branches by read time") == [
        ["11.8 s", "100 %", "47 KiB", "100 %", "x"],
    ]  # fmt: skip
    assert section(text, "Sections")[0][2:] == ["47", "500 ms", "DY", "jets"]


def test_a_run_without_a_cluster(summarize, worker, chunk):
    def made(key, run_id, start, **fields):
        about = {"dataset": "DY", "filename": f"{key}.root", "worker": "pid:1"}
        entries = {"entry_start": 0, "entry_stop": 1000, "run_id": run_id}
        return chunk(key, **about, **entries, start_t=start, stop_t=start + 2.0, **fields)

    text = summarize(
        worker("pid:1"),
        made("a", 1, 1.0, exception="OSError('x')"),
        made("a", 2, 4.0, events=1000),
        made("b", 3, 6.0, events=1000),
    ).replace("\N{NO-BREAK SPACE}", " ")

    head = text.split("\n\n")[0]
    assert "Tasks" not in head
    assert "Compute   6 s in 1 min 40 s of core time: 6 %" in head
    assert "Chunks    2 done in 3 attempts, 1 failed" in head
    assert "Events    2,000, 286 events/s over 7 s" in head
    assert section(text, "Workers") == [["pid:1", "pid:1", "1", "0", "6 s", "6 %", "–"]]
    assert section(text, "Failures") == [
        ["3 s", "attempt retried", "pid:1", "a: OSError('x')"]
    ]  # fmt: skip


def titles(text: str) -> list[str]:
    return [part.splitlines()[0] for part in text.strip().split("\n\n")[1:]]


def test_a_trace_of_nothing(summarize):
    assert titles(summarize()) == []


def test_one_task_without_workers_and_chunks(summarize, task, run):
    text = summarize(task("a"), *run("a", 1.0, 2.0))

    assert titles(text) == [
        "Tasks by prefix",
        "Workers",
        "Slowest attempts",
    ]


def test_only_failures(summarize, move):
    text = summarize(
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(2.0, "a", "processing>erred", "task-erred-2.0", exception="E()"),
    )

    assert "1 erred" in text
    assert section(text, "Failures") == [["2 s", "task erred", "w1", "a: E()"]]


@pytest.mark.parametrize(
    ("records", "missing"), [(3, "3 records missing"), (1, "1 record missing")]
)
def test_losses_come_first(summarize, task, records, missing):
    text = summarize(
        task("a"), {"kind": "loss", "t": 1.0, "reason": "late", "records": records}
    )

    top = text.split("\n\n")[0].replace("\N{NO-BREAK SPACE}", " ")
    assert f"no, at least {missing}, see below" in top
    assert titles(text)[0] == "Losses"
    assert section(text, "Losses") == [["late", str(records)]]


def test_omitted_rows_are_counted(summarize, task):
    text = summarize(*(task(f"p{i}-1") for i in range(20)))

    assert "… and 8 more: the view prefixes" in text


def test_long_names_are_wrapped(summarize, task, run):
    key = "('read-parquet-and-apply-something-with-a-long-name-0123456789abcdef', 12, 3456)"

    text = summarize(task(key), *run(key, 1.0, 2.0, worker="tcp://192.168.100.200:43210"))

    [part] = [part for part in text.split("\n\n") if part.startswith("Slowest attempts")]
    head, _, *lines = part.splitlines()[1:]
    shown = "".join(line[head.index("key") :] for line in lines)
    assert shown.replace(" ", "") == key.replace(" ", "")


HOSTILE = [
    "\x1b[31mred\x1b]0;title\x07",
    "[bold red]markup[/bold red] [link=https://example.org]x[/link] [/] :smile:",
    "a\nb\tc\r\x08d\u202egnp.exe \ud800",
]


def test_text_of_a_trace_cannot_control_the_terminal(summarize, worker, task, run, move, chunk):
    for hostile in HOSTILE:
        text = summarize(
            worker(hostile, name=hostile),
            task("a", prefix=hostile),
            chunk("a", dataset=hostile, filename=hostile, entry_start=0, entry_stop=10),
            *run("a", 1.0, 2.0, worker=hostile),
            move(3.0, hostile, "waiting>processing", worker=hostile),
            move(4.0, hostile, "processing>erred", "task-erred-4.0", exception=hostile),
            {"kind": "loss", "t": 1.0, "reason": hostile, "detail": hostile},
        )
        assert {c for c in text if ord(c) < 32 or 127 <= ord(c) < 160} == {"\n"}
        assert "\u202e" not in text
        if "markup" in hostile:
            assert "[bold red]" in text
            assert ":smile:" in "".join(text.split())


# -- the report --------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["{trace}", "--html"], ["--html", "{trace}"]])
def test_the_report_is_written_next_to_the_trace(capsys, write_trace, task, words):
    path = write_trace(task("a"), name="run.jsonl")

    assert main([word.format(trace=path) for word in words]) == 0
    report = path.with_name("run.html")
    assert capsys.readouterr().out == f"report: {report}\n"
    assert "<html" in report.read_text()[:1000]


def test_title_and_path_of_the_report(tmp_path, write_trace):
    target = tmp_path / "my page.html"

    main([str(write_trace()), "--html", str(target), "--title", "A <good> run"])

    assert "A &lt;good&gt; run" in target.read_text()


def test_the_summary_of_a_time_range(capsys, write_trace, worker, task, run, sample):
    path = write_trace(
        worker("w1"), task("a-1"), task("b-1"), *run("a-1", 10.0, 30.0),
        *run("b-1", 50.0, 60.0), sample(5.0), stop_t=1500.0,
    )  # fmt: skip

    # A time before the end looks like an option.
    assert main([str(path), "--from", "20", "--to", "-24m"]) == 0

    text = " ".join(capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ").split())
    assert text.startswith("Trace trace.jsonl Only time range 20 s to 60 s of a run of 25 min.")
    assert "Recorded 40 s from 1970-01-01 00:00:20 (UTC)" in text
    assert "Compute 20 s in 40 s of core time: 50 %" in text
    assert "2 attempts: 1 memory, 1 unfinished" in text


def test_the_report_never_overwrites_a_trace(capsys, write_trace):
    """In `a --html b` both may be meant as traces."""
    a = write_trace(name="a.jsonl", trace_id="A")
    b = write_trace(name="b.jsonl", trace_id="B")
    before = b.read_bytes()

    assert main([str(a), "--html", str(b)]) == 2

    assert "is named like a trace: put the traces before --html FILE" in capsys.readouterr().err
    assert b.read_bytes() == before


# -- in the browser ----------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch):
    """Return the list of the addresses that are opened."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda url: addresses.append(url) or True)
    return addresses


def test_open_writes_the_report_and_opens_it(capsys, write_trace, shown):
    path = write_trace(name="my run.jsonl")

    assert main([str(path), "--open", "--title", "Mine"]) == 0

    report = path.with_name("my run.html")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (f"report: {report}\n", "")
    assert shown == [report.as_uri()]
    assert "Mine" in report.read_text()


@pytest.mark.parametrize("trouble", [False, webbrowser.Error("none"), OSError("none")])
def test_without_a_browser_the_address_is_printed(capsys, monkeypatch, write_trace, trouble):
    def fail(_url):
        if isinstance(trouble, Exception):
            raise trouble
        return trouble

    monkeypatch.setattr(webbrowser, "open", fail)
    path = write_trace(name="run.jsonl")

    assert main([str(path), "--open"]) == 0

    report = path.with_name("run.html")
    captured = capsys.readouterr()
    assert captured.out == f"report: {report}\n"
    assert captured.err == (
        f"roast-analyze: no browser found: open {report.as_uri()} in yours\n"
    )


# -- several traces ----------------------------------------------------------------------


@pytest.fixture
def several(write_trace, worker, task, run, chunk):
    """Return three traces: the second took twice the time, the third has chunks."""

    def trace(name, *records, stop_t):
        return str(
            write_trace(
                worker("w1"), *records, name=f"{name}.jsonl", trace_id=name, stop_t=stop_t
            )
        )

    entries = {"filename": "f", "entry_start": 0, "entry_stop": 12_000}
    return [
        trace("before", task("x-1"), *run("x-1", 1.0, 3.0), stop_t=10.0),
        trace("after", task("x-1"), *run("x-1", 1.0, 7.0), stop_t=20.0),
        trace("chunky", task("P-1"), chunk("P-1", **entries), *run("P-1", 1.0, 3.0),
              stop_t=5.0),
    ]  # fmt: skip


def test_several_traces_are_compared(capsys, monkeypatch, several):
    monkeypatch.setenv("COLUMNS", "80")

    assert main(several) == 0

    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith(
        "Of 3 traces, after took the longest, 20 s: 4 times as long as chunky (5 s)."
    )
    assert section(text, "Time") == [
        ["before", "10 s", "1", "10 s", "2 s", "0 s", "8 s"],
        ["after", "20 s", "1", "20 s", "6 s", "0 s", "14 s"],
        ["×2", "×1", "×2", "×3", "×1.75"],
        ["chunky", "5 s", "1", "5 s", "2 s", "0 s", "3 s"],
        ["×0.5", "×1", "×0.5", "×1", "×0.375"],
    ]
    assert section(text, "Work") == [
        ["before", "1", "–", "–", "–", "–"],
        ["after", "1", "–", "–", "–", "–"],
        ["×1"],
        ["chunky", "1", "1", "12,000", "6,000", "–"],
        ["×1"],
    ]
    assert [row[-1] for row in section(text, "Memory and failures")] == ["complete"] * 3


def test_a_folder_with_several_traces_is_compared(capsys, several):
    assert main([str(Path(several[0]).parent)]) == 0

    assert [row[0] for row in section(capsys.readouterr().out, "Memory")] == [
        "after", "before", "chunky",
    ]  # fmt: skip


def test_segments_of_one_trace_are_one_trace(capsys, write_trace, task):
    parts = [
        str(write_trace(task(f"a-{n}"), name=f"part-{n}.jsonl", segment=n)) for n in (1, 2)
    ]

    assert main(parts) == 0

    text = capsys.readouterr().out
    head = [line.split(None, 1) for line in text.split("\n\n")[0].splitlines()]
    assert ["Trace", "part-1.jsonl"] in head
    assert ["Tasks", "2, 0 attempts"] in head
    assert ["Complete", "yes"] in head


@pytest.mark.parametrize(
    ("names", "report"), [(2, "before-and-after.html"), (3, "before-and-2-more.html")]
)
def test_the_comparison_is_written_next_to_the_first_trace(
    capsys, several, tmp_path, names, report
):
    assert main([*several[:names], "--html", "--title", "A <good> week"]) == 0

    assert capsys.readouterr().out == f"report: {tmp_path / report}\n"
    assert "A &lt;good&gt; week" in (tmp_path / report).read_text()


def test_an_invalid_one_of_several_traces_is_named(capsys, tmp_path, several):
    (tmp_path / "notes.jsonl").write_text("hello\n")

    assert main([*several, str(tmp_path / "notes.jsonl")]) == 2
    assert "notes.jsonl" in capsys.readouterr().err
