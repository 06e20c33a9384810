"""View chunk_costs."""

import math
import random
from statistics import mean, median

import pytest


@pytest.fixture
def costs(open_trace, worker, chunk, run):
    """Return the rows of a trace with chunks ``(events, seconds)``."""

    def costs(*chunks, threads=1, file_events=None, dataset="DY", **measured):
        records = [worker("w1", nthreads=threads)] if threads else []
        t = 0.0
        for number, (events, seconds) in enumerate(chunks):
            key = f"c{number}"
            entries = {"entry_start": 0, "entry_stop": events}
            about = {"dataset": dataset, "filename": f"{number}.root", **entries}
            records += [
                chunk(key, **about),
                *run(key, t, t + seconds, run_id=number),
                chunk(key, run_id=number, **about, **measured),
            ]
            t += seconds
        if file_events:
            about = {"dataset": dataset, "filename": "large.root"}
            records.append(chunk("x", entry_start=0, entry_stop=file_events, **about))
            records += [r for r in run("x", t, t + 1.0, run_id=-1) if "nbytes" not in r]
        return open_trace(*records, stop_t=t + 2.0).view("chunk_costs").pl().to_dicts()

    return costs


SIZES = [1000, 2000, 3000, 4000, 5000, 2500, 3500, 1500]


def test_fit_without_noise_is_exact(costs):
    # 0.5 s per chunk and 0.1 ms per event
    [row] = costs(*((n, 0.5 + 1e-4 * n) for n in SIZES), file_events=1_000_000)

    assert (row["dataset"], row["chunks"], row["sizes"], row["outliers"]) == ("DY", 8, 8, 0)
    assert (row["method"], row["median_events"]) == ("fit", 2750)
    assert row["fixed_seconds"] == pytest.approx(0.5)
    assert row["seconds_per_event"] == pytest.approx(1e-4)
    assert row["r2"] == pytest.approx(1.0)
    assert row["fixed_error_seconds"] == pytest.approx(0.0, abs=1e-6)
    assert row["relative_error"] == pytest.approx(0.0, abs=1e-6)
    total = sum(0.5 + 1e-4 * n for n in SIZES)
    assert row["fixed_share"] == pytest.approx(8 * 0.5 / total)
    # 0.5 s is 5 % of 10 s; 9.5 s remain for events
    assert row["min_events"] == pytest.approx(95_000, abs=1)
    # a quarter of the time of one thread
    assert row["max_events"] == pytest.approx((total / 4 - 0.5) / 1e-4, abs=1)


def test_fit_excludes_outliers(costs):
    draw = random.Random(1)
    chunks = [(n, 0.5 + 1e-4 * n + draw.gauss(0, 0.02)) for n in SIZES * 5]
    stuck = [(3000, 5.0), (1500, 4.0)]

    [row] = costs(*chunks, *stuck)

    # Textbook formulas for the chunks that are not outliers.
    n, x_mean, y_mean = len(chunks), mean(x for x, _ in chunks), mean(y for _, y in chunks)
    xx = sum((x - x_mean) ** 2 for x, _ in chunks)
    yy = sum((y - y_mean) ** 2 for _, y in chunks)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in chunks) / xx
    fixed = y_mean - slope * x_mean
    squares = sum((y - fixed - slope * x) ** 2 for x, y in chunks)
    error = math.sqrt(squares / (n - 2) * (1 / n + x_mean**2 / xx))
    off = median(abs(y - fixed - slope * x) / y for x, y in chunks + stuck)
    assert (row["method"], row["chunks"], row["outliers"]) == ("fit", 42, 2)
    assert row["fixed_seconds"] == pytest.approx(fixed)
    assert row["seconds_per_event"] == pytest.approx(slope)
    assert row["r2"] == pytest.approx(1 - squares / yy)
    assert row["fixed_error_seconds"] == pytest.approx(error)
    assert row["relative_error"] == pytest.approx(off)


def test_larger_chunks_if_fixed_time_exceeds_5_percent(costs):
    many = [(n, 0.1 + 1e-3 * n) for n in SIZES * 20]

    [right] = costs(*many, file_events=1_000_000)
    assert right["recommended_events"] == right["median_events"] == 2750
    assert right["note"] == "keep the size: fixed time 3.5 %"

    [larger] = costs(*((n, 1.0 + 1e-3 * n) for n in SIZES * 20), file_events=1_000_000)
    assert (larger["min_events"], larger["recommended_events"]) == (19_000, 19_000)
    assert larger["note"] == ("larger chunks: fixed time 5 %; no chunk was this large")


def test_smaller_chunks_if_threads_get_fewer_than_4(costs):
    [row] = costs(*((n, 0.001 + 1e-3 * n) for n in SIZES), threads=10, file_events=1_000_000)

    total = sum(0.001 + 1e-3 * n for n in SIZES)
    assert row["max_events"] == round((total / 10 / 4 - 0.001) / 1e-3) == 562
    assert (row["recommended_events"], row["note"]) == (
        560,
        "smaller chunks: 4 per thread",
    )


def test_compromise_between_fixed_time_and_balance(costs):
    [row] = costs(*((n, 0.5 + 1e-3 * n) for n in SIZES), threads=10, file_events=1_000_000)

    thread_seconds = sum(0.5 + 1e-3 * n for n in SIZES) / 10
    assert row["min_events"] > row["max_events"]
    # Minimum of fixed time plus half a chunk of idle time.
    best = min(
        range(100, 10_000),
        key=lambda n: thread_seconds / (1e-3 * n) * 0.5 + (0.5 + 1e-3 * n) / 2,
    )
    assert row["recommended_events"] == pytest.approx(best, rel=0.05)
    assert row["note"].startswith("compromise, little work for many threads: fixed time")


def test_recommended_size_is_at_most_a_file(costs):
    [row] = costs(*((n, 1.0 + 1e-3 * n) for n in SIZES * 20), file_events=6_000)

    assert (row["largest_file_events"], row["recommended_events"]) == (6_000, 6_000)
    assert row["note"] == ("whole files, smaller than the optimum: fixed time 14 %")


def test_small_fixed_time_compatible_with_zero(costs):
    draw = random.Random(2)
    [row] = costs(*((n, 1e-3 * n + draw.gauss(0, 0.005)) for n in SIZES * 20))

    assert row["method"] == "fit"
    assert abs(row["fixed_seconds"]) < 2 * row["fixed_error_seconds"] < 0.01
    assert row["recommended_events"] == row["median_events"]
    assert row["min_events"] < 2750


def test_opening_time_replaces_fixed_time_if_sizes_are_similar(costs):
    [row] = costs(*[(3000, 1.0), (3000, 1.2), (3000, 1.4)] * 3, open_seconds=0.4)

    assert row["method"] == "opening"
    assert row["fixed_seconds"] == 0.4
    assert row["seconds_per_event"] == pytest.approx((1.2 - 0.4) / 3000)
    assert (row["r2"], row["fixed_error_seconds"]) == (None, None)
    # 0.4 s is 5 % of 8 s; 7.6 s remain for events
    assert row["min_events"] == round(7.6 / (0.8 / 3000)) == 28_500
    assert row["note"].endswith("; fixed time covers file opening only")


@pytest.mark.parametrize(
    ("chunks", "note"),
    [
        ([(1000, 1.0), (2000, 2.0)], "fewer than 5 chunks"),
        ([(1000, 1.0), (2000, 2.0)] * 5, "fewer than 3 chunk sizes, and file opening"),
        (
            [(n, 9.0 - 1e-3 * n) for n in SIZES],
            "time does not increase with the number of events",
        ),
        ([(n, 1e-6 * n**2) for n in SIZES], "time increases faster than the number of events"),
        ([(1000, 1.0), (1001, 3.0), (1002, 1.5)] * 4, "fixed time only known to be below"),
    ],
    ids=["few", "alike", "falling", "rising", "noise"],
)
def test_note_gives_the_reason_without_a_model(costs, chunks, note):
    [row] = costs(*chunks)

    assert (row["method"], row["recommended_events"], row["min_events"]) == (None, None, None)
    assert row["note"].startswith(f"no model: {note}")


def test_recommendation_with_unknown_threads(costs):
    [row] = costs(*((n, 1.0 + 1e-3 * n) for n in SIZES), threads=None, file_events=1_000_000)

    assert (row["max_events"], row["recommended_events"]) == (None, 19_000)
    assert "number of threads unknown" in row["note"]


def test_excluded_chunks(rows, chunk, run, move):
    def result(key, seconds, run_id=1, **measured):
        about = {"dataset": "DY", "filename": "f.root", "entry_start": 0, "entry_stop": 10}
        return (
            chunk(key, **about),
            *run(key, 1.0, 1.0 + seconds, run_id=run_id),
            chunk(key, run_id=run_id, **about, **measured),
        )

    assert rows(
        "SELECT chunks FROM chunk_costs",
        *result("good", 1.0),
        *result("loaded", 1.0, from_checkpoint=True),
        *result("skipped", 1.0, exception="E()"),
        *result("lost", 1.0, run_id=1),
        *run("lost", 5.0, 6.0, run_id=2),
        chunk("erred", dataset="DY", entry_start=0, entry_stop=10),
        move(1.0, "erred", "waiting>processing", worker="w1"),
        move(2.0, "erred", "processing>erred", "task-erred-2.0"),
    ) == [(2,)]
