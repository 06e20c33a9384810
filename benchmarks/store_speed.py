"""Measure additions to a store and queries of it: ``make benchmark-store``.

    python benchmarks/store_speed.py FOLDER [--traces 96] [--tasks 10000] [--trace-workers 50]
        [--workers 0 1 2] [--bind]

The folder keeps synthetic traces (see :mod:`synthetic`), created if missing. All times are in
one table: a trace alone (loading it with its task attempts, in this process, with an empty
cache), the addition of all traces in this process (0) and on workers of a local cluster, and
queries of the last store. An addition includes neither the start of the cluster nor the imports
of its workers. With ``--bind`` each worker has one core, as in a job of a batch system; without
it, a call can use more than one. Every store is checked afterwards.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synthetic import make_trace

#: Traces that are loaded alone.
ALONE = 24


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the wall time of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def make_traces(folder: Path, count: int, tasks: int, workers: int) -> list[Path]:
    """Return traces of different runs, created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"run-{tasks}-{workers}-{seed}.jsonl.zst" for seed in range(count)]
    for seed, path in enumerate(paths):
        if not path.exists():
            make_trace(path, tasks=tasks, workers=workers, seed=seed)
    return paths


def load(path: Path) -> None:
    """Load a trace and its task attempts."""
    from roast_analyze import Trace

    with Trace(path) as trace:
        trace.sql("SELECT count(*) FROM task_runs").fetchall()


def peak_bytes() -> int:
    """Return the peak memory of this process.

    The one of ``getrusage`` would include that of the process from which it was started.
    """
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def bind(core: int) -> None:
    """Bind all threads of this process to a core."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})


def add(
    paths: list[Path], scratch: Path, workers: int, *, bound: bool
) -> tuple[Path, float, float]:
    """Add traces to a new store; return it, the seconds, and the largest memory (GiB)."""
    from distributed import Client, LocalCluster

    from roast_analyze import Store

    store = Store(scratch / f"store-{workers}")
    if workers:
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit="1GiB",
                dashboard_address=None,
                host="127.0.0.1",
            ) as cluster,
            Client(cluster) as client,
        ):
            client.run(lambda: __import__("roast_analyze.store.conversion"))
            for core, worker in enumerate(client.nthreads() if bound else ()):
                client.run(bind, core, workers=[worker])
            seconds = seconds_of(lambda: store.add(paths, client=client))
            memory = max(client.run(peak_bytes).values())
    else:
        seconds, memory = seconds_of(lambda: store.add(paths)), peak_bytes()
    if problems := store.check():
        raise RuntimeError(f"the store of {workers} workers has problems: {problems}")
    return Path(store.path), seconds, memory / 2**30


def main() -> None:
    from roast_analyze import Store, Trace

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--traces", type=int, default=96)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--trace-workers", type=int, default=50)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--bind", action="store_true", help="give each worker one core")
    options = parser.parse_args()
    first, *paths = make_traces(
        options.folder, options.traces + 1, options.tasks, options.trace_workers
    )
    scratch = Path(tempfile.mkdtemp(prefix="store-", dir=options.folder))
    try:
        os.environ["ROAST_CACHE_DIR"] = str(scratch / "cache")
        load(first)  # creates the cached templates of views
        some = paths[:ALONE]
        alone = sum(seconds_of(lambda path=path: load(path)) for path in some) / len(some)
        print(f"a trace alone, cold           {alone:8.2f} s a trace   1.00")
        times = {}
        for workers in options.workers:
            where = f"{workers} workers" if workers else "this process"
            path, seconds, gib = add(paths, scratch, workers, bound=options.bind)
            times[workers] = seconds
            each = seconds / len(paths)
            print(
                f"added, {where:22} {each:8.2f} s a trace   {each / alone:.2f}   {gib:.2f} GiB"
            )
        if {1, 2} <= times.keys():
            print(f"two workers against one       {times[1] / times[2]:8.2f} times as fast")
        store = Store(path)
        [newest, *_] = store.runs()["trace_id"]
        query = "SELECT prefix, count(*), sum(compute_seconds) FROM task_runs {} GROUP BY ALL"
        in_store = query.format(f"WHERE trace_id = '{newest}'")

        def ask_trace() -> None:
            with Trace(paths[-1]) as trace:
                trace.sql(query.format("")).fetchall()

        warm = min(seconds_of(ask_trace) for _ in range(3))
        one = min(seconds_of(lambda: Store(path).sql(in_store).fetchall()) for _ in range(3))
        runs = min(
            seconds_of(lambda: Store(path).sql("FROM runs").fetchall()) for _ in range(3)
        )
        print(f"query of one trace: its cache {warm:8.2f} s             1.00")
        print(f"query of one trace: store     {one:8.2f} s             {one / warm:.2f}")
        print(f"FROM runs                     {runs:8.2f} s")
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
