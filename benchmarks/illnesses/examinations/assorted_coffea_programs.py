"""Programs of the kinds of the rules in other circumstances, of coffea.

They were written by an author who had read neither the rules nor other programs. Processors
read and fill real events; further computing is represented by sleeping.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import awkward as ak
import hist
import numpy as np
import uproot
from assorted_plain_programs import spread
from coffea import processor
from coffea.nanoevents import BaseSchema, NanoAODSchema
from dask.distributed import Client, get_worker
from illness import Run, cause, illness


def write_events(
    path: Path,
    events: int,
    basket: int = 5_000,
    jets: float = 4.0,
    variables: int = 0,
    details: int = 0,
    compression: uproot.compression.Compression | None = None,
) -> str:
    """Write a file of events, unless there is one; return its path.

    It has the numbers of events, jets, the missing momentum, further variables of events, and
    further details of jets.
    """
    if path.exists():
        return str(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    random = np.random.default_rng(sum(path.name.encode()))
    names = ["MET_pt", "MET_phi", *(f"var_{number}" for number in range(variables))]
    with uproot.recreate(partial, compression=compression or uproot.LZ4(1)) as file:
        tree = None
        for begin in range(0, events, basket):
            counts = random.poisson(jets, basket)
            total = int(counts.sum())
            values = {
                "pt": random.exponential(40, total),
                "eta": random.normal(0, 1.5, total),
                "phi": random.uniform(-3.1, 3.1, total),
                "mass": random.exponential(8, total),
                **{f"tag_{number}": random.random(total) for number in range(details)},
            }
            columns = {
                name: ak.unflatten(np.round(column, 2).astype(np.float32), counts)
                for name, column in values.items()
            }
            block = {
                name: np.round(random.exponential(20, basket), 3).astype(np.float32)
                for name in names
            }
            block["run"] = np.full(basket, 1, np.uint32)
            block["luminosityBlock"] = np.full(basket, 1 + begin // basket, np.uint32)
            block["event"] = np.arange(begin, begin + basket, dtype=np.uint64)
            types = {name: column.dtype for name, column in block.items()}
            block["Jet"] = ak.zip(columns)
            if tree is None:
                tree = file.mktree("Events", {**types, "Jet": block["Jet"].type})
            tree.extend(block)
    partial.rename(path)
    return str(path)


def analyze(
    client: Client,
    fileset: dict[str, list[str]],
    analysis: processor.ProcessorABC,
    chunksize: int,
    schema: type = BaseSchema,
    **options,
) -> None:
    """Run an analysis with Dask."""
    executor = processor.DaskExecutor(client=client, status=False, retries=4)
    run = processor.Runner(
        executor, schema=schema, chunksize=chunksize, metadata_cache={}, **options
    )
    out = run(fileset, analysis, treename="Events")
    assert out["events"] > 0


def number_of(events: ak.Array) -> int:
    """Return a number that depends on the chunk."""
    name = events.metadata["filename"].rpartition("/")[2]
    return sum(name.encode()) + events.metadata["entrystart"] // 1000


def fill(events: ak.Array, pt: ak.Array, eta: ak.Array, met: ak.Array) -> dict:
    """Fill histograms of jets and missing momentum; return the results."""
    good = pt[(pt > 25) & (abs(eta) < 2.5)]
    jets = hist.Hist.new.StrCat([], growth=True, name="dataset").Reg(50, 0, 500).Double()
    missing = hist.Hist.new.StrCat([], growth=True, name="dataset").Reg(50, 0, 500).Double()
    dataset = events.metadata["dataset"]
    jets.fill(dataset, ak.flatten(good))
    missing.fill(dataset, met)
    return {"jets": jets, "missing": missing, "events": len(met)}


class Selection(processor.ProcessorABC):
    """Fill histograms, and compute for some seconds a chunk or some microseconds an event."""

    def __init__(self, seconds: float = 0.0, microseconds: float = 0.0) -> None:
        self.seconds = seconds
        self.microseconds = microseconds

    def process(self, events):
        if "Jet" in events.fields:
            out = fill(events, events.Jet.pt, events.Jet.eta, events.MET.pt)
        else:
            out = fill(events, events.Jet_pt, events.Jet_eta, events.MET_pt)
        self.compute(events)
        return out

    def compute(self, events, factor: float = 1.0) -> None:
        seconds = self.seconds + 1e-6 * self.microseconds * len(events)
        time.sleep(factor * seconds * spread(number_of(events)))

    def postprocess(self, accumulator):
        return accumulator


# Slow host.


class HostSelection(Selection):
    """A selection that takes longer on some hosts."""

    def __init__(self, hosts: tuple[str, ...], factor: float, microseconds: float) -> None:
        super().__init__(microseconds=microseconds)
        self.hosts = hosts
        self.factor = factor

    def process(self, events):
        out = fill(events, events.Jet.pt, events.Jet.eta, events.MET.pt)
        host = get_worker().address.rpartition("/")[2].rpartition(":")[0]
        self.compute(events, self.factor if host in self.hosts else 1)
        return out


@illness(cause("slow-host", "127.0.0.3"))
def old_node(run: Run) -> None:
    """104 chunks of 0.33 s, of two datasets, on three hosts with two workers each.

    Chunks take 3.5 times as long on host 127.0.0.3. Without the illness, hosts are equal.
    """
    folder = run.data / "assorted"
    fileset = {
        name: [write_events(folder / f"{name}_{part}.root", 40_000) for part in range(parts)]
        for name, parts in (("data", 8), ("wjets", 5))
    }
    hosts = ("127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3")
    with run.recorded(hosts=hosts) as client:
        slow = ("127.0.0.3",) if run.ill else ()
        analysis = HostSelection(slow, 3.5, microseconds=66)
        analyze(client, fileset, analysis, chunksize=5_000, schema=NanoAODSchema)


# Slow file: the work depends on the number of hits.


class HitSelection(Selection):
    """A selection that computes for each jet."""

    def process(self, events):
        out = fill(events, events.Jet_pt, events.Jet_eta, events.MET_pt)
        time.sleep(1e-6 * self.microseconds * int(ak.sum(ak.num(events.Jet_pt))))
        return out


@illness(cause("slow-file", "run_7.root"))
def noisy_run(run: Run) -> None:
    """96 chunks of 0.25 s, of 12 files of two datasets, on 4 workers.

    The events of run_7.root have 9 times as many hits and take 9 times as long, on every
    worker. Without the illness, they are as those of other files.
    """
    folder = run.data / "assorted_noisy"
    clean = [
        write_events(folder / f"run_{number}.root", 20_000, basket=2_500, jets=10)
        for number in range(12)
    ]
    noisy = write_events(folder / "noise" / "run_7.root", 20_000, basket=2_500, jets=90)
    files = [*clean[:7], noisy, *clean[8:]] if run.ill else clean
    fileset = {"run_A": files[:5], "run_B": files[5:]}
    with run.recorded() as client:
        analyze(client, fileset, HitSelection(microseconds=10), chunksize=2_500)


# Retries: results of one dataset cannot be stored at the first attempt.


class QuotaExceededError(RuntimeError):
    """The user's quota is exceeded."""


class StoringSelection(Selection):
    """A selection that stores its chunks, which fails for some."""

    def __init__(self, attempts: Path, failures: int, seconds: float) -> None:
        super().__init__(seconds)
        self.attempts = attempts
        self.failures = failures

    def process(self, events):
        out = super().process(events)
        if events.metadata["dataset"] == "signal":
            self.store(number_of(events), events)
        return out

    def store(self, number: int, events) -> None:
        name = events.metadata["filename"].rpartition("/")[2]
        failures = self.failures if number % 3 else 2 * self.failures
        for attempt in range(failures):
            path = self.attempts / f"{name}_{events.metadata['entrystart']}_{attempt}"
            if not path.exists():
                path.touch()
                raise QuotaExceededError(f"no space for {name}")


@illness(cause("retries", "QuotaExceededError"))
def quota_of_the_signal(run: Run) -> None:
    """64 chunks of 0.4 s, half of them of the dataset signal, on 4 workers.

    Chunks of the signal fail once or twice when they are stored, after all computing, and
    are retried. Without the illness, they are stored.
    """
    folder = run.data / "assorted"
    fileset = {
        name: [write_events(folder / f"{name}_{number}.root", 40_000) for number in range(4)]
        for name in ("data", "signal")
    }
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    with run.recorded() as client:
        analysis = StoringSelection(attempts, int(run.ill), seconds=0.4)
        analyze(client, fileset, analysis, chunksize=5_000)
    assert bool(list(attempts.iterdir())) == run.ill


# Branches that are not used: all variables are copied to arrays.


class CopyingSelection(Selection):
    """A selection that may first copy all branches to memory."""

    def __init__(self, copies: bool, seconds: float) -> None:
        super().__init__(seconds)
        self.copies = copies

    def process(self, events):
        names = events.fields if self.copies else ["Jet_pt", "Jet_eta", "MET_pt", "var_3"]
        table = {name: ak.to_packed(events[name]) for name in names}
        met = table["MET_pt"][table["var_3"] > 1]
        out = fill(events, table["Jet_pt"], table["Jet_eta"], met)
        self.compute(events)
        return out


@illness(cause("unused-branches"))
def copies_of_all_branches(run: Run) -> None:
    """48 chunks of 0.4 s of files with 190 branches on 4 workers.

    The processor copies all branches to memory and uses four. Without the illness, it copies
    these four.
    """
    folder = run.data / "assorted_wide"
    fileset = {
        name: [
            write_events(folder / f"{name}_{number}.root", 40_000, variables=120, details=60)
            for number in range(count)
        ]
        for name, count in (("ttbar", 4), ("zjets", 2))
    }
    with run.recorded() as client:
        analyze(client, fileset, CopyingSelection(run.ill, seconds=0.4), chunksize=5_000)


# Repeated baskets: merged files have one basket for each branch.


class VariableSelection(Selection):
    """A selection that uses all variables of events."""

    def process(self, events):
        names = [name for name in events.fields if name.startswith("var_")]
        total = sum(ak.to_numpy(events[name]) for name in names)
        out = fill(events, events.Jet_pt, events.Jet_eta, events.MET_pt + total)
        self.compute(events)
        return out


@illness(cause("repeated-baskets chunks-too-small"))
def one_basket_a_branch(run: Run) -> None:
    """72 chunks of 10 000 events and 0.3 s on 4 workers, of two merged files.

    A basket has all events of its branch, so that it is read for each of the 36 chunks of a
    file. Without the illness, baskets have 10 000 events.
    """
    basket = 360_000 if run.ill else 10_000
    folder = run.data / f"assorted_merged_{basket}"
    compression = uproot.ZLIB(1)
    files = [
        write_events(
            folder / f"merged_{number}.root",
            360_000,
            basket=basket,
            jets=2,
            variables=10,
            compression=compression,
        )
        for number in range(2)
    ]
    fileset = {"ttbar": files[:1], "wjets": files[1:]}
    with run.recorded() as client:
        analyze(client, fileset, VariableSelection(seconds=0.3), chunksize=10_000)


# Slow storage: one dataset is read from a distant server.


class RangeHandler(BaseHTTPRequestHandler):
    """Serve ranges of files of a folder, after a delay."""

    protocol_version = "HTTP/1.1"
    folder = Path()
    delay = 0.0

    def do_HEAD(self) -> None:
        self.answer(is_head=True)

    def do_GET(self) -> None:
        self.answer()

    def answer(self, is_head: bool = False) -> None:
        time.sleep(self.delay)
        content = (self.folder / self.path.rpartition("/")[2]).read_bytes()
        size = len(content)
        wanted = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted:
            first, last = int(wanted[1]), min(int(wanted[2] or size - 1), size - 1)
            content = content[first : last + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not is_head:
            self.wfile.write(content)

    def log_message(self, *arguments) -> None:
        """Keep quiet."""


@contextmanager
def served(folder: Path, delay: float) -> Iterator[str]:
    """Serve files of a folder, with a delay in seconds; give the address."""
    handler = type("Handler", (RangeHandler,), {"folder": folder, "delay": delay})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


@illness(cause("slow-storage", "127.0.0.1", "http", "zjets"))
def distant_server(run: Run) -> None:
    """64 chunks of 0.35 s on 4 workers; files of zjets are on a web server, others local.

    The server answers each request after 0.15 s. Without the illness, it answers at once.
    """
    folder = run.data / "assorted"
    fileset = {
        name: [write_events(folder / f"{name}_{number}.root", 40_000) for number in range(4)]
        for name in ("data", "zjets")
    }
    with served(folder, 0.15 if run.ill else 0.0) as address, run.recorded() as client:
        fileset["zjets"] = [f"{address}/zjets_{number}.root" for number in range(4)]
        analyze(client, fileset, Selection(seconds=0.35), chunksize=5_000)


# Compression: the files of one dataset are as small as possible.


@illness(cause("compression"))
def small_skims(run: Run) -> None:
    """72 chunks of 0.3 s, of two datasets with 48 variables of events, on 4 workers.

    Half of the files are compressed with LZMA. Without the illness, all are with LZ4.
    """
    folder = run.data / "assorted_skims"
    small = folder / "lzma" if run.ill else folder / "lz4"
    compression = uproot.LZMA(1) if run.ill else uproot.LZ4(1)
    fileset = {
        "data": [
            write_events(folder / f"data_{number}.root", 120_000, 20_000, variables=48)
            for number in range(6)
        ],
        "skim": [
            write_events(small / f"skim_{number}.root", 120_000, 20_000, 4, 48, 0, compression)
            for number in range(6)
        ],
    }
    with run.recorded() as client:
        analyze(client, fileset, VariableSelection(seconds=0.3), chunksize=20_000)


# Chunks too large: five chunks for four workers.


@illness(cause("chunks-too-large low-parallelism"))
def whole_files(run: Run) -> None:
    """Five files of 100 000 events, 5 s each, of two datasets, on 4 workers.

    A chunk is a whole file, so that one worker computes the fifth alone. Without the illness,
    a chunk has 5000 events.
    """
    folder = run.data / "assorted_large"
    files = [write_events(folder / f"large_{number}.root", 100_000) for number in range(5)]
    fileset = {"data": files[:2], "ttbar": files[2:]}
    with run.recorded() as client:
        chunksize = 1_000_000 if run.ill else 5_000
        analyze(client, fileset, Selection(microseconds=50), chunksize)


# Two illnesses: small chunks, and a slow worker.


class CorrectedSelection(Selection):
    """A selection that reads corrections for each chunk; some workers are slow."""

    def __init__(self, slow: tuple[int, ...], seconds: float, microseconds: float) -> None:
        super().__init__(seconds, microseconds)
        self.slow = slow

    def process(self, events):
        out = fill(events, events.Jet_pt, events.Jet_eta, events.MET_pt)
        self.compute(events, 3 if get_worker().name in self.slow else 1)
        return out


@illness(cause("chunks-too-small"), cause("slow-worker", "1"))
def small_chunks_and_slow_worker(run: Run) -> None:
    """160 000 events of two datasets on 4 workers; a chunk takes 0.15 s and 0.1 ms an event.

    Chunks have 1000 events, and worker 1 takes three times as long. Without both illnesses,
    chunks have 5000 events and workers are equal.
    """
    folder = run.data / "assorted_small"
    fileset = {
        name: [
            write_events(folder / f"{name}_{number}.root", 20_000, basket=1_000)
            for number in range(4)
        ]
        for name in ("data", "ttbar")
    }
    with run.recorded() as client:
        analysis = CorrectedSelection((1,) if run.ill else (), 0.15, microseconds=100)
        analyze(client, fileset, analysis, chunksize=1_000 if run.ill else 5_000)


# Healthy control.


@illness()
def three_datasets(run: Run) -> None:
    """72 chunks of 0.4 s, of three datasets of unequal size, on 4 workers."""
    folder = run.data / "assorted"
    fileset = {
        name: [write_events(folder / f"{name}_{part}.root", 40_000) for part in range(parts)]
        for name, parts in (("data", 5), ("wjets", 3), ("signal", 1))
    }
    with run.recorded() as client:
        analyze(client, fileset, Selection(seconds=0.4), 5_000, schema=NanoAODSchema)
