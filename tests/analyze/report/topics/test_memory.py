"""Memory of the workers, and data transfers between them."""

import polars as pl
import pytest

from analyze.report.contexts import NOTHING, context_of
from analyze.report.reading import plain, texts
from roast_analyze.report.run import Run
from roast_analyze.report.topics import memory

GIB = 1024**3
NO_PREFIXES = pl.DataFrame(schema={"prefix": pl.String, "transfer_seconds": pl.Float64})


@pytest.fixture
def query(opened):
    """Query the transfers of a trace of some records."""
    return lambda *records: memory.query(*opened(*records))


@pytest.fixture
def fetch(move):
    """Return an attempt that fetched results, given as pairs of source and seconds."""

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
    times = {"t": 1.0, "start_t": 1.0, "stop_t": 1.5}
    ends = {"source": source, "destination": destination}
    return {"kind": "transfer", **times, **ends, "nbytes": nbytes}


def test_workers_report_their_transfers(query, worker, fetch):
    found = query(
        worker("w1", name="0"),
        worker("w2", name="1"),
        *fetch("a", ("w2", 0.5)),
        *fetch("b", ("w2", 0.25), ("w1", 1.0), ("elsewhere", 0.125)),
    )

    assert (found.recorded, found.count, found.bytes, found.seconds) == (False, 4, 0, 1.875)
    assert found.pairs.rows.rows() == [
        ("w1", "w1", 1, None, 1.0),
        ("w2", "w1", 2, None, 0.75),
        ("elsewhere", "w1", 1, None, 0.125),
    ]
    # An unknown worker is only in the table.
    assert found.cells.select("from_row", "to_row", "transfers", "seconds").rows() == [
        (0, 0, 1, 1.0), (1, 0, 2, 0.75),
    ]  # fmt: skip


def test_recorded_transfers_replace_reported_ones(opened, worker, fetch):
    trace, context = opened(
        worker("w1"),
        worker("w2"),
        *fetch("a", ("w2", 9.0)),
        transfer("w1", "w2", 1000),
        transfer("w1", "w2", 24),
        transfer("w2", "w1", 5000),
    )
    found = memory.query(trace, context)

    assert (found.recorded, found.count, found.bytes) == (True, 3, 6024)
    assert found.pairs.view == "transfers"
    assert found.pairs.rows.rows() == [("w2", "w1", 1, 5000, 0.5), ("w1", "w2", 2, 1024, 1.0)]
    assert plain(memory.section(found, context, NO_PREFIXES).sentences[-1]) == (
        "The workers sent each other 5.88 KiB in 3 transfers; the most, 4.88 KiB, from w2 to "
        "w1."
    )


@pytest.mark.exhaustive
def test_many_workers_share_rows_and_the_largest_pairs_are_listed(
    opened, section, worker, fetch
):
    trace, context = opened(
        *(worker(f"w{i}", name=f"{i}") for i in range(100)),
        *fetch("a", *((f"w{i}", i / 100) for i in range(70, 100)), worker="w0"),
    )

    found = memory.query(trace, context)
    shown = memory.section(found, context, NO_PREFIXES)

    assert found.workers.height == memory.MAP_ROWS
    assert found.workers["workers"].sum() == 100
    assert found.cells["from_row"].to_list() == list(range(28, 40))
    assert found.cells.row(-1, named=True) == {
        "from_row": 39, "to_row": 0, "transfers": 2, "bytes": 0,
        "seconds": pytest.approx(1.97),
    }  # fmt: skip
    assert (found.pairs.rows.height, found.pairs.total) == (memory.PAIR_ROWS, 30)
    assert found.pairs.rows["source"][0] == "w99"
    assert found.pairs.query.endswith("LIMIT 20")
    assert shown.plots[0].note.startswith(
        "Each of the 40 rows stands for one or more of the 100"
    )
    # A worker that was replaced has the same row.
    again = section("memory", worker("w1"), worker("w1", 5.0), *fetch("a", ("w1", 1.0)))
    assert again.plots[0].note == ""


def test_transfers_without_samples(section, worker, task, fetch):
    found = section(
        "memory", worker("w1"), worker("w2"), task("a"), *fetch("a", ("tcp://w2:1", 0.5))
    )

    reason, sentence = map(plain, found.sentences)
    assert reason.endswith("interval (1 s), or the settings excluded worker_sample.")
    assert sentence == (
        "The workers reported 1 transfer with a total duration of 500 ms; the most between two "
        "of them, 500 ms, from w2:1 to w1. a accounts for 100 % of it. Bytes were not recorded."
    )
    assert [plot.name for plot in found.plots] == ["movement"]
    assert texts(found.tables[0]) == [["tcp://w2:1", "w1", "1", "0.500"]]


def described(limit, spilled, **transfers):
    """Return the sentences about a worker that uses 3 GiB, from its samples."""
    sizes = {"memory_bytes": 3 * GIB, "memory_limit_bytes": limit, "spilled_bytes": spilled}
    frame = pl.DataFrame({"t": [1.0], "worker": ["w1"], "name": ["0"]}).with_columns(
        server_id=pl.lit("i"), managed_bytes=0, peak_memory_bytes=3 * GIB,
        **{name: pl.lit(value, pl.Int64) for name, value in sizes.items()},
    )  # fmt: skip
    run = Run(start_t=0.0, stop_t=10.0, peak_memory_bytes=3 * GIB)
    context = context_of(run, workers=frame, cluster_samples=frame, worker_samples=frame)
    found = memory.Transfers(False, 0, 0, 0.0, NOTHING, frame, frame, **transfers)
    return plain(" ".join(memory.section(found, context, NO_PREFIXES).sentences))


@pytest.mark.parametrize(
    ("limit", "spilled", "words"),
    [
        (4 * GIB, 0, "3 GiB of 4 GiB. The fullest worker reached 75 % of its limit. Nothing"),
        (None, 1024, "3 GiB; no limit is set. At most 1 KiB were spilled to disk."),
        (60 * GIB, 0, "3 GiB of 60 GiB. The fullest worker reached 5 % of its limit. Nothing"),
    ],
)
def test_memory_and_the_limit(limit, spilled, words):
    made = described(limit, spilled)

    assert made.startswith(f"Peak memory of all workers was {words}")
    far = "The limits are far above the curves and are not drawn." in made
    assert far == (limit == 60 * GIB)
    assert made.endswith(" The workers reported no transfers between them.")


@pytest.mark.parametrize(("spilled", "has_spills"), [(0, True), (None, False)])
def test_spilling_between_samples_or_without_a_measurement(spilled, has_spills):
    assert "spilled" not in described(4 * GIB, spilled, has_spills=has_spills)


@pytest.mark.parametrize(
    ("record", "has_spills"),
    [
        ({"kind": "spill", "key": "a", "start": "memory", "finish": "disk"}, True),
        ({"kind": "fine_metric", "context": "execute", "activity": "disk-write",
          "unit": "bytes", "delta": 5, "value": 5}, True),
        ({"kind": "event", "topic": "x"}, False),
    ],
)  # fmt: skip
def test_records_of_spilling(open_trace, worker, record, has_spills):
    trace = open_trace(worker("w1"), {**record, "t": 2.0, "worker": "w1"})
    nobody = pl.DataFrame(schema={"worker": pl.String, "name": pl.String})

    assert memory.query(trace, context_of(workers=nobody)).has_spills == has_spills


def test_the_fullest_worker_was_killed(sentences, worker, sample, gone):
    killed = {"worker": "w1", "pid": 7, "rss": 990}

    assert sentences(
        "memory",
        worker("w1", memory_limit=1000),
        sample(1.0, memory=500, memory_limit=1000, spilled_disk=0),
        {"kind": "event", "t": 1.9, "topic": "worker-restart-memory", "payload": killed},
        gone("w1", 2.0, "handle-worker-cleanup-2.0"),
    ).startswith(
        "Peak memory of all workers was 990 B of 1,000 B. The fullest worker reached 99 % of "
        "its limit. Nothing was spilled to disk."
    )


def test_the_limit_of_a_worker_is_drawn_without_that_of_all(sentences, worker, sample):
    amounts = {"w1": 3, "w2": 0, "w3": 0}
    samples = [
        sample(1.0, name, memory=amount * 1024**3, memory_limit=4 * 1024**3)
        for name, amount in amounts.items()
    ]

    made = sentences("memory", *map(worker, amounts), *samples)

    assert " The limit of all workers is far above the curve and is not drawn." in made


def heatmap(*rows, recorded=False, names=("0", None, "<b>x"), workers=(1, 1, 4)):
    """Return the heatmap of cells ``(from_row, to_row, bytes, seconds)``."""
    columns = ("from_row", "to_row", "bytes", "seconds")
    types = (pl.Int64, pl.Int64, pl.Int64, pl.Float64)
    cells = pl.DataFrame(rows, schema=dict(zip(columns, types, strict=True)), orient="row")
    addresses = [f"tcp://{'abc'[row % 3]}:1" for row in range(len(names))]
    rows = pl.DataFrame(
        {"row": range(len(names)), "worker": addresses, "name": names, "workers": workers}
    )
    return memory.heatmap(memory.Transfers(recorded, 0, 0, 0.0, None, rows, cells))


def test_a_heatmap_of_sources_and_destinations():
    figure = heatmap((0, 1, None, 2.0), (2, 0, None, 0.5))

    (drawn,) = figure.data
    assert drawn.z == ([None, 2.0, None], [None, None, None], [0.5, None, None])
    assert (drawn.zmin, drawn.zmax) == (0, 2.0)
    assert drawn.meta["columns"] == {"x": "destination", "y": "source", "z": "seconds_in_s"}
    names = ("worker 0", "b:1", "&lt;b&gt;x and 3 more")
    assert figure.layout.yaxis.ticktext == figure.layout.xaxis.ticktext == names
    assert figure.layout.xaxis.showticklabels
    assert not heatmap(names=[None] * 40, workers=[1] * 40).layout.xaxis.showticklabels


def test_units_of_the_heatmap():
    mebibytes = heatmap((0, 1, 3 * 1024**2, 1.0), recorded=True).data[0]

    assert (mebibytes.z[0][1], mebibytes.colorbar.ticktext) == (3.0, ("0", "3 MiB"))
    assert heatmap((0, 1, None, 0.02)).data[0].colorbar.ticktext == ("0", "20 ms")
