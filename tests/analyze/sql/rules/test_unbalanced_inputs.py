"""Rule unbalanced-inputs: tasks are queued on the worker that has their inputs."""

import pytest


def test_inputs_of_one_worker(apply_each, worker, task, run, process_facts):
    """w1 makes 20 inputs and computes 16 of 20 tasks of 1 s, and w2 computes 4 of them."""

    def trace(makers=("w1",), stealing=True):
        config = {"distributed.scheduler.work-stealing": stealing}
        records = [worker("w1"), worker("w2"), *process_facts("scheduler", config)]
        for number in range(20):
            part, fit, maker = f"part-{number}", f"fit-{number}", makers[number % len(makers)]
            begin = 0.1 * number
            phases = [("compute", begin, begin + 0.1)]
            records += [
                task(part),
                *run(part, 0.0, begin + 0.1, maker, phases=phases, nbytes=1_000_000),
            ]
            address, place = ("w1", number) if number < 16 else ("w2", number - 16)
            begin = 2.0 + place
            phases = [("compute", begin, begin + 1.0)]
            records += [
                task(fit, dependencies=[part]),
                *run(fit, 2.0, begin + 1.0, address, phases=phases),
            ]
        return records

    [(entity, core_seconds, sentence)], *others = apply_each(
        "unbalanced-inputs",
        trace(),
        trace(makers=("w1", "w2")),
        # Rule no-stealing reports it.
        trace(stealing=False),
        columns="entity, core_seconds, sentence",
        stop_t=18.0,
    )

    # Until the last input begins, and from 6 s until the last task begins.
    assert (entity, core_seconds) == ("fit", pytest.approx(1.9 + 11.0))
    assert sentence.startswith(
        "All 20 inputs of fit (19.1 MiB) were results of worker w1, which computed 16 of 20 of "
        "these tasks. Threads of other workers were free for "
    )
    assert others == [[], []]
