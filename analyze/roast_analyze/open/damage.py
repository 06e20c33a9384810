"""Damage of a segment, a row of the view ``loss``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Damage:
    """One way in which a segment is incomplete.

    Parameters
    ----------
    reason : str
        What is lost, or why.
    records : int or None
        Number of lost records; None if it cannot be known.
    detail : str
        Place or kind of the damage.
    """

    reason: str
    records: int | None
    detail: str
