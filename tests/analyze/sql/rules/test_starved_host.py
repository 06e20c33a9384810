"""Rules starved-host and library-threads, and what others read of the load of sampled hosts."""

import pytest

from roast_analyze import Trace
from roast_analyze.report import findings, unexplained

#: Of two cores, with two workers that compute one task each.
MACHINE = {"host": "h", "cores": 2, "usable_cores": 2}


@pytest.fixture
def trace(worker, process_facts, sample, task, run):
    """Return a run of 100 s whose host was sampled every 5 s.

    `own` and `others` are cores in use, the rest is free; `waiting` the share of the time for
    which threads of a worker waited for a core. A group with a quota is throttled for a
    share of its periods. Further metrics are the same in all samples.
    """

    def trace(
        own=1.0, others=1.0, waiting=0.5, quota=None, throttled=0.0, executing=1,
        sampler="w1", scheduler_cpu=0.0, cores=2, steps=range(0, 101, 5), **same,
    ):  # fmt: skip
        records = []
        for name in ("w1", "w2"):
            cpu = 100 * (own - scheduler_cpu / 100) / 2
            records += [
                worker(name, name=name),
                *process_facts("worker", worker=name, machine=MACHINE),
                task(f"a-{name}"),
                *run(f"a-{name}", 0.0, 100.0, worker=name),
                *(sample(t, name, cpu=cpu, executing=executing) for t in range(100)),
            ]
        records += process_facts("scheduler", machine=MACHINE)
        records += [
            {"kind": "scheduler_sample", "t": t, "metrics": {"cpu": scheduler_cpu}}
            for t in range(100)
        ]
        for t in steps:
            metrics = {
                "clock_seconds": float(t),
                "cores": cores,
                "usable_cores": cores,
                "host_busy_seconds": (own + others) * t,
                "host_idle_seconds": (cores - own - others) * t,
                "threads_busy_seconds": own / 2 * t,
                "threads_waiting_seconds": own / 2 * t * waiting / (1 - waiting),
            }
            if quota is not None:
                metrics |= {
                    "cgroup_cores": quota,
                    "cgroup_busy_seconds": own * t,
                    "cgroup_periods": 10 * t,
                    "cgroup_throttled_periods": int(10 * throttled * t),
                    "cgroup_throttled_seconds": (2 * executing - own) * t,
                }
            metrics = {n: v for n, v in {**metrics, **same}.items() if v is not None}
            about = {"host": "h", "worker": sampler, "server_id": f"id-{sampler}"}
            records.append({"kind": "host_sample", "t": float(t), **about, "metrics": metrics})
        return records

    return trace


def test_more_threads_than_cores(apply_each, trace):
    """Four threads of tasks compute on two cores, alone, or while others use a half of them."""
    [[(alone, change)], [(beside, _)]] = apply_each(
        "starved-host",
        trace(own=1.95, others=0.05, waiting=0.5, executing=2),
        trace(own=1.0, others=1.0, waiting=0.5, executing=2),
        columns="sentence, change",
    )

    assert alone == (
        "4.0 threads of tasks computed at a time on host h, which has 2 cores, for 100 % of "
        "the sampled time with tasks. Threads that could have used a core waited for one for "
        "50 % of that time."
    )
    assert change.startswith(
        "Start at most as many threads of workers on host h as it has cores"
    )
    assert beside.endswith(" 4.0 threads of tasks computed at a time.")


def test_hosts_without_free_cores(apply_each, trace):
    crowded = [("h", 100.0)]  # one core for 100 s
    cases = {
        "other programs use one of two cores": (trace(), crowded),
        "the run uses both cores": (trace(own=1.95, others=0.05, waiting=0.1), []),
        "the run has more threads than cores": (
            trace(own=1.95, others=0.05, waiting=0.5, executing=2),
            [("h", None)],  # a remark: fewer threads would compute as much
        ),
        "the scheduler, which is the client, uses a core": (
            trace(own=2.0, others=0.0, scheduler_cpu=100.0),
            [],
        ),
        "cores are free": (trace(own=1.0, others=0.5), []),
        "other programs use cores, but tasks wait for I/O": (
            trace(own=0.1, others=1.9, waiting=0.05),
            [],
        ),
        "tasks that wait for I/O lack little": (
            trace(own=0.1, others=1.9, waiting=0.5),
            [],
        ),
        "the system does not count the time for which threads wait": (
            trace(threads_waiting_seconds=None),
            [],
        ),
        "the host is not described by files": (
            trace(host_busy_seconds=None, host_idle_seconds=None),
            [],
        ),
        "the scheduler took the samples": (trace(sampler=None), []),
        "the host was sampled for 10 s": (trace(steps=[0, 10]), [("h", 10.0)]),
        "no tasks computed": (trace(executing=0), []),
        "one sample": (trace(steps=[50]), []),
    }
    rows = apply_each("starved-host", *(records for records, _ in cases.values()))
    assert dict(zip(cases, rows, strict=True)) == {
        case: [(host, pytest.approx(seconds)) for host, seconds in expected]
        for case, (_, expected) in cases.items()
    }


def test_threads_of_libraries(apply_each, trace):
    """Two workers compute one task each on two cores, as do seven threads in each."""

    def native(busy, waiting, **options):
        records = trace(own=1.95, others=0.05, **options)
        for record in records:
            if record["kind"] == "host_sample":
                t = record["t"]
                record["metrics"] |= {
                    "native_threads": 7,
                    "native_busy_seconds": busy * t,
                    "native_waiting_seconds": waiting * t,
                }
        return records

    [[(entity, core_seconds, sentence)], *healthy] = apply_each(
        "library-threads",
        native(0.7, 2.8),
        native(0.9, 0.1),  # one thread at a time, which has a core
        native(0.0, 0.0),
        native(0.7, 2.8, executing=0),
        trace(own=1.95, others=0.05),  # before trace format 2.8
        [r for r in native(0.7, 2.8, cores=16) if r["kind"] != "worker_sample"],
        columns="entity, core_seconds, sentence",
    )

    assert (entity, core_seconds) == ("h", None)
    assert sentence == (
        "Libraries had started 7 threads in a worker on host h, which has 2 cores and 2"
        " workers. For 100 % of the sampled time with tasks, no core was free, and 3.5 of these"
        " threads were ready at a time, of which 80 % waited for a core. If the other workers"
        " had as many, there were 9.0 ready threads of libraries and tasks."
    )
    assert healthy == [[], [], [], [], []]


def test_the_use_of_cores_by_the_run_is_not_known(apply_each, trace):
    """Nothing is said about other programs without the samples of the run's own processes."""
    unknown = [
        {**record, "metrics": {}} if record["kind"] == "worker_sample" else record
        for record in trace()
    ]
    without = [record for record in trace() if record["kind"] != "scheduler_sample"]
    no_samples = [record for record in trace() if record["kind"] != "host_sample"]

    assert apply_each("starved-host", unknown, without, no_samples) == [[], [], []]


def test_the_load_of_a_host_is_stated_once(open_trace, trace):
    opened = open_trace(*trace())
    found = findings.query(opened)

    assert ("starved-host", "h") in [(finding.id, finding.entity) for finding in found]
    assert unexplained.query(opened, ()).loaded_hosts != []
    assert unexplained.query(opened, found).loaded_hosts == []


def test_what_is_said_of_other_programs(apply, trace):
    [(sentence, least, most, change, evidence)] = apply(
        "starved-host",
        *trace(),
        columns="sentence, wall_seconds_min, wall_seconds_max, change, evidence",
    )

    assert sentence == (
        "No core of host h was free for 100 % of the sampled time with tasks. Then, "
        "processes of this run used 1.0 of 2 cores, and others 1.0. Tasks of a worker that "
        "could have used a core waited for one for 50 % of that time."
    )
    assert (least, most) == pytest.approx((20.0, 50.0))
    assert change.startswith("Check which processes use the cores of host h (top): ")
    assert "FROM host_samples WHERE host = 'h'" in evidence


QUOTA = {"own": 1.0, "others": 0.0, "waiting": 0.1, "quota": 1.0, "cores": 8}


def test_control_groups_that_are_throttled(apply_each, trace):
    cases = {
        "two threads have a quota of one core": (trace(**QUOTA, throttled=0.9), [100.0]),
        "it is hardly throttled": (trace(**QUOTA, throttled=0.1), []),
        "tasks use all of the quota": (
            trace(**{**QUOTA, "own": 1.95, "quota": 2.0}, throttled=0.9),
            [],
        ),
        "threads have less to compute than the quota": (
            trace(**QUOTA, throttled=0.9, cgroup_throttled_seconds=0.0),
            [],
        ),
        "there is no quota": (trace(**{**QUOTA, "quota": None}), []),
    }
    rows = apply_each(
        "starved-host", *(records for records, _ in cases.values()), columns="core_seconds"
    )
    assert dict(zip(cases, rows, strict=True)) == {
        case: [(pytest.approx(seconds),) for seconds in expected]
        for case, (_, expected) in cases.items()
    }


def test_a_quota_is_raised_where_cores_are_free(apply_each, trace):
    free, full = (trace(**{**QUOTA, "others": others}, throttled=0.9) for others in (0.0, 7.0))
    columns = "sentence, wall_seconds_max, change"
    [[(sentence, saved, change)], [(_, unknown, elsewhere)]] = apply_each(
        "starved-host", free, full, columns=columns
    )

    assert sentence == (
        "The control group of the workers on host h had used up its quota of 1 cores in 90 % "
        "of the periods, for 100 % of the sampled time with tasks. Then, 2.0 threads "
        "computed at a time."
    )
    assert saved == pytest.approx(50.0)
    assert unknown is None
    assert "to the number of threads, or run fewer" in change
    assert "to the number of threads, on a host with free cores, or run fewer" in elsewhere


# -- the load of a host, which all rules read --------------------------------------------------

LATE = {"event_loop_interval": 0.024}


def test_samples_of_a_host_tell_its_load(write_traces, trace):
    """Late event loops alone prove nothing where the host was sampled."""
    cases = [
        ({}, True),
        ({"own": 1.95, "others": 0.05, "waiting": 0.1}, False),
        # More threads than cores, of the run itself.
        ({"own": 1.95, "others": 0.05, "waiting": 0.5, "executing": 2}, True),
        ({"own": 1.0, "others": 0.5}, False),
        ({**QUOTA, "throttled": 0.9}, True),
        ({**QUOTA, "throttled": 0.1}, False),
        # Where the system does not count the time for which threads wait.
        ({"threads_waiting_seconds": None}, True),
        ({"threads_waiting_seconds": None, "own": 1.95, "others": 0.05}, False),
        ({"threads_waiting_seconds": None, "own": 1.95, "others": 0.05, "executing": 2}, True),
        # Half of the time.
        ({"sampler": None, "executing": 0}, True),
    ]
    traces = [trace(**options) for options, _ in cases]
    late = [
        [
            {**record, "metrics": {**record["metrics"], **LATE}}
            if record["kind"] in ("worker_sample", "scheduler_sample")
            else record
            for record in records
        ]
        for records in traces
    ]

    with Trace(*write_traces(*traces, *late)) as opened:
        found = opened.rows("SELECT trace_id, host, is_loaded, is_sampled FROM _host_load")

    expected = [is_loaded for _, is_loaded in cases] * 2
    assert sorted(found) == sorted(
        (f"T{number}", "h", is_loaded, True) for number, is_loaded in enumerate(expected)
    )


def test_a_host_that_was_not_sampled_is_judged_by_event_loops(rows, trace):
    records = [
        {**record, "metrics": {**record["metrics"], **LATE}} if "metrics" in record else record
        for record in trace(executing=0)
        if record["kind"] != "host_sample"
    ]
    [(is_loaded, is_sampled, reason)] = rows(
        "SELECT is_loaded, is_sampled, reason FROM _host_load", *records
    )
    assert (is_loaded, is_sampled) == (True, False)
    assert reason.startswith("the event loops of all its processes ran late, every 24 ms")


def test_workers_of_a_sampled_host_are_loaded(rows, trace):
    query = "SELECT worker, host, reason FROM _loaded_workers ORDER BY ALL"
    reason = "no core was free for 100 % of the sampled time with tasks"

    assert rows(query, *trace()) == [("w1", "h", reason), ("w2", "h", reason)]
    assert rows(query, *trace(own=1.0, others=0.0)) == []
