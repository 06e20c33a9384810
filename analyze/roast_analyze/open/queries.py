"""Checks of a query before it runs, and errors that show where it is wrong.

The first line of a message is complete: place, problem and suggestion. If the place is known,
the line of the query follows, with a caret below it::

    line 1, column 8: Binder Error: Referenced column "kye" not found … did you mean 'key'?
      SELECT kye FROM tasks
             ^
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import QueryError, first_paragraph
from roast_analyze.open.views import suggest
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.open.views import View

    Parameters = Mapping[str, object] | Sequence[object] | None

#: White space and comments before the first word of a statement.
BEFORE: Final = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"

#: Types of statements that return rows: DESCRIBE and SHOW count as SELECT, PIVOT as MULTI.
_QUERY_TYPES: Final = (
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.MULTI,
)

#: Messages of DuckDB about a query that may only read the trace, and what it tried to do.
_FORBIDDEN: Final = tuple(
    (re.compile(pattern), action)
    for pattern, action in (
        (r"required extension '(\w+)", "loading the extension {!r}"),
        (r"but it exists in the (\w+) extension", "loading the extension {!r}"),
        (r"Loading external extensions", "loading an extension"),
        (r"stored_secrets|Secret Storage", "reading secrets"),
        (r'Cannot access (?:file|directory) "(.*?)" - file system', "opening {!r}"),
        (r'Cannot change configuration option "*(\w+)', "changing the setting {!r}"),
        (r"(?:launched|attached) in read-only mode|data-modifying", "changing the database"),
    )
)

#: DuckDB quotes a part of one line, shortened with dots if it is long, and a caret below it.
_QUOTED_LINE: Final = re.compile(r"\n\nLINE (\d+): ([^\n]*)\n( *)\^")

_NO_TABLE: Final = re.compile(r'Table with name "?(.+?)"? does not exist')
#: DuckDB also suggests internal tables.
_OTHER_TABLE: Final = re.compile(r'\sDid you mean ".+?"\?')
_NO_COLUMN: Final = re.compile(
    r'olumn "([^"]+)"[^"]*(?:not found|does not exist)|column named "([^"]+)"'
)

#: Length limit of the line that a message quotes.
_QUOTED_CHARACTERS: Final = 100

#: Limit of the views that a message lists for a column.
_LISTED_VIEWS: Final = 5


def is_query(statement: duckdb.Statement) -> bool:
    """Return whether a statement returns rows and has no other effect."""
    try:
        return statement.type in _QUERY_TYPES
    except ValueError:  # DuckDB has statement types that its Python package lacks
        return False


def check_query(
    statements: list[duckdb.Statement], parameters: Parameters, *, safe: bool
) -> None:
    """Check that a text is one query, and that its parameters are complete.

    DuckDB enforces what a query may do. These checks come first for clearer errors. Without
    `safe` any statements are allowed.
    """
    if safe:
        for statement in statements:
            if not is_query(statement):
                word = re.match(rf"{BEFORE}(\w+)", statement.query, re.DOTALL)
                raise not_allowed(word[1].upper() if word else "such a statement")
        if len(statements) > 1:
            raise QueryError(f"expected one query, got {len(statements)}")
    if not statements:
        raise QueryError("the query is empty: try SELECT * FROM run")
    used = {name for statement in statements for name in statement.named_parameters}
    if isinstance(parameters, Mapping):
        given = list(parameters)
    else:
        given = [str(number) for number, _ in enumerate(parameters or (), start=1)]
        if parameters and not all(name.isdecimal() for name in used):
            raise QueryError(
                f"the query has named parameters, {_listed(used)}; pass values by name"
            )
    # Parameter names are not case-sensitive in DuckDB.
    folded_given = {name.casefold() for name in given}
    if missing := {name for name in used if name.casefold() not in folded_given}:
        raise QueryError(
            f"no value for {_listed(missing)} in the query; "
            "pass it with -p NAME=VALUE, or with sql(…, parameters) in Python"
        )
    folded_used = {name.casefold() for name in used}
    if unused := {name for name in given if name.casefold() not in folded_used}:
        has = f"it has {_listed(used)}" if used else "it has no parameters"
        raise QueryError(f"{_listed(unused)} is not a parameter of the query; {has}")


def _listed(names: set[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names))


def not_allowed(action: str) -> QueryError:
    """Return the error of a query that tried to do more than read the trace."""
    return QueryError(
        f"{action} is not allowed: a query may only read the trace; "
        "use --unsafe, or Trace(…, unsafe=True) in Python, to allow it"
    )


def explain_error(
    error: Exception, query: str, views: Sequence[View], *, safe: bool, lines_before: int = 0
) -> QueryError:
    """Convert an error of DuckDB into one with the place in the query and a suggestion.

    `views` are the candidates for a suggestion; `safe` is whether the query was limited to the
    trace; `lines_before` is the number of lines before the query in the text that was parsed.
    """
    text = str(error)
    if safe:
        for pattern, action in _FORBIDDEN:
            if found := pattern.search(text):
                return not_allowed(action.format(*found.groups()))
    message = visible(first_paragraph(error))
    if suggestion := _suggestion(text, query, views):
        message = f"{_OTHER_TABLE.sub('', message).rstrip('!')}; {suggestion}"
    place = _find_place(text, query, lines_before)
    if place is None:
        return QueryError(message)
    line, column, line_text = place
    quoted = line_text.replace("\t", " ")
    if column is None:
        return QueryError(f"line {line}: {message}\n  {visible(quoted[:_QUOTED_CHARACTERS])}")
    # Only the part around the column is quoted, with a caret below.
    start = 0
    if len(quoted) > _QUOTED_CHARACTERS:
        start = max(0, column - 1 - _QUOTED_CHARACTERS // 2)
    before = ("…" if start else "") + visible(quoted[start : column - 1])
    after = visible(quoted[column - 1 : start + _QUOTED_CHARACTERS])
    rest = "…" if len(quoted) > start + _QUOTED_CHARACTERS else ""
    return QueryError(
        f"line {line}, column {column}: {message}\n  {before}{after}{rest}\n"
        f"  {' ' * sum(map(_width, before))}^"
    )


def missing_table(text: str) -> str | None:
    """Return the name of the table that DuckDB reported as missing, or None."""
    return found[1] if (found := _NO_TABLE.search(text)) else None


def _suggestion(text: str, query: str, views: Sequence[View]) -> str:
    """Suggest a view, or a column where DuckDB does not."""
    if table := missing_table(text):
        return suggest(table, [view.name for view in views])
    found = _NO_COLUMN.search(text)
    if not found:
        return ""
    name = found[1] or found[2]
    owners = [view.name for view in views if name in {column.name for column in view.columns}]
    if owners:
        more = ", …" if owners[_LISTED_VIEWS:] else ""
        return f"{name!r} is a column of {', '.join(owners[:_LISTED_VIEWS])}{more}"
    words = set(re.findall(r"\w+", query))
    columns = {column.name for view in views if view.name in words for column in view.columns}
    near = difflib.get_close_matches(name, sorted(columns), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near and f'"{near[0]}"' not in text else ""


def _find_place(text: str, query: str, lines_before: int) -> tuple[int, int | None, str] | None:
    """Find the line, the column (None if ambiguous) and the text of the line of an error.

    Lines and columns count from 1.
    """
    quoted = _QUOTED_LINE.search(text)
    if quoted is None:
        return None
    number, excerpt, margin = quoted.groups()
    is_cut = excerpt.startswith("...")
    part = excerpt.removeprefix("...").removesuffix("...").rstrip("\r")
    lines = query.split("\n")
    matching = [i for i, line in enumerate(lines) if part in line]
    index = int(number) - 1 - lines_before
    if index not in matching:
        # DuckDB counts lines of a longer text if the query became a part of one.
        if len(matching) != 1:
            return None
        [index] = matching
    line = lines[index].rstrip("\r")
    width = len(margin) - len(f"LINE {number}: ") - 3 * is_cut
    if line.count(part) != 1 or width < 0:
        return index + 1, None, line
    # DuckDB reports the place of an error as a display width.
    taken, before = 0, len(part)
    for position, character in enumerate(part):
        own = _width(character) if character.isprintable() else 0
        if taken >= width and own:
            before = position
            break
        taken += own
    return index + 1, line.index(part) + before + 1, line


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
