"""View chunk_costs."""

import random

import pytest

from roast_analyze import Trace


@pytest.fixture
def costs_of_each(write_trace, worker, chunk, run):
    """Return the row of chunk_costs for each run, opening the traces of all runs together.

    A run is a dictionary of chunks ``(events, seconds)``, one after another, and optionally
    threads and file_events. Each worker first processes a chunk that takes 10 s.
    """

    def costs_of_each(*runs: dict) -> list[dict]:
        paths = []
        for number, fields in enumerate(runs):
            records, stop_t = described(**fields)
            about = {"name": f"{number}.jsonl", "trace_id": f"{number}"}
            paths.append(write_trace(*records, stop_t=stop_t, **about))
        with Trace(*paths) as trace:
            rows = trace.view("chunk_costs").pl().to_dicts()
        assert sorted(int(row["trace_id"]) for row in rows) == [*range(len(runs))]
        return sorted(rows, key=lambda row: int(row["trace_id"]))

    def described(chunks, threads=1, file_events=None):
        records = [worker(f"w{number}") for number in range(threads)]
        records += [
            record
            for number in range(threads)
            for record in result(f"first{number}", (1000, 10.0), 0.0, f"w{number}")
        ]
        t = 11.0
        for number, (events, seconds) in enumerate(chunks):
            records += result(f"c{number}", (events, seconds), t, f"w{number % threads}")
            t += seconds + 0.001
        if file_events:
            about = {"dataset": "DY", "filename": "large.root"}
            records.append(chunk("x", entry_start=0, entry_stop=file_events, **about))
            records += [r for r in run("x", t, t + 1.0) if "nbytes" not in r]
        return records, t + 2.0

    def result(key, size, t, name):
        events, seconds = size
        about = {"dataset": "DY", "filename": f"{key}.root"}
        described = chunk(key, entry_start=0, entry_stop=events, **about)
        return [described, *run(key, t, t + seconds, worker=name)]

    return costs_of_each


@pytest.fixture
def joint(write_trace, worker, chunk, run):
    """Return rows of joint_chunk_costs for runs of ``(events, seconds of each chunk)``."""

    def joint(*runs: tuple[int, list[float]], columns: str) -> list[tuple]:
        paths = []
        for number, (events, seconds) in enumerate(runs):
            records, t = [worker("w1")], 0.0
            # The first chunk of the process is left out.
            for place, duration in enumerate([10.0, *seconds]):
                about = {"dataset": "DY", "filename": f"{place}.root"}
                records += [
                    chunk(f"c{place}", entry_start=0, entry_stop=events, **about),
                    *run(f"c{place}", t, t + duration),
                ]
                t += duration
            about = {"name": f"{number}.jsonl", "trace_id": f"{number}"}
            paths.append(write_trace(*records, stop_t=t, **about))
        with Trace(*paths) as trace:
            assert trace.rows("SELECT DISTINCT is_known FROM chunk_costs") == [(False,)]
            return trace.rows(f"SELECT {columns} FROM joint_chunk_costs ORDER BY trace_id")

    return joint


def test_runs_of_one_chunk_size_each(joint):
    """Chunks take 0.5 s and 1 ms per event."""
    columns = (
        "runs, chunks, median_events, is_known, round(fixed_seconds, 6), "
        "round(seconds_per_event, 9), round(relative_duration, 6)"
    )
    model = (2, 10, 1000, True, 0.5, 0.001, 1.0)
    assert joint((1000, [1.4, 1.5, 1.6]), (4000, [4.3, 4.4, 4.5, 4.5, 4.5, 4.6, 4.7]),
                 columns=columns) == [model, (*model[:2], 4000, *model[3:])]  # fmt: skip


@pytest.mark.exhaustive
def test_runs_from_which_no_joint_model_follows(joint):
    # Similar sizes, a single run, and too few chunks of one size.
    assert joint((1000, [1.5] * 9), (1900, [2.4] * 9), columns="*") == []
    assert joint((1000, [1.5] * 9), columns="*") == []
    assert joint((1000, [1.5] * 9), (4000, [4.5] * 2), columns="*") == []
    # The scatter is large: the fixed time is not known.
    wide = [1.5 * factor for factor in (0.2, 0.6, 1.0, 1.4, 1.8)]
    assert joint((1000, wide), (4000, [3 * s for s in wide]), columns="is_known") == [
        (False,), (False,)
    ]  # fmt: skip


@pytest.fixture
def costs(costs_of_each):
    """Return the row of chunk_costs for a run of chunks ``(events, seconds)``."""
    return lambda *chunks, **fields: costs_of_each({"chunks": chunks, **fields})


SIZES = [1000, 2000, 3000, 4000, 5000, 2500, 3500, 1500]


def test_fit_without_noise_is_exact(costs):
    """0.5 s per chunk and 0.1 ms per event, with one outlier."""
    chunks = [(n, 0.5 + 1e-4 * n) for n in SIZES]
    [row] = costs(*chunks, (3000, 5.0), file_events=1_000_000)

    assert (row["dataset"], row["chunks"], row["first_chunks"]) == ("DY", 9, 1)
    assert (row["is_known"], row["outliers"], row["sizes"]) == (True, 1, 8)
    sizes = [row[f"{which}_events"] for which in ("smallest_chunk", "median", "largest_chunk")]
    assert sizes == [1000, 2750, 5000]
    assert row["fixed_seconds"] == pytest.approx(0.5)
    assert row["seconds_per_event"] == pytest.approx(1e-4)
    assert row["r2"] == pytest.approx(1.0)
    assert row["fixed_error_seconds"] == pytest.approx(0.0, abs=1e-6)
    assert row["relative_error"] == pytest.approx(0.0, abs=1e-6)
    total = 10.0 + sum(seconds for _, seconds in chunks) + 5.0
    assert row["fixed_share"] == pytest.approx(10 * 0.5 / total)


def test_the_first_chunk_of_each_thread_is_left_out(open_trace, worker, chunk, run):
    """Four threads: the first chunks import modules for 3 s, whatever their size."""
    records = [worker("w1", nthreads=4)]
    for number in range(40):
        events = SIZES[number % 8]
        start = 10.0 * (number // 4)
        seconds = 1e-3 * events + (3.0 if number < 4 else 0.04)
        about = {"dataset": "DY", "filename": "f.root", "entry_start": 0}
        records.append(chunk(f"c{number}", entry_stop=events, **about))
        records += run(f"c{number}", start, start + seconds)

    [row] = open_trace(*records, stop_t=200.0).view("chunk_costs").pl().to_dicts()

    assert (row["chunks"], row["first_chunks"]) == (36, 4)
    assert row["fixed_seconds"] == pytest.approx(0.04)


def test_recommended_size(costs_of_each):
    cases = [
        (0.1, 4, 2500, "keep the size: fixed time 3.8 %"),
        (2.0, 1, "min_events", "larger chunks: fixed time"),
        (0.001, 20, "max_events", "smaller chunks: less waiting for the last ones"),
    ]
    runs = [
        {"chunks": [(n, fixed + 1e-3 * n) for n in SIZES * 20], "threads": threads}
        for fixed, threads, *_ in cases
    ]
    rows = costs_of_each(*(run | {"file_events": 1_000_000} for run in runs))

    for (fixed, threads, recommended, note), run, row in zip(cases, runs, rows, strict=True):
        # The expected time by number of events per chunk: work, fixed times and tail.
        seconds = sum(seconds for _, seconds in run["chunks"]) + 10.0 * threads
        events = sum(events for events, _ in run["chunks"]) + 1000 * threads
        expected = {
            n: (seconds + events / n * fixed) / threads + (fixed + 1e-3 * n) / 2
            for n in range(10, 150_000, 10)
        }
        shortest = min(expected.values())
        good = [
            n for n, expected_seconds in expected.items() if expected_seconds < 1.02 * shortest
        ]
        assert row["min_events"] == pytest.approx(good[0], rel=0.01, abs=11)
        assert row["max_events"] == pytest.approx(good[-1], rel=0.01)
        wanted = row.get(recommended, recommended)
        assert row["recommended_events"] == pytest.approx(wanted, rel=0.1)
        assert row["min_events"] <= row["recommended_events"] <= row["max_events"]
        assert row["note"].startswith(note)


def test_recommended_size_is_at_most_a_file(costs):
    [row] = costs(*((n, 9.0 + 1e-3 * n) for n in SIZES * 20), file_events=6_000)

    assert (row["largest_file_events"], row["recommended_events"]) == (6_000, 6_000)
    assert row["note"] == "whole files, smaller than the optimum: fixed time 60 %"


def test_small_fixed_time_compatible_with_zero(costs):
    draw = random.Random(2)
    [row] = costs(*((n, 1e-3 * n + draw.gauss(0, 0.005)) for n in SIZES * 20))

    assert row["is_known"]
    assert abs(row["fixed_seconds"]) < 2 * row["fixed_error_seconds"] < 0.01
    assert row["recommended_events"] == row["median_events"]


def test_note_gives_the_reason_without_a_model(costs_of_each):
    cases = {
        "all chunks of a dataset have the same size; record a run with": [(1000, 1.0)] * 9,
        # The first chunk of the worker.
        "the dataset has a single chunk; record a run with smaller chunks": [],
        "fewer than 5 chunks besides the first ones": [(1000, 1.0), (2000, 2.0)],
        "chunk sizes are too similar; record": [(1000 + n, 1.0) for n in range(90)],
        "fewer than 3 chunks are much smaller or larger than": [
            *[(1000, 1.0)] * 9,
            (3000, 2.0),
        ],
        "time does not increase with the number of events": [
            (n, 9.0 - 1e-3 * n) for n in SIZES
        ],
        "time increases faster than the number of events": [(n, 1e-6 * n**2) for n in SIZES],
        "the fixed time is only known to be below": [
            (n, 1e-3 * n + (-1) ** i) for i, n in enumerate(SIZES)
        ],
    }
    rows = costs_of_each(*({"chunks": chunks} for chunks in cases.values()))

    for note, row in zip(cases, rows, strict=True):
        assert row["note"].startswith(f"not known from this run: {note}")
        known = [row[name] for name in ("is_known", "recommended_events", "min_events")]
        assert known == [False, None, None], note


def test_processes_count_as_threads_without_a_cluster(write_trace, chunk):
    """Processes with one thread each, as with coffea's FuturesExecutor."""
    paths = []
    for processes in (1, 2):
        records = [
            chunk(
                f"c{number}", run_id=number, dataset="DY", filename="f.root",
                entry_start=0, entry_stop=SIZES[number % 8], worker=f"p{number % processes}",
                start_t=10.0 * number, stop_t=10.0 * number + 1.0 + 1e-3 * SIZES[number % 8],
            )
            for number in range(80)
        ]  # fmt: skip
        about = {"name": f"{processes}.jsonl", "trace_id": f"{processes}"}
        paths.append(write_trace(*records, stop_t=1e3, **about))

    with Trace(*paths) as trace:
        of_one, of_two = trace.rows("SELECT max_events FROM chunk_costs ORDER BY trace_id")
    assert of_two < of_one


def test_excluded_chunks(rows, chunk, run, move):
    def result(key, seconds, run_id=1, **measured):
        about = {"dataset": "DY", "filename": "f.root", "entry_start": 0, "entry_stop": 10}
        return (
            chunk(key, **about),
            *run(key, 1.0, 1.0 + seconds, run_id=run_id),
            chunk(key, run_id=run_id, **about, **measured),
        )

    assert rows(
        "SELECT chunks + first_chunks FROM chunk_costs",
        *result("good", 1.0),
        *result("loaded", 1.0, from_checkpoint=True),
        *result("skipped", 1.0, exception="E()"),
        *result("lost", 1.0, run_id=1),
        *run("lost", 5.0, 6.0, run_id=2),
        chunk("erred", dataset="DY", entry_start=0, entry_stop=10),
        move(1.0, "erred", "waiting>processing", worker="w1"),
        move(2.0, "erred", "processing>erred", "task-erred-2.0"),
    ) == [(2,)]
