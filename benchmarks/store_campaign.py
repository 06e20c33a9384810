"""Fault injection into additions to a store: ``make campaign-store``.

    python benchmarks/store_campaign.py FOLDER [--traces 1000] [--tasks 10000] [--seed 0]
        [--kill-after 15 40]

The folder keeps synthetic traces (see :mod:`synthetic`), created if missing; the sample traces
are added with them. Workers and clients are killed at random times, with ``--workers 2`` and
with a scheduler and workers that are started from the shell. Two clients add the same traces at
once, and finally everything is added again.

After each phase ``store check`` must pass. At the end the rows of each table, counted by plain
Polars, must be those of the traces: records are counted by the lines of all traces, and rows of
views by opening some of them. Otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import deltalake
import polars as pl
import zstandard

from roast_analyze import Trace
from roast_analyze.store.layout import VIEWS
from store_speed import make_traces

SAMPLES = Path(__file__).parents[1] / "sample_traces"

#: Traces that are opened to count the rows of their views.
VIEW_TRACES = 20

_BLOCK_BYTES = 2**24
_KIND = re.compile(rb'^\{"kind":"(\w+)"', re.MULTILINE)


def count_records(paths: Sequence[Path]) -> Counter[str]:
    """Return the number of records of each kind in compressed traces, by their lines."""
    counts: Counter[bytes] = Counter()
    for path in paths:
        rest = b""
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            while block := reader.read(_BLOCK_BYTES):
                lines, _, rest = (rest + block).rpartition(b"\n")
                counts.update(_KIND.findall(lines))
        if rest:
            raise RuntimeError(f"{path} ends within a line: {rest!r}")
    return Counter({kind.decode(): count for kind, count in counts.items()})


def count_views(paths: Sequence[Path]) -> Counter[str]:
    """Return the number of rows of each stored view in traces."""
    counts: Counter[str] = Counter()
    for path in paths:
        with Trace(path) as trace:
            for view in VIEWS:
                [(rows,)] = trace.sql(f"SELECT count(*) FROM {view}").fetchall()
                counts[view] += rows
    return counts


def stored_rows(store: Path, paths: Sequence[Path]) -> Counter[str]:
    """Return the number of valid rows of each table of some traces, read without roast."""
    names = [[str(path)] for path in paths]
    runs = pl.scan_delta(str(store / "runs")).filter(pl.col("paths").is_in(names))
    runs = runs.select("addition")
    counts: Counter[str] = Counter()
    for table in sorted(path.name for path in store.iterdir()):
        if table != "runs" and deltalake.DeltaTable.is_deltatable(str(store / table)):
            rows = pl.scan_delta(str(store / table)).select("addition")
            counts[table] = rows.join(runs, on="addition").select(pl.len()).collect().item()
    return counts


def workers_of(pid: int) -> list[int]:
    """Return the worker processes that a process has started."""
    command = ["pgrep", "-P", str(pid), "-f", "spawn_main"]
    found = subprocess.run(command, capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a module of Python, and kill it with its child processes at the end."""
    command = [sys.executable, "-m", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Campaign:
    """Additions of some traces to one store, during which processes are killed."""

    def __init__(
        self, traces: Sequence[Path], store: Path, seed: int, kill_after: Sequence[float]
    ) -> None:
        self._draw = random.Random(seed)
        self._kill_after = kill_after
        self._store = store
        self._arguments = [
            "roast_analyze",
            "store",
            "add",
            *map(str, traces),
            "--to",
            str(store),
        ]
        self._begun = time.monotonic()

    def kill_a_client(self, *where: str) -> None:
        """Kill a worker of a local cluster, and later its client."""
        with started(*self._arguments, *where) as client:
            self._wait(client)
            os.kill(self._draw.choice(workers_of(client.pid)), signal.SIGKILL)
            self._wait(client)
        self._report(f"client killed, {' '.join(where)}", client.returncode)

    def add(self, *where: str, clients: int = 1, victim: int | None = None) -> None:
        """Add all traces from some clients at once, and kill a process meanwhile."""
        with ExitStack() as stack:
            running = [
                stack.enter_context(started(*self._arguments, *where)) for _ in range(clients)
            ]
            if victim is not None:
                self._wait(running[0])
                os.kill(victim, signal.SIGKILL)
            codes = [client.wait() for client in running]
        self._report(f"{clients} clients, {' '.join(where)}", *codes)
        if any(codes):
            raise SystemExit(f"exit codes {codes}")

    def _wait(self, client: subprocess.Popen[bytes]) -> None:
        with suppress(subprocess.TimeoutExpired):
            client.wait(self._draw.uniform(*self._kill_after))
            raise SystemExit("a client ended before the kill: add more traces or kill earlier")

    def _report(self, phase: str, *codes: int | None) -> None:
        command = [sys.executable, "-m", "roast_analyze", "store", "check", str(self._store)]
        check = subprocess.run(command, capture_output=True, text=True)
        runs = pl.read_delta(str(self._store / "runs"))
        print(
            f"{time.monotonic() - self._begun:7.0f} s  {phase}: exit codes {codes}, "
            f"{runs.height} runs, check: {check.returncode}",
            flush=True,
        )
        if check.returncode:
            raise SystemExit(check.stdout + check.stderr)


def main() -> int:
    """Run the campaign, and return 1 if the store is wrong at the end."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kill-after",
        type=float,
        nargs=2,
        default=(15.0, 40.0),
        metavar="SECONDS",
        help="time range of each kill",
    )
    options = parser.parse_args()
    folder = options.folder.resolve()  # the store contains absolute paths
    traces = make_traces(folder, options.traces, options.tasks, 50)
    traces += sorted(SAMPLES.glob("*.jsonl.zst"))
    print(f"{len(traces)} traces, {sum(path.stat().st_size for path in traces):,} bytes")
    expected = count_records(traces)
    scratch = Path(tempfile.mkdtemp(prefix="campaign-", dir=folder))
    os.environ["ROAST_CACHE_DIR"] = str(scratch / "cache")
    store = scratch / "store"
    campaign = Campaign(traces, store, options.seed, options.kill_after)
    campaign.kill_a_client("--workers", "2")
    file = str(scratch / "scheduler.json")
    common = ("--no-dashboard", "--scheduler-file", file)
    worker = ("--nthreads", "1", "--memory-limit", "1GiB", "--local-directory", str(scratch))
    with started(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *common
    ):
        while not Path(file).exists():
            time.sleep(0.1)
        with (
            started("distributed.cli.dask_worker", *worker, *common) as nanny,
            started("distributed.cli.dask_worker", *worker, *common),
        ):
            time.sleep(5)
            [victim, *_] = workers_of(nanny.pid)
            campaign.add("--scheduler", file, clients=2, victim=victim)
            campaign.add("--scheduler", file)
    found = stored_rows(store, traces)
    opened = random.Random(options.seed).sample(traces, min(VIEW_TRACES, len(traces)))
    found_views = stored_rows(store, opened)
    wrong = {kind: (n, found[kind]) for kind, n in expected.items() if found[kind] != n}
    for view, n in count_views(opened).items():
        if found_views[view] != n:
            wrong[view] = (n, found_views[view])
    runs = pl.read_delta(str(store / "runs"))
    if (runs.height, runs["trace_id"].n_unique()) != (len(traces), len(traces)):
        wrong["runs"] = (len(traces), runs.height)
    print(
        f"{sum(expected.values()):,} records of {len(expected)} kinds; wrong: {wrong or 'none'}"
    )
    if wrong:
        return 1
    shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
