"""Labels of figures: text from a trace on one line, without markup for plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.safe_text import LABEL_LIMIT, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Longest name of a worker.
NAME_LIMIT: Final = 24


def label(text: object, limit: int = LABEL_LIMIT) -> str:
    """Return a text from a trace as a label of one line, with plotly's markup escaped.

    ``limit`` is its maximum length before escaping; None returns an empty label.
    """
    if text is None:
        return ""
    short = one_line(str(text), limit)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def worker_name(worker: Mapping[str, object]) -> str:
    """Return a short name of a row of view ``workers``: its name, else its address."""
    address = str(worker.get("worker") or "?")
    name = worker.get("name")
    if name in (None, "", address):
        name = address.rsplit("://", 1)[-1]
    elif str(name).isdecimal():
        # Dask numbers the workers that have no name.
        name = f"worker {name}"
    return one_line(str(name), NAME_LIMIT)
