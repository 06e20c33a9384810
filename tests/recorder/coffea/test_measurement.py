"""Measuring a chunk does not change its results, whatever fails."""

import contextlib
import gc
import os
import threading
import time
import traceback
import weakref
from types import SimpleNamespace

import pytest

from roast_recorder.coffea import measurement
from roast_recorder.coffea.instrumentation import remove_listener
from roast_recorder.coffea.measurement import (
    MAX_SECTIONS,
    MEMORY_INTERVAL_SECONDS,
    call_measured,
    current_measurement,
    memory_bytes,
    read_clocks,
)
from roast_recorder.exception_text import MAX_EXCEPTION_LENGTH
from roast_recorder.process_state import here

IDENTITY = {"dataset": "DY", "filename": "f.root", "usermeta": None}


def measure(function, *arguments, until="processed", identity=IDENTITY, **keywords):
    return call_measured(lambda: identity, until, function, arguments, keywords)


def open_events(events=40, entries=(10, 50), timed=True, table=None):
    """Open events as coffea's NanoEventsFactory does; return the source of its columns."""
    mapping = SimpleNamespace(_cache={"": table}, _start=entries[0], _stop=entries[1])
    factory = SimpleNamespace(_mapping=mapping, file_handle=None, access_log=None)
    current_measurement().open_events(factory, range(events), timed=timed)
    return mapping


# -- the call --------------------------------------------------------------------------------


def test_arguments_and_result_are_passed_through(listener):
    def process(*arguments, **keywords):
        return arguments, keywords

    for identity in (IDENTITY, None):
        assert measure(process, 1, events=3, identity=identity) == ((1,), {"events": 3})
    assert len(listener) == 1  # nothing is measured without an identity
    measure(remove_listener, "test")
    asked = []
    call_measured(lambda: asked.append(1), "processed", process, (), {})
    assert (len(listener), asked) == (1, [])


class OddError(Exception):
    """An exception whose repr is arbitrary, or raises."""

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        if isinstance(self._text, Exception):
            raise self._text
        return self._text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyboardInterrupt(), "KeyboardInterrupt()"),
        (SystemExit(3), "SystemExit(3)"),
        (ValueError("x" * 20_000), "ValueError('" + "x" * (MAX_EXCEPTION_LENGTH - 12)),
        (OddError("y" * 10_001), "y" * MAX_EXCEPTION_LENGTH),
        (OddError(ZeroDivisionError()), "OddError: its text cannot be read"),
        (OddError(17), "OddError: its text cannot be read"),
    ],
)
def test_exceptions_are_raised_unchanged_and_their_text_is_bounded(listener, error, text):
    def process():
        raise error

    with pytest.raises(type(error)) as caught:
        measure(process)

    assert caught.value is error
    assert traceback.extract_tb(error.__traceback__)[-1].name == "process"
    assert error.__context__ is error.__cause__ is None
    assert [chunk["exception"] for chunk in listener.chunks] == [text]


# -- the values ------------------------------------------------------------------------------


def test_values_of_a_chunk_that_opened_no_file(listener):
    before = time.time()
    measure(lambda: None)

    [chunk] = listener.chunks
    measured = chunk.pop("measured")
    assert measured.keys() >= {"until", "cpu_seconds", "memory_peak"}
    assert not measured.keys() & {"dataset", "thread", "start_t", "stop_t"}
    assert min(chunk.pop(f"memory_{when}") for when in ("before", "after", "peak")) > 1_000_000
    assert before <= chunk.pop("start_t") <= chunk.pop("stop_t") <= time.time() + 0.1
    assert chunk.pop("cpu_seconds") >= 0
    # Unknown values are absent.
    assert chunk == {
        "dataset": "DY",
        "filename": "f.root",
        "thread": threading.get_ident(),
        "until": "processed",
    }


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("until", ["processed", "read"])
def test_values_of_the_first_events_that_are_opened(listener, timed, until):
    def process():
        open_events(timed=timed)
        open_events(7, (0, 7))

    measure(process, until=until)

    [chunk] = listener.chunks
    assert (chunk["events"], chunk["entry_start"], chunk["entry_stop"]) == (40, 10, 50)
    assert ("open_seconds" in chunk) == timed
    assert chunk["read_seconds"] == 0
    # Without processing there is no processing time.
    processing = {"cpu_seconds", "process_seconds"}
    assert processing & chunk.keys() == (processing if until == "processed" else set())


def test_coffeas_own_processing_time_is_preferred(listener):
    def process(result):
        open_events()
        return result

    day = {"processtime": 86_400.0}
    for result in (
        {"out": 1, "processed": set(), "metrics": day},
        {"out": 1, "processed": set(), "metrics": {"processtime": "a day"}},
        {"out": 1, "metrics": day},  # the user's own dict
        [86_400.0],
    ):
        measure(process, result)

    first, *others = (chunk["process_seconds"] for chunk in listener.chunks)
    assert 0 < max(others) < first == 86_400.0


class Unreadable:
    """A table or branch whose every attribute raises."""

    num_baskets = 3  # of a TTree

    def __getattr__(self, name):
        raise OSError(name)


def test_reads_are_summed_and_values_that_the_file_lacks_are_absent(listener):
    def process():
        mapping = open_events(table=Unreadable())
        for name, seconds in (("Jet_pt", 0.5), ("Jet_pt", 0.25), ("MET_pt", 2.0)):
            mapping._access_log = [SimpleNamespace(branch=name)]
            current_measurement().end_column(seconds, mapping, Unreadable())

    measure(process)

    [chunk] = listener.chunks
    assert (chunk["events"], chunk["read_seconds"]) == (40, 2.75)
    assert chunk["branches"] == [
        {"branch": "Jet_pt", "read_seconds": 0.75},
        {"branch": "MET_pt", "read_seconds": 2.0},
    ]
    assert not {"source", "bytes_read", "requests", "file_branches"} & chunk.keys()


@pytest.mark.parametrize(("opens", "fails"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_only_a_successful_chunk_without_a_file_is_from_a_checkpoint(listener, opens, fails):
    def process():
        if opens:
            open_events()
        if fails:
            raise OSError("no such file")

    try:
        measure(process, identity={"from_checkpoint": True})
    except OSError:
        assert fails

    expected = None if opens or fails else True
    assert listener.chunks[0].get("from_checkpoint") == expected


def test_durations_ignore_changes_of_the_system_clock(listener, monkeypatch):
    times = iter([1_000.0])
    monkeypatch.setattr(measurement, "time", lambda: next(times, 10.0))

    measure(lambda: None)

    assert listener.chunks[0]["start_t"] == 1_000.0
    assert 1_000.0 <= listener.chunks[0]["stop_t"] < 2_000.0


@pytest.mark.parametrize(
    ("seconds", "times", "expected"),
    [
        ([1.0, 1.2, 1.2, 1.20001], [100.1, 100.2], (100.2, 1.2)),
        (range(6), [100.0, 102.0, 104.0], (104.0, 4)),
    ],
    ids=["second attempt", "three attempts at most"],
)
def test_clocks_are_read_again_after_an_interruption(monkeypatch, seconds, times, expected):
    monkeypatch.setattr(measurement, "perf_counter", iter(seconds).__next__)
    monkeypatch.setattr(measurement, "time", iter(times).__next__)

    assert read_clocks() == expected


# -- one measurement per chunk ---------------------------------------------------------------


def test_nested_calls_belong_to_the_outer_chunk(listener):
    def fail():
        raise ValueError("inner")

    def outer():
        chunk = current_measurement()
        assert measure(current_measurement, until="read") is chunk
        with pytest.raises(ValueError, match="inner"):
            measure(fail)
        return chunk is current_measurement() is not None

    assert measure(outer)
    assert [(c["until"], "exception" in c) for c in listener.chunks] == [("processed", False)]


def test_sections_beyond_the_limit_are_counted(listener):
    def process():
        for number in range(MAX_SECTIONS + 7):
            current_measurement().add_section({"name": number})

    measure(process)

    assert [section["name"] for section in listener.sections] == list(range(MAX_SECTIONS))
    [chunk], [loss] = listener.chunks, listener.of_kind("loss")
    assert loss == {
        "reason": "a chunk had more than 1000 sections",
        "record_kind": "section",
        "records": 7,
        "start_t": chunk["start_t"],
        "stop_t": chunk["stop_t"],
    }


@pytest.mark.parametrize(
    ("broken", "chunks"),
    [("memory_bytes", 0), ("thread_time", 0), ("_sample_memory", 2), ("a listener", 2)],
)
def test_errors_while_measuring_do_not_reach_the_task(listener, monkeypatch, broken, chunks):
    def fail(*_):
        raise OSError("no /proc")

    with monkeypatch.context() as patch:
        if broken == "a listener":
            patch.setattr(here(), "listeners", {"broken": fail, **here().listeners})
        else:
            patch.setattr(measurement, broken, fail)
        assert measure(lambda: "result") == "result"
        with pytest.raises(ZeroDivisionError):
            measure(lambda: 1 / 0)

    assert len(listener.chunks) == chunks
    assert call_measured(fail, "processed", lambda: "result", (), {}) == "result"


# -- memory ----------------------------------------------------------------------------------

#: Allocated by a chunk. The process may free memory of other tests meanwhile.
MUCH = 500_000_000
ENOUGH = 250_000_000


def test_the_peak_includes_memory_that_was_freed(listener):
    def process():
        taken = b"x" * MUCH
        until = time.monotonic() + 20
        while current_measurement().memory_peak < before + ENOUGH and time.monotonic() < until:
            time.sleep(0.01)
        return len(taken)

    before = memory_bytes()
    measure(process)

    [chunk] = listener.chunks
    assert abs(chunk["memory_before"] - before) < ENOUGH
    assert chunk["memory_peak"] >= before + ENOUGH > chunk["memory_after"]


def test_the_peak_includes_memory_freed_between_samples(listener, monkeypatch):
    monkeypatch.setattr(measurement, "_raise_peaks", lambda: False)
    highest = measurement._highest_memory_bytes()
    much = highest - memory_bytes() + MUCH

    assert measure(lambda: len(b"x" * much)) == much
    monkeypatch.setattr(measurement, "_highest_memory_bytes", lambda: 10**15)
    measure(lambda: None)

    first, second = (chunk["memory_peak"] for chunk in listener.chunks)
    assert first >= highest + ENOUGH > listener.chunks[0]["memory_after"]
    assert second < 10**15  # reached before that chunk


def test_a_fork_reads_its_own_memory(monkeypatch):
    monkeypatch.setattr(here(), "memory_reader", (os.getppid(), lambda: 1))

    assert memory_bytes() > 1_000_000


def test_the_sampling_thread_is_restarted(listener, monkeypatch):
    monkeypatch.setattr(measurement, "MEMORY_IDLE_SAMPLES", 1)
    monkeypatch.setattr(here(), "watcher", None)
    watchers = []
    for _ in range(2):
        measure(lambda: None)
        watchers.append(here().watcher)
        watchers[-1].join(20)

    assert watchers[0] is not watchers[1]
    assert not any(watcher.is_alive() for watcher in watchers)
    assert len(listener) == 2


@pytest.mark.parametrize("error", [None, OSError])
def test_the_file_is_released_when_the_chunk_ends(listener, monkeypatch, request, error):
    monkeypatch.setattr(measurement, "MEMORY_IDLE_SAMPLES", 1_000_000)
    gc.disable()  # it would collect the file even if it were in a cycle
    request.addfinalizer(gc.enable)

    def process(table):
        open_events(table=table)
        time.sleep(4 * MEMORY_INTERVAL_SECONDS)  # several memory samples
        if error:
            raise error

    table = Unreadable()
    file = weakref.ref(table)
    with contextlib.suppress(OSError):
        measure(process, table)
    del table

    until = time.monotonic() + 20
    while file() is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert file() is None
    assert len(listener) == 1


def test_bytes_of_a_file_that_cannot_be_mapped(folder, monkeypatch):
    def refuse(*_arguments, **_options):
        raise OSError("no memory map")

    uproot = pytest.importorskip("uproot")
    monkeypatch.setattr("numpy.memmap", refuse)
    with uproot.open(folder / "a.root", handler=uproot.MemmapSource) as file:
        file["Events/nJet"].array()

        requested = file.file.source.fallback.num_requested_bytes
        assert measurement._counter(file, "num_requested_bytes") == requested > 0
