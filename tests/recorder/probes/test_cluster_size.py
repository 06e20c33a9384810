"""Number of workers that the client's cluster object plans and requests."""

import time

import pytest
from distributed import Client

import roast_recorder
from roast_analyze import Trace

pytestmark = pytest.mark.cluster


def test_changes_of_the_size(own_cluster, trace):
    with (
        own_cluster(1) as (cluster, client),
        roast_recorder.record(client, trace, flush_interval_seconds=0.05),
    ):
        client.submit(abs, 1).result()
        cluster.scale(3)
        client.wait_for_workers(3, timeout=20)
        time.sleep(0.5)  # several flushes
        cluster.scale(0)
        while cluster.scheduler_info["workers"]:
            cluster.sync(cluster._correct_state)

    with Trace(trace) as opened:
        rows = opened.rows("SELECT planned, requested, joined FROM cluster_sizes")
        times = opened.rows("SELECT t, until_t FROM cluster_sizes")
    assert rows[0] == (1, 1, 1)
    assert (3, 3) in {(planned, requested) for planned, requested, _ in rows}
    assert rows[-1][0] == 0
    assert [t for t, _ in times[1:]] == [until_t for _, until_t in times[:-1]]


def test_a_client_of_an_address_has_no_cluster(cluster, trace, by_kind):
    with (
        Client(cluster.scheduler_address) as client,
        roast_recorder.record(client, trace),
    ):
        client.submit(abs, 1).result()

    kinds = by_kind(trace).keys()
    assert ("task" in kinds, "cluster_size" in kinds) == (True, False)
