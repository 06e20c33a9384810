"""Run workers as batch jobs: dask-jobqueue with its class for jobs on this machine.

On a cluster, replace ``LocalCluster`` by ``SLURMCluster``, ``HTCondorCluster`` or
``PBSCluster``; the rest stays as it is. It needs ``pip install dask-jobqueue``.

    roast-record run -o jobs.jsonl.zst -- python batch_jobs.py
"""

import time

from dask.distributed import Client
from dask_jobqueue.local import LocalCluster


def simulate(seed: int) -> float:
    """Compute for a moment, as a simulation of one file would."""
    until = time.perf_counter() + 0.05
    value = float(seed)
    while time.perf_counter() < until:
        value = (value * 16_807) % 2_147_483_647
    return value / 2_147_483_647


if __name__ == "__main__":
    with (
        LocalCluster(
            cores=1, processes=1, memory="1 GB", worker_extra_args=["--no-dashboard"],
            scheduler_options={"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"},
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        # The first job starts at once, the second when a part of the work is done.
        cluster.scale(jobs=1)
        client.wait_for_workers(1)
        futures = client.map(simulate, range(400))
        time.sleep(5)
        cluster.scale(jobs=2)
        print(f"mean: {sum(client.gather(futures)) / len(futures):.3f}")
