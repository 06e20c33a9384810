"""Programs of the kinds of the rules in other circumstances, with coffea.

Written by an author who had read neither the rules nor other programs. Computing is
represented by sleeping where two cores do not suffice.
"""

from __future__ import annotations

import multiprocessing
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import awkward as ak
import hist
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema, NanoAODSchema
from illness import Run, cause, illness

if TYPE_CHECKING:
    from distributed import Client

Columns = dict[str, Any]
Fileset = dict[str, list[str]]


# Input files


def write(path: Path, columns: Columns, basket: int, compression: Any = None) -> None:
    """Write a tree "Events", with a basket for so many events."""
    events = len(next(iter(columns.values())))
    compression = compression or uproot.ZLIB(1)
    with uproot.recreate(path, compression=compression) as file:
        for first in range(0, events, basket):
            part = {name: column[first : first + basket] for name, column in columns.items()}
            if first == 0:
                file.mktree("Events", {name: column.dtype for name, column in part.items()})
            file["Events"].extend(part)


def flat_columns(events: int, seed: int, names: tuple[str, ...] = ("pt", "eta")) -> Columns:
    """Return columns of random values with few digits."""
    random = np.random.default_rng(seed)
    return {name: np.round(random.exponential(30, events), 1).astype("f4") for name in names}


def folder_of_files(
    run: Run,
    name: str,
    sizes: dict[str, list[int]],
    basket: int = 10_000,
    names: tuple[str, ...] = ("pt", "eta"),
    compression: Any = None,
) -> Fileset:
    """Write files with numbers of events, by dataset, unless they exist."""
    folder = run.data / name
    fileset: Fileset = {}
    for dataset, events in sizes.items():
        fileset[dataset] = []
        for number, size in enumerate(events):
            path = folder / f"{dataset}_{number}.root"
            fileset[dataset].append(str(path))
            if not path.exists():
                folder.mkdir(exist_ok=True)
                columns = flat_columns(size, 100 * len(fileset) + number, names)
                write(path, columns, basket, compression)
    return fileset


def copies(path: Path, count: int, dataset: str) -> list[str]:
    """Copy a file; return the paths of the copies."""
    paths = [path.with_name(f"{dataset}_{number}.root") for number in range(count)]
    for copy in paths:
        if not copy.exists():
            shutil.copy(path, copy)
    return [str(copy) for copy in paths]


# Analyses


class Spectrum(processor.ProcessorABC):
    """Histogram the selected momenta; take a time for each chunk and event."""

    def __init__(self, chunk: float = 0.0, event: float = 0.0) -> None:
        self.chunk = chunk
        self.event = event

    def seconds(self, events: Any) -> float:
        return self.chunk + self.event * len(events)

    def selected(self, events: Any) -> Any:
        return events.pt[abs(events.eta) > 1]

    def process(self, events: Any) -> dict:
        selected = self.selected(events)
        spectrum = hist.Hist.new.Reg(60, 0, 300).Double()
        spectrum.fill(ak.to_numpy(selected))
        time.sleep(self.seconds(events))
        dataset = events.metadata["dataset"]
        return {dataset: {"spectrum": spectrum, "events": len(events)}}

    def postprocess(self, accumulator: dict) -> dict:
        return accumulator


def analyze(
    client: Client,
    fileset: Any,
    analysis: processor.ProcessorABC,
    chunksize: int,
    schema: Any = BaseSchema,
    **settings: Any,
) -> dict:
    """Run an analysis over a fileset."""
    runner = processor.Runner(
        processor.DaskExecutor(client=client, status=False),
        schema=schema,
        chunksize=chunksize,
        **settings,
    )
    return runner(fileset, analysis, treename="Events")


# Chunks too small: corrections are loaded for each chunk


@illness(cause("chunks-too-small"))
def corrections_per_chunk(run: Run) -> None:
    """8 files of three datasets with 50,000 to 150,000 events; each chunk loads corrections
    (0.12 s) and takes 30 µs for each event; chunks of 3,500 instead of 25,000 events, on 4
    workers.
    """
    sizes = {
        "data": [150_000, 150_000, 100_000],
        "zjets": [125_000, 50_000],
        "ww": [75_000] * 3,
    }
    fileset = folder_of_files(run, "corrections_per_chunk", sizes, basket=25_000)
    with run.recorded() as client:
        analysis = Spectrum(chunk=0.12, event=30e-6)
        analyze(client, fileset, analysis, 3_500 if run.ill else 25_000)


# Chunks too large: whole files


class Combinatorics(Spectrum):
    """Hold several kB for each event while computing."""

    def seconds(self, events: Any) -> float:
        pairs = np.ones(500 * len(events))
        time.sleep(super().seconds(events))
        return 0 * float(pairs[0])


@illness(cause("chunks-too-large low-parallelism"))
def chunk_per_file(run: Run) -> None:
    """Five files of 160,000 events on 4 workers; each event takes 40 µs and 4 kB of memory;
    chunks of 200,000 events (whole files) instead of 10,000.
    """
    sizes = {"muons": [160_000] * 3, "electrons": [160_000] * 2}
    fileset = folder_of_files(run, "chunk_per_file", sizes)
    with run.recorded() as client:
        analyze(client, fileset, Combinatorics(event=40e-6), 200_000 if run.ill else 10_000)


# Slow file


class Stalling(Spectrum):
    """Wait for the blocks of files on a failing disk."""

    def __init__(self, slow_file: str, chunk: float = 0.0, event: float = 0.0) -> None:
        super().__init__(chunk, event)
        self.slow_file = slow_file

    def seconds(self, events: Any) -> float:
        is_slow = events.metadata["filename"].endswith(self.slow_file or "no file")
        return super().seconds(events) * (5 if is_slow else 1)


@illness(cause("slow-file", "egamma_1.root"))
def failing_disk(run: Run) -> None:
    """Ten files of two datasets with 70,000 or 90,000 events and 35 µs for each event, on 2
    workers with 2 threads; the chunks of egamma_1.root take five times as long.
    """
    sizes = {"egamma": [90_000] * 5, "photon": [70_000] * 5}
    fileset = folder_of_files(run, "failing_disk", sizes)
    with run.recorded(workers=2, threads=2) as client:
        slow_file = "egamma_1.root" if run.ill else ""
        analyze(client, fileset, Stalling(slow_file, event=35e-6), 10_000)


# Expensive dataset: variations of the signal only


class Variations(Spectrum):
    """Repeat the selection for each systematic variation of a dataset."""

    def __init__(self, variations: dict[str, int], event: float) -> None:
        super().__init__(event=event)
        self.variations = variations

    def process(self, events: Any) -> dict:
        dataset = events.metadata["dataset"]
        spectrum = hist.Hist.new.Reg(60, 0, 300).Double()
        for number in range(self.variations.get(dataset, 1)):
            scaled = events.pt * (1 + 0.01 * number)
            spectrum.fill(ak.to_numpy(scaled[abs(events.eta) > 1]))
            time.sleep(self.seconds(events))
        return {dataset: {"spectrum": spectrum, "events": len(events)}}


@illness(cause("expensive-dataset", "ttbar"), saves=None)
def variations_of_ttbar(run: Run) -> None:
    """Four datasets of 2 files with 60,000 to 80,000 events, 32 µs for each event and
    variation, on 4 workers; ttbar has seven variations instead of one.
    """
    sizes = {
        "ttbar": [80_000] * 2,
        "dy": [80_000] * 2,
        "wjets": [60_000] * 2,
        "qcd": [70_000] * 2,
    }
    fileset = folder_of_files(run, "variations_of_ttbar", sizes)
    with run.recorded() as client:
        variations = {"ttbar": 7} if run.ill else {}
        analyze(client, fileset, Variations(variations, event=32e-6), 10_000)


# Unused branches: a check of all columns


class Checked(Spectrum):
    """Look for values that are not finite, in all columns or those that are used."""

    def __init__(self, checks_all: bool, event: float) -> None:
        super().__init__(event=event)
        self.checks_all = checks_all

    def process(self, events: Any) -> dict:
        names = events.fields if self.checks_all else ["pt", "eta"]
        finite = [bool(np.isfinite(ak.to_numpy(events[name])).all()) for name in names]
        result = super().process(events)
        result[events.metadata["dataset"]]["finite"] = sum(finite)
        return result


@illness(cause("unused-branches"))
def check_of_all_columns(run: Run) -> None:
    """Six files of two datasets with 200,000 events and 202 branches, 22 µs for each event, on
    4 workers; a check reads all branches instead of the two that are used.
    """
    names = ("pt", "eta", *(f"column_{number}" for number in range(200)))
    sizes = {"data": [200_000] * 4, "mc": [200_000] * 2}
    fileset = folder_of_files(run, "check_of_all_columns", sizes, 40_000, names)
    with run.recorded() as client:
        analyze(client, fileset, Checked(run.ill, event=22e-6), 40_000)


# Compression


class Sums(Spectrum):
    """Read all columns."""

    def selected(self, events: Any) -> Any:
        columns = [ak.to_numpy(events[name]) for name in events.fields]
        return np.sum(columns, axis=0)


@illness(cause("compression"))
def archived_files(run: Run) -> None:
    """Ten files with 240,000 events and 48 branches that are all used, 10 µs for each event,
    on 4 workers; the files are compressed by LZMA, as in the archive, instead of LZ4.
    """
    name = "archived_files" if run.ill else "archived_files_lz4"
    compression = uproot.LZMA(6) if run.ill else uproot.LZ4(4)
    names = tuple(f"column_{number}" for number in range(48))
    folder = run.data / name
    folder_of_files(run, name, {"original": [240_000]}, 40_000, names, compression)
    original = folder / "original_0.root"
    fileset = {"data": copies(original, 6, "data"), "mc": copies(original, 4, "mc")}
    with run.recorded() as client:
        analyze(client, fileset, Sums(event=10e-6), 40_000)


# Repeated baskets


@illness(cause("repeated-baskets chunks-too-small"))
def one_basket_per_branch(run: Run) -> None:
    """Four files with 400,000 events and 12 branches that are all used, 18 µs for each event,
    chunks of 20,000 events on 4 workers; each branch is one basket instead of 20.
    """
    name = "one_basket_per_branch" if run.ill else "one_basket_per_chunk"
    names = tuple(f"column_{number}" for number in range(12))
    basket = 400_000 if run.ill else 20_000
    folder_of_files(run, name, {"original": [400_000]}, basket, names)
    original = run.data / name / "original_0.root"
    fileset = {"signal": copies(original, 2, "signal"), "dy": copies(original, 2, "dy")}
    with run.recorded() as client:
        analyze(client, fileset, Sums(event=18e-6), 20_000)


# Opening of files


@illness(cause("file-opening"))
def unskimmed_files(run: Run) -> None:
    """36 files of two datasets with 6,000 events, 0.7 s for each file, on 4 workers; the files
    have 600 branches instead of the two that are used, so that opening them takes long.
    """
    name = "unskimmed_files" if run.ill else "skimmed_files"
    count = 598 if run.ill else 0
    names = ("pt", "eta", *(f"column_{number}" for number in range(count)))
    folder_of_files(run, name, {"original": [6_000]}, 6_000, names)
    original = run.data / name / "original_0.root"
    fileset = {"data": copies(original, 24, "data"), "mc": copies(original, 12, "mc")}
    with run.recorded() as client:
        analyze(client, fileset, Spectrum(chunk=0.7), 10_000)


# Slow storage: a web server with a long way


class Ranges(BaseHTTPRequestHandler):
    """Serve ranges of the files of a folder, after some seconds."""

    protocol_version = "HTTP/1.1"

    def __init__(self, folder: str, seconds: float, *arguments: Any) -> None:
        self.folder = Path(folder)
        self.seconds = seconds
        super().__init__(*arguments)

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.answer(has_body=False)

    def do_GET(self) -> None:
        self.answer(has_body=True)

    def answer(self, has_body: bool) -> None:
        time.sleep(self.seconds)
        data = (self.folder / Path(self.path).name).read_bytes()
        size = len(data)
        requested = self.headers.get("Range")
        self.send_response(206 if requested else 200)
        if requested:
            first, _, last = requested.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or size - 1), size - 1)
            data = data[begin : end + 1]
            self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if has_body:
            self.wfile.write(data)


def serve(folder: str, seconds: float, port: Any) -> None:
    """Serve files at 127.0.0.9; send the port."""
    server = ThreadingHTTPServer(("127.0.0.9", 0), partial(Ranges, folder, seconds))
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def served(folder: Path, seconds: float) -> Any:
    """Serve a folder in a process of its own; return the base of the addresses."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe()
    process = context.Process(target=serve, args=(str(folder), seconds, sender), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.9:{receiver.recv()}"
    finally:
        process.kill()


@illness(cause("slow-storage", "127.0.0.9"))
def distant_server(run: Run) -> None:
    """Ten files of two datasets with 60,000 events, 40 µs for each event, are read from a web
    server at 127.0.0.9 on 4 workers; each of its answers takes 0.2 s instead of 2 ms.
    """
    sizes = {"jetmet": [60_000] * 6, "ww": [60_000] * 4}
    fileset = folder_of_files(run, "distant_server", sizes)
    with served(run.data / "distant_server", 0.2 if run.ill else 0.002) as base:
        remote = {
            dataset: [f"{base}/{Path(path).name}" for path in paths]
            for dataset, paths in fileset.items()
        }
        with run.recorded() as client:
            analyze(client, remote, Spectrum(event=40e-6), 20_000)


# Skipped files


@illness(
    cause("skipped-files", "tau_2.root", "tau_5.root", "met_0.root", "tau", "met"), saves=None
)
def truncated_transfers(run: Run) -> None:
    """Twelve files of two datasets with 60,000 events, 45 µs for each event, on 4 workers with
    skipbadfiles; the transfer of three files broke off, and two are empty, one is truncated.
    """
    sizes = {"tau": [60_000] * 8, "met": [60_000] * 4}
    fileset = folder_of_files(run, "truncated_transfers", sizes)
    if run.ill:
        whole, broken = run.data / "truncated_transfers", run.data / "truncated_broken"
        shutil.copytree(whole, broken, dirs_exist_ok=True)
        for name, size in {"tau_2.root": 0, "tau_5.root": 50_000, "met_0.root": 0}.items():
            (broken / name).write_bytes((whole / name).read_bytes()[:size])
        fileset = {
            dataset: [str(broken / Path(path).name) for path in paths]
            for dataset, paths in fileset.items()
        }
    with run.recorded() as client:
        analyze(client, fileset, Spectrum(event=45e-6), 10_000, skipbadfiles=True)


# Two at once: workers that come late, and a slow file


def after(seconds: float, function: Callable, *arguments: Any) -> None:
    """Call a function later, in a thread."""
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()


@illness(cause("late-workers"), cause("slow-file", "higgs_2.root"))
def batch_queue_and_slow_file(run: Run) -> None:
    """Ten files of two datasets with 70,000 events and 45 µs for each event, on 4 workers; two
    of them come after 6 s, and the chunks of higgs_2.root take five times as long.
    """
    sizes = {"higgs": [70_000] * 4, "zz": [70_000] * 6}
    fileset = folder_of_files(run, "batch_queue_and_slow_file", sizes)
    with run.recorded(workers=2 if run.ill else 4) as client:
        if run.ill:
            after(6, run.cluster.scale, 4)
        slow_file = "higgs_2.root" if run.ill else ""
        analyze(client, fileset, Stalling(slow_file, event=45e-6), 10_000)


# Healthy controls


@illness()
def three_datasets(run: Run) -> None:
    """Nine files of three datasets with 40,000 to 90,000 events, chunks of 15,000 events of 40
    µs, on 4 workers.
    """
    sizes = {"data": [90_000] * 4, "ttbar": [60_000] * 3, "dy": [40_000] * 2}
    fileset = folder_of_files(run, "three_datasets", sizes, basket=15_000)
    with run.recorded() as client:
        analyze(client, fileset, Spectrum(chunk=0.02, event=40e-6), 15_000)


EVENT_ID = ("run", "luminosityBlock", "event")


class Dimuons(Spectrum):
    """Histogram the masses of pairs of muons."""

    def process(self, events: Any) -> dict:
        muons = events.Muon[events.Muon.pt > 10]
        pairs = ak.combinations(muons, 2, fields=["first", "second"])
        mass = (pairs.first + pairs.second).mass
        masses = hist.Hist.new.Reg(80, 0, 200).Double()
        masses.fill(ak.to_numpy(ak.flatten(mass)))
        time.sleep(self.seconds(events))
        return {events.metadata["dataset"]: {"masses": masses, "events": len(events)}}


def write_muons(path: Path, events: int, seed: int) -> None:
    """Write a file with the columns of NanoAOD for muons."""
    random = np.random.default_rng(seed)
    counts = random.poisson(2, events)

    def jagged(values: np.ndarray) -> ak.Array:
        return ak.unflatten(values.astype("f4"), counts)

    muons = ak.zip(
        {
            "pt": jagged(random.exponential(25, counts.sum())),
            "eta": jagged(random.normal(0, 1.5, counts.sum())),
            "phi": jagged(random.uniform(-3.14, 3.14, counts.sum())),
            "mass": jagged(np.full(counts.sum(), 0.106)),
            "charge": jagged(random.choice([-1, 1], counts.sum())),
        }
    )
    with uproot.recreate(path, compression=uproot.ZLIB(1)) as file:
        first = muons[:12_000]
        file.mktree("Events", {"Muon": first.type.content, **dict.fromkeys(EVENT_ID, "i8")})
        for begin in range(0, events, 12_000):
            part = muons[begin : begin + 12_000]
            numbers = dict.fromkeys(EVENT_ID, np.arange(begin, begin + len(part)))
            file["Events"].extend({"Muon": part, **numbers})


@illness()
def dimuon_masses(run: Run) -> None:
    """Six files of NanoAOD of two datasets with 96,000 events, chunks of 12,000 events of 45 µs
    each, on 2 workers with 2 threads.
    """
    folder = run.data / "dimuon_masses"
    folder.mkdir(exist_ok=True)
    fileset: Fileset = {"doublemuon": [], "zmumu": []}
    for number in range(6):
        dataset = "doublemuon" if number < 3 else "zmumu"
        path = folder / f"{dataset}_{number}.root"
        fileset[dataset].append(str(path))
        if not path.exists():
            write_muons(path, 96_000, number)
    with run.recorded(workers=2, threads=2) as client:
        analyze(client, fileset, Dimuons(event=45e-6), 12_000, NanoAODSchema)
