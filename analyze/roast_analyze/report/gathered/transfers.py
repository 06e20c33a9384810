"""Data that moved between workers: who fetched from whom, how often, how much, how long.

Workers tell with each task which fetches it made them do, from whom and how long they took.
How many bytes these were is known only if transfers were recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report.gathered.listing import Listing, first

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Most rows of the table of pairs of workers.
PAIR_ROWS: Final = 20
#: Most rows of a map of workers; with more workers some share one.
MAP_ROWS: Final = 40

_RECORDED: Final = (
    "SELECT source, destination, count(*) AS transfers, sum(bytes)::BIGINT AS bytes, "
    "sum(stop_t - start_t) AS seconds FROM transfers "
    "WHERE source IS NOT NULL AND destination IS NOT NULL GROUP BY source, destination"
)
_TOLD: Final = (
    "SELECT source, worker AS destination, count(*) AS transfers, "
    "NULL::BIGINT AS bytes, sum(seconds) AS seconds FROM task_phases "
    "WHERE action = 'transfer' AND source IS NOT NULL AND worker IS NOT NULL "
    "GROUP BY ALL"
)
_ORDER: Final = "bytes DESC NULLS LAST, seconds DESC, source, destination"


@dataclass(frozen=True)
class Movement:
    """What moved between workers.

    Parameters
    ----------
    recorded : bool
        Whether transfers were recorded, so that bytes are known.
    transfers, bytes : int
    seconds : float
        All together. Transfers to one worker can overlap.
    pairs : Listing
        source, destination, transfers, bytes, seconds: those that moved the most first.
    workers : polars.DataFrame
        Rows of the map of workers: row, from 0, worker and name of the first one there, and
        workers, how many they are.
    cells : polars.DataFrame
        The same by rows of the map: from_row, to_row, transfers, bytes, seconds.
    """

    recorded: bool
    transfers: int
    bytes: int
    seconds: float
    pairs: Listing
    workers: pl.DataFrame
    cells: pl.DataFrame


def gather(trace: Session, everyone: pl.DataFrame) -> Movement:
    """Ask what moved.

    Parameters
    ----------
    trace : Session
    everyone : polars.DataFrame
        All workers in the order in which they are listed: worker, name.
    """
    recorded = bool(trace.sql("SELECT EXISTS (FROM transfers)").fetchall()[0][0])
    query, view = (_RECORDED, "transfers") if recorded else (_TOLD, "task_phases")
    pairs = trace.sql(f"{query} ORDER BY {_ORDER}").pl()
    rows = _rows(everyone)
    return Movement(
        recorded=recorded,
        transfers=int(pairs["transfers"].sum()),
        bytes=int(pairs["bytes"].sum()),
        seconds=float(pairs["seconds"].sum()),
        pairs=first(view, query, _ORDER, PAIR_ROWS, pairs),
        workers=named(rows),
        cells=_cells(pairs, rows),
    )


def _rows(everyone: pl.DataFrame) -> pl.DataFrame:
    """Give each address its row of the map, in the order in which workers are listed."""
    addresses = everyone.select("worker", "name").unique("worker", maintain_order=True)
    return addresses.with_columns(map_row().alias("row"))


def map_row() -> pl.Expr:
    """Give each worker of a list its row of a map: if they are many, neighbours share one."""
    return pl.int_range(pl.len()) * pl.min_horizontal(pl.len(), MAP_ROWS) // pl.len()


def named(rows: pl.DataFrame) -> pl.DataFrame:
    """Name each ``row`` after its first worker, and count its ``workers``."""
    return rows.group_by("row", maintain_order=True).agg(
        pl.col("worker", "name").first(), pl.len().alias("workers")
    )


def _cells(pairs: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    sender = rows.select(pl.col("worker").alias("source"), pl.col("row").alias("from_row"))
    receiver = rows.select(pl.col("worker").alias("destination"), pl.col("row").alias("to_row"))
    return (
        pairs.join(sender, on="source")
        .join(receiver, on="destination")
        .group_by("from_row", "to_row")
        .agg(pl.col("transfers", "bytes", "seconds").sum())
        .sort("from_row", "to_row")
    )
