"""Tasks that Dask assigns to a different span than the one they were submitted in."""

import pytest
from distributed import span, wait

import roast_recorder

pytestmark = pytest.mark.cluster


def test_a_task_of_a_group_of_another_span_has_the_span_of_its_submission(
    client, tmp_path, read_lines
):
    with roast_recorder.record(client, tmp_path / "t.jsonl"):
        with span("first") as first:
            futures = [client.submit(abs, 1, key="negate-1")]
        with span("outer") as outer, span("second") as second:
            futures += [client.submit(abs, 2, key="negate-2"), client.submit(abs, 3, key="x-1")]
        futures += [client.submit(abs, 4, key="negate-3"), client.submit(abs, 5, key="y-1")]
        with span("third") as third:
            futures += [client.submit(abs, 6, key="y-2")]
            # The scheduler already has this key, so the task is not submitted again.
            futures += [client.submit(abs, 1, key="negate-1")]
        wait(futures)

    lines = read_lines(tmp_path / "t.jsonl")
    tasks = {line["key"]: line for line in lines if line["kind"] == "task"}
    assert {
        key: task["value"]["submitted_span"] for key, task in tasks.items() if "value" in task
    } == {
        "negate-2": {"name": ["outer", "second"], "ids": [outer, second]},
        "negate-3": {"name": ["default"]},
        "y-2": {"name": ["third"], "ids": [third]},
    }
    filed = {key: task["span_id"] for key, task in tasks.items()}
    assert [filed[f"negate-{n}"] for n in (1, 2, 3)] == [first] * 3
    assert filed["x-1"] == second
    assert filed["y-1"] == filed["y-2"] not in (first, outer, second, third)
