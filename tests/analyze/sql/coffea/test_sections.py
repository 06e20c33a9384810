"""View sections."""

import pytest


@pytest.fixture
def section(passage):
    def section(key, start, stop, **fields):
        times = {"start_t": start, "stop_t": stop, "run_id": 1, "worker": "w1"}
        return passage(stop, key, "jets", **times, **fields)

    return section


def test_section_of_a_chunk(rows, chunk, run, section):
    measured = {"thread": 2, "cpu_seconds": 2.0, "memory_delta": -10, "bytes_read": 7}

    assert rows(
        "SELECT * FROM sections",
        chunk("a", dataset="DY", filename="f.root", entry_start=0, entry_stop=10),
        *run("a", 0.5, 0.75, "w0", "lost", run_id=0),
        *run("a", 1.0, 4.0, run_id=1),
        section("a", 1.0, 3.5, **measured),
    ) == [
        (
            "a", "jets", 2.5, 2.0, -10, 7, 1.0, 3.5, "w1", 2, 1, 2, "memory", "DY", "f.root",
            None, "T",
        )
    ]  # fmt: skip


def test_attempts_and_files_of_sections(rows, chunk, run, move, section):
    about = {"dataset": "DY", "entry_start": 0, "entry_stop": 10}

    assert rows(
        "SELECT key, attempt, outcome, dataset, filename, exception FROM sections ORDER BY key",
        # A chunk without a cluster.
        chunk("alone", run_id=1, start_t=1.0, stop_t=2.0, filename="f.root", **about),
        section("alone", 1.0, 2.0),
        *run("failed", 1.0, 2.0, outcome="erred", run_id=1),
        section("failed", 1.0, 2.0, exception="E()"),
        section("no attempt", 1.0, 2.0),
        # The end of the first attempt is recorded after the start of the second one.
        move(1.0, "order", "waiting>processing", worker="w1", run_id=1),
        move(3.0, "order", "waiting>processing", worker="w1", run_id=2),
        move(2.0, "order", "processing>released", "task-erred-2.0", worker="w1", run_id=1),
        section("order", 1.0, 2.0),
        *run("two files", 1.0, 4.0, run_id=1),
        chunk("two files", run_id=1, filename="1.root", until="read", **about),
        chunk("two files", run_id=1, filename="2.root", until="read", **about),
        section("two files", 1.0, 2.0),
    ) == [
        ("alone", 1, "memory", "DY", "f.root", None),
        ("failed", 1, "erred", None, None, "E()"),
        ("no attempt", None, None, None, None, None),
        ("order", 1, "unfinished", None, None, None),
        ("two files", 1, "memory", "DY", None, None),
    ]
