"""The command ``what-if``: scenarios, formats and invalid calls."""

import json

import pytest


@pytest.fixture
def path(write_trace, task, run, worker):
    """Write a trace of two workers, each of which computes two tasks of 10 s."""
    tasks = [task(f"x-{n}", t=1.0, group="x", stimulus_id="g", priority=[n]) for n in range(4)]
    runs = [
        record
        for number in range(4)
        for record in run(
            f"x-{number}", 1.0 + 10 * (number // 2), 11.0 + 10 * (number // 2),
            worker=f"w{number % 2}",
        )
    ]  # fmt: skip
    return write_trace(worker("w0"), worker("w1"), *tasks, *runs, stop_t=22.0)


def test_scenarios(analyze, path):
    # The replay comes first; the number of workers that it has is not repeated.
    expected = """\
workers  threads  wall_seconds  core_seconds  change  critical_path  total_work  replay_error
───────  ───────  ────────────  ────────────  ──────  ─────────────  ──────────  ────────────
      2        1          22.0          44.0  0.0 %            12.0        22.0  0.0 %
      1        1          42.0          42.0  90.9 %           12.0        42.0  0.0 %
"""
    assert analyze("what-if", path, "--workers", "1,2") == (0, expected, "")
    # Without options, a quarter to four times the number of workers.
    _, out, _ = analyze("what-if", path, "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["workers"], row["wall_seconds"]) for row in rows] == [
        (2, 22.0), (1, 42.0), (4, 12.0), (8, 12.0),
    ]  # fmt: skip


def test_a_slow_task_without_stragglers(analyze, write_trace, task, run, worker):
    tasks = [task(f"x-{n}", group="x", stimulus_id="g", priority=[n]) for n in range(12)]
    ends = [*range(1, 12), 51]
    runs = [
        record for number, end in enumerate(ends) for record in run(f"x-{number}", number, end)
    ]
    path = write_trace(worker("w1"), *tasks, *runs, stop_t=51.0)

    _, out, _ = analyze("what-if", path, "--without", "stragglers,failures", "--format", "csv")

    columns, *rows = (line.split(",") for line in out.splitlines())
    walls = [
        (row[columns.index("without")], row[columns.index("wall_seconds")]) for row in rows
    ]
    assert walls == [("", "51.0"), ("stragglers", "12.0"), ("failures", "51.0")]


def test_a_replay_that_differs_warns(analyze, write_trace, task, run, worker):
    # The second task began only after a pause that nothing explains.
    tasks = [task(f"x-{n}", group="x", stimulus_id="g", priority=[n]) for n in range(2)]
    runs = [*run("x-0", 0.0, 1.0), *run("x-1", 9.0, 10.0)]
    path = write_trace(worker("w1"), *tasks, *runs, stop_t=10.0)

    code, out, _ = analyze("what-if", path, "--workers", "2", "--format", "jsonl")

    assert code == 0
    for line in out.splitlines():
        note = json.loads(line)["note"]
        assert note.startswith("do not use: the replay of the recorded run differs by -80%; ")
        assert "the overhead per task varies" in note


def test_invalid_calls(analyze, path, write_trace, task, capsys):
    for words, message in [
        (["--without", "rain"], "unknown cause 'rain': choose from stragglers, failures"),
        (["--chunk-size", "auto"], "no coffea chunks in the trace"),
    ]:
        code, out, err = analyze("what-if", path, *words)
        assert (code, out) == (2, "")
        assert message in err
    for words in (["--workers", "0"], ["--threads", "two"], ["--chunk-size", "1e5"]):
        with pytest.raises(SystemExit, match="2"):
            analyze("what-if", path, *words)
        assert f"invalid numbers '{words[1]}': use 4, or 2,4,8" in capsys.readouterr().err
    idle = write_trace(task("a"), name="idle.jsonl")
    code, _, err = analyze("what-if", idle)
    assert code == 1
    assert "no task ran on a worker" in err
