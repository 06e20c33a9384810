"""Fine metrics: sums over the workers equal those of the scheduler's spans."""

import sys
import time
from collections import defaultdict

import cloudpickle
import pytest
from distributed import span

import roast_recorder

pytestmark = pytest.mark.cluster

# Workers can't import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def load(number):
    return bytes(200_000) + bytes([number])


def sift(data):
    time.sleep(0.02)
    return sum(data[:1000])


def total(*parts):
    return sum(parts)


def run(client, number):
    """Compute a span within a span, with three prefixes."""
    with span(f"analysis {number}"):
        data = client.map(load, range(number, number + 12), pure=False)
        with span("sifting"):
            sifted = client.map(sift, data, pure=False)
        return client.submit(total, *sifted).result()


def compute_everywhere(client, workers):
    """Run a task on each worker and wait for the next heartbeat."""
    with span("a task on each"):
        for address in list(workers):
            client.submit(sum, [1], workers=[address], pure=False).result()
    time.sleep(1.5)


def sums_of_scheduler(cluster):
    """Return the scheduler's sums by span and metric, without Dask's N/A time."""
    return {
        root.id: {
            name: value
            for name, value in root.cumulative_worker_metrics.items()
            if name[:2] != ("execute", "N/A")
        }
        for root in cluster.scheduler.extensions["spans"].root_spans
    }


def sums_of_trace(records):
    """Return the sums of a trace over workers, heartbeats and nested spans."""
    parents = {span["span_id"]: span.get("parent_id") for span in records["span"]}

    def root(span_id):
        return root(parents[span_id]) if parents[span_id] else span_id

    found = defaultdict(lambda: defaultdict(float))
    for line in records["fine_metric"]:
        if "span_id" in line:
            name = tuple(line[part] for part in ("context", "prefix", "activity", "unit"))
            found[root(line["span_id"])][name] += line["delta"]
    return found


def test_sums_equal_the_schedulers_while_workers_join_and_leave(own_cluster, trace, by_kind):
    with own_cluster(2) as (cluster, client):
        with roast_recorder.record(client, trace):
            # A worker that leaves before its first heartbeat after a task loses its metrics.
            leaver = next(iter(cluster.scheduler.workers))
            run(client, 1)
            cluster.scale(3)
            client.wait_for_workers(3)
            run(client, 2)
            compute_everywhere(client, cluster.scheduler.workers)
            client.retire_workers([leaver])
            run(client, 3)
        expected = sums_of_scheduler(cluster)

    records = by_kind(trace)
    found = sums_of_trace(records)
    assert len(expected) == 4  # three analyses, and the task on each worker
    assert found.keys() == expected.keys()
    for span_id, metrics in expected.items():
        assert found[span_id] == pytest.approx(metrics, abs=1e-6)
    prefixes = {name[1] for metrics in expected.values() for name in metrics}
    assert prefixes >= {"load", "sift", "total"}
    assert len({line["worker"] for line in records["fine_metric"]}) == 3
