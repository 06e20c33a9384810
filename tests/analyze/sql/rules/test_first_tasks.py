"""Rule first-tasks: what each process does once, in its first tasks."""

import pytest


def test_slow_first_tasks(apply_each, worker, task, run):
    """Two workers with two threads compute tasks of 0.2 s, after first ones of 3 s."""

    def trace(first=3.0, workers=("w1", "w2"), slow=("w1", "w2"), later=10):
        records = [worker(address, nthreads=2) for address in workers]
        for address in workers:
            for thread in range(2):
                t = 0.0
                for number in range(1 + later):
                    key = f"fit-{address}-{thread}-{number}"
                    seconds = first if number == 0 and address in slow else 0.2
                    records += [task(key), *run(key, t, t + seconds, address)]
                    t += seconds
        return records

    cases = {
        "both": trace(),
        "little": trace(first=0.5),
        "one of two": trace(slow=("w1",)),
        "one worker": trace(workers=("w1",)),
        "few later tasks": trace(later=2),
    }
    found = apply_each(
        "first-tasks",
        *cases.values(),
        columns="entity, core_seconds, sentence",
        stop_t=10.0,
    )

    rows = dict(zip(cases, found, strict=True))
    sentence = (
        "The first tasks of fit on each of 2 workers took 3 s (median), 15 times as long as "
        "later ones (0.2 s): 11.2 core-seconds more in all."
    )
    assert rows.pop("both") == [("fit", pytest.approx(4 * 2.8), sentence)]
    assert [*rows.values()] == [[]] * 4
