"""Work and waiting of a run."""

import pytest

from roast_analyze import Trace
from roast_analyze.errors import TraceError
from roast_analyze.run_amounts import query_amounts


def rows(frame, *columns):
    return sorted(frame.select(columns).rows(), key=str)


def test_tasks(open_trace, worker, task, run):
    """Of 100 s, fit computed for 10 s and 30 s, fetched its inputs for 5 s, failed for 20 s."""
    amounts = query_amounts(
        open_trace(
            worker("w1"),
            *(task(f"fit-{n}", t=5.0) for n in range(3)),
            *run("fit-0", 5.0, 15.0),
            *run(
                "fit-1", 15.0, 50.0, phases=[("transfer", 15.0, 20.0), ("compute", 20.0, 50.0)]
            ),
            *run("fit-2", 50.0, 70.0, outcome="erred", phases=[("compute", 50.0, 70.0)]),
        )
    )

    assert rows(amounts.work, "prefix", "dataset", "tasks", "events") == [("fit", None, 2, 0)]
    # Blocks of 10 s and 30 s instead of 20 s: sqrt(10² + 10²) * sqrt(2 / 1) / 40.
    [error] = amounts.work["relative_error"]
    assert error == pytest.approx(0.5)
    assert rows(amounts.costs, "part", "seconds", "fixed_seconds") == [
        ("failed attempt", 20.0, 10.0),
        ("kept result", 40.0, None),
        ("transfer", 5.0, 2.5),
    ]
    assert rows(amounts.waiting, "use", "seconds") == [
        ("after last result", 30.0),
        ("before first graph", 5.0),
    ]
    assert (amounts.wall_seconds, amounts.threads) == (100.0, 1.0)


def test_a_task_that_is_computed_again_after_use_has_two_results(open_trace, worker, task, run):
    amounts = query_amounts(
        open_trace(
            worker("w1"),
            task("load-1"),
            task("fit-1", dependencies=["load-1"]),
            *run("load-1", 0.0, 10.0),
            *run("fit-1", 10.0, 20.0),
            *run("load-1", 20.0, 30.0),
        )
    )

    assert rows(amounts.work, "prefix", "tasks") == [("fit", 1), ("load", 2)]


def test_a_machine_that_is_slower_for_half_of_the_run(open_trace, worker, task, run):
    """Tasks take 0.5 s and then 1.5 s: two runs can differ as much as the halves of one."""
    records, t = [worker("w1")], 0.0
    for n, seconds in enumerate([0.5] * 60 + [1.5] * 20):
        records += [task(f"fit-{n}"), *run(f"fit-{n}", t, t + seconds)]
        t += seconds
    [error] = query_amounts(open_trace(*records, stop_t=t)).work["relative_error"]

    # Twice the mean of 0.75 s.
    assert error == pytest.approx(0.5, abs=0.1)


def test_the_last_attempt_is_in_the_last_tenth_of_the_run(open_trace, worker, task, run):
    """Blocks of four tasks: nine of 4 s, and the last one of 5 s."""
    records = [worker("w1")]
    for n in range(40):
        records += [task(f"fit-{n}"), *run(f"fit-{n}", float(n), n + (2.0 if n == 39 else 1.0))]
    [error] = query_amounts(open_trace(*records, stop_t=41.0)).work["relative_error"]

    # sqrt(9 · 0.1² + 0.9²) · sqrt(10 / 9) / 41.
    assert error == pytest.approx(0.0244, abs=0.0001)


@pytest.mark.parametrize("chunks", [4, 1])
@pytest.mark.exhaustive
def test_files_that_differ_are_not_noise(open_trace, worker, task, chunk, run, chunks):
    """Events of the last of four files cost 9 times as much."""
    records, t = [worker("w1")], 0.0
    for n in range(4 * chunks):
        file, seconds = n // chunks, 9.0 if n >= 3 * chunks else 1.0
        place = {
            "dataset": "QCD", "filename": f"{file}.root", "treename": "Events",
            "entry_start": 100 * n, "entry_stop": 100 * n + 100,
        }  # fmt: skip
        records += [
            task(f"c-{n}"),
            chunk(f"c-{n}", **place, run_id=n, worker="w1", events=100, until="processed",
                  start_t=t, stop_t=t + seconds),
            *run(f"c-{n}", t, t + seconds, run_id=n),
        ]  # fmt: skip
        t += seconds
    [error] = query_amounts(open_trace(*records, stop_t=t)).work["relative_error"]

    # With one chunk per file, the cost of a file cannot be distinguished from noise.
    assert error == pytest.approx(0.0, abs=1e-6) if chunks > 1 else error > 0.5


@pytest.mark.exhaustive
def test_skipped_chunks_do_not_change_the_chunk_size(open_trace, worker, task, chunk, run):
    records = [worker("w1")]
    for n, outcome in enumerate(["events", "exception"]):
        place = {
            "dataset": "QCD", "filename": f"{n}.root", "treename": "Events",
            "entry_start": 0, "entry_stop": 100,
        }  # fmt: skip
        about = {"events": 100} if outcome == "events" else {"exception": "OSError: cut off"}
        records += [
            task(f"c-{n}"),
            chunk(f"c-{n}", **place, **about, run_id=n, worker="w1", until="processed",
                  start_t=n, stop_t=n + 1.0),
            *run(f"c-{n}", n, n + 1.0, run_id=n),
        ]  # fmt: skip
    work = query_amounts(open_trace(*records)).work

    assert rows(work, "tasks", "events") == [(1, 100)]


def test_chunks(open_trace, worker, chunk, run):
    """Opening took 1 s, reading 4 s, the rest 4 s; of the first two, 2 s were off the CPU."""
    measured = {
        "open_seconds": 1.0, "read_seconds": 4.0, "process_seconds": 8.0, "cpu_seconds": 7.0,
        "start_t": 0.5, "stop_t": 9.5,
        "branches": [
            {
                "branch": "pt", "compressed_bytes": 1, "uncompressed_bytes": 1,
                "read_seconds": 3.0,
            },
        ],
    }  # fmt: skip
    about = {
        "dataset": "QCD", "filename": "a.root", "treename": "Events",
        "entry_start": 0, "entry_stop": 500,
    }  # fmt: skip
    amounts = query_amounts(
        open_trace(
            worker("w1"),
            chunk("c-1", **about),
            *run("c-1", 0.0, 10.0, run_id=7),
            chunk("c-1", **about, run_id=7, worker="w1", events=500, **measured),
        )
    )

    assert rows(amounts.work, "dataset", "tasks", "events") == [("QCD", 1, 500)]
    assert rows(amounts.costs, "part", "detail", "branch", "seconds", "fixed_seconds") == [
        ("kept result", "CPU", None, 4.0, None),
        ("kept result", "no CPU", None, 0.0, None),
        ("kept result", "opening", None, 1.0, 1.0),
        ("kept result", "other", None, 1.0, None),
        ("kept result", "reading", "pt", 3.0, None),
        ("kept result", "reading", None, 1.0, None),
    ]


@pytest.mark.exhaustive
def test_the_fixed_time_of_chunks_is_divided_like_their_time(open_trace, worker, chunk, run):
    """A chunk takes 0.5 s, of which 0.2 s open the file, and 0.1 ms per event."""
    records, t = [worker("w1")], 0.0
    for n, events in enumerate([1000, 2000, 3000, 4000, 5000, 2500, 3500, 1500, 1000]):
        about = {
            "dataset": "QCD",
            "filename": f"{n}.root",
            "entry_start": 0,
            "entry_stop": events,
        }
        stop = t + 0.5 + 1e-4 * events
        measured = {"open_seconds": 0.2, "read_seconds": 0.0, "process_seconds": stop - t - 0.2}
        records += [
            chunk(f"c-{n}", **about),
            *run(f"c-{n}", t, stop, run_id=n),
            chunk(
                f"c-{n}", **about, run_id=n, events=events, start_t=t, stop_t=stop, **measured
            ),
        ]
        t = stop + 0.01
    amounts = query_amounts(open_trace(*records))

    fixed = dict(amounts.costs.select("detail", "fixed_seconds").rows())
    assert fixed["opening"] == pytest.approx(0.2)
    assert sum(s for s in fixed.values() if s is not None) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.exhaustive
def test_without_a_cluster_chunks_are_the_work(open_trace, chunk):
    """Two threads processed a chunk of 40 s each in 100 s."""
    about = {"dataset": "QCD", "filename": "a.root", "worker": "pid-1", "events": 500}
    amounts = query_amounts(
        open_trace(
            *(
                chunk(
                    f"c-{n}", run_id=n, thread=n, start_t=0.0, stop_t=40.0, entry_start=500 * n,
                    entry_stop=500 * (n + 1), **about,
                )
                for n in range(2)
            )
        )
    )  # fmt: skip

    assert rows(amounts.work, "prefix", "dataset", "tasks", "events") == [
        (None, "QCD", 2, 1000)
    ]
    assert rows(amounts.costs, "part", "seconds") == [("kept result", 80.0)]
    assert rows(amounts.waiting, "use", "seconds") == [("unknown", 120.0)]


def test_an_empty_trace(open_trace):
    amounts = query_amounts(open_trace())

    assert (amounts.wall_seconds, amounts.core_seconds, amounts.threads) == (100.0, 100.0, 1.0)


def test_several_traces(write_trace):
    paths = [write_trace(name=f"{name}.jsonl", trace_id=name) for name in "ab"]
    with Trace(*paths) as trace, pytest.raises(TraceError, match="2 traces: open each one"):
        query_amounts(trace)
