"""The command ``what-if``: scenarios, formats and invalid calls."""

import csv
import json

import pytest


@pytest.fixture
def write(write_trace, task, run, worker):
    """Write a trace of the tasks of one graph, given as start and stop by worker."""

    def write(stop_t: float, **times: list[tuple[float, float]]):
        keyed = [(name, *ends) for name, all_ends in times.items() for ends in all_ends]
        tasks = [
            task(f"x-{n}", t=min(start for _, start, _ in keyed), group="x", stimulus_id="g",
                 priority=[n])
            for n in range(len(keyed))
        ]  # fmt: skip
        runs = [
            record
            for n, (name, start, stop) in enumerate(sorted(keyed, key=lambda each: each[1]))
            for record in run(f"x-{n}", start, stop, worker=name)
        ]
        return write_trace(*map(worker, times), *tasks, *runs, stop_t=stop_t)

    return write


def test_scenarios(analyze, write):
    path = write(22.0, w0=[(1.0, 11.0), (11.0, 21.0)], w1=[(1.0, 11.0), (11.0, 21.0)])

    # The replay comes first; its number of workers is not repeated.
    code, out, _ = analyze("what-if", path, "--workers", "1,2")
    header, _, *lines = map(str.split, out.splitlines())
    assert (code, header[:4]) == (0, ["workers", "threads", "wall_seconds", "range"])
    assert [line[:5] for line in lines] == [
        ["2", "1", "22.0", "20.0–24.2", "44.0"], ["1", "1", "42.0", "38.18–46.2", "42.0"],
    ]  # fmt: skip
    # Without options, a quarter to four times the number of workers.
    _, out, _ = analyze("what-if", path, "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["workers"], row["wall_seconds"]) for row in rows] == [
        (2, 22.0), (1, 42.0), (4, 12.0), (8, 12.0),
    ]  # fmt: skip


def test_the_range_of_the_replay_is_that_of_a_repetition(
    analyze, write_trace, task, run, worker
):
    # The long task began last. In other orders, the run takes 5 s or 6 s.
    path = write_trace(
        *(worker("w0"), worker("w1")),
        *(task(key) for key in "abc"),
        task("sum", dependencies=["a", "b", "c"]),
        *run("a", 0.0, 1.0, worker="w0"),
        *run("b", 0.0, 2.0, worker="w1"),
        *run("c", 1.0, 5.0, worker="w0"),
        *run("sum", 5.0, 6.0, worker="w0"),
        stop_t=6.0,
    )

    _, out, _ = analyze("what-if", path, "--workers", "1", "--format", "jsonl")

    ranges = [
        (row["wall_seconds_min"], row["wall_seconds_max"])
        for row in map(json.loads, out.splitlines())
    ]
    assert ranges == [pytest.approx((5.0 / 1.1, 6.0 * 1.1)), pytest.approx((8.0 / 1.1, 8.8))]


def test_a_slow_task_without_stragglers(analyze, write):
    path = write(51.0, w1=[(n, n + 1) for n in range(11)] + [(11, 51)])

    _, out, _ = analyze("what-if", path, "--without", "stragglers,failures", "--format", "csv")

    rows = csv.DictReader(out.splitlines())
    assert [(row["without"], row["wall_seconds"]) for row in rows] == [
        ("", "51.0"), ("stragglers", "12.0"), ("failures", "51.0"),
    ]  # fmt: skip


def test_a_replay_that_differs_predicts_nothing(analyze, write):
    # The second task began only after an unexplained pause.
    path = write(10.0, w1=[(0.0, 1.0), (9.0, 10.0)])

    code, out, _ = analyze("what-if", path, "--workers", "2", "--format", "jsonl")

    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["wall_seconds"] for row in rows] == [2.0, None]
    for row in rows:
        note = row["note"]
        assert note.startswith("not predicted: the replay of the recorded run differs by -80%")
        assert "the overhead per task varies" in note


@pytest.mark.exhaustive
def test_invalid_calls(analyze, write, write_trace, task):
    path = write(2.0, w1=[(0.0, 1.0)])
    idle = write_trace(task("a"), name="idle.jsonl")
    for words, expected, message in [
        ([path, "--without", "rain"], 2, "unknown cause 'rain': choose from stragglers, fail"),
        ([path, "--chunk-size", "auto"], 2, "no coffea chunks in the trace"),
        ([path, "--workers", "10001"], 2, "invalid number of workers 10001: use 1 to 10,000"),
        ([idle], 1, "no task ran on a worker"),
    ]:
        code, out, err = analyze("what-if", *words)
        assert (code, out, message in err) == (expected, "", True), err
    for option, value in [("workers", "0"), ("threads", "two"), ("chunk-size", "1e5")]:
        code, _, errors = analyze("what-if", path, f"--{option}", f"2,{value}")
        assert code == 2
        assert f"invalid numbers '{value}': use 4, or 2,4,8" in errors
