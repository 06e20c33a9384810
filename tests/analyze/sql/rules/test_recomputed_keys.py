"""Rule recomputed-keys."""

import pytest


def test_keys_that_later_graphs_asked_for(apply_each, worker, task, run):
    """Two tasks are computed for three graphs; each result has 8 bytes."""
    asked_again, lost, asked_once = [worker("w1")], [worker("w1"), worker("w2")], [worker("w1")]
    for number, start in enumerate((0.0, 20.0, 40.0)):
        for key, t in ("a-1", start), ("a-2", start + 5.0):
            attempt = run(key, t, t + 5.0, run_id=10 * number + int(key[-1]))
            asked_again += [task(key, t=start, stimulus_id=f"graph-{number}"), *attempt]
            asked_once += [*([task(key)] if number == 0 else []), *attempt]
    # Lost with its worker, and computed again for the same graph.
    lost += [task("a-1"), *run("a-1", 0.0, 5.0), *run("a-1", 20.0, 25.0, "w2", run_id=2)]

    columns = "entity, sentence, core_seconds, wall_seconds_min, wall_seconds_max, change"
    found = apply_each("recomputed-keys", asked_again, lost, asked_once, columns=columns)

    sentence = (
        "2 keys were computed again in 4 attempts, for graphs that were submitted after the "
        "first result: 20.0 core-seconds for a."
    )
    change = (
        "Compute what needs a in one call, such as dask.compute(a, b), or keep it with "
        "persist(): its results have 16 bytes."
    )
    assert found == [[("a", sentence, 20.0, 8.0, pytest.approx(20.0), change)], [], []]
