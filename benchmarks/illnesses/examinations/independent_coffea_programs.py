"""Independent programs of coffea.

They were written by an author who had read neither the rules nor their tests, who knew the ids
and titles of findings and the other programs. All run a processor with coffea's `DaskExecutor`
on ROOT files; a chunk mostly sleeps. The analysis is that of ``final_coffea_programs``.
"""

from __future__ import annotations

import threading
import time
import zlib
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import awkward as ak
import numpy as np
import storage
import uproot
from coffea_exam_programs import slow_reads
from final_coffea_programs import (
    LZ4,
    Photons,
    about,
    analyze,
    at_url,
    warm_up,
    write_file,
    write_fileset,
)
from illness import Run, cause, illness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

MEGABYTE = 1_000_000

# -- servers ---------------------------------------------------------------------------------


class Server(storage.Handler):
    """A file server that sends each answer as one packet."""

    wbufsize = -1
    disable_nagle_algorithm = True

    #: Seconds for a request; for the first request for a file; for one of the `slow_file`.
    seconds = 0.001
    first_seconds = 0.0
    slow_file = ""
    slow_seconds = 0.0
    #: Number of requests that are answered at a time.
    slots = threading.BoundedSemaphore(100)

    #: Locks of files for which there was a request.
    seen: ClassVar[dict[str, threading.Lock]] = {}

    def do_HEAD(self) -> None:  # noqa: N802
        if (self.folder / self.path.lstrip("/")).exists():
            super().do_HEAD()
        else:
            self.send_error(404)

    def do_GET(self) -> None:  # noqa: N802
        if (self.folder / self.path.lstrip("/")).exists():
            super().do_GET()
        else:
            self.send_error(404)

    def _answer(self, status: int, body: bytes, size: int, content_range: str = "") -> None:
        is_first = self.path not in self.seen
        with self.seen.setdefault(self.path, threading.Lock()):
            if is_first:
                time.sleep(about(self.first_seconds, self.path))
        is_slow = Path(self.path).name == self.slow_file
        with self.slots:
            time.sleep(self.slow_seconds if is_slow else self.seconds)
        super()._answer(status, body, size, content_range)


def serve(folder: Path, host: str, connection: Any, facts: dict[str, Any]) -> None:
    if "slots" in facts:
        facts = facts | {"slots": threading.BoundedSemaphore(facts["slots"])}
    kind = type("Configured", (Server,), facts | {"seen": {}})
    handler = partial(kind, folder=folder, latency=0.0, speed=1e12, slow=None)
    with ThreadingHTTPServer((host, 0), handler) as server:
        connection.send(f"http://{host}:{server.server_port}")
        server.serve_forever()


@contextmanager
def serving(folder: Path, host: str = "127.0.0.1", **facts: Any) -> Iterator[str]:
    """Serve a folder from another process; `facts` are attributes of `Server`."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=serve, args=(folder, host, sender, facts), daemon=True)
    server.start()
    try:
        yield receiver.recv()
    finally:
        server.kill()
        server.join()


# -- storage and files -----------------------------------------------------------------------


@illness(cause("slow-storage", "127.0.0.6"))
def server_with_two_slots(run: Run) -> None:
    """13 files on 4 workers with 2 threads; the 6 files of one dataset are on a server that
    answers two requests at a time, each after 0.07 s, or after 1 ms."""
    folder = run.data / "independent"
    fileset = write_fileset(folder, {"JetHT": 7, "TTW": 6})
    seconds = 0.07 if run.ill else 0.001
    with (
        serving(folder) as near,
        serving(folder, "127.0.0.6", seconds=seconds, slots=2) as far,
        run.recorded(4, 2, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, near) | {"TTW": at_url(fileset, far)["TTW"]}
        analyze(client, files, Photons(4e-4), 1_500)


@illness(cause("file-opening"))
def files_staged_from_tape(run: Run) -> None:
    """48 files of 3,000 events on 3 workers with 2 threads, on a server that fetches a file
    from a tape when it is opened for the first time, which takes 1.3 s, or has all on
    disks."""
    folder = run.data / "independent_small"
    fileset = write_fileset(folder, {"JetHT": 30, "TTW": 18}, events=3_000)
    with (
        serving(folder, first_seconds=1.3 if run.ill else 0.0) as url,
        run.recorded(3, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(4e-4), 1_500)


def write_hits(path: Path, compression: Any, events: int = 16_000) -> None:
    """Write a file with 40 energies of hits for each event, unless it exists."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(5)
    partly = path.with_suffix(".part")
    jagged = ("Photon_pt", "Photon_eta", "Hit_energy", "Hit_time")
    with uproot.recreate(partly, compression=compression) as file:
        types = {"rho": "f4", "weight": "f4", **dict.fromkeys(jagged, "var * float32")}
        tree = file.mktree("Events", types)
        for _ in range(0, events, 2_000):
            values = {
                name: random.gamma(2, 20, 2_000).astype("f4") for name in ("rho", "weight")
            }
            counts_of = {"Photon": random.poisson(2, 2_000), "Hit": random.poisson(120, 2_000)}
            for name in jagged:
                counts = counts_of[name.partition("_")[0]]
                numbers = random.gamma(2, 20, counts.sum()).astype("f4")
                values[name] = ak.unflatten(numbers, counts)
            tree.extend(values)
    partly.rename(path)


class Hits(Photons):
    """Sum the energies of hits, too."""

    def process(self, events: Any) -> dict[str, Any]:
        energy = float(ak.sum(events["Hit_energy"][events["Hit_time"] < 50]))
        return {"energy": energy, **super().process(events)}


@illness(cause("compression"))
def hits_in_lzma(run: Run) -> None:
    """24 files of 16,000 events with 120 hits each on 2 workers with 2 threads, compressed
    with LZMA at level 9, or with LZ4."""
    folder = run.data / f"independent_hits_{'lzma' if run.ill else 'lz4'}"
    write_hits(folder / "Calo_0.root", uproot.LZMA(9) if run.ill else LZ4)
    paths = [folder / f"Calo_{number}.root" for number in range(24)]
    for path in paths[1:]:
        if not path.exists():
            path.hardlink_to(paths[0])
    fileset = {"Calo": {"files": {str(path): "Events" for path in paths}}}
    with run.recorded(2, 2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Hits(6e-5), 2_000)


@illness(cause("skipped-files", "TTW_1.root", "TTW_4.root", "TTW"), saves=None)
def files_deleted_at_the_server(run: Run) -> None:
    """13 files of a server on 4 workers with 2 threads; two of them were deleted, so that the
    server answers with 404, and `skipbadfiles` skips them."""
    fileset = write_fileset(run.data / "independent", {"JetHT": 7, "TTW": 6})
    folder = run.data / f"independent_deleted_{run.ill}"
    folder.mkdir(exist_ok=True)
    for path in (Path(path) for spec in fileset.values() for path in spec["files"]):
        is_deleted = run.ill and path.name in ("TTW_1.root", "TTW_4.root")
        if not is_deleted and not (folder / path.name).exists():
            (folder / path.name).hardlink_to(path)
    with (
        serving(folder) as url,
        run.recorded(4, 2, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, url)
        analyze(client, files, Photons(5e-4), 1_500, skipbadfiles=(OSError,))


# -- chunks and workers ----------------------------------------------------------------------


@illness(cause("chunks-too-large long-tail"))
def chunks_of_a_whole_merged_file(run: Run) -> None:
    """12 files of 18,000 events, except for two of 24,000, on 5 workers with 2 threads, in
    chunks of at most 30,000 events, that is, of a file, or of 1,500."""
    folder = run.data / "independent_merged"
    for number in (3, 7):
        write_file(folder / f"Merged_{number}.root", 24_000)
    fileset = write_fileset(folder, {"Merged": 12}, events=18_000)
    with run.recorded(5, 2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(4e-4), 30_000 if run.ill else 1_500)


@illness(cause("slow-worker slow-storage", "1", "127.0.0.1"))
def cache_disk_of_one_worker(run: Run) -> None:
    """13 local files on 4 workers with 2 threads; each read of worker 1 takes 0.3 s more, as
    its cache is on a failing disk."""
    fileset = write_fileset(run.data / "independent", {"JetHT": 7, "TTW": 6})

    def prepare(client: Client) -> None:
        warm_up(run, client)
        if run.ill:
            client.run(slow_reads, "independent", 0.3, workers=[run.address(1)])

    with run.recorded(4, 2, prepare=prepare) as client:
        analyze(client, fileset, Photons(5e-4), 1_500)


class Corrected(Photons):
    """Correct photons with weights, which are in the processor or in a file.

    Parameters
    ----------
    event_seconds : float
    weights : array or str
    """

    def __init__(self, event_seconds: float, weights: Any) -> None:
        super().__init__(event_seconds)
        self.weights = weights

    def finish(self, name: str) -> None:
        weights = self.weights
        if isinstance(weights, str):
            weights = np.load(weights, mmap_mode="r")
        assert weights[zlib.crc32(name.encode()) % 100] >= 0


@illness(cause("large-graph"))
def processor_with_weights_inside(run: Run) -> None:
    """Three analyses of 4 files each on 4 workers with 2 threads; the processor contains
    24 MB of weights, or reads them from a file."""
    fileset = write_fileset(run.data / "independent", {"JetHT": 7, "TTW": 6})
    weights: Any = np.random.default_rng(9).random(24 * MEGABYTE // 8)
    path = Path("weights.npy").absolute()
    np.save(path, weights)
    with run.recorded(4, 2, "3GB", prepare=partial(warm_up, run)) as client:
        for first in (0, 2, 4):
            files = {
                dataset: {"files": dict(list(spec["files"].items())[first : first + 2])}
                for dataset, spec in fileset.items()
            }
            photons = Corrected(4e-4, weights if run.ill else str(path))
            analyze(client, files, photons, 1_500)


class Flaky(Photons):
    """Lose the connection to a database at the end of the first attempt at some chunks."""

    def __init__(self, event_seconds: float, folder: str) -> None:
        super().__init__(event_seconds)
        self.folder = folder

    def finish(self, name: str) -> None:
        mark = Path(self.folder) / name
        if self.folder and zlib.crc32(name.encode()) % 100 < 45 and not mark.exists():
            mark.touch()
            raise ConnectionAbortedError("the database of conditions closed the connection")


@illness(
    cause("slow-file", "JetHT_5.root"),
    cause("retries", "ConnectionAbortedError", "Exception", "Flaky"),
)
def file_at_a_bad_replica_and_lost_connections(run: Run) -> None:
    """13 files of a server on 4 workers with 2 threads; each request for one file takes 0.6 s
    instead of 1 ms, and nearly half of all chunks lose their connection to a database once at
    the end; or neither."""
    folder = run.data / "independent"
    fileset = write_fileset(folder, {"JetHT": 7, "TTW": 6})
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    slow = {"slow_file": "JetHT_5.root", "slow_seconds": 0.6} if run.ill else {}
    with (
        serving(folder, **slow) as url,
        run.recorded(4, 2, prepare=partial(warm_up, run)) as client,
    ):
        marks = str(attempts) if run.ill else ""
        analyze(client, at_url(fileset, url), Flaky(4e-4, marks), 1_500)


# -- controls --------------------------------------------------------------------------------


@illness()
def control_two_servers(run: Run) -> None:
    """16 files of two datasets at two servers on 3 workers with 3 threads, in chunks of 1,500
    events."""
    folder = run.data / "independent"
    fileset = write_fileset(folder, {"JetHT": 9, "TTW": 7})
    with (
        serving(folder) as one,
        serving(folder, "127.0.0.4", seconds=0.002) as other,
        run.recorded(3, 3, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, one) | {"TTW": at_url(fileset, other)["TTW"]}
        analyze(client, files, Photons(4e-4), 1_500)


@illness()
def control_files_of_three_runs(run: Run) -> None:
    """Local files of three runs, of 6,000, 12,000 and 27,000 events, in chunks of 1,500 events,
    on 5 workers."""
    fileset = write_fileset(run.data / "independent", {"JetHT": 3})
    fileset |= write_fileset(run.data / "independent", {"RunA": 4}, events=6_000)
    fileset |= write_fileset(run.data / "independent", {"RunB": 2}, events=27_000)
    with run.recorded(5, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(4e-4), 1_500)
