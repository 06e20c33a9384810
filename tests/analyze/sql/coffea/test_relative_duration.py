"""relative_duration and is_slow of files and workers."""

import random

import pytest

WORKERS = ["w0", "w1", "w2", "w3"]
EVENTS = 1000


def times(files, workers, chunks, noise, slow, seed=0):
    """Return chunks ``(file, worker, seconds)``, of which some take longer."""
    draw = random.Random(seed)
    for file in files:
        for _ in range(chunks):
            worker = draw.choice(workers)
            factor = slow.get(file, 1.0) * slow.get(worker, 1.0)
            yield file, worker, factor * draw.lognormvariate(0.0, noise)


@pytest.fixture
def relative_duration(open_trace, worker, chunk, run):
    """Return relative_duration and is_slow of files and workers for a trace of chunks."""

    def relative_duration(chunks):
        chunks = list(chunks)
        records = [worker(name) for name in sorted({name for _, name, _ in chunks})]
        for number, (file, name, seconds) in enumerate(chunks):
            entries = {"entry_start": number * EVENTS, "entry_stop": (number + 1) * EVENTS}
            dataset = file.partition("_")[0]
            records.append(chunk(f"c{number}", dataset=dataset, filename=file, **entries))
            records += run(f"c{number}", float(number), number + seconds, worker=name)
        trace = open_trace(*records, stop_t=1e4)
        told = trace.sql(
            "SELECT filename, relative_duration, is_slow FROM files "
            "UNION ALL SELECT worker, relative_duration, is_slow FROM workers"
        ).fetchall()
        return {name: value for name, value, _ in told}, {name for name, _, bad in told if bad}

    return relative_duration


FILES = [f"{dataset}_{i}.root" for dataset in ("DY", "TT") for i in range(6)]


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_slow_file_and_slow_worker_are_separated(relative_duration, noise):
    slow = {"TT_3.root": 3.0, "w2": 2.0}

    found, called_slow = relative_duration(times(FILES, WORKERS, 20, noise, slow))

    assert called_slow == set(slow)
    assert found["TT_3.root"] == pytest.approx(3.0, rel=0.01 + noise)
    assert found["w2"] == pytest.approx(2.0, rel=0.01 + noise / 2)
    others = [value for name, value in found.items() if name not in slow]
    assert len(others) == 14
    assert others == pytest.approx([1.0] * 14, abs=0.01 + noise)


@pytest.mark.parametrize("seed", range(3))
def test_random_durations_are_not_slow(relative_duration, seed):
    _, called_slow = relative_duration(times(FILES * 5, WORKERS, 4, 0.5, {}, seed))

    assert called_slow == set()


def test_slow_dataset_does_not_make_its_files_slow(relative_duration):
    heavy = {f"TT_{i}.root": 5.0 for i in range(6)}

    found, called_slow = relative_duration(times(FILES, WORKERS, 20, 0.1, heavy))

    assert called_slow == set()
    assert found["TT_0.root"] == pytest.approx(1.0, abs=0.2)


def test_null_if_files_and_workers_cannot_be_separated(relative_duration):
    chunks = [
        *times(["DY_0.root", "DY_1.root"], ["w0", "w1"], 10, 0.0, {}),
        *times(["DY_2.root"], ["w2"], 10, 0.0, {"DY_2.root": 9.0}),  # the file, or w2?
        *times(["TT_0.root"], ["w0", "w1"], 10, 0.0, {"TT_0.root": 9.0}),  # or all of TT?
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


def test_slow_needs_three_chunks(relative_duration):
    few = [("DY_9.root", "w0", 5.0), ("DY_9.root", "w1", 5.0)]

    found, called_slow = relative_duration([*times(FILES, WORKERS, 10, 0.0, {}), *few])

    assert found["DY_9.root"] == pytest.approx(5.0)
    assert called_slow == set()
