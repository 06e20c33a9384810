"""Rule restricted-tasks: work that only some workers may do is unevenly divided."""

import pytest


@pytest.mark.exhaustive
def test_uneven_work(apply, apply_each, worker, gone, task, run):
    """Tasks of w1 take 1 s each; w2 has 10 s of other work and could take some of them.

    Another process had the address of w1 before.
    """

    def trace(tasks, **annotations):
        records = [
            *(worker("w1", server_id="before"), gone("w1", 0.0, "retire-workers-1.0")),
            *(worker("w1"), worker("w2")),
        ]
        for number in range(tasks):
            key = f"fit-{number}"
            phases = [("compute", 1.0 * number, number + 1.0)]
            records += [
                task(key, annotations=annotations), *run(key, 0.0, number + 1.0, phases=phases)
            ]  # fmt: skip
        for number in range(10):
            key, begin = f"other-{number}", 1.0 * number
            records += [task(key), *run(key, begin, begin + 1.0, worker="w2")]
        return records

    restricted = trace(15, workers=["w1"])
    others_allowed = trace(15, workers=["w1"], allow_other_workers=True)
    another_annotation = trace(15, priority=1)
    rows = apply_each(
        "restricted-tasks", restricted, others_allowed, another_annotation, stop_t=15.0
    )
    # Evenly divided, 25 s of work take 12.5 s: 2.5 s less, on two threads.
    assert rows == [[("fit", pytest.approx(2 * 2.5, rel=0.01))], [], []]
    # w1 computes for 11 s instead of 10.5 s.
    nearly_even = trace(11, workers=["w1"])
    assert apply("restricted-tasks", *nearly_even, stop_t=11.0) == []


@pytest.mark.exhaustive
def test_workers_that_tasks_may_not_use_are_not_in_excess(apply_each, worker, task, run):
    """w1 computes 20 tasks one after the other; three workers do nothing."""

    def trace(**annotations):
        records = [worker("w1"), worker("w2"), worker("w3"), worker("w4")]
        for number in range(20):
            key, begin = f"fit-{number}", 1.0 * number
            records += [task(key, annotations=annotations), *run(key, begin, number + 1.0)]
        return records

    traces = [trace(workers=["w1"]), trace(priority=1)]
    rules = ("restricted-tasks", "excess-workers")
    found = {rule: apply_each(rule, *traces, stop_t=20.0) for rule in rules}
    assert {rule: [bool(rows) for rows in each] for rule, each in found.items()} == {
        "restricted-tasks": [True, False],
        "excess-workers": [False, True],
    }


@pytest.mark.exhaustive
def test_a_single_task_cannot_be_divided(apply, worker, task, run):
    records = [
        worker("w1"), worker("w2"),
        task("fit-1", annotations={"workers": ["w1"]}), *run("fit-1", 0.0, 20.0),
        task("other-1"), *run("other-1", 0.0, 1.0, worker="w2"),
    ]  # fmt: skip
    assert apply("restricted-tasks", *records, stop_t=20.0) == []


def test_failed_attempts_are_work_too(apply, worker, task, run):
    """w1 computes 20 tasks twice, since each fails once; w2 may not run them."""
    records = [worker("w1"), worker("w2")]
    for number in range(20):
        key, begin, again = f"fit-{number}", 1.0 * number, number + 0.5
        records += [
            task(key, annotations={"workers": ["w1"]}),
            *run(
                key, begin, again, outcome="retried", exception="OSError()",
                phases=[("compute", begin, again)],
            ),
            *run(key, again, again + 0.5),
        ]  # fmt: skip
    [(sentence,)] = apply("restricted-tasks", *records, columns="sentence", stop_t=20.0)
    assert sentence == (
        "20 tasks, such as those of fit, may only run on certain workers: w1 computes for "
        "20.0 s, whereas evenly divided work takes 10.0 s."
    )
