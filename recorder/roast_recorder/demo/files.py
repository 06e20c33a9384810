"""Write NanoAOD-like ROOT files as input of the demo.

The events are random numbers in the shape of real ones: a TTree ``Events`` with jagged
``Jet``, ``Muon`` and ``Electron`` collections and flat ``MET`` branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import awkward as ak
import numpy as np
import uproot

#: Entries of a basket. Small ones, so that a chunk reads little beyond its own entries.
BASKET_ENTRIES = 10_000


@dataclass(frozen=True)
class Dataset:
    """A dataset to generate: `files` of `events` each.

    `jets` is their mean number in an event, `resonance_mass` sets their energy in GeV.
    """

    name: str
    files: int
    events: int
    jets: float
    resonance_mass: float


DATASETS = (
    Dataset("DYJets", files=3, events=250_000, jets=2.0, resonance_mass=91.0),
    Dataset("TTbar", files=3, events=250_000, jets=5.5, resonance_mass=173.0),
    Dataset("QCD", files=2, events=350_000, jets=3.5, resonance_mass=60.0),
)


def write_files(folder: Path, datasets: tuple[Dataset, ...] = DATASETS) -> Iterator[Path]:
    """Write the files of some datasets, and yield each when it is complete.

    Parameters
    ----------
    folder : Path
        It must exist. Files in it that are complete already are kept.
    datasets : tuple of Dataset
    """
    for number, dataset in enumerate(datasets):
        for part, path in enumerate(_paths(folder, dataset)):
            if not path.exists():
                random = np.random.default_rng(1_000 * number + part)
                # A run that is interrupted must not leave half a file for the next one.
                unfinished = path.with_suffix(".unfinished")
                with uproot.recreate(unfinished) as file:
                    tree = file.mktree("Events", _events(dataset, random, 0))
                    for begin in range(0, dataset.events, BASKET_ENTRIES):
                        entries = min(BASKET_ENTRIES, dataset.events - begin)
                        tree.extend(_events(dataset, random, entries))
                unfinished.rename(path)
            yield path


def fileset(folder: Path, datasets: tuple[Dataset, ...] = DATASETS) -> dict[str, list[str]]:
    """Return coffea's fileset of the files of :func:`write_files`."""
    return {dataset.name: list(map(str, _paths(folder, dataset))) for dataset in datasets}


def _paths(folder: Path, dataset: Dataset) -> list[Path]:
    return [folder / f"{dataset.name}_{part}.root" for part in range(dataset.files)]


def _events(
    dataset: Dataset, random: np.random.Generator, entries: int
) -> dict[str, ak.Array | np.ndarray]:
    def particles(mean_number: float, mean_pt: float) -> ak.Array:
        """Return a jagged collection of four-vectors."""
        counts = random.poisson(mean_number, entries)
        total = int(counts.sum())
        flat = ak.zip(
            {
                "pt": (15.0 + random.gamma(2.0, mean_pt / 2, total)).astype(np.float32),
                "eta": random.normal(0.0, 1.5, total).astype(np.float32),
                "phi": random.uniform(-np.pi, np.pi, total).astype(np.float32),
                "mass": random.gamma(3.0, 3.0, total).astype(np.float32),
            }
        )
        return ak.unflatten(flat, counts)

    def leptons(mean_number: float) -> ak.Array:
        found = particles(mean_number, 25.0)
        charges = random.choice(np.array([-1, 1], dtype=np.int32), ak.count(found.pt))
        return ak.with_field(found, ak.unflatten(charges, ak.num(found)), "charge")

    return {
        "run": np.ones(entries, dtype=np.uint32),
        "luminosityBlock": np.ones(entries, dtype=np.uint32),
        "event": np.arange(entries, dtype=np.uint64),
        "Jet": particles(dataset.jets, dataset.resonance_mass / 2),
        "Muon": leptons(0.8),
        "Electron": leptons(0.6),
        "MET_pt": random.exponential(30.0, entries).astype(np.float32),
        "MET_phi": random.uniform(-np.pi, np.pi, entries).astype(np.float32),
    }
