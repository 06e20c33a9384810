import pytest
from roast_analyze.report.gathered import transfers as movement
from roast_analyze.report.gathered import workers


@pytest.fixture
def moved(open_trace):
    """What moved in a trace of some records."""

    def moved(*records):
        trace = open_trace(*records)
        return movement.gather(trace, workers.everyone(trace))

    return moved


@pytest.fixture
def fetch(move):
    """An attempt on w1 that fetched, given as pairs of source and seconds."""

    def fetch(key, *fetches, worker="w1"):
        parts = [
            {"action": "transfer", "start": 1.0, "stop": 1.0 + seconds, "source": source}
            for source, seconds in fetches
        ]
        compute = {"action": "compute", "start": 2.0, "stop": 3.0}
        return (
            move(0.5, key, "waiting>processing", worker=worker),
            move(3.0, key, "processing>memory", worker=worker, startstops=[*parts, compute]),
        )

    return fetch


def transfer(source: str, destination: str, nbytes: int) -> dict:
    ends = {"source": source, "destination": destination}
    return {
        "kind": "transfer", "t": 1.0, "start_t": 1.0, "stop_t": 1.5, "nbytes": nbytes, **ends,
    }  # fmt: skip


def test_without_a_record_workers_tell_whom_they_fetched_from(moved, worker, fetch):
    found = moved(
        worker("w1", name="0"),
        worker("w2", name="1"),
        *fetch("a", ("w2", 0.5)),
        *fetch("b", ("w2", 0.25), ("w1", 1.0)),
    )

    assert (found.recorded, found.transfers, found.bytes, found.seconds) == (False, 3, 0, 1.75)
    assert found.pairs.rows.rows() == [("w1", "w1", 1, None, 1.0), ("w2", "w1", 2, None, 0.75)]
    assert found.cells.select("from_row", "to_row", "transfers", "seconds").rows() == [
        (0, 0, 1, 1.0),
        (1, 0, 2, 0.75),
    ]


def test_a_record_of_transfers_is_what_counts(moved, worker, fetch):
    found = moved(
        worker("w1"),
        worker("w2"),
        *fetch("a", ("w2", 9.0)),
        transfer("w1", "w2", 1000),
        transfer("w1", "w2", 24),
        transfer("w2", "w1", 5000),
    )

    assert (found.recorded, found.transfers, found.bytes) == (True, 3, 6024)
    assert found.pairs.view == "transfers"
    assert found.pairs.rows.rows() == [("w2", "w1", 1, 5000, 0.5), ("w1", "w2", 2, 1024, 1.0)]


def test_nothing_moved(moved, worker):
    found = moved(worker("w1"))

    assert (found.recorded, found.transfers, found.pairs.total) == (False, 0, 0)
    assert found.cells.is_empty()


def test_many_workers_share_rows_in_the_order_of_their_names(moved, worker, fetch):
    there = [worker(f"w{i}", name=f"{i}") for i in range(100)]

    found = moved(
        *there, *fetch("a", ("w99", 1.0), worker="w0"), *fetch("b", ("w98", 2.0), worker="w1")
    )

    assert found.workers.height == movement.MAP_ROWS
    assert found.workers["workers"].sum() == 100
    assert found.cells.select("from_row", "to_row", "seconds").rows() == [(39, 0, 3.0)]


def test_a_worker_that_nobody_saw_is_in_the_table_only(moved, worker, fetch):
    found = moved(worker("w1"), *fetch("a", ("elsewhere", 1.0)))

    assert found.pairs.rows["source"].to_list() == ["elsewhere"]
    assert found.cells.is_empty()


def test_of_many_pairs_the_largest_are_listed(moved, worker, fetch):
    found = moved(worker("w1"), *fetch("a", *((f"x{i:02}", i / 10) for i in range(1, 31))))

    assert (found.pairs.rows.height, found.pairs.total) == (movement.PAIR_ROWS, 30)
    assert found.pairs.rows["source"][0] == "x30"
    assert found.pairs.query.endswith("LIMIT 20")
