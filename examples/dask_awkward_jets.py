"""Select jets with dask-awkward: columns are chosen before anything is read.

dask-awkward needs a Dask before 2025.4, and therefore a separate environment:
``pip install '.[all]' 'dask-awkward>=2026'``.
The files are compressed with ZLIB, which takes more time than the rest of reading.

    roast-record run -o jets.jsonl.zst -- python dask_awkward_jets.py
"""

import sys
from pathlib import Path

import awkward as ak
import dask_awkward as dak
import numpy as np
import uproot
from distributed import Client

FILES, EVENTS = 6, 20_000


def write_files(folder: Path) -> list[str]:
    """Write files with jagged collections of jets."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"jets-{number}.root" for number in range(FILES)]
    for number, path in enumerate(paths):
        random = np.random.default_rng(number)
        counts = random.poisson(4.0, EVENTS)
        total = int(counts.sum())
        columns = {name: random.exponential(40, total) for name in ("pt", "mass", "area")}
        columns |= {"eta": random.normal(0, 1.5, total)}
        with uproot.recreate(path) as file:
            events = {"Jet": ak.unflatten(ak.zip(columns), counts)}
            file.mktree("Events", events).extend(events)
    return [f"{path}:Events" for path in map(str, paths)]


if __name__ == "__main__":
    names = write_files(Path(sys.argv[1] if len(sys.argv) > 1 else "jet-files"))
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        events = uproot.dask(names, steps_per_file=4)
        central = events.Jet_pt[(events.Jet_pt > 30) & (abs(events.Jet_eta) < 2.4)]
        total = float(dak.sum(dak.sum(central, axis=1)).compute())
    print(f"mean scalar sum of jet momenta: {total / (FILES * EVENTS):.1f} GeV")
