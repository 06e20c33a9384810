"""View branches."""


def test_totals_in_order_of_cost(rows, chunk, run):
    def read(key, run_id, dataset, filename, *branches):
        names = ("branch", "compressed_bytes", "uncompressed_bytes", "read_seconds")
        told = [dict(zip(names, branch, strict=True)) for branch in branches]
        entries = {"entry_start": 0, "entry_stop": 10}
        about = {"dataset": dataset, "filename": filename, **entries}
        return chunk(key, run_id=run_id, branches=told, **about)

    assert rows(
        "SELECT * FROM branches",
        *(record for key in "abc" for record in run(key, 1.0, 2.0, run_id=ord(key))),
        read("a", ord("a"), "DY", "1.root", ("x", 100, 300, 1.0), ("y", 50, None, 2.0)),
        read("b", ord("b"), "DY", "2.root", ("x", 100, 100, 0.5), ("y", 50, None, 3.0)),
        read("c", ord("c"), "QCD", "3.root", ("x", 100, 200, 1.5)),
    ) == [
        ("DY", "y", 2, 2, 100, None, None, 5.0, 100 / 400, 5 / 8, "T"),
        ("DY", "x", 2, 2, 200, 400, 2.0, 1.5, 200 / 400, 1.5 / 8, "T"),
        ("QCD", "x", 1, 1, 100, 200, 2.0, 1.5, 100 / 400, 1.5 / 8, "T"),
    ]
