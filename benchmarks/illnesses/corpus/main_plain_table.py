"""The programs of `plain_programs.py` as rows.

Rules were calibrated with those programs, not with these rows. No module of this table imports
coffea or pandas, which would add to the memory of workers.
"""

from __future__ import annotations

from functools import partial

from afflictions import (
    At,
    BlockedLoops,
    Buffers,
    Late,
    Leaving,
    On,
    SlowScheduler,
    Split,
    Stopped,
    With,
)
from dask_collections import Powers
from graphs import Argument, AtOnce, Graph
from illness import MEGABYTE, Cluster, row
from tasks import All, Chain, Handling, InARow, Neighbours, Stage, Tree
from troubles import Fails, Grows, Leaks, Slow

HOSTS = Cluster(hosts=(1, 1, 2, 2))
NO_SPILLING = {"target": False, "spill": False}
BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

#: Durations of these programs do not vary.
task = partial(Stage, spread=0.0)
NAP = task("nap", 0.25)
NAPS = Graph(160, (NAP,))
SHORT_NAPS = Graph(160, (task("nap", 0.15),))
UNRELIABLE = task("unreliable", 0.3, retries=5)
PRIMES = Graph(150, (task("count_primes", primes=4_000),))


def blas_threads(number: int) -> dict[str, dict[str, str]]:
    return {"distributed.nanny.pre-spawn-environ": dict.fromkeys(BLAS, str(number))}


# fmt: off
# -- workers and hosts -----------------------------------------------------------------------

row("slow_worker", "slow-worker 3", Graph(200, (NAP,)), Cluster(), Slow(factor=3, workers=(3,)))
row("slow_host", "slow-host 127.0.0.2", NAPS, HOSTS, Slow(factor=2, hosts=(2,)))
row("late_workers", "late-workers", NAPS, Cluster(), Late(1, {6.0: 4}))
row("early_leavers", "late-workers", NAPS, Cluster(), Leaving({2: 3.0, 3: 3.0}))
row("excess_workers", "excess-workers|low-parallelism",
    Graph(2, (task("nap", 0.5), task("step", 0.5, Chain(20, (0, 1))))), Cluster(2),
    On(workers=8))
row("silent_worker", "silent-worker 2", NAPS, Cluster(), Stopped({2: ((4.0, 16.0),)}))
row("blocked_event_loop", "blocked-event-loop", SHORT_NAPS, Cluster(), BlockedLoops(0.8, 0.3))
row("blocked_event_loop_of_one", "blocked-event-loop 1",
    Graph(60, (task("nap", 0.15),), rounds=3), Cluster(),
    BlockedLoops(1.5, 0.1, by="coroutine", workers=(1,)))

# -- memory and failures ---------------------------------------------------------------------

row("spilling", "spilling",
    Graph(80, (task("produce_table", 0.2, nbytes=12 * MEGABYTE, form=Handling(disk_speed=60e6)),
    task("consume_table", 0.2)), kept=1), Cluster(memory="4GB",
    config={"target": 0.3, "spill": 0.7, "pause": 0.9}), On(memory="500MB"))
row("paused_workers", "paused-workers 1",
    Graph(160, (NAP,), held=(800 * MEGABYTE, 1)), Cluster(memory="4GB", config=NO_SPILLING),
    On(memory="1GB"))
# Pausing is disabled; otherwise all workers would pause forever. If all results were wanted at
# once, each death could lose more than was computed since the last one.
row("unmanaged_memory", "unmanaged-memory|killed-workers|paused-workers",
    Graph(60, (task("remember", 0.2),), rounds=3), Cluster(memory="1GB", config={"pause": False,
    "distributed.scheduler.allowed-failures": 20}), Leaks(nbytes=28 * MEGABYTE))
row("unmanaged_memory_of_one", "unmanaged-memory|paused-workers 2",
    NAPS, Cluster(memory="1GB"), Buffers(20 * MEGABYTE, 0.05, most=41, workers=(2,)))
row("killed_workers", "killed-workers",
    Graph(100, (task("spike", 0.4, nbytes=MEGABYTE), task("consume_all", 0.2, All()))),
    Cluster(memory="1GB"), Grows(only=("spike",), numbers=(45, 70)))
row("retries", "retries ConnectionResetError",
    Graph(120, (UNRELIABLE,)), Cluster(), Fails(error=ConnectionResetError, times=2,
    numbers=tuple(range(1, 120, 3))))

# -- graphs and scheduling -------------------------------------------------------------------

row("long_tail", "long-tail fit",
    Graph(161, (task("fit", 0.2, long={0: 8.0}),)), Cluster(), With(reverse=True))
row("short_tasks", "short-tasks|scheduler-saturated tiny",
    Graph(60, (task("tiny", 0.2), task("sum", 0.0, All()))), Cluster(), Split(50))
row("scheduler_saturated", "scheduler-saturated",
    Graph(500, (task("nap", 0.05),)), Cluster(), SlowScheduler(0.03))
row("large_graph", "large-graph",
    Graph(12, (task("look_up", 0.25),), via="delayed", rounds=5,
    argument=Argument(12 * MEGABYTE)), Cluster(),
    With(argument=Argument(12 * MEGABYTE, "each")))
row("transfers", "transfers combine",
    Graph(12, (task("produce", 0.2, nbytes=8 * MEGABYTE, in_turn=True), task("combine", 0.3,
    Neighbours((0, 1, 2, 3), most=8), in_turn=True)), rounds=4, waits=True),
    Cluster(uplink=2e9, senders=99), On(uplink=2e7))
row("client_gaps", "client-gaps", Graph(24, (NAP,), rounds=6), Cluster(), With(gap=1.5))
row("one_merge", "low-parallelism merge",
    Graph(64, (NAP, task("merge", 0.0, Tree(4), per_input=0.12))), Cluster(),
    At("merge", needs=Tree(64)))
row("serial_chain", "low-parallelism advance",
    AtOnce((Graph(40, (NAP,)), Graph(25, (task("advance", 0.4),)))), Cluster(),
    At("advance", needs=InARow()))

# -- CPU: these need a quiet machine ---------------------------------------------------------

row("gil", "gil", PRIMES, Cluster(2), On(workers=1, threads=2))
row("gil_many_threads", "gil", PRIMES, Cluster(2), On(workers=1, threads=8))
row("lock_of_a_library", "lock-waits read_locked",
    Graph(80, (task("read_locked", 0.1, lock="file library"),)), Cluster(),
    On(workers=1, threads=4))
# A forked worker would inherit the thread settings that BLAS has in the fork server.
row("oversubscribed_threads", "gil",
    Graph(40, (task("decompose", matrices=3),)), Cluster(2, config=blas_threads(1), fork=False),
    On(config=blas_threads(8)))

# -- controls --------------------------------------------------------------------------------

row("control_map", "", Graph(200, (Stage("nap", 0.25, spread=0.4),)), Cluster())
row("control_tree", "",
    Graph(128, (task("nap", 0.3), task("merge", 0.0, Tree(8), per_input=0.005))), Cluster())
row("control_mixture", "",
    AtOnce(tuple(Graph(count, (Stage(name, seconds),)) for name, seconds, count in (("fit", 1.0,
    24), ("nap", 0.25, 60), ("draw", 0.1, 60)))), Cluster())
row("control_array", "", Powers(), Cluster(2))

# -- two illnesses ---------------------------------------------------------------------------

row("slow_worker_and_client_gaps", "slow-worker 0; client-gaps",
    Graph(60, (NAP,), rounds=3), Cluster(), Slow(factor=3, workers=(0,)), With(gap=2.0))
row("retries_and_one_merge", "retries ConnectionResetError; low-parallelism merge",
    Graph(80, (UNRELIABLE, task("merge", 0.0, Tree(5), per_input=0.06))), Cluster(),
    Fails(error=ConnectionResetError, times=2, numbers=tuple(range(1, 80, 4)),
    only=("unreliable",)), At("merge", needs=Tree(80)))
row("late_workers_and_long_tail", "late-workers; long-tail fit",
    Graph(101, (task("fit", 0.25, long={0: 6.0}),)), Cluster(), Late(2, {6.0: 4}),
    With(reverse=True))
