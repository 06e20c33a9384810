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


def test_sums_cover_measured_values(rows, chunk, run):
    about = {"dataset": "DY", "entry_start": 0, "entry_stop": 10}
    times = {"start_t": 1.0, "stop_t": 2.0}
    columns = (
        "open_seconds, process_seconds, read_seconds, cpu_seconds, wait_seconds, requests, "
        "bytes_read, bytes_per_second, compressed_bytes, uncompressed_bytes, "
        "compression_ratio, branch_share, file_read_ratio"
    )
    sizes = [
        [{"branch": "x", "compressed_bytes": 10, "uncompressed_bytes": 40}],
        [{"branch": "x", "compressed_bytes": 30, "uncompressed_bytes": 40}],
    ]
    measured = [
        {
            "open_seconds": 0.25, "process_seconds": 0.5, "read_seconds": 0.125,
            "cpu_seconds": 0.75, "requests": 3, "bytes_read": 100, "branches": branches,
            "file_branches": 4, "file_bytes": 1000, **times,
        }
        for branches in sizes
    ]  # fmt: skip

    assert rows(
        f"SELECT {columns} FROM datasets",
        *(chunk(key, filename=f"{key}.root", **about) for key in "abc"),
        *run("a", 1.0, 3.0, run_id=1),
        *run("b", 1.0, 3.0, run_id=2),
        *run("c", 1.0, 9.0, run_id=3),
        chunk("a", run_id=1, **measured[0]),
        chunk("b", run_id=2, **measured[1]),
    ) == [(0.5, 1.0, 0.25, 1.5, 0.5, 6, 200, 50.0, 40, 80, 2.0, 0.25, 0.1)]
    assert rows(
        f"SELECT {columns} FROM datasets", chunk("a", **about), *run("a", 1.0, 2.0)
    ) == [(None,) * 13]


def test_recomputed_chunk_counts_once_and_resubmitted_chunk_twice(rows, chunk, run, task):
    identity = {"dataset": "DY", "entry_start": 0, "entry_stop": 10}

    assert rows(
        "SELECT datasets.chunks, datasets.chunk_attempts, datasets.events, run.chunks, "
        "run.events, files.chunks FROM datasets, run, files",
        task("lost", 0.0),
        chunk("lost", **identity),
        *run("lost", 1.0, 2.0, worker="w1"),
        *run("lost", 3.0, 4.0, worker="w2"),
        task("again", 0.0),
        chunk("again", **identity),
        *run("again", 1.0, 2.0),
        task("again", 5.0),
        chunk("again", **identity),
        *run("again", 6.0, 7.0),
    ) == [(3, 4, 30, 3, 30, 3)]
