"""Lessons from a trial on real runs about explaining a run, each as a small trace.

Some lessons are tested beside the code that they are about: one waiting task explains one idle
thread (`sql/workers/test_core_time.py`), a final merge is not on the critical path of a tail
(`sql/tasks/test_critical_path.py`), and the overhead per task in the simulation
(`algorithms/test_simulation.py`).
"""

import pytest

from marks import exhaustive
from roast_analyze.computed.rules import rules


@pytest.fixture
def found(open_trace):
    """Return the findings of a trace of some records that ends at 100 s: severity by id."""

    def found(*records):
        frame = open_trace(*records).findings()
        return dict(zip(frame["id"], frame["severity"], strict=True))

    return found


@pytest.fixture
def cost(open_trace):
    """Return the cost that a rule finds: core seconds, least and largest wall seconds."""

    def cost(rule_id, *records):
        [rule] = [rule for rule in rules() if rule.id == rule_id]
        frame = open_trace(*records).sql(rule.sql, rule.parameters).pl()
        [row] = frame.select("core_seconds", "wall_seconds_min", "wall_seconds_max").rows()
        return row

    return cost


@pytest.fixture
def naps(task, run):
    """Return tasks of equal length that a worker computes one after another."""

    def naps(worker, start, stop, seconds=1.0, prefix="nap"):
        records = []
        for number in range(round((stop - start) / seconds)):
            key, begin = f"{prefix}-{worker}{number}", start + seconds * number
            records += [task(key), *run(key, begin, begin + seconds, worker=worker)]
        return records

    return naps


def test_a_final_merge_does_not_explain_a_tail(found, worker, task, run, move, naps):
    """One chunk of 40 s starts last; the merge of 1 s waits for it, as two threads do."""
    chunks = [record for name in ("w1", "w2", "w3") for record in naps(name, 0.0, 59.0)]
    keys = [record["key"] for record in chunks if record["kind"] == "task"]
    findings = found(
        *(worker(name) for name in ("w1", "w2", "w3")),
        *chunks,
        task("nap-last"),
        *run("nap-last", 0.0, 99.0, phases=[("compute", 59.0, 99.0)]),
        task("merge-1", dependencies=[*keys, "nap-last"]),
        move(0.0, "merge-1", "released>waiting"),
        *run("merge-1", 99.0, 100.0),
    )

    assert findings["long-tail"] == "major"
    assert "low-parallelism" not in findings


def test_the_start_of_the_client_is_not_a_finding(found, worker, naps):
    """The client prepares its first graph for 22 s, and gathers results for 3 s."""
    records = [*naps("w1", 22.0, 97.0), *naps("w2", 22.0, 97.0)]
    submitted = [r | {"t": 22.0} if r["kind"] == "task" else r for r in records]
    assert found(worker("w1"), worker("w2"), *submitted) == {}


def test_workers_without_work_cost_core_time(cost, worker, naps):
    """Two of eight threads are used: without the others, the run takes the same time."""
    records = [worker(f"w{number}") for number in range(8)]
    records += [*naps("w0", 0.0, 100.0), *naps("w1", 0.0, 100.0)]
    assert cost("excess-workers", *records) == (pytest.approx(600.0), 0.0, 0.0)


@pytest.mark.parametrize(("cores", "share"), [(8, 3 / 4), (2, 1 / 2)])
def test_the_cost_of_the_gil_is_limited_by_the_cores(
    cost, worker, process_facts, sample, cores, share
):
    """Four threads take turns computing; one process per core could compute concurrently."""
    delta = {"kind": "fine_metric", "t": 50.0, "worker": "w1", "server_id": "id-w1-0.0"}
    delta |= {"context": "execute", "prefix": "a", "unit": "seconds"}
    machine = {"host": "h", "cores": 8, "usable_cores": cores}
    core_seconds, *_ = cost(
        "gil",
        worker("w1", nthreads=4),
        *process_facts("worker", worker="w1", machine=machine),
        {**delta, "activity": "thread-cpu", "delta": 100.0},
        {**delta, "activity": "thread-noncpu", "delta": 300.0},
        *(
            sample(t, cpu=100.0, executing=4, nthreads=4, event_loop_interval=0.1)
            for t in range(0, 100, 10)
        ),
    )
    assert core_seconds == pytest.approx(400.0 * share)


def test_killed_workers_cost_more_than_the_lost_work(cost, worker, run, task, move, gone):
    """No attempt is lost, but a result is; and two threads are missing for 10 s."""
    core_seconds, _, most = cost(
        "killed-workers",
        worker("w1", name="A", nthreads=2),
        worker("w2", name="B", nthreads=2),
        task("a"), *run("a", 0.0, 30.0),
        gone("w1", 40.0, "handle-worker-cleanup-40.0"),
        move(40.0, "a", "memory>released", "handle-worker-cleanup-40.0"),
        *run("a", 40.0, 70.0, worker="w2"),
        worker("w3", 50.0, name="A", nthreads=2),
    )  # fmt: skip
    assert core_seconds == pytest.approx(30.0 + 2 * 10.0)
    # Everything waited for the repeated result.
    assert most >= 30.0


@pytest.fixture
def combined(worker, task, run):
    """Return tasks of 2 s with local inputs, and tasks that first fetch theirs for 3 s."""

    def combined(seconds, count=5):
        records = [worker("w1"), worker("w2")]
        for number in range(count):
            here, there = f"combine-{number}", f"combine-{count + number}"
            fetched = 10.0 + (3.0 + seconds) * number
            computed = fetched + 3.0
            phases = [
                ("transfer", fetched, computed),
                ("compute", computed, computed + seconds),
            ]
            records += [
                task(f"read-{number}"), *run(f"read-{number}", number, number + 1.0),
                task(here, dependencies=[f"read-{number}"]),
                *run(here, 10.0 + 2.0 * number, 12.0 + 2.0 * number),
                task(there, dependencies=[f"read-{number}"]),
                *run(there, fetched, computed + seconds, worker="w2", phases=phases),
            ]  # fmt: skip
        return records

    return combined


@pytest.mark.exhaustive
def test_transfers_lengthen_computing_too(cost, combined):
    """Five tasks wait for 15 s in all, and then compute for 4 s each instead of 2 s."""
    core_seconds, least, most = cost("transfers", *combined(2.0))
    assert (core_seconds, least) == pytest.approx((15.0, 0.5 * 15.0 / 2))
    # The tail of 15 s would be saved, too.
    assert most == pytest.approx(1.1 * (15.0 + 15.0) / 2)
    assert cost("transfers", *combined(1.0))[0] == pytest.approx(15.0)
    assert cost("transfers", *combined(4.0)) == pytest.approx(
        (core_seconds + 5 * 2.0, least, most + 1.1 * 5 * 2.0 / 2)
    )


def test_few_tasks_do_not_show_that_transfers_lengthen_computing(cost, combined):
    assert cost("transfers", *combined(4.0, count=4))[0] == pytest.approx(4 * 3.0)


def test_client_gaps_do_not_depend_on_the_number_of_workers(open_trace, worker, task, run):
    """A gap of 40 s between two graphs of 20 s: twice the workers do not shorten it."""
    records = [worker("w1")]
    for graph, begin in enumerate((0.0, 60.0)):
        for number in range(2):
            key, t = f"nap-{graph}{number}", begin + 10 * number
            records += [
                task(
                    key,
                    t=begin,
                    stimulus_id=f"g{graph}",
                    group=f"nap{graph}",
                    priority=[number],
                ),
                *run(key, t, t + 10.0),
            ]
    trace = open_trace(*records, stop_t=80.0)
    more = trace.what_if(workers=[2]).row(-1, named=True)
    without = trace.what_if(without=["client-gaps"]).row(-1, named=True)
    assert more["wall_seconds"] == pytest.approx(10.0 + 40.0 + 10.0)
    assert without["wall_seconds"] == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("facts", "options", "note"),
    [
        ({"cores": 2, "usable_cores": 2}, {"workers": [4]}, "their CPU time is not recorded"),
        exhaustive({}, {"workers": [4]}, "the cores of the host are not recorded"),
        exhaustive({}, {"threads": [4]}, "the upper end holds if tasks hold the GIL"),
    ],
)
def test_contention_that_was_not_recorded_is_unknown(
    open_trace, worker, process_facts, naps, facts, options, note
):
    machine = {"machine": {"host": "h", **facts}} if facts else {}
    trace = open_trace(
        worker("w1", host="h"),
        *process_facts("worker", worker="w1", **machine),
        *naps("w1", 0.0, 10.0),
    )
    prediction = trace.what_if(**options).row(-1, named=True)
    assert note in prediction["note"]


def test_the_overhead_of_a_loaded_run_is_not_that_of_others(open_trace, worker, task, run):
    """Eight dispatches take 0.5 s, two take 20 s; predictions for other clusters use 0.5 s."""
    records, t = [worker("w1")], 0.0
    for number in range(10):
        delay = 20.0 if number in (4, 7) else 0.5
        begin = t + delay
        records += [
            task(f"a-{number}", dependencies=[f"a-{number - 1}"] if number else []),
            *run(f"a-{number}", t, begin + 1.0, phases=[("compute", begin, begin + 1.0)]),
        ]
        t = begin + 1.0
    frame = open_trace(*records, stop_t=t).what_if(workers=[2])
    replay, other = frame["wall_seconds"].to_list()
    assert replay == pytest.approx(t, rel=0.1)
    assert other == pytest.approx(10 * 1.5, rel=0.1)
