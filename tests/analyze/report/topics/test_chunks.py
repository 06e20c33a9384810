"""Chunks: their sentences and their scatter plots."""

from types import SimpleNamespace

import polars as pl
import pytest

from analyze.report.contexts import NOTHING
from analyze.report.reading import plain
from roast_analyze.figures import palette
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report.listing import Listing
from roast_analyze.report.run import Run
from roast_analyze.report.topics.chunks.figure import chosen, figure, median_rate, sized
from roast_analyze.report.topics.chunks.sentences import merging
from roast_analyze.report.topics.chunks.sentences import slow as describe_slow


@pytest.fixture
def chunks(worker, chunk, run):
    """Return successive chunks ``(dataset, file, worker, events, seconds)``."""

    def chunks(*rows, **measured):
        records = [worker(name) for name in sorted({row[2] for row in rows})]
        t = 0.0
        for number, (dataset, filename, name, events, seconds) in enumerate(rows):
            about = {"dataset": dataset, "filename": filename}
            about |= {"entry_start": 0, "entry_stop": events}
            key, times = f"P-{number}", {"start_t": t, "stop_t": t + seconds}
            records += [chunk(key, **about), *run(key, *times.values(), name, run_id=number)]
            if measured:
                records.append(chunk(key, run_id=number, **about, **times, **measured))
            t += seconds
        return records

    return chunks


ONE = ("DY", "/store/f.root", "w1", 1000, 4.0)
#: Chunks of four sizes, with a fixed cost of 1 s.
SIZED = [(n, (1.0 + 1e-3 * n) * error) for n in (1000, 2000, 3000, 4000) * 2
         for error in (0.999, 1.001)]  # fmt: skip
BRANCHES = [{"branch": "x", "compressed_bytes": 3}, {"branch": "y", "compressed_bytes": 1}]


@pytest.mark.parametrize(
    ("rows", "measured", "texts"),
    [
        (
            [("DY", "f.root", "w1", n, seconds) for n, seconds in SIZED], {},
            [
                ("DY: a chunk costs 1 s (± 2.71 ms) plus 1 s per 1,000 events (median model "
                "error <1 %); the median chunk has 2,500 events, the recommended size is 4,000 "
                "(the run time changes by less than 2 % between 5,253 and 15,241); whole "
                "files, smaller than the "),
            ],
        ),
        (
            # CMS dataset names differ in the first part only.
            [(name, "f.root", "w1", 1000, 1.0)
             for name in ("DY", "/QCD/Run3/NANO", "/TT/Run3/NANO")] * 5,
            {},
            [
                "Reading and the time of chunks by activity were not measured.",
                "Slow files and slow workers cannot be told apart",
                ("Cost of a chunk of /QCD/Run3/NANO, /TT/Run3/NANO and DY: not known from this "
                "run: all chunks of a dataset have the same size; record a run with two chunk "
                "sizes."),
            ],
        ),
        (
            [ONE],
            {"open_seconds": 1.0, "process_seconds": 3.0, "read_seconds": 2.0,
             "cpu_seconds": 1.0, "from_checkpoint": True,
             "branches": [one | {"read_seconds": 4.0 - one["compressed_bytes"]}
                          for one in BRANCHES]},
            [
                ("Chunk attempts computed for 4 s: 1 s (25 %) opening files, 3 s (75 %) in the "
                "processor and 2 s (50 %) reading columns, inside or before the processor. "
                "Their threads were on the CPU 25 % of the time."),
                ("The results of 1 chunk came from a checkpoint, so their number of events is "
                "unknown."),
                "The most expensive branches by reading time: y (75 %) and x (25 %).",
            ],
        ),
        (
            [ONE], {"branches": BRANCHES, "exception": "E()"},
            [
                ("1 chunk attempt failed. 1 of them was skipped: the exception was suppressed "
                "(skipbadfiles)."),
                "The most expensive branches by bytes read: x (75 %) and y (25 %).",
            ],
        ),
        (
            [(*ONE[:4], seconds) for seconds in (1.0, 2.0, 5.0)], {"from_checkpoint": True},
            [
                ("The median compute time was 2 s; the slowest chunk took 5 s, 2.5 times as "
                "long (in f.root). The results of 3 chunks came from a checkpoint, so their "
                "number of events is unknown."),
            ],
        ),
    ],
)  # fmt: skip
def test_sentences(sentences, chunks, rows, measured, texts):
    made = sentences("chunks", *chunks(*rows, **measured), stop_t=100.0)

    assert [text for text in texts if text not in made] == []


@pytest.mark.exhaustive
def test_the_costs_of_the_first_datasets_are_described(section, chunks):
    rows = [(f"D{i}", "f.root", "w1", n, seconds) for i in range(6) for n, seconds in SIZED]

    lines = section("chunks", *chunks(*rows), stop_t=400.0).sentences

    assert [line[:9] for line in lines[-5:-1]] == [f"D{i}: a chu" for i in range(4)]
    assert plain(lines[-1]) == "The table contains 2 more datasets."


@pytest.mark.exhaustive
def test_slow_files_and_slow_workers(sentences, chunks):
    slow = {"3.root": 3.0, "w1": 2.0}
    rows = [
        ("DY", file, name, 1000, slow.get(file, 1.0) * slow.get(name, 1.0))
        for file in ("/store/1.root", "2.root", "3.root", "4.root")
        for name in ("w0", "w1", "w2")
        for _ in range(3)
    ]

    assert (
        "Slow file, corrected for the speed of workers: 3.root (3.0 ± 0.0 times the usual "
        "duration). Slow worker, corrected for the cost of files: w1 (2.0 ± 0.0 times the "
        "usual duration)."
    ) in sentences("chunks", *chunks(*rows))


def test_no_file_and_no_worker_is_slow():
    assert describe_slow(
        SimpleNamespace(
            comparable_files=4,
            comparable_workers=3,
            slow_files=NOTHING,
            slow_workers=NOTHING,
        ),
        {},
    ) == (
        "None of the 4 comparable files is slow, corrected for the speed of workers. None of "
        "the 3 comparable workers is slow, corrected for the cost of files."
    )


def test_a_slow_worker_is_named():
    facts = {"worker": "tcp://a:1", "relative_duration": 2.0, "relative_duration_error": 0.1}
    slow = Listing("workers", "", pl.DataFrame([facts]), 1)
    found = SimpleNamespace(
        comparable_files=0, comparable_workers=3, slow_files=NOTHING, slow_workers=slow
    )
    assert describe_slow(found, {"tcp://a:1": "worker 0"}) == (
        "Slow worker, corrected for the cost of files: worker 0 (2.0 ± 0.1 times the usual "
        "duration)."
    )


def test_branches_are_compared_by_bytes_if_a_reading_time_is_unknown(sentences, chunks):
    timed = {"branch": "timed", "compressed_bytes": 1, "read_seconds": 1.0}
    untimed = {"branch": "untimed", "compressed_bytes": 9}
    records = [
        *chunks(("A", "a.root", "w1", 100, 1.0), branches=[timed]),
        *(
            {**record, "key": "Q-0"}
            for record in chunks(("B", "b.root", "w1", 100, 1.0), branches=[untimed])
            if "key" in record
        ),
    ]

    assert "The most expensive branches by bytes read: untimed (90 %) and timed" in sentences(
        "chunks", *records
    )


@pytest.mark.exhaustive
def test_merging(sentences, task, chunks, run):
    merged = task("reduce-1", dependencies=["P-0"]), *run("reduce-1", 4.0, 5.0)

    assert ("Merging results took 1 s, 25 % of the compute time of the chunks.") in sentences(
        "chunks", *chunks(ONE), *merged
    )
    assert merging(Run(chunk_seconds=4.0)) == ""
    assert plain(merging(Run(chunk_seconds=4.0, merge_seconds=8.0))) == (
        "Merging results took 8 s, 2.0 times the compute time of the chunks."
    )


@pytest.mark.exhaustive
def test_without_a_cluster_chunks_have_tables_and_a_timeline(build, worker, chunk):
    def attempt(key, run_id, start, **fields):
        about = {"dataset": "DY", "filename": f"{key}.root", "worker": "pid:1", "thread": 1}
        entries = {"entry_start": 0, "entry_stop": 10, "run_id": run_id}
        return chunk(key, **about, **entries, start_t=start, stop_t=start + 2.0, **fields)

    wrapped = Exception("Failed processing file: WorkItem(a='f'). The error was: OSError(2).")
    built = build(
        worker("pid:1"),
        attempt("a", 1, 1.0, exception=repr(wrapped)),
        attempt("a", 2, 4.0, events=10),
        attempt("b", 3, 6.0, events=10),
    )

    sections = {section.name: section for section in built.sections}
    assert plain(f"{built.verdict.summary} {built.verdict.outcome}") == (
        "2 chunks, 20 events in 7 s on 1 worker (1 thread): 2.86 events/s. Threads computed "
        "for 60 % of the core time, 40 % for results that were kept. 1 failure."
    )
    assert sections["timeline"].timeline.query == "SELECT * FROM chunks ORDER BY processing_t"
    # There are no tasks, and the memory of the processes is not sampled.
    assert [tile.label for tile in built.verdict.tiles] == [
        "Wall time", "Workers", "Core-seconds", "Chunks", "Events", "Events per second",
        "Failures", "Trace",
    ]  # fmt: skip
    tables = {table.name: table for table in sections["chunks"].tables}
    assert list(tables) == ["datasets", "costs", "files", "chunks"]
    # The cause that coffea quotes.
    names = [column.name for column in tables["chunks"].columns]
    assert tables["chunks"].rows[0][names.index("exception")].text == "OSError(2)"
    assert sections["tasks"].empty.endswith("Without a cluster, chunks are not tasks.")
    assert len(sections["failures"].tables[0].rows) == 1


def attempts(*rows):
    """Return chunk attempts from ``(dataset, events, seconds, outcome)``."""
    names = ("dataset", "events", "compute_seconds", "outcome")
    types = (pl.String, pl.Int64, pl.Float64, pl.String)
    frame = pl.DataFrame(rows, dict(zip(names, types, strict=True)), orient="row")
    return frame.with_columns(
        filename="dataset", entry_start=0, entry_stop=1000, attempt=1, worker=pl.lit("w"),
        processing_t=101.0, events_per_second=pl.col("events") / pl.col("compute_seconds"),
    )  # fmt: skip


def drawn(*rows):
    placed = sized(attempts(*rows))
    datasets = placed["dataset"].unique(maintain_order=True).to_list()
    return figure(placed, median_rate(placed), datasets, TimeAxis(100.0, 110.0)).data


def test_each_attempt_is_drawn_by_size_and_by_time():
    rows = ("<Z", 1000, 2.0, "memory"), ("W", 500, 1.0, "memory"), ("W", None, 3.0, "erred")

    *points, line = drawn(*rows, ("W", None, None, "lost"))

    assert [(some.name, some.xaxis, some.x, some.y) for some in points] == [
        ("&lt;Z", "x", (1000,), (2.0,)),
        ("&lt;Z", "x2", (1.0,), (2.0,)),
        ("W", "x", (500,), (1.0,)),
        ("W", "x2", (1.0,), (1.0,)),
        # At the requested size; the lost attempt has no time.
        ("failed or unfinished", "x", (1000,), (3.0,)),
        ("failed or unfinished", "x2", (1.0,), (3.0,)),
    ]
    assert points[-1].marker.color == palette.FAILURE
    assert (line.x, line.y) == ((0, 1000), (0, 2.0))


def test_the_line_has_the_median_rate_of_finished_chunks():
    rows = [("Z", 1000, seconds, "memory") for seconds in (1.0, 2.0, 4.0)]

    assert median_rate(attempts(*rows, *[("Z", 1000, 9.0, "erred")] * 5)) == 500
    assert median_rate(attempts()) is None


@pytest.mark.exhaustive
def test_of_many_attempts_failed_and_slow_ones_and_a_sample_are_drawn(section, chunks):
    many = [("Z", 1000, 1.0 + i / 1000, "memory") for i in range(1000)]
    extremes = ("Z", None, 0.1, "erred"), ("Z", 1000, 50.0, "memory")

    some = chosen(sized(attempts(*many, *extremes)), 100)

    assert {0.1, 50.0} <= set(some["compute_seconds"])
    assert 80 <= some.height <= 100
    [plot] = section("chunks", *chunks(*[(*ONE[:4], 0.01)] * 300)).plots
    assert plot.note == (
        "213 points are drawn: 125 failed or else slowest attempts, and an even sample of the "
        "rest; "
        "87 are left out. All attempts: roast-analyze view trace.jsonl chunks"
    )
