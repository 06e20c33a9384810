"""Rule retries: attempts that failed."""

import pytest


def test_by_exception(apply, worker, task, run):
    """Seven of eight attempts of 2 s fail, five of them with a timeout."""
    records = [worker("w1"), *(task(f"read-{number}") for number in range(8))]
    for number in range(7):
        begin = 2.0 * number
        records += run(
            f"read-{number}", begin, begin + 2.0, outcome="retried" if number < 5 else "erred",
            exception="TimeoutError: 5 s" if number < 5 else "OSError('no such file')",
            phases=[("compute", begin, begin + 2.0)],
        )  # fmt: skip
    found = apply(
        "retries",
        *records,
        *run("read-7", 14.0, 16.0),
        columns="entity, sentence",
    )
    assert dict(found) == {
        "OSError": "2 tasks (read) failed for good with OSError: their results are missing, "
        "and those of all tasks that need them. 2 attempts failed. "
        "The error: OSError('no such file')",
        "TimeoutError": "5 attempts at 5 tasks (read) failed with TimeoutError: "
        "10.0 s of computing were lost. The error: TimeoutError: 5 s",
    }


@pytest.mark.parametrize("is_recovered", [False, True])
def test_a_task_that_failed_for_good_saves_nothing(apply, worker, task, run, is_recovered):
    """The client can compute it again."""
    again = run("a", 6.0, 7.0, run_id=2) if is_recovered else []

    [(saving,)] = apply(
        "retries",
        worker("w1"),
        task("a"),
        *run("a", 1.0, 5.0, outcome="erred", exception="ValueError()", run_id=1),
        *again,
        columns="wall_seconds_max",
    )
    assert (saving is not None) == is_recovered


def test_the_error_that_coffea_quotes(apply, worker, task, run):
    quoted = "Failed creating nanoevents: WorkItem(a='f'). The error was: KeyError('pt')."

    [(entity, sentence)] = apply(
        "retries",
        worker("w1"),
        task("a"),
        *run("a", 1.0, 5.0, outcome="retried", exception=repr(Exception(quoted))),
        columns="entity, sentence",
    )
    assert entity == "KeyError"
    assert sentence.endswith("The error: KeyError('pt')")


def test_tasks_of_killed_workers_belong_to_another_rule(apply, worker, task, run):
    killed = run("a", 1.0, 5.0, outcome="erred", exception="KilledWorker: a")

    assert apply("retries", worker("w1"), task("a"), *killed) == []


@pytest.mark.parametrize("outcome", ["memory", "lost", "cancelled"])
def test_other_outcomes(apply, worker, task, run, outcome):
    assert apply("retries", worker("w1"), task("a"), *run("a", 0.0, 9.0, outcome=outcome)) == []


@pytest.mark.exhaustive
def test_tasks_of_several_prefixes(apply, worker, task, run):
    records = [worker("w1")]
    for number, prefix in enumerate(("read", "fit", "fit")):
        key = f"{prefix}-{number}"
        failed = {"outcome": "erred", "exception": "ValueError('x')"}
        records += [task(key), *run(key, 1.0 * number, number + 1.0, **failed)]

    [(sentence,)] = apply("retries", *records, columns="sentence")

    assert sentence.startswith("3 tasks (such as fit) failed for good with ValueError: ")
