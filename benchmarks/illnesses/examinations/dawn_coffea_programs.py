"""Dawn programs of coffea.

They were written by an author who had read neither the rules nor their tests, who knew the
other programs and the ids that they name. All run a processor with coffea's `DaskExecutor` on
ROOT files; a chunk mostly sleeps. The analysis is that of ``final_coffea_programs``, and the
servers are those of ``independent_coffea_programs``.
"""

from __future__ import annotations

import socket
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from coffea import processor
from coffea.nanoevents import BaseSchema
from coffea_exam_programs import slow_reads
from dawn_plain_programs import chance, scatter
from final_coffea_programs import (
    FLAT,
    JAGGED,
    OTHERS,
    Fileset,
    Photons,
    analyze,
    at_url,
    warm_up,
    write_file,
    write_fileset,
)
from final_plain_programs import STATE, set_state
from illness import Run, cause, illness
from independent_coffea_programs import Server, serving

if TYPE_CHECKING:
    from distributed import Client


def analyze_with(
    client: Client,
    fileset: Fileset,
    photons: Photons,
    chunksize: int,
    executor: dict[str, Any],
    **settings: Any,
) -> dict[str, Any]:
    """Run the processor with settings of the executor and of the runner."""
    runner = processor.Runner(
        processor.DaskExecutor(client=client, status=False, **executor),
        schema=BaseSchema,
        chunksize=chunksize,
        **{"metadata_cache": {}, **settings},
    )
    return runner(fileset, photons, treename="Events")


# -- files and storage -----------------------------------------------------------------------


def answer_at_speed_of_file(self: Server, status: int, body: bytes, *rest: Any) -> None:
    """Send an answer at 1.2 MB/s, which the readers of a file share."""
    with self.seen.setdefault(self.path, threading.Lock()):
        time.sleep(len(body) / 1.2e6)
    Server._answer(self, status, body, *rest)


@illness(cause("slow-file repeated-baskets", "TTZ_3.root"))
def file_merged_by_hand(run: Run) -> None:
    """14 files on 4 workers with 2 threads, in chunks of 1,500 events, on a server that
    delivers each file at 1.2 MB/s; one file was merged by hand and has all 12,000 events in
    one basket, which each of its chunks reads, or it has baskets of 1,500 events."""
    folder = run.data / f"dawn_merged_{run.ill}"
    size = 12_000 if run.ill else 1_500
    write_file(folder / "TTZ_3.root", photons=8.0, basket_events=size)
    fileset = write_fileset(folder, {"TTZ": 6, "Zgamma": 8}, photons=8.0)
    with (
        serving(folder, _answer=answer_at_speed_of_file) as url,
        run.recorded(4, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(4e-4), 1_500)


def unused_address(host: str) -> str:
    """Return the address of a port at which nothing listens."""
    with socket.create_server((host, 0)) as server:
        return f"http://{host}:{server.getsockname()[1]}"


@illness(
    cause("skipped-files", "QCD_Pt_1.root", "QCD_Pt_4.root", "QCD_Pt_6.root", "QCD_Pt"),
    saves=None,
)
def files_at_a_server_that_is_down(run: Run) -> None:
    """15 files on 3 workers with 2 threads, in chunks of 1,500 events; three files of a dataset
    are at another server, which is down and refuses connections, so that `skipbadfiles` skips
    them, or which works."""
    folder = run.data / "dawn"
    fileset = write_fileset(folder, {"QCD_Pt": 8, "Zgamma": 7})
    with (
        serving(folder) as url,
        serving(folder, "127.0.0.5") as other,
        run.recorded(3, 2, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, url)
        moved = [f"{url}/QCD_Pt_{number}.root" for number in (1, 4, 6)]
        server = unused_address("127.0.0.5") if run.ill else other
        files["QCD_Pt"]["files"] = {
            path.replace(url, server) if path in moved else path: "Events"
            for path in files["QCD_Pt"]["files"]
        }
        analyze(client, files, Photons(4e-4), 1_500, skipbadfiles=True)


def answer_with_a_failed_disk(self: Server, status: int, body: bytes, *rest: Any) -> None:
    """Restore a part of the answers from other disks."""
    if chance(self.path, time.monotonic_ns()) < self.restored:
        time.sleep(scatter(1.5, self.path, time.monotonic_ns()))
    Server._answer(self, status, body, *rest)


@illness(cause("slow-storage", "127.0.0.3"))
def server_with_a_failed_disk(run: Run) -> None:
    """15 files on 5 workers with 2 threads, in chunks of 1,500 events; the 7 files of one
    dataset are at a server that has lost a disk, so that one of 8 requests needs 1.5 s until
    its data are restored, or that answers all requests at once."""
    folder = run.data / "dawn"
    fileset = write_fileset(folder, {"Zgamma": 7, "QCD_Pt": 8})
    facts = {"_answer": answer_with_a_failed_disk, "restored": 0.125 if run.ill else 0.0}
    with (
        serving(folder) as url,
        serving(folder, "127.0.0.3", **facts) as other,
        run.recorded(5, 2, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, url) | {"Zgamma": at_url(fileset, other)["Zgamma"]}
        analyze(client, files, Photons(4.5e-4), 1_500)


# -- chunks and workers --------------------------------------------------------------------


@illness(cause("restricted-tasks idle-threads low-parallelism long-tail"))
def chunks_bound_to_workers(run: Run) -> None:
    """10 files on 8 workers with one thread, in chunks of 2,000 events of 1 s; the executor has
    `worker_affinity`, so that each chunk must run on the worker that its hash gives, and some
    workers get twice as many as others, or it has not."""
    fileset = write_fileset(run.data / "dawn_bound", {"Zgamma": 10}, basket_events=2_000)
    executor = {"worker_affinity": run.ill, "treereduction": 10}
    with run.recorded(8, 1, prepare=partial(warm_up, run)) as client:
        analyze_with(client, fileset, Photons(5e-4), 2_000, executor)


class Authenticated(Photons):
    """Ask for a calibration, which needs a valid proxy certificate."""

    def process(self, events: Any) -> dict[str, Any]:
        if STATE.get("proxy_expired"):
            time.sleep(0.4)
            raise PermissionError("the proxy certificate has expired")
        return super().process(events)


@illness(cause("retries", "PermissionError", "Exception", "Authenticated", "3"))
def proxy_that_expired_on_one_worker(run: Run) -> None:
    """14 files on 5 workers with one thread, in chunks of 1,500 events of 0.6 s, with 200
    retries; the proxy certificate of worker 3 has expired, so that each chunk fails there
    after 0.4 s and is tried again, or it is valid."""
    fileset = write_fileset(run.data / "dawn", {"QCD_Pt": 8, "Zgamma": 6})

    def prepare(client: Client) -> None:
        warm_up(run, client)
        if run.ill:
            client.run(set_state, proxy_expired=True, workers=[run.address(3)])

    with run.recorded(5, 1, prepare=prepare) as client:
        executor = {"retries": 200, "treereduction": 10}
        analyze_with(client, fileset, Authenticated(4e-4), 1_500, executor)


class Paging(Photons):
    """Wait for pages that the kernel has swapped out on a worker."""

    def finish(self, name: str) -> None:
        time.sleep(scatter(STATE.get("paging_seconds", 0.0), "pages", name))


@illness(cause("unused-branches"), cause("slow-worker", "0"))
def preload_of_taus_and_a_worker_that_swaps(run: Run) -> None:
    """14 files on 4 workers with 2 threads, in chunks of 1,500 events, on a network mount of
    0.25 MB/s for each reader; `preload` has 24 branches that are not used, and worker 0 swaps,
    which takes 1.1 s in each chunk; or neither."""
    fileset = write_fileset(run.data / "dawn_taus", {"QCD_Pt": 8, "Zgamma": 6}, has_others=True)
    used = [*JAGGED, *(f"n{name}" for name in JAGGED), *FLAT]
    for spec in fileset.values():
        spec["preload"] = [*used, *OTHERS] if run.ill else used

    def prepare(client: Client) -> None:
        warm_up(run, client)
        client.run(slow_reads, "dawn_taus", 0.0, 2.5e5)
        if run.ill:
            client.run(set_state, paging_seconds=1.1, workers=[run.address(0)])

    with run.recorded(4, 2, prepare=prepare) as client:
        analyze(client, fileset, Paging(3.5e-4), 1_500)


# -- controls --------------------------------------------------------------------------------


@illness()
def control_near_and_remote_files(run: Run) -> None:
    """7 files on a server with a latency of 2 ms and 6 files on one with 6 ms, in chunks of
    1,500 events, on 6 workers with one thread."""
    folder = run.data / "dawn"
    fileset = write_fileset(folder, {"QCD_Pt": 7, "Zgamma": 6})
    with (
        serving(folder, "127.0.0.2", seconds=0.002) as near,
        serving(folder, "127.0.0.7", seconds=0.006) as far,
        run.recorded(6, 1, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, near) | {"Zgamma": at_url(fileset, far)["Zgamma"]}
        analyze(client, files, Photons(4.5e-4), 1_500)


@illness()
def control_aligned_chunks(run: Run) -> None:
    """16 files of 9,000 to 15,000 events in chunks that are aligned to clusters of 1,500
    events, on 4 workers with 2 threads, with results that are not compressed."""
    folder = run.data / "dawn_aligned"
    fileset = write_fileset(folder, {"QCD_Pt": 6}, events=15_000)
    fileset |= write_fileset(folder, {"Zgamma": 10}, events=9_000)
    executor = {"compression": None, "treereduction": 8}
    with run.recorded(4, 2, prepare=partial(warm_up, run)) as client:
        analyze_with(client, fileset, Photons(5e-4), 1_500, executor, align_clusters=True)


@illness()
def control_two_selections(run: Run) -> None:
    """Two selections on the same 13 files, one after the other, on 2 workers with 4 threads, in
    chunks of 1,000 events; the second one has the metadata of the first, and takes a little
    longer."""
    fileset = write_fileset(
        run.data / "dawn_selections", {"QCD_Pt": 7, "Zgamma": 6}, basket_events=1_000
    )
    metadata: dict[Any, Any] = {}
    with run.recorded(2, 4, prepare=partial(warm_up, run)) as client:
        for event_seconds in (4e-4, 5e-4):
            photons = Photons(event_seconds)
            executor = {"treereduction": 10}
            analyze_with(client, fileset, photons, 1_000, executor, metadata_cache=metadata)
