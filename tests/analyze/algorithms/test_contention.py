"""Contention for cores and for the GIL with other numbers of threads."""

from dataclasses import replace

import pytest

from analyze.algorithms.plans import plan
from roast_analyze.algorithms.contention import with_contention
from roast_analyze.algorithms.plan import Presence
from roast_analyze.algorithms.scenarios import with_workers
from roast_analyze.algorithms.simulation import simulate


@pytest.mark.parametrize(
    ("cpu_share", "cores", "workers", "threads", "expected"),
    [
        # Eight tasks of 1 s on one worker with four threads take 2 s.
        # Half of the threads: in the same time if they waited for each other.
        (0.5, 2, 1, 2, [4.0, 2.0]),
        (0.8, 2, 1, 2, [4.0, 3.2]),
        # Other times are only known to be as recorded, or without waiting.
        (0.01, 2, 1, 2, [4.0]),
        (0.95, 8, 1, 2, [4.0]),
        # As many threads in other processes do not share a GIL.
        (0.5, 4, 4, 1, [2.0, 1.0]),
        # Twice as many in one process: they may wait for the GIL.
        (0.95, 8, 1, 8, [1.0, 2.0]),
        (0.01, 8, 1, 8, [1.0]),
        # The cores of the host are not known.
        (0.5, None, 2, 4, [1.0, 2.0]),
        (0.01, None, 2, 4, [1.0]),
    ],
)
def test_plans(cpu_share, cores, workers, threads, expected):
    recorded = plan([1.0] * 8, workers=1)
    recorded = replace(recorded, workers=[replace(one, nthreads=4) for one in recorded.workers])

    found = with_contention(
        with_workers(recorded, workers, threads), recorded, cores, cpu_share, is_loaded=False
    )

    assert [simulate(each).wall_seconds for each in found.plans] == pytest.approx(expected)
    assert found.notes or len(expected) == 1


def test_the_cores_of_several_hosts_are_not_considered():
    hosts = [Presence(name, name, 4) for name in ("h1", "h2")]
    recorded = plan([1.0] * 16, workers=hosts)

    found = with_contention(with_workers(recorded, 4), recorded, None, 0.5, is_loaded=False)

    assert [simulate(each).wall_seconds for each in found.plans] == [1.0]
    assert found.notes == ("contention for storage and network is not known",)


@pytest.mark.parametrize(
    ("cpu_share", "is_loaded", "plans"),
    # Computing tasks have so little only on a loaded host, and sleeping ones anywhere.
    [(0.04, False, 1), (0.04, True, 2), (0.001, True, 1)],
)
def test_computing_tasks_can_have_little_of_a_loaded_host(cpu_share, is_loaded, plans):
    recorded = plan([1.0] * 16, workers=2)

    found = with_contention(
        with_workers(recorded, 4), recorded, 2, cpu_share, is_loaded=is_loaded
    )

    assert len(found.plans) == plans
