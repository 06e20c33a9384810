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


def test_results_that_a_client_dropped_when_it_left(apply_each, worker, task, run, move):
    """Another client submits three tasks again, of which two had been computed.

    In the second trace, the first client releases the keys before it leaves.
    """

    def records(stimulus):
        keys = ["a-1", "a-2", "a-3"]
        # A key that is no longer wanted when the client leaves.
        wanted = {"t": 0.0, "action": "desires", "keys": [*keys, "b-1"]}
        given_up = {"t": 8.5, "action": "releases", "keys": ["b-1"]}
        records = [
            worker("w1"),
            *(task(key, client="first", stimulus_id="graph-1") for key in keys),
            {"kind": "wanted_keys", "t": 0.0, "client": "first", "changes": [wanted, given_up]},
            *(*run("a-1", 0.0, 4.0, run_id=1), *run("a-2", 4.0, 8.0, run_id=2)),
            move(8.0, "a-3", "waiting>processing", worker="w1", run_id=3),
            *(move(9.0, key, "memory>forgotten", stimulus) for key in ("a-1", "a-2")),
            move(9.0, "a-3", "processing>released", stimulus, run_id=3),
            move(9.0, "a-3", "released>forgotten", stimulus),
            {"kind": "client_removed", "t": 9.001, "client": "first"},
        ]
        for number, key in enumerate(keys):
            start = 20.0 + 5.0 * number
            records += [
                task(key, t=20.0, client="second", stimulus_id="graph-2"),
                *run(key, start, start + 5.0, run_id=4 + number),
            ]
        return records

    [(entity, sentence, seconds, change)], [(_, released, *_)] = apply_each(
        "recomputed-keys",
        records("remove-client-9.0"),
        records("client-releases-keys-9.0"),
        columns="entity, sentence, core_seconds, change",
    )

    assert (entity, seconds) == ("a", 10.0)
    assert sentence == (
        "A client disconnected while it wanted 3 keys: 2 results of a, which had taken 8.0 s, "
        "were dropped, and computed again for a later graph in 10.0 core-seconds. 1 task that "
        "had not ended was dropped, too, and 1 attempt cancelled."
    )
    assert change == (
        "Keep the client connected until its work has ended: run it near the cluster and "
        "independent of a terminal, for example as a batch job. Results outlast their client "
        "if they are published (client.publish_dataset), or if tasks write them; tasks "
        "submitted with fire_and_forget are computed without a client. persist() keeps results "
        "only as long as the client is connected."
    )
    assert released.startswith("2 keys were computed again in 2 attempts, for graphs that ")


def test_a_program_that_ended_before_another_one_began(apply, worker, task, run, move):
    """All of its work had ended; which keys it wanted is not recorded."""
    [(sentence, change)] = apply(
        "recomputed-keys",
        worker("w1"),
        *(task("a-1", client="first", stimulus_id="graph-1"), *run("a-1", 0.0, 4.0)),
        move(9.0, "a-1", "memory>forgotten", "remove-client-9.0"),
        {"kind": "client_removed", "t": 9.001, "client": "first"},
        task("a-1", t=20.0, client="second", stimulus_id="graph-2"),
        *run("a-1", 20.0, 25.0, run_id=2),
        columns="sentence, change",
    )

    assert sentence == (
        "A client disconnected: 1 result of a, which had taken 4.0 s, was dropped, and "
        "computed again for a later graph in 5.0 core-seconds."
    )
    assert change.startswith("Results outlast their client if they are published ")
