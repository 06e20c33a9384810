"""A coffea analysis to be recorded on a cluster: its input files and their expected sizes."""

import sys
from types import SimpleNamespace

import awkward as ak
import cloudpickle
import hist
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import Client

import roast_recorder
from roast_recorder.coffea.branches import OverlappingBytes

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

#: Entries of the baskets, clusters and row groups of every file.
PIECES = (100, 100, 50)
ENTRIES = sum(PIECES)

JETS = ("pt", "eta", "phi", "mass")
FLAT = {"weight": "f4", "run": "u4", "luminosityBlock": "u4", "event": "u8"}

#: File of each storage format.
SOURCES = {"TTree": "a.root", "RNTuple": "ntuple.root", "Parquet": "a.parquet"}

#: The 4 of 9 branches and columns that `process` reads.
READ = ["Jet_eta", "Jet_pt", "nJet", "weight"]
COLUMNS = ["Jet_eta-data", "Jet_pt-data", "nJet-offsets", "weight-data"]


def make_events(entries, seed):
    random = np.random.default_rng(seed)
    counts = random.poisson(2.5, entries)
    events = {name: random.integers(1, 9, entries).astype(kind) for name, kind in FLAT.items()}
    for name in JETS:
        values = random.exponential(30.0, counts.sum()).astype("f4")
        events[f"Jet_{name}"] = ak.unflatten(values, counts)
    return {"nJet": counts.astype("i4"), **events}


def write_ttree(path, seed=0):
    jets = ", ".join(f"{name}: float32" for name in JETS)
    jets = ak.types.from_datashape(f"var * {{{jets}}}", highlevel=False)
    with uproot.recreate(path) as file:
        tree = file.mktree("Events", {"Jet": jets, **FLAT})
        for number, entries in enumerate(PIECES):
            events = make_events(entries, seed + number)
            collection = ak.zip({name: events[f"Jet_{name}"] for name in JETS})
            tree.extend({"Jet": collection, **{name: events[name] for name in FLAT}})


def write_files(folder):
    """Write two TTrees, and the events of the first also as an RNTuple and as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_ttree(folder / "a.root")
    write_ttree(folder / "b.root", seed=10)
    parts = [make_events(entries, seed) for seed, entries in enumerate(PIECES)]
    with uproot.recreate(folder / "ntuple.root") as file:
        written = file.mkrntuple("Events", parts[0])
        for events in parts[1:]:
            written.extend(events)
    whole = {name: ak.concatenate([part[name] for part in parts]) for name in parts[0]}
    table = pa.table({name: pa.array(ak.to_list(values)) for name, values in whole.items()})
    pq.write_table(table, folder / "a.parquet", row_group_size=100)
    return folder


def process(events):
    """Count in integers, so that the order of the chunks does not matter."""
    central = events.Jet[abs(events.Jet.eta) < 40]
    pt = hist.Hist.new.Reg(20, 0, 200, name="pt").Int64()
    pt.fill(pt=ak.flatten(central.pt))
    weight = int(ak.sum(events.weight))
    return {events.metadata["dataset"]: {"pt": pt, "entries": len(events), "weight": weight}}


class Analysis(processor.ProcessorABC):
    def process(self, events):
        return process(events)

    def postprocess(self, accumulator):
        return accumulator


def run(cluster, fileset, analysis=process, trace=None, of_executor=None, **of_runner):
    """Run an analysis, recorded if there is a trace."""
    with Client(cluster) as client:
        executor = processor.DaskExecutor(client=client, status=False, **(of_executor or {}))
        # coffea's default cache would keep metadata of files between tests.
        defaults = {"schema": NanoAODSchema, "savemetrics": True, "metadata_cache": {}}
        runner = processor.Runner(
            executor=executor, **{**defaults, "chunksize": 100, **of_runner}
        )
        if trace is None:
            return runner(fileset, treename="Events", processor_instance=analysis)
        with roast_recorder.record(client, trace):
            return runner(fileset, treename="Events", processor_instance=analysis)


def run_source(cluster, folder, source, trace=None, **options):
    fileset = {"DY": [str(folder / SOURCES[source])]}
    kind = "parquet" if source == "Parquet" else "root"
    return run(cluster, fileset, trace=trace, format=kind, **options)


def bins(result):
    """Return the result of an analysis with histograms as lists."""
    if isinstance(result, dict):
        return {key: bins(value) for key, value in result.items()}
    return result.values(flow=True).tolist() if isinstance(result, hist.Hist) else result


def measured_chunks(lines):
    """Return the measured attempts at chunks, each as a flat dict."""
    chunks = [line for line in lines if line["kind"] == "chunk" and "run_id" in line]
    return [{**chunk, **chunk["measured"]} for chunk in chunks]


def expected_sizes(path, source, chunk):
    """Return the bytes of each branch, which test_branches compares with independent counts."""
    known = {}
    if source == "Parquet":
        import pyarrow.parquet as pq

        table = SimpleNamespace(file=pq.ParquetFile(path))
        branches = [SimpleNamespace(source=table, column=name) for name in READ]
    else:
        events = uproot.open(path)["Events"]
        branches = [events[name] for name in READ]
    if source == "TTree":
        pieces = [(branch, number) for branch in branches for number in range(len(PIECES))]
        known = {(id(b), number): b.basket_uncompressed_bytes(number) for b, number in pieces}
    overlapping = OverlappingBytes(chunk["entry_start"], chunk["entry_stop"], known)
    return dict(zip(READ, map(overlapping.of, branches), strict=True))


def measured_sizes(chunk):
    return {
        branch["branch"]: (branch["compressed_bytes"], branch["uncompressed_bytes"])
        for branch in chunk["branches"]
    }


#: Query for the attempts at the chunks of the dataset TT.
ATTEMPTS = (
    "SELECT attempt, outcome, entry_start, worker IS NOT NULL, events, exception FROM chunks "
    "WHERE dataset = 'TT' ORDER BY entry_start, attempt"
)


def fails_on_tt(events):
    if events.metadata["dataset"] == "TT":
        raise ValueError(f"{ak.count(events.weight, axis=0)} bad events")
    return process(events)
