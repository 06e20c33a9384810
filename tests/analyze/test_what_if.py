"""The plan of a recorded run, and its predictions, from traces."""

import math
from pathlib import Path

import pytest

from roast_analyze import Trace, what_if
from roast_analyze.algorithms.plan import Presence, Submission
from roast_analyze.algorithms.simulation import simulate
from roast_analyze.errors import TraceError
from roast_analyze.recorded_runs import recorded_runs

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture
def plan_of(open_trace):
    """Return the plan of a trace of some records that ends at 100 s."""

    def plan_of(*records):
        [recorded] = recorded_runs(open_trace(*records)).values()
        return recorded.plan

    return plan_of


def test_graphs_follow_the_results_that_the_client_waited_for(plan_of, task, run):
    def wants(t, *keys):
        changes = [{"t": t, "action": "desires", "keys": keys}]
        return {"kind": "wanted_keys", "t": t, "client": "c", "changes": changes}

    plan = plan_of(
        task("a", t=1.0, stimulus_id="g1", client="c"),
        task("b", t=1.0, stimulus_id="g1", client="c"),
        # Before the results of the first graph, so relative to its submission.
        task("d", t=3.0, stimulus_id="g2", client="c"),
        # After both graphs: the client waited for the last result.
        task("e", t=12.0, stimulus_id="g3", client="c"),
        wants(1.0, "a", "b"),
        wants(3.0, "d"),
        *run("a", 1.0, 5.0),
        *run("b", 5.0, 9.0),
        *run("d", 9.0, 10.0),
        *run("e", 12.0, 20.0),
    )

    assert plan.submissions == [
        Submission(1.0),
        Submission(2.0, after_graph=0),
        Submission(2.0, after=(2,)),
    ]
    assert plan.closing_seconds == 80.0


@pytest.mark.parametrize(("delay", "is_streaming"), [(0.125, True), (0.5, False)])
def test_graphs_follow_results_as_they_are_completed(plan_of, task, run, delay, is_streaming):
    # The client submits a task after each result, or in the middle between two results.
    keys = [f"first-{number}" for number in range(20)]
    records = [task(key, t=1.0, stimulus_id="g", client="c") for key in keys]
    for number, key in enumerate(keys):
        records += run(key, 1.0 + number, 2.0 + number)
    for number in range(6):
        key, t = f"later-{number}", 2.0 + number + delay
        records += [task(key, t=t, stimulus_id=key, client="c"), *run(key, 30.0, 31.0)]
        keys.append(key)
    change = {"t": 1.0, "action": "desires", "keys": keys}
    records.append({"kind": "wanted_keys", "t": 1.0, "client": "c", "changes": [change]})

    _, second, third, *_ = plan_of(*records).submissions

    if is_streaming:
        assert second == Submission(delay, after_graph=0, after_results=1)
        assert third == Submission(delay, after_graph=1, after_results=2)
    else:
        assert second == Submission(1.0 + delay, after_graph=0)
        assert third == Submission(1.0, after_graph=1)


def test_durations_and_failed_attempts(plan_of, task, run):
    # The recomputation of a is left out: the simulation recomputes results of lost workers.
    plan = plan_of(
        task("a"),
        *run("a", 0.0, 2.0, outcome="retried", phases=[("compute", 0.5, 1.5)]),
        *run(
            "a", 2.0, 10.0, nbytes=7,
            phases=[
                ("transfer", 3.0, 4.0, "w2"), ("deserialize", 5.0, 5.5), ("compute", 6.0, 9.0)
            ],
        ),
        *run("a", 20.0, 30.0),
        # It waited, and raised Reschedule at once.
        task("b"),
        *run("b", 0.0, 3.0, outcome="rescheduled"),
        *run("b", 4.0, 5.0),
    )  # fmt: skip

    # From the first phase on the thread to the last.
    assert plan.seconds.tolist() == [4.0, 1.0]
    assert plan.nbytes.tolist() == [7.0, 8.0]
    assert plan.failed_seconds == {0: [1.0], 1: [0.0]}


def test_the_first_task_of_a_process_warms_up(plan_of, task, run):
    tasks = [task(f"x-{n}") for n in range(8)]
    runs = [*run("x-0", 0.0, 5.0), *run("x-1", 0.0, 5.0, worker="w2")]
    for number in range(2, 8):
        runs += run(f"x-{number}", 3.0 + number, 4.0 + number)

    plan = plan_of(*tasks, *runs)

    assert plan.warmup_seconds == {0: 4.0}
    assert plan.seconds.tolist() == [1.0] * 8


def test_overhead(plan_of, task, run):
    # The first dispatch takes 1 s, those to an idle thread 0.5 s; each end is reported after
    # 0.25 s. The last task waited on the worker, and began 0.125 s after the one before.
    runs = run("x-0", 0.0, 2.25, phases=[("compute", 1.0, 2.0)])
    for number in range(1, 6):
        t = 5.0 * number
        runs += run(f"x-{number}", t, t + 1.75, phases=[("compute", t + 0.5, t + 1.5)])
    runs += run("x-6", 26.0, 28.25, phases=[("compute", 26.625, 28.0)])

    overhead = plan_of(*(task(f"x-{number}") for number in range(7)), *runs).overhead

    assert (overhead.first_dispatch_seconds, overhead.dispatch_seconds) == (0.5, 0.5)
    assert (overhead.turnaround_seconds, overhead.report_seconds) == (0.125, 0.25)


def test_dispatch_is_not_measured_by_the_first_tasks_of_workers(plan_of, task, run):
    # With short tasks, a dispatch that seems to take 1 s would leave the thread idle.
    runs = run("x-0", 0.0, 2.25, phases=[("compute", 1.0, 2.0)])
    runs += run("x-1", 0.0, 3.25, phases=[("compute", 2.0, 3.0)])

    overhead = plan_of(task("x-0"), task("x-1"), *runs).overhead

    assert (overhead.first_dispatch_seconds, overhead.dispatch_seconds) == (0.75, 0.25)


def test_placement(plan_of, task, worker, run, move):
    plan = plan_of(
        worker("w1"),
        worker("w2"),
        *map(task, "abcd"),
        *run("b", 0.0, 2.0),
        *run("a", 1.0, 3.0, worker="w2"),
        # It was assigned to the first worker, and stolen by the other one when that was idle.
        move(1.5, "c", "waiting>processing", worker="w1"),
        move(
            8.0, "c", "processing>memory", phases=[("compute", 7.0, 8.0)], worker="w2", thread=1
        ),
    )

    placement = plan.placement
    assert [plan.keys[task] for task in placement.assignment_order.argsort()] == ["b", "a", "c"]
    assert [plan.keys[task] for task in placement.start_order.argsort()] == ["b", "a", "c"]
    assert placement.workers.tolist() == [1, 0, -1]
    assert placement.steal_seconds == 7.0
    # The wait of a stolen task is not overhead.
    assert plan.overhead.turnaround_seconds == 0.0


def test_placement_that_the_simulation_does_not_choose(open_trace, worker, task, run):
    # For an unknown reason, all tasks ran on one of two workers.
    trace = open_trace(
        worker("w1"),
        worker("w2"),
        *(task(key, group=key) for key in "abcd"),
        *(
            record
            for n, key in enumerate("abcd")
            for record in run(key, 25.0 * n, 25.0 * (n + 1))
        ),
    )

    replay = trace.what_if(workers=[4]).row(0, named=True)

    assert replay["wall_seconds"] == 100.0
    assert replay["wall_seconds_max"] == pytest.approx(55.0)
    assert (replay["replay_error"], replay["placement_error"]) == (0.0, -0.5)
    assert replay["note"].startswith(
        "not predicted: with simulated placement, the run differs by -50%"
    )


def test_workers_and_restrictions(plan_of, task, run, worker, gone):
    plan = plan_of(
        worker("w1", t=0.0, nthreads=2, host="h"),
        worker("w2", t=1.0, name="second", host="h"),
        task("a", annotations={"workers": ["w2"]}),
        *run("a", 1.0, 9.0, worker="w2"),
        gone("w1", 5.0, "handle-worker-cleanup-1"),
        # After the last task, when nothing is left to do.
        gone("w2", 50.0, "handle-worker-cleanup-2"),
    )

    assert plan.workers == [
        Presence("w1", "h", 2, 0.0, 5.0, is_lost=True, address="w1"),
        Presence("second", "h", 1, 1.0, math.inf, is_lost=True, address="w2"),
    ]
    assert plan.restrictions == {0: frozenset({"w2"})}


def test_a_worker_that_left_before_it_joined(plan_of, worker, gone, task, run):
    # The scheduler's clock was set back in between.
    plan = plan_of(
        worker("w1", t=0.0),
        worker("w2", t=3.0, server_id="s"),
        task("a"),
        {**gone("w2", 1.0, "retire-workers-1"), "server_id": "s"},
        *run("a", 1.0, 9.0, worker="w1"),
    )

    assert [(one.from_seconds, one.to_seconds) for one in plan.workers] == [
        (0.0, math.inf),
        (3.0, 3.0),
    ]
    assert simulate(plan).wall_seconds >= 9.0


def test_tasks_that_are_not_simulated_are_noted(open_trace, worker, move, task, run):
    trace = open_trace(
        worker("w1"),
        *(task("a-1", annotations={"resources": {"GPU": 1}}), *run("a-1", 0.0, 1.0)),
        *(task("b-1"), move(1.0, "b-1", "released>waiting")),
        stop_t=2.0,
    )
    note = trace.what_if(workers=[2])["note"][-1]
    assert "not included: tasks that still waited when the recording ended (1)" in note
    assert "not simulated: resources that tasks need (1)" in note


def test_a_loss_after_the_predicted_end_is_noted(open_trace, worker, gone, task, run):
    trace = open_trace(
        worker("w1", t=0.0),
        *(task(f"a-{number}") for number in range(10)),
        *(one for number in range(9) for one in run(f"a-{number}", number, number + 1.0)),
        gone("w1", 9.5, "handle-worker-cleanup-1"),
        worker("w2", t=9.6),
        *run("a-9", 10.0, 11.0, worker="w2"),
    )

    notes = trace.what_if(workers=[1, 4])["note"]

    assert notes[0] is None
    assert (
        "a worker that was lost in the recorded run stays: the last task ends before"
        in notes[1]
    )


@pytest.fixture
def two_cores(write_trace, worker, process_facts, task, run):
    """Write a trace of successive tasks on a host with two cores, and their CPU seconds."""

    def two_cores(name, durations, cpu_seconds, waiting_seconds=None):
        metric = {"kind": "fine_metric", "t": 10.0, "worker": "w1", "server_id": "id-w1-0.0"}
        metric |= {"context": "execute", "prefix": "a", "unit": "seconds"}
        activities = {"thread-cpu": cpu_seconds, "thread-noncpu": waiting_seconds}
        machine = {"host": "h", "cores": 2, "usable_cores": 2}
        records, t = [worker("w1", host="h")], 0.0
        records += process_facts("worker", worker="w1", machine=machine)
        for n, seconds in enumerate(durations):
            records += [task(f"a-{n}"), *run(f"a-{n}", t, t + seconds)]
            t += seconds
        records += [
            {**metric, "activity": activity, "delta": seconds}
            for activity, seconds in activities.items()
            if seconds is not None
        ]
        return write_trace(*records, name=f"{name}.jsonl", trace_id=name, stop_t=t)

    return two_cores


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("cpu_seconds", "waiting_seconds", "workers", "expected", "note"),
    [
        # Tasks that wait for something other than a core: 4 and 8 of them fit.
        (0.1, 9.9, 4, (20.0, 20.0), "4 threads share 2 cores: the overhead of Dask may be"),
        # Those that compute share the cores.
        (9.0, 1.0, 2, (40.0, 40.0), "holds if 2 cores of the host are free"),
        (9.0, 1.0, 8, (36.0, 36.0), "8 threads share 2 cores; computation is stretched"),
        # With a core for half of the time, they waited for anything, or the host was short of
        # cores: then more of them do not help.
        (
            5.0,
            5.0,
            2,
            (40.0, 80.0),
            "the upper end if the host was short of cores (they used no",
        ),
        (5.0, 5.0, 8, (20.0, None), "a lower bound: it may take more than 4 times as long; "),
        (None, None, 8, (10.0, None), "(their CPU time is not recorded)"),
    ],
)
def test_more_workers_on_a_host_with_two_cores(
    two_cores, cpu_seconds, waiting_seconds, workers, expected, note
):
    """Of eight tasks of 10 s; one worker takes 80 s."""
    with Trace(two_cores("a", [10.0] * 8, cpu_seconds, waiting_seconds)) as trace:
        row = trace.what_if(workers=workers).row(1, named=True)

    least, most = row["wall_seconds_min"] * 1.1, (row["wall_seconds_max"] or 0.0) / 1.1
    assert (least, most or None) == (
        pytest.approx(expected[0]),
        expected[1] and pytest.approx(expected[1]),
    )
    assert (row["wall_seconds"] is None) == (expected[1] is None)
    assert note in row["note"]


def test_threads_of_a_worker_may_share_the_gil(two_cores):
    with Trace(two_cores("a", [10.0] * 8, 9.5, 0.5)) as trace:
        row = trace.what_if(threads=2).row(1, named=True)

    assert row["wall_seconds_max"] == pytest.approx(80.0 * 1.1)
    assert "the upper end holds if tasks hold the GIL" in row["note"]


def test_tasks_share_the_cores_of_the_host_only_while_they_run(two_cores):
    """One worker, then eight, on a host with two cores; each task uses a core."""
    runs = {
        "a": ([10.0], [10.0, 10.0]),
        # Five share the cores for 2.5 s; the long one then runs alone.
        "b": ([10.0, 1.0, 1.0, 1.0, 1.0], [14.0, 11.5]),
        "c": ([2.0] * 8, [16.0, 8.0]),
    }
    paths = [two_cores(name, chunks, sum(chunks)) for name, (chunks, _) in runs.items()]

    with Trace(*paths) as trace:
        predicted = trace.what_if(workers=[8])

    for name, (_, expected) in runs.items():
        walls = predicted.filter(trace_id=name)["wall_seconds"].to_list()
        assert walls == pytest.approx(expected), name


@pytest.mark.exhaustive
def test_samples_are_replayed():
    """Runs with failures, a lost worker, successive graphs, transfers and a shuffle."""
    names = ("coffea", "coffea_failures", "image_pipeline", "shuffle_reduce")
    with Trace(*(SAMPLES / f"{name}.jsonl.zst" for name in names)) as trace:
        frame = trace.what_if(workers=3)

    assert frame["trace_id"].n_unique() == 4
    assert frame["replay_error"].abs().max() < 0.1


@pytest.mark.exhaustive
def test_chunk_sizes_of_a_sample_are_predicted_and_limited(monkeypatch):
    with Trace(SAMPLES / "coffea.jsonl.zst") as trace:
        usual, small, large = trace.what_if(chunk_sizes=[5_000, 200_000]).iter_rows(named=True)

        # Small chunks have more fixed cost; what larger ones save of it is not known.
        assert usual["wall_seconds"] < small["wall_seconds"]
        assert large["note"].startswith("a lower bound: ")

        monkeypatch.setattr(what_if, "_MAX_CHUNKS", 100)
        [(events,)] = trace.rows("SELECT events FROM run")
        with pytest.raises(TraceError, match=r"invalid chunk size 100: use [0-9,]+ or more"):
            trace.what_if(chunk_sizes=100)
        assert trace.what_if(chunk_sizes=-(-events // 100)).height == 2


def test_other_chunk_sizes_are_predicted_where_none_can_be_recommended(
    open_trace, worker, task, chunk, run
):
    # From chunks of one size, the fixed cost of a chunk is not known.
    records = [worker("w1")]
    for n in range(4):
        key, t = f"a-{n}", 20.0 * n
        entries = {"entry_start": 100 * n, "entry_stop": 100 * n + 100}
        records += [task(key), *run(key, t, t + 20.0)]
        records.append(chunk(key, dataset="d", filename="f", **entries))
    trace = open_trace(*records, stop_t=80.0)

    recorded, larger, auto = trace.what_if(chunk_sizes=["auto", 200]).iter_rows(named=True)

    assert (recorded["chunk_size"], larger["chunk_size"], auto["chunk_size"]) == (
        None,
        200,
        None,
    )
    assert recorded["wall_seconds"] == pytest.approx(80.0)
    # From none of the 20 s of a chunk that are fixed, to all of them.
    ends = larger["wall_seconds_min"], larger["wall_seconds_max"]
    assert ends == (pytest.approx(40.0 / 1.1), pytest.approx(80.0 * 1.1))
    assert "the fixed time of a chunk within the processor is not known" in larger["note"]
    assert auto["wall_seconds"] is None
    assert auto["note"].startswith(
        "chunk size auto: no size can be recommended from this trace"
    )


@pytest.mark.exhaustive
def test_odd_traces_have_no_predictions(open_trace, write_trace, chunk, task, run):
    # Without a cluster there are chunks, but no tasks; nothing ran.
    alone = chunk("k", run_id=1, dataset="d", start_t=1.0, stop_t=2.0)
    for records in ([], [alone], [task("a")], run("a", 1.0, 2.0)):
        assert open_trace(*records).what_if().is_empty()
    # A range after the last task.
    with Trace(write_trace(task("a"), *run("a", 1.0, 2.0)), start=50.0) as trace:
        assert trace.what_if().is_empty()
    # A range within a run: attempts are cut at its ends.
    with Trace(SAMPLES / "coffea_failures.jsonl.zst", start=3.0, stop=9.0) as trace:
        assert trace.what_if(without=["failures"])["wall_seconds"].is_finite().all()
