"""Damage of a segment, a row of the view ``loss``."""

from __future__ import annotations

from typing import NamedTuple


class Damage(NamedTuple):
    """One way in which a segment is incomplete."""

    reason: str  # what is lost, or why
    records: int | None  # number of lost records, None if it cannot be known
    detail: str  # place or kind of the damage
