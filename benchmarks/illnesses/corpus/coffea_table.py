"""Further illnesses of coffea: each kind of problem in each kind of program."""

from __future__ import annotations

import signal

from afflictions import Late, Leaving, On, Stopped, With
from analyses import Analysis, Processing, Runner, Serving, SlowReads, Steps, Written
from coffea.nanoevents import BaseSchema
from files import Form
from graphs import AtOnce
from illness import MEGABYTE, Cluster, row
from storage import Server
from troubles import Crashes, Fails, Grows, Leaks, Slow

#: Twelve files in chunks of 1,500 events that take 0.5 s, on 4 workers with 2 threads.
FORM = Form(events=12_000, basket=1_500)
MUONS = {"DoubleMuon": 7, "DYJets": 6}
WORK = Analysis(3.5e-4, spread=0.25)
TEN = {"treereduction": 10}
SKIPS = {"skipbadfiles": True}
THREADS = Cluster(4, 2)


def muons(analysis: Analysis = WORK, chunksize: int = 1_500, **changes: object) -> Runner:
    """Return an analysis of local files."""
    return Runner(analysis, chunksize, **{"datasets": MUONS, "form": FORM, **changes})


def served(
    server: Server, analysis: Analysis = WORK, chunksize: int = 1_500, **changes: object
) -> Runner:
    """Return an analysis of files at a server."""
    return muons(analysis, chunksize, servers={"": server}, **changes)


def two_sites(host: int, **facts: float) -> Runner:
    """Return an analysis of two datasets at two servers, the second with some facts."""
    return muons(servers={"DoubleMuon": Server(), "DYJets": Server(host=host, **facts)})


# fmt: off
# -- chunk sizes -----------------------------------------------------------------------------

row("corrections_for_each_chunk", "chunks-too-small",
    Runner(Analysis(1e-4, chunk_seconds=0.12, spread=0.1), 10_000, {"DY": 2, "TT": 2, "W": 2},
    Form(events=40_000, basket=1_000)), Cluster(), With(chunksize=1_000))
row("few_hundred_events_at_a_time", "chunks-too-small",
    Runner(Analysis(1e-4), 10_000, {"TT": 4, "W": 4}, Form(basket=400)), Cluster(),
    With(chunksize=400))
row("server_chunksize_of_a_test", "chunks-too-small|short-tasks",
    served(Server(latency=0.025), chunksize=1_500, datasets={"TT": 4},
    form=Form(events=12_000, basket=300)), Cluster(3), With(chunksize=300))
row("files_as_chunks_on_threads", "chunks-too-large|long-tail",
    Runner(Analysis(3e-4), datasets={"DY": 4, "TT": 4}), Cluster(3, 2), With(chunksize=100_000))
row("one_large_file", "chunks-too-large|long-tail",
    Runner(Analysis(2.5e-4), 3_000, {"Zjets": 5, "TT": 1}, Form(events=6_000, basket=3_000),
    {"TT": Form(events=36_000, basket=3_000)}), Cluster(3, 2), With(chunksize=100_000))
row("clusters_of_a_whole_file", "chunks-too-large|long-tail",
    muons(Analysis(6e-4, spread=0.25), 1_000, datasets={"DoubleMuon": 6, "DYJets": 4},
    form=Form(events=12_000, basket=1_000), runner={"align_clusters": True}), THREADS,
    Written(basket=12_000))
row("cuts_tuned_on_few_files", "excess-workers|chunks-too-large|low-parallelism",
    muons(Analysis(4e-4), 3_000, datasets={"DoubleMuon": 3, "DYJets": 2},
    form=Form(events=3_000, basket=3_000), runs=6), Cluster(3, 2), On(workers=9))

# -- baskets ---------------------------------------------------------------------------------

SHARED = Server(shared_speed=1.6e6)
row("local_files_of_one_basket", "repeated-baskets|chunks-too-small",
    Runner(Analysis(1.2e-5, reads="all"), 15_000, {"TT": 2, "ST": 2}, Form(events=240_000,
    basket=15_000, columns=8, compression="ZLIB-4", linked=True)), Cluster(3),
    Written(basket=240_000))
row("server_baskets_larger_than_chunks", "repeated-baskets",
    served(SHARED, chunksize=1_000, form=Form(events=12_000, basket=1_000)), Cluster(3, 2),
    Written(basket=4_000))
row("server_chunks_across_clusters", "repeated-baskets",
    served(Server(shared_speed=1.2e6), chunksize=1_000, form=Form(events=12_000, basket=2_400),
    runner={"align_clusters": True}), Cluster(3, 2), With(runner={}))
row("server_chunks_that_fit_no_basket", "repeated-baskets|chunks-too-small",
    served(SHARED, chunksize=2_000, form=Form(events=12_000, basket=2_000)), Cluster(3, 2),
    With(chunksize=500))
row("one_file_of_one_basket", "slow-file|repeated-baskets DYJets_3.root",
    served(Server(speed=1.2e6)), THREADS, Written("DYJets_3.root", basket=12_000))

# -- slow files ------------------------------------------------------------------------------

row("file_of_tiny_baskets", "slow-file DYJets_3.root",
    muons(Analysis(1.2e-4), 3_000), Cluster(3), Written("DYJets_3.root", basket=2))
row("file_of_a_noisy_detector", "slow-file DYJets_1.root",
    muons(Analysis(1.5e-4, jet_seconds=5e-5)), Cluster(5), Written("DYJets_1.root", jets=40.0))
row("two_files_on_a_failing_disk", "slow-file DYJets_2.root DoubleMuon_1.root",
    muons(), Cluster(), SlowReads("DYJets_2.root", 0.9), SlowReads("DoubleMuon_1.root", 0.9))
row("file_without_a_calibration", "slow-file DYJets_2.root",
    muons(), THREADS, Slow(extra=2.6, only=("DYJets_2.root",)))
row("file_at_a_far_site", "slow-file DYJets_2.root",
    served(Server(latency=0.001)), Cluster(5, 2),
    Serving(latency=0.8, slow_file="DYJets_2.root", others=0.002, redirects=True))

# -- slow storage ----------------------------------------------------------------------------

row("site_with_a_full_link", "slow-storage 127.0.0.4",
    two_sites(4), Cluster(5), Serving("DYJets", shared_speed=3.5e5))
row("site_with_two_slots", "slow-storage 127.0.0.6",
    two_sites(6, latency=0.001, slots=2), THREADS, Serving("DYJets", latency=0.07))
row("site_on_another_continent", "slow-storage 127.0.0.5",
    two_sites(5), Cluster(6), Serving("DYJets", latency=0.13))
row("site_with_a_failed_disk", "slow-storage 127.0.0.3",
    two_sites(3), Cluster(5, 2), Serving("DYJets", latency=1.5, unlucky=0.125))
row("site_behind_a_purged_cache", "slow-storage 127.0.0.5",
    two_sites(5), Cluster(2, 4), Serving("DYJets", block_seconds=0.1))
row("half_of_each_dataset_at_a_far_site", "slow-storage 127.0.0.9",
    muons(Analysis(6e-4), servers={"": Server(latency=0.001), **{f"{name}_{number}.root":
    Server(host=9, latency=0.001) for name in MUONS for number in (0, 2, 4)}}), Cluster(),
    *(Serving(f"{name}_{number}.root", latency=0.25) for name in MUONS for number in (0, 2, 4)))
row("overloaded_server", "slow-storage 127.0.0.1",
    served(Server(host=1)), Cluster(4), Serving(speed=2.5e5))
row("server_with_a_quota", "slow-storage 127.0.0.7",
    served(Server(host=7, latency=0.001)), Cluster(3, 2), Serving(latency=0.12, quota=250))
row("server_with_a_backup_in_bursts", "slow-storage 127.0.0.9",
    served(Server(host=9)), Cluster(3, 3), Serving(pause=2.2))
row("server_that_thrashes", "slow-storage 127.0.0.8",
    served(Server(host=8, latency=0.001)), THREADS, Serving(latency=0.012, thrashing=True))
row("distant_server_beside_local_files", "slow-storage 127.0.0.1 http DYJets",
    muons(servers={"DYJets": Server(latency=0.001)}), Cluster(),
    Serving("DYJets", latency=0.15))
row("host_with_a_slow_link", "slow-storage|slow-host 127.0.0.2",
    served(Server(), Analysis(2.4e-4)), Cluster(hosts=(1, 1, 2, 2)),
    SlowReads("http", 0.02, speed=1e5, workers=(2, 3)))
row("host_with_a_bad_mount", "slow-storage|slow-host 127.0.0.2",
    muons(executor={"treereduction": 8}), Cluster(hosts=(1, 1, 2, 2, 3, 3)),
    SlowReads("DYJets", 0.06, speed=1e5, workers=(2, 3)),
    SlowReads("DoubleMuon", 0.06, speed=1e5, workers=(2, 3)))

# -- opening files ---------------------------------------------------------------------------

row("local_outputs_of_batch_jobs", "file-opening|chunks-too-small",
    Runner(Analysis(1.5e-3), 1_000, {"QCD": 4}, Form(events=9_000, basket=1_000)), Cluster(),
    With(datasets={"QCD": 150}), Written(events=240), SlowReads("QCD", opening=0.12))
row("files_behind_a_redirector", "file-opening",
    served(Server(opening=0.005), Analysis(2e-4), 3_000, datasets={"QCD": 50},
    form=Form(events=3_000, basket=3_000)), Cluster(), Serving(opening=0.25))
row("files_with_many_branches", "file-opening",
    Runner(Analysis(3e-4), 1_500, {"JetHT": 36}, Form(events=1_500, basket=1_500),
    schema=BaseSchema), Cluster(2), Written(flat=500))
row("files_staged_from_tape", "file-opening",
    served(Server(), datasets={"JetHT": 48}, form=Form(events=3_000, basket=1_500)),
    Cluster(3, 2), Serving(staging=1.3))
row("token_checked_at_each_opening", "file-opening|chunks-too-small",
    served(Server()), THREADS, Serving(opening=0.5))
row("name_server_that_opens_one_by_one", "file-opening|chunks-too-small",
    served(Server()), Cluster(5, 2), Serving(opening=0.11, opening_slots=1))
row("tree_in_nested_folders", "file-opening",
    served(Server(latency=0.02), Analysis(5e-4), datasets={"JetHT": 60},
    form=Form(events=1_500, basket=1_500)), Cluster(3, 2),
    Written(tree="job/output/selection/muons/nominal/Events"))
row("files_opened_again_by_the_processor", "file-opening|chunks-too-small",
    served(Server(latency=0.04), datasets={"JetHT": 7}), Cluster(5), Processing(opens=2))

# -- skipped files ---------------------------------------------------------------------------

LOST = ("DYJets_1.root", "DYJets_4.root")
for how, cluster in (("truncated", Cluster(2, 3)), ("empty", Cluster()),
                     ("treeless", Cluster()), ("holes", THREADS)):
    row(f"local_files_{how}", "skipped-files DYJets_1.root DYJets_4.root DYJets",
        muons(runner={"skipbadfiles": (Exception,)}), cluster,
        With(damaged=dict.fromkeys(LOST, how)))
row("files_deleted_at_the_server", "skipped-files DYJets_1.root DYJets_4.root DYJets",
    served(Server(), runner=SKIPS), THREADS, With(damaged=dict.fromkeys(LOST, "missing")))
row("files_at_a_server_that_is_down", "skipped-files DYJets_1.root DYJets_4.root DYJets",
    served(Server(), runner={"skipbadfiles": (Exception,)}), Cluster(3, 2),
    With(damaged=dict.fromkeys(LOST, "down")))

# -- columns and compression -----------------------------------------------------------------

WIDE = Form(events=12_000, basket=1_500, columns=24)
row("preload_of_an_older_selection", "unused-branches",
    served(Server(shared_speed=4e6), form=WIDE, preload=4), Cluster(3, 2), With(preload=24))
row("preload_at_a_slow_mount", "unused-branches",
    muons(form=WIDE, preload=2), Cluster(3, 3), With(preload=24),
    SlowReads("columns_24", speed=3 * MEGABYTE))
row("preload_of_many_branches_in_large_files", "unused-branches",
    Runner(Analysis(1e-5), 20_000, {"TT": 4, "W": 4}, Form(events=60_000, basket=20_000,
    columns=60, linked=True), preload=2), Cluster(), With(preload=60))
row("check_of_all_columns", "unused-branches",
    Runner(Analysis(2e-5), 20_000, {"TT": 3, "W": 3}, Form(events=60_000, basket=20_000,
    columns=60, linked=True)), Cluster(), Processing(reads="all"))
row("archived_files_read_in_threads", "compression",
    Runner(Analysis(2e-5, reads="all"), 7_500, {"MC": 6}, Form(events=30_000, basket=7_500,
    columns=24, linked=True)), Cluster(1, 2), Written(compression="LZMA-4"))
row("archived_files_of_many_hits", "compression",
    Runner(Analysis(6e-5, reads="all"), 2_000, {"Calo": 8}, Form(events=8_000, basket=2_000,
    jets=120.0, compression="LZ4-1", linked=True)), Cluster(2, 2),
    Written(compression="LZMA-9"))
row("half_of_the_files_archived", "compression",
    Runner(Analysis(2e-5, reads="all"), 20_000, {"TT": 4, "W": 4}, Form(events=60_000,
    basket=20_000, columns=24, compression="LZ4-1", linked=True)), Cluster(),
    Written("W", compression="LZMA-6"))

# -- the processor ---------------------------------------------------------------------------

row("dataset_with_many_jets", "expensive-dataset DYJets",
    muons(Analysis(5e-5, jet_seconds=3e-5)), Cluster(), Written("DYJets", jets=16.0))
row("loop_over_jets_in_threads", "gil",
    muons(Analysis(3e-5, loops=True), datasets={"TT": 6}), Cluster(2), On(workers=1, threads=6))
row("histograms_with_fine_bins", "transfers|merging",
    muons(Analysis(3e-4, bins=100), executor=TEN), Cluster(6, uplink=9e6),
    Processing(bins=500_000))
row("columns_returned_for_a_fit", "transfers|low-parallelism|merging",
    muons(Analysis(3e-4, columns=8)), Cluster(4, 2, uplink=20e6), Processing(columns=800))
row("processor_with_a_table_inside", "large-graph",
    muons(Analysis(2e-4), datasets={"TT": 4, "W": 4, "Z": 4}, runs=0), THREADS,
    Processing(table=48 * MEGABYTE))

# -- workers ---------------------------------------------------------------------------------

row("old_machine", "slow-host 127.0.0.2",
    muons(Analysis(4e-4)), Cluster(hosts=(1, 1, 2, 2)), Slow(factor=3, hosts=(2,)))
row("job_of_another_user_on_one_host", "slow-host 127.0.0.3",
    muons(Analysis(4e-4, spread=0.25)), Cluster(threads=2, hosts=(2, 2, 3, 3, 4)),
    Slow(extra=0.9, hosts=(3,), since=3))
row("cache_disk_of_one_worker", "slow-worker|slow-storage 1 127.0.0.1",
    muons(), THREADS, SlowReads("DYJets", 0.3, workers=(1,)),
    SlowReads("DoubleMuon", 0.3, workers=(1,)))
row("regression_that_crashes", "killed-workers",
    muons(), Cluster(5, 2), Crashes(by=signal.SIGABRT, only=("DYJets_1.root", "DYJets_4.root"),
    numbers=(6_000, 9_000)))
row("pilot_jobs_that_are_evicted", "killed-workers",
    muons(Analysis(4e-4, spread=0.25), 2_400),
    Cluster(4, 2, config={"distributed.scheduler.allowed-failures": 20}),
    Leaving({2: 4.0, 0: 6.0, 3: 8.0, 1: 10.0}, how="kill"))
row("sessions_that_a_library_keeps", "unmanaged-memory|killed-workers|paused-workers 1 3",
    muons(), Cluster(4, 2, "1GB", {"pause": False,
    "distributed.scheduler.allowed-failures": 20}), Leaks(nbytes=40 * MEGABYTE, workers=(1, 3)))
row("quota_of_one_dataset", "retries OSError Exception Analysis",
    muons(Analysis(4e-4)), Cluster(), Fails(only=("DYJets",), share=0.6))
row("reads_refused_after_the_work", "retries",
    served(Server(), Analysis(4e-4, reads="late")), Cluster(3, 3), Serving(refused=0.15))
row("proxy_that_expired_on_one_worker", "retries PermissionError Exception Analysis 3",
    muons(executor={"retries": 200, **TEN}), Cluster(5),
    Fails(error=PermissionError, times=None, workers=(3,)))
row("chunks_bound_to_workers", "restricted-tasks|idle-threads|low-parallelism|long-tail",
    muons(Analysis(5e-4), 2_000, datasets={"DYJets": 10},
    form=Form(events=12_000, basket=2_000), executor=TEN), Cluster(8),
    With(executor={"worker_affinity": True, **TEN}))
row("steps_worker_in_a_hung_call", "silent-worker 3",
    Steps(0.5), Cluster(5, 2), Stopped({3: ((4.0, 14.0),)}))
row("steps_beyond_memory", "killed-workers",
    Steps(0.5), Cluster(memory="1500MB"), Grows(only=("EGamma_4.root", "EGamma_9.root"),
    numbers=(3_000, 7_000), nbytes=2_500 * MEGABYTE))

# -- the client ------------------------------------------------------------------------------

row("run_for_each_dataset", "client-gaps",
    muons(Analysis(3e-4), datasets=dict.fromkeys(("DY", "QCD", "Top", "VV", "W"), 2), runs=0),
    Cluster(), With(gap=1.3))
row("events_counted_by_the_client", "client-gaps",
    muons(Analysis(2e-4), datasets={"DYJets": 8, "TT": 8, "W": 8}, runs=0), Cluster(3, 2),
    With(counts_first=True), SlowReads("root", opening=0.3, by_client=True))

# -- two illnesses ---------------------------------------------------------------------------

row("baskets_of_a_merge_and_late_workers", "repeated-baskets; late-workers",
    served(Server(speed=1.5e6)), Cluster(6), Written(basket=12_000), Late(2, {5.0: 6}))
row("locked_file_and_late_workers", "slow-file DYJets_3.root; late-workers",
    served(Server()), Cluster(5, 2), SlowReads("DYJets_3.root", 0.6), Late(2, {5.0: 5}))
row("preload_and_worker_that_swaps", "unused-branches; slow-worker 0",
    served(Server(pace=1e6), form=WIDE, preload=2), THREADS, With(preload=24),
    Slow(extra=1.1, workers=(0,)))
row("throttled_worker_and_fits", "slow-worker 4; client-gaps",
    muons(Analysis(4e-4), runs=3, datasets={"A": 5, "B": 5}), Cluster(5),
    Slow(factor=3, workers=(4,), since=4), With(gap=3.0))
row("bad_replica_and_lost_connections",
    "slow-file DYJets_5.root; retries ConnectionAbortedError Exception Analysis",
    served(Server()), THREADS, Serving(latency=0.6, slow_file="DYJets_5.root", others=0.002),
    Fails(error=ConnectionAbortedError, share=0.45))
row("timeouts_and_a_large_file_last", "retries TimeoutError Exception Analysis;"
    "long-tail|chunks-too-large Large_0.root Large Analysis",
    muons(Analysis(5e-4), 10_000, datasets={"Small": 60, "Large": 1},
    form=Form(events=1_000, basket=1_000), others={"Large": Form(events=8_500, basket=1_000)},
    order=("Large", "Small")), THREADS, With(order=("Small", "Large")),
    Fails(error=TimeoutError, only=("Small",), share=0.35))
row("moved_files_and_a_large_table", "skipped-files DYJets_1.root DYJets_4.root; large-graph",
    muons(Analysis(4e-4), runner=SKIPS), Cluster(),
    With(damaged=dict.fromkeys(LOST, "missing")), Processing(table=80 * MEGABYTE))

# -- controls --------------------------------------------------------------------------------

row("control_three_datasets", "",
    muons(Analysis(2.5e-4, spread=0.1, factors={"A": 1.2}), datasets={"A": 3, "B": 2, "C": 2}),
    Cluster(3, 2))
row("control_files_of_all_sizes", "",
    muons(Analysis(5e-4, spread=0.25), others={"DYJets": Form(events=27_000, basket=1_500),
    "DoubleMuon_2.root": Form(events=6_000, basket=1_500)}), Cluster(2, 4))
row("control_near_and_far_servers", "", two_sites(7, latency=0.006), Cluster(6))
row("control_tree_in_a_folder", "",
    served(Server(host=3), Analysis(6e-4), 1_200, form=Form(events=12_000, basket=600,
    tree="nominal/Events"), runner={"align_clusters": True}), Cluster(3, 3))
row("control_aligned_chunks", "",
    muons(runner={"align_clusters": True}, executor={"compression": None}), THREADS)
row("control_steps", "", Steps(0.5), Cluster(3, 2))
row("control_two_selections", "", muons(runs=2), Cluster(2, 4))
row("control_analyses_at_once", "", AtOnce((muons(), muons(chunksize=2_000))), THREADS)
