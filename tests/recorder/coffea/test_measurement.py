"""Measuring a chunk changes nothing about it, whatever fails."""

import gc
import threading
import time
import traceback
import weakref

import pytest

from roast_recorder.coffea import measurement
from roast_recorder.coffea.instrumentation import add_listener, remove_listener
from roast_recorder.coffea.measurement import (
    MAX_EXCEPTION_LENGTH,
    MAX_SECTIONS,
    MEMORY_INTERVAL_SECONDS,
    call_measured,
    current_measurement,
    exception_text,
    memory_bytes,
    read_clocks,
)
from roast_recorder.process_state import here

IDENTITY = {"dataset": "DY", "filename": "f.root", "usermeta": None}


def measure(function, *arguments, until="processed", identity=IDENTITY, **keywords):
    return call_measured(lambda: identity, until, function, arguments, keywords)


def open_events(events=40, entries=(10, 50), timed=True, table=None):
    current_measurement().opened(table, None, events, entries, timed=timed)


# -- the call --------------------------------------------------------------------------------


def test_arguments_and_result_are_passed_through(listener):
    result = object()

    def process(*arguments, **keywords):
        return result, arguments, keywords

    assert measure(process, 1, 2, events=3) == (result, (1, 2), {"events": 3})
    assert len(listener.chunks) == 1


@pytest.mark.parametrize("error", [ValueError("no jets"), KeyboardInterrupt(), SystemExit(3)])
def test_exceptions_are_raised_unchanged(listener, error):
    def process():
        raise error

    with pytest.raises(type(error)) as caught:
        measure(process)

    assert caught.value is error
    assert traceback.extract_tb(error.__traceback__)[-1].name == "process"
    assert error.__context__ is error.__cause__ is None
    assert [chunk["exception"] for chunk in listener.chunks] == [repr(error)]


def test_nothing_is_measured_without_listener_or_identity(listener):
    assert call_measured(lambda: None, "processed", current_measurement, (), {}) is None
    remove_listener("test")
    asked = []
    call_measured(lambda: asked.append(1), "processed", current_measurement, (), {})

    assert (listener, asked) == ([], [])


# -- the values ------------------------------------------------------------------------------


def test_values_of_a_chunk_that_opened_no_file(listener):
    before = time.time()
    measure(lambda: None)

    [chunk] = listener.chunks
    del chunk["measured"]
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
    [[(_, fields)]] = listener
    assert {"until", "cpu_seconds", "memory_peak"} <= fields["measured"].keys()
    assert fields.keys() >= {"dataset", "thread", "start_t", "stop_t"}


def test_a_chunk_that_is_only_read_has_no_processing_time(listener):
    measure(open_events, until="read")

    [chunk] = listener.chunks
    assert chunk["until"] == "read"
    assert {"open_seconds", "read_seconds"} <= chunk.keys()
    assert not {"cpu_seconds", "process_seconds"} & chunk.keys()


@pytest.mark.parametrize("timed", [True, False])
def test_values_of_the_first_events_that_are_opened(listener, timed):
    def process():
        open_events(timed=timed)
        open_events(7, (0, 7))

    measure(process)

    [chunk] = listener.chunks
    assert (chunk["events"], chunk["entry_start"], chunk["entry_stop"]) == (40, 10, 50)
    assert ("open_seconds" in chunk) == timed
    assert chunk["process_seconds"] >= chunk["read_seconds"] == 0


def test_coffeas_own_processing_time_is_preferred(listener):
    def process(result):
        open_events()
        return result

    for result in (
        {"out": 1, "processed": set(), "metrics": {"processtime": 86_400.0}},
        {"out": 1, "processed": set(), "metrics": {"processtime": "a day"}},
        {"out": 1, "metrics": {"processtime": 86_400.0}},  # the user's own dict
        [86_400.0],
    ):
        measure(process, result)

    first, *others = (chunk["process_seconds"] for chunk in listener.chunks)
    assert first == 86_400.0
    assert max(others) < 86_400.0


def test_read_seconds_are_summed(listener):
    def process():
        open_events(table=object())
        chunk = current_measurement()
        chunk.add_branch("Jet_pt", None, 0.5)
        chunk.add_branch("Jet_pt", None, 0.25)
        chunk.add_branch("MET_pt", None, None)
        chunk.read_seconds += 2.0

    measure(process)

    [chunk] = listener.chunks
    assert chunk["read_seconds"] == 2.75
    assert chunk["branches"] == [
        {"branch": "Jet_pt", "read_seconds": 0.75},
        {"branch": "MET_pt"},
    ]


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
    seconds, times = iter(seconds), iter(times)
    monkeypatch.setattr(measurement, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(measurement, "time", lambda: next(times))

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


def test_threads_have_separate_measurements(listener):
    barrier = threading.Barrier(2, timeout=20)

    def process(number):
        open_events(number)
        barrier.wait()

    threads = [threading.Thread(target=measure, args=(process, n)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    measure(open_events, 3)

    assert sorted(chunk["events"] for chunk in listener.chunks) == [1, 2, 3]
    assert len({chunk["thread"] for chunk in listener.chunks}) == 3


def test_sections_beyond_the_limit_are_counted(listener):
    def process():
        for number in range(MAX_SECTIONS + 7):
            current_measurement().add_section({"name": str(number)})

    measure(process)

    names = [section["name"] for section in listener.sections]
    assert names == [str(number) for number in range(MAX_SECTIONS)]
    [chunk], [loss] = listener.chunks, listener.of_kind("loss")
    assert loss == {
        "reason": "a chunk had more than 1000 sections",
        "record_kind": "section",
        "records": 7,
        "start_t": chunk["start_t"],
        "stop_t": chunk["stop_t"],
    }


# -- errors of the recorder ------------------------------------------------------------------


def test_errors_while_measuring_do_not_reach_the_task(listener, monkeypatch):
    def broken(*_):
        raise OSError("no /proc")

    def run_both():
        assert measure(lambda: "result") == "result"
        with pytest.raises(ZeroDivisionError):
            measure(lambda: 1 / 0)

    assert call_measured(broken, "processed", lambda: "result", (), {}) == "result"
    for name, chunks in (("memory_bytes", 0), ("thread_time", 0), ("_sample_memory", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(measurement, name, broken)
            listener.clear()
            run_both()
        assert len(listener.chunks) == chunks, name
    add_listener("broken", broken)
    here().listeners["test"] = here().listeners.pop("test")  # after the broken one
    try:
        listener.clear()
        run_both()
    finally:
        remove_listener("broken")
    assert len(listener.chunks) == 2


def test_a_listener_removed_during_a_chunk_receives_nothing(listener):
    measure(remove_listener, "test")

    assert listener == []


class Unreadable:
    """A table or branch that raises whenever it is asked."""

    num_baskets = 3  # of a TTree

    def __getattr__(self, name):
        raise OSError(name)


def test_what_a_file_does_not_provide_is_absent(listener):
    def process():
        open_events(table=Unreadable())
        current_measurement().add_branch("Jet_pt", Unreadable(), 0.5)

    measure(process)

    [chunk] = listener.chunks
    assert chunk["events"] == 40
    assert chunk["branches"] == [{"branch": "Jet_pt", "read_seconds": 0.5}]
    assert not {"source", "bytes_read", "requests", "file_branches"} & chunk.keys()


class OddError(Exception):
    """An exception whose repr is anything, or fails."""

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        if isinstance(self._text, Exception):
            raise self._text
        return self._text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("x" * 20_000), "ValueError('" + "x" * (MAX_EXCEPTION_LENGTH - 12)),
        (OddError("y" * 10_001), "y" * MAX_EXCEPTION_LENGTH),
        (OddError(ZeroDivisionError()), "<OddError>"),
        (OddError(17), "<OddError>"),
    ],
)
def test_exception_texts_are_bounded_and_never_fail(listener, error, text):
    def process():
        raise error

    with pytest.raises(type(error)):
        measure(process)

    assert exception_text(error) == listener.chunks[0]["exception"] == text


# -- memory ----------------------------------------------------------------------------------

MUCH = 150_000_000


def test_the_peak_includes_memory_that_was_freed(listener):
    def process():
        taken = b"x" * MUCH
        until = time.monotonic() + 20
        while current_measurement().memory_peak < before + MUCH and time.monotonic() < until:
            time.sleep(0.01)
        return len(taken)

    gc.collect()  # what other tests left must not be freed during the measurement
    before = memory_bytes()
    measure(process)

    [chunk] = listener.chunks
    assert chunk["memory_before"] >= before
    assert chunk["memory_peak"] >= before + MUCH > chunk["memory_after"]


def test_the_peak_includes_memory_freed_between_samples(listener, monkeypatch):
    monkeypatch.setattr(measurement, "_raise_peaks", lambda: False)
    highest = measurement._highest_memory_bytes()
    much = highest - memory_bytes() + MUCH

    assert measure(lambda: len(b"x" * much)) == much
    monkeypatch.setattr(measurement, "_highest_memory_bytes", lambda: 10**15)
    measure(lambda: None)

    first, second = (chunk["memory_peak"] for chunk in listener.chunks)
    assert first >= highest + 0.9 * MUCH > listener.chunks[0]["memory_after"]
    assert second < 10**15  # reached before that chunk


def test_the_sampling_thread_is_restarted(listener, monkeypatch):
    monkeypatch.setattr(measurement, "MEMORY_IDLE_SAMPLES", 1)
    monkeypatch.setattr(here(), "watcher", None)
    threads = []
    for _ in range(2):
        measure(lambda: None)
        threads.append(here().watcher)
        threads[-1].join(20)
        assert not threads[-1].is_alive()

    assert threads[0] is not threads[1]
    assert len(listener) == 2


def test_the_file_is_released_when_the_chunk_ends(listener, monkeypatch):
    monkeypatch.setattr(measurement, "MEMORY_IDLE_SAMPLES", 1_000_000)

    def process(table):
        open_events(table=table)
        current_measurement().add_branch("Jet_pt", table, None)
        time.sleep(4 * MEMORY_INTERVAL_SECONDS)  # several memory samples

    table = Unreadable()
    file = weakref.ref(table)
    measure(process, table)
    del table

    until = time.monotonic() + 20
    while file() is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert file() is None
    assert len(listener) == 1
