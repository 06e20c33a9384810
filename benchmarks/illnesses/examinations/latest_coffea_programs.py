"""Programs of coffea: the kinds of the rules in other circumstances.

They were written by an author who had read neither the rules nor other programs. Processors
read branches and fill histograms; sleeping represents the rest of the computing.
"""

from __future__ import annotations

import shutil
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import awkward as ak
import hist
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema, NanoAODSchema
from distributed import Client, get_worker
from illness import Run, cause, illness
from uproot.source.fsspec import FSSpecSource

Fileset = dict[str, Any]


def write_file(
    path: Path,
    events: int,
    branches: int = 4,
    basket: int = 10_000,
    compression: Any = None,
) -> None:
    """Write a tree of flat branches ``x0``, ``x1``, …, unless there is one."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(len(path.name))
    names = [f"x{number}" for number in range(branches)]
    unfinished = path.with_suffix(".part")
    with uproot.recreate(unfinished, compression=compression or uproot.ZLIB(1)) as file:
        tree = file.mktree(
            "Events",
            dict.fromkeys(names, np.dtype(np.float32)),
            initial_basket_capacity=-(-events // basket),
        )
        for begin in range(0, events, basket):
            size = min(basket, events - begin)
            tree.extend({name: random.normal(size=size).astype("f4") for name in names})
    unfinished.rename(path)


def copies(template: Path, *names: str) -> list[str]:
    """Return copies of a file beside it."""
    paths = [template.with_name(f"{name}.root") for name in names]
    for path in paths:
        if not path.exists():
            shutil.copy(template, path)
    return [str(path) for path in paths]


def datasets(
    folder: Path, files: dict[str, int], events: int, branches: int = 4, **settings: Any
) -> Fileset:
    """Return datasets with a number of files each, all alike."""
    template = folder / "template.root"
    write_file(template, events, branches, **settings)
    return {
        dataset: copies(template, *(f"{dataset}_{number:02d}" for number in range(count)))
        for dataset, count in files.items()
    }


def analyze(
    client: Client,
    fileset: Fileset,
    process: processor.ProcessorABC,
    chunksize: int,
    schema: type = BaseSchema,
    uproot_options: dict[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Run a processor."""
    run = processor.Runner(
        processor.DaskExecutor(client=client, status=False),
        schema=schema,
        chunksize=chunksize,
        metadata_cache={},
        **settings,
    )
    return run(fileset, process, treename="Events", uproot_options=uproot_options or {})


class Masses(processor.ProcessorABC):
    """Fills a histogram, and sleeps for each chunk and each event."""

    def __init__(
        self,
        seconds: float,
        per_chunk: float = 0.0,
        branches: int = 2,
        factors: dict[str, float] | None = None,
    ) -> None:
        #: Seconds of a million events.
        self.seconds = seconds
        self.per_chunk = per_chunk
        self.branches = branches
        #: Factors of the time, by dataset or worker.
        self.factors = factors or {}

    def process(self, events: Any) -> dict[str, Any]:
        masses = hist.Hist.new.Reg(50, 0, 20, name="mass").Double()
        total = sum(events[f"x{number}"] ** 2 for number in range(self.branches))
        masses.fill(mass=ak.to_numpy(total))
        dataset = events.metadata["dataset"]
        factor = self.factors.get(dataset, self.factors.get(str(get_worker().name), 1.0))
        time.sleep(self.per_chunk + self.seconds * factor * len(events) / 1e6)
        return {dataset: {"mass": masses, "events": len(events)}}

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


@illness(cause("chunks-too-small"))
def corrections_for_each_chunk(run: Run) -> None:
    """3 datasets of 2 files of 40 000 events on 4 workers.

    For each chunk, the processor loads corrections in 0.12 s; 1000 events take 0.1 s. Chunks
    have 1000 events; without the illness, 10 000.
    """
    fileset = datasets(run.data / "corrections", {"DY": 2, "WW": 2, "TT": 2}, 40_000)
    with run.recorded() as client:
        chunksize = 1000 if run.ill else 10_000
        analyze(client, fileset, Masses(100.0, per_chunk=0.12), chunksize)


@illness(cause("chunks-too-large long-tail"))
def five_chunks_for_four_workers(run: Run) -> None:
    """5 files of 100 000 events of two datasets, on 4 workers; 100 000 events take 5 s.

    A chunk is a file, so that one worker has two of them and the others wait for it. Without
    the illness, a chunk has 10 000 events.
    """
    fileset = datasets(run.data / "five", {"Muon_A": 3, "Muon_B": 2}, 100_000)
    with run.recorded() as client:
        chunksize = 1_000_000 if run.ill else 10_000
        analyze(client, fileset, Masses(50.0, per_chunk=0.01), chunksize)


class FailingDisk(FSSpecSource):
    """A storage with two files on a failing disk, whose requests take longer."""

    def chunks(self, ranges: Any, notifications: Any) -> Any:
        if self._file_path.endswith(("Egamma_03.root", "Tau_01.root")):
            time.sleep(0.9)
        return super().chunks(ranges, notifications)


@illness(cause("slow-file", "Egamma_03.root", "Tau_01.root"))
def two_files_on_failing_disk(run: Run) -> None:
    """12 files of 3 datasets, in 4 chunks of 0.5 s each, on 4 workers.

    Two of the files are on a failing disk: each read of a branch takes 0.9 s. Without the
    illness, all files are alike.
    """
    names = {"Egamma": 5, "Tau": 3, "Jet": 4}
    fileset = datasets(run.data / "disk", names, 40_000)
    with run.recorded() as client:
        options = {"handler": FailingDisk if run.ill else FSSpecSource}
        analyze(client, fileset, Masses(50.0), 10_000, uproot_options=options)


class Triplets(processor.ProcessorABC):
    """Combines three jets; the time depends on the number of combinations."""

    def process(self, events: Any) -> dict[str, Any]:
        jets = events.Jet
        triplets = ak.combinations(jets.pt, 3)
        sums = ak.flatten(triplets["0"] + triplets["1"] + triplets["2"])
        momenta = hist.Hist.new.Reg(50, 0, 600, name="pt").Double()
        momenta.fill(pt=ak.to_numpy(sums))
        time.sleep(0.1 + 8e-6 * len(sums))
        return {events.metadata["dataset"]: momenta}

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def write_jets(path: Path, events: int, jets: int) -> None:
    """Write events with a number of jets."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(jets)
    counts = np.clip(random.poisson(jets, events), 1, None)
    momenta = random.exponential(50, (4, counts.sum())).astype("f4")
    names = ("pt", "eta", "phi", "mass")
    with uproot.recreate(path) as file:
        jet = ak.zip(
            {
                name: ak.unflatten(values, counts)
                for name, values in zip(names, momenta, strict=True)
            }
        )
        numbers = np.arange(events, dtype="i8")
        data = {
            "run": np.ones(events, "i4"),
            "luminosityBlock": (numbers // 500).astype("i4"),
            "event": numbers,
            "Jet": jet,
        }
        types = {
            name: array.type if name == "Jet" else array.dtype for name, array in data.items()
        }
        tree = file.mktree("Events", types)
        for begin in range(0, events, 5000):
            tree.extend({name: array[begin : begin + 5000] for name, array in data.items()})


def jet_datasets(folder: Path, files: dict[str, int], events: int, **jets: int) -> Fileset:
    """Return datasets whose events have 4 jets on average, or another number."""
    fileset = {}
    for dataset, count in files.items():
        template = folder / f"{dataset}.root"
        write_jets(template, events, jets.get(dataset, 4))
        names = (f"{dataset}_{number}" for number in range(count))
        fileset[dataset] = copies(template, *names)
    return fileset


@illness(cause("expensive-dataset", "TTTT"), saves=None)
def dataset_with_many_jets(run: Run) -> None:
    """11 files of 3 datasets, in chunks of 5000 events, on 4 workers, which combine jets.

    Events of one dataset have 6 jets instead of 4, and many times as many combinations. Without
    the illness, they have 4.
    """
    form = "ill" if run.ill else "healthy"
    jets = {"TTTT": 6} if run.ill else {}
    files = {"QCD": 4, "TTTT": 3, "ZJets": 4}
    fileset = jet_datasets(run.data / "jets" / form, files, 20_000, **jets)
    with run.recorded() as client:
        analyze(client, fileset, Triplets(), 5000, schema=NanoAODSchema)


@illness(cause("unused-branches"))
def preload_of_everything(run: Run) -> None:
    """12 files of 40 000 events with 120 branches, in chunks of 0.8 s, on 4 workers.

    The fileset asks to preload all branches, of which the processor uses two. Without the
    illness, it asks for these two.
    """
    names = {"SingleMuon": 6, "DoubleMuon": 6}
    plain = datasets(run.data / "preload", names, 40_000, 120, basket=500)
    preload = [f"x{number}" for number in range(120 if run.ill else 2)]
    fileset = {name: {"files": files, "preload": preload} for name, files in plain.items()}
    with run.recorded() as client:
        analyze(client, fileset, Masses(40.0), 20_000)


@illness(cause("compression"))
def files_for_the_archive(run: Run) -> None:
    """2 datasets of 5 files of 240 000 events, in chunks of 0.5 s, on 4 workers.

    The files were compressed by LZMA; without the illness, by LZ4.
    """
    form = "lzma" if run.ill else "lz4"
    compression = uproot.LZMA(1) if run.ill else uproot.LZ4(1)
    fileset = datasets(
        *(run.data / "archive" / form, {"BTag": 5, "HT": 5}, 240_000, 16),
        basket=60_000,
        compression=compression,
    )
    with run.recorded() as client:
        analyze(client, fileset, Masses(8.0, branches=16), 60_000)


@illness(cause("repeated-baskets"))
def one_basket_for_each_file(run: Run) -> None:
    """4 files of 300 000 events of two datasets, in chunks of 15 000 (0.3 s), on 4 workers.

    A branch is written in one basket, which every chunk reads; without the illness, in baskets
    of 15 000 events. Chunks are the same.
    """
    basket = 300_000 if run.ill else 15_000
    folder = run.data / "baskets" / str(basket)
    fileset = datasets(folder, {"MET": 2, "Photon": 2}, 300_000, 16, basket=basket)
    with run.recorded() as client:
        analyze(client, fileset, Masses(20.0, branches=16), 15_000)


class Handshake(FSSpecSource):
    """A storage that checks the certificate of the user for each file that is opened."""

    def _open(self) -> None:
        time.sleep(0.25)
        super()._open()


@illness(cause("file-opening"))
def handshake_for_each_file(run: Run) -> None:
    """60 small files of three datasets, each a chunk of 0.4 s, on 4 workers.

    To open a file takes 0.25 s, because a certificate is checked; without the illness, nothing.
    """
    fileset = datasets(run.data / "small", {"ZH": 20, "WH": 20, "GGH": 20}, 4000)
    with run.recorded() as client:
        options = {"handler": Handshake if run.ill else FSSpecSource}
        analyze(client, fileset, Masses(100.0), 10_000, uproot_options=options)


def serve(folder: Path, host: str, delay: float) -> ThreadingHTTPServer:
    """Start a server of a folder that waits before it answers a request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, with_body: bool) -> None:
            time.sleep(delay)
            content = (folder / self.path.strip("/")).read_bytes()
            size, asked = len(content), self.headers.get("Range", "")
            if asked.startswith("bytes="):
                first, _, last = asked.removeprefix("bytes=").partition("-")
                begin, end = int(first), min(int(last or size - 1), size - 1)
                content = content[begin : end + 1]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
            else:
                self.send_response(200)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@illness(cause("slow-storage", "127.0.0.9"))
def files_at_a_far_site(run: Run) -> None:
    """2 datasets of 6 files, in 2 chunks of 1 s each, on 4 workers, read from two servers.

    One of the servers, which has half of the files of each dataset, waits for 0.25 s before it
    answers. Without the illness, neither does.
    """
    folder = run.data / "sites"
    plain = datasets(folder, {"Higgs": 6, "Top": 6}, 40_000)
    near = serve(folder, "127.0.0.8", 0.0)
    far = serve(folder, "127.0.0.9", 0.25 if run.ill else 0.0)
    fileset = {
        dataset: [
            f"http://{server.server_address[0]}:{server.server_port}/{Path(file).name}"
            for server, file in zip([near, far] * 3, files, strict=True)
        ]
        for dataset, files in plain.items()
    }
    with run.recorded() as client:
        analyze(client, fileset, Masses(50.0), 20_000)
    near.shutdown()
    far.shutdown()


@illness(
    cause(
        "skipped-files", "Charm_01.root", "Charm_04.root", "Strange_02.root", "Charm", "Strange"
    ),
    saves=None,
)
def files_lost_at_the_site(run: Run) -> None:
    """2 datasets of 6 files, in 4 chunks of 0.6 s each, on 4 workers; bad files are skipped.

    Two files were deleted, and one has no tree, because its job had ended early. Without the
    illness, all files are good.
    """
    folder = run.data / "lost"
    fileset = datasets(folder, {"Charm": 6, "Strange": 6}, 40_000)
    if run.ill:
        broken = folder / "broken"
        empty = broken / "Strange_02.root"
        broken.mkdir(exist_ok=True)
        with uproot.recreate(empty) as file:
            file["job"] = np.histogram(np.zeros(1))
        fileset["Charm"][1] = str(broken / "Charm_01.root")
        fileset["Charm"][4] = str(broken / "Charm_04.root")
        fileset["Strange"][2] = str(empty)
    bad = (OSError, uproot.exceptions.KeyInFileError)
    with run.recorded() as client:
        analyze(client, fileset, Masses(60.0), 10_000, skipbadfiles=bad)


def plot(seconds: float) -> None:
    """Draw plots of a region."""
    time.sleep(seconds)


@illness(cause("client-gaps"), cause("slow-worker", "1"))
def regions_with_plots_between(run: Run) -> None:
    """Three regions, one after the other: 4 files in 4 chunks of 0.5 s each, on 4 workers.

    Between them, the program draws plots for 1.8 s, and worker 1 takes 2.5 times as long.
    Without the illnesses, plots are drawn by another thread, and all workers are alike.
    """
    fileset = datasets(run.data / "regions", {"Signal": 2, "Fakes": 2}, 40_000)
    factors: dict[str, float] = {"1": 2.5} if run.ill else {}
    with run.recorded() as client:
        for region in range(3):
            analyze(client, fileset, Masses(50.0, factors=factors), 10_000)
            if region < 2 and run.ill:
                plot(1.8)
            elif region < 2:
                threading.Thread(target=plot, args=(1.8,), daemon=True).start()


class Dijets(processor.ProcessorABC):
    """Fills the momenta of the two leading jets."""

    def process(self, events: Any) -> dict[str, Any]:
        good = events[ak.num(events.Jet) >= 2]
        momenta = hist.Hist.new.Reg(50, 0, 400, name="pt").Double()
        momenta.fill(pt=ak.to_numpy(good.Jet[:, 0].pt + good.Jet[:, 1].pt))
        time.sleep(0.5)
        return {events.metadata["dataset"]: momenta}

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


@illness()
def dijets_of_two_datasets(run: Run) -> None:
    """Control: 2 datasets of 6 files, in chunks of 5000 events (0.5 s), on 4 workers."""
    fileset = jet_datasets(run.data / "dijets", {"QCD": 6, "Data": 6}, 25_000)
    with run.recorded() as client:
        analyze(client, fileset, Dijets(), 5000, schema=NanoAODSchema)
