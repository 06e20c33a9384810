"""Contention for cores and for the GIL with other numbers of threads.

A trace shows the CPU time of tasks, but not why they used no CPU for the rest of their compute
time: they may have waited for data, or for a core that other processes of the host used. Then a
prediction is a range, from plans in which they waited for something else to plans in which they
waited for a core.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roast_analyze.algorithms.scenarios import with_shared_cores, worker_slots

if TYPE_CHECKING:
    from roast_analyze.algorithms.plan import Plan

#: Shares of the compute time in which tasks use a CPU. Below the first one, they wait for
#: something other than a core: a thread that wants a core gets more of it, unless 20 others
#: compete for it. From the second one on, they hardly wait.
WAITING_SHARE: Final = 0.05
COMPUTING_SHARE: Final = 0.9
#: The first one if the event loops show a host without free cores: on two cores beside 30 other
#: processes, computing tasks had a share of 0.04, and sleeping ones of 0.001.
LOADED_WAITING_SHARE: Final = 0.005


@dataclass(frozen=True)
class Contention:
    """Plans of a scenario, the most probable first, and what their difference depends on."""

    plans: tuple[Plan, ...]
    notes: tuple[str, ...] = ()


def with_contention(
    plan: Plan,
    recorded: Plan,
    cores: float | None,
    cpu_share: float | None,
    *,
    is_loaded: bool,
) -> Contention:
    """Return a plan with other numbers of threads under possible contention.

    Parameters
    ----------
    plan, recorded : Plan
        With the workers of the scenario, and as recorded.
    cores : float or None
        Cores of the workers' host; None if there are several hosts, or it is not recorded.
    cpu_share : float or None
        Share of the compute time in which tasks used a CPU, None if not recorded.
    is_loaded : bool
        Whether a host had no free cores, by the intervals of its event loops.
    """
    threads, before = threads_of(plan), threads_of(recorded)
    per_worker, per_worker_before = (
        max(worker.nthreads for worker in run.workers) for run in (plan, recorded)
    )
    waiting_share = LOADED_WAITING_SHARE if is_loaded else WAITING_SHARE
    is_waiting = cpu_share is not None and cpu_share < waiting_share
    is_computing = cpu_share is not None and cpu_share >= COMPUTING_SHARE
    plans, notes = [plan], []
    if not cores:
        is_one_host = len({worker.host for worker in recorded.workers}) == 1
        if threads > before and is_one_host and not is_waiting:
            plans.append(with_shared_cores(plan, before))
            notes.append(
                "the cores of the host are not recorded: the lower end holds if enough of them "
                "are free, the upper end if none is"
            )
        elif threads > before:
            notes.append("contention for storage and network is not known")
    else:
        # The recorded durations include the contention of the recorded threads.
        at_full_speed = max(cores / cpu_share, before) if cpu_share else math.inf
        if threads > at_full_speed:
            plans = [with_shared_cores(plan, at_full_speed)]
            notes.append(
                f"{threads} threads share {cores:g} cores; computation is stretched while more "
                "tasks run"
            )
        if threads > before and not is_waiting:
            free = f"{min(threads, cores):g} cores of the host are free"
            if is_computing:
                notes.append(f"holds if {free}")
            else:
                plans.append(with_shared_cores(plan, before))
                notes.append(
                    f"the lower end holds if {free} and tasks waited for something other "
                    "than a core, the upper end if the host was short of cores"
                    f"{_without_cpu(cpu_share)}"
                )
        elif threads > max(cores, before):
            # Tasks that use little CPU fit, but the processes of Dask need some, too.
            notes.append(
                f"{threads} threads share {cores:g} cores: the overhead of Dask may be higher"
            )
    if not (is_waiting or is_computing) and (
        (threads < before and cores) or per_worker < per_worker_before
    ):
        # Fewer threads can be faster by what they waited for each other.
        least = cpu_share or 0.0
        if per_worker >= per_worker_before:
            least = max(least, threads / before)
        plans.append(replace(plan, seconds=plan.seconds * least))
        notes.append(
            "the lower end holds if tasks waited for each other's cores or GIL, the upper end "
            f"if they waited for something else{_without_cpu(cpu_share)}"
        )
    if per_worker > per_worker_before and not is_waiting:
        workers = len(worker_slots(plan.workers))
        plans.append(with_shared_cores(plan, workers * per_worker_before))
        notes.append("the upper end holds if tasks hold the GIL")
    return Contention(tuple(plans), tuple(notes))


def threads_of(plan: Plan) -> int:
    """Return the number of threads at the same time."""
    return sum(slot[-1].nthreads for slot in worker_slots(plan.workers))


def _without_cpu(cpu_share: float | None) -> str:
    if cpu_share is None:
        return " (their CPU time is not recorded)"
    return f" (they used no CPU for {1 - cpu_share:.0%} of their compute time)"
