"""Closing programs of coffea, by an author who had read neither the rules nor their tests.

The author knew the ids and the titles of the findings, and the other programs. Files, servers
and the analysis are those of ``final_coffea_programs``.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import uproot
from final_coffea_programs import (
    Photons,
    about,
    analyze,
    at_url,
    shared,
    warm_up,
    write_fileset,
)
from illness import Run, cause, illness


class Recalibrated(Photons):
    """Calibrate the events of some files again, event by event.

    Parameters
    ----------
    event_seconds : float
    files : tuple of str
        Names of files without a calibration of their own.
    calibration_seconds : float
        Time for a chunk.
    """

    def __init__(
        self, event_seconds: float, files: tuple[str, ...], calibration_seconds: float
    ) -> None:
        super().__init__(event_seconds)
        self.files, self.calibration_seconds = files, calibration_seconds

    def finish(self, name: str) -> None:
        if name.rpartition("-")[0] in self.files:
            time.sleep(about(self.calibration_seconds, "calibration", name))


@illness(cause("slow-file", "MuonEG_D_2.root"))
def file_without_a_calibration(run: Run) -> None:
    """12 local files on 4 workers with 2 threads; one of them lacks a calibration, which the
    processor computes in 2.6 s for each chunk of 1,000 events."""
    fileset = write_fileset(run.data / "closing", {"MuonEG_C": 5, "MuonEG_D": 4, "DY": 3})
    files = ("MuonEG_D_2.root",) if run.ill else ()
    with run.recorded(workers=4, threads=2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Recalibrated(2.5e-4, files, 2.6), 1_000)


@illness(cause("unused-branches"))
def preload_of_all_keys(run: Run) -> None:
    """9 files on 3 workers with 2 threads, on a server that readers share at 3.5 MB/s;
    `preload` has all keys of the first file, with 24 numbers for taus and 12 triggers, or the
    six that are used."""
    folder = run.data / "closing_taus"
    fileset = write_fileset(folder, {"Data": 3, "WJets": 6}, has_others=True, flags=12)
    with uproot.open(next(iter(fileset["Data"]["files"]))) as file:
        keys = file["Events"].keys()
    used = [key for key in keys if "Photon" in key or key in ("rho", "weight")]
    for spec in fileset.values():
        spec["preload"] = keys if run.ill else used
    with (
        shared(folder, speed=3.5e6) as url,
        run.recorded(3, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(2.5e-4), 1_000)


@illness(cause("repeated-baskets"))
def baskets_four_times_a_chunk(run: Run) -> None:
    """10 files on 3 workers with 2 threads, on a server that readers share at 1.6 MB/s, in
    chunks of 1,000 events; baskets have 4,000 events, or 1,000."""
    size = 4_000 if run.ill else 1_000
    folder = run.data / f"closing_baskets_{size}"
    fileset = write_fileset(folder, {"WJets": 4, "VGamma": 6}, basket_events=size)
    with (
        shared(folder, speed=1.6e6) as url,
        run.recorded(3, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(2.5e-4), 1_000)


@illness(cause("slow-storage", "127.0.0.5"))
def site_on_another_continent(run: Run) -> None:
    """12 files of three datasets on 6 workers; one dataset is at a site that answers after
    0.13 s, or after 1 ms like the others, at full speed in both cases."""
    folder = run.data / "closing"
    fileset = write_fileset(folder, {"MuonEG_C": 4, "DY": 3, "MuonEG_D": 5})
    with (
        shared(folder) as near,
        shared(folder, "127.0.0.5", latency=0.13 if run.ill else 0.001) as far,
        run.recorded(workers=6, prepare=partial(warm_up, run)) as client,
    ):
        files = at_url(fileset, near) | {"DY": at_url(fileset, far)["DY"]}
        analyze(client, files, Photons(2e-4), 1_500)


class Normalized(Photons):
    """Read the weights of the whole file in each chunk, from the file or from the metadata."""

    def process(self, events: Any) -> dict[str, Any]:
        facts = events.metadata
        total = facts.get("total")
        if total is None:
            with uproot.open(facts["filename"]) as file:
                total = file["Events"].num_entries
            with uproot.open(facts["filename"]) as file:
                assert "weight" in file["Events"]
        return {"total": float(np.float64(total)), **super().process(events)}


@illness(cause("file-opening chunks-too-small"))
def file_opened_again_for_its_number_of_events(run: Run) -> None:
    """7 files on 5 workers, on a server with a latency of 40 ms, in chunks of 1,500 events; the
    processor opens the file of each chunk two more times, for its number of events and for its
    branches, or has the number in the metadata."""
    folder = run.data / "closing"
    fileset = write_fileset(folder, {"MuonEG_C": 4, "DY": 3})
    if not run.ill:
        for spec in fileset.values():
            spec["metadata"] = {"total": 12_000}
    with (
        shared(folder, latency=0.04) as url,
        run.recorded(workers=5, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Normalized(2e-4), 1_500)
