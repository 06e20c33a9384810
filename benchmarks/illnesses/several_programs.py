"""Two illnesses at once; the twin has neither."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from coffea_programs import (
    Analysis,
    Unreliable,
    analyze,
    at_url,
    warm_up,
    write_fileset,
)
from illness import Run, cause, illness
from plain_programs import fit, merge, nap, set_slowness, unreliable
from storage import served

if TYPE_CHECKING:
    from distributed import Client


@illness(cause("slow-worker", "0"), cause("client-gaps"))
def slow_worker_and_client_gaps(run: Run) -> None:
    """Worker 0 takes three times as long; the client draws figures for 2 s between graphs."""

    def prepare(client: Client) -> None:
        set_slowness(client, 3.0 if run.ill else 1.0, [run.address(0)])

    with run.recorded(prepare=prepare) as client:
        for turn in range(3):
            client.gather(client.map(nap, range(100 * turn, 100 * turn + 60)))
            if run.ill and turn < 2:
                time.sleep(2)


@illness(cause("retries", "ConnectionResetError"), cause("low-parallelism", "merge"))
def retries_and_one_merge(run: Run) -> None:
    """Each fourth task fails twice; one task merges all results in 5 s."""
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    with run.recorded() as client:
        parts = [
            client.submit(
                unreliable, number, str(attempts), run.ill and number % 4 == 1, retries=5
            )
            for number in range(80)
        ]
        fan_in = 80 if run.ill else 5
        while len(parts) > 1:
            groups = [parts[first : first + fan_in] for first in range(0, len(parts), fan_in)]
            parts = [client.submit(merge, group, 0.06) for group in groups]
        parts[0].result()


@illness(cause("late-workers"), cause("long-tail", "fit"))
def late_workers_and_long_tail(run: Run) -> None:
    """Two of four workers join after 6 s; a fit of 6 s is submitted last."""
    seconds = [0.25] * 100 + [6.0]
    with run.recorded(workers=2 if run.ill else 4) as client:
        timer = threading.Timer(6.0, run.cluster.scale, [4])
        timer.start()
        order = seconds if run.ill else seconds[::-1]
        client.gather(client.map(fit, range(len(order)), order))
        timer.join()


@illness(cause("slow-file", "DY_2.root"), cause("client-gaps"))
def slow_file_and_client_gaps(run: Run) -> None:
    """A server delivers one file at 200 kB/s; the client draws for 4 s between analyses."""
    fileset = write_fileset(run.data / "files")
    slow = (
        {"latency_seconds": 0.02, "bytes_per_second": 200_000, "slow_file": "DY_2.root"}
        if run.ill
        else {}
    )
    with served(run.data / "files", **slow) as url, run.recorded(prepare=warm_up) as client:
        for turn in range(2):
            analyze(client, at_url(fileset, url), Analysis(1e-4))
            if run.ill and turn == 0:
                time.sleep(4)


@illness(cause("chunks-too-small"), cause("slow-worker", "2"))
def chunks_too_small_and_slow_worker(run: Run) -> None:
    """Chunks of 500 events, each with 0.1 s of its own; worker 2 takes three times as long."""

    def prepare(client: Client) -> None:
        warm_up(client)
        set_slowness(client, 3.0 if run.ill else 1.0, [run.address(2)])

    fileset = write_fileset(run.data / "small_baskets", basket_events=500)
    with run.recorded(prepare=prepare) as client:
        analysis = Analysis(event_seconds=1.5e-4, chunk_seconds=0.1)
        analyze(client, fileset, analysis, chunksize=500 if run.ill else 5_000)


@illness(cause("retries"), cause("late-workers"))
def retries_and_late_workers_of_chunks(run: Run) -> None:
    """A quarter of the chunks fails once; three of four workers join after 6 s."""
    fileset = write_fileset(run.data / "files")
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    with run.recorded(workers=1 if run.ill else 4, prepare=warm_up) as client:
        timer = threading.Timer(6.0, run.cluster.scale, [4])
        timer.start()
        analyze(client, fileset, Unreliable(folder=str(attempts) if run.ill else ""))
        timer.join()
