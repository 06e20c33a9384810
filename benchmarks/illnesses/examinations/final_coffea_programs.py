"""Last programs of coffea, by an author who had read neither the rules nor their tests.

All run a processor with coffea's `DaskExecutor` on ROOT files, some of which come from file
servers on loopback. A chunk mostly sleeps, as in a kernel that releases the GIL.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import zlib
from contextlib import contextmanager, suppress
from functools import partial
from http.server import ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import awkward as ak
import fsspec.implementations.http  # noqa: F401 - so that no chunk imports it
import numpy as np
import storage
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from illness import Run, cause, illness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

Fileset = dict[str, dict[str, Any]]

LZ4 = uproot.LZ4(1)
JAGGED = ("Photon_pt", "Photon_eta")
FLAT = ("rho", "weight")

#: Branches of an analysis of other objects.
OTHERS = tuple(f"Tau_idDeep{number}" for number in range(24))


# -- files -----------------------------------------------------------------------------------


def write_file(
    path: Path,
    events: int = 12_000,
    *,
    photons: float = 2.0,
    flags: int = 0,
    has_others: bool = False,
    basket_events: int = 1_500,
    tree_name: str = "Events",
) -> None:
    """Write a file of events with photons, unless it exists."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(zlib.crc32(path.name.encode()))
    flat = [*FLAT, *(OTHERS if has_others else ())]
    triggers = [f"HLT_Path{number}" for number in range(flags)]
    types = dict.fromkeys(flat, "f4") | dict.fromkeys(triggers, "bool")
    partly = path.with_suffix(f".{os.getpid()}")
    with uproot.recreate(partly, compression=LZ4) as file:
        tree = file.mktree(tree_name, types | dict.fromkeys(JAGGED, "var * float32"))
        for first in range(0, events, basket_events):
            size = min(basket_events, events - first)
            counts = random.poisson(photons, size)
            values = {name: random.gamma(2, 20, size).astype("f4") for name in flat}
            values |= dict.fromkeys(triggers, np.zeros(size, dtype=bool))
            for name in JAGGED:
                numbers = random.gamma(2, 20, counts.sum()).astype("f4")
                values[name] = ak.unflatten(numbers, counts)
            tree.extend(values)
    partly.rename(path)


def write_fileset(folder: Path, counts: dict[str, int], **form: Any) -> Fileset:
    """Write files of datasets; return the fileset."""
    fileset: Fileset = {}
    for dataset, count in counts.items():
        paths = [folder / f"{dataset}_{number}.root" for number in range(count)]
        for path in paths:
            write_file(path, **form)
        fileset[dataset] = {"files": {str(path): "Events" for path in paths}}
    return fileset


def at_url(fileset: Fileset, url: str) -> Fileset:
    """Return a fileset with files on a server."""
    return {
        dataset: {
            **spec,
            "files": {f"{url}/{Path(path).name}": "Events" for path in spec["files"]},
        }
        for dataset, spec in fileset.items()
    }


class Throttled(storage.Handler):
    """A file server whose readers share its speed."""

    # Send each answer as one packet.
    wbufsize = -1
    disable_nagle_algorithm = True

    uplink = threading.Lock()
    shared_speed = 1e9

    def _answer(self, status: int, body: bytes, size: int, content_range: str = "") -> None:
        with self.uplink:
            time.sleep(len(body) / self.shared_speed)
        super()._answer(status, body, size, content_range)


def serve(host: str, connection: Any, speed: float, **settings: Any) -> None:
    kind = type("Shared", (Throttled,), {"shared_speed": speed})
    handler = partial(kind, speed=1e12, slow=None, **settings)
    with ThreadingHTTPServer((host, 0), handler) as server:
        connection.send(f"http://{host}:{server.server_port}")
        server.serve_forever()


@contextmanager
def shared(
    folder: Path, host: str = "127.0.0.1", latency: float = 0.001, speed: float = 1e9
) -> Iterator[str]:
    """Serve a folder from another process, with a speed in bytes per second; yield the URL."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    settings = {"folder": folder, "latency": latency, "speed": speed}
    arguments = {"target": serve, "args": (host, sender), "kwargs": settings, "daemon": True}
    server = context.Process(**arguments)
    server.start()
    try:
        yield receiver.recv()
    finally:
        server.kill()
        server.join()


# -- the analysis ----------------------------------------------------------------------------


def about(seconds: float, *key: Any) -> float:
    """Return a duration within 25 % of a mean, the same for the same key."""
    return seconds * (0.75 + 0.5 * zlib.crc32(repr(key).encode()) / 2**32)


class Photons(processor.ProcessorABC):
    """Select photons and fill a histogram.

    Parameters
    ----------
    event_seconds : float
    photon_seconds : float
        Time for each photon.
    variations : dict, optional
        Systematic variations of datasets, each of which takes the time of the selection.
    """

    def __init__(
        self,
        event_seconds: float,
        photon_seconds: float = 0.0,
        variations: dict[str, int] | None = None,
    ) -> None:
        self.event_seconds, self.photon_seconds = event_seconds, photon_seconds
        self.variations = variations or {}

    def process(self, events: Any) -> dict[str, Any]:
        facts = events.metadata
        momentum, eta = events["Photon_pt"], events["Photon_eta"]
        good = momentum[(momentum > 20) & (eta < 80)]
        weights = np.asarray(events["weight"]) * (np.asarray(events["rho"]) < 90)
        seconds = len(events) * self.event_seconds
        seconds += int(ak.sum(ak.num(momentum))) * self.photon_seconds
        seconds *= 1 + self.variations.get(facts["dataset"], 0)
        name = f"{Path(facts['filename']).name}-{facts['entrystart']}"
        time.sleep(about(seconds, name))
        self.finish(name)
        counts = np.histogram(ak.to_numpy(ak.flatten(good)), bins=60, range=(0, 300))[0]
        return {facts["dataset"]: {"photons": counts, "sum": float(weights.sum())}}

    def finish(self, name: str) -> None:
        """Do the remaining work of a chunk."""

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def analyze(
    client: Client, fileset: Fileset, photons: Photons, chunksize: int, **settings: Any
) -> dict[str, Any]:
    """Run the processor; `settings` are those of the runner."""
    runner = processor.Runner(
        processor.DaskExecutor(client=client, status=False, treereduction=10),
        schema=BaseSchema,
        chunksize=chunksize,
        metadata_cache={},
        **settings,
    )
    return runner(fileset, photons, treename="Events")


def warm_up(run: Run, client: Client) -> None:
    """Analyze a small file on all workers, so that no chunk of the recording imports."""
    path = run.data / "final_warm" / "warm.root"
    write_file(path, 16_000, basket_events=1_000)
    analyze(client, {"Warm": {"files": {str(path): "Events"}}}, Photons(1e-4), 1_000)


# -- programs --------------------------------------------------------------------------------


@illness(cause("slow-storage", "127.0.0.4"))
def site_with_a_full_link(run: Run) -> None:
    """14 files on 5 workers, of which 6 are at a site whose link of 0.35 MB/s is shared by all
    readers, or is fast."""
    folder = run.data / "final"
    fileset = write_fileset(folder, {"GJets": 8, "Diphoton": 6})
    with (
        shared(folder) as near,
        shared(folder, "127.0.0.4", speed=3.5e5 if run.ill else 1e9) as far,
        run.recorded(workers=5, prepare=partial(warm_up, run)) as client,
    ):
        files = {
            "GJets": at_url(fileset, near)["GJets"],
            "Diphoton": at_url(fileset, far)["Diphoton"],
        }
        analyze(client, files, Photons(2e-4), 1_500)


@illness(cause("file-opening"))
def files_with_many_triggers(run: Run) -> None:
    """36 files of 1,500 events, each of which is one chunk, on 2 workers; the tree has 300
    branches of triggers that are not used but must be parsed, or none."""
    folder = run.data / f"final_triggers_{300 if run.ill else 0}"
    first = folder / "Data_0.root"
    write_file(first, 1_500, flags=300 if run.ill else 0)
    paths = [folder / f"Data_{number}.root" for number in range(36)]
    for path in paths:
        with suppress(FileExistsError):
            path.hardlink_to(first)
    fileset = {"Data": {"files": {str(path): "Events" for path in paths}}}
    with run.recorded(workers=2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(1.2e-4), 1_500)


@illness(cause("slow-file", "EGamma_B_1.root"))
def run_with_a_noisy_detector(run: Run) -> None:
    """11 files on 5 workers; one of them was taken with a noisy detector and has 20 photons in
    each event instead of 2, which take as much longer to analyze."""
    folder = run.data / f"final_noise_{run.ill}"
    write_file(folder / "EGamma_B_1.root", photons=20.0 if run.ill else 2.0)
    fileset = write_fileset(folder, {"EGamma_A": 4, "EGamma_B": 4, "EGamma_C": 3})
    with run.recorded(workers=5, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(3e-5, 1e-4), 1_000)


@illness(cause("unused-branches"))
def preload_copied_from_a_colleague(run: Run) -> None:
    """10 files on 4 workers, from a server that is shared by all at 2 MB/s; the `preload` of an
    analysis of taus reads 24 branches that are not used, or only the used ones."""
    folder = run.data / "final_taus"
    fileset = write_fileset(folder, {"GJets": 6, "ZTauTau": 4}, has_others=True)
    used = [*JAGGED, *(f"n{name}" for name in JAGGED), *FLAT]
    for spec in fileset.values():
        spec["preload"] = used + list(OTHERS) if run.ill else used
    with (
        shared(folder, speed=2e6) as url,
        run.recorded(prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(1.5e-4), 1_500)


@illness(
    cause("skipped-files", "SinglePhoton_2.root", "SinglePhoton_5.root", "SinglePhoton"),
    saves=None,
)
def jobs_that_wrote_no_tree(run: Run) -> None:
    """13 files on 4 workers; two were written by jobs that selected no run and have no tree of
    events, so that `skipbadfiles`, with the error for missing keys, skips them."""
    folder = run.data / f"final_no_tree_{run.ill}"
    for number in (2, 5):
        name = "Runs" if run.ill else "Events"
        write_file(folder / f"SinglePhoton_{number}.root", tree_name=name)
    fileset = write_fileset(folder, {"SinglePhoton": 8, "GJets": 5})
    errors = (OSError, uproot.exceptions.KeyInFileError)
    with run.recorded(prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(2.5e-4), 1_500, skipbadfiles=errors)


#: Chunks at which a native library crashes.
CRASHES = (
    "GJets_0.root-10500",
    "GJets_2.root-4500",
    "Diphoton_1.root-9000",
    "Diphoton_6.root-3000",
)


class Crashing(Photons):
    """Crash in a native library at the first attempt at some chunks."""

    def __init__(self, event_seconds: float, folder: str) -> None:
        super().__init__(event_seconds)
        self.folder = folder

    def finish(self, name: str) -> None:
        if name not in CRASHES:
            return
        mark = Path(self.folder) / name
        if self.folder and not mark.exists():
            mark.touch()
            ctypes.string_at(0)


@illness(cause("killed-workers"))
def regression_that_crashes(run: Run) -> None:
    """13 files on 5 workers with 2 threads; in 4 chunks, a native library crashes once at the
    end, which kills the worker and loses all its results."""
    folder = Path.cwd() / "attempts"
    folder.mkdir()
    fileset = write_fileset(run.data / "final", {"GJets": 4, "Diphoton": 9})
    marks = str(folder) if run.ill else ""
    with run.recorded(workers=5, threads=2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Crashing(5e-4, marks), 1_500)


@illness(cause("chunks-too-large long-tail"))
def default_chunksize(run: Run) -> None:
    """9 files of 12,000 events on 4 workers with 2 threads, in chunks of coffea's default of
    100,000 events, that is of a file, or of 1,000."""
    fileset = write_fileset(run.data / "final", {"GJets": 5, "Diphoton": 4})
    with run.recorded(workers=4, threads=2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(5e-4), 100_000 if run.ill else 1_000)


@illness(cause("chunks-too-small short-tasks"))
def chunksize_of_a_test(run: Run) -> None:
    """4 files on 3 workers, on a server with a latency of 25 ms, in chunks of 300 events, as
    when the analysis was tested, or of 1,500."""
    folder = run.data / "final"
    fileset = write_fileset(folder, {"GJets": 3, "Diphoton": 1})
    with (
        shared(folder, latency=0.025) as url,
        run.recorded(workers=3, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(2e-4), 300 if run.ill else 1_500)


@illness(cause("expensive-dataset", "Signal"), saves=None)
def signal_with_all_variations(run: Run) -> None:
    """Three datasets on 3 workers with 2 threads; the selection is repeated for five
    systematic variations of one of them. This is not a fault."""
    fileset = write_fileset(run.data / "final", {"GJets": 4, "Signal": 3, "Diphoton": 5})
    variations = {"Signal": 5} if run.ill else {}
    with run.recorded(workers=3, threads=2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(1.6e-4, variations=variations), 1_000)


@illness(cause("repeated-baskets"), cause("late-workers"))
def baskets_of_a_merge_and_a_slow_queue(run: Run) -> None:
    """8 files from a server that delivers each of them at 1.5 MB/s, in chunks of 1,500 events,
    with baskets of 12,000 events, or of 1,500; 4 of 6 workers join after 5 s, or at once."""
    size = 12_000 if run.ill else 1_500
    folder = run.data / f"final_baskets_{size}"
    fileset = write_fileset(folder, {"GJets": 5, "Diphoton": 3}, basket_events=size)
    workers = 2 if run.ill else 6
    with (
        storage.served(folder, bytes_per_second=1.5e6) as url,
        run.recorded(workers, prepare=partial(warm_up, run)) as client,
    ):
        timer = threading.Timer(5.0, run.cluster.scale, [6])
        timer.start()
        analyze(client, at_url(fileset, url), Photons(2e-4), 1_500)
        timer.join()


@illness()
def control_photons(run: Run) -> None:
    """13 files of two datasets on a fast server and on the local disk, in chunks of 1,500
    events, on 4 workers with 2 threads."""
    folder = run.data / "final"
    fileset = write_fileset(folder, {"GJets": 7, "Diphoton": 6})
    with (
        shared(folder) as url,
        run.recorded(workers=4, threads=2, prepare=partial(warm_up, run)) as client,
    ):
        files = {**fileset, "GJets": at_url(fileset, url)["GJets"]}
        analyze(client, files, Photons(3.5e-4), 1_500)
