"""Night programs of coffea.

They were written by an author who had read neither the rules nor their tests, who knew the
other programs and the ids that they name. All run a processor with coffea's `DaskExecutor` on
ROOT files; a chunk mostly sleeps. The analysis is that of ``final_coffea_programs``, and the
servers are those of ``independent_coffea_programs``.
"""

from __future__ import annotations

import threading
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from coffea import processor
from final_coffea_programs import Photons, about, analyze, at_url, warm_up, write_fileset
from final_plain_programs import STATE, limit_uplink, set_state
from illness import Run, cause, illness
from independent_coffea_programs import Server, serving

if TYPE_CHECKING:
    from distributed import Client

MEGABYTE = 1_000_000

LOCK = threading.Lock()

# -- storage and the network -----------------------------------------------------------------


def thrash(self: Server, status: int, body: bytes, *rest: Any) -> None:
    """Answer more slowly the more requests there are, as the heads of a disk move."""
    with LOCK:
        self.seen["active"] = active = self.seen.get("active", 0) + 1
    try:
        time.sleep(min(0.012 * active**2, 0.12))
        Server._answer(self, status, body, *rest)
    finally:
        with LOCK:
            self.seen["active"] -= 1


@illness(cause("slow-storage", "127.0.0.8"))
def disk_that_thrashes(run: Run) -> None:
    """13 files on 4 workers with 2 threads, in chunks of 1,500 events, on a server with a
    single disk, which needs 12 ms for a request, 48 ms for each of two at a time, and up to
    0.12 s for each of more, or on a server that answers all in 1 ms."""
    folder = run.data / "night"
    fileset = write_fileset(folder, {"Wjets": 7, "Zjets": 6})
    facts = {"_answer": thrash} if run.ill else {}
    with (
        serving(folder, "127.0.0.8", **facts) as url,
        run.recorded(4, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(3.5e-4), 1_500)


class Columns(Photons):
    """Return columns of selected events, too.

    Parameters
    ----------
    event_seconds : float
    values : int
        Number of values of a chunk.
    """

    def __init__(self, event_seconds: float, values: int) -> None:
        super().__init__(event_seconds)
        self.values = values

    def process(self, events: Any) -> dict[str, Any]:
        facts = events.metadata
        name = f"{facts['filename']}-{facts['entrystart']}"
        random = np.random.default_rng(zlib.crc32(name.encode()))
        columns = processor.column_accumulator(random.random(self.values))
        return {**super().process(events), "columns": columns}


@illness(cause("transfers low-parallelism"))
def columns_returned_for_a_fit(run: Run) -> None:
    """14 files on 4 workers with 2 threads that send 20 MB/s each, in chunks of 1,500 events; a
    chunk returns 0.6 MB of columns for a fit without bins, which grow with each merge, or 1 %
    of that after a tight selection."""
    fileset = write_fileset(run.data / "night", {"Wjets": 8, "Zjets": 6})
    values = 75_000 if run.ill else 750

    def prepare(client: Client) -> None:
        warm_up(run, client)
        client.run(limit_uplink, bytes_per_second=20e6)

    with run.recorded(4, 2, prepare=prepare) as client:
        analyze(client, fileset, Columns(4e-4, values), 1_500)


# -- workers and hosts -----------------------------------------------------------------------

#: Sessions of a library for inference that are never closed.
SESSIONS: list[np.ndarray] = []


class Inference(Photons):
    """Open a session for inference in each chunk, of which a library may keep the memory."""

    def finish(self, name: str) -> None:
        SESSIONS.append(np.ones(STATE.get("session_nbytes", 40_000), dtype="u1"))


@illness(cause("unmanaged-memory killed-workers paused-workers", "1", "3"))
def sessions_that_an_old_library_keeps(run: Run) -> None:
    """14 files on 4 workers with 2 threads and 1 GB that do not pause, in chunks of 1,500
    events; each chunk opens a session for inference, of which workers 1 and 3 have an old
    library that keeps 40 MB for ever, until the nanny kills the worker, or all keep 40 kB."""
    fileset = write_fileset(run.data / "night", {"Wjets": 8, "Zjets": 6})
    config = {
        "distributed.worker.memory.pause": False,
        "distributed.scheduler.allowed-failures": 30,
    }

    def prepare(client: Client) -> None:
        warm_up(run, client)
        if run.ill:
            workers = [run.address(1), run.address(3)]
            client.run(set_state, session_nbytes=40 * MEGABYTE, workers=workers)

    with run.recorded(4, 2, "1GB", config, prepare=prepare) as client:
        analyze(client, fileset, Inference(5e-4), 1_500)


class OnSharedHosts(Photons):
    """Need longer on a host from the time on when another job has begun there."""

    def finish(self, name: str) -> None:
        if time.time() > STATE.get("busy_from", np.inf):
            time.sleep(about(0.9, "busy", Path(name).name))


@illness(cause("slow-host", "127.0.0.9"))
def job_of_another_user_on_one_host(run: Run) -> None:
    """15 files on three hosts, of which 127.0.0.3 and 127.0.0.9 have 2 workers and 127.0.0.5
    has one, with 2 threads each, in chunks of 1,500 events of 0.6 s; after 3 s, a job of
    another user begins on 127.0.0.9, where a chunk takes 0.9 s more, or it does not."""
    fileset = write_fileset(run.data / "night", {"Wjets": 8, "Zjets": 7})
    hosts = ("127.0.0.3", "127.0.0.9", "127.0.0.5", "127.0.0.9", "127.0.0.3")

    def prepare(client: Client) -> None:
        warm_up(run, client)
        if run.ill:
            workers = [run.address(1), run.address(3)]
            client.run(set_state, busy_from=time.time() + 3.0, workers=workers)

    with run.recorded(threads=2, hosts=hosts, prepare=prepare) as client:
        analyze(client, fileset, OnSharedHosts(4e-4), 1_500)


# -- controls --------------------------------------------------------------------------------


@illness()
def control_with_metrics(run: Run) -> None:
    """Two datasets of 6 files of 12,000 events on a server with a latency of 3 ms and one of 8
    local files of 6,000 events, in chunks of at most 2,000 events, on 3 workers with 3
    threads; the runner returns its metrics, too."""
    folder = run.data / "night"
    fileset = write_fileset(folder, {"Wjets": 6, "Zjets": 6})
    small = write_fileset(folder, {"Top": 8}, events=6_000, basket_events=2_000)
    with (
        serving(folder, "127.0.0.4", seconds=0.003) as url,
        run.recorded(3, 3, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, url) | small
        analyze(client, files, Photons(4e-4), 2_000, savemetrics=True)
