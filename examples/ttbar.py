"""A ttbar analysis of NanoAOD with several datasets and systematic variations.

The size and shape are those of the Analysis Grand Challenge: seven datasets, three of them
variants of ttbar, one lepton and four jets, two regions, a trijet mass, and variations of the
jet energy and of weights. The ROOT files are generated, with random events.

    roast-record run -o ttbar.jsonl.zst -- python ttbar.py
"""

import sys
from pathlib import Path

import awkward as ak
import hist
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from dask.distributed import Client

NanoAODSchema.warn_missing_crossrefs = False

#: Mean number of jets of each sample, and its cross section in pb.
SAMPLES = {
    "ttbar__nominal": (5.5, 730.0),
    "ttbar__ME_var": (5.3, 730.0),
    "ttbar__PS_var": (5.8, 730.0),
    "single_top_s_chan__nominal": (3.5, 2.0),
    "single_top_t_chan__nominal": (3.8, 165.0),
    "single_top_tW__nominal": (4.2, 79.0),
    "wjets__nominal": (3.0, 15_487.0),
}
#: Events of the files of each sample: files rarely have the same size.
EVENTS = (16_000, 1_000, 1_000)
BASKET = 4_000
LUMINOSITY = 3_378.0  # 1/pb
B_TAG, JET_PT, LEPTON_PT = 0.5, 30.0, 30.0


def write_files(folder: Path) -> dict[str, dict]:
    """Write the files of all samples and return coffea's fileset."""
    folder.mkdir(exist_ok=True)
    fileset = {}
    for number, (sample, (jets, xsec)) in enumerate(SAMPLES.items()):
        paths = [folder / f"{sample}_{part}.root" for part in range(len(EVENTS))]
        for path, events in zip(paths, EVENTS, strict=True):
            if not path.exists():
                random = np.random.default_rng([number, events])
                with uproot.recreate(path) as file:
                    tree = file.mktree("Events", random_events(random, 0, jets))
                    for begin in range(0, events, BASKET):
                        entries = min(BASKET, events - begin)
                        tree.extend(random_events(random, entries, jets))
        weight = xsec * LUMINOSITY / sum(EVENTS)
        fileset[sample] = {"files": list(map(str, paths)), "metadata": {"weight": weight}}
    return fileset


def random_events(random: np.random.Generator, entries: int, mean_jets: float) -> dict:
    """Return events with jets and leptons."""

    def collection(mean: float, **columns: float) -> ak.Array:
        counts = random.poisson(mean, entries)
        total = int(counts.sum())
        flat = {
            "pt": (15 + random.exponential(40, total)).astype(np.float32),
            "eta": random.normal(0, 1.4, total).astype(np.float32),
            "phi": random.uniform(-np.pi, np.pi, total).astype(np.float32),
            "mass": random.gamma(3.0, 3.0, total).astype(np.float32),
        }
        flat["charge"] = random.choice(np.array([-1, 1], np.int32), total)
        for name, high in columns.items():
            flat[name] = random.beta(0.4, high, total).astype(np.float32)
        return ak.unflatten(ak.zip(flat), counts)

    return {
        "Jet": collection(mean_jets, btagCSVV2=0.8),
        "Electron": collection(0.6),
        "Muon": collection(0.7),
        # Branches that the analysis does not read, as in every NanoAOD file.
        "Photon": collection(0.8),
        "Tau": collection(0.5),
        "run": np.ones(entries, np.uint32),
        "luminosityBlock": np.ones(entries, np.uint32),
        "event": np.arange(entries, dtype=np.uint64),
        "MET_pt": random.exponential(40, entries).astype(np.float32),
    }


class TtbarProcessor(processor.ProcessorABC):
    """Fill the scalar sum of jet momenta and the trijet mass for each variation."""

    def process(self, events):
        sample, _, variant = events.metadata["dataset"].partition("__")
        # The variants of ttbar are systematic variations themselves.
        variations = ["nominal", "pt_scale_up", "pt_scale_down", "pt_res_up"]
        filled = hist.Hist.new.Reg(25, 50, 550, name="observable", label="observable [GeV]")
        filled = filled.StrCat(["4j1b", "4j2b"], name="region")
        filled = filled.StrCat([], name="process", growth=True)
        filled = filled.StrCat([], name="variation", growth=True).Weight()
        for variation in variations if variant == "nominal" else ["nominal"]:
            self._fill(filled, events, sample, variant, variation)
        return {"hist": filled, "entries": {events.metadata["dataset"]: len(events)}}

    def _fill(self, filled, events, sample, variant, variation) -> None:
        scale = {"pt_scale_up": 1.03, "pt_scale_down": 0.97}.get(variation, 1.0)
        if variation == "pt_res_up":
            random = np.random.default_rng(len(events))
            counts = ak.num(events.Jet)
            scale = ak.unflatten(random.normal(1.0, 0.05, int(ak.sum(counts))), counts)
        jets = ak.with_field(events.Jet, events.Jet.pt * scale, "pt")
        jets = jets[(jets.pt > JET_PT) & (abs(jets.eta) < 2.4)]
        electrons = ak.sum(events.Electron.pt > LEPTON_PT, axis=1)
        leptons = electrons + ak.sum(events.Muon.pt > LEPTON_PT, axis=1)
        tagged = ak.sum(jets.btagCSVV2 > B_TAG, axis=1)
        selected = (leptons == 1) & (ak.num(jets) >= 4)
        name = variation if variant == "nominal" else variant

        one_tag = jets[selected & (tagged == 1)]
        self._fill_region(filled, ak.sum(one_tag.pt, axis=1), "4j1b", sample, name, events)

        two_tags = jets[selected & (tagged >= 2)]
        trijets = ak.combinations(two_tags, 3, fields=["a", "b", "c"])
        top = trijets.a + trijets.b + trijets.c
        tags = [trijets[name].btagCSVV2 > B_TAG for name in "abc"]
        top = top[tags[0] | tags[1] | tags[2]]
        heaviest = ak.flatten(top.mass[ak.argmax(top.pt, axis=1, keepdims=True)])
        self._fill_region(filled, ak.fill_none(heaviest, 0.0), "4j2b", sample, name, events)

    def _fill_region(self, filled, values, region, sample, variation, events) -> None:
        weight = events.metadata["weight"]
        weights = {variation: 1.0}
        if variation == "nominal":  # variations of weights need no second selection
            weights |= {f"btag_var_{i}_{way}": 1 + sign * 0.02 * (i + 1) for i in range(4)
                        for way, sign in (("up", 1), ("down", -1))}  # fmt: skip
        for name, factor in weights.items():
            filled.fill(
                observable=values, region=region, process=sample, variation=name,
                weight=weight * factor,
            )  # fmt: skip

    def postprocess(self, accumulator):
        return accumulator


if __name__ == "__main__":
    fileset = write_files(Path(sys.argv[1] if len(sys.argv) > 1 else "ttbar-files"))
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        runner = processor.Runner(
            executor=processor.DaskExecutor(client=client),
            schema=NanoAODSchema,
            # Small, as these files are; chunks of real files have 100,000 events.
            chunksize=2_500,
        )
        result = runner(fileset, treename="Events", processor_instance=TtbarProcessor())
    print(f"{sum(result['entries'].values()):,} events, "
          f"{len(result['hist'].axes['variation'])} variations")  # fmt: skip
