"""Totals by file."""


def test_a_file_in_two_datasets_is_two_rows(rows, chunk, run, move):
    def part(key, dataset):
        entries = {"entry_start": 0, "entry_stop": 10}
        return chunk(key, dataset=dataset, filename="f.root", treename="Events", **entries)

    assert rows(
        "SELECT * FROM files",
        part("a", "DY"),
        part("b", "DY"),
        part("c", "QCD"),
        *run("a", 1.0, 2.0, worker="w1"),
        *run("b", 1.0, 5.0, worker="w2"),
        move(1.0, "c", "waiting>processing", worker="w1"),
        move(2.0, "c", "processing>erred", "task-erred-2.0"),
    ) == [
        ("DY", "f.root", "Events", 2, 2, 20, None, 5.0, 4.0, 2, 0, "T"),
        ("QCD", "f.root", "Events", 0, 1, 0, None, None, None, 1, 1, "T"),
    ]
