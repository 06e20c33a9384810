"""View section_totals."""


def test_totals_in_order_of_cost(rows, chunk, run, passage):
    def section(key, name, start, stop, **fields):
        return passage(stop, key, name, start_t=start, stop_t=stop, run_id=1, **fields)

    datasets = {"a": "DY", "b": "DY", "c": "QCD"}
    entries = {"entry_start": 0, "entry_stop": 10}

    assert rows(
        "SELECT * FROM section_totals",
        *(chunk(key, dataset=dataset, **entries) for key, dataset in datasets.items()),
        *(record for key in "abcd" for record in run(key, 0.0, 8.0, run_id=1)),
        section("a", "jets", 1.0, 2.0, cpu_seconds=0.5, memory_delta=-10, bytes_read=5),
        section("a", "jets", 3.0, 4.0, cpu_seconds=0.5, memory_delta=20, bytes_read=6),
        section("b", "jets", 1.0, 5.0, cpu_seconds=1.0, memory_delta=50, exception="E()"),
        section("c", "jets", 1.0, 5.0),
        section("d", "sum", 1.0, 2.0),
    ) == [
        ("DY", "jets", 3, 2, 1, 6.0, 2.0, 1.0, 4.0, 2.0, 11, 20, -10, 50, 6 / 16, "T"),
        ("QCD", "jets", 1, 1, 0, 4.0, 4.0, 4.0, 4.0, None, None, None, None, None, 0.5, "T"),
        (None, "sum", 1, 1, 0, 1.0, 1.0, 1.0, 1.0, None, None, None, None, None, None, "T"),
    ]
