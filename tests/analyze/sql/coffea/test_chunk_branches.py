"""View chunk_branches."""


def test_one_row_per_attempt_and_branch(rows, chunk, run):
    identity = {"dataset": "DY", "filename": "f.root", "treename": "Events"}
    entries = {"entry_start": 0, "entry_stop": 10}
    branches = [
        {"branch": "x", "compressed_bytes": 1, "uncompressed_bytes": 2, "read_seconds": 0.5},
        {"branch": "y", "compressed_bytes": 3},
    ]
    rest = ("DY", "f.root", "Events", 0, 10, "w1", "memory", 2, "T")

    assert rows(
        "SELECT * FROM chunk_branches ORDER BY attempt, branch",
        chunk("a", **identity, **entries),
        *run("a", 1.0, 2.0, run_id=1),
        *run("a", 3.0, 4.0, run_id=2),
        chunk("a", run_id=2, branches=branches),
    ) == [("a", 2, "x", 1, 2, 0.5, *rest), ("a", 2, "y", 3, None, None, *rest)]


def test_basket_that_spans_two_chunks_counts_in_both(rows, chunk, run):
    basket = [{"branch": "x", "compressed_bytes": 100}]

    assert rows(
        "SELECT entry_start, compressed_bytes FROM chunk_branches ORDER BY entry_start",
        *run("a", 1.0, 2.0, run_id=1),
        *run("b", 1.0, 2.0, run_id=2),
        chunk("a", run_id=1, entry_start=0, entry_stop=10, branches=basket),
        chunk("b", run_id=2, entry_start=10, entry_stop=20, branches=basket),
    ) == [(0, 100), (10, 100)]
