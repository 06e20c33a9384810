"""Members of a group, such as files or hosts, that are slow in run after run.

A member is slow in a run if its duration is at least a given factor of that of others. It is
recurrently slow if

- it was slow in at least :data:`MIN_SHARE` of the runs that it was part of, and
- as many slow runs or more have a probability of at most the significance divided by the number
  of members (Bonferroni), if each run of it were slow with the probability of all other members
  (binomial test; that probability is estimated as ``(slow + 1) / (runs + 2)``, so it is 1/2
  without other members, as in a sign test).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Minimum share of slow runs.
MIN_SHARE: Final = 0.5


def recurrent(
    runs: Sequence[int], slow_runs: Sequence[int], *, significance: float
) -> list[bool]:
    """Return for each member of a group whether it is recurrently slow."""
    all_runs, all_slow = sum(runs), sum(slow_runs)
    result = []
    for count, slow in zip(runs, slow_runs, strict=True):
        probability = (all_slow - slow + 1) / (all_runs - count + 2)
        # Logarithms, because a binomial coefficient can be larger than any float.
        term = math.exp(
            math.lgamma(count + 1)
            - math.lgamma(slow + 1)
            - math.lgamma(count - slow + 1)
            + slow * math.log(probability)
            + (count - slow) * math.log1p(-probability)
        )
        tail = 0.0  # probability of as many slow runs or more
        for successes in range(slow, count + 1):
            tail += term
            term *= (count - successes) / (successes + 1) * probability / (1 - probability)
        is_significant = min(tail, 1.0) * len(runs) <= significance
        result.append(slow >= MIN_SHARE * count and is_significant)
    return result
