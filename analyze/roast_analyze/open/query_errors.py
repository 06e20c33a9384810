"""What DuckDB says of a query, said so that it helps.

The first line of a message stands for itself: where it is, what is wrong, what may be meant.
If the place is known, the line of the query follows, with a caret below it::

    line 1, column 8: Binder Error: Referenced column "kye" not found … did you mean 'key'?
      SELECT kye FROM tasks
             ^
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.errors import QueryError, one_line
from roast_analyze.figures.labels import visible
from roast_analyze.open.views import near_miss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.open.views import View

#: What opens the door, named in every error of somebody who stands before it.
WAY_OUT: Final = "--unsafe allows it, or Trace(…, unsafe=True) in Python"

#: What DuckDB says where a query that sees only the trace wanted more, and what it wanted.
_FORBIDDEN: Final = tuple(
    (re.compile(pattern), wanted)
    for pattern, wanted in (
        (r"required extension '(\w+)", "loading the extension {!r}"),
        (r"but it exists in the (\w+) extension", "loading the extension {!r}"),
        (r"Loading external extensions", "loading an extension"),
        (r"stored_secrets|Secret Storage", "reading secrets"),
        (r'Cannot access (?:file|directory) "(.*?)" - file system', "opening {!r}"),
        (r'Cannot change configuration option "*(\w+)', "changing the setting {!r}"),
        (r"(?:launched|attached) in read-only mode|data-modifying", "changing what is there"),
    )
)

#: DuckDB draws a part of one line, cut with dots if it is long, and carets below it.
_DRAWING: Final = re.compile(r"\n\nLINE (\d+): ([^\n]*)\n( *)\^")

_NO_TABLE: Final = re.compile(r'Table with name "?(.+?)"? does not exist')
_NO_COLUMN: Final = re.compile(
    r'olumn "([^"]+)"[^"]*(?:not found|does not exist)|column named "([^"]+)"'
)

#: Longest part of a line that is shown.
_SHOWN_CHARACTERS: Final = 100

#: Most views that are named for a column.
_VIEWS_NAMED: Final = 5


@dataclass(frozen=True)
class Place:
    """A place in a query: its line and column, counted from 1, and the text of the line.

    The column is None if DuckDB does not tell it clearly enough.
    """

    line: int
    column: int | None
    text: str


def forbidden(wanted: str) -> QueryError:
    """Give the error of a query that wanted more than the trace."""
    return QueryError(
        f"{wanted} is not allowed: a query reads the trace and nothing else; {WAY_OUT}"
    )


def explained(
    error: Exception, query: str, views: Sequence[View], *, safe: bool, lines_before: int = 0
) -> QueryError:
    """Say what was wrong with a query.

    Parameters
    ----------
    error : duckdb.Error
        What DuckDB said.
    query : str
        What was asked.
    views : sequence of View
        Those that the query may have meant.
    safe : bool
        Whether the query was to see the trace alone.
    lines_before : int
        Lines that stood before the query in what DuckDB was given.
    """
    said = str(error)
    if safe and (wanted := _forbidden_wish(said)):
        return forbidden(wanted)
    message = visible(one_line(error))
    if suggestion := _suggestion(said, query, views):
        message = f"{message.rstrip('!')}; {suggestion}"
    place = place_in(said, query, lines_before)
    if place is None:
        return QueryError(message)
    where = f"line {place.line}" + (f", column {place.column}" if place.column else "")
    return QueryError("\n  ".join([f"{where}: {message}", *_drawn(place)]))


def missing_table(said: str) -> str | None:
    """Give the name that DuckDB knows no table or view by, if that is what it said."""
    found = _NO_TABLE.search(said)
    return found[1] if found else None


def place_in(said: str, query: str, lines_before: int = 0) -> Place | None:
    """Find the place that DuckDB draws in the text of a query.

    A query can have become a part of another one, with lines before it that nobody knows of.
    So if the text of the line does not stand where it should, it is looked for.
    """
    drawing = _DRAWING.search(said)
    if drawing is None:
        return None
    number, excerpt, margin = drawing.groups()
    is_cut = excerpt.startswith("...")
    part = excerpt.removeprefix("...").removesuffix("...").rstrip("\r")
    lines = query.split("\n")
    matching = [i for i, line in enumerate(lines) if part in line]
    index = int(number) - 1 - lines_before
    if index not in matching:
        if len(matching) != 1:
            return None
        [index] = matching
    text = lines[index].rstrip("\r")
    width = len(margin) - len(f"LINE {number}: ") - 3 * is_cut
    if text.count(part) != 1 or width < 0:
        return Place(index + 1, None, text)
    return Place(index + 1, text.index(part) + _characters(part, width) + 1, text)


def _forbidden_wish(said: str) -> str | None:
    for pattern, wanted in _FORBIDDEN:
        if found := pattern.search(said):
            return wanted.format(*found.groups())
    return None


def _suggestion(said: str, query: str, views: Sequence[View]) -> str:
    """Name the view or the column that may be meant, where DuckDB does not."""
    if (table := missing_table(said)) and "Did you mean" not in said:
        return near_miss(table, [view.name for view in views])
    if column := _NO_COLUMN.search(said):
        return _suggested_column(column[1] or column[2], said, query, views)
    return ""


def _suggested_column(name: str, said: str, query: str, views: Sequence[View]) -> str:
    has_it = [view.name for view in views if name in {column.name for column in view.columns}]
    if has_it:
        named = ", ".join(has_it[:_VIEWS_NAMED]) + (", …" if has_it[_VIEWS_NAMED:] else "")
        return f"{name!r} is a column of {named}"
    words = set(re.findall(r"\w+", query))
    columns = {column.name for view in views if view.name in words for column in view.columns}
    near = difflib.get_close_matches(name, sorted(columns), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near and f'"{near[0]}"' not in said else ""


def _drawn(place: Place) -> list[str]:
    """Draw the line, or the part of it around the place, and a caret."""
    text = place.text.replace("\t", " ")
    if place.column is None:
        return [visible(text[:_SHOWN_CHARACTERS])]
    start = max(0, place.column - 1 - _SHOWN_CHARACTERS // 2)
    start = 0 if len(text) <= _SHOWN_CHARACTERS else start
    before = ("…" if start else "") + visible(text[start : place.column - 1])
    after = visible(text[place.column - 1 : start + _SHOWN_CHARACTERS])
    rest = "…" if len(text) > start + _SHOWN_CHARACTERS else ""
    return [before + after + rest, " " * sum(map(_width, before)) + "^"]


def _characters(text: str, width: int) -> int:
    """Count the characters before the one at that width, by DuckDB's measure."""
    taken = 0
    for index, character in enumerate(text):
        own = _width(character) if character.isprintable() else 0
        if taken >= width and own:
            return index
        taken += own
    return len(text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
