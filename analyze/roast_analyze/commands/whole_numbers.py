"""Whole numbers on the command line."""

from __future__ import annotations

import argparse
from typing import Final

#: Largest number that fits in a BIGINT of DuckDB.
_MOST: Final = 2**63 - 1


def whole_number(text: str, *, what: str, hint: str, least: int = 1) -> int:
    """Parse a whole number; the error names `what` it is, and `hint` shows valid ones."""
    if not text.isdecimal() or not least <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"invalid {what} {text!r}: use {hint}")
    return int(text)
