"""Runs of coffea processors on files that uproot writes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from situation import Run, clocked, reported

if TYPE_CHECKING:
    import awkward as ak
    from distributed import Client

Fileset = dict[str, list[str]]

#: Events of a basket.
BASKET_EVENTS = 5000


def write_fileset(
    folder: Path, files: int = 3, events: int = 20_000, weights: int = 0
) -> Fileset:
    """Write files of two datasets; return the fileset."""
    random = np.random.default_rng(0)
    fileset: Fileset = {}
    for dataset in ("ttbar", "wjets"):
        paths = [folder / f"{dataset}{number}.root" for number in range(files)]
        for path in paths:
            columns = {"pt": random.gamma(2.0, 30.0, events).astype("f4")}
            if weights:
                columns["weights"] = random.random((events, weights)).astype("f4")
            with uproot.recreate(path, compression=uproot.ZSTD(1)) as file:
                file.mktree(
                    "Events", {name: (c.dtype, c.shape[1:]) for name, c in columns.items()}
                )
                for first in range(0, events, BASKET_EVENTS):
                    part = slice(first, first + BASKET_EVENTS)
                    file["Events"].extend({name: c[part] for name, c in columns.items()})
        fileset[dataset] = [str(path) for path in paths]
    return fileset


def run_coffea(
    client: Client, fileset: Fileset, work: processor.ProcessorABC, **settings: Any
) -> Any:
    """Run a processor with coffea's executor for Dask."""
    executor = processor.DaskExecutor(client=client, status=False, compression=None)
    runner = processor.Runner(executor=executor, schema=BaseSchema, **settings)
    return runner(fileset, treename="Events", processor_instance=work)


class Processor(processor.ProcessorABC):
    """Fill a histogram, after some seconds of other work."""

    def __init__(self, seconds: float = 0.0, event_seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.event_seconds = event_seconds

    def process(self, events: ak.Array) -> dict:
        time.sleep(self.seconds + self.event_seconds * len(events))
        counts, _ = np.histogram(np.asarray(events.pt), bins=100, range=(0, 500))
        return {"counts": counts.astype("i8")}

    def postprocess(self, accumulator: dict) -> dict:
        return accumulator


class MistakenProcessor(Processor):
    """Use a branch that no file has."""

    def process(self, events: ak.Array) -> dict:
        time.sleep(0.1)
        return {"sum": float(np.sum(np.asarray(events.jet_pt)))}


@reported(
    "https://github.com/scikit-hep/coffea/issues/468",
    "retries",
    words="AttributeError|jet_pt processor|code",
    wrong=r"cause.in.[\w/]*\w+\.root",
)
def processor_mistake(run: Run) -> None:
    """A mistake in the processor fails in every chunk that is tried; no file is to blame."""
    fileset = write_fileset(run.scratch)
    with run.recorded() as client:
        try:
            run_coffea(client, fileset, MistakenProcessor(), chunksize=5000)
        except Exception:  # noqa: BLE001 - as any coffea raises
            return
    raise AssertionError("the processor did not fail")


@reported(
    "https://github.com/scikit-hep/coffea/issues/1382",
    "skipped-files",
    words=r"wjets1\.root",
    also="retries",
)
def bad_file(run: Run) -> None:
    """One of six files is cut off, and coffea skips it, as asked."""
    fileset = write_fileset(run.scratch)
    path = Path(fileset["wjets"][1])
    path.write_bytes(path.read_bytes()[:2000])
    with run.recorded() as client:
        run_coffea(client, fileset, Processor(0.2), chunksize=5000, skipbadfiles=True)


class WeightProcessor(Processor):
    """Use all weights, although one of them is needed."""

    def process(self, events: ak.Array) -> dict:
        with clocked():
            weights = np.asarray(events.weights)
        return {"sum": float(weights[:, 0].sum()), **super().process(events)}


@reported(
    "https://github.com/scikit-hep/coffea/issues/1074",
    "unused-branches slow-storage inside-tasks large-branch",
    entities="weights",
    words=r"weights 9\d(\.\d)?.?%|most|bytes",
)
def heavy_branch(run: Run) -> None:
    """One branch of 100 weights per event is nearly all of what the run reads."""
    fileset = write_fileset(run.scratch, events=60_000, weights=100)
    with run.recorded() as client:
        run_coffea(client, fileset, WeightProcessor(), chunksize=10_000)


@reported(
    "https://github.com/scikit-hep/coffea/issues/1142",
    "chunks-too-small",
    words="chunk larger|chunksize|events",
    also="file-opening short-tasks merging repeated-baskets",
)
def small_chunks(run: Run) -> None:
    """Chunks of 200 events, each of which opens its file."""
    fileset = write_fileset(run.scratch, files=2, events=20_000)
    with run.recorded() as client:
        run_coffea(client, fileset, Processor(0.01, 1e-6), chunksize=200)


@reported(
    "https://github.com/scikit-hep/coffea/issues/530",
    "chunks-too-large",
    words="chunk smaller|chunksize|events",
    also="long-tail low-parallelism",
)
def large_chunks(run: Run) -> None:
    """Three chunks for two threads: one thread is idle while the other has the last one."""
    fileset = write_fileset(run.scratch, files=3, events=20_000)
    del fileset["wjets"]
    with run.recorded() as client:
        run_coffea(client, fileset, Processor(0.1, 2e-4), chunksize=200_000)


@reported(
    "https://github.com/scikit-hep/cabinetry/issues/401",
    "repeated-chunks",
    words="4.times one.run|variations",
    also="client-gaps file-opening large-branch unused-branches short-tasks",
)
def run_for_each_variation(run: Run) -> None:
    """A processor runs four times over the same files, once for each variation."""
    fileset = write_fileset(run.scratch)
    with run.recorded() as client:
        for _ in range(4):
            run_coffea(client, fileset, Processor(seconds=0.2), chunksize=5000)
