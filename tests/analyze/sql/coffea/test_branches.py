"""Views branches and chunk_branches."""


def test_totals_in_order_of_cost(ask, chunk, run):
    def read(key, dataset, filename, *branches):
        names = ("branch", "compressed_bytes", "uncompressed_bytes", "read_seconds",
                 "decompress_seconds")  # fmt: skip
        described = [dict(zip(names, branch, strict=False)) for branch in branches]
        entries = {"entry_start": 0, "entry_stop": 10}
        about = {"dataset": dataset, "filename": filename, "treename": "Events", **entries}
        attempt = run(key, 1.0, 2.0, run_id=ord(key))
        return [*attempt, chunk(key, run_id=ord(key), branches=described, **about)]

    found = ask(
        *run("c", 0.5, 0.75, run_id=1, outcome="lost"),
        *read("a", "DY", "1.root", ("x", 100, 300, 1.0, 0.25), ("y", 50, None, 2.0)),
        *read("b", "DY", "2.root", ("x", 100, 100, 0.5, 0.5), ("y", 50, None, 3.0)),
        *read("c", "QCD", "3.root", ("x", 100, 200, 1.5)),
    )

    assert found("FROM branches") == [
        ("DY", "y", 2, 2, 100, None, None, 5.0, 100 / 400, 5 / 8, None, "T"),
        ("DY", "x", 2, 2, 200, 400, 2.0, 1.5, 200 / 400, 1.5 / 8, 0.75, "T"),
        ("QCD", "x", 1, 1, 100, 200, 2.0, 1.5, 100 / 400, 1.5 / 8, None, "T"),
    ]
    rest = ("Events", 0, 10, "w1", "memory")
    assert found("FROM chunk_branches ORDER BY key, branch") == [
        ("a", 1, "x", 100, 300, 1.0, "DY", "1.root", *rest, ord("a"), 0.25, "T"),
        ("a", 1, "y", 50, None, 2.0, "DY", "1.root", *rest, ord("a"), None, "T"),
        ("b", 1, "x", 100, 100, 0.5, "DY", "2.root", *rest, ord("b"), 0.5, "T"),
        ("b", 1, "y", 50, None, 3.0, "DY", "2.root", *rest, ord("b"), None, "T"),
        ("c", 2, "x", 100, 200, 1.5, "QCD", "3.root", *rest, ord("c"), None, "T"),
    ]
