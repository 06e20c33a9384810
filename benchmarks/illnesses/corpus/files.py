"""ROOT files for coffea programs, written by uproot."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import uproot
from illness import Described


@dataclass(frozen=True, repr=False)
class Form(Described):
    """How files are written."""

    events: int = 20_000  #: Events of a file.
    basket: int = 5_000  #: Events of a basket.
    columns: int = 4  #: Columns of jets, of at least four.
    jets: float = 4.0  #: Mean number of jets of an event.
    flat: int = 0  #: Number of further branches with a value for each event.
    compression: str = "ZSTD-1"  #: Name and level.
    tree: str = "Events"  #: Path of the tree in the file.
    linked: bool = False  #: Whether all files of a dataset are the same one.

    @property
    def folder(self) -> str:
        """Return the name of a folder for files of this form."""
        return re.sub(r"\W+", "_", repr(self)).strip("_").lower()

    def names(self) -> list[str]:
        """Return the columns of jets."""
        more = (f"score{number}" for number in range(self.columns - 4))
        return ["pt", "eta", "phi", "mass", *more]

    def branches(self, used: int | None = None) -> list[str]:
        """Return the names of branches of jets: all, or so many that are used."""
        return ["nJet", *(f"Jet_{name}" for name in self.names()[:used])]

    def write(self, path: Path) -> Path:
        """Write a tree of events with jets, if it does not exist; return its path."""
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        first = path.with_stem(f"{path.stem.rpartition('_')[0]}_0")
        if self.linked and path != first:
            path.hardlink_to(self.write(first))
            return path
        random = np.random.default_rng(zlib.crc32(path.name.encode()))
        unfinished = path.with_suffix(f".{os.getpid()}")
        algorithm, level = self.compression.split("-")
        with uproot.recreate(
            unfinished, compression=getattr(uproot, algorithm)(int(level))
        ) as file:
            tree = file.mktree(self.tree, self.make_events(random, 0))
            for at in range(0, self.events, self.basket):
                number = min(self.basket, self.events - at)
                tree.extend(self.make_events(random, number))
        unfinished.rename(path)
        return path

    def make_events(self, random: Any, number: int) -> dict[str, Any]:
        counts = random.poisson(self.jets, number)
        jets = {
            name: ak.unflatten(random.gamma(2.0, 30.0, counts.sum()).astype("f4"), counts)
            for name in self.names()
        }
        identity = dict.fromkeys(["run", "luminosityBlock", "event"], np.ones(number, "u4"))
        flat = {f"flag{n}": random.random(number, dtype="f4") for n in range(self.flat)}
        return {"Jet": ak.zip(jets), **identity, **flat}


def damage(path: str, how: str) -> str:
    """Return the path of a copy that is damaged.

    `how` is ``missing``, ``down`` (at a server that refuses connections), ``empty``,
    ``truncated``, ``treeless``, or ``holes`` (zeros in place of some baskets).
    """
    if how == "missing":
        return path.replace(Path(path).name, f"gone/{Path(path).name}")
    if how == "down":
        return f"http://127.0.0.1:9/{Path(path).name}"
    copy = Path.cwd() / Path(path).name
    shutil.copy(path, copy)
    if how == "treeless":
        with uproot.recreate(copy) as file:
            file["cutflow"] = np.histogram([1.0])
    elif how == "holes":
        with uproot.open(copy) as file:
            branch = file["Events"]["Jet_eta"]
            places = zip(
                branch.member("fBasketSeek"), branch.member("fBasketBytes"), strict=True
            )
            holes = [(int(seek), int(size)) for seek, size in list(places)[1:3]]
        with copy.open("r+b") as content:
            for seek, size in holes:
                content.seek(seek)
                content.write(bytes(size))
    else:
        os.truncate(copy, 0 if how == "empty" else 60_000)
    return str(copy)
