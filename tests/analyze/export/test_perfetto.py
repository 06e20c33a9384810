"""Trace events are valid, complete, and do not overlap on a lane."""

import itertools
import json
from collections import defaultdict
from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.export import perfetto, scope

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "sample_traces").glob("*.jsonl.zst"), key=lambda path: path.name)


def slices(events: list[dict], category: str | None = "task") -> list[dict]:
    return [e for e in events if e["ph"] == "X" and category in (None, e["cat"])]


def names_of(events: list[dict], meta: str) -> dict[int, str]:
    """Return the names of processes by pid, or of threads by tid."""
    number = "pid" if meta == "process_name" else "tid"
    return {e[number]: e["args"]["name"] for e in events if e["name"] == meta}


def check(events: list[dict]) -> None:
    """Check the invariants of every file."""
    processes, threads = names_of(events, "process_name"), names_of(events, "thread_name")
    assert set(processes).isdisjoint(threads)
    named = [e for e in events if e["name"] in ("process_name", "thread_name")]
    assert len(named) == len(processes) + len(threads)
    assert len({(e["pid"], e["tid"]) for e in slices(events, None)}) == len(threads)
    lanes = defaultdict(list)
    for event in slices(events, None):
        assert event["pid"] in processes
        lanes[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert set(lanes) == set(threads)
    for times in lanes.values():
        times.sort()
        assert all(0 <= start < stop for start, stop in times)
        overlaps = [(a, b) for a, b in itertools.pairwise(times) if a[1] > b[0]]
        assert overlaps == []


@pytest.mark.parametrize("path", SAMPLES[::2], ids=lambda path: path.name.partition(".")[0])
def test_a_recorded_run(events, path):
    found = events(path)

    check(found)
    with Trace(path) as trace:
        runs = trace.sql(
            "SELECT key, attempt, compute_start_t - start_t FROM task_runs, run "
            "WHERE compute_start_t IS NOT NULL"
        ).fetchall()
        samples = trace.sql("SELECT count(memory_bytes) FROM worker_samples").fetchall()
        moved = trace.sql(
            "SELECT count(*) FROM transfers "
            "WHERE destination IS NOT NULL AND EXISTS (FROM raw.transfer) "
            "UNION ALL SELECT count(*) FROM "
            "(SELECT unnest(startstops) AS part FROM raw.transition) "
            "WHERE part.action = 'transfer' AND NOT EXISTS (FROM raw.transfer)"
        ).fetchall()
    starts = {(e["args"]["key"], e["args"]["attempt"]): e["ts"] for e in slices(found)}
    assert len(slices(found)) == len(starts) == len(runs)
    assert starts == {(k, a): pytest.approx(1e6 * t, abs=1) for k, a, t in runs}
    assert [(sum(e["name"] == "memory" for e in found),)] == samples
    # Transfers are recorded, or else reported by tasks.
    assert len(slices(found, "transfer")) == sum(count for (count,) in moved)
    lanes = names_of(found, "thread_name").values()
    assert all(name.startswith(("thread 1", "transfers ")) for name in lanes)


def test_groups_of_workers_do_not_change_the_events(events, monkeypatch):
    together = events(SAMPLES[0])
    monkeypatch.setattr(perfetto, "GROUP_RUNS", 1)
    apart = events(SAMPLES[0])

    check(apart)
    contents = [
        sorted((e["ts"], e["name"], json.dumps(e["args"])) for e in some if e["ph"] in "XC")
        for some in (together, apart)
    ]
    assert contents[0] == contents[1]


def test_a_slice(events, write_trace, task, run, worker):
    path = write_trace(worker("w1", name="first"), task("a-1"), *run("a-1", 1.0, 3.5, nbytes=7))

    found = events(path)

    [slice_] = slices(found)
    assert (slice_["name"], slice_["ts"], slice_["dur"]) == ("a", 1_000_000, 2_500_000)
    known = {"key": "a-1", "attempt": 1, "outcome": "memory", "nbytes": 7}
    assert known.items() <= slice_["args"].items()
    assert names_of(found, "process_name") == {slice_["pid"]: "first w1"}
    assert names_of(found, "thread_name") == {slice_["tid"]: "thread 1"}


def test_colors_of_prefixes_and_failures(events, write_trace, task, run, move):
    parts = [{"action": "compute", "start": 5.0, "stop": 6.0}]
    failed = {"worker": "w1", "startstops": parts, "thread": 1, "exception": "E()"}
    path = write_trace(
        *(task(key) for key in ("a-1", "a-2", "b-1", "b-2")),
        *run("a-1", 1.0, 2.0),
        *run("a-2", 2.0, 3.0),
        *run("b-1", 3.0, 4.0),
        move(4.5, "b-2", "waiting>processing", worker="w1"),
        move(6.0, "b-2", "processing>erred", "task-erred-1.0", **failed),
    )

    colors = {e["args"]["key"]: e["cname"] for e in slices(events(path))}
    assert colors["a-1"] == colors["a-2"] != colors["b-1"]
    assert colors["b-2"] == "terrible"


def test_a_chunk_has_the_name_of_its_dataset_and_file(events, write_trace, task, run, chunk):
    what = {"dataset": "DY", "filename": "root://x//dir/f.root", "treename": "Events"}
    path = write_trace(
        task("p-1"),
        *run("p-1", 1.0, 2.0, run_id=4),
        chunk("p-1", entry_start=0, entry_stop=10, **what),
    )

    [slice_] = slices(events(path))
    assert slice_["name"] == "DY · f.root · 0–10"
    assert what.items() <= slice_["args"].items()


def test_a_chunk_without_a_cluster(events, write_trace, chunk):
    where = {"worker": "host:1", "thread": 5, "start_t": 1.0, "stop_t": 2.0}
    what = {"dataset": "DY", "filename": "f.root", "entry_start": 0, "entry_stop": 10}
    path = write_trace(chunk("c-1", **what), chunk("c-1", run_id=1, events=10, **what, **where))

    found = events(path)

    check(found)
    [slice_] = slices(found, "chunk")
    assert (slice_["ts"], slice_["dur"]) == (1_000_000, 1_000_000)
    assert slices(found) == []


def test_tasks_of_a_thread_that_overlap(events, write_trace, task, run):
    path = write_trace(
        *(task(key) for key in ("a-1", "a-2", "a-3")),
        *run("a-1", 1.0, 2.0),
        *run("a-2", 1.95, 3.0),
        *run("a-3", 2.0, 4.0),
    )

    found = events(path)

    check(found)
    assert sorted((e["ts"], e["dur"]) for e in slices(found)) == [
        (1_000_000, 950_000), (1_950_000, 1_050_000), (2_000_000, 2_000_000),
    ]  # fmt: skip
    assert list(names_of(found, "thread_name").values()) == [
        "thread 1", "thread 1, overlapping",
    ]  # fmt: skip


def test_invalid_times(events, write_trace, task, move):
    def odd(key: str, start: float, stop: float | None) -> list[dict]:
        part = {"action": "compute", "start": start, "stop": stop}
        end = {"worker": "w1", "thread": 1, "startstops": [part]}
        return [
            move(1.0, key, "waiting>processing", worker="w1"),
            move(2.0, key, "processing>memory", "task-finished-1", **end),
        ]

    path = write_trace(
        *(task(key) for key in "abcd"),
        *odd("a", -50.0, 1.0),
        *odd("b", 5.0, 4.0),
        *odd("c", 1e300, 1e301),
        *odd("d", 1.0, None),
    )

    found = events(path)

    check(found)
    assert len(slices(found)) == 4


def test_transfers_have_separate_lanes(events, write_trace, task, move):
    parts = [
        {"action": "transfer", "start": 1.0, "stop": 2.0, "source": "w2"},
        {"action": "transfer", "start": 1.5, "stop": 2.5, "source": "w3"},
        {"action": "compute", "start": 2.5, "stop": 3.0},
    ]
    end = {"worker": "w1", "thread": 1, "startstops": parts}
    path = write_trace(
        task("a"),
        move(0.5, "a", "waiting>processing", worker="w1"),
        move(3.0, "a", "processing>memory", "task-finished-1", **end),
    )

    found = events(path)

    check(found)
    moved = slices(found, "transfer")
    assert [(e["name"], e["args"]["for_task"]) for e in moved] == [
        ("from w3", "a"), ("from w2", "a"),
    ]  # fmt: skip
    assert len({e["tid"] for e in slices(found, None)}) == 3


def test_recorded_transfers_are_exported_once(events, write_trace, task, run):
    moved = {"start_t": 1.0, "stop_t": 2.0, "source": "w2", "destination": "w1", "nbytes": 9}
    record = {"kind": "transfer", "t": 2.0, **moved, "keys": {"a-1": 9}}
    path = write_trace(task("a-1"), task("b-1"), *run("b-1", 1.0, 2.0), record)

    [transfer] = slices(events(path), "transfer")
    assert transfer["args"] == {"source": "w2", "bytes": 9, "results": 1, "key": "a-1"}
    assert len(slices(events(path, "--prefix", "b"), "transfer")) == 0
    assert len(slices(events(path, "--prefix", "a"), "transfer")) == 1


def test_counters(events, write_trace, sample):
    path = write_trace(
        sample(1.0, "w1", memory=5, cpu=50.0, processing=2, executing=1), sample(2.0, "w2")
    )

    counters = [(e["name"], e["ts"], e["args"]) for e in events(path) if e["ph"] == "C"]
    assert counters == [
        ("memory", 1_000_000, {"process_bytes": 5}),
        ("CPU", 1_000_000, {"percent": 50.0}),
        ("queue", 1_000_000, {"processing": 2, "executing": 1}),
    ]


@pytest.fixture
def several(write_trace, worker, task, run):
    """Tasks of two prefixes on two workers, a second each."""
    return write_trace(
        worker("w1", name="first"),
        worker("w2", name="second"),
        *(task(key) for key in ("a-1", "a-2", "b-1", "b-2")),
        *run("a-1", 1.0, 2.0, "w1"),
        *run("b-1", 3.0, 4.0, "w1"),
        *run("a-2", 5.0, 6.0, "w2"),
        *run("b-2", 7.0, 8.0, "w2"),
    )


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ([], ["a-1", "a-2", "b-1", "b-2"]),
        (["--worker", "w2"], ["a-2", "b-2"]),
        (["--worker", "first"], ["a-1", "b-1"]),
        (["--prefix", "b"], ["b-1", "b-2"]),
        (["--worker", "second", "--prefix", "b"], ["b-2"]),
        (["--from", "3.5"], ["a-2", "b-1", "b-2"]),
        (["--from", "1.5", "--to", "3.0"], ["a-1"]),
        (["--worker", "scheduler"], []),
    ],
)
def test_a_scope_selects_tasks(events, several, options, keys):
    found = events(several, *options)

    check(found)
    assert sorted(e["args"]["key"] for e in slices(found)) == keys


HOSTILE = 'x"\\\x00\x07\n\u202e;<script>é𝄞' + "y" * 50_000


def test_unusual_text(events, write_trace, worker, task, run, chunk):
    fields = {"typename": HOSTILE, "exception": HOSTILE}
    path = write_trace(
        worker(HOSTILE, name=HOSTILE),
        {**task(HOSTILE), "prefix": HOSTILE},
        *run(HOSTILE, 1.0, 2.0, HOSTILE, **fields),
        chunk(HOSTILE, dataset=HOSTILE, filename=HOSTILE, entry_start=0, entry_stop=1),
    )

    found = events(path)

    check(found)
    [slice_] = slices(found)
    assert len(slice_["name"]) <= 120
    assert slice_["name"].isprintable()
    assert slice_["args"]["key"].startswith('x"\\␀␇\n⟨U+202E⟩;<script>é𝄞yyy')


def test_lone_surrogates(events, tmp_path, lines, task, run):
    data = lines(task("a-1"), *run("a-1", 1.0, 2.0, typename="bad"))
    path = tmp_path / "odd.jsonl"
    path.write_bytes(data.replace(b'"bad"', b'"\\ud800 bad"'))

    check(events(path))


def test_an_empty_trace(events, write_trace):
    assert events(write_trace()) == []


def test_events_are_created_while_they_are_read(write_trace, task, run):
    path = write_trace(task("a-1"), *run("a-1", 1.0, 2.0))
    with Trace(path) as trace:
        made = perfetto.events(trace, scope.Scope())
        assert next(made)["name"] == "process_name"
        made.close()
