"""View sections."""

import pytest


@pytest.fixture
def section(passage):
    def section(key, name, start, stop, **fields):
        times = {"start_t": start, "stop_t": stop, "run_id": 1, "worker": "w1"}
        return passage(stop, key, name, **times, **fields)

    return section


def test_section_of_a_chunk(rows, chunk, run, move, section):
    assert rows(
        "SELECT * FROM sections",
        chunk("a", dataset="DY", filename="f.root", entry_start=0, entry_stop=10),
        move(0.5, "a", "waiting>processing", worker="w0", run_id=0),
        move(0.75, "a", "processing>released", "handle-worker-cleanup-0.75"),
        *run("a", 1.0, 4.0, run_id=1),
        section(
            "a", "jets", 1.0, 3.5, thread=2, cpu_seconds=2.0, memory_delta=-10, bytes_read=7
        ),
    ) == [
        (
            "a", "jets", 2.5, 2.0, -10, 7, 1.0, 3.5, "w1", 2, 1, 2, "memory", "DY", "f.root",
            None, "T",
        )
    ]  # fmt: skip


def test_section_of_another_task_with_an_exception(rows, move, section):
    assert rows(
        "SELECT attempt, outcome, dataset, filename, exception FROM sections",
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        move(2.0, "a", "processing>erred", "task-erred-2.0", worker="w1", run_id=1),
        section("a", "jets", 1.0, 2.0, exception="E()"),
    ) == [(1, "erred", None, None, "E()")]


def test_section_of_a_task_that_reads_two_files(rows, chunk, run, section):
    about = {"dataset": "DY", "entry_start": 0, "entry_stop": 10, "until": "read"}

    assert rows(
        "SELECT attempt, dataset, filename FROM sections",
        *run("a", 1.0, 4.0, run_id=1),
        chunk("a", run_id=1, filename="1.root", **about),
        chunk("a", run_id=1, filename="2.root", **about),
        section("a", "jets", 1.0, 2.0),
    ) == [(1, "DY", None)]


def test_section_counts_once_if_records_are_out_of_order(rows, move, section):
    """The end of the first attempt is recorded after the start of the second one."""
    assert rows(
        "SELECT key, attempt FROM sections",
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        move(3.0, "a", "waiting>processing", worker="w1", run_id=2),
        move(2.0, "a", "processing>released", "task-erred-2.0", worker="w1", run_id=1),
        section("a", "jets", 1.0, 2.0),
    ) == [("a", 1)]


def test_section_without_a_cluster(rows, chunk, section):
    about = {"dataset": "DY", "filename": "f.root", "entry_start": 0, "entry_stop": 10}

    assert rows(
        "SELECT attempt, outcome, dataset, filename FROM sections",
        chunk("a", run_id=1, start_t=1.0, stop_t=2.0, worker="pid:1", **about),
        section("a", "jets", 1.0, 2.0),
    ) == [(1, "memory", "DY", "f.root")]


def test_section_without_its_attempt(rows, section):
    assert rows(
        "SELECT key, name, seconds, attempt, outcome FROM sections",
        section("a", "jets", 1.0, 2.0),
    ) == [("a", "jets", 1.0, None, None)]
