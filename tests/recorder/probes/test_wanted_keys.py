"""The trace contains the keys that each client wants, as on the scheduler."""

import time

import pytest
from distributed import Client, Variable, fire_and_forget, wait

import roast_recorder
from roast_recorder.probes.wanted_keys import KEYS_PER_PART

pytestmark = pytest.mark.cluster


def wants_what(dask_scheduler):
    return {
        client: {str(task.key) for task in state.wants_what}
        for client, state in dask_scheduler.clients.items()
    }


def test_changes_add_up_to_the_state_of_the_scheduler(own_cluster, trace, by_kind):
    with (
        own_cluster(1, threads_per_worker=2) as (cluster, client),
        Client(cluster) as other,
    ):
        before = client.submit(sum, [1], key="before")
        with roast_recorder.record(client, trace):
            kept, released = client.map(abs, [1, 2], key=[("kept", 0), ("released", 0)])
            wait([kept, released, before])
            # A key that the client already wants is not recorded again.
            again = client.submit(abs, 1, key=("kept", 0))
            # Dask never forgets a task that ends before its fire-and-forget message arrives.
            fire_and_forget(client.submit(time.sleep, 0.5, key="fired"))
            scattered = client.scatter(list(range(KEYS_PER_PART + 1)))
            variable = Variable("v", client=other)
            variable.set(kept)
            shared = variable.get()
            with Client(cluster) as gone:
                gone.submit(abs, 4, key="of a client that leaves").result()
            released.release()
            expected = client.run_on_scheduler(wants_what)
            while (
                "('released', 0)" in expected[client.id]
                or "fired" in expected["fire-and-forget"]
            ):
                expected = client.run_on_scheduler(wants_what)
        del before, again, scattered, shared

    wanted, changes = {}, {}
    for line in by_kind(trace)["wanted_keys"]:
        assert sum(len(change["keys"]) for change in line["changes"]) < 2 * KEYS_PER_PART
        for change in line["changes"]:
            for key in change["keys"]:
                changes.setdefault((line["client"], key), []).append(change["action"])
                keys = wanted.setdefault(line["client"], set())
                (keys.add if change["action"] == "desires" else keys.remove)(key)
    wanted["fire-and-forget"].remove("fired")  # it has ended
    assert {client: keys for client, keys in wanted.items() if keys} == {
        client: keys for client, keys in expected.items() if keys
    }
    assert len(wanted[client.id]) > KEYS_PER_PART
    assert changes[client.id, "('kept', 0)"] == ["desires"]
    assert changes[client.id, "('released', 0)"] == ["desires", "releases"]
    assert changes["variable-v", "('kept', 0)"] == ["desires"]
    assert changes[gone.id, "of a client that leaves"] == ["desires", "releases"]
