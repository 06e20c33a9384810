"""Kinds of task: how long they took, in what layers they came, and which were stragglers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.report.gathered.listing import Listing, asked, listed

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Most rows of the table of task groups, and of that of stragglers.
TASK_GROUP_ROWS: Final = 20
STRAGGLER_ROWS: Final = 15

#: The view `prefixes`, and how the computing times of a prefix are spread.
_PREFIXES: Final = (
    "SELECT prefixes.*, p05_compute_seconds, p25_compute_seconds, p75_compute_seconds, "
    "p95_compute_seconds FROM prefixes LEFT JOIN (SELECT trace_id, prefix, "
    "unnest(struct_pack(p05_compute_seconds := spread[1], p25_compute_seconds := spread[2], "
    "p75_compute_seconds := spread[3], p95_compute_seconds := spread[4])) FROM ("
    "SELECT trace_id, prefix, quantile_cont(compute_seconds, [0.05, 0.25, 0.75, 0.95]) "
    "AS spread FROM task_runs GROUP BY trace_id, prefix)) AS durations "
    "ON prefixes.trace_id = durations.trace_id "
    "AND prefixes.prefix IS NOT DISTINCT FROM durations.prefix"
)


@dataclass(frozen=True)
class Stragglers:
    """Attempts that took at least twice as long as is usual for their prefix.

    Parameters
    ----------
    listing : Listing
        The first of view ``stragglers``.
    excess_seconds : float
        What all of them took longer than usual.
    """

    listing: Listing
    excess_seconds: float


def prefixes(trace: Session, limit: int) -> Listing:
    """List the prefixes, with how their computing times are spread."""
    return asked(trace, "prefixes", _PREFIXES, "compute_seconds DESC NULLS LAST, prefix", limit)


def task_groups(trace: Session) -> Listing:
    """List the costliest task groups."""
    return listed(
        trace, "task_groups", "compute_seconds DESC NULLS LAST, task_group", TASK_GROUP_ROWS
    )


def stragglers(trace: Session) -> Stragglers:
    """List the stragglers that took the most longer than usual."""
    excess = "sum(excess_seconds) OVER () AS all_excess_seconds"
    found = asked(
        trace,
        "stragglers",
        f"SELECT *, {excess} FROM stragglers",  # noqa: S608 - text of this file
        "excess_seconds DESC, key, attempt",
        STRAGGLER_ROWS,
    )
    excess_seconds = found.rows["all_excess_seconds"][0] if found.total else 0.0
    return Stragglers(found, float(excess_seconds))
