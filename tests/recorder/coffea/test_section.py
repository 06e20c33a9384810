"""Sections: each execution is recorded once, without effect on the task."""

import contextlib
import pickle
import threading

import cloudpickle
import pytest

from roast_recorder import section
from roast_recorder.coffea import section as section_module
from roast_recorder.coffea.instrumentation import add_listener, remove_listener


def names(listener):
    return [fields["name"] for fields in listener.sections]


class Unprintable:
    def __str__(self):
        raise AssertionError("the name is not needed")


def test_nothing_is_read_without_a_recording(monkeypatch):
    calls = []
    for name in ("perf_counter", "thread_time", "read_clocks", "memory_bytes", "_bytes_read"):
        monkeypatch.setattr(section_module, name, lambda *_, name=name: calls.append(name))
    part = section(Unprintable())
    before = dict(vars(part))

    with part, part:
        pass
    with pytest.raises(KeyError), part:
        raise KeyError

    assert (calls, vars(part)) == ([], before)


def test_sections_that_cross_the_limits_of_a_recording_are_not_recorded(listener):
    remove_listener("test")
    with section("begun before"):
        add_listener("test", listener.append)
        with section("inside"):
            pass
    with section("ended after"):
        remove_listener("test")

    assert names(listener) == ["inside"]


def test_values_of_sections(listener):
    kept = []
    for name in ("", "Jets ≥ 2", 7, None):  # any name is recorded as text
        with section(name):
            pass
    with section("takes"):
        kept.append(b"\1" * 2**26)

    assert names(listener) == ["", "Jets ≥ 2", "7", "None", "takes"]
    for [(kind, record)] in listener:
        assert kind == "section"
        assert record.keys() == {"name", "thread", "start_t", "stop_t", "measured"}
        assert record["measured"].keys() == {"cpu_seconds", "memory_delta"}
        assert record["thread"] == threading.get_ident()
        assert record["start_t"] <= record["stop_t"]
        assert record["measured"]["cpu_seconds"] >= 0
    *others, takes = (fields["memory_delta"] for fields in listener.sections)
    assert max(others) < 2**25
    assert takes == pytest.approx(2**26, rel=0.2)


def test_nested_sections_lie_within_each_other(listener):
    part = section("outer")
    with part:
        with section("first"):
            pass
        with part:  # the same object again
            sum(range(10_000))

    first, second, outer = listener.sections
    assert names(listener) == ["first", "outer", "outer"]
    # Ends are computed from another clock, which is read slightly later.
    moment = 1e-3
    seconds = [fields["stop_t"] - fields["start_t"] for fields in (first, second, outer)]
    assert seconds[0] + seconds[1] <= seconds[2] + 1e-6
    assert outer["start_t"] <= first["start_t"] <= first["stop_t"]
    assert first["stop_t"] <= second["start_t"] + moment
    assert second["stop_t"] <= outer["stop_t"] + moment
    assert first["cpu_seconds"] + second["cpu_seconds"] <= outer["cpu_seconds"]


def test_threads_can_use_one_object_concurrently(listener):
    part, barrier = section("jets"), threading.Barrier(3)

    def run():
        with part:
            barrier.wait()
            sum(range(10_000))
            barrier.wait()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {fields["thread"] for fields in listener.sections} == {t.ident for t in threads}
    # With the CPU clock of another thread they would be arbitrary.
    assert all(fields["cpu_seconds"] > 0 for fields in listener.sections)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_a_pickled_copy_is_not_entered(listener, pickler):
    part = section("jets")

    with part:
        copy = pickle.loads(pickler.dumps(part))
        assert vars(copy) == vars(section("jets"))
        with copy:
            pass

    inner, outer = listener.sections
    assert inner["start_t"] > outer["start_t"]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_exceptions_are_recorded_where_they_pass_and_raised_unchanged(listener, error):
    def process():
        with section("over"):
            pass
        with section("handles"), contextlib.suppress(KeyError):
            raise KeyError("handled")
        with section("inner"):
            raise error

    with pytest.raises(type(error)) as caught, section("outer"):
        process()

    assert caught.value is error
    expected = [None, None, repr(error), repr(error)]
    assert [fields.get("exception") for fields in listener.sections] == expected


def test_errors_of_the_recorder_do_not_reach_the_task(listener, monkeypatch):
    def fail():
        raise RuntimeError("ours")

    with section("its end fails"):
        monkeypatch.setattr(section_module, "memory_bytes", fail)
    with section("its start fails"):
        monkeypatch.undo()
    with section(Unprintable()):
        pass
    with section("well"):
        pass

    assert names(listener) == ["well"]
