"""What an attempt at a chunk read of each branch."""


def test_one_row_per_attempt_and_branch(rows, chunk, run):
    branches = [
        {"branch": "x", "compressed_bytes": 1, "uncompressed_bytes": 2},
        {"branch": "y", "compressed_bytes": 3},
    ]

    assert rows(
        "SELECT * FROM chunk_branches ORDER BY attempt, branch",
        chunk("a", entry_start=0, entry_stop=10),
        *run("a", 1.0, 2.0, run_id=1),
        *run("a", 3.0, 4.0, run_id=2),
        chunk("a", run_id=2, branches=branches),
    ) == [("a", 2, "x", 1, 2, "T"), ("a", 2, "y", 3, None, "T")]
