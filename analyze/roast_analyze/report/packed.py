"""Data that scripts of the page read: JSON, packed with gzip, as base64.

Whatever is in it, it is letters, digits and three signs once it is packed: nothing can close
the element that it stands in.
"""

from __future__ import annotations

import base64
import gzip
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The strongest packing takes twice as long for a hundredth of the size.
_LEVEL: Final = 6


def packed(value: object) -> Markup:
    """Pack what JSON can hold."""
    return packed_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def packed_text(text: str) -> Markup:
    """Pack a text."""
    content = gzip.compress(text.encode(), compresslevel=_LEVEL, mtime=0)
    return Markup(base64.b64encode(content).decode("ascii"))  # noqa: S704 - base64


def differences(numbers: Iterable[int]) -> list[int]:
    """Replace each number but the first by how much it differs from the one before.

    Of numbers in order, that is fewer and more like digits to pack.
    """
    return [after - before for before, after in pairwise([0, *numbers])]
