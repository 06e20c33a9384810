"""The longest computations one by one, all others added up by bucket."""

import polars as pl
import pytest

from roast_analyze.report.topics.timeline import task_stream


@pytest.fixture
def stream(opened):
    """Query the task stream of a trace of some records."""

    def stream(*records, stop_t=100.0, **bounds):
        return task_stream.query(*opened(*records, stop_t=stop_t), **bounds)

    return stream


def rows(frame, *names):
    return frame.select(names).rows()


def test_a_computation_is_on_the_lane_of_its_thread(stream, worker, task, run):
    found = stream(
        worker("w1"), worker("w2"), task("a-1"), task("a-2"), task("b-3"),
        *run("a-1", 1.0, 3.0, thread=8),
        *run("a-2", 2.0, 5.0, thread=9),
        *run("b-3", 4.0, 4.5, "w2", thread=8),
    )  # fmt: skip

    assert rows(found.workers, "worker", "lanes") == [("w1", 2), ("w2", 1)]
    assert sorted(rows(found.bars, "lane", "key", "start_t", "stop_t")) == [
        (0, "a-1", 1.0, 3.0),
        (1, "a-2", 2.0, 5.0),
        (2, "b-3", 4.0, 4.5),
    ]
    assert rows(found.kinds, "kind", "prefix", "dataset", "attempts", "seconds") == [
        (0, "a", None, 2, 5.0),
        (1, "b", None, 1, 0.5),
    ]
    assert (found.runs, found.hidden_runs, found.cells.height) == (3, 0, 0)


def test_other_computations_are_divided_between_buckets(opened, worker, run):
    trace, context = opened(
        worker("w1"),
        *run("long", 0.0, 50.0),
        *run("short", 51.0, 51.25),
        *run("across", 53.5, 55.25),
        stop_t=120.0,
    )

    for most_cells, width, cells in [
        (60, 1.0, [(0, 51, 0.25), (0, 53, 0.5), (0, 54, 1.0), (0, 55, 0.25)]),
        # Buckets are merged until there are few enough sums.
        (1, 12.0, [(0, 4, 2.0)]),
    ]:
        found = task_stream.query(trace, context, most_bars=1, most_cells=most_cells)

        assert rows(found.bars, "key") == [("long",)]
        assert found.bucket_seconds == width
        assert rows(found.cells, "lane", "cell", "seconds") == cells


def test_bars_and_sums_contain_all_time(opened, worker, task, run):
    records = [worker("w1"), worker("w2")]
    expected = {}
    for number in range(100):
        key, address = f"{'ab'[number % 2]}-{number}", f"w{1 + number % 2}"
        start, stop = 0.9 * number, 0.9 * number + 0.01 * (number + 1)
        records += [task(key), *run(key, start, stop, address)]
        lane = number % 2
        expected[lane] = expected.get(lane, 0.0) + stop - start
    trace, context = opened(*records, stop_t=100.0)

    for most_bars in (1, 20):
        found = task_stream.query(trace, context, most_bars=most_bars, most_cells=50)

        parts = pl.concat([f.select("lane", "seconds") for f in (found.bars, found.cells)])
        sums = dict(parts.group_by("lane").agg(pl.col("seconds").sum()).iter_rows())
        assert sums == pytest.approx(expected)
        assert found.bars.height == most_bars
        assert found.bars["seconds"].min() >= 0.01 * (100 - most_bars)
        assert found.cells.height <= 50
        assert found.cells["cell"].max() * found.bucket_seconds < 100.0


def test_equally_long_computations_are_drawn_once(stream, worker, run):
    records = [line for i in range(10) for line in run(f"a-{i}", float(i), i + 0.5)]

    found = stream(worker("w1"), *records, most_bars=4)

    assert found.bars.height == 4
    assert found.bars["seconds"].sum() + found.cells["seconds"].sum() == pytest.approx(5.0)
    # Those that also begin at the same time are all drawn, or all added up.
    together = [line for i in range(4) for line in run(f"b-{i}", 1.0, 2.0, thread=i)]
    found = stream(worker("w1"), *run("a", 0.0, 3.0), *together, most_bars=3)
    assert rows(found.bars, "key") == [("a",)]
    assert found.cells["seconds"].sum() == pytest.approx(4.0)


def test_transfers_and_lost_attempts(stream, worker, gone, run, move):
    parts = [
        {"action": "transfer", "start": 0.25, "stop": 1.0},
        {"action": "compute", "start": 1.0, "stop": 2.0},
    ]
    found = stream(
        worker("w1"),
        *run("a-1", 1.0, 2.0, thread=5, startstops=parts),
        *run("a-2", 1.0, 3.0, thread=6),
        move(4.0, "a-3", "waiting>processing", worker="w1"),
        gone("w1", 5.0, "handle-worker-cleanup-5.0"),
        move(5.0, "a-3", "processing>released", "handle-worker-cleanup-5.0"),
    )

    assert rows(found.transfers, "lane", "start_t", "stop_t") == [(0, 0.25, 1.0)]
    # A lost attempt has no thread: it is on the first lane of its worker.
    assert rows(found.marks, "lane", "t", "outcome", "key") == [(0, 5.0, "lost", "a-3")]
    assert rows(found.workers, "lanes") == [(2,)]
    assert rows(found.presence, "row", "removed_t", "lost") == [(0, 5.0, True)]
    assert (found.transfer_runs, found.runs, found.failures) == (1, 2, 1)


def test_datasets_and_files_come_from_chunks(stream, worker, task, run, chunk):
    z = {"dataset": "Z", "filename": "z.root", "entry_start": 0, "entry_stop": 10}
    found = stream(
        worker("w1"), task("P-1"), chunk("P-1", **z), task("m-2"),
        *run("P-1", 1.0, 5.0, run_id=1), chunk("P-1", run_id=1, start_t=1.0, stop_t=5.0, **z),
        *run("m-2", 5.0, 6.0),
    )  # fmt: skip

    assert rows(found.kinds, "prefix", "dataset") == [("P", "Z"), ("m", None)]
    assert rows(found.bars, "key", "filename", "entry_start", "entry_stop") == [
        ("P-1", "z.root", 0, 10),
        ("m-2", None, None, None),
    ]


def test_pairs_beyond_the_limit_are_merged_by_prefix(
    stream, worker, task, run, chunk, monkeypatch
):
    monkeypatch.setattr(task_stream, "MOST_KINDS", 1)
    records = []
    for key, dataset, seconds in (("P-1", "Z", 5.0), ("P-2", "W", 2.0), ("P-3", "Q", 1.0)):
        read = {"dataset": dataset, "filename": "f.root", "run_id": 1}
        records += [task(key), *run(key, 1.0, 1.0 + seconds, run_id=1)]
        records.append(chunk(key, start_t=1.0, stop_t=1.0 + seconds, **read))
    found = stream(worker("w1"), *records, task("m-4"), *run("m-4", 5.0, 5.5))

    assert rows(found.kinds, "prefix", "of_prefix", "dataset", "of_dataset", "attempts") == [
        ("P", True, "Z", True, 1),
        ("P", True, None, False, 2),
        (None, False, None, False, 1),
    ]
    assert found.kinds["seconds"].to_list() == [5.0, 3.0, 0.5]
    assert sorted(rows(found.bars, "key", "kind")) == [
        ("P-1", 0), ("P-2", 1), ("P-3", 1), ("m-4", 2)
    ]  # fmt: skip


def test_chunk_attempts_replace_tasks_without_a_cluster(stream, chunk):
    found = stream(
        chunk("c-1", run_id=1, worker="host:1", thread=1, dataset="Z", filename="z.root",
              entry_start=0, entry_stop=10, start_t=1.0, stop_t=5.0, events=10),
    )  # fmt: skip

    assert rows(found.workers, "worker", "lanes") == [("host:1", 1)]
    assert rows(found.kinds, "prefix", "dataset", "attempts") == [(None, "Z", 1)]
    assert rows(found.bars, "start_t", "stop_t", "filename") == [(1.0, 5.0, "z.root")]


def test_hidden_workers_are_counted_and_those_with_failures_shown(stream, worker, run, move):
    records = [worker(f"w{i}") for i in range(4)]
    for i in range(4):
        records += run(f"a-{i}", 1.0, 2.0 + i, f"w{i}")
    failed = {"startstops": [{"action": "compute", "start": 8.0, "stop": 8.5}]}
    records += [
        move(8.0, "b", "waiting>processing", worker="w0"),
        move(8.5, "b", "processing>erred", "task-erred-1", worker="w0", thread=1, **failed),
    ]

    found = stream(*records, most_rows=2)

    assert rows(found.workers, "worker") == [("w0",), ("w3",)]
    assert (found.hidden_rows, found.hidden_runs, found.runs) == (2, 2, 5)
