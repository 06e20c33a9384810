"""How a cluster was asked for."""

from types import SimpleNamespace

import pytest
from distributed import LocalCluster, Nanny
from distributed.deploy.spec import SpecCluster

from roast_recorder.deployment import describe


def test_no_cluster():
    assert dict(describe(None)) == {}


@pytest.mark.cluster
def test_a_local_cluster():
    with LocalCluster(
        n_workers=2,
        threads_per_worker=3,
        memory_limit=2**30,
        dashboard_address="127.0.0.1:0",
        env={"TOKEN": "canary"},
    ) as cluster:
        told = dict(describe(cluster))

    assert told["type"] == "distributed.deploy.local.LocalCluster"
    assert told["worker type"] == "distributed.nanny.Nanny"
    assert (told["workers asked for"], told["nthreads"]) == (2, 3)
    assert told["memory_limit"] == 2**30
    assert "canary" not in str(told)


def test_a_cluster_of_a_batch_system():
    """As dask-jobqueue makes one: what jobs are asked for is in the workers' specification."""

    class SLURMCluster(SpecCluster):
        def __init__(self):
            self.new_spec = {
                "cls": Nanny,
                "options": {
                    "cores": 8, "memory": "16GB", "queue": "cms", "walltime": "01:00:00",
                    "processes": 2, "job_script_prologue": ["export TOKEN=canary"],
                    "env_extra": ["X=canary"], "worker_extra_args": ["--secret", "canary"],
                    "resources": {"GPU": 1, "x": "canary"}, "security": object(),
                    "log_directory": "/home/canary", "python": "/home/canary/bin/python",
                },
            }  # fmt: skip
            self.worker_spec = {0: self.new_spec, 1: self.new_spec}
            self._adaptive = SimpleNamespace(minimum=2, maximum=float("inf"))

    told = dict(describe(SLURMCluster()))

    assert told | {"type": None} == {
        "type": None, "worker type": "distributed.nanny.Nanny", "workers asked for": 2,
        "cores": 8, "memory": "16GB", "queue": "cms", "walltime": "01:00:00", "processes": 2,
        "resources": {"GPU": 1}, "adapts to minimum": 2, "adapts to maximum": "inf",
    }  # fmt: skip
