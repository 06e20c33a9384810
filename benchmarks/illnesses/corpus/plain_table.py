"""Further illnesses of plain Dask: each kind of problem in each kind of program."""

from __future__ import annotations

import signal
from typing import Any

from afflictions import (
    Adapting,
    At,
    BlockedLoops,
    Buffers,
    HeldGil,
    Late,
    Leaving,
    OldPackage,
    On,
    Preloading,
    SlowScheduler,
    Split,
    Stopped,
    With,
)
from dask_collections import Array, Bag, Frame
from graphs import Argument, AtOnce, Folding, Graph, Nested, Search, Stacking
from illness import MEGABYTE, Cluster, row
from tasks import (
    All,
    Chain,
    Divided,
    Fan,
    Groups,
    Handling,
    InARow,
    Neighbours,
    Pairs,
    Stage,
    Tree,
    Wavefront,
)
from troubles import Crashes, Fails, Grows, Leaks, OneAtATime, Slow

#: Clusters of three hosts, of which 127.0.0.3 is ill.
THREE_HOSTS = Cluster(hosts=(1, 1, 2, 2, 3, 3))
UNEVEN_HOSTS = Cluster(threads=2, hosts=(2, 2, 3, 3, 4))
DISK = Handling(disk_speed=60e6)
FAILURES = {"distributed.scheduler.allowed-failures": 30}


def stages(*kinds: Stage | tuple[str, float]) -> tuple[Stage, ...]:
    """Return stages, most of which are given by name and seconds."""
    return tuple(kind if isinstance(kind, Stage) else Stage(*kind) for kind in kinds)


def graph(tasks: int, *kinds: Stage | tuple[str, float], **options: Any) -> Graph:
    """Return a graph of stages."""
    return Graph(tasks, stages(*kinds), **options)


def spills(target: float) -> dict[str, object]:
    """Return the configuration of workers that spill above a part of their memory."""
    return {"target": target, "spill": False, "pause": False}


def tree(name: str = "summarize", fan_in: int = 8, seconds: float = 0.03) -> Stage:
    return Stage(name, seconds, Tree(fan_in))


# fmt: off
# -- a slow worker ---------------------------------------------------------------------------

row("search_slow_worker", "slow-worker 1",
    Search(100, Stage("trial", 0.5, spread=0.4)), Cluster(5), Slow(factor=2.5, workers=(1,)))
row("kmeans_worker_throttled_later", "slow-worker 3",
    graph(12, Stage("load_points", 0.4, nbytes=MEGABYTE), ("assign", 0.35),
    Stage("update", 0.05, All()), rounds=10, kept=1), Cluster(),
    Slow(factor=3, workers=(3,), since=5))
row("tree_mildly_slow_worker", "slow-worker 4",
    graph(360, ("simulate", 0.3), tree(), via="delayed"), Cluster(6, 2),
    Slow(factor=2.2, workers=(4,)))
row("chains_worker_slow_for_one_prefix", "slow-worker 1",
    graph(90, ("load_plate", 0.3), ("deconvolve", 0.5), via="delayed"), Cluster(3, 2),
    Slow(factor=3.2, workers=(1,), only=("deconvolve",)))
row("map_worker_with_cpu_quota", "slow-worker 1",
    graph(100, ("fit_fold", 0.7)), Cluster(3, 2), Stopped({1: tuple((0.2 * turn + 0.06, 0.2 *
    turn + 0.2) for turn in range(90))}))
row("rounds_in_step_with_slow_worker", "slow-worker 2",
    graph(16, Stage("gradient", 0.4, in_turn=True), Stage("average", 0.05, All()), rounds=8),
    Cluster(4, 2), Slow(factor=1.7, workers=(2,), only=("gradient",)))
row("neighbours_worker_without_token", "slow-worker 1",
    graph(165, ("download_night", 0.4), Stage("subtract", 0.3, Neighbours((0, -1))),
    via="delayed"), Cluster(3, 3), Slow(extra=0.8, workers=(1,), only=("download_night",)))
row("time_steps_worker_that_logs", "slow-worker 2",
    graph(12, Stage("assimilate", 0.4, Chain(13)), tree(), via="delayed"), Cluster(3, 2),
    Slow(extra=0.6, workers=(2,), only=("assimilate",)))
row("frame_worker_without_index", "slow-worker 2",
    Frame(120, Stage("read_visits", 0.25), Stage("deduplicate", 0.3)), Cluster(3, 2),
    Slow(growth=0.03, workers=(2,)))
row("array_slow_worker", "slow-worker 2",
    Array((12, 12), Stage("denoise", 0.4), method="var"), Cluster(4, 2),
    Slow(factor=2.6, workers=(2,)))

# -- a slow host -----------------------------------------------------------------------------

row("chains_slow_host", "slow-host 127.0.0.3",
    graph(130, ("clean", 0.35), ("model", 0.45), via="delayed"),
    Cluster(threads=2, hosts=(1, 1, 2, 2, 3, 3)), Slow(factor=1.9, hosts=(3,)))
row("pairs_host_slow_for_one_prefix", "slow-host 127.0.0.3",
    graph(96, ("fetch", 0.25), ("convert", 0.45)), THREE_HOSTS,
    Slow(factor=4, hosts=(3,), only=("fetch",)))
row("pairs_host_with_one_slow_disk", "slow-host 127.0.0.3",
    graph(220, ("read_tile", 0.05), ("smooth", 0.3)),
    Cluster(threads=2, hosts=(1, 1, 2, 2, 3, 3)),
    OneAtATime(seconds=0.5, hosts=(3,), only=("read_tile",)))
row("rounds_throttled_host", "slow-host 127.0.0.3",
    graph(24, Stage("load_block", 0.25, nbytes=MEGABYTE), ("gradient", 0.25),
    Stage("update", 0.05, All()), rounds=6, kept=1), THREE_HOSTS,
    Slow(factor=3.5, hosts=(3,), only=("gradient",)))
row("bag_host_with_dead_name_server", "slow-host 127.0.0.3",
    Bag(130, stages(("query_services", 0.6))), UNEVEN_HOSTS, Slow(extra=1.3, hosts=(3,)))
row("map_host_that_overheats", "slow-host 127.0.0.3",
    graph(210, ("integrate_orbit", 0.4), Stage("conclude", 0.03, All())), UNEVEN_HOSTS,
    Slow(factor=3.5, hosts=(3,), since=2))
row("chains_host_with_small_cache", "slow-host 127.0.0.3",
    graph(130, ("unpack_file", 0.15), ("reconstruct", 0.45)), THREE_HOSTS,
    Slow(extra=1.7, hosts=(3,), only=("reconstruct",), share=0.5))

# -- workers that join late or leave ---------------------------------------------------------

row("delayed_workers_that_trickle_in", "late-workers",
    graph(250, ("trial", 0.4), via="delayed"), Cluster(6, 2),
    Late(1, {1.5 * turn: turn + 1 for turn in range(1, 6)}))
row("frame_workers_in_two_batches", "late-workers",
    Frame(150, Stage("read_month", 0.35), Stage("clean", 0.15)), Cluster(7),
    Late(2, {7.0: 5, 11.0: 7}))
row("array_workers_that_boot", "late-workers",
    Array((13, 10), Stage("process_field", 0.45)), Cluster(6),
    Late(2, {2.0: 3, 4.0: 4, 6.0: 5, 8.0: 6}))
row("bag_workers_with_slow_preload", "late-workers",
    Bag(170, stages(("transcribe", 0.4))), Cluster(5, 2), Preloading(2, 5, 3.5))
row("tree_workers_whose_jobs_end", "late-workers",
    graph(180, ("interpolate", 0.4), tree(), via="delayed"), Cluster(8),
    Leaving({3: 3.5, 4: 4.0, 5: 4.5, 6: 5.0, 7: 5.5}, how="close"))
row("map_adaptive_cluster", "late-workers",
    graph(180, ("render", 0.5)), Cluster(6), Adapting(6))

# -- workers that stand still ----------------------------------------------------------------

row("bag_silent_worker", "silent-worker 1",
    Bag(120, stages(("inspect", 0.35))), Cluster(3, 2), Stopped({1: ((2.0, 10.0),)}))
row("rounds_silent_worker", "silent-worker 2",
    graph(16, ("train", 0.5), rounds=10), Cluster(), Stopped({2: ((8.0, 14.5),)}))
row("exchange_silent_worker", "silent-worker 2",
    graph(110, Stage("simulate", 0.4, nbytes=100_000),
    Stage("correlate", 0.35, Neighbours((0, 37)))), Cluster(5, 2), Stopped({2: ((3.5, 11.0),)}))
row("pairs_silent_host", "silent-worker 2 3",
    graph(90, ("embed", 0.3), Stage("compare", 0.35, Neighbours((-1, -31), apart=True)), tree(),
    via="delayed"), Cluster(6, 2), Stopped({2: ((4.0, 13.0),), 3: ((4.0, 13.0),)}))
row("pairs_workers_stopped_in_turn", "silent-worker 0 1 2",
    graph(110, ("relax", 0.5), ("assess", 0.25)), Cluster(3, 3),
    Stopped({0: ((2.0, 6.5),), 1: ((6.5, 11.0),), 2: ((11.0, 15.5),)}))
row("pairs_worker_that_hangs_with_the_gil", "silent-worker|blocked-event-loop|gil 1",
    graph(110, ("reconstruct", 0.4), Stage("align", 0.3, Neighbours((-1, -41), apart=True))),
    Cluster(3, 3), HeldGil(8.0, 3.0, workers=(1,)))
row("pairs_host_in_migration", "silent-worker 4 5 127.0.0.3",
    graph(80, ("track", 0.3), ("vertex", 0.2)), THREE_HOSTS,
    Stopped({4: ((2.0, 11.0),), 5: ((2.0, 11.0),)}))

# -- event loops of workers ------------------------------------------------------------------

row("coroutines_that_block", "blocked-event-loop",
    graph(160, Stage("fetch", 0.12, is_coroutine=True)), Cluster(2, 4),
    At("fetch", blocks=True))
row("pairs_metrics_pushed_later", "blocked-event-loop",
    graph(80, ("load", 0.3), ("train", 0.4)), Cluster(), BlockedLoops(0.7, 0.8, since=3.0))
row("chains_briefly_blocked_loops", "blocked-event-loop",
    graph(160, Stage("step", 0.1, Chain(3))), Cluster(3), BlockedLoops(0.5, 0.3))
row("results_slow_to_measure", "blocked-event-loop",
    graph(150, Stage("decay", 0.35, nbytes=1_000), ("count_leptons", 0.25)), Cluster(3, 4),
    At("decay", form=Handling(sizeof_seconds=0.15)))
row("results_slow_to_pickle", "blocked-event-loop|transfers",
    graph(130, Stage("grow", 0.35, nbytes=1_000, form=Handling(pickle_seconds=0.001)),
    Stage("graft", 0.35, Neighbours((0, 47)))), Cluster(3, 4),
    At("grow", form=Handling(pickle_seconds=0.2)))
row("pairs_journal_of_results", "blocked-event-loop",
    graph(100, ("simulate", 0.3), ("reconstruct", 0.3)), Cluster(3, 4),
    BlockedLoops(0.1, 0.0, by="result"))
row("actor_with_slow_coroutine", "blocked-event-loop 0",
    Stacking(200, 0.45), Cluster(3, 3), With(add_seconds=0.09))
row("nested_tasks_that_do_not_rejoin", "seceded-tasks", Nested(30, 0.5), Cluster(2, 1),
    With(rejoins=False))
row("steps_in_one_actor", "actor-methods", Folding(60, 0.3), Cluster(3), With(in_actor=True))
row("map_quota_checked_by_client", "blocked-event-loop",
    graph(500, ("extract_peaks", 0.2)), Cluster(4, 4), BlockedLoops(0.7, 0.3, by="client.run"))
row("pairs_device_asked_at_heartbeats", "blocked-event-loop",
    graph(220, ("denoise", 0.22), Stage("register", 0.2, Neighbours((-1, 53), apart=True))),
    Cluster(3, 4), BlockedLoops(0.45, 0.0, by="metric"))

# -- too many workers ------------------------------------------------------------------------

row("rounds_of_three_tasks", "excess-workers|low-parallelism",
    graph(3, ("trial", 0.6), rounds=14), Cluster(3), On(workers=9))
row("search_with_five_in_flight", "excess-workers",
    Search(120, Stage("trial", 0.6), in_flight=5), Cluster(5), On(workers=8))
row("six_chains_on_many_workers", "excess-workers|low-parallelism",
    graph(6, Stage("sample", 0.5, Chain(24)), tree(), via="delayed"), Cluster(3, 2),
    On(workers=8))
row("filter_of_four_members", "excess-workers|low-parallelism",
    graph(4, Stage("propagate", 0.5, Chain(18, (0, 1, 2, 3)))), Cluster(2, 2), On(workers=7))
row("wavefront_in_a_narrow_band", "excess-workers|low-parallelism",
    graph(4, Stage("score_cell", 0.4, Wavefront(34))), Cluster(2, 2), On(workers=6))
row("monitor_of_data_taking", "excess-workers|low-parallelism",
    Search(64, Stage("decode_frame", 1.4), arrival_seconds=0.25), Cluster(4, 2),
    On(workers=8, threads=3))

# -- versions --------------------------------------------------------------------------------

row("map_workers_with_another_numpy", "version-mismatch",
    graph(60, ("trial", 0.3)), Cluster(3), OldPackage("numpy", "1.26.4"))
row("bag_workers_of_an_old_image", "version-mismatch",
    Bag(120, stages(("transcribe", 0.4))), Cluster(3, 2),
    OldPackage("cloudpickle", "2.2.1", workers=(1, 2)))

# -- spilling --------------------------------------------------------------------------------

IMAGES = Stage("expose", 0.3, nbytes=40 * MEGABYTE, form=Handling(disk_speed=200e6))
row("two_passes_over_images", "spilling",
    graph(36, IMAGES, ("calibrate", 0.4), rounds=2, kept=1),
    Cluster(3, 2, "3GB", {"pause": 0.9}), On(memory="700MB"))
row("array_less_its_mean", "spilling",
    Array((9, 8), Stage("read_block", 0.3), Stage("subtract", 0.3), side=1_600,
    method="less_mean"), Cluster(3, 2, "4GB", {"pause": False}), On(memory="900MB"))
row("history_of_all_turns", "spilling",
    graph(36, Stage("book", 0.3, nbytes=9 * MEGABYTE, form=Handling(disk_speed=45e6)),
    ("balance", 0.05), Stage("conclude", 0.03, All()), rounds=6),
    Cluster(3, 2, "2GB", spills(0.15)), With(retains=True))
row("fits_that_return_residuals", "spilling",
    graph(84, ("read_spectra", 0.3), Stage("fit_spectra", 0.35, nbytes=1_000, form=DISK),
    Stage("check", 0.12, Neighbours((0, 41))), retains=True, via="map"),
    Cluster(3, 2, "1GB", spills(0.2)), At("fit_spectra", nbytes=20 * MEGABYTE))
row("files_staged_early", "spilling",
    graph(66, Stage("stage", 0.3, nbytes=12 * MEGABYTE, form=DISK), ("skim", 0.35)), Cluster(3,
    2, "1GB", {**spills(0.12), "distributed.scheduler.worker-saturation": "inf"}),
    At("stage", priority=100))
row("catalogue_sent_to_every_worker", "spilling",
    graph(90, Stage("expose", 0.3, nbytes=6 * MEGABYTE, form=DISK),
    Stage("match_stars", 0.35, Neighbours((0, 43))), waits=True, retains=True,
    argument=Argument(1_000)), Cluster(4, 2, "1500MB", spills(0.2)),
    With(argument=Argument(290 * MEGABYTE)))

# -- memory outside of Dask ------------------------------------------------------------------

row("map_library_that_caches", "paused-workers|unmanaged-memory 1",
    graph(130, ("translate", 0.4)), Cluster(3, 1, "800MB"),
    Leaks(nbytes=30 * MEGABYTE, most=25, empties=18.0, workers=(1,)))
row("pairs_figures_that_stay_open", "unmanaged-memory|spilling",
    graph(60, Stage("load_table", 0.3, nbytes=8 * MEGABYTE, form=DISK),
    Stage("compare", 0.3, Neighbours((0, 1))), waits=True, retains=True),
    Cluster(3, 1, "750MB"), Leaks(nbytes=12 * MEGABYTE))
row("frames_that_need_much_memory", "paused-workers|unmanaged-memory",
    graph(80, ("render_frame", 0.5)), Cluster(2, 4, "430MB", {"terminate": False}),
    Leaks(nbytes=60 * MEGABYTE, seconds=0.8))
row("cache_with_time_to_live", "paused-workers|unmanaged-memory",
    graph(120, ("interpolate", 0.3)), Cluster(3, 2, "700MB", {"terminate": False}),
    Leaks(nbytes=40 * MEGABYTE, seconds=3.0))
row("prefetcher_of_each_worker", "paused-workers|unmanaged-memory",
    graph(130, ("segment", 0.35)), Cluster(3, 2, "900MB", {"terminate": False}),
    Buffers(700 * MEGABYTE, 1.2, seconds=2.2))
row("pairs_cache_of_two_workers", "paused-workers|unmanaged-memory 1 2",
    graph(84, ("load", 0.2), ("fill", 0.1)), Cluster(4, 1, "300MB", {"terminate": False}),
    Leaks(nbytes=24 * MEGABYTE, most=8, empties=10.0, workers=(1, 2), only=("load",)))

# -- workers that die ------------------------------------------------------------------------

TRACKS = graph(120, Stage("track", 0.6, nbytes=MEGABYTE), Stage("collect", 0.05, All()))
row("map_library_that_crashes", "killed-workers",
    TRACKS, Cluster(4, 2), Crashes(numbers=(50, 90), only=("track",)))
row("passes_worker_killed_by_kernel", "killed-workers 3",
    graph(64, Stage("load_tile", 0.4, nbytes=MEGABYTE), ("filter", 0.3), rounds=3, kept=1),
    Cluster(config=FAILURES), Leaving({3: 6.0}, how="kill"), Leaving({3: 11.0}, how="kill"))
row("tree_library_that_exits", "killed-workers",
    graph(150, Stage("convert", 0.5, nbytes=800_000), tree(), via="delayed"), Cluster(5),
    Crashes(by=None, numbers=(40, 80, 120), only=("convert",)))
row("image_that_kills_each_worker", "killed-workers",
    graph(150, Stage("segment_image", 0.4, nbytes=100_000), ("measure_cells", 0.4),
    on_error="ignore"), Cluster(5, 2), Crashes(by=signal.SIGKILL, numbers=(110,), times=None,
    only=("segment_image",)))
row("passes_workers_restarted", "killed-workers",
    graph(60, Stage("read_field", 0.4, nbytes=80_000), ("project", 0.25), rounds=3),
    Cluster(4, 2, config=FAILURES), Leaving({1: 3.0, 3: 5.5, 0: 8.0, 2: 10.5}, how="restart"))
row("chains_that_are_computed_again", "killed-workers",
    graph(4, Stage("step", 0.4, Chain(18), nbytes=MEGABYTE)), Cluster(memory="1GB"),
    Grows(numbers=(53,)))
row("pairs_matrices_beyond_memory", "killed-workers",
    graph(48, Stage("read_block", 0.5, nbytes=20 * MEGABYTE), ("unfold", 0.3), waits=True,
    retains=True), Cluster(memory="1200MB"), Grows(numbers=(10, 22, 40), only=("unfold",)))

# -- failures --------------------------------------------------------------------------------

row("delayed_tree_of_downloads", "retries OSError",
    graph(96, Stage("download", 0.6, retries=3), tree(), via="delayed"), Cluster(3, 2),
    Fails(share=0.3, only=("download",)))
row("pairs_server_that_times_out", "retries TimeoutError",
    graph(120, ("simulate", 0.3), Stage("upload", 0.4, retries=3)), Cluster(6),
    Fails(error=TimeoutError, share=0.7, since=5.0, only=("upload",)))
row("tree_license_at_the_end", "retries RuntimeError solve",
    graph(96, Stage("solve", 0.45, retries=3), tree(), via="delayed"), Cluster(4, 2),
    Fails(error=RuntimeError, share=0.5, only=("solve",)))
row("pairs_outage_of_a_service", "retries OSError add_conditions",
    graph(120, ("read_part", 0.25), Stage("add_conditions", 0.45, retries=30)), Cluster(2, 3),
    Fails(times=None, since=3.0, until=9.0, only=("add_conditions",)))
row("pairs_retried_by_the_client", "retries EOFError verify",
    graph(90, ("download", 0.35), ("verify", 0.35), via="delayed", on_error="retry"),
    Cluster(3, 2), Fails(error=EOFError, share=0.6, only=("verify",)))
row("map_submitted_again_with_another_seed", "retries FloatingPointError simulate_shower",
    graph(130, ("simulate_shower", 0.5), on_error="resubmit"), Cluster(4, 2),
    Fails(error=FloatingPointError, times=None, numbers=tuple(range(0, 130, 2))))
row("map_batches_beyond_a_shared_device", "retries MemoryError infer",
    graph(117, Stage("infer", 0.5, retries=4)), Cluster(3, 3),
    Fails(error=MemoryError, share=0.55))

# -- long tails ------------------------------------------------------------------------------

row("frame_skewed_partition", "long-tail read_part",
    Frame(61, Stage("read_part", 0.47), shuffled=True), Cluster(2, 2),
    With(read=Stage("read_part", 0.4, long={60: 5.0})))
row("largest_fits_last", "long-tail fit_region",
    graph(73, Stage("fit_region", 0.4, long={n: 6.5 - 0.5 * n for n in range(12)})),
    Cluster(3, 2), With(reverse=True))
row("long_step_in_the_last_chain", "long-tail refine",
    graph(60, ("load", 0.3), Stage("refine", 0.35, long={0: 6.0})), Cluster(3, 2),
    At("refine", long={59: 6.0}))
row("one_long_cell", "long-tail|low-parallelism integrate",
    graph(80, ("integrate", 0.5), Stage("sum", 0.05, All())), Cluster(3, 2), With(tasks=61),
    At("integrate", long={60: 10.0}))
row("tree_minimizer_without_a_limit", "long-tail minimize",
    graph(136, Stage("minimize", 0.3, long=dict.fromkeys((118, 125, 133), 0.5)), tree(),
    via="delayed"), Cluster(3, 2), At("minimize", long=dict.fromkeys((118, 125, 133), 4.2)))
row("one_task_for_each_chromosome", "long-tail|low-parallelism call_variants",
    graph(160, ("align", 0.3), Stage("call_variants", 0.35, All(90), spread=0.1)),
    Cluster(4, 2), At("call_variants", needs=All(12), seconds=0.8,
    long={11: 6.5, 10: 5.0, 9: 4.0, 8: 3.0}))
row("points_of_low_priority", "long-tail fit_point",
    AtOnce((graph(48, ("read_point", 0.25), ("fit_small", 0.3)),
    graph(2, Stage("fit_point", 5.5, priority=10)))), Cluster(), At("fit_point", priority=-10))

# -- low parallelism -------------------------------------------------------------------------

row("frame_one_output_partition", "low-parallelism write_table",
    Frame(48, Stage("read_part", 0.4), Stage("write_table", 0.12)), Cluster(3, 2),
    With(repartitioned=1))
row("alignment_between_two_passes", "low-parallelism align",
    graph(60, ("reconstruct", 0.3), Stage("align", 7 / 6, All(6)),
    Stage("merge_alignments", 0.01, All()), Stage("refit", 0.3, Fan(60))), Cluster(6),
    At("align", needs=All(), seconds=7.0))
row("sums_in_a_row", "low-parallelism accumulate",
    graph(70, ("fill", 0.4), Stage("accumulate", 0.2, Tree(2))), Cluster(4, 2),
    At("accumulate", needs=InARow()))
row("three_pencils_for_a_transform", "low-parallelism spectrum",
    Array((32, 1), Stage("load_block", 0.3), Stage("spectrum", 0.9), method="rechunk",
    pencils=16, side=48), Cluster(4, 2), With(pencils=3, then=Stage("spectrum", 4.8)))
row("running_sums_in_sequence", "low-parallelism attach|low-parallelism",
    Array((48,), Stage("read_segment", 0.35), Stage("attach", 0.18), side=1_000, method="sums"),
    Cluster(4, 2), With(scan="sequential"))
row("brackets_of_halving_in_sequence", "low-parallelism",
    AtOnce(tuple(graph(12, (f"candidate_{name}", 0.6), Stage(f"half_{name}", 0.8, Groups(3)),
    Stage(f"best_{name}", 1.2, All())) for name in "abcde")), Cluster(3, 2), With(in_turn=True))
row("sort_divided_from_the_whole_table", "low-parallelism|long-tail divide",
    graph(1, ("load_table", 0.5), Stage("divide", 0.47, Fan(64)), ("sort", 0.4)), Cluster(4, 2),
    At("divide", needs=Divided(7), seconds=5.0))
row("nine_sectors_on_eight_threads", "low-parallelism|long-tail",
    graph(48, ("update_sector", 0.15), rounds=8), Cluster(4, 2), With(tasks=9),
    At("update_sector", seconds=0.8, spread=0.05))
row("archives_of_whole_nights", "low-parallelism|long-tail unpack_archive",
    graph(40, ("unpack_archive", 0.52), Stage("flatten", 0.6, Fan(4))), Cluster(5, 2),
    With(tasks=4), At("unpack_archive", seconds=5.2), At("flatten", needs=Fan(40)))

# -- short tasks -----------------------------------------------------------------------------

row("frame_of_tiny_partitions", "short-tasks|scheduler-saturated",
    Frame(40, Stage("read_part", 0.3), shuffled=False), Cluster(5),
    With(tasks=1_200, read=Stage("read_part", 0.01), rows=4))
row("task_for_each_cell_of_grids", "short-tasks|scheduler-saturated fill_cell",
    graph(48, ("load_grid", 0.3), Stage("fill_cell", 0.6, Fan(1))), Cluster(4, 2),
    At("fill_cell", needs=Fan(100), seconds=0.006))
row("array_of_tiny_blocks", "short-tasks|scheduler-saturated",
    Array((40,), Stage("read_rows", 0.2)), Cluster(3, 2),
    With(blocks=(1_200,), read=Stage("read_rows", 0.006), side=2))
row("bag_partition_for_each_line", "short-tasks|scheduler-saturated",
    Bag(140, stages(("stem", 0.45))), Cluster(4, 2), With(tasks=2_000),
    At("stem", seconds=0.015))
row("chains_of_seven_small_steps", "short-tasks|scheduler-saturated",
    graph(50, Stage("small_step", 0.09, Chain(7)), Stage("conclude", 0.03, All())),
    Cluster(3, 2), Split(15))
row("filter_task_for_each_measurement", "short-tasks|scheduler-saturated update_state",
    graph(64, Stage("update_state", 0.384, Chain(3))), Cluster(2, 4),
    At("update_state", needs=Chain(96), seconds=0.012))
row("search_one_alert_at_a_time", "short-tasks|scheduler-saturated classify",
    Search(100, Stage("classify", 0.36), in_flight=12), Cluster(3, 2), With(in_flight=60),
    Split(30))
row("task_for_each_pair_of_molecules", "short-tasks|scheduler-saturated compare",
    graph(96, ("describe", 0.2), Stage("compare", 0.38, Pairs(72))), Cluster(3, 2),
    At("compare", needs=Pairs(), seconds=0.006))

# -- the GIL ---------------------------------------------------------------------------------

row("map_library_that_holds_the_gil", "gil",
    graph(180, Stage("analyze", 0.2, calls=(20, 0.01))), Cluster(3, 4),
    At("analyze", holds_gil=True))
row("chains_decoder_that_holds_the_gil", "gil decode",
    graph(90, ("download", 0.3), Stage("decode", 0.0, calls=(30, 0.01)), ("select", 0.2)),
    Cluster(3, 4), At("decode", holds_gil=True))
row("bag_parser_in_threads", "gil",
    Bag(110, stages(Stage("parse_lines", 0.05, primes=1_500))), Cluster(2),
    On(workers=1, threads=4))
row("map_profiler_in_each_worker", "gil|blocked-event-loop",
    graph(280, Stage("track", 0.0, calls=(30, 0.01))), Cluster(3, 4), HeldGil(0.016, 0.006))
row("frame_library_that_holds_the_gil", "gil",
    Frame(150, Stage("read_addresses", 0.3), Stage("normalize", calls=(25, 0.01))),
    Cluster(2, 4), With(then=Stage("normalize", calls=(25, 0.01), holds_gil=True)))
row("frame_python_for_each_row", "gil",
    Frame(150, Stage("read_tracks", 0.3), rows=2_500, by_row=False), Cluster(2, 6),
    With(by_row=True))
row("array_integrand_in_python", "gil",
    Array((160,), Stage("integrate", 0.3, calls=(30, 0.005))), Cluster(2, 6),
    With(read=Stage("integrate", 0.3, calls=(30, 0.005), holds_gil=True)))

# -- restrictions ----------------------------------------------------------------------------

INFERENCE = graph(80, ("prepare_inputs", 0.2), ("infer", 0.4))
row("inference_that_needs_a_device", "idle-threads|restricted-tasks|scarce-resources",
    graph(80, ("prepare_inputs", 0.2), Stage("infer", 0.4, resources={"GPU": 1})),
    Cluster(6, resources={None: {"GPU": 1}}),
    On(resources={0: {"GPU": 1}, 1: {"GPU": 1}, None: {}}))
row("memory_asked_for_in_excess", "idle-threads|scarce-resources",
    graph(170, ("detect", 0.35), Stage("deblend", 0.3, resources={"MEMORY": 1})),
    Cluster(3, 4, resources={None: {"MEMORY": 4}}), At("deblend", resources={"MEMORY": 4}))
row("chains_inference_on_one_worker", "restricted-tasks infer",
    graph(48, ("generate", 0.3), ("infer", 0.3), ("select", 0.1)), Cluster(),
    At("infer", workers=(2,)))
row("trainings_on_two_of_six_workers", "restricted-tasks train",
    graph(60, ("select", 0.2), ("train", 0.4), ("evaluate", 0.1), via="delayed"), Cluster(6),
    At("train", workers=(0, 1)))

# -- the scheduler ---------------------------------------------------------------------------

row("map_functions_on_the_scheduler", "scheduler-saturated",
    graph(200, ("trial", 0.15)), Cluster(6), SlowScheduler(1.2, at="client", pause=0.4))
row("map_journal_that_grows", "scheduler-saturated",
    graph(500, ("simulate", 0.35)), Cluster(6, 2), SlowScheduler(0.0, growth=1.6e-4))
row("map_fit_in_the_process_of_the_scheduler", "scheduler-saturated",
    graph(240, ("toy", 0.2)), Cluster(5, 2), SlowScheduler(0.5, at="process", pause=0.15))
row("map_progress_events", "scheduler-saturated",
    graph(300, Stage("integrate_orbit", 0.24, events=6)), Cluster(5, 2),
    SlowScheduler(0.008, at="event"))
row("map_adaptive_budget", "scheduler-saturated",
    graph(330, ("fold_protein", 0.25)), Cluster(5, 2), SlowScheduler(0.9, at="adaptive"))
row("array_heartbeats_archived", "scheduler-saturated",
    Array((25, 20), Stage("simulate_beam", 0.2), method="rows", side=4), Cluster(5, 2),
    SlowScheduler(0.085, at="heartbeat"))
row("groups_plugin_that_blocks_each_transition", "scheduler-saturated",
    graph(400, ("simulate", 0.08), ("smear", 0.05), Stage("merge", 0.05, Groups(40))),
    Cluster(8, 2), SlowScheduler(0.005, at="transition"))
row("rounds_plugin_that_blocks_arriving_graphs", "scheduler-saturated",
    graph(110, ("simulate", 0.1), rounds=4), Cluster(4, 2), SlowScheduler(0.02, at="graph"))

# -- large graphs ----------------------------------------------------------------------------

row("map_weights_in_each_call", "large-graph",
    graph(40, ("predict", 0.3), rounds=2, argument=Argument(15 * MEGABYTE)), Cluster(),
    With(argument=Argument(15 * MEGABYTE, "each")))
row("rounds_table_in_each_call", "large-graph",
    graph(16, ("score", 0.3), rounds=8, argument=Argument(16 * MEGABYTE)), Cluster(),
    With(argument=Argument(16 * MEGABYTE, "call")))
row("delayed_method_of_a_large_ensemble", "large-graph",
    graph(24, ("boost", 0.3), via="delayed", rounds=4, argument=Argument(96 * MEGABYTE)),
    Cluster(3, 2), With(argument=Argument(96 * MEGABYTE, "function")))
row("results_that_go_through_the_client", "large-graph|client-gaps",
    graph(40, Stage("render_slice", 0.4, nbytes=9 * MEGABYTE),
    Stage("refine", 0.35, nbytes=9 * MEGABYTE), Stage("sharpen", 0.35, nbytes=9 * MEGABYTE),
    ("measure", 0.35)), Cluster(4, 2, "4GB"), With(gathers="each"))
row("bag_of_contents_read_by_the_client", "large-graph|client-gaps",
    Bag(64, stages(("segment", 0.3)), rounds=3), Cluster(4, 2), With(contents=1_200_000))
row("frame_of_pandas_in_each_graph", "large-graph|client-gaps",
    Frame(64, Stage("regress", 0.25), rounds=4, rows=1_000), Cluster(4, 2),
    With(from_pandas=120 * MEGABYTE))
row("delayed_lists_in_each_call", "large-graph|client-gaps",
    graph(150, ("select_good", 0.45), via="delayed", argument=Argument(lists=250)),
    Cluster(5, 2), With(argument=Argument(lists=250, given="call")))

# -- transfers -------------------------------------------------------------------------------

NETWORK = Cluster(4, 2, uplink=20e6)
row("array_and_its_transpose", "transfers pair",
    Array((6, 6), Stage("load_block", 0.2), Stage("pair", 0.3), side=866, method="transpose",
    rounds=3), Cluster(uplink=2e9), On(uplink=8e6))
row("array_halo_of_a_whole_block", "transfers",
    Array((60,), Stage("read_trace", 0.35), Stage("migrate", 0.4), side=625_000,
    method="overlap"), Cluster(4, 2, uplink=14e6), With(halo=1.0))
row("array_images_turned_into_series", "transfers",
    Array((32, 1), Stage("read_image", 0.75), Stage("fit_pixels", 0.85), side=880,
    method="rechunk"), Cluster(4, 2, uplink=2e9), On(uplink=2e7))
row("model_of_each_round_on_all_workers", "transfers evaluate",
    graph(6, ("train", 0.3), Stage("build_model", 0.3, All(), nbytes=MEGABYTE),
    Stage("evaluate", 0.25, Fan(36)), rounds=5), Cluster(6, uplink=60e6),
    At("build_model", nbytes=48 * MEGABYTE))
row("differences_of_neighbours", "transfers stack",
    graph(48, Stage("load_field", 0.3, nbytes=100_000, in_turn=True),
    Stage("stack", 0.3, Neighbours((0, 1)), in_turn=True)), Cluster(4, uplink=12e6),
    At("load_field", nbytes=12 * MEGABYTE))
row("blocks_regrouped_whole", "transfers load_block collect",
    graph(20, Stage("load_block", 0.3, nbytes=MEGABYTE), Stage("collect", 0.4, All(20))),
    Cluster(uplink=50e6), At("load_block", nbytes=12 * MEGABYTE))
row("butterflies_of_whole_strips", "transfers butterfly",
    graph(32, Stage("read_strip", 0.3, nbytes=60_000), *(Stage("butterfly", 0.3,
    Neighbours((0, shift)), nbytes=60_000) for shift in (1, 2, 4, 8, 16))),
    Cluster(4, 2, uplink=25e6), At("read_strip", nbytes=6 * MEGABYTE),
    At("butterfly", nbytes=6 * MEGABYTE))
row("archive_mounted_on_one_worker", "transfers fit_station",
    graph(75, Stage("read_records", 0.1, nbytes=9 * MEGABYTE), ("fit_station", 0.5)),
    Cluster(6, uplink=65e6), At("read_records", workers=(0,)))
row("validation_pinned_in_turn", "transfers validate",
    graph(60, Stage("load_fold", 0.3, nbytes=8 * MEGABYTE), Stage("validate", 0.3,
    Neighbours((0, 0, 0), apart=True))), Cluster(5, 2, uplink=22e6),
    At("validate", in_turn=True))
row("covariance_of_blocks_of_columns", "transfers",
    graph(20, Stage("read_block", 0.3, nbytes=12 * MEGABYTE), Stage("products", 0.3, Fan(10))),
    NETWORK, At("products", needs=Pairs()))
row("bag_grouped_and_not_folded", "transfers",
    Bag(48, stages(("read_shots", 0.9)), nbytes=500_000, items=10, by="foldby"),
    Cluster(4, 2, uplink=14e6), With(by="groupby"))
row("messages_compressed_by_zlib", "transfers simulate_hits mix_events",
    graph(24, Stage("simulate_hits", 0.3, nbytes=30 * MEGABYTE), Stage("mix_events", 0.25,
    Neighbours((7, 11), apart=True)), waits=True), Cluster(hosts=(2, 3, 4, 5), memory="3GB",
    config={"distributed.comm.compression": False}),
    On(config={"distributed.comm.compression": "zlib"}))

# -- the client ------------------------------------------------------------------------------

row("search_slow_client", "client-gaps",
    Search(60, Stage("trial", 0.5), in_flight=6), Cluster(6), With(client_seconds=0.2))
row("delayed_many_short_gaps", "client-gaps",
    graph(30, ("fit", 0.3), tree(), via="delayed", rounds=10), Cluster(5), With(gap=0.8))
row("frame_plots_between_means", "client-gaps",
    Frame(20, Stage("read_day", 0.3), rounds=9), Cluster(), With(gap=0.9))
row("script_that_polls", "client-gaps",
    graph(24, ("render", 0.32), rounds=6, poll=0.05), Cluster(4, 2), With(poll=2.0))
row("delayed_token_of_a_model", "client-gaps",
    graph(28, ("impute", 0.45), via="delayed", rounds=6,
    argument=Argument(token_seconds=0.065)), Cluster(4, 2),
    With(argument=Argument(token_seconds=0.065, given="call")))
row("upload_before_the_next_graph", "client-gaps",
    graph(40, ("regrid", 0.3), rounds=5, ahead=5, gap=1.3), Cluster(4, 2), With(ahead=1))
row("rows_fetched_by_the_client", "client-gaps",
    Search(90, Stage("score", 0.6), in_flight=90), Cluster(6), With(arrival_seconds=0.25))
row("compute_for_each_region", "client-gaps|low-parallelism",
    graph(5, ("fill_table", 0.4), Stage("fit_category", 0.6, All()), via="delayed", rounds=22,
    ahead=22), Cluster(4, 2), With(ahead=1))

# -- two illnesses ---------------------------------------------------------------------------

row("downloads_retried_and_client_gaps", "retries PermissionError; client-gaps",
    graph(24, Stage("download", 0.7, retries=2), rounds=3), Cluster(2, 3),
    Fails(error=PermissionError, share=0.34), With(gap=2.5))
row("database_locked_and_slow_host",
    "retries BlockingIOError register_run; slow-host 127.0.0.3",
    graph(150, Stage("register_run", 0.4, retries=3)), THREE_HOSTS,
    Fails(error=BlockingIOError, share=0.2), Slow(factor=2.4, hosts=(3,)))
row("low_priority_of_long_fits_and_slow_host", "long-tail full_fit; slow-host 127.0.0.5",
    AtOnce((graph(5, Stage("full_fit", 4.5, priority=10)), graph(160, ("calibrate", 0.3)))),
    Cluster(threads=2, hosts=(2, 2, 5, 5)), At("full_fit", priority=-10),
    Slow(factor=1.9, hosts=(5,)))
row("late_workers_and_last_fits", "late-workers; long-tail fit_region",
    graph(82, Stage("fit_region", 0.25, long={0: 4.0, 1: 4.0})), Cluster(),
    Late(2, {4.0: 3, 5.0: 4}), With(reverse=True))
row("spot_machines_and_client_gaps", "late-workers; client-gaps",
    graph(30, ("process_month", 0.4), rounds=6), Cluster(6), Leaving({3: 5.0, 4: 5.0, 5: 5.0}),
    With(gap=1.0))
row("hot_worker_and_flat_merge", "slow-worker 1; low-parallelism merge",
    graph(84, ("histogram", 0.3), Stage("merge", 0.0, Tree(5), per_input=0.06), via="delayed"),
    Cluster(3, 2), Slow(factor=5, workers=(1,), since=2.5, only=("histogram",)),
    At("merge", needs=Tree(84)))
row("small_spill_target_and_one_vocabulary", "spilling; low-parallelism build_vocabulary",
    graph(66, Stage("read_corpus", 0.3, nbytes=12 * MEGABYTE, form=DISK), ("count_words", 0.2),
    Stage("build_vocabulary", 0.4, All(11)), Stage("conclude", 0.03, All()), retains=True),
    Cluster(3, 2, "4GB", spills(0.6)), On(config=spills(0.05)),
    At("build_vocabulary", needs=All(), seconds=4.5))
row("leak_before_one_fit",
    "killed-workers|unmanaged-memory|paused-workers; low-parallelism fit_all",
    graph(100, ("read_events", 0.3), Stage("fit_all", 0.6, All(8)),
    Stage("merge_fits", 0.01, All()), Stage("project", 0.3, Fan(64))),
    Cluster(memory="1GB", config={"pause": False, **FAILURES}),
    Leaks(nbytes=45 * MEGABYTE, workers=(1, 3), only=("read_events",)),
    At("fit_all", needs=All(), seconds=5.0))
row("gil_and_client_gaps", "gil; client-gaps",
    graph(18, Stage("likelihood", 0.22, calls=(12, 0.011)), rounds=7, gap=0.02), Cluster(3, 2),
    At("likelihood", holds_gil=True), With(gap=0.8), On(workers=1, threads=6))
row("generations_with_crashes_and_client_gaps", "client-gaps; killed-workers",
    graph(32, ("evaluate_design", 0.4), rounds=7, gap=0.02), Cluster(4, 2), With(gap=0.9),
    Crashes(by=signal.SIGABRT, numbers=(40, 55, 101, 120, 165, 180)))
row("results_fetched_and_slow_host", "slow-host 127.0.0.3; client-gaps|transfers",
    graph(60, Stage("image_block", 0.4, nbytes=600_000), rounds=4), UNEVEN_HOSTS,
    Slow(factor=2.6, hosts=(3,), pauses=True), With(gathers="last"), On(uplink=30e6))
row("dumps_locked_and_gil", "gil; retries BlockingIOError open_dump",
    graph(180, Stage("open_dump", 0.4, retries=3), Stage("unpack", calls=(40, 0.006))),
    Cluster(3, 4), At("unpack", holds_gil=True),
    Fails(error=BlockingIOError, share=0.33, only=("open_dump",)))
row("crowded_corner_and_client_gaps", "client-gaps; long-tail detect_sources",
    graph(64, ("detect_sources", 0.33), rounds=3), Cluster(4, 2), With(gap=2.0),
    At("detect_sources", long=dict.fromkeys((63, 127, 191), 3.6)))
row("disk_full_and_long_export", "retries OSError export_table 2; long-tail export_table",
    graph(91, Stage("export_table", 0.5, retries=20, long={0: 7.0})), Cluster(5),
    With(reverse=True), Fails(times=None, workers=(2,), until=12.0))
row("flaky_database_and_two_licenses", "retries ConnectionResetError; restricted-tasks",
    graph(100, Stage("query", 0.35, retries=3)), Cluster(),
    Fails(error=ConnectionResetError, share=0.33), At("query", workers=(0, 1)))
row("regions_in_turn_summed_in_a_row", "client-gaps; low-parallelism",
    graph(24, ("fill", 0.2), Stage("add", 0.2, Tree(2)), rounds=3, ahead=3, gap=1.0), Cluster(),
    With(ahead=1), At("add", needs=InARow()))

# -- controls --------------------------------------------------------------------------------

row("control_search", "",
    Search(120, Stage("trial", 0.35, spread=0.4), in_flight=12), Cluster())
row("control_search_with_follow_up", "",
    Search(240, Stage("fit", 0.3), in_flight=30, every=10, then=Stage("process", 0.2)),
    Cluster(5, 2))
row("control_frame", "", Frame(110, Stage("read_part", 0.4), Stage("clean", 0.1)), Cluster(5))
row("control_tiles", "",
    Array((12, 10), Stage("read_tile", 0.4), Stage("smooth", 0.4)), Cluster(3, 2))
row("control_rows", "", Array((12, 12), Stage("warp", 0.3), method="rows"), Cluster(4, 2))
row("control_halos", "",
    Array((120,), Stage("read_trace", 0.35), Stage("migrate", 0.4), side=50_000,
    method="overlap", halo=0.1), Cluster(3, 3))
row("control_pairs", "",
    graph(96, ("load", 0.3), ("fit", 0.45), tree(), via="delayed"), Cluster(5))
row("control_variations", "",
    graph(55, ("simulate", 0.35), Stage("vary", 0.3, Fan(3)), tree()), Cluster(5, 2))
row("control_time_steps", "",
    graph(40, Stage("assimilate", 0.4, Chain(7)), tree(), via="delayed"), Cluster(5, 2))
row("control_stencil", "",
    graph(32, Stage("advance", 0.3, Chain(12, (-1, 0, 1)))), Cluster(4, 2))
row("control_batches_in_flight", "",
    graph(28, ("segment", 0.35), rounds=9, ahead=2, gap=0.3), Cluster(4, 2))
row("control_bag", "",
    Bag(180, stages(("tag_page", 0.42)), by="foldby", items=3, nbytes=100), Cluster(2, 4))
row("control_programs_at_once", "",
    AtOnce((graph(60, ("load", 0.3), ("clean", 0.3)), graph(60, ("simulate", 0.5)))),
    Cluster(2, 4))
