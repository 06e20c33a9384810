"""What is measured is neither changed nor stopped by it, whatever goes wrong meanwhile."""

import gc
import threading
import time
import traceback
import weakref

import pytest

from roast_recorder.coffea import measurement as measuring
from roast_recorder.coffea.instrumentation import listen, stop_listening
from roast_recorder.coffea.measurement import (
    MAX_EXCEPTION_LENGTH,
    MAX_SECTIONS,
    MEMORY_INTERVAL_SECONDS,
    Measurement,
    both_clocks,
    current,
    loss_of_sections,
    measured,
    memory_bytes,
    text_of,
)
from roast_recorder.process_state import here

IDENTITY = {"dataset": "DY", "filename": "f.root", "usermeta": None}


@pytest.fixture
def told():
    """What a listener is told: a list that fills."""
    told = []
    listen("test", told.append)
    yield told
    stop_listening("test")
    assert current() is None
    assert here().measured == {}


def identity():
    return dict(IDENTITY)


def measure(function, *arguments, until="processed", **keywords):
    return measured(identity, until, function, arguments, keywords)


# -- nothing changes -------------------------------------------------------------------------


def test_arguments_and_result_pass_through(told):
    result = object()

    def process(*arguments, **keywords):
        return result, arguments, keywords

    assert measure(process, 1, 2, events=3) == (result, (1, 2), {"events": 3})
    assert len(told) == 1


@pytest.mark.parametrize(
    "error", [ValueError("no jets"), KeyboardInterrupt("now"), SystemExit(3), GeneratorExit()]
)
def test_what_is_raised_passes_through(told, error):
    def process():
        raise error

    def caught(call):
        with pytest.raises(type(error)) as info:
            call()
        return info.value

    assert caught(lambda: measure(process)) is error
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[-1].name == "process"
    assert error.__context__ is error.__cause__ is None
    assert [one["chunk"]["exception"] for one in told] == [repr(error)]


def test_how_an_exception_came_about_is_kept(told):
    def process():
        try:
            {}["Jet_pt"]
        except KeyError as error:
            raise RuntimeError("no jets") from error

    with pytest.raises(RuntimeError, match="no jets") as caught:
        measure(process)

    assert repr(caught.value.__cause__) == "KeyError('Jet_pt')"
    assert told[0]["chunk"]["exception"] == "RuntimeError('no jets')"


def test_nothing_is_measured_while_nobody_listens():
    asked = []

    assert measured(lambda: asked.append(1), "processed", current, (), {}) is None
    assert asked == []


def test_what_is_no_chunk_is_not_measured(told):
    assert measured(lambda: None, "processed", current, (), {}) is None
    assert told == []


# -- what is told ----------------------------------------------------------------------------


def test_what_is_known_of_a_chunk_that_opened_nothing(told):
    before = time.time()
    measure(lambda: None)

    [one] = told
    chunk = one["chunk"]
    memory = {chunk.pop(f"memory_{when}") for when in ("before", "after", "peak")}
    assert min(memory) > 1_000_000
    start_t, stop_t = chunk.pop("start_t"), chunk.pop("stop_t")
    assert before <= start_t <= stop_t
    assert chunk.pop("cpu_seconds") >= 0
    # What is not known is not there.
    assert chunk == {
        "dataset": "DY",
        "filename": "f.root",
        "thread": threading.get_ident(),
        "until": "processed",
    }
    assert one == {"chunk": chunk, "sections": [], "more_sections": 0}


def test_of_a_task_that_goes_on_neither_cpu_nor_processing_is_told(told):
    measure(open_events, until="read")

    chunk = told[0]["chunk"]
    assert chunk["until"] == "read"
    assert {"open_seconds", "read_seconds"} <= chunk.keys()
    assert not {"cpu_seconds", "process_seconds"} & chunk.keys()


def open_events(events=40, entries=(10, 50), timed=True, table=None):
    current().opened(table, None, events, entries, timed=timed)


@pytest.mark.parametrize("timed", [True, False])
def test_what_is_known_once_there_are_events(told, timed):
    measure(open_events, timed=timed)

    chunk = told[0]["chunk"]
    assert (chunk["events"], chunk["entry_start"], chunk["entry_stop"]) == (40, 10, 50)
    assert ("open_seconds" in chunk) == timed
    assert chunk["process_seconds"] >= 0
    assert chunk["read_seconds"] == 0


def test_the_first_events_are_the_chunks_own(told):
    def process():
        open_events(40, (10, 50))
        open_events(7, (0, 7))

    measure(process)

    chunk = told[0]["chunk"]
    assert (chunk["events"], chunk["entry_start"], chunk["entry_stop"]) == (40, 10, 50)


def test_coffeas_own_time_of_processing_is_taken_if_there_is_one(told):
    def process(result):
        open_events()
        return result

    measure(process, {"out": 1, "processed": set(), "metrics": {"processtime": 86_400.0}})
    measure(process, {"out": 1, "processed": set(), "metrics": {"processtime": "a day"}})
    measure(process, {"out": 1, "metrics": {"processtime": 86_400.0}})  # the user's own
    measure(process, [86_400.0])

    seconds = [one["chunk"]["process_seconds"] for one in told]
    assert seconds[0] == 86_400.0
    assert max(seconds[1:]) < 86_400.0


def test_seconds_of_reading_add_up(told):
    def process():
        open_events(table=object())
        measurement = current()
        measurement.touches("Jet_pt", None, 0.5)
        measurement.touches("Jet_pt", None, 0.25)
        measurement.touches("MET_pt", None, None)
        measurement.reads(2.0)

    measure(process)

    chunk = told[0]["chunk"]
    assert chunk["read_seconds"] == 2.75
    assert chunk["branches"] == [
        {"branch": "Jet_pt", "read_seconds": 0.75},
        {"branch": "MET_pt"},
    ]


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_only_what_opened_nothing_and_ended_well_came_from_a_checkpoint(told, opens, fails):
    def process():
        if opens:
            open_events()
        if fails:
            raise OSError("no such file")

    try:
        measured(lambda: {"from_checkpoint": True}, "processed", process, (), {})
    except OSError:
        assert fails

    assert told[0]["chunk"].get("from_checkpoint") == (None if opens or fails else True)


def test_a_clock_that_is_set_back_takes_no_time_away(told, monkeypatch):
    times = iter([1_000.0])
    monkeypatch.setattr(measuring, "time", lambda: next(times, 10.0))

    measure(lambda: None)

    chunk = told[0]["chunk"]
    assert chunk["start_t"] == 1_000.0
    assert 1_000.0 <= chunk["stop_t"] < 2_000.0


# -- one measurement a chunk -----------------------------------------------------------------


def test_calls_inside_of_a_chunk_are_part_of_it(told):
    asked = []

    def inner():
        return current()

    def outer():
        outside = current()
        inside = measured(lambda: asked.append(1), "read", inner, (), {})
        return outside is inside is current()

    assert measure(outer)

    assert asked == []
    assert [one["chunk"]["until"] for one in told] == ["processed"]


def test_a_chunk_that_fails_inside_of_another_is_not_told_of(told):
    def outer():
        with pytest.raises(ValueError, match="inner"):
            measure(fail)
        return current() is not None

    def fail():
        raise ValueError("inner")

    assert measure(outer)
    assert ["exception" in one["chunk"] for one in told] == [False]


def test_chunks_of_two_threads_are_two(told):
    both = threading.Barrier(2, timeout=20)

    def process(number):
        open_events(number)
        both.wait()
        measurement = current()
        both.wait()
        return measurement

    results = {}
    threads = [
        threading.Thread(target=lambda n=n: results.update({n: measure(process, n)}))
        for n in (1, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results[1] is not results[2]
    assert sorted(one["chunk"]["events"] for one in told) == [1, 2]
    assert len({one["chunk"]["thread"] for one in told}) == 2


def test_one_chunk_after_another_in_a_thread(told):
    for number in (1, 2):
        measure(open_events, number)

    assert [one["chunk"]["events"] for one in told] == [1, 2]


# -- what goes wrong -------------------------------------------------------------------------


def test_a_chunk_that_cannot_be_told_apart_is_processed_all_the_same(told):
    def broken():
        raise AttributeError("no dataset")

    assert measured(broken, "processed", lambda: "result", (), {}) == "result"
    assert told == []


@pytest.mark.parametrize(
    ("name", "chunks"), [("memory_bytes", 0), ("thread_time", 0), ("_watch_memory_for", 2)]
)
def test_figures_that_cannot_be_had_stop_nothing(told, monkeypatch, name, chunks):
    def broken(*_):
        raise OSError("no /proc")

    monkeypatch.setattr(measuring, name, broken)

    assert measure(lambda: "result") == "result"
    with pytest.raises(ZeroDivisionError):
        measure(lambda: 1 / 0)
    assert len(told) == chunks


def test_a_listener_that_raises_keeps_nobody_else_from_listening(told):
    def broken(_measured):
        raise RuntimeError("ours")

    here().listeners.clear()
    listen("broken", broken)
    listen("test", told.append)
    try:
        assert measure(lambda: "result") == "result"
        with pytest.raises(ZeroDivisionError):
            measure(lambda: 1 / 0)
    finally:
        stop_listening("broken")

    assert [one["chunk"].get("exception") for one in told] == [
        None,
        "ZeroDivisionError('division by zero')",
    ]


def test_who_stops_listening_meanwhile_is_told_nothing(told):
    measure(stop_listening, "test")

    assert told == []


class Table:
    """A file that answers nothing."""

    def __getattr__(self, name):
        raise OSError(name)


def test_what_a_file_does_not_tell_is_left_out(told):
    class Odd(Table):
        num_baskets = 3  # it looks like a tree

    def process():
        open_events(table=Odd())
        current().touches("Jet_pt", Odd(), 0.5)

    measure(process)

    chunk = told[0]["chunk"]
    assert chunk["events"] == 40
    assert chunk["branches"] == [{"branch": "Jet_pt", "read_seconds": 0.5}]
    assert not {"source", "bytes_read", "requests", "file_branches"} & chunk.keys()


class UnspeakableError(Exception):
    def __init__(self, text):
        self._text = text

    def __repr__(self):
        if isinstance(self._text, Exception):
            raise self._text
        return self._text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no jets"), "ValueError('no jets')"),
        (ValueError("x" * 20_000), "ValueError('" + "x" * (MAX_EXCEPTION_LENGTH - 12)),
        (UnspeakableError("y" * 10_001), "y" * MAX_EXCEPTION_LENGTH),
        (UnspeakableError(ZeroDivisionError()), "<UnspeakableError>"),
        (UnspeakableError(RecursionError()), "<UnspeakableError>"),
        (UnspeakableError(17), "<UnspeakableError>"),
    ],
)
def test_the_text_of_an_exception_is_bounded_and_always_there(told, error, text):
    def process():
        raise error

    assert text_of(error) == text
    with pytest.raises(type(error)) as caught:
        measure(process)

    assert caught.value is error
    assert told[0]["chunk"]["exception"] == text


def test_too_many_sections_are_counted(told):
    def process():
        for number in range(MAX_SECTIONS + 7):
            current().add_section({"name": str(number)})

    measure(process)

    [one] = told
    assert [section["name"] for section in one["sections"]] == list(
        map(str, range(MAX_SECTIONS))
    )
    assert loss_of_sections(one) == {
        "reason": "a chunk passed through more named sections than are recorded",
        "record_kind": "section",
        "records": 7,
        "start_t": one["chunk"]["start_t"],
        "stop_t": one["chunk"]["stop_t"],
    }


# -- memory ----------------------------------------------------------------------------------

MUCH = 150_000_000


def test_memory_that_is_taken_and_given_back_is_in_the_peak(told):
    def process():
        taken = b"x" * MUCH
        until = time.monotonic() + 20
        while current().memory_peak < before + MUCH and time.monotonic() < until:
            time.sleep(0.01)
        return len(taken)

    # What other tests left behind must not go while this one measures.
    gc.collect()
    before = memory_bytes()
    measure(process)

    chunk = told[0]["chunk"]
    assert chunk["memory_before"] >= before
    assert chunk["memory_peak"] >= before + MUCH
    assert chunk["memory_after"] < before + MUCH


def test_so_is_what_is_given_back_before_anybody_looks(told, monkeypatch):
    monkeypatch.setattr(measuring, "_watch_memory_for", lambda _measurement: None)
    highest = measuring._highest_memory_bytes()
    if highest is None:
        pytest.skip("this system does not tell the most memory that a process ever had")
    much = highest - memory_bytes() + MUCH

    assert measure(lambda: len(b"x" * much)) == much

    chunk = told[0]["chunk"]
    assert chunk["memory_peak"] >= highest + 0.9 * MUCH
    assert chunk["memory_after"] < highest + 0.9 * MUCH


def test_what_was_highest_before_is_not_the_chunks(told, monkeypatch):
    monkeypatch.setattr(measuring, "_highest_memory_bytes", lambda: 10**15)

    measure(lambda: None)

    assert told[0]["chunk"]["memory_peak"] < 10**15


def test_the_thread_that_looks_at_memory_comes_again_when_it_is_needed(told, monkeypatch):
    monkeypatch.setattr(measuring, "MEMORY_LINGER_LOOKS", 1)
    monkeypatch.setattr(here(), "watcher", None)
    measure(lambda: None)
    first = here().watcher
    first.join(20)
    assert not first.is_alive()

    measure(lambda: None)

    assert here().watcher is not first
    here().watcher.join(20)
    assert len(told) == 2


def test_a_file_is_let_go_when_its_chunk_has_ended(told, monkeypatch):
    monkeypatch.setattr(measuring, "MEMORY_LINGER_LOOKS", 1_000_000)

    def process(table):
        open_events(table=table)
        current().touches("Jet_pt", table, None)
        time.sleep(4 * MEMORY_INTERVAL_SECONDS)  # somebody looks at the memory meanwhile

    table = Table()
    file = weakref.ref(table)
    measure(process, table)
    del table

    until = time.monotonic() + 20
    while file() is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert file() is None
    assert len(told) == 1


def test_a_measurement_begins_with_the_memory_that_is_there():
    measurement = Measurement({}, "read")

    assert measurement.memory_peak == measurement.end()["chunk"]["memory_before"] > 0


def test_both_clocks_are_read_again_if_the_thread_had_to_wait_between(monkeypatch):
    seconds = iter([1.0, 1.2, 1.2, 1.20001])
    days = iter([100.1, 100.2])
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(measuring, "time", lambda: next(days))

    assert both_clocks() == (100.2, 1.2)


def test_both_clocks_are_read_three_times_at_most(monkeypatch):
    seconds = iter(range(6))
    days = iter([100.0, 102.0, 104.0])
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(measuring, "time", lambda: next(days))

    assert both_clocks() == (104.0, 4)
