"""Rule other-programs: tasks that waited behind those of other clients."""

import pytest


@pytest.fixture
def submitted(task, move, run):
    """Return tasks of a client, which are queued and computed by w1 one after another."""

    def submitted(client, count, t, begin, seconds=1.0):
        records = []
        for number in range(count):
            key, start = f"{client}-{number}", begin + seconds * number
            attempt = run(key, start, start + seconds)
            attempt[0]["start"] = "queued"
            records += [task(key, t=t, client=client), move(t, key, "waiting>queued"), *attempt]
        return records

    return submitted


def joined(client, **fields):
    return {"kind": "client_added", "t": 0.0, "client": client, **fields}


def in_order(*records):
    return sorted(records, key=lambda record: record["t"])


def test_a_client_whose_tasks_wait(apply_each, worker, submitted, task, move):
    first = [worker("w1"), joined("a"), joined("b"), *submitted("a", 60, 0.0, 0.0)]
    # The worker computes tasks of both clients in turn.
    fair = [worker("w1"), joined("a"), joined("b")]
    for number in range(20):
        fair += submitted(f"a{number}", 1, 0.0, 2.0 * number)
        fair += submitted(f"b{number}", 1, 0.0, 2.0 * number + 1)
    fair = [
        record | ({"client": record["client"][0]} if record["kind"] == "task" else {})
        for record in fair
    ]
    process = {"kind": "client_program", "t": 0.0, "host": "h", "pid": 7, "name": "p.py"}
    named = {**process, "client": "b", "pid": 8, "name": "plots.py"}
    one = [{**process, "client": client} for client in "ab"]
    # All of its tasks were still queued when the recording ended.
    vain = [task("b-0", t=10.0, client="b"), move(10.0, "b-0", "waiting>queued")]
    cases = {
        "waits": [*first, *submitted("b", 5, 10.0, 60.0)],
        "named": [*first, named, *submitted("b", 5, 10.0, 60.0)],
        "in vain": [*first, *vain],
        "one program": [*first, *one, *submitted("b", 5, 10.0, 60.0)],
        "one client": [worker("w1"), *submitted("a", 60, 0.0, 0.0)],
        "comes later": [*first, *submitted("b", 5, 60.0, 60.0)],
        # Tasks of a task belong to no other program.
        "tasks of tasks": [*first, *submitted("Client-worker-b", 5, 10.0, 60.0)],
        "in turn": fair,
    }
    found = apply_each(
        "other-programs",
        *(in_order(*records) for records in cases.values()),
        columns="entity, sentence",
        stop_t=70.0,
    )

    def sentence(name, seconds, threads):
        return (
            f"Tasks of {name} were ready for {seconds} s in which none of them computed, at "
            f"most {seconds} s at a time. Meanwhile, tasks of a computed, on {threads} of 1.0 "
            "threads on average."
        )

    rows = dict(zip(cases, found, strict=True))
    assert rows["waits"] == [("b", sentence("b", "50.0", "1.0"))]
    assert rows["named"] == [("plots.py", sentence("plots.py", "50.0", "1.0"))]
    assert rows["in vain"] == [("b", sentence("b", "60.0", "0.8"))]
    assert [rows[name] for name in list(cases)[3:]] == [[], [], [], [], []]
