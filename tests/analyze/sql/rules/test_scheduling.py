"""Rules short-tasks, scheduler-saturated, event-flood, large-graph and transfers."""

import json
from itertools import starmap

import pytest

from roast_analyze import Trace


@pytest.fixture
def tasks(task, run):
    """Return 300 tasks of w1 that take 0.3 s each and compute for the last `seconds`."""

    def tasks(seconds):
        records = []
        for number in range(300):
            key, begin = f"row-{number}", 0.3 * number
            phases = [("compute", begin + 0.3 - seconds, begin + 0.3)]
            records += [task(key), *run(key, begin, begin + 0.3, phases=phases)]
        return records

    return tasks


@pytest.mark.exhaustive
def test_short_tasks(apply_each, worker, tasks, task, run):
    def dispatched(dispatch_seconds):
        """Tasks of 20 ms; their overhead is 13 % or 5 % of their time."""
        records = [worker("w1")]
        for number in range(300):
            key, begin = f"row-{number}", 0.03 * number
            ready = begin + dispatch_seconds
            phases = [("compute", ready, ready + 0.02)]
            records += [task(key), *run(key, begin, ready + 0.02, phases=phases)]
        return records

    [(*found, change)], long_enough, [(entity, *_)], little_overhead = apply_each(
        "short-tasks",
        [worker("w1"), *tasks(0.01)],
        [worker("w1"), *tasks(0.05)],
        dispatched(0.003),
        dispatched(0.001),
        columns="entity, core_seconds, change",
    )
    assert found == ["row", pytest.approx(300 * 0.29)]
    assert change.startswith("Combine about 20 tasks of row into one ")
    assert entity == "row"
    assert long_enough == little_overhead == []


def samples(interval_seconds):
    """Return samples of the scheduler with an interval between ticks of its event loop."""
    metrics = {"event_loop_interval": interval_seconds, "cpu": 50.0}
    return [{"kind": "scheduler_sample", "t": float(t), "metrics": metrics} for t in range(90)]


def test_a_busy_scheduler(apply_each, worker, tasks):
    stalls = [
        {"kind": "stall", "t": t, "start_t": t + 0.1, "stop_t": t + 0.2}
        for t in (0.3 * number for number in range(300))
    ]
    cases = {
        "busy": ([*tasks(0.1), *samples(0.2)], [("high", pytest.approx(300 * 0.2))]),
        "idle loop": ([*tasks(0.1), *samples(0.05)], []),
        "no waiting": ([*tasks(0.28), *samples(0.2)], []),
        # Its host lacks CPU, or something else runs in its event loop.
        "stalls while no task ends": ([*tasks(0.1), *samples(0.2), *stalls], []),
    }
    traces = ([worker("w1"), *records] for records, _ in cases.values())
    rows = apply_each("scheduler-saturated", *traces, columns="confidence, core_seconds")
    assert rows == [expected for _, expected in cases.values()]


@pytest.fixture
def large_graph(worker, task, run):
    """Return a graph of `nbytes` that is sent at 30 s and arrives at 40 s."""

    def large_graph(nbytes):
        graph = {"kind": "graph", "t": 30.0, "client": "c", "key": "look_up-1", "value": {}}
        groups = [{"group": "look_up", "tasks": 2, "examined": 1, "nbytes": nbytes // 2}]
        update = {
            "kind": "graph_update", "t": 40.0, "stimulus_id": "u", "client": "c",
            "nbytes": nbytes, "value": {"groups": groups},
        }  # fmt: skip
        return [
            worker("w1"), worker("w2"),
            task("first", stimulus_id="s"), *run("first", 0.0, 20.0),
            graph, update,
            task("look_up-1", t=40.0, stimulus_id="u", client="c"),
            *run("look_up-1", 40.0, 50.0),
        ]  # fmt: skip

    return large_graph


def activity(name, activity, start_t, stop_t):
    """Return an activity of the client's program."""
    about = {"name": name, "activity": activity, "start_t": start_t, "stop_t": stop_t}
    return {"kind": "client_activity", "t": stop_t, "client": "c", **about}


def test_a_large_graph(apply_each, large_graph):
    """Two threads wait for 20 s, 10 s of them while the graph is sent."""
    # For 8 of the 20 s, the client's program works before it builds the graph.
    work = activity("f", "own", 19.0, 28.0)

    rows = apply_each(
        "large-graph",
        large_graph(50_000_000),
        [*large_graph(50_000_000), work],
        large_graph(9_000_000),
        columns="entity, core_seconds, sentence",
    )

    text = (
        "A graph of 47.7 MiB, with data embedded in tasks, kept the workers waiting for {} s."
    )
    assert rows == [
        [("look_up", pytest.approx(2 * 20.0), text.format(20.0))],
        [("look_up", pytest.approx(2 * (20.0 - 8.0)), text.format(12.0))],
        [],
    ]


@pytest.mark.exhaustive
def test_prefixes_of_large_graphs_of_other_traces(write_trace, task, run, large_graph):
    """Tasks that take long to dispatch are in the large graph of the other trace."""
    slow = [task("slow-1"), *run("slow-1", 60.0, 80.0, phases=[("compute", 70.0, 80.0)])]
    other = json.loads(json.dumps(large_graph(50_000_000)).replace("look_up", "slow"))
    one = write_trace(*large_graph(50_000_000), *slow, name="A.jsonl", trace_id="A")
    two = write_trace(*other, name="B.jsonl", trace_id="B")
    query = "SELECT core_seconds FROM findings WHERE id = 'large-graph' AND trace_id = 'A'"

    with Trace(one) as alone, Trace(one, two) as both:
        assert both.rows(query) == alone.rows(query) != []


def test_a_graph_that_is_slow_to_build(apply_each, large_graph):
    """The workers wait from 20 s to 40 s; building takes more or less than 5 % of the run."""

    def trace(seconds):
        return [
            *large_graph(9_000_000),
            # Only the part after the previous task counts.
            activity("build", "dask", 10.0, 20.0 + seconds),
            activity("build", "own", 32.0, 40.0),
        ]

    columns = "entity, core_seconds, wall_seconds_max"
    assert apply_each("large-graph", trace(12.0), trace(4.0), columns=columns) == [
        [("build", pytest.approx(2 * 12.0), pytest.approx(1.1 * 12.0))],
        [],
    ]


def test_the_start_of_a_program_is_not_a_slow_graph(apply_each, worker, task, run, chunk):
    """Before the first result, modules are imported, and coffea prepares its own graphs."""

    def trace(function, *chunks):
        return [
            worker("w1"),
            {"kind": "graph_update", "t": 20.0, "stimulus_id": "u", "client": "c", "nbytes": 9},
            task("a", t=20.0, stimulus_id="u", client="c"),
            *run("a", 20.0, 60.0),
            activity(function, "dask", 5.0, 20.0),
            *chunks,
        ]

    first = chunk("a", run_id=1, dataset="d", start_t=20.0, stop_t=60.0)
    assert apply_each(
        "large-graph", trace("build"), trace("<module>"), trace("build", first)
    ) == [[("build", pytest.approx(15.0))], [], []]


@pytest.fixture
def combined(worker, task, run):
    """Return a task that fetches a result from another worker for `seconds`."""

    def combined(seconds):
        phases = [("transfer", 10.0, 10.0 + seconds, "w1"), ("compute", 10.0 + seconds, 60.0)]
        return [
            worker("w1"), worker("w2"),
            task("produce-1"), *run("produce-1", 0.0, 10.0, nbytes=5_000_000),
            task("combine-1", dependencies=["produce-1"]),
            *run("combine-1", 10.0, 60.0, worker="w2", phases=phases),
        ]  # fmt: skip

    return combined


def test_a_function_that_blocks_the_scheduler(apply, worker, tasks):
    """Threads wait for 60 s, 54 s of them while the event loop is blocked."""
    stalls = [{"kind": "stall", "t": t, "start_t": t, "stop_t": t + 0.6} for t in range(90)]
    records = [worker("w1"), *tasks(0.1), *samples(0.05), *stalls]
    [(core_seconds, sentence)] = apply(
        "scheduler-saturated", *records, columns="core_seconds, sentence"
    )
    assert core_seconds == pytest.approx(300 * 0.2)
    assert "was blocked 90 times, for 54.0 s in all: threads waited" in sentence


def test_a_scheduler_that_is_blocked_while_a_graph_arrives(apply, worker, task, run):
    """Its event loop is blocked from 0 to 8 s; tasks are assigned at 1 s and begin at 8 s."""
    records = [worker("w1", nthreads=4)]
    for n in range(4):
        phases = [("compute", 8.0, 20.0)]
        records += [task(f"a-{n}", t=0.0), *run(f"a-{n}", 1.0, 20.0, phases=phases)]
    stall = {"kind": "stall", "t": 8.0, "start_t": 0.0, "stop_t": 8.0}

    [(core_seconds, sentence)] = apply(
        "scheduler-saturated", *records, stall, columns="core_seconds, sentence", stop_t=20.0
    )
    assert core_seconds == pytest.approx(4 * 7.0)
    assert "was blocked once, for 7.0 s in all" in sentence


def test_large_graphs_that_are_sent_at_once(apply, worker, task, run):
    """Ten graphs are sent at 30 s, and the last one arrives at 40 s."""
    records = [worker("w1"), task("first", stimulus_id="s"), *run("first", 0.0, 30.0)]
    for number in range(10):
        key, t = f"predict-{number}", 31.0 + number
        records += [
            {"kind": "graph", "t": 30.0, "client": "c", "key": key, "value": {}},
            {
                "kind": "graph_update", "t": t, "stimulus_id": f"u{number}", "client": "c",
                "nbytes": 50_000_000,
            },
            task(key, t=t, stimulus_id=f"u{number}"), *run(key, 41.0 + number, 42.0 + number),
        ]  # fmt: skip
    [(core_seconds, sentence)] = apply(
        "large-graph", *records, columns="core_seconds, sentence"
    )
    assert core_seconds == pytest.approx(10.0)
    assert "kept the workers waiting for 10.0 s" in sentence


@pytest.fixture
def calls(worker, task, run):
    """Return calls with data of `nbytes` that wait for `dispatch_seconds`, and others."""

    def calls(nbytes, dispatch_seconds=0.5, other_seconds=0.01, count=30):
        records = [worker("w1", nthreads=2)]
        for number in range(count):
            t = 1.0 + number
            groups = [{"group": "predict", "tasks": 1, "examined": 1, "nbytes": nbytes}]
            records.append(
                {
                    "kind": "graph_update", "t": t, "stimulus_id": f"u{number}", "client": "c",
                    "nbytes": nbytes, "value": {"groups": groups},
                }
            )  # fmt: skip
            for prefix, seconds in (("predict", dispatch_seconds), ("other", other_seconds)):
                key, stimulus = f"{prefix}-{number}", f"{prefix[0].replace('p', 'u')}{number}"
                records += [
                    task(key, prefix=prefix, t=t, stimulus_id=stimulus, client="c"),
                    *run(key, t, t + 0.8, phases=[("compute", t + seconds, t + 0.8)]),
                ]
        return records

    return calls


def test_graphs_that_are_large_together(apply_each, calls):
    """30 graphs of 5 MB are 150 MB together; each of their tasks waits for 0.5 s."""
    [[(entity, core_seconds, sentence)], *healthy] = apply_each(
        "large-graph",
        calls(5_000_000),
        calls(1_500_000),  # 45 MB together
        calls(5_000_000, dispatch_seconds=0.02),
        calls(5_000_000, other_seconds=0.5),  # the scheduler, or the network, is slow for all
        columns="entity, core_seconds, sentence",
    )

    assert (entity, core_seconds) == ("predict", pytest.approx(15.0))
    assert sentence == (
        "30 graphs of 143 MiB in total (4.77 MiB each, median), with data embedded in tasks:"
        " from assignment to start, threads waited 0.5 s for each of these tasks,"
        " 15.0 core-seconds in all."
    )
    assert healthy == [[], [], []]


@pytest.fixture
def flood(worker, task, run):
    """Return a task of 20 s that sends events, and does so in half of its samples."""

    worker_py = "/x/site-packages/distributed/worker.py"

    def flood(count, topic="progress", seconds=20.0, leaf="log_event", filename=worker_py):
        slices = [
            {
                "start_t": float(t), "stop_t": t + 1.0, "nodes": [0, 1, 2, 3],
                "counts": [100, 100, 0, 0], "innermost": [0, 0, 50, 50],
            }
            for t in range(20)
        ]  # fmt: skip
        frames = [
            {"name": "work", "filename": "/home/ana/my.py", "line_number": 7},
            {"name": leaf, "filename": filename, "line_number": 1},
            {"name": "sort", "filename": "/x/site-packages/numpy/core.py", "line_number": 1},
        ]
        tree = {
            "frames": frames, "parents": [None, 0, 1, 1], "node_frames": [None, 0, 1, 2],
            "line_numbers": [None, 8, 2, 2], "calls": [], "slices": slices,
        }  # fmt: skip
        about = {"worker": "w1", "server_id": "id-w1-0.0", "prefix": "a"}
        times = {"t": 21.0, "start_t": 0.0, "stop_t": 20.0, "interval_seconds": 0.01}
        return [
            worker("w1"), task("a-1"), *run("a-1", 0.0, 20.0),
            *(
                {"kind": "event", "t": seconds * n / count, "topic": topic, "worker": "w1",
                 "payload": {"n": n}}
                for n in range(count)
            ),
            {"kind": "profile", **about, **times, "tree": tree},
        ]  # fmt: skip

    return flood


def test_a_flood_of_events(apply_each, flood):
    [[(entity, core_seconds, sentence)], *healthy, by_few, [(_, others, _)]] = apply_each(
        "event-flood",
        flood(4000),
        flood(1000),
        flood(4000, seconds=80.0),  # 50 per second
        flood(4000, topic="tcp://127.0.0.1:1"),  # Dask's own
        flood(4000, leaf="work", filename="/home/ana/my.py"),  # by a few of its tasks
        flood(4000, leaf="data_spec"),  # other work of Dask
        columns="entity, core_seconds, sentence",
    )

    assert entity == "progress"
    assert core_seconds == pytest.approx(10.0)
    assert sentence.startswith("4,000 events of topic progress in 20.0 s (200 per second)")
    assert "Tasks of a spent 10.0 of 20.0 sampled core-seconds on sending events." in sentence
    assert healthy == [[], [], []]
    assert [seconds for _, seconds, _ in by_few] == [others] == [None]


def test_transfers(apply_each, combined):
    [[(entity, core_seconds, sentence)], short] = apply_each(
        "transfers", combined(12.0), combined(8.0), columns="entity, core_seconds, sentence"
    )
    assert (entity, core_seconds) == ("produce to combine", pytest.approx(12.0))
    assert sentence.endswith("from other workers: 4.77 MiB, mostly results of produce.")
    assert short == []


def test_transfers_of_data_that_a_client_sent(apply, worker, task, run):
    """Five tasks one after another fetch the same input, which no task made."""
    records = [worker("w1")]
    for n in range(5):
        begin = 10.0 * n
        phases = [("transfer", begin, begin + 4, "w2"), ("compute", begin + 4, begin + 10)]
        records += [task(f"use-{n}", dependencies=["ndarray-1"])]
        records += run(f"use-{n}", begin, begin + 10, phases=phases)

    [(sentence, change)] = apply("transfers", *records, columns="sentence, change", stop_t=50.0)

    assert sentence == (
        "Threads waited 20.0 core-seconds for inputs of use from other workers: one input that "
        "no recorded task made, such as data that a client has sent."
    )
    assert change.startswith("If many tasks need the same data of the client, send it to all")


@pytest.mark.exhaustive
def test_inputs_that_were_computed_again_count_once(apply, worker, task, move, run, gone):
    """w1 is lost with three results of 5 MB; w2 computes them again."""
    records = [*(worker(f"w{number}") for number in range(3))]
    inputs = [f"in{number}-1" for number in range(3)]
    for key in inputs:
        records += [task(key), *run(key, 1.0, 2.0, worker="w1", nbytes=5_000_000)]
    records.append(gone("w1", 3.0, "handle-worker-cleanup-2.0"))
    for number, key in enumerate(inputs):
        lost = move(3.0, key, "memory>released", "handle-worker-cleanup-2.0")
        again = run(key, 3.5 + number, 4.5 + number, worker="w2", nbytes=5_000_000)
        records += [lost, *again]
    phases = [("transfer", 10.0, 20.0, "w2"), ("compute", 20.0, 25.0)]
    records += [
        task("out-1", dependencies=inputs),
        *run("out-1", 10.0, 25.0, worker="w0", phases=phases),
    ]

    [(sentence,)] = apply("transfers", *records, columns="sentence", stop_t=25.0)

    assert ": 14.3 MiB, such as results of in" in sentence


def test_transfers_that_delay_the_dispatch_of_other_tasks(apply_each, combined, task, run):
    """An attempt begins 6 s after its dispatch, while one of two threads is idle."""
    late = [task("late-1"), *run("late-1", 30.0, 60.0, phases=[("compute", 36.0, 60.0)])]

    assert apply_each(
        "transfers",
        combined(12.0),
        [*combined(12.0), *late],
        columns="wall_seconds_max",
    ) == [
        [(pytest.approx(1.1 * (12.0 + 12.0) / 2),)],
        [(pytest.approx(1.1 * (12.0 + 12.0 + 6.0) / 2),)],
    ]


def test_large_results_of_the_client(apply_each, worker, task, run):
    """Two threads are idle while the client fetches a result."""
    wants = {"t": 1.0, "action": "desires", "keys": ["merge-1"]}

    def trace(nbytes, seconds):
        return [
            worker("w1"), worker("w2"),
            task("merge-1", t=1.0, client="c"),
            {"kind": "wanted_keys", "t": 1.0, "client": "c", "changes": [wants]},
            *run("merge-1", 1.0, 50.0, nbytes=nbytes),
            activity("analyze", "wait", 1.0, 50.0 + seconds),
            # Another function waits for something else.
            activity("close", "wait", 80.0, 100.0),
        ]  # fmt: skip

    sentence = "After the last task, the client waited 10.0 s for results of merge: 64 MiB."
    expected = {
        (64 * 2**20, 10.0): [("merge", pytest.approx(20.0), sentence)],
        (1_000_000, 10.0): [],
        (64 * 2**20, 3.0): [],
    }
    columns = "entity, core_seconds, sentence"
    rows = apply_each("transfers", *starmap(trace, expected), columns=columns)
    assert rows == [*expected.values()]


def test_a_client_that_waits_for_tasks_does_not_fetch_results(apply, worker, task, move, run):
    """The worker begins no further task, and the client still wants its result."""
    keys = ["merge-1", "left-1"]
    wants = {"t": 1.0, "action": "desires", "keys": keys}
    records = [
        worker("w1"), *(task(key, t=1.0, client="c") for key in keys),
        {"kind": "wanted_keys", "t": 1.0, "client": "c", "changes": [wants]},
        *run("merge-1", 1.0, 50.0, nbytes=64 * 2**20),
        move(1.0, "left-1", "released>waiting"), move(1.0, "left-1", "waiting>queued"),
        activity("wait", "wait", 1.0, 70.0),
    ]  # fmt: skip

    assert apply("transfers", *records, stop_t=100.0) == []
