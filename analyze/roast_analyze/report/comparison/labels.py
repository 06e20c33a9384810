"""Short, distinct names of the traces of a comparison."""

from __future__ import annotations

import re
from itertools import product, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.open.discover import trace_name
from roast_analyze.open.remote import shown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Maximum number of characters of names that are not abbreviated.
_SHORT: Final = 24
#: Words and separators of a name.
_WORDS: Final = re.compile(r"[^\W_]+|[\W_]+")


def distinct_labels(
    traces: Sequence[tuple[Path, ...]],
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return distinct names of traces with as few parent folders as possible.

    Returns
    -------
    list of str
        Names without file extensions, if they are distinct without them.
    list of tuple of str
        Paths of each trace with as many parent folders.
    """
    firsts = [_shown_path(paths[0]) for paths in traces]
    longest = max(len(path.parts) for path in firsts)
    for suffix, depth in product((False, True), range(1, longest + 1)):
        labels = [_tail(first, depth, suffix) for first in firsts]
        if len(set(labels)) == len(firsts):
            break
    else:  # URLs that differ only in their queries
        labels = [f"{label} ({number})" for number, label in enumerate(labels, start=1)]
    return labels, [
        tuple(_tail(_shown_path(path), depth, True) for path in paths) for paths in traces
    ]


def recorded_labels(given: Sequence[str | None], files: Sequence[str]) -> list[str]:
    """Return the label that each trace was recorded with, or else the name of its file.

    Labels that are not distinct are followed by the name of the file.
    """
    named = [label or file for label, file in zip(given, files, strict=False)]
    return [
        name if named.count(name) == 1 else f"{name} ({file})"
        for name, file in zip(named, files, strict=False)
    ]


def abbreviated(labels: Sequence[str]) -> list[str]:
    """Omit the words with which all names begin or end, if any name is long.

    Examples
    --------
    >>> abbreviated(["dijets_of_2026_v1_on_the_grid", "dijets_of_2026_v2_on_the_grid"])
    ['…v1…', '…v2…']
    """
    if len(labels) < 2 or max(map(len, labels)) <= _SHORT:
        return list(labels)
    words = [_WORDS.findall(label) for label in labels]
    # At least one word of each name remains.
    most = min(map(len, words)) - 1
    head = min(_common_words(words), most)
    tail = min(_common_words([some[::-1] for some in words]), most - head)
    return [
        "…" * (head > 0) + "".join(some[head : len(some) - tail]) + "…" * (tail > 0)
        for some in words
    ]


def _common_words(lists: Sequence[Sequence[str]]) -> int:
    """Count the words with which all lists begin."""
    columns = zip(*lists, strict=False)
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, columns))


def _shown_path(path: Path) -> Path:
    """Return the absolute path of a trace, or one with the parts of its URL."""
    return Path(shown_name(path.absolute()).removesuffix("?…"))


def _tail(path: Path, depth: int, suffix: bool) -> str:
    """Return the last parts of a path, with or without the file extension."""
    above = path.parent.parts[1:]
    parents = above[max(len(above) - depth + 1, 0) :]
    return "/".join((*parents, path.name if suffix else trace_name(path)))
