"""Chunks: their sentences and their scatter plots."""

import polars as pl
import pytest

from roast_analyze.figures import palette
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report.topics.chunks.figure import figure, median_rate

AXIS = TimeAxis(100.0, 110.0)


@pytest.fixture
def chunks(worker, chunk, run):
    """Records of chunks ``(dataset, file, worker, events, seconds)``, one after the other."""

    def chunks(*rows, **measured):
        records = [worker(name) for name in sorted({row[2] for row in rows})]
        t = 0.0
        for number, (dataset, filename, name, events, seconds) in enumerate(rows):
            entries = {"entry_start": 0, "entry_stop": events}
            about = {"dataset": dataset, "filename": filename, **entries}
            key = f"P-{number}"
            records += [
                chunk(key, **about),
                *run(key, t, t + seconds, worker=name, run_id=number),
            ]
            if measured:
                times = {"start_t": t, "stop_t": t + seconds}
                records.append(chunk(key, run_id=number, **about, **times, **measured))
            t += seconds
        return records

    return chunks


ONE = ("DY", "f.root", "w1", 1000, 4.0)


def test_cost_and_recommended_size(sentences, chunks):
    rows = [
        ("DY", "f.root", "w1", n, (1.0 + 1e-3 * n) * error)
        for n in (1000, 2000, 3000, 4000) * 2
        for error in (0.999, 1.001)
    ]

    assert (
        "DY: a chunk costs 1 s (± 2.71 ms) plus 1 s per 1,000 events (median model error <1 %)"
        "; the median chunk has 2,500 events, the recommended size is 4,000 (the run time "
        "changes by less than 2 % between 5,253 and 15,241); whole files, smaller than the "
    ) in sentences("chunks", *chunks(*rows), stop_t=100.0)


def test_datasets_without_a_cost_model_share_a_sentence(sentences, chunks):
    rows = [(name, "f.root", "w1", 1000, 1.0) for name in ("DY", "QCD", "TT") for _ in range(5)]

    assert (
        "Cost of a chunk of DY, QCD and TT: not known from this run: all chunks have the same "
        "size; record a run with two chunk sizes."
    ) in sentences("chunks", *chunks(*rows))


def test_the_costs_of_the_first_datasets_are_described(section, chunks):
    rows = [
        (f"D{i}", "f.root", "w1", n, 1.0 + 1e-3 * n)
        for i in range(6)
        for n in (1000, 2000, 3000, 4000, 5000) * 2
    ]

    lines = section("chunks", *chunks(*rows)).sentences

    assert [line[:9] for line in lines[-5:-1]] == [
        "D0: a chu",
        "D1: a chu",
        "D2: a chu",
        "D3: a chu",
    ]
    assert lines[-1] == "The table contains 2\N{NO-BREAK SPACE}more datasets."


def test_slow_files_and_slow_workers(sentences, chunks):
    slow = {"3.root": 3.0, "w1": 2.0}
    rows = [
        ("DY", file, name, 1000, slow.get(file, 1.0) * slow.get(name, 1.0))
        for file in ("/store/1.root", "2.root", "3.root", "4.root")
        for name in ("w0", "w1", "w2")
        for _ in range(3)
    ]

    assert (
        "Slow on every worker: file 3.root (3.0 ± 0.0 times the usual duration). Slow on every "
        "file: worker w1 (2.0 ± 0.0 times the usual duration)."
    ) in sentences("chunks", *chunks(*rows))
    assert (
        "None of the 4 comparable files is slow on every worker. None of the 3 comparable "
        "workers is slow on every file."
    ) in sentences("chunks", *chunks(*[(*row[:4], 1.0) for row in rows]))
    assert "Slow files and slow workers cannot be told apart" in sentences(
        "chunks", *chunks(rows[0])
    )


def test_merging(sentences, task, chunks, run):
    records = chunks(ONE)
    merge = task("reduce-1", dependencies=["P-0"])

    assert "Merging" not in sentences("chunks", *records)
    for stop, text in (
        (5.0, "Merging results took 1 s, 25 % of the compute time of the chunks."),
        (12.0, "Merging results took 8 s, 2.0 times the compute time of the chunks."),
    ):
        assert text in sentences("chunks", *records, merge, *run("reduce-1", 4.0, stop))


def test_time_spent(sentences, chunks):
    measured = {"open_seconds": 1.0, "process_seconds": 3.0, "read_seconds": 2.0}

    assert "on what they spent their time, was not measured" in sentences(
        "chunks", *chunks(ONE)
    )
    assert (
        "Chunk attempts computed for 4 s: 1 s (25 %) opening files, 3 s (75 %) in the "
        "processor and 2 s (50 %) reading columns, inside or before the processor. Their "
        "threads were on the CPU 25 % of the time."
    ) in sentences("chunks", *chunks(ONE, **measured, cpu_seconds=1.0))


def test_the_most_expensive_branches(sentences, chunks):
    sized = [{"branch": "x", "compressed_bytes": 3}, {"branch": "y", "compressed_bytes": 1}]
    timed = [{**branch, "read_seconds": 4.0 - branch["compressed_bytes"]} for branch in sized]

    assert "branches" not in sentences("chunks", *chunks(ONE))
    assert "The most expensive branches by bytes read: x (75 %) and y (25 %)." in sentences(
        "chunks", *chunks(ONE, branches=sized)
    )
    assert "The most expensive branches by reading time: y (75 %) and x (25 %)." in sentences(
        "chunks", *chunks(ONE, branches=timed)
    )


def test_durations(sentences, chunks):
    rows = [("DY", "/store/f.root", "w1", 1000, seconds) for seconds in (1.0, 2.0, 5.0)]

    assert (
        "The median compute time was 2 s; the slowest chunk took 5 s, 2.5 times as long (in "
        "f.root)."
    ) in sentences("chunks", *chunks(*rows))
    assert "1 chunk attempt failed. 1 of them was skipped without an exception." in sentences(
        "chunks", *chunks(ONE, exception="E()")
    )
    assert (
        "The results of 1 chunk came from a checkpoint, so that their number of events is "
        "unknown."
    ) in sentences("chunks", *chunks(ONE, from_checkpoint=True))


def test_without_a_cluster_chunks_have_tables_and_a_timeline(build, worker, chunk):
    def attempt(key, run_id, start, **fields):
        about = {"dataset": "DY", "filename": f"{key}.root", "worker": "pid:1", "thread": 1}
        entries = {"entry_start": 0, "entry_stop": 10, "run_id": run_id}
        return chunk(key, **about, **entries, start_t=start, stop_t=start + 2.0, **fields)

    built = build(
        worker("pid:1"),
        attempt("a", 1, 1.0, exception="OSError()"),
        attempt("a", 2, 4.0, events=10),
        attempt("b", 3, 6.0, events=10),
    )

    sections = {section.name: section for section in built.sections}
    text = f"{built.verdict.summary} {built.verdict.outcome}"
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "2 chunks, 20 events in 7 s on 1 worker (1 thread): 2.86 events/s. Thread utilization "
        "was 60 %. 1 failure."
    )
    assert sections["timeline"].timeline.query == "SELECT * FROM chunks ORDER BY processing_t"
    assert [table.name for table in sections["chunks"].tables] == [
        "datasets", "costs", "files", "chunks",
    ]  # fmt: skip
    assert sections["tasks"].empty.endswith("Without a cluster, chunks are not tasks.")
    assert len(sections["failures"].tables[0].rows) == 1


def test_the_table_of_attempts_shows_the_cause_that_coffea_quotes(build, chunks):
    wrapped = Exception("Failed processing file: WorkItem(a='f'). The error was: OSError(2).")

    built = build(*chunks(ONE, exception=repr(wrapped)))

    [section] = [section for section in built.sections if section.name == "chunks"]
    [table] = [table for table in section.tables if table.name == "chunks"]
    place = [column.name for column in table.columns].index("exception")
    assert [row[place].text for row in table.rows] == ["OSError(2)"]


def attempts(*rows):
    """Chunk attempts from ``(dataset, events, seconds, outcome)``."""
    return pl.DataFrame(
        [
            {
                "dataset": dataset,
                "filename": f"{dataset}.root",
                "entry_start": 0,
                "entry_stop": 1000,
                "events": events,
                "attempt": 1,
                "worker": "w",
                "outcome": outcome,
                "processing_t": 101.0,
                "compute_seconds": seconds,
                "events_per_second": events / seconds if events and seconds else None,
            }
            for dataset, events, seconds, outcome in rows
        ],
        infer_schema_length=None,
    )


def test_each_attempt_is_drawn_by_size_and_by_time():
    drawn = figure(
        attempts(("Z", 1000, 2.0, "memory"), ("W", 500, 1.0, "memory")), ["Z", "W"], AXIS
    )

    assert [(t.name, t.xaxis, t.x, t.y) for t in drawn.figure.data if t.mode == "markers"] == [
        ("Z", "x", (1000,), (2.0,)),
        ("Z", "x2", (1.0,), (2.0,)),
        ("W", "x", (500,), (1.0,)),
        ("W", "x2", (1.0,), (1.0,)),
    ]


def test_failed_attempts_are_drawn_at_the_requested_size_and_lost_ones_counted():
    rows = ("Z", 10, 1.0, "memory"), ("Z", None, 2.0, "erred"), ("Z", None, None, "lost")
    drawn = figure(attempts(*rows), ["Z"], AXIS)

    failed = drawn.figure.data[2]
    assert (failed.name, failed.x) == ("failed or unfinished", (1000,))
    assert failed.marker.color == palette.FAILURE
    assert (drawn.drawn, drawn.undrawn, drawn.without_time) == (2, 0, 1)


def test_of_many_attempts_failed_and_slow_ones_and_a_sample_are_drawn():
    many = [("Z", 1000, 1.0 + i / 1000, "memory") for i in range(1000)]
    extremes = ("Z", None, 0.1, "erred"), ("Z", 1000, 50.0, "memory")

    drawn = figure(attempts(*many, *extremes), ["Z"], AXIS, point_limit=100)

    assert {0.1, 50.0} <= {y for trace in drawn.figure.data for y in trace.y}
    assert drawn.drawn <= 100
    assert drawn.drawn + drawn.undrawn == 1002


def test_the_line_has_the_median_rate():
    rows = attempts(*(("Z", 1000, seconds, "memory") for seconds in (1.0, 2.0, 4.0)))

    line = figure(rows, ["Z"], AXIS).figure.data[-1]

    assert median_rate(rows) == 500
    assert (line.x, line.y) == ((0, 1000), (0, 2.0))


def test_names_are_escaped():
    drawn = figure(attempts(("<a href=x>", 1, 1.0, "memory")), ["<a href=x>"], AXIS)

    assert "<a" not in drawn.figure.to_json()
