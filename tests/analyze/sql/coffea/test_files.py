"""View files."""

import pytest

ENTRIES = {"entry_start": 0, "entry_stop": 10}


def test_file_in_two_datasets_has_two_rows(rows, chunk, run):
    datasets = {"a": "DY", "b": "DY", "c": "QCD"}
    about = {"filename": "f.root", "treename": "Events", **ENTRIES}

    assert rows(
        "SELECT dataset, filename, treename, chunks, chunk_attempts, events, bytes_read, "
        "compute_seconds, events_per_second, workers, failed_attempts, compute_share, "
        "slowest_worker FROM files",
        *(chunk(key, dataset=dataset, **about) for key, dataset in datasets.items()),
        *run("a", 1.0, 2.0, "w1"),
        *run("b", 1.0, 5.0, "w2"),
        *run("c", 1.0, 2.0, "w1", "erred"),
    ) == [
        ("DY", "f.root", "Events", 2, 2, 20, None, 5.0, 4.0, 2, 0, 1.0, "w2"),
        ("QCD", "f.root", "Events", 0, 1, 0, None, None, None, 1, 1, None, None),
    ]


def test_bytes_and_branches_of_a_file(rows, chunk, run):
    about = {"dataset": "DY", "filename": "f.root", "file_branches": 10, "file_bytes": 1000}
    told = {"source": "RNTuple", **about}
    x = {"branch": "x", "compressed_bytes": 10, "uncompressed_bytes": 20}
    y = {"branch": "y", "compressed_bytes": 10, "uncompressed_bytes": 40}
    a = {"entry_start": 0, "entry_stop": 5, "bytes_read": 100, "branches": [x], **told}
    b = {"entry_start": 5, "entry_stop": 9, "bytes_read": 200, "branches": [x, y], **told}

    assert rows(
        "SELECT source, bytes_read, bytes_per_second, file_bytes, file_read_ratio, "
        "file_branches, branches_read, branch_share, compressed_bytes, compression_ratio "
        "FROM files",
        *run("a", 1.0, 2.0, run_id=1),
        *run("b", 1.0, 2.0, run_id=2),
        # Recomputed after its result was lost: not another part of the file.
        *run("b", 3.0, 4.0, run_id=3),
        chunk("a", run_id=1, **a),
        chunk("b", run_id=2, **b),
        chunk("b", run_id=3, **b),
    ) == [("RNTuple", 500, 500 / 3, 1000, 0.3, 10, 2, 0.2, 50, 140 / 50)]


@pytest.mark.parametrize(("first", "second"), [("w1", "w2"), ("w2", "w1")])
def test_slowest_of_a_tie_is_the_first(ask, chunk, run, first, second):
    found = ask(
        *(chunk(key, dataset="DY", filename="1.root", **ENTRIES) for key in "abc"),
        chunk("d", dataset="DY", filename="2.root", **ENTRIES),
        *run("a", 1.0, 2.0, "w1"),
        *run("b", 1.0, 3.0, first),
        *run("c", 1.0, 3.0, second),
        *run("d", 1.0, 3.0, first),
    )

    assert found("SELECT slowest_worker FROM files WHERE chunks = 3") == [("w1",)]
    assert found("SELECT slowest_file FROM datasets") == [("1.root",)]
