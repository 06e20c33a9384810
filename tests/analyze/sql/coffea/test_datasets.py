"""View datasets."""

import pytest


def test_totals_in_order_of_cost(rows, chunk, run, move):
    def part(key, dataset, filename):
        entries = {"entry_start": 0, "entry_stop": 10}
        return chunk(key, dataset=dataset, filename=filename, treename="Events", **entries)

    assert rows(
        "SELECT dataset, files, chunks, chunk_attempts, events, bytes_read, compute_seconds, "
        "events_per_second, output_bytes, failed_attempts, compute_share, "
        "median_compute_seconds, max_compute_seconds, relative_iqr, slowest_file FROM datasets",
        part("a", "DY", "1.root"),
        part("b", "DY", "2.root"),
        part("c", "QCD", "3.root"),
        part("d", "no result", "4.root"),
        *run("a", 1.0, 2.0, run_id=1, nbytes=5),
        move(1.0, "b", "waiting>processing", worker="w1", run_id=2),
        move(2.0, "b", "processing>released", "handle-worker-cleanup-2.0"),
        *run("b", 3.0, 6.0, run_id=3, nbytes=6),
        *run("c", 1.0, 7.0, run_id=4, nbytes=7),
        *run("d", 1.0),
        chunk("a", run_id=1, bytes_read=100),
    ) == [
        ("QCD", 1, 1, 1, 10, None, 6.0, 10 / 6, 7, 0, 0.6, 6.0, 6.0, None, "3.root"),
        # 0.1 and 0.3 s per event: quartiles 0.15 and 0.25, median 0.2
        ("DY", 2, 2, 3, 20, 100, 4.0, 5.0, 11, 1, 0.4, 2.0, 3.0, pytest.approx(0.5), "2.root"),
        ("no result", 1, 0, 1, 0, None, None, None, None, 0, *[None] * 5),
    ]


def test_files_that_cannot_be_read_count(ask, chunk, run):
    """Of DY, one of two files has chunks; of TT, none."""
    unread = {"until": "metadata", "exception": "OSError()"}
    found = ask(
        chunk("a", dataset="DY", filename="1.root", entry_start=0, entry_stop=10),
        *run("a", 1.0, 2.0),
        chunk("b", run_id=2, dataset="DY", filename="2.root", **unread),
        *run("b", 1.0, 2.0, run_id=2),
        chunk("c", run_id=3, dataset="TT", filename="3.root", **unread),
        *run("c", 1.0, 2.0, run_id=3),
    )

    expected = [("DY", 2, 1, 1, 10, 1), ("TT", 1, 0, 0, 0, 1)]
    columns = "dataset, files, chunks, chunk_attempts, events, failed_attempts"
    assert found(f"SELECT {columns} FROM datasets") == expected
    assert (
        found(
            "SELECT dataset, count(*), sum(chunks), sum(chunk_attempts), sum(events), "
            "sum(failed_attempts) FROM files GROUP BY dataset ORDER BY dataset"
        )
        == expected
    )
