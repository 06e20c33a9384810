"""Processors passed to track() behave as before, and each of their chunks is measured once."""

import functools
import pickle
import uuid
from dataclasses import dataclass
from types import SimpleNamespace

import cloudpickle
import pytest

from roast_recorder import track
from roast_recorder.coffea.instrumentation import remove_listener

pytest.importorskip("coffea")
import awkward as ak
import uproot
from coffea.nanoevents import BaseSchema, NanoEventsFactory
from coffea.processor import IterativeExecutor, ProcessorABC, Runner

#: Entries of the file.
ENTRIES = 250


@pytest.fixture
def path(folder):
    return str(folder / "a.root")


def read(path, of="root", **options):
    """Open the events of a file without a Runner."""
    opens = getattr(NanoEventsFactory, f"from_{of}")
    options = {"schemaclass": BaseSchema, "mode": "virtual", **options}
    return opens({path: "Events"} if of == "root" else path, **options).events()


# -- kinds of processors ---------------------------------------------------------------------


def total(events):
    """Return the sum of a branch."""
    return int(ak.sum(events.weight))


class Abc(ProcessorABC):
    def __init__(self, factor=2):
        self.factor = factor

    def process(self, events):
        return self.factor * total(events)

    def postprocess(self, accumulator):
        return accumulator


@dataclass(frozen=True)
class Frozen:
    factor: int = 2

    def process(self, events):
        return self.factor * total(events)


class OwnProcess:
    def __init__(self):
        self.process = self.really_process

    def really_process(self, events):
        return total(events)


class OfClass:
    @classmethod
    def process(cls, events):
        return cls.__name__, total(events)


class Static:
    process = staticmethod(total)


class Delegates:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)


class CallsItself(Abc):
    def process(self, events):
        return len(events) if len(events) <= 100 else 1 + self.process(events[:100])


PROCESSORS = [
    Abc(),
    Frozen(),
    OwnProcess(),
    OfClass(),
    Static(),
    Delegates(Abc()),
    CallsItself(),
    total,
    lambda events: -total(events),
    functools.partial(lambda factor, events: factor * total(events), 7),
    Abc().process,
]


def call(processor, events):
    """Process events as coffea's Runner does."""
    return processor.process(events) if hasattr(processor, "process") else processor(events)


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda p: type(p).__name__)
def test_results_are_unchanged_by_tracking_and_pickling(listener, path, processor):
    before = dict(vars(processor)) if hasattr(processor, "__dict__") else None
    expected = call(processor, read(path))
    assert listener == []

    tracked = track(processor)
    copies = [cloudpickle.loads(cloudpickle.dumps(tracked))]
    if not callable(processor):
        copies.append(pickle.loads(pickle.dumps(tracked)))
        assert type(tracked) is type(processor)
    for copy in (tracked, *copies):
        assert call(copy, read(path)) == expected

    assert [(c["events"], c["until"]) for c in listener.chunks] == [(ENTRIES, "processed")] * (
        1 + len(copies)
    )
    if before is not None:
        assert vars(processor) == before
    listener.clear()
    call(processor, read(path))
    remove_listener("test")
    assert call(tracked, read(path)) == expected
    assert listener == []


def test_attributes_set_later_are_used(listener, path):
    expected = total(read(path))
    tracked = Abc(factor=1)
    for times in (1, 2, 3):
        tracked = track(tracked)
        copy = cloudpickle.loads(cloudpickle.dumps(tracked))
        copy.factor = 100
        tracked.factor = 10

        assert tracked.process(read(path)) == 10 * expected
        assert copy.process(read(path)) == 100 * expected
        assert len(listener) == 2 * times


def test_a_function_keeps_its_name_and_its_exceptions(listener, path):
    tracked = track(total)
    assert (tracked.__name__, tracked.__doc__) == ("total", "Return the sum of a branch.")
    assert tracked.__wrapped__ is total
    error = ValueError("no jets")

    def fails(_):
        raise error

    with pytest.raises(ValueError, match="no jets") as caught:
        track(fails)(read(path))

    assert caught.value is error
    [chunk] = listener.chunks
    assert (chunk["exception"], chunk["filename"]) == ("ValueError('no jets')", path)


class Slotted:
    __slots__ = ()

    def process(self, events):
        return total(events)


def test_an_invalid_processor_is_refused(listener, path):
    slotted = Slotted()
    for wrong in (7, Abc):
        with pytest.raises(TypeError, match=r"invalid processor .* use a processor or a func"):
            track(wrong)
    with pytest.raises(TypeError) as caught:
        track(slotted)
    assert str(caught.value) == (
        f"cannot track {slotted!r}, whose class has __slots__: "
        "track its method, processor.process"
    )
    assert track(slotted.process)(read(path)) == total(read(path))
    assert len(listener) == 1


# -- values of events that were opened without a Runner --------------------------------------


def test_values_of_a_chunk(listener, path):
    metadata = {"dataset": "DY", "year": 2018}
    with uproot.open(path) as file:
        file_uuid, branch = file.file.uuid, file["Events"]["weight"]
        in_two_baskets = sum(branch.basket_compressed_bytes(number) for number in (1, 2))

    track(total)(read(path, metadata=metadata, entry_start=150, entry_stop=250))

    [chunk] = listener.chunks
    identity = {
        "dataset": "DY",
        "filename": path,
        "treename": "Events",
        "file_uuid": uuid.UUID(str(file_uuid)).hex,
        "entry_start": 150,
        "entry_stop": 250,
        "events": 100,
        "source": "TTree",
        "file_branches": 9,
    }
    assert {name: chunk.get(name) for name in identity} == identity
    [read_branch] = chunk["branches"]
    assert (read_branch["branch"], read_branch["compressed_bytes"]) == (
        "weight",
        in_two_baskets,
    )
    assert "open_seconds" not in chunk  # opened before


def test_bytes_and_columns_are_those_of_the_chunk(listener, path):
    log = []
    events = read(path, access_log=log)
    ak.sum(events.run)
    for _ in range(2):
        track(total)(events)
    track(total)(read(path, mode="eager"))

    assert {access.branch for access in log} == {"run", "weight"}
    first, second, eager = listener.chunks
    assert first["columns"] == ["weight-data"]
    assert first["bytes_read"] == sum(b["compressed_bytes"] for b in first["branches"]) > 0
    assert (second["bytes_read"], second["requests"], second["branches"]) == (0, 0, [])
    assert eager["branches"] == []


def test_names_come_from_the_file_without_metadata(listener, path, folder):
    with uproot.open(path) as file:
        is_open = NanoEventsFactory.from_root(
            file, treepath="/Events", schemaclass=BaseSchema, mode="virtual"
        ).events()
        track(total)(is_open)
    events = read(path)
    track(total)(events[:10])
    track(total)(read(str(folder / "ntuple.root")))

    assert [
        (c["source"], c["filename"], c["treename"], c["events"], c["entry_stop"])
        for c in listener.chunks
    ] == [
        ("TTree", path, "Events", ENTRIES, ENTRIES),
        ("TTree", path, "Events", 10, ENTRIES),
        ("RNTuple", str(folder / "ntuple.root"), "Events", ENTRIES, ENTRIES),
    ]
    assert not any("dataset" in chunk for chunk in listener.chunks)


def test_a_parquet_file_is_named_by_metadata_only(listener, folder):
    pytest.importorskip("pyarrow", minversion="17")  # as awkward needs it
    path = str(folder / "a.parquet")

    for metadata in (None, {"filename": path, "treename": "table"}):
        track(total)(read(path, "parquet", metadata=metadata))

    unnamed, named = listener.chunks
    assert (unnamed["source"], unnamed["events"]) == ("Parquet", ENTRIES)
    assert {"filename", "treename", "file_uuid"}.isdisjoint(unnamed)
    assert (named["filename"], named["treename"]) == (path, "table")


class Rebuilt(SimpleNamespace):
    """Events without a file object of coffea, as another framework may create them."""

    def __len__(self):
        return 3


def test_metadata_can_identify_a_chunk_of_a_file_and_nothing_else_is_measured(listener):
    identity = {"dataset": "DY", "filename": "a.root", "treename": "t"}
    for attrs in ({"attrs": {}}, {}):
        assert track(len)(Rebuilt(metadata={**identity, "fileuuid": "1-2"}, **attrs)) == 3
    assert len(listener) == 2
    for chunk in listener.chunks:
        assert chunk.items() >= {**identity, "file_uuid": "12"}.items()
        assert "events" not in chunk
    listener.clear()

    for events in (
        [1, 2, 3],
        ak.Array({"metadata": [1, 2, 3]}),
        Rebuilt(metadata={"dataset": "DY"}),
        Rebuilt(metadata=7, attrs=None),
        Rebuilt(metadata={"filename": "a.root"}, dask={}),  # lazy
    ):
        assert track(len)(events) == 3
    assert listener == []


def test_a_chunk_of_coffeas_runner_is_measured_once(listener, path):
    runner = Runner(IterativeExecutor(status=False), schema=BaseSchema, chunksize=100)

    runner({"DY": [path]}, treename="Events", processor_instance=track(track(Abc())))

    assert [chunk["entry_start"] for chunk in listener.chunks] == [0, 125]
    # Measured by the outer call, which opens the file.
    assert all(chunk["open_seconds"] > 0 for chunk in listener.chunks)
    assert all(chunk["columns"] == ["weight-data"] for chunk in listener.chunks)
