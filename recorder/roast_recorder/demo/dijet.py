"""The analysis of the demo: select jets, pair them, fill histograms.

The sections are optional: without them, the chunks are recorded all the same.
"""

from __future__ import annotations

from typing import Any

import awkward as ak
import hist
from coffea import processor
from coffea.nanoevents import NanoAODSchema

from roast_recorder import section

NanoAODSchema.warn_missing_crossrefs = False


class DijetProcessor(processor.ProcessorABC):
    """Fill dijet masses and jet momenta of events with two good jets and little MET."""

    def process(self, events: Any) -> dict[str, Any]:
        """Fill the histograms of one chunk of events."""
        with section("jet selection"):
            jets = events.Jet[(events.Jet.pt > 30) & (abs(events.Jet.eta) < 2.4)]
            jets = jets[ak.all(jets.metric_table(events.Muon) > 0.4, axis=2)]
        with section("dijet masses"):
            pairs = ak.combinations(jets, 2, fields=["leading", "trailing"])
            masses = (pairs.leading + pairs.trailing).mass
            quiet = events.MET.pt < 60
        with section("histograms"):
            mass = hist.Hist.new.Reg(100, 0, 500, name="mass", label="dijet mass [GeV]").Int64()
            mass.fill(mass=ak.flatten(masses[quiet]))
            pt = hist.Hist.new.Reg(100, 0, 300, name="pt", label="jet pT [GeV]").Int64()
            pt.fill(pt=ak.flatten(jets.pt))
        return {
            events.metadata["dataset"]: {
                "entries": len(events),
                "selected": int(ak.sum(ak.num(jets) >= 2)),
                "mass": mass,
                "pt": pt,
            }
        }

    def postprocess(self, accumulator: Any) -> Any:
        """Return the merged results unchanged."""
        return accumulator


def run_analysis(
    client: Any,
    fileset: dict[str, Any],
    *,
    treename: str = "Events",
    chunksize: int = 30_000,
    **executor_options: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the dijet analysis; return coffea's accumulator and its report of the run."""
    runner = processor.Runner(
        executor=processor.DaskExecutor(client=client, **executor_options),
        schema=NanoAODSchema,
        chunksize=chunksize,
        savemetrics=True,
    )
    result, report = runner(fileset, treename=treename, processor_instance=DijetProcessor())
    return result, report
