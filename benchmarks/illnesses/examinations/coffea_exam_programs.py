"""Programs of coffea to examine the findings with; the author had not read the rules.

All read ROOT files: most with a runner of coffea, some with plain futures. A chunk mostly
waits, as for a kernel that needs no interpreter; durations vary by 30 % around their mean.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import zlib
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import awkward as ak
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem
from illness import Run, cause, illness

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Client, Future, Worker

MEGABYTE = 1_000_000
LZ4 = uproot.LZ4(1)
COLUMNS = ("Muon_pt", "Muon_eta", "MET_pt", "genWeight")

#: Branches with many values for each event.
CANDIDATES = tuple(f"PFCand_d{number}" for number in range(8))

#: Files with a step that needs much memory.
LARGE = ("TTJets_4", "TTJets_6", "TTJets_9", "TTJets_12", "TTJets_14")

#: The factor by which tasks of this process get slower in each second, and since when.
THROTTLE = {"per_second": 0.0, "since": 0.0, "most": 4.0}


def write_file(
    path: Path,
    events: int,
    *,
    muons: float = 1.5,
    extras: int = 0,
    candidates: float = 0.0,
    basket_events: int = 1_000,
    compression: Any = LZ4,
) -> None:
    """Write a file of muons, weights and maybe candidates, unless it is there."""
    if path.exists():
        return
    random = np.random.default_rng(zlib.crc32(path.name.encode()))
    path.parent.mkdir(parents=True, exist_ok=True)
    partly = path.with_suffix(".part")
    flat = ["MET_pt", "genWeight", *(f"PSWeight_{number}" for number in range(extras))]
    jagged = {"Muon_pt": muons, "Muon_eta": muons}
    jagged |= {name: candidates for name in CANDIDATES if candidates}
    types = {**dict.fromkeys(flat, "f4"), **dict.fromkeys(jagged, "var * float32")}
    with uproot.recreate(partly, compression=compression) as file:
        tree = file.mktree("Events", types)
        for first in range(0, events, basket_events):
            size = min(basket_events, events - first)
            values = {name: random.exponential(1, size).astype("f4") for name in flat}
            for name, mean in jagged.items():
                counts = random.poisson(mean, size)
                numbers = random.exponential(30, counts.sum()).astype("f4")
                values[name] = ak.unflatten(numbers, counts)
            tree.extend(values)
    partly.rename(path)


def write_fileset(
    folder: Path, counts: dict[str, int], events: int = 12_000, **form: Any
) -> dict[str, dict]:
    """Write files of datasets; return the fileset."""
    fileset = {}
    for dataset, count in counts.items():
        paths = [folder / f"{dataset}_{number}.root" for number in range(count)]
        for path in paths:
            write_file(path, events, **form)
        fileset[dataset] = {"files": {str(path): "Events" for path in paths}}
    return fileset


def steps_of(fileset: dict[str, dict], size: int) -> list[tuple[str, int, int]]:
    """Return the path, the first and the last event of each step of files of 12,000 events."""
    paths = [path for spec in fileset.values() for path in spec["files"]]
    return [(path, first, first + size) for path in paths for first in range(0, 12_000, size)]


def vary(seconds: float, *key: Any) -> float:
    """Return a duration within 30 % of a mean, the same for the same key."""
    return seconds * (0.7 + 0.6 * zlib.crc32(repr(key).encode()) / 2**32)


def throttle() -> float:
    grown = 1.0 + THROTTLE["per_second"] * (time.time() - THROTTLE["since"])
    return min(grown, THROTTLE["most"])


def is_first(folder: str, name: str) -> bool:
    """Return whether this is the first call with a name on any worker."""
    try:
        os.close(os.open(Path(folder) / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def identity(value: Any) -> Any:
    return value


class Selection(processor.ProcessorABC):
    """Read columns and fill histograms, in a fixed time and a time for each event."""

    def __init__(
        self,
        event_seconds: float,
        fixed_seconds: float = 0.0,
        columns: tuple[str, ...] = COLUMNS,
        fill: Callable[[np.ndarray], Any] = identity,
    ) -> None:
        self.event_seconds, self.fixed_seconds = event_seconds, fixed_seconds
        self.columns, self.fill = columns, fill

    def process(self, events: Any) -> dict:
        facts = events.metadata
        columns = {name: ak.to_numpy(ak.ravel(events[name])) for name in self.columns}
        seconds = self.fixed_seconds + len(events) * self.event_seconds
        name = Path(facts["filename"]).name
        self.work(vary(seconds, name, facts["entrystart"]) * throttle(), columns, name)
        counts = np.histogram(columns["Muon_pt"], bins=100, range=(0, 200))[0]
        return {facts["dataset"]: self.fill(counts)}

    def work(self, seconds: float, columns: dict[str, np.ndarray], name: str) -> None:
        time.sleep(seconds)


def analyze(
    client: Client,
    fileset: dict[str, dict],
    selection: Selection,
    chunksize: int,
    skipbadfiles: bool = False,
    **settings: Any,
) -> dict:
    """Run coffea; `settings` are those of the executor."""
    executor = processor.DaskExecutor(client=client, status=False, **settings)
    runner = processor.Runner(
        executor, schema=BaseSchema, chunksize=chunksize, skipbadfiles=skipbadfiles
    )
    return runner(fileset, selection, treename="Events")


def read_step(step: tuple[str, int, int]) -> np.ndarray:
    """Read a step of a file without coffea; return a histogram."""
    path, first, last = step
    with uproot.open({path: "Events"}) as tree:
        arrays = tree.arrays(COLUMNS, entry_start=first, entry_stop=last)
    return np.histogram(ak.to_numpy(ak.flatten(arrays["Muon_pt"])), bins=100)[0]


def analyze_step(step: tuple[str, int, int], seconds: float) -> np.ndarray:
    counts = read_step(step)
    time.sleep(vary(seconds, Path(step[0]).name, step[1]))
    return counts


def add(parts: list[np.ndarray]) -> np.ndarray:
    time.sleep(0.03)
    return np.sum(parts, axis=0)


def merged(client: Client, parts: list[Future], fan_in: int = 10) -> Future:
    """Merge in a tree."""
    while len(parts) > 1:
        groups = [parts[first : first + fan_in] for first in range(0, len(parts), fan_in)]
        parts = [client.submit(add, group) for group in groups]
    return parts[0]


def ready(
    fileset: dict[str, dict], then: Callable[[Client], Any] = identity
) -> Callable[[Client], None]:
    """Return a function that lets workers read a file near a fileset, and does more."""
    folder = Path(next(iter(next(iter(fileset.values()))["files"]))).parent
    write_file(folder / "warm" / "up.root", 4_000)
    path = str(folder / "warm" / "up.root")

    def prepare(client: Client) -> None:
        client.run(read_step, (path, 0, 100))
        analyze(client, {"Warm": [path]}, Selection(0.0), 1_000)
        then(client)

    return prepare


# -- files and storage -----------------------------------------------------------------------


def slow_reads(
    part: str, seconds: float, bytes_per_second: float = 1e9, opening: float = 0.0
) -> None:
    """Let this process read and open local files whose path has a part slowly."""

    def cat_file(
        self: LocalFileSystem, path: str, start: Any = None, end: Any = None, **options: Any
    ) -> bytes:
        content = AbstractFileSystem.cat_file(self, path, start, end, **options)
        if part in path:
            wait_seconds = seconds + len(content) / bytes_per_second
            time.sleep(vary(wait_seconds + (opening if start == 0 else 0.0), path, end))
        return content

    LocalFileSystem.cat_file = cat_file


@illness(cause("slow-file", "WW_2.root"))
def file_on_damaged_sectors(run: Run) -> None:
    """12 local files on 5 workers; each read of one file takes 0.7 s more, on every worker."""
    fileset = write_fileset(run.data / "exam", {"WW": 5, "TTJets": 7})
    seconds = 0.7 if run.ill else 0.0
    prepare = ready(fileset, lambda client: client.run(slow_reads, "WW_2", seconds))
    with run.recorded(workers=5, prepare=prepare) as client:
        analyze(client, fileset, Selection(3.5e-4), 1_500, treereduction=10)


@illness(cause("slow-storage slow-host", "127.0.0.2"))
def mount_with_a_bad_link(run: Run) -> None:
    """14 files on three hosts with two workers; the mount of one host delivers 120 kB/s."""
    fileset = write_fileset(run.data / "exam_wide", {"WZ": 6, "DYJets": 8}, extras=4)
    hosts = tuple(f"127.0.0.{number}" for number in (1, 1, 2, 2, 3, 3))

    def slow_down(client: Client) -> None:
        workers = [run.address(2), run.address(3)] if run.ill else []
        client.run(slow_reads, "exam_wide", 0.03, 120_000, workers=workers)

    with run.recorded(hosts=hosts, prepare=ready(fileset, slow_down)) as client:
        analyze(client, fileset, Selection(4e-4), 1_500, treereduction=8)


@illness(cause("file-opening chunks-too-small"))
def outputs_of_batch_jobs(run: Run) -> None:
    """36,000 events in 200 files, or in 4, on 4 workers; it takes 0.12 s to open a file."""
    count, events = (200, 180) if run.ill else (4, 9_000)
    fileset = write_fileset(run.data / f"exam_{count}_files", {"QCD": count}, events)
    slow = partial(slow_reads, "_files/QCD", 0.0, opening=0.12)
    with run.recorded(prepare=ready(fileset, lambda client: client.run(slow))) as client:
        analyze(client, fileset, Selection(1.5e-3), 1_000)


@illness(cause("compression"))
def archive_in_lzma(run: Run) -> None:
    """Six files of 240,000 events with 64 columns on 2 workers, in LZMA or in LZ4."""
    folder = run.data / f"exam_{'lzma' if run.ill else 'lz4'}"
    columns = (*COLUMNS, *(f"PSWeight_{number}" for number in range(60)))
    compression = uproot.LZMA(5) if run.ill else LZ4
    form = {"extras": 60, "basket_events": 12_000, "compression": compression}
    fileset = write_fileset(folder, {"Higgs": 1}, 240_000, **form)
    for path in (folder / f"Higgs_{number}.root" for number in range(1, 6)):
        if not path.exists():
            path.hardlink_to(folder / "Higgs_0.root")
    fileset = write_fileset(folder, {"Higgs": 6})
    with run.recorded(workers=2, prepare=ready(fileset)) as client:
        analyze(client, fileset, Selection(1e-5, columns=columns), 24_000)


@illness(cause("unused-branches"))
def preloaded_candidates(run: Run) -> None:
    """16 files at 3 MB/s; 8 branches of candidates are preloaded and not used, or are not."""
    folder = run.data / "exam_candidates"
    fileset = write_fileset(folder, {"Zprime": 6, "TTJets": 10}, candidates=30.0)
    branches = [*COLUMNS, *CANDIDATES] if run.ill else COLUMNS
    for spec in fileset.values():
        spec["preload"] = [*branches, *(f"n{name}" for name in branches)]
    slow = partial(slow_reads, "exam_candidates", 0.0, 3 * MEGABYTE)
    prepare = ready(fileset, lambda client: client.run(slow))
    with run.recorded(workers=3, threads=3, prepare=prepare) as client:
        analyze(client, fileset, Selection(5.5e-4), 2_000)


@illness(cause("skipped-files", "Run2018C_1.root", "Run2018C_3.root"), saves=None)
def truncated_files(run: Run) -> None:
    """14 files on 4 workers with `skipbadfiles`; two files of one dataset end after 60 kB."""
    folder = run.data / f"exam_{'cut' if run.ill else 'whole'}"
    fileset = write_fileset(folder, {"Run2018B": 6, "Run2018C": 5, "Run2018D": 3})
    for number in (1, 3) if run.ill else ():
        os.truncate(folder / f"Run2018C_{number}.root", 60_000)
    with run.recorded(workers=4, prepare=ready(fileset)) as client:
        analyze(client, fileset, Selection(5e-4), 1_500, skipbadfiles=True)


@illness(cause("chunks-too-large long-tail"))
def chunksize_of_another_cluster(run: Run) -> None:
    """Three files of 36,000 events on 7 workers, in 9 chunks of 12,000 or 108 of 1,000."""
    fileset = write_fileset(run.data / "exam_large", {"WJets": 1, "ST": 2}, 36_000)
    with run.recorded(workers=7, prepare=ready(fileset)) as client:
        analyze(client, fileset, Selection(7e-4), 12_000 if run.ill else 1_000)


@illness(cause("chunks-too-small short-tasks"))
def corrections_for_few_events(run: Run) -> None:
    """Six files of 12,000 events on 4 workers; chunks of 200 or 1,500 need 0.1 s to prepare."""
    fileset = write_fileset(run.data / "exam", {"WW": 2, "TTJets": 4})
    with run.recorded(workers=4, prepare=ready(fileset)) as client:
        analyze(client, fileset, Selection(7e-4, 0.1), 200 if run.ill else 1_500)


@illness(cause("expensive-dataset", "TTTo4B"), saves=None)
def dataset_with_many_combinations(run: Run) -> None:
    """Three datasets on 6 workers; the events of one have 4 times as many muons."""
    folder = run.data / f"exam_combinations_{run.ill}"
    fileset = write_fileset(folder, {"DYJets": 4})
    fileset |= write_fileset(folder, {"TTTo4B": 3}, muons=6.0 if run.ill else 1.5)
    fileset |= write_fileset(folder, {"WJets": 5})
    with run.recorded(workers=6, prepare=ready(fileset)) as client:
        analyze(client, fileset, Combinations(2.8e-4), 1_500, treereduction=12)


class Combinations(Selection):
    """Combine muons, which takes a time for each muon."""

    def work(self, seconds: float, columns: dict[str, np.ndarray], name: str) -> None:
        seconds *= len(columns["Muon_pt"]) / len(columns["MET_pt"])
        super().work(seconds, columns, name)


class Templates:
    """Histograms of many systematic variations, whose sum takes 45 ms."""

    def __init__(self, counts: np.ndarray) -> None:
        self.counts = counts

    def __add__(self, other: Templates) -> Templates:
        time.sleep(0.045)
        return Templates(self.counts + other.counts)


@illness(cause("low-parallelism long-tail", "reduce", "_reduce"))
def reduction_without_a_tree(run: Run) -> None:
    """128 chunks on 5 workers return templates, merged by one task of 6 s or in a tree of 6."""
    fileset = write_fileset(run.data / "exam", {"TTJets": 16})
    with run.recorded(workers=5, prepare=ready(fileset)) as client:
        selection = Selection(3e-4, fill=Templates)
        analyze(client, fileset, selection, 1_500, treereduction=200 if run.ill else 6)


def limit_network(bytes_per_second: float, dask_worker: Worker) -> None:
    """Let a worker send the results that others fetch one after the other, and slowly."""
    send, tasks, lock = dask_worker.get_data, dask_worker.state.tasks, asyncio.Lock()

    async def get_data(comm: Any, keys: Any, *args: Any, **kwargs: Any) -> Any:
        nbytes = sum(tasks[key].get_nbytes() for key in keys if key in tasks)
        async with lock:
            await asyncio.sleep(nbytes / bytes_per_second)
        return await send(comm, keys, *args, **kwargs)

    dask_worker.handlers["get_data"] = get_data


@illness(cause("transfers", "reduce", "_reduce"))
def histograms_with_fine_bins(run: Run) -> None:
    """96 chunks on 6 workers return 8 MB, or 80 kB, which workers send at 9 MB/s for merges."""
    fileset = write_fileset(run.data / "exam", {"TTJets": 12})
    prepare = ready(fileset, lambda client: client.run(limit_network, 9 * MEGABYTE))
    with run.recorded(workers=6, prepare=prepare) as client:
        fill = partial(np.resize, new_shape=1_000_000 if run.ill else 10_000)
        analyze(client, fileset, Selection(4e-4, fill=fill), 1_500, compression=None)


class PythonLoop(Selection):
    """Loop over events in Python, or in a kernel that needs no interpreter."""

    def __init__(self, seconds: float, is_loop: bool) -> None:
        super().__init__(0.0, seconds)
        self.is_loop = is_loop

    def work(self, seconds: float, columns: dict[str, np.ndarray], name: str) -> None:
        time.sleep(0.4 * seconds)
        begin, total = time.thread_time(), 0.0
        while self.is_loop and time.thread_time() - begin < 0.6 * seconds:
            total += sum(value * value for value in columns["Muon_pt"][:500].tolist())
        if not self.is_loop:
            time.sleep(0.6 * seconds)


@illness(cause("gil", "PythonLoop"))
def loop_over_muons(run: Run) -> None:
    """96 chunks on 2 workers with 3 threads loop for 0.36 s in Python, or without the GIL."""
    fileset = write_fileset(run.data / "exam", {"TTJets": 12})
    with run.recorded(workers=2, threads=3, prepare=ready(fileset)) as client:
        analyze(client, fileset, PythonLoop(0.6, run.ill), 1_500)


@illness(cause("silent-worker", "3"))
def worker_in_a_hung_system_call(run: Run) -> None:
    """140 steps of files on 5 workers with 2 threads; worker 3 stands still from 5 to 16 s."""
    fileset = write_fileset(run.data / "exam", {"WW": 5, "TTJets": 9})
    with run.recorded(workers=5, threads=2, prepare=ready(fileset)) as client:
        pid = run.pid(3)
        if run.ill:
            Timer(5.0, os.kill, [pid, signal.SIGSTOP]).start()
            Timer(16.0, os.kill, [pid, signal.SIGCONT]).start()
        steps = steps_of(fileset, 1_200)
        merged(client, client.map(analyze_step, steps, [0.75] * len(steps))).result()


def unfold_step(step: tuple[str, int, int], seconds: float, folder: str) -> np.ndarray:
    """Analyze a step; the first attempt at some needs more memory than the worker may use."""
    name, first = Path(step[0]).stem, step[1]
    if folder and name in LARGE and first == 6_000 and is_first(folder, name):
        time.sleep(0.6 * seconds)
        response = np.ones(2_500 * MEGABYTE, dtype="u1")
        time.sleep(3.0)
        return response[:100]
    return analyze_step(step, seconds)


@illness(cause("killed-workers"))
def response_matrix_in_memory(run: Run) -> None:
    """128 steps on 4 workers of 1.5 GB; 5 steps take 2.5 GB at the first attempt."""
    fileset = write_fileset(run.data / "exam", {"TTJets": 16})
    folder = Path.cwd() / "attempts"
    folder.mkdir()
    steps = steps_of(fileset, 1_500)
    with run.recorded(workers=4, threads=2, memory="1.5GB", prepare=ready(fileset)) as client:
        marks = str(folder) if run.ill else ""
        parts = [client.submit(unfold_step, step, 0.8, marks, retries=2) for step in steps]
        merged(client, parts, fan_in=16).result()


# -- two illnesses ---------------------------------------------------------------------------


def heat(per_second: float) -> None:
    THROTTLE.update(per_second=per_second, since=time.time())


def fit(counts: np.ndarray) -> float:
    """Fit the templates of a year in the client."""
    time.sleep(3.0)
    return float(np.polyfit(np.arange(len(counts)), counts, 3)[0])


@illness(cause("slow-worker", "4"), cause("client-gaps"))
def years_with_fits_between(run: Run) -> None:
    """Three runs of 84 chunks on 5 workers, fits of 3 s between; worker 4 slows down."""
    fileset = write_fileset(run.data / "exam", {"WW": 7, "TTJets": 7, "WZ": 7})

    def slow_down(client: Client) -> None:
        client.run(heat, 0.4 if run.ill else 0.0, workers=[run.address(4)])

    prepare = ready(fileset, slow_down)
    with run.recorded(workers=5, prepare=prepare) as client, ThreadPoolExecutor(1) as pool:
        for year in ("WW", "TTJets", "WZ"):
            out = analyze(client, {year: fileset[year]}, Selection(3e-4), 1_000)
            if year != "WZ":
                fitted = pool.submit(fit, out[year])
                wait([fitted] if run.ill else [])


class Unstable(Selection):
    """Fail at the end of a chunk of some files, at the first attempt."""

    def __init__(self, event_seconds: float, folder: str) -> None:
        super().__init__(event_seconds)
        self.folder = folder

    def work(self, seconds: float, columns: dict[str, np.ndarray], name: str) -> None:
        super().work(seconds, columns, name)
        if self.folder and name.startswith("DYJets") and is_first(self.folder, name):
            raise OSError(f"[ERROR] Operation expired while reading {name}")


@illness(
    cause("retries", "OSError", "Exception"),
    cause("long-tail chunks-too-large", "EGamma_0.root", "EGamma", "Unstable"),
)
def timeouts_and_a_large_file_last(run: Run) -> None:
    """90 files of 1,000 events on 8 threads, of which 32 fail once; 8,500 events are last."""
    folder = run.data / "exam_thousand"
    fileset = write_fileset(folder, {"DYJets": 32, "WJets": 58}, 1_000)
    large = write_fileset(folder, {"EGamma": 1}, 8_500)
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    with run.recorded(workers=4, threads=2, prepare=ready(fileset)) as client:
        files = {**fileset, **large} if run.ill else {**large, **fileset}
        analyze(client, files, Unstable(1e-3, str(attempts) if run.ill else ""), 100_000)


@illness()
def control_files_of_all_sizes(run: Run) -> None:
    """12 files of three datasets with 6,000 to 30,000 events on 2 workers with 4 threads."""
    folder = run.data / "exam_sizes"
    fileset = write_fileset(folder, {"WW": 4})
    fileset |= write_fileset(folder, {"Tau": 6}, 6_000)
    fileset |= write_fileset(folder, {"TTJets": 2}, 30_000)
    with run.recorded(workers=2, threads=4, prepare=ready(fileset)) as client:
        analyze(client, fileset, Selection(7e-4), 1_500, treereduction=10)


@illness()
def control_steps_with_futures(run: Run) -> None:
    """120 steps of ROOT files as futures on 3 workers with 2 threads, and a tree of merges."""
    fileset = write_fileset(run.data / "exam", {"WW": 5, "TTJets": 7})
    with run.recorded(workers=3, threads=2, prepare=ready(fileset)) as client:
        steps = steps_of(fileset, 1_200)
        merged(client, client.map(analyze_step, steps, [0.7] * len(steps))).result()
