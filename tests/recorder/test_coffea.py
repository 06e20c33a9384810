"""Processors that say that they are to be measured: as they were, and measured once."""

import functools
import pickle
import sys
import uuid
from dataclasses import dataclass, field
from types import SimpleNamespace

import cloudpickle
import pytest

import roast_recorder
from roast_recorder import section
from roast_recorder.coffea.instrumentation import listen, stop_listening
from roast_recorder.coffea.tracking import track

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


@pytest.fixture
def told():
    """What is told while somebody listens."""
    told = []
    listen("test", told.append)
    yield told
    stop_listening("test")


def read(path, **options):
    """Open the events of the file, as one does by hand."""
    options = {"schemaclass": BaseSchema, "mode": "virtual", **options}
    return NanoEventsFactory.from_root({path: "Events"}, **options).events()


# -- processors of all kinds -----------------------------------------------------------------


class Abc(ProcessorABC):
    def __init__(self, factor=2):
        self.factor = factor

    def process(self, events):
        return {"x": self.factor * int(ak.sum(events.x)), "n": len(events)}

    def postprocess(self, accumulator):
        return accumulator


class Child(Abc):
    def process(self, events):
        return {**super().process(events), "child": True}


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


class Callable:
    factor = 5

    def __call__(self, events):
        return self.factor * int(ak.sum(events.x))


def total(events):
    """Sum of x."""
    return int(ak.sum(events.x))


def weighted(factor, events):
    return factor * total(events)


WITH_PROCESS = {
    "ProcessorABC": Abc(),
    "child": Child(),
    "frozen": Frozen(),
    "own attribute": OwnProcess(),
    "class method": OfClass(),
    "static method": Static(),
    "delegates": Delegates(Abc()),
    "calls itself": CallsItself(),
}
CALLABLES = {
    "function": total,
    "lambda": lambda events: -total(events),
    "partial": functools.partial(weighted, 7),
    "object": Callable(),
    "method": Abc().process,
}
ALL = {**WITH_PROCESS, **CALLABLES}


def call(processor, events):
    """Process events as coffea's Runner does."""
    return processor.process(events) if hasattr(processor, "process") else processor(events)


@pytest.mark.parametrize("processor", ALL.values(), ids=list(ALL))
def test_results_are_the_same_and_each_chunk_is_measured_once(told, path, processor):
    expected = call(processor, read(path))
    assert told == []

    assert call(track(processor), read(path)) == expected

    [one] = told
    assert one["chunk"]["events"] == ENTRIES
    assert one["chunk"]["until"] == "processed"


@pytest.mark.parametrize("processor", ALL.values(), ids=list(ALL))
def test_where_nobody_listens_the_events_themselves_are_handed_over(path, processor):
    events = read(path)

    assert call(track(processor), events) == call(processor, events)
    assert track(lambda given: given)(events) is events


@pytest.mark.parametrize("processor", WITH_PROCESS.values(), ids=list(WITH_PROCESS))
def test_the_original_stays_as_it_was(told, path, processor):
    before = dict(vars(processor))

    tracked = track(processor)
    call(processor, read(path))

    assert tracked is not processor
    assert type(tracked) is type(processor)
    assert vars(processor) == before
    assert told == []


@pytest.mark.parametrize("processor", ALL.values(), ids=list(ALL))
def test_it_measures_wherever_it_travels(told, path, processor):
    expected = call(processor, read(path))

    there = cloudpickle.loads(cloudpickle.dumps(track(processor)))

    assert call(there, read(path)) == expected
    assert len(told) == 1


@pytest.mark.parametrize(
    "processor",
    [Abc(), Frozen(), OfClass(), Static(), OwnProcess()],
    ids=lambda p: type(p).__name__,
)
def test_plain_pickle_carries_a_processor_too(told, path, processor):
    expected = call(processor, read(path))

    there = pickle.loads(pickle.dumps(track(processor)))

    assert call(there, read(path)) == expected
    assert len(told) == 1


def test_a_copy_that_travelled_has_attributes_of_its_own(path):
    tracked = track(Abc(factor=2))
    there = cloudpickle.loads(cloudpickle.dumps(tracked))

    there.factor = 10

    assert tracked.process(read(path))["x"] * 5 == there.process(read(path))["x"]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_set_afterwards_is_used_however_often_it_is_tracked(told, path, times):
    tracked = Abc(factor=1)
    for _ in range(times):
        tracked = track(tracked)
    tracked.factor = 10

    assert tracked.process(read(path))["x"] == 10 * sum(range(ENTRIES))
    assert len(told) == 1


def test_a_function_keeps_its_name_and_words():
    tracked = track(total)

    assert (tracked.__name__, tracked.__doc__) == ("total", "Sum of x.")
    assert tracked.__wrapped__ is total


def test_it_can_be_written_above_a_function(told, path):
    @track
    def length(events):
        return len(events)

    assert length(read(path)) == ENTRIES
    assert told[0]["chunk"]["events"] == ENTRIES


@dataclass(slots=True)
class Slotted:
    factor: int = 2

    def process(self, events):
        return self.factor * total(events)


SLOTTED = (
    f"track() finds no room in {Slotted()!r}, whose class has __slots__: "
    "track its method, processor.process"
)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (7, "track() takes a processor or a function of events, not 7"),
        (None, "track() takes a processor or a function of events, not None"),
        ("Abc", "track() takes a processor or a function of events, not 'Abc'"),
        (Abc, f"track() takes a processor or a function of events, not {Abc!r}"),
        (Slotted(), SLOTTED),
    ],
)
def test_what_cannot_be_tracked_is_named(wrong, text):
    with pytest.raises(TypeError) as caught:
        track(wrong)

    assert str(caught.value) == text


def test_the_method_of_what_has_slots_can_be_tracked(told, path):
    assert track(Slotted().process)(read(path)) == 2 * sum(range(ENTRIES))
    assert len(told) == 1


def test_an_exception_is_told_and_raised_as_it_is(told, path):
    error = ValueError("no jets")

    def fails(_):
        raise error

    with pytest.raises(ValueError, match="no jets") as caught:
        track(fails)(read(path))

    assert caught.value is error
    assert told[0]["chunk"]["exception"] == "ValueError('no jets')"
    assert told[0]["chunk"]["filename"] == path


# -- what is told of events that were read by hand -------------------------------------------


def test_all_that_is_known_of_a_chunk(told, path):
    metadata = {"dataset": "DY", "year": 2018}
    with uproot.open(path) as file:
        file_uuid, branch = file.file.uuid, file["Events"]["x"]
        in_two_baskets = sum(branch.basket_compressed_bytes(number) for number in (1, 2))

    track(total)(read(path, metadata=metadata, entry_start=150, entry_stop=250))

    chunk = told[0]["chunk"]
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
    assert "open_seconds" not in chunk  # that was before


def test_bytes_are_those_that_were_read_meanwhile_not_since_the_file_was_opened(told, path):
    events = read(path)
    process = track(lambda events: int(ak.sum(events.x)))

    process(events)
    process(events)

    first, second = (one["chunk"] for one in told)
    # Opening was before, and what has been read stays in memory.
    assert first["bytes_read"] == sum(one["compressed_bytes"] for one in first["branches"]) > 0
    assert (second["bytes_read"], second["requests"], second["branches"]) == (0, 0, [])


def test_columns_are_told_if_somebody_notes_them_and_only_those_of_the_chunk(told, path):
    log = []
    events = read(path, access_log=log)
    ak.sum(events.y)

    track(total)(events)

    assert {access.branch for access in log} == {"x", "y"}
    assert told[0]["chunk"]["columns"] == ["x-data"]


def test_events_without_metadata_have_their_names_from_the_file(told, path):
    track(total)(read(path))

    chunk = told[0]["chunk"]
    assert (chunk["filename"], chunk["treename"]) == (path, "Events")
    assert "dataset" not in chunk


def test_a_file_that_is_open_already_is_known_too(told, path):
    with uproot.open(path) as file:
        made = NanoEventsFactory.from_root(
            file, treepath="/Events", schemaclass=BaseSchema, mode="virtual"
        )
        track(total)(made.events())

    chunk = told[0]["chunk"]
    assert (chunk["filename"], chunk["treename"], chunk["events"]) == (path, "Events", ENTRIES)


def test_what_was_read_eagerly_was_read_before(told, path):
    assert track(total)(read(path, mode="eager")) == sum(range(ENTRIES))

    assert told[0]["chunk"]["branches"] == []


def test_events_that_are_selected_first_are_still_of_their_file(told, path):
    events = read(path)

    track(total)(events[events.x < 10])

    chunk = told[0]["chunk"]
    assert (chunk["filename"], chunk["events"], chunk["entry_stop"]) == (path, 10, ENTRIES)


def test_an_rntuple_is_one(told, tmp_path):
    with uproot.recreate(tmp_path / "ntuple.root") as file:
        file.mkrntuple("Events", {"x": np.arange(20)})

    assert track(total)(read(str(tmp_path / "ntuple.root"))) == sum(range(20))

    chunk = told[0]["chunk"]
    assert (chunk["source"], chunk["treename"], chunk["events"]) == ("RNTuple", "Events", 20)


def test_of_parquet_only_metadata_tells_the_file(told, tmp_path):
    pytest.importorskip("pyarrow", minversion="17")  # as awkward needs it
    path = str(tmp_path / "table.parquet")
    ak.to_parquet(ak.Array({"x": np.arange(20)}), path)

    for metadata in (None, {"filename": path, "treename": "table"}):
        events = NanoEventsFactory.from_parquet(
            path, schemaclass=BaseSchema, mode="virtual", metadata=metadata
        ).events()
        assert track(total)(events) == sum(range(20))

    silent, named = (one["chunk"] for one in told)
    assert [one["chunk"]["source"] for one in told] == ["Parquet", "Parquet"]
    assert [one["chunk"]["events"] for one in told] == [20, 20]
    assert {"filename", "treename", "file_uuid"}.isdisjoint(silent)
    assert (named["filename"], named["treename"]) == (path, "table")


class Rebuilt(SimpleNamespace):
    """Events that know of no file of coffea's, as a framework of one's own may make them."""

    def __len__(self):
        return 3


@pytest.mark.parametrize("with_attrs", [True, False])
def test_what_metadata_says_is_enough_to_be_a_chunk(told, with_attrs):
    metadata = {"dataset": "DY", "filename": "a.root", "treename": "t", "fileuuid": "1-2"}
    events = Rebuilt(metadata=metadata, **({"attrs": {}} if with_attrs else {}))

    assert track(len)(events) == 3

    chunk = told[0]["chunk"]
    identity = {"dataset": "DY", "filename": "a.root", "treename": "t", "file_uuid": "12"}
    assert {name: chunk.get(name) for name in identity} == identity
    assert "events" not in chunk


@pytest.mark.parametrize(
    "events",
    [
        [1, 2, 3],
        np.arange(3),
        ak.Array([1, 2, 3]),
        ak.Array({"metadata": [1, 2, 3]}),
        Rebuilt(metadata={"dataset": "DY"}),
        Rebuilt(metadata=7, attrs=None),
        Rebuilt(metadata={"filename": "a.root"}, dask={}),
    ],
    ids=["list", "numpy", "awkward", "column", "no file", "nonsense", "not read yet"],
)
def test_what_is_no_chunk_of_a_file_is_not_measured(told, events):
    assert track(len)(events) == 3
    assert told == []


# -- where it is measured already ------------------------------------------------------------


@pytest.mark.parametrize("processor", [Abc(), total], ids=["ProcessorABC", "function"])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_chunk_of_coffeas_runner_is_measured_once(told, path, processor, times):
    for _ in range(times):
        processor = track(processor)
    runner = Runner(
        executor=IterativeExecutor(status=False), schema=BaseSchema, chunksize=BASKET
    )

    runner({"DY": [path]}, treename="Events", processor_instance=Counts(processor))

    assert [one["chunk"]["entry_start"] for one in told] == [0, 100, 200]
    # Who measured is who saw the file being opened.
    assert all(one["chunk"]["open_seconds"] > 0 for one in told)
    assert all(one["chunk"]["columns"] == ["x-data"] for one in told)


class Counts(ProcessorABC):
    """Gives coffea an accumulator, whatever is inside."""

    def __init__(self, inner):
        self.inner = inner

    def process(self, events):
        call(self.inner, events)
        return {"chunks": 1}

    def postprocess(self, accumulator):
        return accumulator


# -- on a cluster ----------------------------------------------------------------------------


def in_parts(events):
    with section("sum"):
        return total(events)


def by_hand(processor, path, start, stop):
    events = read(path, metadata={"dataset": "DY"}, entry_start=start, entry_stop=stop)
    return call(processor, events)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "processor", [in_parts, Frozen(factor=1)], ids=["function", "processor"]
)
def test_an_ordinary_task_is_a_chunk(client, path, tmp_path, read_lines, processor):
    chunks = [(start, start + BASKET) for start in range(0, ENTRIES, BASKET)]
    # Workers cannot import this file.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with roast_recorder.record(client, tmp_path / "trace.jsonl"):
            sums = client.map(
                lambda chunk: by_hand(track(processor), path, *chunk), chunks, key="by hand"
            )
            assert sum(client.gather(sums)) == sum(range(ENTRIES))
            keys = [future.key for future in sums]
        later = client.submit(by_hand, track(processor), path, 0, 10, key="later")
        assert later.result() == sum(range(10))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])

    lines = read_lines(tmp_path / "trace.jsonl")
    measured = [line for line in lines if line["kind"] == "chunk"]
    assert [
        (line["key"], line["entry_start"], line["entry_stop"])
        for line in sorted(measured, key=lambda line: line["entry_start"])
    ] == [(key, *chunk) for key, chunk in zip(keys, chunks, strict=True)]
    for line in measured:
        assert (line["dataset"], line["filename"]) == ("DY", path)
        assert line["run_id"] in {
            task.get("run_id") for task in lines if task.get("key") == line["key"]
        }
    parts = [line for line in lines if line["kind"] == "section"]
    assert len(parts) == (3 if processor is in_parts else 0)
    assert {part["key"] for part in parts} <= set(keys)
