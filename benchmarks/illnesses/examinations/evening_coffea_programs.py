"""Evening examination of coffea: a dimuon analysis, most of whose files are on servers.

They were written by an author who had read neither the rules nor their tests, who knew the ids
of findings and the other programs. All run a processor with coffea's `DaskExecutor` on ROOT
files; a chunk mostly sleeps. Servers are those of ``independent_coffea_programs``.
"""

from __future__ import annotations

import os
import time
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import awkward as ak
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from final_coffea_programs import LZ4, about, at_url, shared
from illness import Run, cause, illness
from independent_coffea_programs import Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distributed import Client

Fileset = dict[str, dict[str, Any]]

MUON = ak.types.from_datashape(
    "var * {pt: float32, eta: float32, charge: int32}", highlevel=False
)

#: Branches that the analysis uses.
USED = ("nMuon", "Muon_pt", "Muon_eta", "Muon_charge", "genWeight")


# -- files -----------------------------------------------------------------------------------


def write_ntuple(
    path: Path,
    events: int = 12_000,
    cluster: int = 1_500,
    *,
    pdf_weights: int = 0,
    tree: str = "Events",
    compression: Any = LZ4,
) -> None:
    """Write muons and weights in clusters of events, unless the file is there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(zlib.crc32(path.name.encode()) + 1)
    types = {"Muon": MUON, "genWeight": "f4"}
    if pdf_weights:
        types["LHEPdfWeight"] = "var * float32"
    partly = path.with_suffix(f".{os.getpid()}")
    with uproot.recreate(partly, compression=compression) as file:
        output = file.mktree(tree, types)
        for first in range(0, events, cluster):
            size = min(cluster, events - first)
            counts = random.poisson(2.2, size)
            number = counts.sum()
            muons = {
                "pt": random.exponential(25, number).astype("f4"),
                "eta": random.normal(0, 1.5, number).astype("f4"),
                "charge": random.choice(np.array([-1, 1], dtype="i4"), number),
            }
            values = {"Muon": ak.unflatten(ak.zip(muons), counts)}
            values["genWeight"] = random.normal(1, 0.1, size).astype("f4")
            if pdf_weights:
                weights = random.normal(1, 0.02, size * pdf_weights).astype("f4")
                values["LHEPdfWeight"] = ak.unflatten(weights, np.full(size, pdf_weights))
            output.extend(values)
    partly.rename(path)


def write_ntuples(
    folder: Path, counts: dict[str, int], *form: Any, tree: str = "Events", **more: Any
) -> Fileset:
    """Write numbers of files for datasets; return the fileset."""
    fileset: Fileset = {}
    for dataset, count in counts.items():
        paths = [folder / f"{dataset}_{number}.root" for number in range(count)]
        for path in paths:
            write_ntuple(path, *form, tree=tree, **more)
        fileset[dataset] = {"files": {str(path): tree for path in paths}}
    return fileset


# -- the analysis ----------------------------------------------------------------------------


class Dimuons(processor.ProcessorABC):
    """Fit the vertices of pairs of muons, which takes most of the time, and fill a histogram.

    Parameters
    ----------
    event_seconds : float
    slower : dict, optional
        Factors of the time of datasets.
    """

    def __init__(self, event_seconds: float, slower: dict[str, float] | None = None) -> None:
        self.event_seconds, self.slower = event_seconds, slower or {}

    def process(self, events: Any) -> dict[str, Any]:
        facts = events.metadata
        momentum, eta, charge = (events[f"Muon_{name}"] for name in ("pt", "eta", "charge"))
        muons = ak.zip({"pt": momentum, "eta": eta, "charge": charge})
        one, two = ak.unzip(ak.combinations(muons[muons.pt > 5], 2))
        product = 2 * one.pt * two.pt * (np.cosh(one.eta - two.eta) + 1)
        masses = np.sqrt(product)[one.charge != two.charge]
        name = f"{Path(facts['filename']).name}-{facts['entrystart']}"
        self.load_kernels(name)
        factor = self.slower.get(facts["dataset"], 1.0)
        time.sleep(about(len(events) * self.event_seconds * factor, name))
        # As arrays are read when they are used, these are read after the fits.
        weights = np.asarray(events["genWeight"])
        values = ak.to_numpy(ak.flatten(ak.broadcast_arrays(masses, weights)[0]))
        counts = np.histogram(values, bins=80, range=(0, 160))[0]
        return {facts["dataset"]: {"mass": counts, "weights": float(weights.sum())}}

    def load_kernels(self, name: str) -> None:
        """Prepare the fits of a chunk."""

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def fit(
    client: Client,
    fileset: Fileset,
    dimuons: Dimuons,
    chunksize: int,
    *,
    tree: str = "Events",
    fan_in: int = 8,
    **settings: Any,
) -> dict[str, Any]:
    """Run the processor; `settings` are those of the runner."""
    executor = processor.DaskExecutor(client=client, status=False, treereduction=fan_in)
    form = {"schema": BaseSchema, "chunksize": chunksize, "metadata_cache": {}}
    return processor.Runner(executor, **form, **settings)(fileset, dimuons, treename=tree)


def warm(run: Run, client: Client) -> None:
    """Analyze a small file in all threads, so that the recording begins with warm workers."""
    path = run.data / "evening_warm" / "warm.root"
    write_ntuple(path, 20_000, 500)
    fit(client, {"Warm": {"files": {str(path): "Events"}}}, Dimuons(2e-4), 500)


# -- reading ---------------------------------------------------------------------------------


def answer_at_pace(self: Server, status: int, body: bytes, *rest: Any) -> None:
    """Send an answer at the speed that the server allows for one request."""
    time.sleep(len(body) / self.pace)
    Server._answer(self, status, body, *rest)


@illness(cause("unused-branches"))
def pdf_weights_kept_in_the_preload(run: Run) -> None:
    """14 files of two signals on 4 workers with 3 threads, at a server of 0.8 MB/s for each
    request; `preload` still has the 60 PDF weights of an event, which are not used any more, or
    has the used branches only."""
    folder = run.data / "evening_pdf"
    fileset = write_ntuples(folder, {"ggH": 8, "VBFH": 6}, pdf_weights=60)
    weights = ["nLHEPdfWeight", "LHEPdfWeight"] if run.ill else []
    for spec in fileset.values():
        spec["preload"] = [*USED, *weights]
    with (
        serving(folder, _answer=answer_at_pace, pace=8e5) as url,
        run.recorded(4, 3, prepare=partial(warm, run)) as client,
    ):
        fit(client, at_url(fileset, url), Dimuons(7e-4), 1_500)


@illness(cause("repeated-baskets"))
def chunks_across_clusters(run: Run) -> None:
    """15 files with clusters of 2,400 events on 3 workers with 2 threads, behind a link of
    1.2 MB/s for all readers; chunks of 1,000 events begin anywhere in a cluster, or coffea's
    `align_clusters` makes them fit."""
    folder = run.data / "evening_clusters"
    fileset = write_ntuples(folder, {"DYto2Mu": 9, "TTto2L": 6}, 12_000, 2_400)
    with (
        shared(folder, speed=1.2e6) as url,
        run.recorded(3, 2, prepare=partial(warm, run)) as client,
    ):
        dimuons = Dimuons(3.5e-4)
        fit(client, at_url(fileset, url), dimuons, 1_000, align_clusters=not run.ill)


def fetch_blocks(self: Server) -> None:
    """Fetch the blocks of a request from the origin, unless they were fetched before."""
    first, last = self.headers["Range"].removeprefix("bytes=").split("-")
    blocks: Iterable[int] = range(int(first) // 4096, int(last or first) // 4096 + 1)
    names = {f"{self.path}:{block}" for block in blocks} - self.seen.keys()
    self.seen.update(dict.fromkeys(names))
    time.sleep(self.origin_seconds * len(names))
    Server.do_GET(self)


@illness(cause("slow-storage", "127.0.0.5"))
def cache_that_was_purged(run: Run) -> None:
    """13 files on 2 workers with 4 threads; the 6 files of one dataset are read through a cache
    on another host, which was purged and gets each block of 4 kB from its origin in 0.1 s, or
    has all of them."""
    folder = run.data / "evening"
    fileset = write_ntuples(folder, {"Muon2022": 7, "DYto2Tau": 6})
    facts = {"do_GET": fetch_blocks, "origin_seconds": 0.1 if run.ill else 0.0}
    with (
        serving(folder) as near,
        serving(folder, "127.0.0.5", **facts) as cache,
        run.recorded(2, 4, prepare=partial(warm, run)) as client,
    ):
        files = at_url(fileset, near) | {"DYto2Tau": at_url(fileset, cache)["DYto2Tau"]}
        fit(client, files, Dimuons(5.5e-4), 1_500)


def redirect(self: Server) -> None:
    """Redirect the readers of one file to another site."""
    if Path(self.path).name != self.away:
        {"GET": Server.do_GET, "HEAD": Server.do_HEAD}[self.command](self)
        return
    self.send_response(302)
    self.send_header("Location", f"{self.site}{self.path}")
    self.send_header("Content-Length", "0")
    self.end_headers()


@illness(cause("slow-file", "Muon2023_9.root"))
def replica_at_a_far_site(run: Run) -> None:
    """13 files on 5 workers with 2 threads; the server has lost its copy of one file and
    redirects its readers to a far site that answers in 0.8 s, or in 1 ms."""
    folder = run.data / "evening"
    fileset = write_ntuples(folder, {"Muon2023": 10, "DYto2Tau": 3})
    with serving(folder, "127.0.0.8", seconds=0.8 if run.ill else 0.001) as site:
        facts = {"do_GET": redirect, "do_HEAD": redirect, "away": "Muon2023_9.root"}
        with (
            serving(folder, **facts, site=site) as url,
            run.recorded(5, 2, prepare=partial(warm, run)) as client,
        ):
            fit(client, at_url(fileset, url), Dimuons(7e-4), 1_500)


@illness(cause("file-opening"))
def tree_in_nested_folders(run: Run) -> None:
    """90 files of 1,500 events, each of which is one chunk, on 3 workers with 2 threads, at a
    server with a latency of 20 ms; the tree is inside five nested folders of a framework, each
    of which takes more requests when a file is opened, or at the top of the file."""
    tree = "job/output/selection/muons/nominal/Events" if run.ill else "Events"
    folder = run.data / f"evening_small_{run.ill}"
    fileset = write_ntuples(folder, {"Muon2022": 52, "DYto2Mu": 38}, 1_500, tree=tree)
    with (
        serving(folder, seconds=0.02) as url,
        run.recorded(3, 2, prepare=partial(warm, run)) as client,
    ):
        # The name of the tree is that of the runner.
        files = {name: list(spec["files"]) for name, spec in at_url(fileset, url).items()}
        fit(client, files, Dimuons(5e-4), 1_500, tree=tree)


# -- chunks and workers ----------------------------------------------------------------------


@illness(cause("chunks-too-large long-tail"))
def clusters_of_a_whole_file(run: Run) -> None:
    """10 files of 12,000 events on 4 workers with 2 threads, in chunks of 1,000 events that are
    aligned to clusters, which have 1,000 events, or the whole file after a merge."""
    cluster = 12_000 if run.ill else 1_000
    folder = run.data / f"evening_clusters_{cluster}"
    fileset = write_ntuples(folder, {"Muon2022": 6, "TTto2L": 4}, 12_000, cluster)
    with run.recorded(4, 2, prepare=partial(warm, run)) as client:
        fit(client, fileset, Dimuons(6e-4), 1_000, align_clusters=True)


def places_of_weights(fileset: Fileset) -> frozenset[tuple[str, int]]:
    """Return the name of the file and the first byte of some baskets of weights."""
    places = set()
    for path in (Path(path) for spec in fileset.values() for path in spec["files"]):
        with uproot.open(path) as file:
            branch = file["Events"]["genWeight"]
            seeks = branch.member("fBasketSeek")[: branch.num_baskets]
        names = [(path.name, int(seek)) for seek in seeks]
        places.update(name for name in names if zlib.crc32(repr(name).encode()) % 100 < 45)
    return frozenset(places)


def refuse(self: Server) -> None:
    """Refuse the first request for some parts of files."""
    first = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0]
    place = (Path(self.path).name, int(first))
    if place in self.refused and place not in self.seen:
        self.seen[place] = None
        self.send_error(503)
    else:
        Server.do_GET(self)


@illness(cause("retries"))
def reads_refused_after_the_fit(run: Run) -> None:
    """12 files on 3 workers with 3 threads; weights are read after the fits of a chunk, which
    the server refuses once with status 503 in nearly half of the chunks, or never."""
    folder = run.data / "evening"
    fileset = write_ntuples(folder, {"Muon2022": 6, "DYto2Tau": 6})
    refused = places_of_weights(fileset) if run.ill else frozenset()
    with (
        serving(folder, do_GET=refuse, refused=refused) as url,
        run.recorded(3, 3, prepare=partial(warm, run)) as client,
    ):
        fit(client, at_url(fileset, url), Dimuons(6e-4), 1_500)


class Compiled(Dimuons):
    """Compile the kernels of the fits, unless they are in the cache of the worker."""

    compile_seconds = 1.5

    def load_kernels(self, name: str) -> None:
        kernels = Path(os.environ["KERNEL_CACHE"]) / "kernels"
        if not kernels.exists():
            time.sleep(about(self.compile_seconds, "compile", name))
            with suppress(OSError):
                kernels.touch()


def set_up_cache(folder: str | None) -> None:
    """Use a folder with kernels as this worker's cache, or one that cannot be written."""
    os.environ["KERNEL_CACHE"] = folder or "/proc/cache"
    if folder:
        Path(folder).mkdir(exist_ok=True)
        (Path(folder) / "kernels").touch()


@illness(cause("slow-worker", "2"), cause("client-gaps"))
def unwritable_cache_and_fits_of_backgrounds(run: Run) -> None:
    """Three eras of 5 files each on 3 workers with 2 threads; worker 2 cannot write its cache
    of kernels and compiles them in each chunk for 1.5 s, and the client fits the background of
    an era for 2 s before it starts the next one; or neither."""
    eras = ("Muon2022", "Muon2023", "Muon2024")
    fileset = write_ntuples(run.data / "evening", dict.fromkeys(eras, 5))
    folder = str(Path("kernels").absolute())

    def prepare(client: Client) -> None:
        warm(run, client)
        client.run(set_up_cache, folder)
        if run.ill:
            client.run(set_up_cache, None, workers=[run.address(2)])

    with run.recorded(3, 2, prepare=prepare) as client:
        for era in eras:
            fit(client, {era: fileset[era]}, Compiled(4e-4), 1_500)
            if run.ill and era != eras[-1]:
                time.sleep(2.0)


# -- controls --------------------------------------------------------------------------------


@illness()
def control_tree_in_a_folder(run: Run) -> None:
    """13 files at a server with a latency of 2 ms on 3 workers with 3 threads, whose tree is in
    a folder, in chunks of 1,200 events that are aligned to clusters of 600."""
    folder = run.data / "evening_nominal"
    names = {"ZZto4L": 5, "WZto3LNu": 8}
    fileset = write_ntuples(folder, names, 12_000, 600, tree="nominal/Events")
    with (
        serving(folder, "127.0.0.3", seconds=0.002) as url,
        run.recorded(3, 3, prepare=partial(warm, run)) as client,
    ):
        # The name of the tree is that of the runner.
        files = {name: list(spec["files"]) for name, spec in at_url(fileset, url).items()}
        fit(
            client,
            files,
            Dimuons(6e-4),
            1_200,
            tree="nominal/Events",
            align_clusters=True,
        )


@illness()
def control_files_in_zstd(run: Run) -> None:
    """Local files in Zstandard of 9,000, 12,000 and 15,000 events on 2 workers with 4 threads;
    an event of one dataset takes a third longer, and results are merged three at a time."""
    folder = run.data / "evening_zstd"
    fileset: Fileset = {}
    for dataset, count, events in (("Muon", 6, 9_000), ("DY", 4, 12_000), ("TT", 3, 15_000)):
        form = {"compression": uproot.ZSTD(3)}
        fileset |= write_ntuples(folder, {dataset: count}, events, 1_500, **form)
    with run.recorded(2, 4, prepare=partial(warm, run)) as client:
        dimuons = Dimuons(5.5e-4, {"TT": 1.33})
        fit(client, fileset, dimuons, 1_500, fan_in=3, savemetrics=True)
