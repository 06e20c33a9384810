"""NanoAOD-like ROOT files to run on, written with uproot.

The events are random numbers with the shapes of real ones: a TTree ``Events`` with
jagged ``Jet``, ``Muon`` and ``Electron`` collections and flat ``MET`` branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import awkward as ak
import numpy as np
import uproot

#: Entries of one basket: a chunk of any size can then read little more than its own.
BASKET_ENTRIES = 10_000


@dataclass(frozen=True)
class Dataset:
    """A sample to generate.

    Parameters
    ----------
    name : str
    files : int
        Files to write.
    events : int
        Events in each file.
    jets : float
        Mean number of jets in an event.
    resonance_mass : float
        Mass in GeV around which the two leading jets' energies scatter.
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
    """Write the files of some datasets, one at a time.

    Parameters
    ----------
    folder : Path
        Must exist. Files are named ``<dataset>_<number>.root``.
    datasets : tuple of Dataset

    Yields
    ------
    Path
        Each file, when it is complete. One that is there already is kept.
    """
    for number, dataset in enumerate(datasets):
        for part in range(dataset.files):
            path = folder / f"{dataset.name}_{part}.root"
            if not path.exists():
                random = np.random.default_rng(1_000 * number + part)
                unfinished = path.with_suffix(".unfinished")
                _write_file(unfinished, dataset, random)
                unfinished.rename(path)
            yield path


def fileset(folder: Path, datasets: tuple[Dataset, ...] = DATASETS) -> dict[str, list[str]]:
    """Give coffea's fileset of what :func:`write_files` wrote."""
    return {
        dataset.name: [
            str(folder / f"{dataset.name}_{part}.root") for part in range(dataset.files)
        ]
        for dataset in datasets
    }


def _write_file(path: Path, dataset: Dataset, random: np.random.Generator) -> None:
    with uproot.recreate(path) as file:
        tree = file.mktree("Events", _events(dataset, random, 0))
        for begin in range(0, dataset.events, BASKET_ENTRIES):
            entries = min(BASKET_ENTRIES, dataset.events - begin)
            tree.extend(_events(dataset, random, entries))


def _events(
    dataset: Dataset, random: np.random.Generator, entries: int
) -> dict[str, ak.Array | np.ndarray]:
    return {
        "run": np.ones(entries, dtype=np.uint32),
        "luminosityBlock": np.ones(entries, dtype=np.uint32),
        "event": np.arange(entries, dtype=np.uint64),
        "Jet": _particles(random, entries, dataset.jets, dataset.resonance_mass / 2),
        "Muon": _leptons(random, entries, 0.8),
        "Electron": _leptons(random, entries, 0.6),
        "MET_pt": random.exponential(30.0, entries).astype(np.float32),
        "MET_phi": random.uniform(-np.pi, np.pi, entries).astype(np.float32),
    }


def _leptons(random: np.random.Generator, entries: int, mean_number: float) -> ak.Array:
    leptons = _particles(random, entries, mean_number, 25.0)
    charges = random.choice(np.array([-1, 1], dtype=np.int32), ak.count(leptons.pt))
    return ak.with_field(leptons, ak.unflatten(charges, ak.num(leptons)), "charge")


def _particles(
    random: np.random.Generator, entries: int, mean_number: float, mean_pt: float
) -> ak.Array:
    """Make a jagged collection of four-vectors: pt, eta, phi, mass."""
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
