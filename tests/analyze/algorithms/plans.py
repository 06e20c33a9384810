"""Small plans for the tests of simulations and of changed plans."""

import numpy as np

from roast_analyze.algorithms.plan import Placement, Plan, Presence, Submission


def plan(seconds, dependencies=None, workers=1, groups=None, **fields):
    """Return a plan of one graph: tasks in order of priority, workers with one thread."""
    tasks = len(seconds)
    numbers = np.arange(tasks)
    if isinstance(workers, int):
        workers = [Presence(f"w{number}", "host", 1) for number in range(workers)]
    defaults = {
        "nbytes": np.zeros(tasks),
        "priorities": numbers,
        "prefixes": np.zeros(tasks, dtype=np.int64),
        "groups": numbers if groups is None else np.array(groups),
        "graphs": np.zeros(tasks, dtype=np.int64),
        "submissions": [Submission(0.0)],
        "workers": workers,
    }
    return Plan(
        seconds=np.array(seconds, dtype=float),
        dependencies=dependencies or [()] * tasks,
        **{**defaults, **fields},
    )


def placement(workers, assignment_order=None, start_order=None, steal_seconds=None):
    """Return recorded decisions; without orders, tasks are in order of priority."""
    numbers = np.arange(len(workers))
    return Placement(
        np.array(workers),
        numbers if assignment_order is None else np.array(assignment_order),
        numbers if start_order is None else np.array(start_order),
        steal_seconds,
    )
