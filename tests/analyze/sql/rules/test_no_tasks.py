"""Rule no-tasks: the program submits nothing to the workers."""


def test_a_program_that_computes_elsewhere(apply_each, worker, task, run):
    """As with compute(scheduler="threads"), or coffea's FuturesExecutor."""
    client = {"kind": "client_added", "t": 0.0, "client": "c"}
    worked = {"kind": "client_activity", "t": 9.0, "client": "c", "name": "f", "start_t": 1.0}

    def trace(*records, activity="own", stop_t=9.0):
        did = {**worked, "activity": activity, "stop_t": stop_t}
        return [worker("w1"), worker("w2"), client, did, *records]

    cases = {
        "own work": trace(),
        "waits": trace(activity="wait"),
        "tasks": trace(task("a"), *run("a", 1.0, 2.0)),
        "a look at a cluster": trace(stop_t=3.0),
        "no workers": [client, {**worked, "activity": "own", "stop_t": 9.0}],
        "another program": [worker("w1"), client],
    }
    found = apply_each("no-tasks", *cases.values(), columns="sentence", stop_t=10.0)

    rows = dict(zip(cases, found, strict=True))
    sentence = "The client submitted no task to the 2 workers in 8.0 s"
    assert rows.pop("own work") == [(f"{sentence}, of which its own work took 8.0 s.",)]
    assert rows.pop("waits") == [(f"{sentence}.",)]
    assert [*rows.values()] == [[]] * 4
