"""What came to the scheduler: tasks in batches, and tasks that it moved by stealing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Tasks of one graph enter it in one instant.
_BATCHES: Final = (
    "SELECT least(floor((submitted_t - $begin_t) / $width)::BIGINT, $last) AS stretch, "
    "count(*) AS batches, sum(tasks)::BIGINT AS tasks, max(tasks) AS largest FROM ("
    "SELECT submitted_t, count(*) AS tasks FROM tasks GROUP BY submitted_t) GROUP BY stretch"
)
#: An answer that came: a list of what became of the request, key and state of the task, ….
_STEALS: Final = (
    "SELECT least(floor((t - $begin_t) / $width)::BIGINT, $last) AS stretch, "
    "count(*) FILTER (what = 'confirm') AS stolen, "
    "count(*) FILTER (what IN ('already-computing', 'already-aborted', 'stale-response')) "
    "AS too_late FROM (SELECT t, payload ->> '$[0]' AS what FROM events "
    "WHERE topic = 'stealing') GROUP BY stretch"
)


@dataclass(frozen=True)
class Submissions:
    """Tasks that came, and tasks that were stolen.

    Parameters
    ----------
    batches, tasks, largest : int
        Batches in which tasks new to the scheduler came (those of a graph are one), the
        tasks, and those of the largest batch.
    stolen, too_late : int
        Tasks that moved from a busy worker to an idle one, and that did not, because they
        had begun or were gone.
    stealing : bool or None
        Whether stealing was on by Dask's configuration; None if it was not recorded.
    has_events : bool
        Whether Dask's events were recorded, from which stealing is known.
    stretches : polars.DataFrame
        t of each stretch of view ``concurrency``, and what came in it: batches, tasks,
        stolen.
    """

    batches: int
    tasks: int
    largest: int
    stolen: int
    too_late: int
    stealing: bool | None
    has_events: bool
    stretches: pl.DataFrame


def gather(trace: Session, stretches: pl.DataFrame, grid: dict[str, float]) -> Submissions:
    """Ask what came.

    Parameters
    ----------
    trace : Session
    stretches : polars.DataFrame
        t of each stretch.
    grid : dict
        begin_t, width and last: where the first begins, how long each is, and the number
        of the last one.
    """
    batches = trace.sql(_BATCHES, grid).pl()
    steals = trace.sql(_STEALS, grid).pl()
    has_events, stealing = trace.sql(
        "SELECT EXISTS (FROM events), (SELECT any_value(value) FROM environment "
        "WHERE section = 'dask configuration' "
        "AND name = 'distributed.scheduler.work-stealing')"
    ).fetchall()[0]
    together = (
        stretches.select("t", pl.int_range(pl.len()).alias("stretch"))
        .join(batches, on="stretch", how="left")
        .join(steals, on="stretch", how="left")
        .sort("t")
        .select("t", pl.col("batches", "tasks", "stolen").fill_null(0))
    )
    return Submissions(
        batches=int(batches["batches"].sum()),
        tasks=int(batches["tasks"].sum()),
        largest=int(batches["largest"].fill_null(0).max() or 0),
        stolen=int(steals["stolen"].sum()),
        too_late=int(steals["too_late"].sum()),
        stealing=None if stealing is None else stealing == "true",
        has_events=has_events,
        stretches=together,
    )
