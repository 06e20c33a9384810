"""Rule no-stealing: tasks stay on the workers to which they were assigned."""

import pytest


def test_a_worker_that_gets_no_tasks(apply_each, worker, task, run, process_facts):
    """w1 gets 20 tasks of 1 s at once; w2 joins at 2 s and is joining until 7 s."""

    def trace(stealing, saturation="inf", **annotations):
        config = {
            "distributed.scheduler.work-stealing": stealing,
            "distributed.scheduler.worker-saturation": saturation,
        }
        records = [worker("w1"), worker("w2", t=2.0), *process_facts("scheduler", config)]
        for number in range(20):
            key, stop_t = f"fit-{number}", number + 1.0
            phases = [("compute", 1.0 * number, stop_t)]
            records += [
                task(key, annotations=annotations), *run(key, 0.0, stop_t, phases=phases)
            ]  # fmt: skip
        return records

    [(off, core_seconds)], [(queued, _)], *others = apply_each(
        "no-stealing",
        trace(False),
        trace(False, 1.1),
        trace(True),
        trace(False, workers=["w1"]),
        columns="sentence, core_seconds",
        stop_t=20.0,
    )

    # Until 19 s, a second task is left for w2.
    sentence = (
        "Threads were free for 12.0 core-seconds while ready tasks were queued on other "
        "workers, and work stealing is off (distributed.scheduler.work-stealing)"
    )
    assert off == f"{sentence}; all tasks are assigned at once (worker-saturation: inf)."
    assert core_seconds == pytest.approx(17.0)
    assert queued == f"{sentence}."
    assert others == [[], []]
