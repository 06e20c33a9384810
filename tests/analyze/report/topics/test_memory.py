"""Memory of the workers, and data transfers between them."""

import polars as pl
import pytest

from roast_analyze.report.topics import transfers


@pytest.fixture
def query(opened):
    """Query the transfers of a trace of some records."""
    return lambda *records: transfers.query(*opened(*records))


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


def test_workers_report_their_transfers(query, worker, fetch):
    found = query(
        worker("w1", name="0"),
        worker("w2", name="1"),
        *fetch("a", ("w2", 0.5)),
        *fetch("b", ("w2", 0.25), ("w1", 1.0)),
    )

    assert (found.recorded, found.count, found.bytes, found.seconds) == (False, 3, 0, 1.75)
    assert found.pairs.rows.rows() == [("w1", "w1", 1, None, 1.0), ("w2", "w1", 2, None, 0.75)]
    assert found.cells.select("from_row", "to_row", "transfers", "seconds").rows() == [
        (0, 0, 1, 1.0),
        (1, 0, 2, 0.75),
    ]


def test_recorded_transfers_replace_reported_ones(query, worker, fetch):
    found = query(
        worker("w1"),
        worker("w2"),
        *fetch("a", ("w2", 9.0)),
        transfer("w1", "w2", 1000),
        transfer("w1", "w2", 24),
        transfer("w2", "w1", 5000),
    )

    assert (found.recorded, found.count, found.bytes) == (True, 3, 6024)
    assert found.pairs.view == "transfers"
    assert found.pairs.rows.rows() == [("w2", "w1", 1, 5000, 0.5), ("w1", "w2", 2, 1024, 1.0)]


def test_no_transfers(query, worker):
    found = query(worker("w1"))

    assert (found.recorded, found.count, found.pairs.total) == (False, 0, 0)
    assert found.cells.is_empty()


def test_many_workers_share_rows(query, worker, fetch):
    there = [worker(f"w{i}", name=f"{i}") for i in range(100)]

    found = query(
        *there, *fetch("a", ("w99", 1.0), worker="w0"), *fetch("b", ("w98", 2.0), worker="w1")
    )

    assert found.workers.height == transfers.MAP_ROWS
    assert found.workers["workers"].sum() == 100
    assert found.cells.select("from_row", "to_row", "seconds").rows() == [(39, 0, 3.0)]


def test_an_unknown_worker_is_only_in_the_table(query, worker, fetch):
    found = query(worker("w1"), *fetch("a", ("elsewhere", 1.0)))

    assert found.pairs.rows["source"].to_list() == ["elsewhere"]
    assert found.cells.is_empty()


def test_the_largest_pairs_are_listed(query, worker, fetch):
    found = query(worker("w1"), *fetch("a", *((f"x{i:02}", i / 10) for i in range(1, 31))))

    assert (found.pairs.rows.height, found.pairs.total) == (transfers.PAIR_ROWS, 30)
    assert found.pairs.rows["source"][0] == "x30"
    assert found.pairs.query.endswith("LIMIT 20")


def test_sentences_about_transfers(sentences, worker, task, fetch):
    reported = worker("w1"), worker("w2"), task("a"), *fetch("a", ("tcp://w2:1", 0.5))
    recorded = (
        transfer("tcp://b:1", "tcp://a:1", 2048),
        transfer("tcp://b:1", "tcp://a:1", 2048),
    )

    assert sentences("memory", *reported).partition("interval (1 s). To sample more often. ")[
        2
    ] == (
        "The workers reported 1 transfer with a total duration of 500 ms; the most between two "
        "of them, 500 ms, from w2:1 to w1. a accounts for 100 % of it. Bytes were not recorded."
    )
    assert sentences("memory", *recorded).endswith(
        "The workers sent each other 4 KiB in 2 transfers; the most, 4 KiB, from b:1 to a:1."
    )


def test_memory_and_the_limit(sentences, worker, sample):
    fields = {"memory": 3 * 1024**3, "memory_limit": 4 * 1024**3, "nthreads": 1, "cpu": 50.0}

    assert sentences("memory", worker("w1"), sample(1.0, **fields)) == (
        "Peak memory of all workers was 3 GiB of 4 GiB. The fullest worker reached 75 % of its "
        "limit. Nothing was spilled to disk. The workers reported no transfers between them."
    )


def test_transfers_are_shown_if_there_are_any(section, worker, task, fetch):
    found = section("memory", worker("w1"), worker("w2"), task("a"), *fetch("a", ("w2", 0.5)))

    assert [plot.name for plot in found.plots] == ["movement"]
    assert [[cell.text for cell in row] for row in found.tables[0].rows] == [
        ["w2", "w1", "1", "0.500"]
    ]


WORKERS = pl.DataFrame(
    {
        "row": [0, 1, 2],
        "worker": ["tcp://a:1", "tcp://b:1", "tcp://c:1"],
        "name": ["0", None, "<b>x"],
        "workers": [1, 1, 4],
    }
)


def heatmap(*rows, recorded=False, workers=WORKERS):
    """The heatmap of cells ``(from_row, to_row, bytes, seconds)``."""
    schema = {
        "from_row": pl.Int64,
        "to_row": pl.Int64,
        "bytes": pl.Int64,
        "seconds": pl.Float64,
    }
    cells = pl.DataFrame(rows, schema=schema, orient="row")
    return transfers.figure(transfers.Transfers(recorded, 0, 0, 0.0, None, workers, cells))


def test_a_heatmap_of_sources_and_destinations():
    figure = heatmap((0, 1, None, 2.0), (2, 0, None, 0.5))

    (drawn,) = figure.data
    assert drawn.z == ([None, 2.0, None], [None, None, None], [0.5, None, None])
    assert (drawn.zmin, drawn.zmax) == (0, 2.0)
    assert drawn.meta["columns"] == {"x": "destination", "y": "source", "z": "seconds_in_s"}
    names = ("worker 0", "b:1", "&lt;b&gt;x and 3 more")
    assert figure.layout.yaxis.ticktext == figure.layout.xaxis.ticktext == names
    assert figure.layout.xaxis.showticklabels


def test_units_of_the_heatmap():
    mebibytes = heatmap((0, 1, 3 * 1024**2, 1.0), recorded=True).data[0]

    assert (mebibytes.z[0][1], mebibytes.colorbar.ticktext) == (3.0, ("0", "3 MiB"))
    assert heatmap((0, 1, None, 0.02)).data[0].colorbar.ticktext == ("0", "20 ms")


def test_many_columns_have_no_names():
    many = pl.DataFrame(
        {"row": range(40), "worker": [f"tcp://w:{i}" for i in range(40)]}
    ).with_columns(name=None, workers=1)

    assert not heatmap(workers=many).layout.xaxis.showticklabels
