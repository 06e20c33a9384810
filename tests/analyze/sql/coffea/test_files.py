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


def test_failed_attempts_do_not_reduce_the_rate_of_a_file(rows, chunk, run):
    """Ten events took 2 s, after an attempt that failed after 3 s."""
    failed = {"phases": [("compute", 1.0, 4.0)], "run_id": 1}

    assert rows(
        "SELECT events, compute_seconds, failed_attempts, events_per_second FROM files",
        chunk("a", dataset="DY", filename="1.root", **ENTRIES),
        *run("a", 1.0, 4.0, outcome="retried", exception="OSError('x')", **failed),
        *run("a", 5.0, 7.0, run_id=2),
    ) == [(10, 5.0, 1, 5.0)]


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
