"""Labels of figures: text from a trace on one line, without markup that plotly would obey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.safe_text import LABEL_LIMIT, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Longest name of a worker.
NAME_LIMIT: Final = 24


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
