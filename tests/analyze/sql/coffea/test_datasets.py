"""Totals by dataset."""


def test_totals_the_costliest_first(rows, chunk, run, move):
    def part(key, dataset, filename):
        entries = {"entry_start": 0, "entry_stop": 10}
        return chunk(key, dataset=dataset, filename=filename, treename="Events", **entries)

    assert rows(
        "SELECT * FROM datasets",
        part("a", "DY", "1.root"),
        part("b", "DY", "2.root"),
        part("c", "QCD", "3.root"),
        *run("a", 1.0, 2.0, run_id=1, nbytes=5),
        move(1.0, "b", "waiting>processing", worker="w1", run_id=2),
        move(2.0, "b", "processing>released", "handle-worker-cleanup-2.0"),
        *run("b", 3.0, 4.0, run_id=3, nbytes=6),
        *run("c", 1.0, 5.0, run_id=4, nbytes=7),
        chunk("a", run_id=1, bytes_read=100),
    ) == [
        ("QCD", 1, 1, 1, 10, None, 4.0, 2.5, 7, 0, "T"),
        ("DY", 2, 2, 3, 20, 100, 2.0, 10.0, 11, 1, "T"),
    ]


def test_a_dataset_of_which_nothing_ended_well(rows, chunk, move):
    assert rows(
        "SELECT dataset, chunks, chunk_attempts, events, events_per_second FROM datasets",
        chunk("a", dataset="DY", entry_start=0, entry_stop=10),
        move(1.0, "a", "waiting>processing", worker="w1"),
    ) == [("DY", 0, 1, 0, None)]


def test_a_chunk_whose_result_was_lost_counts_once_and_one_submitted_again_twice(
    rows, chunk, run, task
):
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
