"""Named parts of a task: each passage is told once, wherever it is."""

import contextlib
import pickle
import sys
import threading

import cloudpickle
import pytest

import roast_recorder
from roast_recorder import section
from roast_recorder.coffea import section as sections
from roast_recorder.coffea.instrumentation import listen, stop_listening
from roast_recorder.coffea.measurement import measured


@pytest.fixture
def told():
    """What is told while somebody listens."""
    told = []
    listen("test", told.append)
    yield told
    stop_listening("test")


def names(told):
    return [part["name"] for one in told for part in one["sections"]]


def in_a_chunk(function):
    return measured(lambda: {"dataset": "DY"}, "processed", function, (), {})


# -- where nothing records -------------------------------------------------------------------


class NeverNamed:
    def __str__(self):
        raise AssertionError("nobody needs the name")


def test_where_nothing_records_it_looks_at_nothing(monkeypatch):
    looked = []
    for name in (
        "perf_counter",
        "thread_time",
        "both_clocks",
        "memory_bytes",
        "current",
        "quietly",
    ):
        monkeypatch.setattr(sections, name, lambda *_, name=name: looked.append(name))
    part = section(NeverNamed())
    before = dict(vars(part))

    with part, part:
        pass
    with pytest.raises(KeyError), part:
        raise KeyError

    assert looked == []
    assert vars(part) == before


def test_what_began_before_anybody_listened_is_told_to_nobody():
    told = []

    with section("begun before"):
        listen("test", told.append)
        with section("begun after"):
            pass
    stop_listening("test")

    assert names(told) == ["begun after"]


def test_a_recording_can_end_meanwhile(told):
    part = section("cut short")

    with part:
        stop_listening("test")
    with part:
        pass

    assert told == []


# -- passages --------------------------------------------------------------------------------


def test_what_is_told_of_a_passage(told):
    with section("jets"):
        pass

    [one] = told
    [part] = one["sections"]
    assert one == {"chunk": None, "sections": [part], "more_sections": 0}
    assert set(part) == {"name", "thread", "start_t", "stop_t", "cpu_seconds", "memory_delta"}
    assert (part["name"], part["thread"]) == ("jets", threading.get_ident())
    assert part["start_t"] <= part["stop_t"]
    assert part["cpu_seconds"] >= 0


def test_nested_ones_are_told_as_they_end_and_lie_within_each_other(told):
    with section("outer"):
        with section("first"):
            pass
        with section("second"):
            pass

    first, second, outer = (one["sections"][0] for one in told)
    assert names(told) == ["first", "second", "outer"]
    # Ends are beginnings plus seconds of another clock, which was read a moment later.
    moment = 1e-3
    first_seconds, second_seconds, outer_seconds = (
        one["stop_t"] - one["start_t"] for one in (first, second, outer)
    )
    assert first_seconds + second_seconds <= outer_seconds + 1e-6
    assert outer["start_t"] <= first["start_t"] <= first["stop_t"]
    assert first["stop_t"] <= second["start_t"] + moment
    assert second["stop_t"] <= outer["stop_t"] + moment
    assert first["cpu_seconds"] + second["cpu_seconds"] <= outer["cpu_seconds"]


def test_each_of_many_passages_is_told(told):
    part = section("jets")

    for _ in range(3):
        with part:
            pass
    with section("jets"):
        pass

    assert names(told) == ["jets"] * 4


def test_one_object_can_be_passed_through_within_itself(told):
    part = section("jets")

    with part, part:
        pass

    inner, outer = (one["sections"][0] for one in told)
    assert outer["start_t"] < inner["start_t"]
    assert inner["stop_t"] <= outer["stop_t"] + 1e-3


def test_one_object_can_be_passed_through_by_several_threads(told):
    part, all_inside = section("jets"), threading.Barrier(3)

    def pass_through():
        with part:
            all_inside.wait()
            sum(range(10_000))
            all_inside.wait()

    threads = [threading.Thread(target=pass_through) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert names(told) == ["jets"] * 3
    assert {one["sections"][0]["thread"] for one in told} == {t.ident for t in threads}
    # By another thread's clock they could be anything.
    assert all(one["sections"][0]["cpu_seconds"] > 0 for one in told)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_a_copy_that_travels_is_one_of_its_own(told, pickler):
    part = section("jets")

    with part:
        copy = pickle.loads(pickler.dumps(part))
        assert vars(copy) == vars(section("jets"))  # nobody is in it
        with copy:
            pass

    assert names(told) == ["jets", "jets"]
    assert told[0]["sections"][0]["start_t"] > told[1]["sections"][0]["start_t"]


def test_memory_that_a_part_takes_and_keeps_is_its_own(told):
    kept = []

    with section("before"):
        pass
    with section("takes"):
        kept.append(b"\1" * 2**26)

    before, takes = (one["sections"][0]["memory_delta"] for one in told)
    assert before < 2**25 < takes
    assert takes == pytest.approx(2**26, rel=0.2)


@pytest.mark.parametrize("name", ["", "Jets ≥ 2", 7, None])
def test_any_name_will_do(told, name):
    with section(name):
        pass

    assert names(told) == [str(name)]


# -- exceptions ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_is_told_of_all_that_it_leaves_and_raised_as_it_is(told, error):
    def process():
        with section("over"):
            pass
        with section("inner"):
            raise error

    with pytest.raises(type(error)) as caught, section("outer"):
        process()

    assert caught.value is error
    assert [one["sections"][0].get("exception") for one in told] == [
        None,
        repr(error),
        repr(error),
    ]


def test_an_exception_that_is_caught_within_is_nobodys_business(told):
    with section("jets"), contextlib.suppress(ValueError):
        raise ValueError("mine")

    assert "exception" not in told[0]["sections"][0]


def test_nothing_that_fails_in_here_reaches_the_task(told, monkeypatch):
    def fail():
        raise RuntimeError("ours")

    with section("its end fails"):
        monkeypatch.setattr(sections, "memory_bytes", fail)
    with section("its begin fails"):
        monkeypatch.undo()
    with section(NeverNamed()):
        pass
    with section("well"):
        pass

    assert names(told) == ["well"]


# -- in a chunk ------------------------------------------------------------------------------


def test_those_of_a_chunk_are_told_with_it(told):
    def process():
        with section("jets"):
            pass
        with section("jets"):
            pass
        assert told == []  # until the chunk ends

    in_a_chunk(process)
    with section("afterwards"):
        pass

    of_chunk, afterwards = told
    assert of_chunk["chunk"]["dataset"] == "DY"
    assert names([of_chunk]) == ["jets", "jets"]
    assert (afterwards["chunk"], names([afterwards])) == (None, ["afterwards"])


def test_a_part_that_goes_beyond_its_chunk_is_told_by_itself(told):
    with section("around"):
        in_a_chunk(lambda: None)

    of_chunk, around = told
    assert of_chunk["chunk"]["dataset"] == "DY"
    assert names([of_chunk]) == []
    assert (around["chunk"], names([around])) == (None, ["around"])


def test_a_chunk_that_fails_tells_of_the_part_in_which_it_did(told):
    def process():
        with section("well"):
            pass
        with section("badly"):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        in_a_chunk(process)

    [of_chunk] = told
    assert of_chunk["chunk"]["exception"] == "ValueError('mine')"
    assert {part["name"]: part.get("exception") for part in of_chunk["sections"]} == {
        "well": None,
        "badly": "ValueError('mine')",
    }


# -- a real run ------------------------------------------------------------------------------

#: Two files of three baskets each: chunks of half a basket share one with another chunk.
EVENTS, CHUNK = 300, 50


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    pytest.importorskip("coffea")
    import numpy as np
    import uproot

    folder = tmp_path_factory.mktemp("sections")
    for number in range(2):
        random = np.random.default_rng(number)
        with uproot.recreate(folder / f"{number}.root") as file:
            tree = file.mktree("Events", {"x": "f8", "y": "f4"})
            for _ in range(3):
                tree.extend({"x": random.random(100), "y": random.random(100, "f4")})
    return [str(folder / f"{number}.root") for number in range(2)]


def in_parts(events):
    """Reads x in one part, y in a part of that, x once more, and y where no part is."""
    with section("outer"):
        x = sum(events.x)
        with section("inner"):
            y = sum(events.y)
    with section("again"):
        x += sum(events.x)
    return {"x": x, "y": y}


def requested_bytes(path, branch, start, stop):
    """What uproot by itself requests from the file to read a branch."""
    import uproot

    with uproot.open(path, array_cache=None) as file:
        tree = file["Events"]
        before = tree.file.source.num_requested_bytes
        tree[branch].array(entry_start=start, entry_stop=stop)
        return tree.file.source.num_requested_bytes - before


@pytest.fixture(scope="module")
def lines(cluster, paths, tmp_path_factory, read_lines):
    """What was recorded of a run of coffea's and of tasks that are no chunks."""
    from coffea.nanoevents import BaseSchema
    from coffea.processor import DaskExecutor, Runner
    from distributed import Client

    def passes(name, fails):
        for _ in range(2):
            with section(name):
                if fails:
                    raise ValueError(f"no {name}")
        return name

    trace = tmp_path_factory.mktemp("sections") / "trace.jsonl"
    # Workers cannot import this file.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with Client(cluster) as client:
        with roast_recorder.record(client, trace):
            runner = Runner(
                executor=DaskExecutor(client=client, status=False),
                schema=BaseSchema,
                chunksize=CHUNK,
            )
            runner({"DY": paths}, treename="Events", processor_instance=in_parts)
            assert client.submit(passes, "plain", False, key="plain").result() == "plain"
            with pytest.raises(ValueError, match="no luck"):
                client.submit(passes, "luck", True, key="fails", retries=1).result()
        assert client.submit(passes, "later", False, key="later").result() == "later"
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    return read_lines(trace)


def of_kind(lines, kind):
    return [line for line in lines if line["kind"] == kind]


@pytest.mark.cluster
def test_each_chunk_of_a_run_has_its_parts(lines):
    chunks = {(c["key"], c["run_id"]): c for c in of_kind(lines, "chunk") if "run_id" in c}
    parts = [
        part for part in of_kind(lines, "section") if (part["key"], part["run_id"]) in chunks
    ]

    assert len(chunks) == 2 * EVENTS // CHUNK
    for attempt, chunk in chunks.items():
        own = [part for part in parts if (part["key"], part["run_id"]) == attempt]
        assert [part["name"] for part in own] == ["inner", "outer", "again"]
        for part in own:
            assert (part["worker"], part["thread"]) == (chunk["worker"], chunk["thread"])
            assert chunk["start_t"] <= part["start_t"] <= part["stop_t"] <= chunk["stop_t"]
    assert len(parts) == 3 * len(chunks)


@pytest.mark.cluster
def test_bytes_of_a_part_are_those_that_were_requested_in_it(lines):
    chunks = {c["key"]: c for c in of_kind(lines, "chunk") if "run_id" in c}
    parts = {(part["key"], part["name"]): part for part in of_kind(lines, "section")}

    for key, chunk in chunks.items():
        where = chunk["filename"], chunk["entry_start"], chunk["entry_stop"]
        x, y = (requested_bytes(where[0], branch, *where[1:]) for branch in "xy")
        assert 0 < y < x
        assert parts[key, "outer"]["measured"]["bytes_read"] == x + y
        assert parts[key, "inner"]["measured"]["bytes_read"] == y
        assert parts[key, "again"]["measured"]["bytes_read"] == 0  # coffea has kept it


@pytest.mark.cluster
def test_tasks_that_are_no_chunks_have_parts_too(lines):
    workers = {line["worker"] for line in of_kind(lines, "worker_added")}

    plain = [part for part in of_kind(lines, "section") if part["key"] == "plain"]

    assert [part["name"] for part in plain] == ["plain", "plain"]
    assert {part["worker"] for part in plain} < workers
    [run_id] = {part["run_id"] for part in plain}
    assert [
        line["finish"]
        for line in of_kind(lines, "transition")
        if line["key"] == "plain" and line.get("run_id") == run_id
    ] == ["processing", "memory"]
    assert [set(part["measured"]) for part in plain] == [{"cpu_seconds", "memory_delta"}] * 2
    assert not any("exception" in part for part in plain)


@pytest.mark.cluster
def test_each_attempt_that_fails_has_the_part_in_which_it_did(lines):
    failed = [part for part in of_kind(lines, "section") if part["key"] == "fails"]

    assert [(part["name"], part["exception"]) for part in failed] == [
        ("luck", "ValueError('no luck')")
    ] * 2
    assert len({part["run_id"] for part in failed}) == 2


@pytest.mark.cluster
def test_nothing_is_recorded_after_the_end(lines):
    assert "later" not in {part["key"] for part in of_kind(lines, "section")}
