"""Shapes of coffea programs: analyses of ROOT files by a runner, or in steps by futures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import awkward as ak
import fsspec.implementations.http  # so that no chunk imports it
import hist
import numpy as np
import uproot
from afflictions import Changed
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from files import Form, damage
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem
from illness import Affliction, Cluster, Run, Shape
from storage import Server, served
from tasks import about
from troubles import Part, Trouble

if TYPE_CHECKING:
    from distributed import Client

NanoAODSchema.warn_missing_crossrefs = False

Fileset = dict[str, Any]

FORM, FORM_OF_STEPS = Form(), Form(events=12_000, basket=1_000)


class SlowSum:
    """An accumulator whose addition takes time, as of histograms with many systematics."""

    def __init__(self, number: int, seconds: float) -> None:
        self.number, self.seconds = number, seconds

    def __add__(self, other: SlowSum) -> SlowSum:
        time.sleep(self.seconds)
        return SlowSum(self.number + other.number, self.seconds)


@dataclass
class Analysis(processor.ProcessorABC):
    """Fill a histogram, and sleep for the compute time of a real analysis."""

    event_seconds: float = 2e-4  #: Time for each event, for each jet, and for each chunk.
    jet_seconds: float = 0.0
    chunk_seconds: float = 0.0
    #: Factors of the time of datasets and files.
    factors: dict[str, float] = field(default_factory=dict)
    spread: float = 0.0  #: Largest deviation from this time, as a part of it.
    #: Columns that are read: ``used``, ``all``, or ``late``, which reads one after the work.
    reads: str = "used"
    loops: bool = False  #: Whether it loops over events in Python.
    bins: int = 0  #: Bins of a further histogram.
    columns: int = 0  #: Bytes for each event that are returned, as for a fit without bins.
    merge_seconds: float = 0.0  #: Time to add two results.
    table: Any = None  #: Bytes of a table that the processor contains.
    opens: int = 0  #: How often it opens the file itself.
    troubles: tuple[Trouble, ...] = ()

    def __repr__(self) -> str:
        values = {name: value for name, value in vars(self).items() if value and value != 2e-4}
        return f"Analysis({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def process(self, events: Any) -> dict[str, Any]:
        facts = events.metadata
        dataset, file, start = (
            facts["dataset"],
            Path(facts["filename"]).name,
            facts["entrystart"],
        )
        is_nano = "Jet" in events.fields
        jets = {
            name: events.Jet[name] if is_nano else events[f"Jet_{name}"]
            for name in ("pt", "eta")
        }
        pt = hist.Hist.new.Reg(50, 0, 300, name="pt").Int64()
        pt.fill(pt=ak.flatten(jets["pt"][abs(jets["eta"]) < 60]))
        found: dict[str, Any] = {"pt": pt, "events": len(events)}
        if self.reads == "all":
            columns = [events.Jet[name] for name in events.Jet.fields] if is_nano else []
            columns += [
                events[name] for name in events.fields if name.startswith(("flag", "Jet_"))
            ]
            found["total"] = sum(float(ak.sum(column)) for column in columns)
        for _ in range(self.opens):
            with uproot.open(facts["filename"]) as opened:
                found["entries"] = opened["Events"].num_entries
        factor = self.factors.get(dataset, 1.0) * self.factors.get(file, 1.0)
        seconds = self.chunk_seconds + self.event_seconds * len(events) * factor
        if self.jet_seconds:
            seconds += self.jet_seconds * int(ak.sum(ak.num(jets["pt"])))
        seconds = about(seconds, self.spread, file, start)
        time.sleep(seconds)
        if self.reads == "late":
            found["mass"] = float(ak.sum(events.Jet.mass))
        if self.loops:
            found["loops"] = loop_over(jets["pt"])
        if self.bins:
            fine = hist.Hist.new.Reg(self.bins, 0, 300, name="pt").Weight()
            found["fine"] = fine.fill(pt=ak.flatten(jets["pt"]))
        if self.columns:
            values = np.random.default_rng(start).random(self.columns * len(events) // 8)
            found["columns"] = processor.column_accumulator(values)
        part = Part((dataset, file), start, seconds)
        for trouble in self.troubles:
            trouble.strike(part)
        sums = {"sum": SlowSum(len(events), self.merge_seconds)} if self.merge_seconds else {}
        return {dataset: found, **sums}

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def loop_over(momenta: Any) -> float:
    """Loop over events in Python."""
    total = 0.0
    for jets in ak.to_list(momenta):
        for first in jets:
            total += sum(abs(first - second) for second in jets) ** 0.5
    return total


@dataclass(frozen=True, repr=False)
class Runner(Shape):
    """Files of datasets that coffea's runner analyzes."""

    analysis: Analysis
    chunksize: int = 2_500
    #: Number of files of each dataset.
    datasets: dict[str, int] = field(default_factory=lambda: {"DY": 4, "TT": 4})
    form: Form = FORM  #: Form of the files.
    #: Other forms of some datasets or files.
    others: dict[str, Form] = field(default_factory=dict)
    order: tuple[str, ...] = ()  #: Datasets in another order.
    #: Servers of datasets and files; of all others, by an empty name.
    servers: dict[str, Server] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)  #: How files are damaged, by name.
    preload: int | None = None  #: Number of columns of jets that are preloaded.
    schema: type = NanoAODSchema
    runs: int = 1  #: How often the analysis runs; each dataset has a run of its own, if 0.
    gap: float = 0.0  #: Seconds of the client between two runs.
    #: Options of coffea's executor and runner.
    executor: dict[str, Any] = field(default_factory=dict)
    runner: dict[str, Any] = field(default_factory=dict)
    #: Whether the client reads the number of events of all files itself.
    counts_first: bool = False
    is_warm: bool = True  #: Whether workers have imported coffea before the recording.
    troubles: tuple[Trouble, ...] = ()

    def write(self, folder: Path) -> dict[str, list[str]]:
        """Write the files; return their paths by dataset."""
        fileset: dict[str, list[str]] = {}
        for dataset in self.order or self.datasets:
            names = [f"{dataset}_{number}.root" for number in range(self.datasets[dataset])]
            forms = [
                self.others.get(name, self.others.get(dataset, self.form)) for name in names
            ]
            fileset[dataset] = [
                str(form.write(folder / form.folder / name))
                for name, form in zip(names, forms, strict=True)
            ]
        return fileset

    @contextmanager
    def inputs(self, run: Run) -> Iterator[Fileset]:
        fileset: Fileset = self.write(run.data)
        with ExitStack() as stack:
            urls = {
                name: stack.enter_context(served(run.data, server))
                for name, server in self.servers.items()
            }
            for dataset, paths in fileset.items():
                fileset[dataset] = []
                for path, name in ((path, Path(path).name) for path in paths):
                    how = self.damaged.get(name)
                    place = damage(path, how) if how else path
                    url = urls.get(name, urls.get(dataset, urls.get("", str(run.data))))
                    fileset[dataset].append(place.replace(str(run.data), url))
                if self.preload is not None:
                    branches = self.form.branches(self.preload)
                    fileset[dataset] = {"files": fileset[dataset], "preload": branches}
            yield fileset

    def prepare(self, run: Run, client: Client) -> None:
        """Import all modules, so that the recording begins with the computation."""
        if self.is_warm:
            import dask.dataframe  # noqa: F401 - coffea imports it when it submits chunks

            client.run(imported)

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        filesets = [inputs] * self.runs or [{name: files} for name, files in inputs.items()]
        analysis = replace(self.analysis, troubles=self.troubles)
        if analysis.table:
            analysis.table = np.random.default_rng(0).random(analysis.table // 8)
        for turn, fileset in enumerate(filesets):
            executor = processor.DaskExecutor(client=client, status=False, **self.executor)
            first = {"pre_executor": processor.IterativeExecutor(status=False)}
            run_analysis = processor.Runner(
                executor=executor,
                schema=self.schema,
                savemetrics=True,
                chunksize=self.chunksize,
                metadata_cache={},
                **(first if self.counts_first else {}),
                **self.runner,
            )
            run_analysis(fileset, treename=self.form.tree, processor_instance=analysis)
            if turn < len(filesets) - 1:
                time.sleep(self.gap)


def imported() -> str:
    return processor.__name__


@dataclass(frozen=True, repr=False)
class Steps(Shape):
    """Steps of ROOT files that uproot reads in futures, and a tree of merges."""

    seconds: float
    files: int = 12
    step: int = 1_000
    form: Form = FORM_OF_STEPS
    troubles: tuple[Trouble, ...] = ()

    def inputs(self, run: Run) -> Any:
        return replace(PLAIN, datasets={"EGamma": self.files}, form=self.form).inputs(run)

    def prepare(self, run: Run, client: Client) -> None:
        PLAIN.prepare(run, client)

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        steps = [
            (path, first)
            for path in inputs["EGamma"]
            for first in range(0, self.form.events, self.step)
        ]
        parts = client.map(analyze_step, steps, shape=self)
        while len(parts) > 1:
            parts = client.map(
                add_all, [parts[at : at + 10] for at in range(0, len(parts), 10)]
            )
        parts[0].result()


PLAIN = Runner(Analysis())


def analyze_step(step: tuple[str, int], shape: Steps) -> np.ndarray:
    """Return a histogram of a step of a file."""
    path, first = step
    with uproot.open({path: "Events"}) as tree:
        jets = tree["Jet_pt"].array(entry_start=first, entry_stop=first + shape.step)
    part = Part(
        ("analyze_step", Path(path).name), first, about(shape.seconds, 0.3, path, first)
    )
    time.sleep(part.seconds)
    for trouble in shape.troubles:
        trouble.strike(part)
    return np.histogram(ak.to_numpy(ak.flatten(jets)), bins=10_000)[0]


def add_all(parts: list[np.ndarray]) -> np.ndarray:
    return np.sum(parts, axis=0)


# -- afflictions of reading ------------------------------------------------------------------


class Processing(Changed):
    """The processor has other parameters."""

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        return replace(shape, analysis=replace(shape.analysis, **self.changes)), cluster


class Serving(Changed):
    """The server of a dataset, of a file, or of all has other parameters."""

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        server = replace(shape.servers[self.name], **self.changes)
        return replace(shape, servers={**shape.servers, self.name: server}), cluster


class Written(Changed):
    """Files of a dataset, one file, or all files are written in another form."""

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        if not self.name:
            return replace(shape, form=replace(shape.form, **self.changes)), cluster
        form = replace(shape.others.get(self.name, shape.form), **self.changes)
        return replace(shape, others={**shape.others, self.name: form}), cluster


@dataclass(frozen=True, repr=False)
class SlowReads(Affliction):
    """Workers read slowly: local files whose path has a part, or all from servers."""

    part: str  #: Part of the path, or ``http``.
    #: Further seconds for each request, and for the first bytes of a file.
    seconds: float = 0.0
    opening: float = 0.0
    speed: float = 1e10  #: Bytes per second.
    workers: tuple[int, ...] = ()
    by_client: bool = False  #: Whether the client reads slowly instead.

    def prepare(self, run: Run, client: Client) -> None:
        if self.by_client:
            read_slowly(self)
        else:
            workers = [run.address(name) for name in self.workers] or None
            client.run(read_slowly, self, workers=workers)


def read_slowly(slow: SlowReads) -> None:
    """Let this process read slowly."""

    def wait_seconds(path: str, start: Any, content: bytes) -> float:
        if slow.part not in path:
            return 0.0
        opening = 0.0 if start else slow.opening
        return slow.seconds + opening + len(content) / slow.speed

    def cat_file(
        self: LocalFileSystem, path: str, start: Any = None, end: Any = None, **options: Any
    ) -> bytes:
        content = AbstractFileSystem.cat_file(self, path, start, end, **options)
        time.sleep(wait_seconds(path, start, content))
        return content

    http = fsspec.implementations.http.HTTPFileSystem
    read = http._cat_file

    async def cat_url(
        self: Any, url: str, start: Any = None, *rest: Any, **options: Any
    ) -> bytes:
        content = await read(self, url, start, *rest, **options)
        await asyncio.sleep(wait_seconds(url, start, content))
        return content

    LocalFileSystem.cat_file = cat_file
    http._cat_file = cat_url
