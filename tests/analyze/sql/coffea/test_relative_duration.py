"""relative_duration and is_slow of files and workers."""

import random

import pytest

from roast_analyze import Trace

WORKERS = ["w0", "w1", "w2", "w3"]
EVENTS = 1000


def times(files, workers, chunks, noise, slow, seed=0):
    """Yield chunks ``(file, worker, seconds)``, some of which take longer."""
    draw = random.Random(seed)
    for file in files:
        for _ in range(chunks):
            worker = draw.choice(workers)
            factor = slow.get(file, 1.0) * slow.get(worker, 1.0)
            yield file, worker, factor * draw.lognormvariate(0.0, noise)


@pytest.fixture
def relative_durations(write_trace, worker, chunk, run):
    """Return relative_duration and is_slow of files and workers, for each trace of chunks."""

    def relative_durations(*traces, start_of=float):
        paths = []
        for trace_number, chunks in enumerate(map(list, traces)):
            records = [worker(name) for name in sorted({name for _, name, _ in chunks})]
            for number, (file, name, seconds) in enumerate(chunks):
                entries = {"entry_start": number * EVENTS, "entry_stop": (number + 1) * EVENTS}
                dataset = file.partition("_")[0]
                records.append(chunk(f"c{number}", dataset=dataset, filename=file, **entries))
                start = start_of(number)
                records += run(f"c{number}", start, start + seconds, worker=name)
            about = {"name": f"{trace_number}.jsonl", "trace_id": f"{trace_number}"}
            paths.append(write_trace(*records, stop_t=1e4, **about))
        with Trace(*paths) as trace:
            rows = trace.rows(
                "SELECT trace_id, filename, relative_duration, is_slow FROM files UNION ALL "
                "SELECT trace_id, worker, relative_duration, is_slow FROM workers"
            )
        found = [({}, set()) for _ in paths]
        for trace_id, name, value, is_slow in rows:
            values, slow = found[int(trace_id)]
            values[name] = value
            slow.update([name] if is_slow else [])
        return found

    return relative_durations


@pytest.fixture
def relative_duration(relative_durations):
    """Return relative_duration and is_slow of files and workers for a trace of chunks."""
    return lambda chunks: relative_durations(chunks)[0]


FILES = [f"{dataset}_{i}.root" for dataset in ("DY", "TT") for i in range(6)]


def test_slow_file_and_slow_worker_are_separated(relative_durations):
    slow, noises = {"TT_3.root": 3.0, "w2": 2.0}, (0.0, 0.1, 0.3)

    runs = relative_durations(*(times(FILES, WORKERS, 20, noise, slow) for noise in noises))

    for noise, (found, called_slow) in zip(noises, runs, strict=True):
        assert called_slow == set(slow)
        assert found["TT_3.root"] == pytest.approx(3.0, rel=0.01 + noise)
        assert found["w2"] == pytest.approx(2.0, rel=0.01 + noise / 2)
        others = [value for name, value in found.items() if name not in slow]
        assert len(others) == 14
        assert others == pytest.approx([1.0] * 14, abs=0.01 + noise)


def test_a_worker_that_mostly_read_a_slow_file_is_not_slow(relative_duration):
    reads = [("w0", 0, 5), ("w0", 1, 5), ("w1", 0, 8), ("w1", 1, 4), ("w1", 2, 17)]
    seconds = [1.0, 25.0, 1.0]

    found, called_slow = relative_duration(
        (f"DY_{file}.root", worker, seconds[file])
        for worker, file, chunks in reads
        for _ in range(chunks)
    )

    assert called_slow == {"DY_1.root"}
    assert found == {"DY_0.root": 1, "DY_1.root": 25, "DY_2.root": None, "w0": 1, "w1": 1}


def test_a_file_much_slower_than_files_that_differ(relative_duration):
    factors = dict(zip(FILES, (0.6, 1.0, 2.0, 13.0), strict=False))

    _, called_slow = relative_duration(times(factors, WORKERS, 20, 0.05, factors))

    assert called_slow == {"DY_3.root"}


def test_the_first_file_can_be_slow_because_the_run_starts(relative_durations):
    runs = relative_durations(
        *(times(FILES, WORKERS, 20, 0.05, {"DY_0.root": factor}) for factor in (4.0, 6.0))
    )

    assert [called_slow for _, called_slow in runs] == [set(), {"DY_0.root"}]


def test_files_read_by_the_only_worker_are_compared(relative_duration):
    found, called_slow = relative_duration(times(FILES, ["w0"], 10, 0.05, {"TT_3.root": 3.0}))

    assert called_slow == {"TT_3.root"}
    assert found["TT_3.root"] == pytest.approx(3.0, rel=0.05)
    assert found["w0"] is None


def test_half_of_the_workers_can_be_slow(relative_durations):
    slow, noises = {"w2": 3.0, "w3": 2.0}, (0.0, 0.1)

    runs = relative_durations(*(times(FILES, WORKERS, 20, noise, slow) for noise in noises))

    for noise, (found, called_slow) in zip(noises, runs, strict=True):
        assert called_slow == set(slow)
        assert (found["w2"], found["w3"]) == pytest.approx((3.0, 2.0), rel=0.01 + noise / 2)


def nothing_slow(seed):
    """Yield the chunks of runs that vary only by chance or content."""
    draw = random.Random(seed)
    yield times(FILES * 5, WORKERS, 4, 0.5, {}, seed)
    # Datasets, and files of a dataset, differ in content.
    yield times(FILES, WORKERS, 20, 0.1, {f"TT_{i}.root": 5.0 for i in range(6)}, seed)
    content = {f"DY_{number}.root": draw.lognormvariate(0.0, 0.3) for number in range(12)}
    yield times(content, WORKERS, 20, 0.05, content, seed)


def test_differences_that_are_not_slow(relative_durations):
    runs = relative_durations(*(chunks for seed in range(3) for chunks in nothing_slow(seed)))

    assert [called_slow for _, called_slow in runs] == [set()] * 9


def test_null_if_files_and_workers_cannot_be_separated(relative_duration):
    chunks = [
        *times(["DY_0.root", "DY_1.root"], ["w0", "w1"], 10, 0.0, {}),
        *times(["DY_2.root"], ["w2"], 10, 0.0, {"DY_2.root": 9.0}),  # the file or w2
        *times(["TT_0.root"], ["w0", "w1"], 10, 0.0, {"TT_0.root": 9.0}),  # or all of TT
    ]

    found, called_slow = relative_duration(chunks)

    assert called_slow == set()
    assert found == {
        "DY_0.root": 1.0,
        "DY_1.root": 1.0,
        "DY_2.root": None,
        "TT_0.root": None,
        "w0": 1.0,
        "w1": 1.0,
        "w2": None,
    }


def test_slow_needs_five_chunks(relative_duration):
    few = [("DY_9.root", "w0", 5.0), ("DY_9.root", "w1", 5.0)] * 2

    found, called_slow = relative_duration([*times(FILES, WORKERS, 10, 0.0, {}), *few])

    assert found["DY_9.root"] == pytest.approx(5.0)
    assert called_slow == set()


def test_busy_period_does_not_make_files_slow(relative_durations):
    """Two files are read at a time; while the third pair is read, the machine is busy."""

    def chunks(seed):
        draw = random.Random(seed)
        for at in range(120):
            pair, number = divmod(at, 20)
            seconds = (1.9 if pair == 2 else 1.0) * draw.lognormvariate(0.0, 0.1)
            yield f"DY_{2 * pair + number % 2}.root", f"w{number % 4 // 2}", seconds

    runs = relative_durations(*map(chunks, range(3)), start_of=lambda number: number / 4)

    assert [called_slow for _, called_slow in runs] == [set()] * 3


def test_one_file_of_two_needs_a_clear_difference(relative_durations):
    of_two = ["DY_0.root", "DY_1.root"]

    runs = relative_durations(
        *(times(of_two, WORKERS, 20, 0.05, {"DY_1.root": factor}) for factor in (1.9, 3.5))
    )

    assert [called_slow for _, called_slow in runs] == [set(), {"DY_1.root"}]


def test_standard_error_of_the_relative_duration(open_trace, worker, chunk, run):
    """The error falls with the square root of the number of chunks."""
    draw = random.Random(0)
    records = [worker(name) for name in WORKERS]
    files = [f"{n}.root" for n in range(6)] + ["5.root"] * 3
    for number in range(900):
        key = f"c{number}"
        about = {"dataset": "DY", "filename": files[number % 9], "entry_start": number}
        seconds = draw.lognormvariate(0.0, 0.2)
        records.append(chunk(key, entry_stop=number + 1, **about))
        records += run(key, float(number), number + seconds, worker=WORKERS[number % 4])

    errors = dict(
        open_trace(*records, stop_t=1e4)
        .sql("SELECT filename, relative_duration_error / relative_duration FROM files")
        .fetchall()
    )

    assert errors["0.root"] == pytest.approx(1.2533 * 0.2 / 10, rel=0.15)
    assert errors["5.root"] == pytest.approx(errors["0.root"] / 2)
