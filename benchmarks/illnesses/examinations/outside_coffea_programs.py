"""Outside programs of coffea.

They were written by an author who had read neither the rules nor their tests, who knew the ids
and titles of findings and the other programs. All run a processor with coffea's `DaskExecutor`
on ROOT files; a chunk mostly sleeps. The analysis is that of ``final_coffea_programs``, and the
servers are those of ``independent_coffea_programs``.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uproot
from coffea import processor
from coffea_exam_programs import slow_reads
from final_coffea_programs import (
    Photons,
    about,
    analyze,
    at_url,
    shared,
    warm_up,
    write_file,
    write_fileset,
)
from illness import Run, cause, illness
from independent_coffea_programs import Server, serving

if TYPE_CHECKING:
    from distributed import Client

LOCK = threading.Lock()

# -- storage and files -----------------------------------------------------------------------


def check_token(self: Server) -> None:
    """Check the token of a reader when it requests the header of a file."""
    if self.headers.get("Range", "").startswith("bytes=0-"):
        time.sleep(about(0.5, self.path, time.monotonic_ns()))
    Server.do_GET(self)


@illness(cause("file-opening chunks-too-small"))
def token_checked_at_each_opening(run: Run) -> None:
    """15 files on 4 workers with 2 threads, in chunks of 1,500 events, on a server that checks
    the token of the reader in 0.5 s when the header of a file is read, that is, for each chunk,
    or that trusts all readers."""
    folder = run.data / "outside"
    fileset = write_fileset(folder, {"Zmumu": 8, "Wmunu": 7})
    facts = {"do_GET": check_token} if run.ill else {}
    with (
        serving(folder, **facts) as url,
        run.recorded(4, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(3.5e-4), 1_500)


def within_quota(self: Server, status: int, body: bytes, *rest: Any) -> None:
    """Answer at full speed until the quota of requests is used up."""
    with LOCK:
        self.seen["requests"] = used = self.seen.get("requests", 0) + 1
    time.sleep(about(0.12, used) if used > self.quota else 0.0)
    Server._answer(self, status, body, *rest)


@illness(cause("slow-storage", "127.0.0.7"))
def server_with_a_quota_of_requests(run: Run) -> None:
    """13 files on 3 workers with 2 threads, on a server that answers the first 250 requests in
    1 ms and later ones in 0.12 s, as the quota of the user is used up, or all in 1 ms."""
    folder = run.data / "outside"
    fileset = write_fileset(folder, {"Zmumu": 8, "Wmunu": 5})
    facts = {"_answer": within_quota, "quota": 250 if run.ill else 10**9}
    with (
        serving(folder, "127.0.0.7", **facts) as url,
        run.recorded(3, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(3.5e-4), 1_500)


def damage(path: Path, baskets: tuple[int, ...]) -> None:
    """Leave holes of zeros in a file at some baskets of a branch."""
    with uproot.open(path) as file:
        branch = file["Events"]["Photon_eta"]
        places = [
            (branch.member("fBasketSeek")[basket], branch.member("fBasketBytes")[basket])
            for basket in baskets
        ]
    with path.open("r+b") as content:
        for seek, nbytes in places:
            content.seek(int(seek))
            content.write(bytes(int(nbytes)))


@illness(cause("skipped-files", "Wmunu_2.root", "Wmunu_5.root", "Wmunu"), saves=None)
def baskets_damaged_by_a_copy(run: Run) -> None:
    """15 files on 4 workers with 2 threads; a copy left holes of zeros in place of three
    baskets in two files, which can be opened, but three of the 8 chunks of each cannot be
    read, and `skipbadfiles`, with the error of uproot, skips them."""
    folder = run.data / f"outside_damaged_{run.ill}"
    source = write_fileset(run.data / "outside", {"Zmumu": 8, "Wmunu": 7})
    folder.mkdir(exist_ok=True)
    for path in (Path(path) for spec in source.values() for path in spec["files"]):
        if not (folder / path.name).exists():
            shutil.copy(path, folder / path.name)
            if run.ill and path.name in ("Wmunu_2.root", "Wmunu_5.root"):
                damage(folder / path.name, (2, 3, 6))
    fileset = write_fileset(folder, {"Zmumu": 8, "Wmunu": 7})
    errors = (OSError, uproot.deserialization.DeserializationError)
    with run.recorded(4, 2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(4e-4), 1_500, skipbadfiles=errors)


@illness(cause("repeated-baskets chunks-too-small"))
def chunks_that_fit_no_basket(run: Run) -> None:
    """12 files with baskets of 2,000 events on 3 workers with 2 threads, on a server that
    readers share at 1.8 MB/s, in chunks of 500 events, or of 2,000."""
    folder = run.data / "outside_baskets"
    fileset = write_fileset(folder, {"Zmumu": 7, "Wmunu": 5}, basket_events=2_000)
    with (
        shared(folder, speed=1.8e6) as url,
        run.recorded(3, 2, prepare=partial(warm_up, run)) as client,
    ):
        chunksize = 500 if run.ill else 2_000
        analyze(client, at_url(fileset, url), Photons(4e-4), chunksize)


# -- workers, chunks and the client ----------------------------------------------------------


def evict(run: Run, name: int) -> None:
    """Kill a worker, as a batch system does with its pilot job."""
    with suppress(ProcessLookupError):
        os.kill(run.pid(name), signal.SIGKILL)


@illness(cause("killed-workers"))
def pilot_jobs_that_are_evicted(run: Run) -> None:
    """14 files on 4 workers with 2 threads, in chunks of 2,400 events; at 4, 6, 8 and 10 s the
    batch system kills one worker after the other, whose results are lost, or none."""
    fileset = write_fileset(run.data / "outside", {"Zmumu": 8, "Wmunu": 6})
    config = {"distributed.scheduler.allowed-failures": 20}
    with run.recorded(4, 2, config=config, prepare=partial(warm_up, run)) as client:
        times = {2: 4.0, 0: 6.0, 3: 8.0, 1: 10.0} if run.ill else {}
        timers = [threading.Timer(at, evict, [run, name]) for name, at in times.items()]
        for timer in timers:
            timer.start()
        analyze(client, fileset, Photons(4e-4), 2_400)
        for timer in timers:
            timer.join()


@illness(cause("client-gaps"))
def metadata_read_by_the_client(run: Run) -> None:
    """Three runs of 8 files each on 3 workers with 2 threads; the client is far from the files
    and needs 0.3 s for a header, and reads the number of events of all files itself before
    each run, by an `IterativeExecutor`, or leaves that to the workers."""
    folder = run.data / "outside"
    fileset = write_fileset(folder, {"Zmumu": 8, "Wmunu": 8, "Ztautau": 8})
    slow_reads("outside", 0.0, opening=0.3)
    with run.recorded(3, 2, prepare=partial(warm_up, run)) as client:
        for dataset, files in fileset.items():
            by_client = processor.IterativeExecutor(status=False)
            settings = {"pre_executor": by_client} if run.ill else {}
            analyze(client, {dataset: files}, Photons(2e-4), 1_500, **settings)


@illness(cause("excess-workers chunks-too-large low-parallelism"), saves="core")
def cuts_tuned_on_few_files(run: Run) -> None:
    """Six analyses, with other cuts each, of 5 files of 3,000 events, each of which is a chunk
    of 1.2 s, on 9 workers with 2 threads, or on 3 workers with 2 threads."""
    folder = run.data / "outside_tuning"
    fileset = write_fileset(folder, {"Zmumu": 3, "Wmunu": 2}, events=3_000)
    workers = 9 if run.ill else 3
    with run.recorded(workers, 2, prepare=partial(warm_up, run)) as client:
        for _ in range(6):
            analyze(client, fileset, Photons(4e-4), 3_000)


# -- two illnesses ---------------------------------------------------------------------------


def one_reader_at_a_time(self: Server) -> None:
    """Let the readers of one file wait for each other."""
    if self.path.endswith("Wmunu_3.root") and self.is_locked:
        with LOCK:
            time.sleep(0.12)
    Server.do_GET(self)


@illness(cause("slow-file", "Wmunu_3.root"), cause("late-workers"))
def locked_file_and_nodes_that_drain(run: Run) -> None:
    """15 files of a server on 5 workers with 2 threads; the requests for one file are answered
    one at a time, in 0.12 s each, as another job has a lock on it; and three of the workers
    join after 5 s; or neither."""
    folder = run.data / "outside"
    fileset = write_fileset(folder, {"Zmumu": 8, "Wmunu": 7})
    facts = {"do_GET": one_reader_at_a_time, "is_locked": run.ill}
    workers = 2 if run.ill else 5
    with (
        serving(folder, **facts) as url,
        run.recorded(workers, 2, prepare=partial(warm_up, run)) as client,
    ):
        timer = threading.Timer(5.0, run.cluster.scale, [5])
        timer.start()
        analyze(client, at_url(fileset, url), Photons(5e-4), 1_500)
        timer.join()


# -- controls --------------------------------------------------------------------------------


@illness()
def control_two_analyses_at_once(run: Run) -> None:
    """Two analyses of 7 files each run at the same time, from two threads of the client, on 4
    workers with 2 threads, in chunks of 1,500 and 2,000 events."""
    fileset = write_fileset(run.data / "outside", {"Zmumu": 7, "Wmunu": 7})

    def analyze_one(client: Client, dataset: str, chunksize: int) -> None:
        analyze(client, {dataset: fileset[dataset]}, Photons(4e-4), chunksize)

    with run.recorded(4, 2, prepare=partial(warm_up, run)) as client:
        threads = [
            threading.Thread(target=analyze_one, args=(client, *which))
            for which in (("Zmumu", 1_500), ("Wmunu", 2_000))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@illness()
def control_single_threads(run: Run) -> None:
    """Files of 8,000 and 20,000 events on a server with a latency of 3 ms, in chunks of 1,000
    events of 0.5 s, on 7 workers with one thread."""
    folder = run.data / "outside_sizes"
    for number in range(8):
        write_file(folder / f"Zmumu_{number}.root", 8_000, basket_events=1_000)
    fileset = write_fileset(folder, {"Zmumu": 8})
    fileset |= write_fileset(folder, {"Ztautau": 3}, events=20_000, basket_events=1_000)
    with (
        serving(folder, "127.0.0.2", seconds=0.003) as url,
        run.recorded(7, 1, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(5e-4), 1_000)
