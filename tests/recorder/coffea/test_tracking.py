"""Processors passed to track() behave as before, and each of their chunks is measured once."""

import functools
import pickle
import uuid
from dataclasses import dataclass, field
from types import SimpleNamespace

import cloudpickle
import pytest

from roast_recorder import track
from roast_recorder.coffea.instrumentation import remove_listener

pytest.importorskip("coffea")
import awkward as ak
import numpy as np
import uproot
from coffea.nanoevents import BaseSchema, NanoEventsFactory
from coffea.processor import IterativeExecutor, ProcessorABC, Runner

#: Entries of the file, and of each of its baskets.
ENTRIES, BASKET = 300, 100


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of two branches."""
    path = tmp_path_factory.mktemp("coffea") / "events.root"
    with uproot.recreate(path) as file:
        tree = file.mktree("Events", {"x": "i8", "y": "f4"})
        for begin in range(0, ENTRIES, BASKET):
            x = np.arange(begin, begin + BASKET)
            tree.extend({"x": x, "y": x.astype("f4") / 2})
    return str(path)


def read(path, **options):
    """Open the events of the file without a Runner."""
    options = {"schemaclass": BaseSchema, "mode": "virtual", **options}
    return NanoEventsFactory.from_root({path: "Events"}, **options).events()


# -- kinds of processors ---------------------------------------------------------------------


class Abc(ProcessorABC):
    def __init__(self, factor=2):
        self.factor = factor

    def process(self, events):
        return {"x": self.factor * int(ak.sum(events.x)), "n": len(events)}

    def postprocess(self, accumulator):
        return accumulator


@dataclass(frozen=True)
class Frozen:
    factor: int = 2
    more: list = field(default_factory=list, hash=False)

    def process(self, events):
        return self.factor * int(ak.sum(events.x))


class OwnProcess:
    def __init__(self):
        self.process = self.really_process

    def really_process(self, events):
        return int(ak.sum(events.x))


class OfClass:
    factor = 3

    @classmethod
    def process(cls, events):
        return cls.factor * int(ak.sum(events.x))


class Static:
    @staticmethod
    def process(events):
        return int(ak.sum(events.x))


class Delegates:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)


class CallsItself(Abc):
    def process(self, events):
        return len(events) if len(events) <= BASKET else 1 + self.process(events[:BASKET])


def total(events):
    """Sum of x."""
    return int(ak.sum(events.x))


def weighted(factor, events):
    return factor * total(events)


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
    functools.partial(weighted, 7),
    Abc().process,
]


def call(processor, events):
    """Process events as coffea's Runner does."""
    return processor.process(events) if hasattr(processor, "process") else processor(events)


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda p: type(p).__name__)
def test_results_are_the_same_here_and_in_a_pickle(listener, path, processor):
    before = dict(vars(processor)) if hasattr(processor, "__dict__") else None
    expected = call(processor, read(path))
    assert listener == []

    tracked = track(processor)
    copy = cloudpickle.loads(cloudpickle.dumps(tracked))
    assert call(tracked, read(path)) == call(copy, read(path)) == expected

    assert [(c["events"], c["until"]) for c in listener.chunks] == [(ENTRIES, "processed")] * 2
    if before is not None:
        assert vars(processor) == before
    if not callable(processor):
        assert type(tracked) is type(processor)
    call(processor, read(path))
    remove_listener("test")
    assert call(tracked, read(path)) == expected
    assert len(listener) == 2


def test_plain_pickle_copies_a_tracked_processor(listener, path):
    for processor in (Abc(), Frozen(), OfClass(), Static(), OwnProcess()):
        copy = pickle.loads(pickle.dumps(track(processor)))
        assert call(copy, read(path)) == call(processor, read(path))
    assert len(listener) == 5


def test_attributes_set_later_are_used(listener, path):
    tracked = Abc(factor=1)
    for times in (1, 2, 3):
        tracked = track(tracked)
        copy = cloudpickle.loads(cloudpickle.dumps(tracked))
        copy.factor = 100
        tracked.factor = 10

        assert tracked.process(read(path))["x"] == 10 * sum(range(ENTRIES))
        assert copy.process(read(path))["x"] == 100 * sum(range(ENTRIES))
        assert len(listener) == 2 * times


def test_a_decorated_function_keeps_its_name(path):
    tracked = track(total)

    assert (tracked.__name__, tracked.__doc__) == ("total", "Sum of x.")
    assert tracked.__wrapped__ is total
    events = read(path)
    assert track(lambda given: given)(events) is events


@dataclass(slots=True)
class Slotted:
    factor: int = 2

    def process(self, events):
        return self.factor * total(events)


def test_an_invalid_processor_is_named(listener, path):
    for wrong in (7, None, "Abc", Abc):
        with pytest.raises(TypeError) as caught:
            track(wrong)
        assert (
            str(caught.value) == f"invalid processor {wrong!r}: use a processor or a function"
        )
    with pytest.raises(TypeError) as caught:
        track(Slotted())
    assert str(caught.value) == (
        f"cannot track {Slotted()!r}, whose class has __slots__: "
        "track its method, processor.process"
    )
    assert track(Slotted().process)(read(path)) == 2 * sum(range(ENTRIES))
    assert len(listener) == 1


def test_an_exception_is_recorded_and_raised_unchanged(listener, path):
    error = ValueError("no jets")

    def fails(_):
        raise error

    with pytest.raises(ValueError, match="no jets") as caught:
        track(fails)(read(path))

    assert caught.value is error
    [chunk] = listener.chunks
    assert (chunk["exception"], chunk["filename"]) == ("ValueError('no jets')", path)


# -- values of events that were opened without a Runner --------------------------------------


def test_values_of_a_chunk(listener, path):
    metadata = {"dataset": "DY", "year": 2018}
    with uproot.open(path) as file:
        file_uuid, branch = file.file.uuid, file["Events"]["x"]
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
        "file_branches": 2,
    }
    assert {name: chunk.get(name) for name in identity} == identity
    [read_branch] = chunk["branches"]
    assert read_branch["branch"] == "x"
    assert read_branch["compressed_bytes"] == in_two_baskets
    assert "open_seconds" not in chunk  # opened before


def test_bytes_are_those_requested_during_the_chunk(listener, path):
    events = read(path)

    for _ in range(2):
        track(total)(events)

    first, second = listener.chunks
    assert first["bytes_read"] == sum(b["compressed_bytes"] for b in first["branches"]) > 0
    assert (second["bytes_read"], second["requests"], second["branches"]) == (0, 0, [])


def test_columns_are_those_accessed_during_the_chunk(listener, path):
    log = []
    events = read(path, access_log=log)
    ak.sum(events.y)

    track(total)(events)
    track(total)(read(path, mode="eager"))

    assert {access.branch for access in log} == {"x", "y"}
    assert listener.chunks[0]["columns"] == ["x-data"]
    assert listener.chunks[1]["branches"] == []


def test_names_come_from_the_file_without_metadata(listener, path):
    with uproot.open(path) as file:
        is_open = NanoEventsFactory.from_root(
            file, treepath="/Events", schemaclass=BaseSchema, mode="virtual"
        ).events()
        track(total)(is_open)
    events = read(path)
    track(total)(events[events.x < 10])

    for chunk, n in zip(listener.chunks, (ENTRIES, 10), strict=True):
        assert (chunk["filename"], chunk["treename"], chunk["events"]) == (path, "Events", n)
        assert chunk["entry_stop"] == ENTRIES
        assert "dataset" not in chunk


def test_an_rntuple(listener, tmp_path):
    with uproot.recreate(tmp_path / "ntuple.root") as file:
        file.mkrntuple("Events", {"x": np.arange(20)})

    assert track(total)(read(str(tmp_path / "ntuple.root"))) == sum(range(20))

    [chunk] = listener.chunks
    assert (chunk["source"], chunk["treename"], chunk["events"]) == ("RNTuple", "Events", 20)


def test_a_parquet_file_is_named_by_metadata_only(listener, tmp_path):
    pytest.importorskip("pyarrow", minversion="17")  # as awkward needs it
    path = str(tmp_path / "table.parquet")
    ak.to_parquet(ak.Array({"x": np.arange(20)}), path)

    for metadata in (None, {"filename": path, "treename": "table"}):
        events = NanoEventsFactory.from_parquet(
            path, schemaclass=BaseSchema, mode="virtual", metadata=metadata
        ).events()
        assert track(total)(events) == sum(range(20))

    unnamed, named = listener.chunks
    assert [(c["source"], c["events"]) for c in (unnamed, named)] == [("Parquet", 20)] * 2
    assert {"filename", "treename", "file_uuid"}.isdisjoint(unnamed)
    assert (named["filename"], named["treename"]) == (path, "table")


class Rebuilt(SimpleNamespace):
    """Events that have no file of coffea's, as another framework may create them."""

    def __len__(self):
        return 3


@pytest.mark.parametrize("attrs", [{"attrs": {}}, {}])
def test_metadata_can_identify_a_chunk(listener, attrs):
    metadata = {"dataset": "DY", "filename": "a.root", "treename": "t", "fileuuid": "1-2"}

    assert track(len)(Rebuilt(metadata=metadata, **attrs)) == 3

    [chunk] = listener.chunks
    identity = {"dataset": "DY", "filename": "a.root", "treename": "t", "file_uuid": "12"}
    assert {name: chunk.get(name) for name in identity} == identity
    assert "events" not in chunk


def test_what_is_not_a_chunk_of_a_file_is_not_measured(listener):
    for events in (
        [1, 2, 3],
        ak.Array([1, 2, 3]),
        ak.Array({"metadata": [1, 2, 3]}),
        Rebuilt(metadata={"dataset": "DY"}),
        Rebuilt(metadata=7, attrs=None),
        Rebuilt(metadata={"filename": "a.root"}, dask={}),  # lazy
    ):
        assert track(len)(events) == 3
    assert listener == []


class Counts(ProcessorABC):
    """Returns an accumulator, whatever the inner processor returns."""

    def __init__(self, inner):
        self.inner = inner

    def process(self, events):
        call(self.inner, events)
        return {"chunks": 1}

    def postprocess(self, accumulator):
        return accumulator


@pytest.mark.parametrize("processor", [Abc(), track(Abc()), track(track(total))])
def test_a_chunk_of_coffeas_runner_is_measured_once(listener, path, processor):
    executor = IterativeExecutor(status=False)
    runner = Runner(executor=executor, schema=BaseSchema, chunksize=BASKET)

    runner({"DY": [path]}, treename="Events", processor_instance=Counts(processor))

    assert [chunk["entry_start"] for chunk in listener.chunks] == [0, 100, 200]
    # Measured by the outer call, which opens the file.
    assert all(chunk["open_seconds"] > 0 for chunk in listener.chunks)
    assert all(chunk["columns"] == ["x-data"] for chunk in listener.chunks)
