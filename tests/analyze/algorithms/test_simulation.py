"""The simulation of Dask's scheduling: small plans whose runs are computed by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from analyze.algorithms.plans import placement, plan
from roast_analyze.algorithms.plan import (
    Overhead,
    Presence,
    Submission,
    critical_path_seconds,
    total_work_seconds,
)
from roast_analyze.algorithms.simulation import simulate


def ends(result):
    return result.end_seconds.tolist()


def test_tasks_run_by_priority_on_free_threads():
    independent = plan([3, 1, 2, 2], groups=[0, 0, 0, 0])

    assert ends(simulate(independent)) == [3, 4, 6, 8]
    reversed_ = replace(independent, priorities=np.array([3, 2, 1, 0]))
    assert ends(simulate(reversed_)) == [8, 5, 4, 2]
    # Two workers take as long as two threads of one worker.
    two = replace(independent, workers=[Presence("a", "host", 1), Presence("b", "host", 1)])
    assert simulate(two).wall_seconds == 5
    wide = replace(independent, workers=[Presence("a", "host", 2)])
    assert ends(simulate(wide)) == [3, 1, 3, 5]
    assert simulate(wide).core_seconds == 10


def test_a_task_waits_for_its_dependencies():
    diamond = plan([1, 2, 3, 1], [(), (0,), (0,), (1, 2)], workers=2, stealing_seconds=None)

    # Both follow the first task to its worker.
    assert ends(simulate(diamond)) == [1, 3, 6, 7]
    assert critical_path_seconds(diamond) == 5
    assert total_work_seconds(diamond) == 3.5


def test_an_idle_worker_steals():
    # All tasks are sent to the holder of the result. The other worker steals one at 2 s, or at
    # 4 s if the first choice is already running.
    fan = plan(
        [1, 4, 4, 4], [(), (0,), (0,), (0,)], workers=2, stealing_seconds=2.0,
        prefixes=np.array([0, 1, 1, 1]), placement=placement([-1] * 4, steal_seconds=10.0),
    )  # fmt: skip

    assert {simulate(fan, seed).wall_seconds for seed in range(20)} == {9}
    assert {min(ends(simulate(fan, seed))[2:]) for seed in range(20)} == {6, 8}
    assert simulate(replace(fan, stealing_seconds=None)).wall_seconds == 13
    # The times of steals are not recorded, so they are arbitrary within the interval.
    early = replace(fan, seconds=np.array([1.0, 4, 4, 1]), placement=None)
    assert len({tuple(ends(simulate(early, seed))) for seed in range(20)}) > 5
    # Tasks that stayed on their worker in the recorded run are not stolen.
    stayed = replace(fan, placement=placement([0] * 4, steal_seconds=10.0))
    assert simulate(stayed).wall_seconds == 13
    # Attempts to steal are simulated only after a change: here, there would be 13 billion.
    days = replace(stayed, seconds=stayed.seconds * 1e5, stealing_seconds=1e-4)
    assert simulate(days).wall_seconds == 13e5


def test_a_thief_takes_half_of_the_mean_occupancy():
    # With 40 s of work on one of two workers, the mean is 20 s: the other one takes 10 s.
    fan = plan(
        [1] + [1] * 40, [(), *[(0,)] * 40], workers=2, stealing_seconds=100.0,
        prefixes=np.array([0] + [1] * 40), placement=placement([-1] * 41, steal_seconds=1.5),
    )  # fmt: skip

    result = simulate(fan, seed=1)
    assert np.count_nonzero(result.workers == 1 - result.workers[0]) in range(9, 12)


def test_root_tasks_queue_for_their_recorded_worker():
    # All but two for each worker are queued. Each runs on its recorded worker, by priority.
    roots = plan(
        [1] * 8, workers=2, groups=[0] * 8, placement=placement([0, 0, 0, 0, 0, 0, 1, 1])
    )

    assert ends(simulate(roots)) == [1, 2, 3, 4, 5, 6, 1, 2]
    # If that worker is lost, they run elsewhere.
    lost = [replace(roots.workers[0], to_seconds=2.5), roots.workers[1]]
    assert simulate(replace(roots, workers=lost)).unfinished == 0


def test_a_key_that_is_submitted_again_is_one_task():
    # The group of the shared input counts once, so that the eight tasks of each graph queue.
    again = plan(
        [1] * 27, [(), *[(0,)] * 8, (), *[(9,)] * 8, (), *[(18,)] * 8], workers=2,
        groups=([0] + [1] * 8) * 3, graphs=np.repeat([0, 1, 2], 9),
        keys=["shared", *"abcdefgh", "shared", *"ijklmnop", "shared", *"qrstuvwx"],
        submissions=[Submission(0.0), Submission(0.0), Submission(0.0)],
        stealing_seconds=None,
    )  # fmt: skip

    # Otherwise all would run on the worker that holds the input.
    assert set(simulate(again).workers.tolist()) == {0, 1}


def test_recorded_placement_is_followed():
    # Both holders of the dependencies are equal, and so are the workers for the first tasks.
    join = plan([1, 1, 1], [(), (), (0, 1)], workers=2, stealing_seconds=None)

    for workers in ([0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]):
        placed = replace(join, placement=placement(workers))
        assert simulate(placed).workers.tolist() == workers
    # A worker without a dependency was chosen by stealing, which is simulated.
    assert simulate(replace(join, placement=placement([0, 0, 1]))).workers[2] == 0
    # Without it, the choice is random, and the same for the same seed.
    chosen = {seed: tuple(simulate(join, seed).workers) for seed in range(20)}
    assert set(chosen.values()) == {(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1)}
    assert tuple(simulate(join, 7).workers) == chosen[7]


def test_tasks_that_the_client_does_not_want_become_ready_in_any_order():
    # The client wants the sum only: Dask walks from there to its dependencies.
    total = plan([1, 2, 4, 1], [(), (), (), (0, 1, 2)], wanted={3: None})

    assert len({tuple(ends(simulate(total, seed))) for seed in range(20)}) > 1
    # Wanted tasks become ready by priority.
    several = replace(total, wanted=dict.fromkeys(range(4)))
    assert {tuple(ends(simulate(several, seed))) for seed in range(20)} == {(1, 3, 7, 8)}
    # The recorded order is followed; those on the worker wait by priority.
    placed = replace(total, placement=placement([0] * 4, assignment_order=[3, 2, 1, 4]))
    assert ends(simulate(placed)) == [5, 7, 4, 8]


def test_tasks_that_wait_for_one_transfer_start_in_any_order():
    # The first task runs on one worker, those that need its result on the other one.
    shared = plan(
        [1, 1, 2, 4], [(), (0,), (0,), (0,)], workers=2, saturation=math.inf,
        nbytes=np.array([100.0, 0, 0, 0]), overhead=Overhead(transfer_latency_seconds=1.0),
        restrictions={task: frozenset({"w1"}) for task in (1, 2, 3)},
    )  # fmt: skip

    assert len({tuple(ends(simulate(shared, seed))) for seed in range(20)}) > 1
    # The recorded order of their starts decides which is first; the others go by priority.
    placed = replace(shared, placement=placement([0, 1, 1, 1], start_order=[1, 3, 4, 2]))
    assert ends(simulate(placed)) == [1, 7, 9, 6]


def test_overhead_of_a_chain_and_of_a_queue():
    overhead = Overhead(
        dispatch_seconds=0.1, turnaround_seconds=0.2, report_seconds=0.3, scheduler_seconds=0.4
    )

    # Each task of a chain is dispatched, reported, and handled by the scheduler.
    chain = plan([1, 1], [(), (0,)], overhead=overhead)
    assert simulate(chain).wall_seconds == pytest.approx(2 * (0.1 + 1 + 0.3 + 0.4))
    # A task that waits on the worker begins after the turnaround.
    queue = plan([1, 1], overhead=overhead)
    assert simulate(queue).wall_seconds == pytest.approx(0.1 + 1 + 0.2 + 1 + 0.3 + 0.4)
    # The first dispatch to a worker begins with a connection.
    connect = replace(chain, overhead=replace(overhead, first_dispatch_seconds=5.0))
    assert simulate(connect).wall_seconds == pytest.approx(5 + 2 * (0.1 + 1 + 0.3 + 0.4))
    # The scheduler handles one task at a time.
    wide = plan([1] * 10, workers=10, overhead=Overhead(scheduler_seconds=0.4))
    assert simulate(wide).wall_seconds == pytest.approx(1 + 10 * 0.4)


def test_missing_dependencies_are_transferred():
    # A task and its dependencies on two workers: one of them is fetched.
    overhead = Overhead(transfer_latency_seconds=0.5, transfer_bytes_per_second=100)
    join = plan(
        [1, 1, 1],
        [(), (), (0, 1)],
        workers=2,
        nbytes=np.array([100, 300, 0]),
        overhead=overhead,
    )

    result = simulate(join)

    # It runs where the larger one is.
    assert result.workers[2] == result.workers[1]
    assert ends(result) == [1, 1, 1 + 0.5 + 1 + 1]


def test_the_client_submits_after_results():
    two_graphs = plan(
        [2, 1, 1],
        graphs=np.array([0, 1, 2]),
        submissions=[
            Submission(1.0),
            Submission(5.0, after=(0,)),
            Submission(0.5, after_graph=1),
        ],
        closing_seconds=1.0,
        workers=2,
    )

    assert ends(simulate(two_graphs)) == [3, 9, 9.5]
    assert simulate(two_graphs).wall_seconds == 10.5
    assert critical_path_seconds(two_graphs) == 10.5


def test_the_client_submits_as_results_arrive():
    # One more task after each of the first two results, whichever these are.
    stream = plan(
        [4, 1, 2, 1, 1], workers=2, groups=[0, 1, 2, 3, 4], stealing_seconds=None,
        graphs=np.array([0, 0, 0, 1, 2]), wanted=dict.fromkeys(range(5)),
        placement=placement([0, 1, 1, 1, 1]),
        submissions=[
            Submission(0.0),
            Submission(0.5, after_graph=0, after_results=1),
            Submission(0.5, after_graph=1, after_results=2),
        ],
    )  # fmt: skip

    # Results at 1 s and 3 s on the second worker; the first one has its own only at 4 s.
    assert ends(simulate(stream)) == [4, 1, 3, 4, 5]
    one = replace(stream, placement=None, workers=[Presence("w", "host", 1)])
    assert ends(simulate(one)) == [4, 5, 7, 8, 9]
    assert simulate(replace(stream, workers=[])).unfinished == 5


def test_workers_join_leave_and_are_lost():
    late = plan([1, 1], workers=0)

    assert simulate(late).unfinished == 2
    late = replace(late, workers=[Presence("w", "host", 1, from_seconds=3.0)])
    assert ends(simulate(late)) == [4, 5]
    # The first result and half of the second task are lost, and computed again.
    lost = plan(
        [1, 1], [(), (0,)],
        workers=[
            Presence("a", "host", 1, to_seconds=1.5),
            Presence("b", "host", 1, from_seconds=1.25),
        ],
    )  # fmt: skip
    assert ends(simulate(lost)) == [2.5, 3.5]
    # So are released dependencies of a lost result.
    chain = plan(
        [1, 1, 1], [(), (0,), (1,)],
        workers=[
            Presence("a", "host", 1, to_seconds=2.5),
            Presence("b", "host", 1, from_seconds=2.25),
        ],
    )  # fmt: skip
    assert ends(simulate(chain)) == [3.5, 4.5, 5.5]
    # A worker that retires moves its results first.
    retired = replace(lost.workers[0], is_lost=False)
    assert ends(simulate(replace(lost, workers=[retired, lost.workers[1]]))) == [1, 2.5]


def test_failed_attempts_come_first():
    failing = plan([1, 1], failed_seconds={0: (0.5, 0.25)})

    assert ends(simulate(failing)) == [2.75, 1.5]


def test_the_first_task_of_a_process_warms_up():
    cold = plan([1, 1, 1], workers=1, warmup_seconds={0: 2.0})

    assert ends(simulate(cold)) == [3, 4, 5]
    # Tasks that begin at the same time wait for the same imports.
    beside = replace(cold, workers=[Presence("w", "host", 2)])
    assert ends(simulate(beside)) == [3, 3, 4]


def test_restricted_tasks_run_on_allowed_workers():
    restricted = plan(
        [1, 1], workers=2, restrictions={0: frozenset({"w1"}), 1: frozenset({"w1"})}
    )

    assert simulate(restricted).workers.tolist() == [1, 1]
    assert simulate(replace(restricted, restrictions={0: frozenset({"no"})})).unfinished == 1


def test_without_queuing_root_tasks_are_sent_at_once():
    # Neighbors go to the same worker.
    roots = plan([1] * 6, workers=2, groups=[0] * 6, saturation=math.inf)

    first, second = np.split(simulate(roots).workers, 2)
    assert {len(set(first.tolist())), len(set(second.tolist()))} == {1}
    assert first[0] != second[0]
