"""Text of a trace made fit to be shown: harmless, visible, and not too long.

Keys, file names, exceptions and the like are whatever the user's code made of them. Here
control and bidirectional marks become visible signs, so that a name can neither hide a
part of itself nor turn its surroundings around, and plotly's pseudo-HTML is defused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Longest label in characters; keys of Dask are usually shorter.
LABEL_LIMIT: Final = 120
#: Longest name of a worker.
NAME_LIMIT: Final = 24

#: C0 and C1 controls, bidirectional marks, line and paragraph separators, byte-order
#: mark, and surrogates that have no partner. Tab and newline are kept.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Replace characters that cannot be seen by a sign that can.

    Parameters
    ----------
    text : str
        Any text. Tabs and newlines stay as they are.

    Returns
    -------
    str
        Control characters below 0x20 as Unicode's control pictures, the others by code
        point.

    Examples
    --------
    >>> visible("a\x00b\u202ec")
    'a␀b⟨U+202E⟩c'
    """
    return _INVISIBLE.sub(_sign, text)


def shortened(text: str, limit: int = LABEL_LIMIT) -> str:
    """Leave out the middle of a text that is longer than ``limit`` characters.

    Dask's keys and file names tell themselves apart at both of their ends.
    """
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def one_line(text: str, limit: int = LABEL_LIMIT) -> str:
    """Put a text on one line of at most so many characters, where it stays text."""
    return shortened(" ".join(visible(text).split()), limit)


def label(text: object, limit: int = LABEL_LIMIT) -> str:
    """Make any text of a trace fit for a plotly label.

    Parameters
    ----------
    text : object
        Any value; None gives an empty label.
    limit : int
        Longest label in characters, before escaping.

    Returns
    -------
    str
        One line in which plotly finds no markup: ``&``, ``<`` and ``>`` are entities,
        which plotly shows as the signs they stand for.
    """
    if text is None:
        return ""
    short = one_line(str(text), limit)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def worker_name(worker: Mapping[str, object]) -> str:
    """Name a worker in a few characters: its name, else its address without the scheme.

    Parameters
    ----------
    worker : mapping
        Of a row of view ``workers``: ``worker`` and ``name``.
    """
    address = str(worker.get("worker") or "?")
    name = worker.get("name")
    if name in (None, "", address):
        name = address.rsplit("://", 1)[-1]
    elif str(name).isdecimal():
        # The names that Dask gives by itself are numbers.
        name = f"worker {name}"
    return one_line(str(name), NAME_LIMIT)


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"
