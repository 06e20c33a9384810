"""What was found in a file of another program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Found:
    """What a file says.

    Parameters
    ----------
    name : str
        The program that wrote it.
    facts : dict
        Of the whole: fields of the record ``import``.
    records : iterable of dict
        The others, without ``t`` and ``source``. They may be read while they are asked for.
    """

    name: str
    facts: dict[str, Any]
    records: Iterable[dict[str, Any]]
