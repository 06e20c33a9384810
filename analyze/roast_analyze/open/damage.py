"""A way in which a file is not whole: what everything that reads a file reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Damage:
    """A way in which a segment is not whole; it becomes a row of the view ``loss``.

    Parameters
    ----------
    reason : str
        What is lost, or why, in words.
    records : int or None
        How many records it cost; None if nobody can know.
    detail : str
        Where, or of which kind.
    """

    reason: str
    records: int | None
    detail: str
