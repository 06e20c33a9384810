"""The programs of `coffea_programs.py` as rows.

Rules were calibrated with those programs, not with these rows.
"""

from __future__ import annotations

from afflictions import Late, On, With
from analyses import Analysis, Dijets, Processing, Runner, Serving, Written
from files import Form
from illness import Cluster, row
from storage import Server
from troubles import Fails, Grows, Slow

# fmt: off
# -- chunks ----------------------------------------------------------------------------------

SMALL = Runner(Analysis(1.5e-4, chunk_seconds=0.1), 10_000, form=Form(basket=500))
SERVED = Runner(Analysis(), servers={"": Server()})
SLOW = {"latency": 0.02, "speed": 2e5}
TIMEOUTS = Fails(error=TimeoutError, numbers=(0, 10_000))

row("chunks_too_small", "chunks-too-small", SMALL, Cluster(), With(chunksize=500))
row("chunks_too_large", "chunks-too-large",
    Runner(Analysis(4e-4), datasets={"DY": 5}), Cluster(), With(chunksize=100_000))
row("repeated_baskets", "repeated-baskets|chunks-too-small",
    Runner(Analysis(), 20_000, form=Form(basket=20_000), servers={"": Server(speed=1e7)}),
    Cluster(), With(chunksize=1_000))
row("long_tail_of_chunks", "long-tail",
    Runner(Analysis(factors={"Rare": 14.0}), datasets={"Rare": 1, "DY": 4, "TT": 4},
    others={"Rare": Form(events=2_500)}), Cluster(), With(order=("DY", "TT", "Rare")))

# -- files and datasets ----------------------------------------------------------------------

row("slow_file", "slow-file TT_1.root",
    SERVED, Cluster(), Serving(**SLOW, slow_file="TT_1.root"))
row("expensive_dataset", "expensive-dataset TT",
    Runner(Analysis(1.2e-4)), Cluster(), Processing(factors={"TT": 4.0}))
row("slow_storage", "slow-storage 127.0.0.2",
    Runner(Analysis(), servers={"DY": Server(), "TT": Server(host=2)}), Cluster(),
    Serving("TT", latency=0.02, speed=1.5e5))
row("file_opening", "file-opening",
    Runner(Analysis(5e-4), 1_000, {"DY": 3, "TT": 3}, Form(events=8_000, basket=1_000),
    servers={"": Server(latency=0.06)}), Cluster(), With(datasets={"DY": 40, "TT": 40}),
    Written(events=600))
row("skipped_files", "skipped-files",
    Runner(Analysis(), runner={"skipbadfiles": True}), Cluster(),
    With(damaged={f"TT_{number}.root": "missing" for number in range(3)}))
row("unused_branches", "unused-branches",
    Runner(Analysis(), 5_000, form=Form(columns=40), servers={"": Server(speed=3e6)},
    preload=2), Cluster(), With(preload=24))

# -- workers and the cluster -----------------------------------------------------------------

row("slow_worker_of_chunks", "slow-worker 1",
    Runner(Analysis(3e-4), 2_000), Cluster(), Slow(factor=4, workers=(1,)))
row("late_workers_of_chunks", "late-workers", Runner(Analysis()), Cluster(), Late(1, {6.0: 4}))
row("killed_workers_of_chunks", "killed-workers",
    Runner(Analysis()), Cluster(memory="1GB"), Grows(only=("DY_2.root",), numbers=(5_000,)),
    Grows(only=("TT_2.root",), numbers=(10_000,)))
row("retries_of_chunks", "retries", Runner(Analysis()), Cluster(), TIMEOUTS)

# -- graphs, the client and CPU of chunks ----------------------------------------------------

row("one_merge_of_chunks", "low-parallelism",
    Runner(Analysis(merge_seconds=0.12), executor={"treereduction": 4}), Cluster(),
    With(executor={"treereduction": 100}))
row("merging_of_chunks", "merging",
    Runner(Analysis(bins=100), executor={"treereduction": 4}), Cluster(),
    Processing(bins=4_000_000))
row("client_gaps_of_chunks", "client-gaps",
    Runner(Analysis(6e-5), runs=3), Cluster(), With(gap=3.0))
row("gil_of_chunks", "gil",
    Runner(Analysis(0.0, loops=True)), Cluster(2), On(workers=1, threads=4))
row("compression", "compression",
    Runner(Analysis(3e-5, reads="all"), 5_000, form=Form(columns=40, compression="LZ4-1")),
    Cluster(2), Written(compression="LZMA-1"))

# -- controls --------------------------------------------------------------------------------

row("control_chunks", "", Runner(Analysis(3e-4)), Cluster())
row("control_cold_workers", "", Runner(Analysis(6e-4), is_warm=False), Cluster(fork=False))
row("control_server", "",
    Runner(Analysis(3e-4), servers={"DY": Server(), "TT": Server(host=2)}), Cluster())
row("control_computing", "", Dijets(), Cluster(2))

row("slow_file_and_client_gaps", "slow-file DY_2.root; client-gaps",
    Runner(Analysis(1e-4), servers={"": Server()}, runs=2), Cluster(),
    Serving(**SLOW, slow_file="DY_2.root"), With(gap=4.0))
row("chunks_too_small_and_slow_worker", "chunks-too-small; slow-worker 2",
    Runner(Analysis(1.5e-4, chunk_seconds=0.1), 5_000, form=Form(basket=500)), Cluster(),
    With(chunksize=500), Slow(factor=3, workers=(2,)))
row("retries_and_late_workers_of_chunks", "retries; late-workers",
    Runner(Analysis()), Cluster(), TIMEOUTS, Late(1, {6.0: 4}))
