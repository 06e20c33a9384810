"""Time that no finding explains, and attempts that had not ended."""

import pytest

from analyze.report.reading import plain
from roast_analyze.computed.rules import rules
from roast_analyze.report import findings, unexplained
from roast_analyze.report.core_time_uses import USES
from roast_analyze.report.run import describe_without_workers, query_without_workers


@pytest.fixture
def rest(open_trace):
    """Describe what the findings of a run of 10 s do not explain."""

    def rest(*records):
        trace = open_trace(*records, stop_t=10.0)
        found = findings.query(trace)
        text = unexplained.describe(unexplained.query(trace, found), has_findings=bool(found))
        return plain(text)

    return rest


def test_rules_explain_known_uses():
    assert {use for rule in rules() for use in rule.explains} <= {*USES, unexplained.REPEATED}


def test_a_healthy_run(rest, worker, task, run):
    assert rest(worker("w1"), task("a"), *run("a", 0.0, 9.9)) == (
        "No rule found a change that could save 1 % of this run or more. 99 % of the thread "
        "time computed results that were kept."
    )


def test_a_client_that_computed_nothing_for_most_of_the_time(rest, worker, task, run):
    """As with a scatter of 6 s before the first graph."""
    assert rest(worker("w1"), task("a", t=6.0), *run("a", 6.0, 10.0)) == (
        "No rule found a change that could save 1 % of this run or more. Not explained: 6 s of "
        "10 s of thread time (60 %): before the first graph 6 s."
    )


def test_time_without_a_client(rest, worker, task, run):
    """On the scheduler of a site, a client is there from 3 to 7 s, its task from 4 to 6 s."""
    joined, left = ({"kind": f"client_{what}", "client": "c"} for what in ("added", "removed"))
    records = [worker("w1"), {**joined, "t": 3.0}]
    records += [task("a", t=4.0, client="c"), *run("a", 4.0, 6.0), {**left, "t": 7.0}]

    assert rest(*records).endswith(
        "Not explained: 2 s of 10 s of thread time (20 %): before the first graph 1 s, after "
        "the last result 1 s."
    )


def test_an_attempt_that_had_not_ended(rest, worker, task, run):
    text = rest(
        worker("w1", name="one"),
        *(task("a"), *run("a", 0.0, 2.0)),
        *(task("b"), run("b", 3.0, 4.0)[0]),
    )

    assert "computing, not finished 7 s" in text
    assert text.endswith(
        "had not ended: b on worker one, assigned 7 s before the end of the recording."
    )


def test_keys_that_were_computed_again(rest, worker, task, run):
    """Each result was released before it was computed again."""
    text = rest(
        worker("w1"),
        *(task("a"), *run("a", 0.0, 4.0)),
        *(task("a", t=5.0), *run("a", 5.0, 5.8, run_id=2)),
    )

    assert "computing keys again whose result had been kept before 800 ms" in text
    assert text.endswith("1 key was computed again in 1 attempt.")


def test_a_finding_accounts_for_the_uses_of_its_rule(rest, worker, task, run):
    """The 9 s of a failed attempt are the cost of the finding retries; 1 s is little."""
    text = rest(
        worker("w1", nthreads=1),
        *(task("a"), *run("a", 0.0, 9.0, outcome="erred", exception="ValueError('no')")),
        *(task("b"), *run("b", 9.0, 9.8, run_id=2)),
    )

    assert "computing, attempt failed" not in text


def test_a_cost_is_charged_to_the_use_that_was_measured(rest, worker, task, run):
    """The worker reads from disk for 2 s; the second task waits for 3 s before it begins."""
    text = rest(
        worker("w1", nthreads=1),
        *(
            task("a"),
            *run("a", 0.0, 4.0, phases=[("disk-read", 0.0, 2.0), ("compute", 2.0, 4.0)]),
        ),
        *(task("b"), *run("b", 4.0, 10.0, phases=[("compute", 7.0, 10.0)])),
    )

    assert "(30 %): waiting for an assigned task to begin 3 s." in text


@pytest.mark.parametrize(
    ("times", "seconds", "details"),
    [
        ([(4.0, 10.0)], 4, ", before the first one joined"),
        (
            [(0.0, 2.0), (1.0, 3.0), (8.0, 10.0)],
            5,
            ", after all had left and before another one joined",
        ),
        (
            [(1.0, 3.0), (5.0, 6.0)],
            7,
            (
                ": 1 s before the first one joined, 2 s after all had left and before another "
                "one joined and 4 s after the last one had left"
            ),
        ),
    ],
)
def test_time_without_workers(open_trace, worker, gone, times, seconds, details):
    assert described(open_trace, worker, gone, times) == (
        f"{seconds} s of 10 s passed without any worker and are not in the core time{details}."
    )


@pytest.mark.parametrize("times", [[(0.0, 10.0)], []])
def test_workers_at_all_times_or_at_none(open_trace, worker, gone, times):
    assert described(open_trace, worker, gone, times) == ""


def described(open_trace, worker, gone, times):
    records = [
        record
        for n, (start, stop) in enumerate(times)
        for record in (
            worker(f"w{n}", t=start),
            *([gone(f"w{n}", stop, "retire-workers")] if stop < 10.0 else []),
        )
    ]
    trace = open_trace(*records, stop_t=10.0)
    return plain(describe_without_workers(query_without_workers(trace)))


def test_time_before_the_first_chunk(open_trace, worker, chunk):
    """A process of an executor is there from its first chunk on; it is no worker of Dask."""
    about = {"dataset": "DY", "filename": "1.root", "worker": "pid:7", "thread": 1}
    trace = open_trace(
        worker("pid:7", t=4.0),
        chunk("c", run_id=1, entry_start=0, start_t=4.0, stop_t=10.0, **about),
        stop_t=10.0,
    )
    assert plain(describe_without_workers(query_without_workers(trace))) == (
        "4 s of 10 s passed without a process for chunks and are not in the core time, before "
        "the first chunk."
    )


def test_a_host_without_free_cores(rest, worker, task, run, process_facts, sample):
    machine = {"host": "node7", "cores": 2, "usable_cores": 2}
    about = {"cpu": 15.0, "nthreads": 1, "event_loop_interval": 0.024}
    text = rest(
        *(worker("w1"), worker("w2"), task("a"), *run("a", 0.0, 9.9), task("b")),
        *run("b", 0.0, 9.9, worker="w2"),
        *process_facts("worker", worker="w1", machine=machine),
        *process_facts("worker", worker="w2", machine=machine),
        *(sample(t, "w1", executing=1, **about) for t in range(1, 9)),
        *(sample(t, "w2", executing=0, **about) for t in range(1, 9)),
    )

    assert text.endswith(
        "The cores of host node7 were in use: event loops of all its processes ran every 24 ms "
        "or less often (20 ms with free cores), while those of this run used 0.3 of 2 cores. "
        "Durations can be shorter with free cores."
    )
