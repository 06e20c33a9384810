"""Create a trace of any size that resembles recorded ones.

    python benchmarks/synthetic.py -o big.jsonl --tasks 1_000_000 --workers 500

A cluster is simulated, event by event. It computes copies of recorded graphs under new names,
so prefixes, their proportions, fan-in, keys and chunks are realistic. Durations, result sizes
and the rates of failures and rescheduling are drawn from distributions fitted to each recorded
prefix; exceptions, typenames, profiles and measurements of chunks are the recorded texts.
Stragglers, slow workers and lost workers are added. Operations of the simulated scheduler take
as long as Dask's, so the scheduler can be the bottleneck.

The same arguments produce the same bytes. Memory does not grow with the number of tasks: a
graph is submitted when most of the previous one is done. With many workers, samples, metrics
and profiles are less frequent, so that most records are of tasks.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from recorded_shape import as_json, read_shape
from synthetic_cluster import Cluster, Made, Plan

SAMPLE_TRACES = Path(__file__).parents[1] / "sample_traces"

#: Default runs to resemble: coffea chunks with failures, and many small tasks with
#: transfers.
DEFAULT_FIT = (
    SAMPLE_TRACES / "coffea_failures.jsonl.zst",
    SAMPLE_TRACES / "shuffle_reduce.jsonl.zst",
)


def make_trace(
    path: Path,
    *,
    tasks: int,
    workers: int = 500,
    threads: int = 1,
    seed: int = 1,
    fit: Sequence[Path] = DEFAULT_FIT,
    graph_tasks: int = 20_000,
    tasks_per_lost_worker: int = 100_000,
    segment_bytes: int = 256 * 2**20,
) -> Made:
    """Write a synthetic trace.

    Parameters
    ----------
    path : path
        A file, or a folder if it has none of the suffixes of a trace.
    fit : sequence of path
        Recorded traces, each a file. Their graphs take turns.
    segment_bytes : int
        Uncompressed size of a segment, if the path is a folder.
    tasks, workers, threads, seed, graph_tasks, tasks_per_lost_worker
        As in :class:`synthetic_cluster.Plan`.

    Returns
    -------
    Made
        Totals of the trace.

    Raises
    ------
    ValueError
        If a recorded trace contains no completed task.
    """
    shapes = [read_shape(recorded) for recorded in fit]
    plan = Plan(tasks, workers, threads, seed, graph_tasks, tasks_per_lost_worker)
    return Cluster(shapes, path, plan, segment_bytes).run()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="TRACE")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1, help="threads per worker")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fit", type=Path, nargs="+", default=DEFAULT_FIT, help="recorded traces to resemble"
    )
    parser.add_argument("--segment-bytes", type=int, default=256 * 2**20)
    parser.add_argument(
        "--graph-tasks",
        type=int,
        default=20_000,
        help="approximate number of tasks submitted at once",
    )
    parser.add_argument("--tasks-per-lost-worker", type=int, default=100_000)
    options = parser.parse_args()
    if min(options.tasks, options.workers, options.threads) < 1:
        parser.error("--tasks, --workers and --threads count from 1")
    made = make_trace(
        options.output,
        tasks=options.tasks,
        workers=options.workers,
        threads=options.threads,
        seed=options.seed,
        fit=options.fit,
        graph_tasks=options.graph_tasks,
        tasks_per_lost_worker=options.tasks_per_lost_worker,
        segment_bytes=options.segment_bytes,
    )
    print(as_json({**vars(made), "records": dict(made.records), "runs": dict(made.runs)}))


if __name__ == "__main__":
    main()
