"""The summary and the comparison in the terminal, and writing the report."""

import json
import re
import webbrowser
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest

from marks import exhaustive
from roast_analyze import report
from roast_analyze.commands import summary_tables, terminal
from roast_analyze.report.run import SURPLUS

SAMPLES = Path(__file__).parents[3] / "sample_traces"


@pytest.fixture
def summarize(analyze, write_trace, monkeypatch):
    """Return the summary of a trace at 80 columns, with plain spaces in numbers."""
    monkeypatch.setenv("COLUMNS", "80")

    def summarize(*records, words=("--all",), **options) -> str:
        code, text, err = analyze(write_trace(*records, **options), *words)
        assert (code, err) == (0, "")
        assert max(map(len, text.splitlines())) <= 80
        return text.replace("\N{NO-BREAK SPACE}", " ")

    return summarize


def section(text: str, title: str) -> list[list[str]]:
    """Return the cells of a section without its heading."""
    [found] = [part for part in text.split("\n\n") if part.startswith(title)]
    return [re.split(r"  +", line.strip()) for line in found.splitlines()[3:]]


def titles(text: str) -> list[str]:
    return [part.splitlines()[0] for part in text.strip().split("\n\n")[1:]]


def test_a_run_of_chunks_with_failures(summarize, worker, gone, task, run, chunk):
    one, two = "tcp://10.0.0.1:1", "tcp://10.0.0.2:2"
    place = {"treename": "Events", "entry_start": 0, "entry_stop": 1000}

    text = summarize(
        worker(one, nthreads=2, name="one"),
        worker(two, nthreads=2, name="two"),
        *(task(key) for key in ("Proc-a", "Proc-b", "sum-c")),
        chunk("Proc-a", dataset="DY", filename="root://site//store/dy.root", **place),
        chunk("Proc-b", dataset="QCD", filename="qcd.root", **place),
        *run("Proc-a", 10.0, 40.0, one),
        *run("sum-c", 40.0, 42.0, one),
        *run("Proc-b", 10.0, 30.0, two, "lost"),
        gone(two, 30.0, "handle-worker-cleanup-30.0"),
        *run("Proc-b", 31.0, 33.0, one, "erred", exception="OSError('unreadable')"),
    )

    head = text.split("\n\n")[0]
    assert "1 min 40 s from 1970-01-01 00:00:00 (UTC)" in head
    assert "dask 2026.8.0, Python 3.11.7" in head
    assert "Complete  yes" in head
    assert "2, at most 2 at once with 4 threads" in head
    # The attempts without a reported time took 22 s.
    assert ("54 s in 4 min 20 s of core time: 21 %, 12 % for results that were kept\n") in head
    assert "3, 4 attempts: 2 memory, 1 erred, 1 lost" in head
    assert "1 done in 3 attempts, 2 failed\nEvents    1,000, 33.3 events/s over 30 s" in head
    assert section(text, "Tasks by prefix") == [
        ["Proc", "chunk", "3", "1", "1", "1", "30 s", "30 s", "30 s"],
        ["sum", "1", "1", "0", "0", "2 s", "2 s", "2 s"],
    ]
    assert section(text, "Datasets")[0] == ["DY", "1", "1", "0", "1,000", "30 s", "33.3"]
    assert section(text, "Workers") == [
        ["one", "2", "3", "32 s", "16 %", "–", "–"],
        ["two", "2", "1", "0 s", "0 %", "–", "30 s"],
    ]
    assert section(text, "Slowest attempts")[:2] == [
        ["30 s", "33.3", "memory", "one", "DY dy.root 0–1,000"],
        ["2 s", "–", "memory", "one", "sum-c"],
    ]
    assert section(text, "Slowest files")[0][-1] == "root://site//store/dy.root"
    failures = "\n".join(map(" ".join, section(text, "Failures")))
    assert "attempt lost two QCD qcd.root 0–1,000: its worker went" in failures
    assert "worker lost two handle-worker-cleanup" in failures
    assert "task erred one QCD qcd.root 0–1,000: OSError('unreadable')" in failures


@pytest.mark.exhaustive
def test_the_end_of_a_recording_whose_client_was_killed(summarize, task):
    end = {
        "kind": "trailer", "t": 20.0, "segment": 1, "records_by_kind": {"task": 1},
        "dropped_by_kind": {}, "reason": "the client disconnected",
    }  # fmt: skip

    text = summarize(task("a-1"), end)

    assert "Ended     The recording ended because the client disconnected." in text
    assert "Ended" not in summarize(task("a-1"))


@pytest.mark.exhaustive
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
    )

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


@pytest.mark.exhaustive
def test_kinds_of_work(summarize, worker, task, run):
    frames = [
        {"name": "work", "filename": "/home/ana/script.py", "line_number": 7},
        {"name": "get", "filename": "/usr/lib/python3.11/queue.py", "line_number": 1},
    ]
    cycle = {"start_t": 10.0, "stop_t": 12.0, "nodes": [0, 1, 2], "counts": [200, 150, 0]}

    tree = {
        "frames": frames, "parents": [None, 0, 1], "node_frames": [None, 0, 1],
        "line_numbers": [None, 8, 1], "slices": [cycle | {"innermost": [0, 50, 150]}],
    }  # fmt: skip
    profile = {
        "kind": "profile", "t": 12.0, "worker": "w1", "server_id": "id-w1-0.0",
        "prefix": "a", "start_t": 10.0, "stop_t": 12.0, "interval_seconds": 0.01, "tree": tree,
    }  # fmt: skip

    attempt = worker("w1"), task("a-1"), *run("a-1", 10.0, 12.0)
    assert section(summarize(*attempt, profile), "Inside tasks") == [
        ["queue or event", "work (script.py:7)", "1.5 s", "75 %"],
        ["Python loops", "work (script.py:7)", "500 ms", "25 %"],
    ]
    assert "Inside tasks" not in summarize(*attempt)


@pytest.mark.exhaustive
def test_activities_and_spans_of_a_task_with_a_long_key(summarize, worker, task, run):
    key = "('read-parquet-and-apply-something-with-a-long-name-0123456789abcdef', 12, 3456)"
    address = "tcp://192.168.100.200:43210"
    metric = {"kind": "fine_metric", "t": 40.0, "worker": address, "span_id": "S"}
    metric["prefix"] = "a"
    span = {"kind": "span", "t": 10.0, "span_id": "S", "span_name": ["fits", "2018"]}

    text = summarize(
        worker(address, nthreads=1),
        span,
        task(key, t=10.0, prefix="a", span_id="S"),
        *run(key, 20.0, 30.0, worker=address),
        {**metric, "context": "execute", "activity": "cpu", "unit": "seconds", "delta": 15.0},
        {**metric, "context": "execute", "activity": "cpu", "unit": "bytes", "delta": 9.0},
        {**metric, "context": "get-data", "activity": "net", "unit": "seconds", "delta": 2.0},
    )

    assert section(text, "Activities") == [
        ["cpu", "execute", "15 s", "15 %"],
        ["net", "get-data", "2 s", "–"],
    ]
    assert section(text, "Spans (shares of the thread time)") == [
        ["fits / 2018", "1", "20 s", "10 s", "50 %", "25 %"],
    ]  # fmt: skip
    # The key is wrapped.
    [part] = [part for part in text.split("\n\n") if part.startswith("Slowest attempts")]
    head, _, *lines = part.splitlines()[1:]
    shown = "".join(line[head.index("chunk or task") :] for line in lines)
    assert shown.replace(" ", "") == key.replace(" ", "")


@pytest.mark.exhaustive
def test_outcomes_of_prefixes_are_shown_if_any_attempt_had_them(summarize, task, run):
    lost, done = run("a-1", 1.0, 2.0, outcome="lost"), run("b-1", 1.0, 2.0)

    text = summarize(task("a-1"), task("b-1"), *lost, *done)

    assert "attempts  done  lost  compute" in text
    assert section(text, "Tasks by prefix") == [
        ["b", "1", "1", "0", "1 s", "1 s", "1 s"],
        ["a", "1", "0", "1", "–", "–", "–"],
    ]


@pytest.mark.exhaustive
def test_spans_of_dask_are_left_out(summarize, worker, task, run):
    span = {"kind": "span", "t": 1.0, "span_id": "S", "span_name": ["default"]}
    submitted = task("a-1", t=1.0, prefix="a", span_id="S")

    assert "Spans" not in summarize(worker("w1"), span, submitted, *run("a-1", 1.0, 2.0))


@pytest.mark.exhaustive
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
    )

    head = text.split("\n\n")[0]
    assert "Tasks" not in head
    assert "Compute   6 s in 1 min 40 s of core time: 6 %" in head
    assert "Chunks    2 done in 3 attempts, 1 failed" in head
    assert "Events    2,000, 286 events/s over 7 s" in head
    assert section(text, "Workers") == [["pid:1", "1", "–", "6 s", "6 %", "–"]]
    assert section(text, "Failures") == [
        ["3 s", "attempt retried", "pid:1", "DY a.root 0–1,000: OSError('x')"]
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_failures_and_tasks_that_were_never_attempted_are_counted(
    summarize, worker, task, run, move
):
    """Two tasks fail with the same error, and a third one, which `fit` needs, with another."""
    text = summarize(
        worker("w1"),
        *(task(key) for key in ("a", "b", "c", "fit-1", "plot-1")),
        *run("a", 1.0, 2.0, outcome="retried", exception="OSError('no entry 10')"),
        *run("b", 2.0, 3.0, outcome="retried", exception="OSError('no entry 20')"),
        *run("a", 3.0, 4.0, outcome="retried", exception="OSError('no entry 10')"),
        *run("c", 4.0, 5.0, outcome="erred", exception="KeyError('Jet')"),
        move(4.0, "fit-1", "released>waiting"),
        move(5.0, "fit-1", "waiting>erred", "task-erred-2.0"),
    )

    assert section(text, "Failures") == [
        ["2 s", "3", "attempt retried", "w1", "a and 1 more: OSError('no entry 10')"],
        ["5 s", "1", "task erred", "w1", "c: KeyError('Jet')"],
    ]
    assert "2 never attempted: 1 because a dependency failed, 1 not needed" in text
    assert "Failed    1 task of c: KeyError\n" in text


@pytest.mark.exhaustive
def test_only_tables_with_rows_are_shown(summarize, task, run):
    assert titles(summarize()) == []
    assert titles(summarize(task("a"), *run("a", 1.0, 2.0))) == [
        "Tasks by prefix", "Workers", "Slowest attempts",
    ]  # fmt: skip
    text = summarize(*run("a", 1.0, 2.0, outcome="erred", exception="E()"))
    assert "1 erred" in text
    assert section(text, "Failures") == [["2 s", "task erred", "w1", "a: E()"]]
    text = summarize(*(task(f"p{i}-1") for i in range(20)))
    assert "… and 8 more: the view prefixes" in text
    # Losses come first.
    for records, missing in [(3, "3 records missing"), (1, "1 record missing")]:
        text = summarize({"kind": "loss", "t": 1.0, "reason": "late", "records": records})
        assert f"no, at least {missing}, see below" in text.split("\n\n")[0]
        assert titles(text)[0] == "Losses"
        assert section(text, "Losses") == [["late", str(records)]]
    surplus = {"kind": "loss", "t": 1.0, "reason": SURPLUS, "records": 3}
    assert "Complete  no, 3 more records than were written, see below" in summarize(surplus)


def test_the_short_summary(summarize, worker, task, run, chunk):
    """It has the most important tables, as far as they fit into 35 lines."""
    records = [worker("w1")]
    for number in range(12):
        about = {"dataset": f"D{number:02}", "filename": "a.root", "entry_start": 0}
        key, branch = f"P-{number}", {"branch": f"b{number}", "compressed_bytes": 10}
        chunk_ = chunk(key, **about, entry_stop=10, run_id=number, branches=[branch])
        records += [task(key), chunk_, *run(key, 5.0 * number, 5.0 * number + 5, run_id=number)]

    complete = summarize(*records)
    short = summarize(*records, words=())

    datasets = [row[0] for row in section(short, "Datasets (events/s per thread), 4 of 12")]
    assert datasets == ["D00", "D01", "D02", "D03"]
    assert len(section(short, "Branches by read time, 2 of 12")) == 2
    left_out = {"Versions", "Workers (", "Slowest attempts", "Slowest files"}
    assert short.endswith("tables of workers, slowest attempts and others.\n")
    assert len(short.splitlines()) <= 35 < len(complete.splitlines())
    assert not any(name in short for name in left_out)


@pytest.mark.exhaustive
def test_losses_and_datasets_are_shown_even_if_they_do_not_fit(
    summarize, monkeypatch, worker, task, run, chunk
):
    monkeypatch.setattr(summary_tables, "_SHORT_LINES", 1)
    place = {"dataset": "DY", "filename": "a.root", "entry_start": 0, "entry_stop": 10}
    loss = {"kind": "loss", "t": 1.0, "reason": "late", "records": 3}

    text = summarize(
        *(worker("w1"), task("P-1"), chunk("P-1", **place), *run("P-1", 1.0, 9.0)), loss,
        words=(), stop_t=10.0,
    )  # fmt: skip

    assert "3 records missing, see below" in text
    assert section(text, "Losses") == [["late", "3"]]
    assert section(text, "Datasets")[0][0] == "DY"
    assert "Tasks by prefix" not in text


@pytest.mark.parametrize("width", [exhaustive(60), 120])
@pytest.mark.parametrize("name", ["coffea_failures", exhaustive("metadata_map"), "cut"])
def test_the_short_summary_of_a_sample_has_at_most_40_lines(
    analyze, monkeypatch, tmp_path, name, width
):
    """In a narrow terminal, findings are named that have their sentences in a wide one."""
    monkeypatch.setenv("COLUMNS", str(width))
    path = SAMPLES / f"{name}.jsonl.zst"
    if name == "cut":
        path = tmp_path / "cut.jsonl.zst"
        path.write_bytes((SAMPLES / "coffea_failures.jsonl.zst").read_bytes()[:60_000])

    lines = analyze(path)[1].splitlines()

    assert len(lines) <= 40
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for row in json.loads(analyze("explain", path, "--json")[1])["findings"][:3]:
        assert row["title"] in text
    assert ("Not explained" in text) or ("No rule found" in text)


@pytest.mark.exhaustive
def test_numbers_are_left_out_before_names_wrap(
    summarize, monkeypatch, worker, task, run, chunk
):
    name = "TTto2L2Nu_13p6TeV_powheg_ext1"
    place = {"filename": "a.root", "entry_start": 0, "entry_stop": 100_000}
    records = [
        *(worker("w1"), task("P-1"), chunk("P-1", dataset=name, **place)),
        *run("P-1", 1.0, 9.0),
    ]

    def table_lines() -> list[str]:
        [found] = [it for it in summarize(*records).split("\n\n") if it.startswith("Data")]
        return found.splitlines()

    wide = table_lines()
    monkeypatch.setenv("COLUMNS", "60")
    narrow = table_lines()

    columns = ["dataset", "files", "chunks", "failed", "events", "compute", "events/s"]
    assert wide[1].split() == columns
    assert narrow[1].split() == ["dataset", "chunks", "failed", "events/s"]
    assert narrow[3].split()[0] == name


@pytest.mark.parametrize(("width", "lines"), [(60, 2), (80, 2), (120, 1)])
def test_words_of_headers_and_numbers_are_not_broken(monkeypatch, capsys, width, lines):
    columns = ["name", "worker", ">threads", ">busy", ">compute", ">peak memory", ">left after"]
    numbers = ["2", "16 %", "6.57 s", "312 MiB", "4.33 s"]
    name, address = "a name of several words", "tcp://192.168.100.200:43210"
    monkeypatch.setenv("COLUMNS", str(width))

    terminal.print_out(terminal.table(columns, [[name, address, *numbers]]))

    head, _, body = re.split(r"^(─+)$\n", capsys.readouterr().out, flags=re.MULTILINE)
    assert max(map(len, (head + body).splitlines())) <= width
    assert sorted(head.split()) == sorted(" ".join(columns).replace(">", "").split())
    assert len(head.splitlines()) == lines
    assert all(number in body for number in numbers)
    # Names are wrapped first; then columns move closer together; then addresses are wrapped.
    assert (name in body, address in body) == (width == 120, width >= 80)
    assert ("2  16 %" in body) == (width >= 80)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "names",
    [
        ["DijetProcessor", "automatic_retries"],
        ["store/mc/Run3Summer22/TTto2L2Nu_13p6TeV/file_0001.root", "nanoaod/TTbar_2.root"],
        [f"Processor-{'0' * 15}{n}{'0' * 16}{'a' * 40}" for n in "123"],
    ],
)
def test_names_wrap_at_boundaries_and_stay_distinct(monkeypatch, capsys, width, names):
    numbers = ["1,520,000", "145.2 ms", "18.1 ms", "28.8 ms", "113.4 MiB"]
    monkeypatch.setenv("COLUMNS", str(width))

    columns = ["name", *(f">number {n}" for n in range(5))]
    terminal.print_out(terminal.table(columns, [[name, *numbers] for name in names]))

    _, body = capsys.readouterr().out.split("─\n")
    lines = body.splitlines()
    assert max(map(len, lines)) <= width
    assert all(body.count(number) == len(names) for number in numbers)
    starts = [place for place, line in enumerate(lines) if numbers[0] in line]
    left = [line.split("1,520,000")[0].strip() for line in lines]
    cells = [left[a:b] for a, b in pairwise([*starts, None])]
    assert len({tuple(cell) for cell in cells}) == len(names)
    for name, cell in zip(names, cells, strict=True):
        assert re.fullmatch(".*".join(map(re.escape, "".join(cell).split("…"))), name)
        if len(name) < 60:
            assert all(line[-1] in "-_/" for line in cell[:-1])


@pytest.mark.parametrize("width", [0, 5])
def test_a_terminal_that_is_too_narrow(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))

    terminal.print_out(terminal.table(list("abcdefghijkl"), [range(12)]))

    assert capsys.readouterr().out.startswith("a b c d")


def test_a_number_is_not_separated_from_its_unit(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "28")

    terminal.print_out(terminal.cell("possible saving: 3 s of 12 (28\N{NO-BREAK SPACE}%)"))

    assert capsys.readouterr().out == "possible saving: 3 s of 12\n(28 %)\n"


HOSTILE = [
    "\x1b[31mred\x1b]0;title\x07",
    "[bold red]markup[/bold red] [link=https://example.org]x[/link] [/] :smile:",
    "a\nb\tc\r\x08d\u202egnp.exe \ud800",
]


def test_text_of_a_trace_cannot_control_the_terminal(summarize, worker, task, run, chunk):
    records = []
    for n, text in enumerate(HOSTILE):
        entries = {"entry_start": 0, "entry_stop": 10}
        records += [
            worker(text, name=text),
            task(f"{n}", prefix=text),
            chunk(f"{n}", dataset=text, filename=text, **entries),
            *run(f"{n}", 1.0, 2.0, worker=text),
            *run(text, 3.0, 4.0, text, "erred", exception=text),
            {"kind": "loss", "t": 1.0, "reason": text, "detail": text},
        ]

    text = summarize(*records)
    assert {c for c in text if ord(c) < 32 or 127 <= ord(c) < 160} == {"\n"}
    assert "\u202e" not in text
    assert "[bold red]" in text
    assert ":smile:" in "".join(text.split())


@pytest.mark.exhaustive
def test_the_summary_of_a_time_range(analyze, write_trace, worker, task, run, sample):
    path = write_trace(
        worker("w1"), task("a-1"), task("b-1"), *run("a-1", 10.0, 30.0),
        *run("b-1", 50.0, 60.0), sample(5.0), stop_t=1500.0,
    )  # fmt: skip

    # A time relative to the end begins with -, as options do.
    code, out, _ = analyze(path, "--from", "20", "--to", "-24m")

    text = " ".join(out.replace("\N{NO-BREAK SPACE}", " ").split())
    assert code == 0
    assert text.startswith("Trace trace.jsonl Only time range 20 s to 60 s of a run of 25 min.")
    assert "Recorded 40 s from 1970-01-01 00:00:20 (UTC)" in text
    assert "Compute 20 s in 40 s of core time: 50 %" in text
    assert "2 attempts: 1 memory, 1 unfinished" in text


def test_sessions_of_several_clients(analyze, write_trace, worker, task, run):
    clients = [
        {"kind": "client_added", "t": t, "client": f"Client-{name}"}
        for name, t in (("A", 0.0), ("B", 50.0), ("idle", 60.0))
    ]
    first = [task("a-1", t=1.0, client="Client-A"), *run("a-1", 1.0, 30.0)]
    second = [task("b-1", t=50.0, client="Client-B"), *run("b-1", 50.0, 60.0)]
    one = write_trace(worker("w1"), *clients, *first, name="one.jsonl")
    both = write_trace(worker("w1"), *clients, *first, *second, name="both.jsonl")

    _, out_of_one, _ = analyze(one)
    _, out_of_both, _ = analyze(both)
    _, out_of_session, _ = analyze(both, "--session", "2")

    assert "Sessions" not in out_of_one
    rows = [line.split() for line in out_of_both.splitlines() if "Client-" in line]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("1", "Client-A", "1"), ("2", "Client-B", "1"), ("3", "Client-idle", "0")
    ]  # fmt: skip
    text = " ".join(out_of_session.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "Only time range 50 s to 100 s of a run of" in text
    assert "1 attempts: 1 memory" in text or "1 attempt: 1 memory" in text


# -- the report --------------------------------------------------------------------------


def test_json_has_the_rows_of_views(analyze, write_trace, worker, task, run):
    path = write_trace(worker("w1"), task("a-1"), *run("a-1", 10.0, 40.0))

    # A trace that is named twice is read once.
    summary = json.loads(analyze(path, path, "--json")[1])

    assert [*summary] == ["run", "loss", "findings", "prefixes", "datasets", "workers"]
    assert [row["wall_seconds"] for row in summary["run"]] == [100.0]
    [prefix] = summary["prefixes"]
    assert (prefix["prefix"], prefix["compute_seconds"]) == ("a", 30.0)


@pytest.mark.exhaustive
def test_the_report_is_written_next_to_the_trace(analyze, write_trace, task):
    path = write_trace(task("a"), name="run.jsonl")
    page = path.with_name("run.html")

    assert analyze("--html", path) == (0, f"report: {page}\n", "")
    assert "<html" in page.read_text()[:1000]


def test_title_path_and_opening_of_the_report(analyze, monkeypatch, several, tmp_path):
    titles, shown = [], []

    def write(_, target, *, title, **_options):
        titles.append(title)
        return target

    for name in ("write_report", "write_comparison"):
        monkeypatch.setattr(report, name, write)
    monkeypatch.setattr(webbrowser, "open", lambda url: shown.append(url) or True)
    page = tmp_path / "before.html"
    for words, target in [
        ([several[0], "--html", tmp_path / "my page.html"], tmp_path / "my page.html"),
        ([*several[:1], "--open"], page),
        ([tmp_path / "bef*.jsonl", "--html"], page),
        ([*several[:2], "--html"], tmp_path / "before-and-after.html"),
        ([*several[:3], "--html"], tmp_path / "before-and-2-more.html"),
    ]:
        assert analyze(*words, "--title", "T") == (0, f"report: {target}\n", "")
    assert (titles, shown) == (["T"] * 5, [page.as_uri()])

    # Without a browser the address is printed.
    message = f"roast-analyze: no browser found: open {page.as_uri()} yourself\n"
    for trouble in (None, webbrowser.Error("none"), OSError("none")):
        fails = Mock(return_value=False, side_effect=trouble)
        monkeypatch.setattr(webbrowser, "open", fails)
        assert analyze(several[0], "--open") == (0, f"report: {page}\n", message)
    # In `a --html b` both may be meant as traces.
    code, _, err = analyze(several[0], "--html", several[1])
    assert code == 2
    assert "is named like a trace: put the traces before --html FILE" in err


# -- several traces ----------------------------------------------------------------------


@pytest.fixture
def several(write_trace, worker, task, run, chunk):
    """Return three traces: the second took twice the time, the third has chunks."""

    def trace(name, stop_t, *records):
        about = {"name": f"{name}.jsonl", "trace_id": name, "stop_t": stop_t}
        return str(write_trace(worker("w1"), *records, **about))

    entries = {"filename": "f", "entry_start": 0, "entry_stop": 12_000}
    return [
        trace("before", 10.0, task("x-1"), *run("x-1", 1.0, 3.0)),
        trace("after", 20.0, task("x-1"), *run("x-1", 1.0, 7.0)),
        trace("chunky", 5.0, task("P-1"), chunk("P-1", **entries), *run("P-1", 1.0, 3.0)),
    ]


@pytest.mark.exhaustive
def test_several_traces_are_compared(analyze, monkeypatch, several):
    monkeypatch.setenv("COLUMNS", "80")

    code, text, _ = analyze(*several)

    assert code == 0
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
        ["before", "1", "–", "–", "–", "–", "8 B"],
        ["after", "1", "–", "–", "–", "–", "8 B"],
        ["×1", "×1"],
        ["chunky", "1", "1", "12,000", "6,000", "–", "8 B"],
        ["×1", "×1"],
    ]
    assert [row[-1] for row in section(text, "Memory and failures")] == ["complete"] * 3
    assert "records lost  completeness" in text


@pytest.mark.exhaustive
def test_traces_of_folders_and_segments(analyze, write_trace, task, several, tmp_path):
    code, text, _ = analyze(Path(several[0]).parent)
    names = [row[0] for row in section(text, "Memory")]
    assert (code, names) == (0, ["after", "before", "chunky"])

    (tmp_path / "notes.jsonl").write_text("hello\n")
    code, _, err = analyze(*several, tmp_path / "notes.jsonl")
    assert (code, "notes.jsonl" in err) == (2, True)

    # Segments of one trace are one trace.
    tasks = {n: task(f"a-{n}") for n in (1, 2)}
    parts = (write_trace(task, name=f"part-{n}.jsonl", segment=n) for n, task in tasks.items())
    head = analyze(*parts)[1].split("\n\n")[0]
    facts = dict(line.split(None, 1) for line in head.splitlines())
    assert (facts["Trace"], facts["Tasks"]) == ("part-1.jsonl", "2, 0 attempts")
    assert facts["Complete"] == "yes"
