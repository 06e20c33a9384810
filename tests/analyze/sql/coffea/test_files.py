"""View files."""

import pytest


def test_file_in_two_datasets_has_two_rows(rows, chunk, run, move):
    def part(key, dataset):
        entries = {"entry_start": 0, "entry_stop": 10}
        return chunk(key, dataset=dataset, filename="f.root", treename="Events", **entries)

    assert rows(
        "SELECT dataset, filename, treename, chunks, chunk_attempts, events, bytes_read, "
        "compute_seconds, events_per_second, workers, failed_attempts, compute_share, "
        "slowest_worker FROM files",
        part("a", "DY"),
        part("b", "DY"),
        part("c", "QCD"),
        *run("a", 1.0, 2.0, worker="w1"),
        *run("b", 1.0, 5.0, worker="w2"),
        move(1.0, "c", "waiting>processing", worker="w1"),
        move(2.0, "c", "processing>erred", "task-erred-2.0"),
    ) == [
        ("DY", "f.root", "Events", 2, 2, 20, None, 5.0, 4.0, 2, 0, 1.0, "w2"),
        ("QCD", "f.root", "Events", 0, 1, 0, None, None, None, 1, 1, None, None),
    ]


def test_bytes_and_branches_of_a_file(rows, chunk, run):
    about = {"dataset": "DY", "filename": "f.root", "file_branches": 10, "file_bytes": 1000}
    told = {"source": "RNTuple", **about}
    x = {"branch": "x", "compressed_bytes": 10, "uncompressed_bytes": 20}
    y = {"branch": "y", "compressed_bytes": 10, "uncompressed_bytes": 40}

    assert rows(
        "SELECT source, bytes_read, bytes_per_second, file_bytes, file_read_ratio, "
        "file_branches, "
        "branches_read, branch_share, compressed_bytes, compression_ratio FROM files",
        *run("a", 1.0, 2.0, run_id=1),
        *run("b", 1.0, 2.0, run_id=2),
        # Recomputed after its result was lost: not another part of the file.
        *run("b", 3.0, 4.0, run_id=3),
        chunk("a", run_id=1, entry_start=0, entry_stop=5, bytes_read=100, branches=[x], **told),
        chunk(
            "b", run_id=2, entry_start=5, entry_stop=9, bytes_read=200, branches=[x, y], **told
        ),
        chunk(
            "b", run_id=3, entry_start=5, entry_stop=9, bytes_read=200, branches=[x, y], **told
        ),
    ) == [("RNTuple", 500, 500 / 3, 1000, 0.3, 10, 2, 0.2, 50, 140 / 50)]


@pytest.mark.parametrize("first", ["w1", "w2"])
def test_slowest_worker_of_a_tie_is_the_first(rows, chunk, run, first):
    other = {"w1": "w2", "w2": "w1"}[first]
    about = {"dataset": "DY", "entry_start": 0, "entry_stop": 10}

    for question in (
        "SELECT slowest_worker FROM files WHERE filename = '1.root' AND chunks = 3",
        "SELECT replace(slowest_file, '1.root', 'w1') FROM datasets",
    ):
        assert rows(
            question,
            *(chunk(key, filename="1.root", **about) for key in "abc"),
            chunk("d", filename="2.root", **about),
            *run("a", 1.0, 2.0, worker="w1"),
            *run("b", 1.0, 3.0, worker=first),
            *run("c", 1.0, 3.0, worker=other),
            *run("d", 1.0, 3.0, worker=first),
        ) == [("w1",)]
