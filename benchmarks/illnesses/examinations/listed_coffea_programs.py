"""Coffea analyses of the kinds of illness that the project lists.

They were written by an author who had read neither the rules nor other programs. Where two
cores are too few, processors sleep in proportion to their events instead of computing.
"""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema, NanoAODSchema
from distributed import Client, get_worker
from hist import Hist
from illness import Run, cause, illness

Fileset = dict[str, Any]


# Files


def write_flat(
    path: Path,
    entries: int,
    branches: int = 8,
    basket: int = 10_000,
    compression: uproot.compression.Compression | None = None,
    seed: int = 1,
) -> str:
    """Write a tree of numbers with baskets of so many entries, unless it exists."""
    if not path.exists():
        random = np.random.default_rng(seed)
        names = [f"x{i}" for i in range(branches)]
        part = path.with_suffix(f".{time.time_ns()}")
        with uproot.recreate(part, compression=compression or uproot.LZ4(1)) as file:
            tree = file.mktree("Events", dict.fromkeys(names, np.float32))
            for _ in range(0, entries, basket):
                tree.extend({name: random.random(basket, np.float32) for name in names})
        part.rename(path)
    return str(path)


def write_jets(path: Path, entries: int, jets: float, seed: int = 1) -> str:
    """Write a tree with a mean number of jets per event, unless it exists."""
    if not path.exists():
        random = np.random.default_rng(seed)
        part = path.with_suffix(f".{time.time_ns()}")
        types = {"Jet": "var * {pt: float32, eta: float32}", "weight": "float32"}
        with uproot.recreate(part, compression=uproot.ZLIB(1)) as file:
            tree = file.mktree("Events", types)
            for _ in range(0, entries, 10_000):
                counts = random.poisson(jets, 10_000)
                fields = {
                    name: ak.unflatten(
                        random.exponential(scale, counts.sum()).astype(np.float32), counts
                    )
                    for name, scale in (("pt", 60.0), ("eta", 1.5))
                }
                weight = random.random(10_000, np.float32)
                tree.extend({"Jet": ak.zip(fields), "weight": weight})
        part.rename(path)
    return str(path)


def write_muons(path: Path, entries: int, seed: int) -> str:
    """Write a small NanoAOD file with muons, unless it exists."""
    if not path.exists():
        random = np.random.default_rng(seed)
        part = path.with_suffix(f".{time.time_ns()}")
        names = ("pt", "eta", "phi", "mass")
        record = ", ".join(f"{name}: float32" for name in names)
        types = {
            "run": "uint32",
            "luminosityBlock": "uint32",
            "event": "uint64",
            "Muon": f"var * {{{record}, charge: int32}}",
        }
        with uproot.recreate(part, compression=uproot.ZLIB(1)) as file:
            tree = file.mktree("Events", types)
            for first in range(0, entries, 10_000):
                counts = random.poisson(2.2, 10_000)
                total = counts.sum()
                muons = {
                    "pt": random.exponential(30, total),
                    "eta": random.uniform(-2.4, 2.4, total),
                    "phi": random.uniform(-3.14, 3.14, total),
                    "mass": np.full(total, 0.105),
                }
                fields = {
                    name: ak.unflatten(values.astype(np.float32), counts)
                    for name, values in muons.items()
                }
                charge = random.choice([-1, 1], total).astype(np.int32)
                fields["charge"] = ak.unflatten(charge, counts)
                tree.extend(
                    {
                        "run": np.ones(10_000, np.uint32),
                        "luminosityBlock": np.full(10_000, seed, np.uint32),
                        "event": np.arange(first, first + 10_000, dtype=np.uint64),
                        "Muon": ak.zip(fields),
                    }
                )
        part.rename(path)
    return str(path)


def link(first: str, number: int) -> list[str]:
    """Return so many names of a file."""
    path = Path(first)
    paths = [path.with_stem(f"{path.stem}_{i}") for i in range(number)]
    for other in paths:
        if not other.exists():
            other.hardlink_to(path)
    return [str(other) for other in paths]


def flat_fileset(run: Run, name: str, datasets: dict[str, int], **settings: Any) -> Fileset:
    """Write so many files for each dataset."""
    return {
        dataset: {
            "files": [
                write_flat(run.data / f"{name}_{dataset}_{i}.root", seed=i, **settings)
                for i in range(number)
            ]
        }
        for dataset, number in datasets.items()
    }


@contextmanager
def server(folder: Path, slow: str, seconds: float) -> Iterator[str]:
    """Serve files by HTTP; requests of files whose names contain `slow` take longer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, with_body: bool) -> None:
            path = folder / Path(self.path).name
            if slow in path.name:
                time.sleep(seconds)
            size = path.stat().st_size
            wanted = self.headers.get("Range")
            first, last = 0, size - 1
            if wanted:
                begin, _, end = wanted.removeprefix("bytes=").partition("-")
                first, last = int(begin), min(int(end or last), last)
            self.send_response(206 if wanted else 200)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(last - first + 1))
            if wanted:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.end_headers()
            if with_body:
                with path.open("rb") as file:
                    file.seek(first)
                    self.wfile.write(file.read(last - first + 1))

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        threading.Thread(target=http_server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http_server.server_address[1]}"
        http_server.shutdown()


# Analyses


class Flat(processor.ProcessorABC):
    """Fill histograms of some branches, and compute for so long per event.

    `slow_host` takes three times as long. `table` is a large correction.
    """

    def __init__(
        self,
        seconds: float,
        branches: int = 6,
        slow_host: str | None = None,
        table: np.ndarray | None = None,
    ) -> None:
        self.seconds = seconds
        self.branches = branches
        self.slow_host = slow_host
        self.table = table

    def process(self, events: Any) -> dict:
        output = {}
        weight = np.ones(len(events))
        if self.table is not None:
            weight *= self.table[: len(events)]
        for i in range(self.branches):
            values = ak.to_numpy(events[f"x{i}"])
            histogram = Hist.new.Reg(60, 0, 1, name="x").Weight()
            histogram.fill(x=values, weight=weight)
            output[f"x{i}"] = histogram
        slow = self.slow_host is not None and self.slow_host in get_worker().address
        time.sleep(self.seconds * len(events) * (3 if slow else 1))
        return {events.metadata["dataset"]: {**output, "events": len(events)}}

    def postprocess(self, accumulator: dict) -> dict:
        return accumulator


class Jets(processor.ProcessorABC):
    """Fill histograms of jets, with a tagger that takes 10 µs for a jet."""

    def process(self, events: Any) -> dict:
        pt = events["Jet_pt"][abs(events["Jet_eta"]) < 2.4]
        ht = Hist.new.Reg(60, 0, 1000, name="ht").Weight()
        ht.fill(ht=ak.sum(pt, axis=1), weight=events["weight"])
        leading = Hist.new.Reg(60, 0, 500, name="pt").Weight()
        leading.fill(pt=ak.fill_none(ak.max(pt, axis=1), 0), weight=events["weight"])
        time.sleep(1e-5 * int(ak.sum(ak.num(events["Jet_pt"]))))
        return {events.metadata["dataset"]: {"ht": ht, "pt": leading, "events": len(events)}}

    def postprocess(self, accumulator: dict) -> dict:
        return accumulator


class Dimuons(processor.ProcessorABC):
    """Fill the mass of pairs of opposite charge, with work that takes time for each event."""

    def process(self, events: Any) -> dict:
        muons = events.Muon[(events.Muon.pt > 5) & (abs(events.Muon.eta) < 2.4)]
        pairs = ak.combinations(muons, 2, fields=["a", "b"])
        pairs = pairs[pairs.a.charge != pairs.b.charge]
        mass = Hist.new.Reg(100, 0, 200, name="mass").Weight()
        mass.fill(mass=ak.flatten((pairs.a + pairs.b).mass))
        time.sleep(5e-5 * len(events))
        return {events.metadata["dataset"]: {"mass": mass, "events": len(events)}}

    def postprocess(self, accumulator: dict) -> dict:
        return accumulator


def analyze(
    client: Client,
    fileset: Fileset,
    analysis: processor.ProcessorABC,
    chunksize: int,
    schema: type[BaseSchema] = BaseSchema,
    **settings: Any,
) -> dict:
    """Run an analysis as users do."""
    runner = processor.Runner(
        processor.DaskExecutor(client=client, status=False),
        schema=schema,
        chunksize=chunksize,
        **settings,
    )
    return runner(fileset, analysis, treename="Events")


# Chunks


@illness(cause("chunks-too-small"))
def a_few_hundred_events_at_a_time(run: Run) -> None:
    """320 000 events at 0.1 ms on 4 workers, in chunks of 400 events, or of 10 000."""
    fileset = flat_fileset(run, "few", {"ttbar": 4, "wjets": 4}, entries=40_000, basket=400)
    with run.recorded() as client:
        analyze(client, fileset, Flat(1e-4), 400 if run.ill else 10_000)


@illness(cause("chunks-too-large low-parallelism"))
def a_whole_file_at_a_time(run: Run) -> None:
    """Five files of 60 000 events at 0.12 ms on 4 workers; in whole, or 10 000 at a time."""
    fileset = flat_fileset(run, "large", {"zjets": 3, "data": 2}, entries=60_000)
    with run.recorded() as client:
        analyze(client, fileset, Flat(1.2e-4), 500_000 if run.ill else 10_000)


@illness(cause("repeated-baskets chunks-too-small"))
def baskets_of_half_a_million_events(run: Run) -> None:
    """Four files of 480 000 events, 20 000 at a time; baskets of 480 000 events, or 20 000."""
    basket = 480_000 if run.ill else 20_000
    fileset = flat_fileset(
        run,
        f"basket{basket}",
        {"ttbar": 2, "singletop": 2},
        entries=480_000,
        basket=basket,
        branches=16,
        compression=uproot.ZLIB(4),
    )
    with run.recorded(workers=3) as client:
        analyze(client, fileset, Flat(1.2e-5, branches=16), 20_000)


# Workers


@illness(cause("slow-host", "127.0.0.2"))
def an_old_machine(run: Run) -> None:
    """48 chunks of 0.8 s on two hosts with two workers; 127.0.0.2 is three times slower."""
    fileset = flat_fileset(run, "host", {"ttbar": 4, "zjets": 8}, entries=40_000)
    hosts = ("127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2")
    with run.recorded(hosts=hosts) as client:
        slow_host = "127.0.0.2" if run.ill else None
        analyze(client, fileset, Flat(8e-5, slow_host=slow_host), 10_000)


# Input


@illness(cause("slow-file", "disk_data_5.root"))
def a_file_on_a_failing_disk(run: Run) -> None:
    """Eight files of 4 chunks of 1 s by HTTP, 4 workers; one file takes 0.6 s per request."""
    paths = flat_fileset(run, "disk", {"data": 8}, entries=40_000)["data"]["files"]
    seconds = 0.6 if run.ill else 0.0
    with server(run.data, "disk_data_5", seconds) as url, run.recorded() as client:
        files = [f"{url}/{Path(path).name}" for path in paths]
        analyze(client, {"data": {"files": files}}, Flat(1e-4), 10_000)


@illness(cause("slow-storage", "127.0.0.1"))
def a_server_far_away(run: Run) -> None:
    """Twelve files of 3 chunks of 0.8 s by HTTP, 4 workers; a request takes 0.1 s, or 0."""
    fileset = flat_fileset(run, "far", {"ttbar": 6, "qcd": 6}, entries=30_000)
    with server(run.data, "far", 0.1 if run.ill else 0.0) as url, run.recorded() as client:
        remote = {
            dataset: {"files": [f"{url}/{Path(path).name}" for path in facts["files"]]}
            for dataset, facts in fileset.items()
        }
        analyze(client, remote, Flat(8e-5), 10_000)


@illness(cause("expensive-dataset", "ttbar"), saves=None)
def ttbar_has_many_jets(run: Run) -> None:
    """Three datasets of 12 chunks on 4 workers; ttbar has 30 jets in an event instead of 8."""
    jets = {"ttbar": 30.0 if run.ill else 8.0, "wjets": 8.0, "zjets": 8.0}
    fileset = {
        dataset: {
            "files": [
                write_jets(run.data / f"jets{mean:.0f}_{dataset}_{i}.root", 40_000, mean, i)
                for i in range(3)
            ]
        }
        for dataset, mean in jets.items()
    }
    with run.recorded() as client:
        analyze(client, fileset, Jets(), 10_000)


@illness(cause("unused-branches"))
def preload_of_everything(run: Run) -> None:
    """24 files of 2 chunks with 200 branches; all are preloaded, or the six in use."""
    settings = {"basket": 50_000, "compression": uproot.ZLIB(1)}
    files = link(write_flat(run.data / "wide.root", 100_000, 200, **settings), 24)
    preload = [f"x{i}" for i in range(200 if run.ill else 6)]
    fileset = {
        "ttbar": {"files": files[:12], "preload": preload},
        "zjets": {"files": files[12:], "preload": preload},
    }
    with run.recorded(workers=3) as client:
        analyze(client, fileset, Flat(1e-5), 50_000)


@illness(cause("compression"))
def files_compressed_for_the_archive(run: Run) -> None:
    """28 files of 200 000 events, compressed by LZMA, or LZ4, on 2 workers."""
    name, compression = ("lzma", uproot.LZMA(6)) if run.ill else ("lz4", uproot.LZ4(1))
    first = write_flat(run.data / f"{name}.root", 200_000, 12, 50_000, compression)
    files = link(first, 28)
    fileset = {"data": {"files": files[:14]}, "mc": {"files": files[14:]}}
    with run.recorded(workers=2) as client:
        analyze(client, fileset, Flat(3e-6, branches=12), 200_000)


@illness(cause("file-opening"))
def ntuples_with_hundreds_of_branches(run: Run) -> None:
    """40 files of 10 000 events at 60 µs on 3 workers, with 700 branches, or with 12."""
    branches = 700 if run.ill else 12
    files = link(write_flat(run.data / f"ntuple{branches}.root", 10_000, branches), 40)
    with run.recorded(workers=3) as client:
        analyze(client, {"signal": {"files": files}}, Flat(6e-5), 10_000)


# Two at once


@illness(
    cause("skipped-files", "moved_1.root", "moved_2.root"),
    cause("large-graph"),
)
def moved_files_and_a_large_correction(run: Run) -> None:
    """60 chunks of 0.6 s on 4 workers; two files are skipped and a table has 80 MB, or not."""
    fileset = flat_fileset(run, "moved", {"data": 12}, entries=50_000)
    table = np.random.default_rng(5).random(10_000_000 if run.ill else 10_000)
    if run.ill:
        missing = [str(run.data / f"moved_{i}.root") for i in (1, 2)]
        fileset["data"]["files"] += missing
    with run.recorded(memory="3GB") as client:
        analyze(client, fileset, Flat(6e-5, table=table), 10_000, skipbadfiles=True)


# Healthy


@illness()
def dimuons_of_several_datasets(run: Run) -> None:
    """Pairs of muons in NanoAOD of four datasets, 72 chunks of 0.5 s on 4 workers."""
    numbers = {"dy": 4, "ttbar": 3, "ww": 1, "data": 4}
    fileset = {
        dataset: {
            "files": [
                write_muons(run.data / f"nano_{dataset}_{i}.root", 60_000, i)
                for i in range(number)
            ]
        }
        for dataset, number in numbers.items()
    }
    with run.recorded() as client:
        analyze(client, fileset, Dimuons(), 10_000, NanoAODSchema)


@illness()
def jets_on_workers_with_two_threads(run: Run) -> None:
    """Jets of two datasets, 60 chunks of 0.5 s on 2 workers with 2 threads."""
    fileset = {
        dataset: {
            "files": [
                write_jets(run.data / f"threads_{dataset}_{i}.root", 60_000, 5, i)
                for i in range(5)
            ]
        }
        for dataset in ("qcd", "gjets")
    }
    with run.recorded(workers=2, threads=2) as client:
        analyze(client, fileset, Jets(), 10_000)


@illness()
def ntuple_by_http(run: Run) -> None:
    """Twelve files of an RNTuple from a near HTTP server, 48 chunks of 0.7 s on 4 workers."""
    names = [f"rntuple_{i}.root" for i in range(12)]
    for seed, name in enumerate(names):
        path = run.data / name
        if not path.exists():
            random = np.random.default_rng(seed)
            part = path.with_suffix(f".{time.time_ns()}")
            fields = [f"x{i}" for i in range(8)]
            with uproot.recreate(part) as file:
                ntuple = file.mkrntuple("Events", dict.fromkeys(fields, "float32"))
                for _ in range(4):
                    ntuple.extend({name: random.random(10_000, np.float32) for name in fields})
            part.rename(path)
    with server(run.data, "rntuple", 0.0) as url, run.recorded() as client:
        fileset = {"data": {"files": [f"{url}/{name}" for name in names]}}
        analyze(client, fileset, Flat(7e-5), 10_000)
