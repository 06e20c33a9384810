"""Times of tasks in states, from changes in the scheduler's order."""

import polars as pl

from roast_analyze.algorithms.task_states import CHANGES, DURATIONS, STATES, task_states

WAITING, PROCESSING, OTHER = STATES.index("waiting"), STATES.index("processing"), len(STATES)


def test_each_state_lasts_until_the_next_change_of_the_key():
    changes = [
        (8, WAITING, 1.0), (5, WAITING, 2.0), (8, PROCESSING, 3.0), (8, OTHER, 5.0),
        (8, WAITING, 6.0),
    ]  # fmt: skip
    states = task_states(
        pl.DataFrame(changes, CHANGES, orient="row"),
        pl.DataFrame([(8, 2.0)], DURATIONS, orient="row"),
        stop_t=9.0,
    )
    assert sorted(states.rows()) == [
        (WAITING, 1.0, 3.0, 2.0),
        (WAITING, 2.0, 9.0, 0.0),
        (WAITING, 6.0, 9.0, 2.0),
        (PROCESSING, 3.0, 5.0, 2.0),
    ]
