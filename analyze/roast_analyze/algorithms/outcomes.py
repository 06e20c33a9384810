"""The outcomes of attempts, and of recordings: the only list of them, and their meaning.

Every place that distinguishes outcomes uses this list, or is compared with it by
``tests/analyze/test_outcomes.py``.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Outcome(NamedTuple):
    """The meaning of an outcome.

    Attributes
    ----------
    use : str
        Use of the thread time in view ``core_time``, of a result if it was kept.
    has_raised : bool
        Whether the task raised an exception.
    is_failure : bool
        Whether it counts as a failed attempt.
    is_repeated : bool
        Whether another attempt at the same submission is expected.
    is_released : bool
        Whether the scheduler dropped the attempt: its worker reports no phases of it.
    """

    use: str
    has_raised: bool = False
    is_failure: bool = False
    is_repeated: bool = False
    is_released: bool = False


#: By name, in the order in which counts are shown.
OUTCOMES: Final = {
    "memory": Outcome("kept result"),
    "erred": Outcome("failed attempt", has_raised=True, is_failure=True),
    "retried": Outcome("failed attempt", has_raised=True, is_failure=True, is_repeated=True),
    "lost": Outcome("lost attempt", is_failure=True, is_repeated=True),
    "rescheduled": Outcome("rescheduled attempt", is_repeated=True, is_released=True),
    "cancelled": Outcome("cancelled attempt", is_released=True),
    "unfinished": Outcome("unfinished attempt"),
}

#: Outcomes of failed attempts.
FAILED: Final = tuple(name for name, meaning in OUTCOMES.items() if meaning.is_failure)

#: Uses of the thread time in which attempts compute.
COMPUTING: Final = tuple(
    dict.fromkeys([*(meaning.use for meaning in OUTCOMES.values()), "recomputed result"])
)

#: Of a coffea chunk whose exception was suppressed, while its task succeeded.
SKIPPED: Final = "skipped"

#: Beginnings of the reason for which a recording ended, if an exception of the program did it.
RAISED_ENDS: Final = ("the recorded block raised ", "the program raised ")
