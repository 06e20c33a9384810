"""Rules cancelled-tasks and dropped-futures: tasks that a client cancelled."""

import pytest


@pytest.fixture
def cancelled(worker, task, move, run):
    """Return six tasks, which are cancelled at 10 s; only two of them began."""

    def cancelled(stimulus_id, prefix="write"):
        records = [worker("w1", nthreads=2), {"kind": "client_added", "t": 0.0, "client": "c"}]
        for number in range(6):
            key = f"{prefix}-{number}"
            records += [task(key, client="c")]
            if number < 2:
                records += [run(key, 1.0)[0]]
                start = "processing"
            else:
                records += [move(1.0, key, "waiting>queued")]
                start = "queued"
            ended = {"stimulus_id": stimulus_id, "start_t": 1.0}
            records += [move(10.0, key, f"{start}>released", **ended)]
        return records

    return cancelled


def test_dropped_futures_and_cancelled_tasks(apply_rules, cancelled, task, run):
    dropped, asked = cancelled("client-releases-keys-1.0"), cancelled("cancel-key-1.0")
    erred = [task("a"), *run("a", 0.0, 9.0, outcome="erred")]
    left = {"kind": "client_removed", "t": 10.5, "client": "c"}
    again = [task("write-1", t=20.0, client="c"), *run("write-1", 20.0, 25.0)]
    cases = {
        "dropped": dropped,
        "cancelled": asked,
        "submitted again": [*asked, *again],
        # Dask and coffea drop the rest.
        "after an error": [*dropped, *erred],
        "at the end of the client": [*dropped, left],
        "by the end of the client": cancelled("remove-client-1.0"),
    }
    dropped_futures, cancelled_tasks = apply_rules(
        ["dropped-futures", "cancelled-tasks"],
        *(sorted(records, key=lambda record: record["t"]) for records in cases.values()),
        columns="entity, sentence, core_seconds",
        stop_t=30.0,
    )

    seconds = pytest.approx(18.0)
    rows = dict(zip(cases, dropped_futures, strict=True))
    sentence = (
        "The program dropped the futures of 6 tasks of write before they had ended, and Dask "
        "cancelled them. No task of this prefix gave a result."
    )
    assert rows.pop("dropped") == [("write", sentence, seconds)]
    assert [*rows.values()] == [[]] * 5
    rows = dict(zip(cases, cancelled_tasks, strict=True))
    [asked, again] = rows.pop("cancelled"), rows.pop("submitted again")
    begin = "The client cancelled 6 tasks of write before they had ended. "
    end = (
        "An attempt that computes is not interrupted: cancelled attempts occupied threads for "
        "18.0 core-seconds."
    )
    assert asked == [("write", f"{begin}No task of this prefix gave a result. {end}", seconds)]
    assert again == [
        ("write", f"{begin}Submitted again, 1 of them gave results. {end}", seconds)
    ]
    assert [*rows.values()] == [[]] * 4
