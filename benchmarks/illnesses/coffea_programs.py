"""Illnesses of coffea programs, which read ROOT files written by uproot."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import awkward as ak
import fsspec.implementations.http  # noqa: F401 - so that no chunk imports it
import hist
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from illness import Run, cause, illness
from plain_programs import MEGABYTE, SLOWNESS, is_first, set_slowness
from storage import served

if TYPE_CHECKING:
    from distributed import Client

NanoAODSchema.warn_missing_crossrefs = False

#: Events of a file, and of its baskets.
EVENTS = 20_000
BASKET_EVENTS = 5_000

#: Files of each dataset.
DATASETS = {"DY": 4, "TT": 4}


# -- files -----------------------------------------------------------------------------------


def write_file(
    path: Path,
    *,
    events: int = EVENTS,
    basket_events: int = BASKET_EVENTS,
    columns: int = 4,
    compression: uproot.compression.Compression | None = None,
) -> Path:
    """Write a tree of events with jets, if it does not exist; return its path."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(len(path.name) * events)
    unfinished = path.with_suffix(f".{os.getpid()}")
    names = ["pt", "eta", "phi", "mass", *(f"score{number}" for number in range(columns - 4))]

    def make_events(number: int) -> dict:
        counts = random.poisson(4.0, number)
        jets = {
            name: ak.unflatten(random.gamma(2.0, 30.0, counts.sum()).astype("f4"), counts)
            for name in names
        }
        identity = dict.fromkeys(["run", "luminosityBlock", "event"], np.ones(number, "u4"))
        return {"Jet": ak.zip(jets), **identity}

    with uproot.recreate(unfinished, compression=compression or uproot.ZSTD(1)) as file:
        tree = file.mktree("Events", make_events(0))
        for first in range(0, events, basket_events):
            tree.extend(make_events(min(basket_events, events - first)))
    unfinished.rename(path)
    return path


def write_fileset(folder: Path, datasets: dict[str, int] = DATASETS, **shape: Any) -> dict:
    """Write the files of some datasets; return coffea's fileset."""
    return {
        name: [
            str(write_file(folder / f"{name}_{part}.root", **shape)) for part in range(files)
        ]
        for name, files in datasets.items()
    }


def at_url(fileset: dict, url: str) -> dict:
    """Return a fileset with files on a server."""
    return {
        name: [f"{url}/{Path(file).name}" for file in files] for name, files in fileset.items()
    }


# -- the analysis ----------------------------------------------------------------------------


@dataclass
class Analysis(processor.ProcessorABC):
    """Fill a histogram, and sleep for the compute time of a real analysis."""

    event_seconds: float = 2e-4
    chunk_seconds: float = 0.0
    #: Factors of event_seconds.
    factors: dict[str, float] = field(default_factory=dict)

    def process(self, events: Any) -> dict:
        dataset = events.metadata["dataset"]
        seconds = self.chunk_seconds + self.event_seconds * len(events) * self.factors.get(
            dataset, 1
        )
        pt = hist.Hist.new.Reg(50, 0, 300, name="pt").Int64()
        pt.fill(pt=ak.flatten(events.Jet.pt[abs(events.Jet.eta) < 60]))
        time.sleep(seconds * float(os.environ.get(SLOWNESS, "1")))
        return {dataset: {"pt": pt, "events": len(events)}}

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def warm_up(client: Client) -> None:
    """Import all modules, so that the recording begins with the computation."""
    import dask.dataframe  # noqa: F401 - coffea imports it when it submits chunks

    client.run(imported)


def imported() -> str:
    return processor.__name__


def analyze(
    client: Client,
    fileset: dict,
    analysis: processor.ProcessorABC,
    chunksize: int = 2_500,
    executor: dict | None = None,
    **runner: Any,
) -> Any:
    run = processor.Runner(
        executor=processor.DaskExecutor(client=client, status=False, **(executor or {})),
        schema=NanoAODSchema,
        savemetrics=True,
        chunksize=chunksize,
        metadata_cache={},
        **runner,
    )
    return run(fileset, treename="Events", processor_instance=analysis)


# -- chunks ----------------------------------------------------------------------------------


@illness(cause("chunks-too-small"))
def chunks_too_small(run: Run) -> None:
    """Chunks of 500 instead of 10,000 events; each costs 0.1 s whatever its size."""
    fileset = write_fileset(run.data / "small_baskets", basket_events=500)
    with run.recorded(prepare=warm_up) as client:
        analysis = Analysis(event_seconds=1.5e-4, chunk_seconds=0.1)
        analyze(client, fileset, analysis, chunksize=500 if run.ill else 10_000)


@illness(cause("chunks-too-large"))
def chunks_too_large(run: Run) -> None:
    """Five files for four workers, each one chunk of 20,000 events instead of eight chunks."""
    fileset = write_fileset(run.data / "files", {"DY": 5})
    with run.recorded(prepare=warm_up) as client:
        chunksize = 100_000 if run.ill else 2_500
        analyze(client, fileset, Analysis(event_seconds=4e-4), chunksize=chunksize)


@illness(cause("repeated-baskets chunks-too-small"))
def repeated_baskets(run: Run) -> None:
    """Files with one basket of 20,000 events, read from a server in chunks of 1,000 events."""
    fileset = write_fileset(run.data / "large_baskets", basket_events=EVENTS)
    with (
        served(run.data / "large_baskets", bytes_per_second=10 * MEGABYTE) as url,
        run.recorded(prepare=warm_up) as client,
    ):
        chunksize = 1_000 if run.ill else EVENTS
        analyze(client, at_url(fileset, url), Analysis(), chunksize=chunksize)


@illness(cause("long-tail"))
def long_tail_of_chunks(run: Run) -> None:
    """A dataset with one chunk of 7 s comes last instead of first."""
    fileset = write_fileset(run.data / "files")
    rare = [str(write_file(run.data / "files" / "Rare_0.root", events=2_500))]
    factors = {"Rare": 14.0}
    ordered = {**fileset, "Rare": rare} if run.ill else {"Rare": rare, **fileset}
    with run.recorded(prepare=warm_up) as client:
        analyze(client, ordered, Analysis(factors=factors))


# -- files and datasets ----------------------------------------------------------------------


@illness(cause("slow-file", "TT_1.root"))
def slow_file(run: Run) -> None:
    """Files on a server, which delivers one of them at 200 kB/s."""
    fileset = write_fileset(run.data / "files")
    slow = (
        {"latency_seconds": 0.02, "bytes_per_second": 200_000, "slow_file": "TT_1.root"}
        if run.ill
        else {}
    )
    with served(run.data / "files", **slow) as url, run.recorded(prepare=warm_up) as client:
        analyze(client, at_url(fileset, url), Analysis())


@illness(cause("expensive-dataset", "TT"), saves=None)
def expensive_dataset(run: Run) -> None:
    """Events of one dataset cost four times those of the other. This is not a fault."""
    fileset = write_fileset(run.data / "files")
    with run.recorded(prepare=warm_up) as client:
        analyze(client, fileset, Analysis(1.2e-4, factors={"TT": 4.0 if run.ill else 1.0}))


@illness(cause("slow-storage", "127.0.0.2"))
def slow_storage(run: Run) -> None:
    """Files of two datasets on two servers, of which one delivers 150 kB/s for each file."""
    fileset = write_fileset(run.data / "files")
    slow = {"latency_seconds": 0.02, "bytes_per_second": 150_000} if run.ill else {}
    with (
        served(run.data / "files") as url,
        served(run.data / "files", host="127.0.0.2", **slow) as slow_url,
        run.recorded(prepare=warm_up) as client,
    ):
        files = {
            "DY": at_url(fileset, url)["DY"],
            "TT": at_url(fileset, slow_url)["TT"],
        }
        analyze(client, files, Analysis())


@illness(cause("file-opening"))
def file_opening(run: Run) -> None:
    """48,000 events in 80 files instead of 6, on a server with a latency of 60 ms."""
    events = 600 if run.ill else 8_000
    folder = run.data / f"files_of_{events}"
    fileset = write_fileset(
        folder,
        {"DY": 24_000 // events, "TT": 24_000 // events},
        events=events,
        basket_events=1_000,
    )
    with (
        served(folder, latency_seconds=0.06) as url,
        run.recorded(prepare=warm_up) as client,
    ):
        analyze(client, at_url(fileset, url), Analysis(5e-4), chunksize=1_000)


@illness(cause("skipped-files"), saves=None)
def skipped_files(run: Run) -> None:
    """Three of eight files are missing, which skipbadfiles hides."""
    fileset = write_fileset(run.data / "files")
    if run.ill:
        fileset["TT"] = [file.replace("TT_", "lost_") for file in fileset["TT"][:3]] + fileset[
            "TT"
        ][3:]
    with run.recorded(prepare=warm_up) as client:
        analyze(client, fileset, Analysis(), skipbadfiles=True)


@illness(cause("unused-branches"))
def unused_branches(run: Run) -> None:
    """24 columns of jets are preloaded over a network of 3 MB/s per file; two are used."""
    fileset = write_fileset(run.data / "wide", columns=40)
    used = ["nJet", "Jet_pt", "Jet_eta"]
    others = ["Jet_phi", "Jet_mass", *(f"Jet_score{number}" for number in range(20))]
    with (
        served(run.data / "wide", bytes_per_second=3 * MEGABYTE) as url,
        run.recorded(prepare=warm_up) as client,
    ):
        files = {
            name: {"files": files, "preload": used + others if run.ill else used}
            for name, files in at_url(fileset, url).items()
        }
        analyze(client, files, Analysis(), chunksize=5_000)


# -- workers and cluster ---------------------------------------------------------------------


@illness(cause("slow-worker", "1"))
def slow_worker_of_chunks(run: Run) -> None:
    """Chunks take four times as long on worker 1."""

    def prepare(client: Client) -> None:
        warm_up(client)
        set_slowness(client, 4.0 if run.ill else 1.0, [run.address(1)])

    fileset = write_fileset(run.data / "files")
    with run.recorded(prepare=prepare) as client:
        analyze(client, fileset, Analysis(3e-4), chunksize=2_000)


@illness(cause("late-workers"))
def late_workers_of_chunks(run: Run) -> None:
    """Three of four workers join after 6 s."""
    fileset = write_fileset(run.data / "files")
    with run.recorded(workers=1 if run.ill else 4, prepare=warm_up) as client:
        timer = threading.Timer(6.0, run.cluster.scale, [4])
        timer.start()
        analyze(client, fileset, Analysis())
        timer.join()


@dataclass
class Greedy(Analysis):
    """Take too much memory at the first attempt at some chunks."""

    folder: str = ""
    greedy: tuple[str, ...] = ()

    def process(self, events: Any) -> dict:
        found = super().process(events)
        name = f"{Path(events.metadata['filename']).name}-{events.metadata['entrystart']}"
        if name in self.greedy and is_first(self.folder, name):
            buffer = np.ones(1_500 * MEGABYTE, dtype="u1")
            time.sleep(5)
            del buffer
        return found


@illness(cause("killed-workers"))
def killed_workers_of_chunks(run: Run) -> None:
    """Two chunks exceed the memory limit of 1 GB at their first attempt."""
    fileset = write_fileset(run.data / "files")
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    greedy = ("DY_2.root-5000", "TT_2.root-10000")
    with run.recorded(memory="1GB", prepare=warm_up) as client:
        analysis = Greedy(folder=str(attempts), greedy=greedy if run.ill else ())
        analyze(client, fileset, analysis)


@dataclass
class Unreliable(Analysis):
    """Fail at the first attempts at some chunks, after their work."""

    folder: str = ""

    def process(self, events: Any) -> dict:
        found = super().process(events)
        start = events.metadata["entrystart"]
        name = f"{Path(events.metadata['filename']).name}-{start}"
        if self.folder and start % 10_000 == 0 and is_first(self.folder, name):
            raise TimeoutError(f"no answer of the conditions database for {name}")
        return found


@illness(cause("retries"))
def retries_of_chunks(run: Run) -> None:
    """A quarter of the chunks fails once with a TimeoutError, after their work."""
    fileset = write_fileset(run.data / "files")
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    with run.recorded(prepare=warm_up) as client:
        analyze(client, fileset, Unreliable(folder=str(attempts) if run.ill else ""))


# -- graphs ----------------------------------------------------------------------------------


class SlowSum:
    """An accumulator whose addition takes time, as of histograms with many systematics."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __add__(self, other: SlowSum) -> SlowSum:
        time.sleep(0.12)
        return SlowSum(self.number + other.number)


class Merging(Analysis):
    """Return large accumulators."""

    def process(self, events: Any) -> dict:
        found = super().process(events)
        return {**found, "sum": SlowSum(len(events))}


@illness(cause("low-parallelism"))
def one_merge_of_chunks(run: Run) -> None:
    """64 results that take 0.12 s to add are merged by one task instead of a tree."""
    fileset = write_fileset(run.data / "files")
    with run.recorded(prepare=warm_up) as client:
        fan_in = 100 if run.ill else 4
        analyze(client, fileset, Merging(), executor={"treereduction": fan_in})


@dataclass
class FineBins(Analysis):
    """Return a histogram of `bins` bins."""

    bins: int = 100

    def process(self, events: Any) -> dict:
        found = super().process(events)
        fine = hist.Hist.new.Reg(self.bins, 0, 300, name="pt").Weight()
        fine.fill(pt=ak.flatten(events.Jet.pt))
        return {**found, "fine": fine}


@illness(cause("merging"))
def merging_of_chunks(run: Run) -> None:
    """64 chunks return a histogram of 4 million bins instead of 100, merged four at a time."""
    fileset = write_fileset(run.data / "files")
    with run.recorded(prepare=warm_up) as client:
        analysis = FineBins(bins=4_000_000 if run.ill else 100)
        analyze(client, fileset, analysis, executor={"treereduction": 4})


@illness(cause("client-gaps"))
def client_gaps_of_chunks(run: Run) -> None:
    """Three analyses in a row; the client draws figures for 3 s between them."""
    fileset = write_fileset(run.data / "files")
    with run.recorded(prepare=warm_up) as client:
        for turn in range(3):
            analyze(client, fileset, Analysis(6e-5))
            if run.ill and turn < 2:
                time.sleep(3)


# -- CPU: these need a quiet machine ---------------------------------------------------------


class Loops(Analysis):
    """Loop over events in Python."""

    def process(self, events: Any) -> dict:
        found = super().process(events)
        total = 0.0
        for jets in ak.to_list(events.Jet.pt):
            for first in jets:
                total += sum(abs(first - second) for second in jets) ** 0.5
        return {**found, "total": total}


@illness(cause("gil"))
def gil_of_chunks(run: Run) -> None:
    """A loop over events in Python, in four threads of one worker instead of in two workers."""
    workers, threads = (1, 4) if run.ill else (2, 1)
    fileset = write_fileset(run.data / "files")
    with run.recorded(workers=workers, threads=threads, prepare=warm_up) as client:
        analyze(client, fileset, Loops(event_seconds=0.0))


class AllColumns(Analysis):
    """Use all columns of jets."""

    def process(self, events: Any) -> dict:
        found = super().process(events)
        total = sum(float(ak.sum(events.Jet[name])) for name in events.Jet.fields)
        return {**found, "total": total}


@illness(cause("compression"))
def compression(run: Run) -> None:
    """40 columns of jets, compressed with LZMA instead of LZ4."""
    shape = {"lzma": uproot.LZMA(1)} if run.ill else {"lz4": uproot.LZ4(1)}
    [(name, algorithm)] = shape.items()
    fileset = write_fileset(run.data / name, columns=40, compression=algorithm)
    with run.recorded(workers=2, prepare=warm_up) as client:
        analyze(client, fileset, AllColumns(event_seconds=3e-5), chunksize=5_000)


# -- healthy controls ------------------------------------------------------------------------


@illness()
def control_chunks(run: Run) -> None:
    """Two datasets in chunks of 2,500 events."""
    fileset = write_fileset(run.data / "files")
    with run.recorded(prepare=warm_up) as client:
        analyze(client, fileset, Analysis(3e-4))


@illness()
def control_cold_workers(run: Run) -> None:
    """Two datasets in chunks of 2,500 events; workers import coffea during the recording."""
    fileset = write_fileset(run.data / "files")
    with run.recorded(fork=False) as client:
        analyze(client, fileset, Analysis(6e-4))


@illness()
def control_server(run: Run) -> None:
    """Files on two servers that are fast."""
    fileset = write_fileset(run.data / "files")
    with ExitStack() as stack:
        urls = [
            stack.enter_context(served(run.data / "files", host=host))
            for host in ("127.0.0.1", "127.0.0.2")
        ]
        client = stack.enter_context(run.recorded(prepare=warm_up))
        files = {
            "DY": at_url(fileset, urls[0])["DY"],
            "TT": at_url(fileset, urls[1])["TT"],
        }
        analyze(client, files, Analysis(3e-4))


@illness()
def control_computing(run: Run) -> None:
    """The demo's analysis, which computes, in two workers."""
    from roast_recorder.demo.dijet import run_analysis
    from roast_recorder.demo.files import DATASETS as DEMO
    from roast_recorder.demo.files import fileset, write_files

    folder = run.data / "demo"
    folder.mkdir(exist_ok=True)
    list(write_files(folder, DEMO))
    with run.recorded(workers=2, prepare=warm_up) as client:
        run_analysis(client, fileset(folder, DEMO), status=False)
