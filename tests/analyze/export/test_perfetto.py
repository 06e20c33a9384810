"""Trace events are valid, complete, and do not overlap on a lane."""

import itertools
import json
from collections import defaultdict
from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.export import perfetto
from roast_analyze.export.scope import Scope

SAMPLES = Path(__file__).parents[3] / "sample_traces"
HOSTILE = 'x"\\\x00\x07\n\u202e;<script>é𝄞' + "y" * 50_000


@pytest.fixture
def events(export):
    """Return the events of a trace, or of a part of it, after checking their invariants."""

    def checked(trace, **part):
        found = json.loads(export(trace, "perfetto", **part))
        check(found)
        return found

    return checked


def slices(events: list[dict], category: str = "task") -> list[dict]:
    return [e for e in events if e["ph"] == "X" and e["cat"] == category]


def names_of(events: list[dict], meta: str) -> dict[int, str]:
    """Return the names of processes by pid, or of threads by tid."""
    number = "pid" if meta == "process_name" else "tid"
    return {e[number]: e["args"]["name"] for e in events if e["name"] == meta}


def check(events: list[dict]) -> None:
    processes, threads = names_of(events, "process_name"), names_of(events, "thread_name")
    assert set(processes).isdisjoint(threads)
    named = [e for e in events if e["name"] in ("process_name", "thread_name")]
    assert len(named) == len(processes) + len(threads)
    lanes = defaultdict(list)
    for event in (event for event in events if event["ph"] == "X"):
        assert event["pid"] in processes
        lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert sorted(tid for _, tid in lanes) == sorted(threads)
    for times in lanes.values():
        times.sort()
        assert all(0 <= start < stop for start, stop in times)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(times))


@pytest.mark.parametrize("name", ["coffea", "image_pipeline", "shuffle_reduce"])
def test_a_recorded_run(events, name):
    with Trace(SAMPLES / f"{name}.jsonl.zst") as trace:
        found = events(trace)
        runs = trace.rows(
            "SELECT key, attempt, compute_start_t - start_t FROM task_runs, run "
            "WHERE compute_start_t IS NOT NULL"
        )
        samples = trace.rows("SELECT count(memory_bytes) FROM worker_samples")
        moved = trace.rows(
            "SELECT count(*) FROM transfers "
            "WHERE destination IS NOT NULL AND EXISTS (FROM raw.transfer) "
            "UNION ALL SELECT count(*) FROM "
            "(SELECT unnest(startstops) AS part FROM raw.transition) "
            "WHERE part.action = 'transfer' AND NOT EXISTS (FROM raw.transfer)"
        )

    starts = {(e["args"]["key"], e["args"]["attempt"]): e["ts"] for e in slices(found)}
    assert len(slices(found)) == len(starts) == len(runs)
    assert starts == {(k, a): pytest.approx(1e6 * t, abs=1) for k, a, t in runs}
    assert [(sum(e["name"] == "memory" for e in found),)] == samples
    # Transfers are recorded, or else reported by tasks.
    assert len(slices(found, "transfer")) == sum(count for (count,) in moved)
    lanes = names_of(found, "thread_name").values()
    assert all(name.startswith(("thread 1", "transfers ")) for name in lanes)


@pytest.mark.exhaustive
def test_groups_of_workers_do_not_change_the_events(
    events, monkeypatch, write_trace, task, run
):
    nowhere = write_trace(task("a"), *run("a", 1.0, 2.0, worker=None), trace_id="nowhere")
    with Trace(SAMPLES / "coffea.jsonl.zst", nowhere) as trace:
        together = events(trace)
        monkeypatch.setattr(perfetto, "GROUP_RUNS", 1)
        apart = events(trace)

        # Events are generated lazily.
        made = perfetto.events(trace, Scope())
        assert next(made)["ph"] == "X"
        made.close()

    first, second = (
        sorted((e["ts"], e["name"], json.dumps(e["args"])) for e in some if e["ph"] in "XC")
        for some in (together, apart)
    )
    assert first == second


def test_slices_of_tasks(events, open_trace, task, run, worker, chunk):
    failed = {"phases": [("compute", 5.0, 6.0)], "thread": 1, "exception": "E()"}
    what = {"dataset": "DY", "filename": "root://x//dir/f.root", "treename": "Events"}
    trace = open_trace(
        worker("w1", name="first"),
        *(task(key) for key in ("a-1", "a-2", "b-1", "b-2", "p-1")),
        *run("a-1", 1.0, 3.5, nbytes=7),
        *run("a-2", 3.5, 3.6),
        *run("b-1", 3.6, 4.0),
        *run("b-2", 4.5, 6.0, outcome="erred", **failed),
        *run("p-1", 7.0, 8.0, run_id=4),
        chunk("p-1", entry_start=0, entry_stop=10, **what),
    )

    found = events(trace)

    assert names_of(found, "process_name") == {slices(found)[0]["pid"]: "first w1"}
    assert list(names_of(found, "thread_name").values()) == ["thread 1"]
    a1, a2, b1, b2, p1 = slices(found)
    assert (a1["name"], a1["ts"], a1["dur"]) == ("a", 1_000_000, 2_500_000)
    known = {"key": "a-1", "attempt": 1, "outcome": "memory", "nbytes": 7}
    assert known.items() <= a1["args"].items()
    assert {"worker", "thread", "start", "stop", "chunks"}.isdisjoint(a1["args"])
    assert a1["cname"] == a2["cname"] != b1["cname"]
    assert b2["cname"] == "terrible"
    # A chunk has the name of its dataset and file.
    assert p1["name"] == "DY · f.root · 0–10"
    assert what.items() <= p1["args"].items()


@pytest.mark.exhaustive
def test_equal_keys_of_two_traces(events, write_trace, task, run, chunk):
    paths = [
        write_trace(
            task("p-1"), *run("p-1", 1.0, 2.0), chunk("p-1", entry_start=0, entry_stop=events),
            name=f"{events}.jsonl", trace_id=str(events),
        )
        for events in (10, 20)
    ]  # fmt: skip
    with Trace(*paths) as trace:
        found = slices(events(trace))

    assert sorted(e["args"]["entry_stop"] for e in found) == [10, 20]


def test_a_chunk_without_a_cluster(events, open_trace, chunk):
    where = {"worker": "host:1", "thread": 5, "start_t": 1.0, "stop_t": 2.0}
    what = {"dataset": "DY", "filename": "f.root", "entry_start": 0, "entry_stop": 10}
    trace = open_trace(chunk("c-1", **what), chunk("c-1", run_id=1, **what, **where))

    found = events(trace)

    assert [(e["ts"], e["dur"]) for e in slices(found, "chunk")] == [(1_000_000, 1_000_000)]
    assert slices(found) == []


def test_tasks_of_a_thread_that_overlap(events, open_trace, task, run):
    runs = [("a-1", 1.0, 2.0), ("a-2", 1.95, 3.0), ("a-3", 2.0, 4.0)]
    records = [record for key, *times in runs for record in [task(key), *run(key, *times)]]
    found = events(open_trace(*records))

    assert sorted((e["ts"], e["dur"]) for e in slices(found)) == [
        (1_000_000, 950_000), (1_950_000, 1_050_000), (2_000_000, 2_000_000),
    ]  # fmt: skip
    assert set(names_of(found, "thread_name").values()) == {"thread 1", "thread 1, overlapping"}


@pytest.mark.exhaustive
def test_no_times_and_invalid_times(events, open_trace, task, run):
    assert events(open_trace()) == []
    times = {"a": (-50.0, 1.0), "b": (5.0, 4.0), "c": (1e300, 1e301), "d": (1.0, None)}
    records = []
    for key, ends in times.items():
        records += [task(key), *run(key, 1.0, 2.0, phases=[("compute", *ends)])]

    # Impossible times of `c` are read as null: the attempt has no slice.
    assert len(slices(events(open_trace(*records)))) == 3


def test_transfers_have_separate_lanes(events, open_trace, task, run):
    fetched = [("transfer", 1.0, 2.0, "w2"), ("transfer", 1.5, 2.5, "w3")]
    phases = [*fetched, ("compute", 2.5, 3.0)]
    found = events(open_trace(task("a"), *run("a", 0.5, 3.0, phases=phases)))

    moved = slices(found, "transfer")
    assert sorted((e["name"], e["args"]["for_task"]) for e in moved) == [
        ("from w2", "a"), ("from w3", "a"),
    ]  # fmt: skip
    assert sorted(names_of(found, "thread_name").values()) == [
        "thread 1", "transfers 1", "transfers 2",
    ]  # fmt: skip


def test_recorded_transfers_are_exported_once(events, open_trace, task, run):
    moved = {"start_t": 1.0, "stop_t": 2.0, "source": "w2", "destination": "w1", "nbytes": 9}
    record = {"kind": "transfer", "t": 2.0, **moved, "keys": {"a-1": 9}}
    trace = open_trace(task("a-1"), task("b-1"), *run("b-1", 1.0, 2.0), record)

    [transfer] = slices(events(trace), "transfer")
    assert transfer["args"] == {"source": "w2", "bytes": 9, "results": 1, "key": "a-1"}
    assert slices(events(trace, prefix="b"), "transfer") == []
    assert len(slices(events(trace, prefix="a"), "transfer")) == 1


def test_each_trace_has_recorded_transfers_or_those_of_tasks(events, write_trace, run):
    moved = {"start_t": 1.0, "stop_t": 2.0, "source": "w2", "destination": "w1", "nbytes": 9}
    fetched = {"phases": [("transfer", 1.0, 2.0, "w4")]}
    recorded = write_trace(
        *run("b", 0.5, 3.0, "w1", **fetched), {"kind": "transfer", "t": 2.0, **moved}
    )
    reported = write_trace(
        *run("b", 0.5, 3.0, "w3", **fetched), name="reported.jsonl", trace_id="reported"
    )
    with Trace(recorded, reported) as trace:
        found = slices(events(trace), "transfer")

    assert sorted(e["name"] for e in found) == ["from w2", "from w4"]


def test_counters(events, open_trace, sample):
    trace = open_trace(
        sample(1.0, "w1", memory=5, cpu=50.0, processing=2, executing=1), sample(2.0, "w2")
    )

    counters = [(e["name"], e["ts"], e["args"]) for e in events(trace) if e["ph"] == "C"]
    assert counters == [
        ("memory", 1_000_000, {"process_bytes": 5}),
        ("CPU", 1_000_000, {"percent": 50.0}),
        ("queue", 1_000_000, {"processing": 2, "executing": 1}),
    ]


@pytest.mark.exhaustive
def test_a_scope_selects_tasks(events, open_trace, worker, task, run):
    trace = open_trace(
        worker("w1", name="first"),
        worker("w2", name="second"),
        *(task(key) for key in ("a-1", "a-2", "b-1", "b-2")),
        *run("a-1", 1.0, 2.0, "w1"),
        *run("b-1", 3.0, 4.0, "w1"),
        *run("a-2", 5.0, 6.0, "w2"),
        *run("b-2", 7.0, 8.0, "w2"),
    )

    for part, keys in [
        ({}, ["a-1", "a-2", "b-1", "b-2"]),
        ({"worker": "w2"}, ["a-2", "b-2"]),
        ({"worker": "first"}, ["a-1", "b-1"]),
        ({"prefix": "b"}, ["b-1", "b-2"]),
        ({"worker": "second", "prefix": "b"}, ["b-2"]),
        ({"start": 3.5}, ["a-2", "b-1", "b-2"]),
        ({"start": 1.5, "stop": 3.0}, ["a-1"]),
        ({"worker": "scheduler"}, []),
    ]:
        assert sorted(e["args"]["key"] for e in slices(events(trace, **part))) == keys, part


@pytest.mark.exhaustive
def test_unusual_text(events, open_trace, worker, task, run, chunk):
    fields = {"typename": HOSTILE, "exception": HOSTILE}
    trace = open_trace(
        worker(HOSTILE, name=HOSTILE),
        {**task(HOSTILE), "prefix": HOSTILE},
        *run(HOSTILE, 1.0, 2.0, HOSTILE, **fields),
        chunk(HOSTILE, dataset=HOSTILE, filename=HOSTILE, entry_start=0, entry_stop=1),
        *run("unreadable", 1.0, 2.0, typename="\ud800 bad"),
    )

    [slice_] = slices(events(trace))
    assert len(slice_["name"]) <= 120
    assert slice_["name"].isprintable()
    assert slice_["args"]["key"].startswith('x"\\␀␇\n⟨U+202E⟩;<script>é𝄞yyy')
