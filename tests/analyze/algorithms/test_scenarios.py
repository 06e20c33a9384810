"""Changed plans."""

import math
from dataclasses import replace

import numpy as np
import pytest

from analyze.algorithms.plans import plan
from roast_analyze.algorithms.plan import Overhead, Presence, Submission
from roast_analyze.algorithms.scenarios import (
    CAUSES,
    Chunk,
    ChunkCost,
    chunk_bounds,
    with_chunk_size,
    with_shared_cores,
    with_workers,
    without_client_gaps,
    without_failures,
    without_stragglers,
    worker_slots,
)
from roast_analyze.algorithms.simulation import simulate


def test_workers_join_like_the_recorded_ones():
    first = Presence("a", "host", 1)
    lost = Presence("b", "host", 1, from_seconds=2.0, to_seconds=5.0)
    restarted = Presence("b", "host", 1, from_seconds=6.0)
    retired = replace(first, name="c", from_seconds=3.0, to_seconds=9.0, is_lost=False)
    recorded = plan([1], workers=[first, lost, restarted, retired])

    # A process takes the place of one that left.
    assert worker_slots(recorded.workers) == [[first], [lost, restarted], [retired]]
    six = with_workers(recorded, 6, threads=2).workers
    assert [(worker.from_seconds, worker.to_seconds, worker.nthreads) for worker in six] == [
        (0, math.inf, 2), (0, math.inf, 2), (2, 5, 2), (6, math.inf, 2), (2, 5, 2),
        (6, math.inf, 2), (3, math.inf, 2), (3, math.inf, 2),
    ]  # fmt: skip
    assert [worker.name for worker in with_workers(recorded, 1).workers] == ["a"]
    # Without failures, the lost worker stays, and is not replaced.
    assert [worker.name for worker in without_failures(recorded).workers] == ["a", "b", "c"]
    assert without_failures(recorded).workers[1].to_seconds == math.inf


def test_a_worker_that_dask_retired_stays_in_place_of_its_successor():
    retired = Presence("a", "host", 1, to_seconds=30.0, is_lost=False)
    successor = Presence("b", "host", 1, from_seconds=30.0)
    recorded = plan([1], workers=[retired, successor])

    assert worker_slots(recorded.workers) == [[retired, successor]]
    two = with_workers(recorded, 2).workers
    assert [(worker.name, worker.to_seconds) for worker in two] == [("a", math.inf)] * 2


def test_tasks_take_longer_while_they_share_cores():
    # From 0 to 1 s, three tasks run on two cores; after that, one. The last one cannot run.
    recorded = plan([1, 1, 3, 1], workers=3, restrictions={3: frozenset({"elsewhere"})})

    assert with_shared_cores(recorded, 2).seconds.tolist() == [1.5, 1.5, 3.5, 1.0]
    assert with_shared_cores(recorded, 3).seconds.tolist() == [1.0, 1.0, 3.0, 1.0]
    # None can run.
    alone = plan([1], restrictions={0: frozenset({"elsewhere"})})
    assert with_shared_cores(alone, 1).seconds.tolist() == [1.0]


def test_stragglers_get_the_usual_duration():
    slow = [1.0] * 11 + [5.0]

    assert without_stragglers(plan(slow)).seconds.tolist() == [1.0] * 12
    # With fewer tasks, the usual duration is unknown.
    assert without_stragglers(plan(slow[3:])).seconds.tolist() == slow[3:]
    # A chunk with more events is not a straggler.
    events = np.array([100.0, 200.0] * 6)
    chunks = plan([*[1.0, 2.0] * 5, 1.0, 10.0], events=events)
    assert without_stragglers(chunks).seconds.tolist() == pytest.approx([1.0, 2.0] * 6)


def test_removed_causes():
    overhead = Overhead(0.1, 0.2, 0.3, 0.4, 0.5, 600)
    recorded = plan(
        [1, 1],
        overhead=overhead,
        submissions=[Submission(3.0), Submission(2.0, after=(0,))],
        graphs=np.array([0, 1]),
        failed_seconds={0: (1.0,)},
    )

    changed = {name: remove(recorded) for name, remove in CAUSES.items()}
    assert changed["transfers"].overhead == Overhead(0.1, 0.2, 0.3, 0.4, 0, math.inf)
    assert changed["scheduler"].overhead == Overhead(0, 0, 0, 0, 0.5, 600)
    assert changed["failures"].failed_seconds == {}
    # The time before the first graph is not a gap.
    assert changed["client-gaps"].submissions == [Submission(3.0), Submission(0.0, after=(0,))]


def test_a_worker_is_lost_at_the_same_point_of_the_work_without_client_gaps():
    # The client waits from 1 to 5 s; another client, in the same time, from 1 to 4 s.
    first = Presence("a", "host", 1, to_seconds=6.0)
    restarted = Presence("a", "host", 1, from_seconds=7.0)
    late = Presence("b", "host", 1, from_seconds=8.0, to_seconds=9.0)
    recorded = plan(
        [1, 5, 1],
        graphs=np.array([0, 1, 2]),
        submissions=[Submission(0.0), Submission(4.0, after=(0,)), Submission(3.0, after=(0,))],
        workers=[first, restarted, late],
    )

    changed = without_client_gaps(recorded).workers

    # The replacement joins 1 s after the loss, the other worker at its recorded time.
    assert [(worker.from_seconds, worker.to_seconds) for worker in changed] == [
        (0.0, 2.0), (3.0, math.inf), (8.0, 9.0),
    ]  # fmt: skip


def test_chunks_of_coffea():
    # As FileMeta.chunks of coffea: the nearest number of chunks, all of about the same size.
    assert chunk_bounds(100, 40) == [50, 50]
    assert chunk_bounds(100, 1000) == [100]
    assert chunk_bounds(10, 3) == [4, 4, 2]


def test_another_chunk_size():
    # Two files of 200 events, in chunks of 100: 1 s, and 1 s per 100 events; the second file
    # is twice as slow. A merge of 1 s per chunk. The client submits another graph after it.
    recorded = plan(
        [2, 2, 4, 4, 4, 1],
        [(), (), (), (), (0, 1, 2, 3), ()],
        graphs=np.array([0, 0, 0, 0, 0, 1]),
        submissions=[Submission(0.0), Submission(1.0, after=(4,))],
        prefixes=np.array([0, 0, 0, 0, 1, 2]),
        wanted={4: None},
    )
    chunks = [Chunk(task, "data", f"file {task // 2}", 100) for task in range(4)]
    costs = {"data": ChunkCost(1.0, 0.01)}

    larger = with_chunk_size(recorded, chunks, [4], costs, 200)
    # The task of the second graph, then the chunks and their merge.
    assert larger.seconds.tolist() == [1, 3, 6, 2]
    assert larger.dependencies == [[], [], [], [1, 2]]
    assert larger.submissions[1].after == (3,)
    assert larger.wanted == {3: None}
    assert simulate(larger).wall_seconds == 3 + 6 + 2 + 1 + 1
    # More chunks than the fan-in of the recorded merges: two levels.
    smaller = with_chunk_size(recorded, chunks, [4], costs, 50)
    assert smaller.seconds.tolist() == [1, *[1.5] * 4, *[3.0] * 4, 4, 4, 2]
    assert smaller.dependencies[-3:] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    # With other tasks after the chunks it is not a graph of a coffea Runner.
    with pytest.raises(ValueError, match="other than merges"):
        with_chunk_size(recorded, chunks, [], costs, 50)
