"""Checks of a query before it runs, and errors that show where it is wrong.

The first line of a message is complete: place, problem and suggestion. If the place is known,
the line of the query follows, with a caret below it::

    line 1, column 8: Binder Error: Referenced column "kye" not found … did you mean 'key'?
      SELECT kye FROM tasks
             ^
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import NotAllowed, QueryError, first_paragraph
from roast_analyze.open.views import suggest
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roast_analyze.open.views import View

    Parameters = Mapping[str, object] | Sequence[object] | None

#: White space and comments before the first word of a statement.
BEFORE: Final = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"

#: Beginning of a statement that is explained.
_EXPLAIN: Final = re.compile(
    rf"{BEFORE}EXPLAIN\b{BEFORE}(?:ANALYZE\b{BEFORE})?(?:\([^)]*\){BEFORE})?",
    re.IGNORECASE | re.DOTALL,
)

#: First words of statements that are not queries, some of which can be the body of a CTE.
_OTHER_STATEMENTS: Final = frozenset(
    """
    ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE
    DETACH DROP EXECUTE EXPLAIN EXPORT FORCE IMPORT INSERT INSTALL LOAD MERGE PRAGMA PREPARE
    RESET ROLLBACK SET TRUNCATE UPDATE USE VACUUM
    """.split()  # noqa: SIM905 - a list of strings takes three times as many lines
)

#: What tokens of such a body look like. Finding none takes a tenth of the time of tokenizing.
_INNER_STATEMENT: Final = re.compile(
    rf"[()]{BEFORE}(?:{'|'.join(sorted(_OTHER_STATEMENTS))})\b", re.IGNORECASE | re.DOTALL
)

#: Nodes of DuckDB's parse tree that only read.
_READING_NODES: Final = {
    "SELECT_NODE",
    "SET_OPERATION_NODE",
    "RECURSIVE_CTE_NODE",
    "CTE_NODE",
}

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


def effect_of(statement: duckdb.Statement) -> str | None:
    """Return the first word of what a statement does other than return rows; None for a query.

    An explained statement is judged by itself, because EXPLAIN ANALYZE executes it; a query is
    judged with the bodies of its CTEs, which can write tables and files.
    """
    text = statement.query
    word = re.match(rf"{BEFORE}(\w+)", text, re.DOTALL)
    own = word[1].upper() if word else "such a statement"
    try:
        kind = statement.type
    except ValueError:  # DuckDB has statement types that its Python package lacks
        return own
    if kind == duckdb.StatementType.EXPLAIN:
        beginning = _EXPLAIN.match(text)
        try:
            with _parser().cursor() as connection:
                explained = connection.extract_statements(
                    text[beginning.end() :] if beginning else ""
                )
        except duckdb.Error:
            return own
        if len(explained) != 1 or explained[0].type == duckdb.StatementType.EXPLAIN:
            return own
        return effect_of(explained[0])
    inner = inner_effect(text)
    # DESCRIBE and SHOW count as SELECT.
    if kind == duckdb.StatementType.SELECT:
        return inner if inner and not _query_nodes(text) <= _READING_NODES else None
    # A PIVOT that first reads the names of its columns; DuckDB cannot serialize it.
    return inner if kind == duckdb.StatementType.MULTI else own


def inner_effect(query: str) -> str | None:
    """Return the first word of a statement within a query that seems to be none.

    Such a statement follows the parenthesis that opens the body of a CTE, or the one that
    closes the CTEs of the statement itself.
    """
    if not _INNER_STATEMENT.search(query):
        return None
    content = query.encode()
    tokens = [*duckdb.tokenize(query), (len(content), None)]
    texts = [
        content[start:stop].decode().strip().upper()
        for (start, kind), (stop, _) in pairwise(tokens)
        if kind != duckdb.token_type.comment
    ]
    return next(
        (
            text
            for before, text in pairwise(texts)
            if text in _OTHER_STATEMENTS and before.endswith(("(", ")"))
        ),
        None,
    )


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """Return a connection to an instance without data; starting one takes 30 ms."""
    return duckdb.connect(config={"threads": 1})


@lru_cache(maxsize=128)  # serializing takes longer than running most queries
def _query_nodes(query: str) -> frozenset[str]:
    """Return the types of the nodes of a SELECT statement."""
    with _parser().cursor() as connection:
        [(serialized,)] = connection.execute(
            "SELECT json_serialize_sql(?::VARCHAR)", [query]
        ).fetchall()
    parsed = json.loads(serialized)
    nodes = {"unknown"} if parsed["error"] else _node_types(parsed["statements"])
    return frozenset(nodes)


def _node_types(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        kind = part.get("type")
        if isinstance(kind, str) and kind.endswith("_NODE"):
            yield kind
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from _node_types(item)


def check_query(
    statements: list[duckdb.Statement], parameters: Parameters, *, safe: bool
) -> None:
    """Check that a text is one query, and that its parameters are complete.

    DuckDB enforces what a query may do. These checks come first for clearer errors. Without
    `safe` any statements are allowed.
    """
    if safe:
        for statement in statements:
            if effect := effect_of(statement):
                raise not_allowed(effect)
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


def not_allowed(action: str) -> NotAllowed:
    """Return the error of a query that tried to do more than read the trace."""
    return NotAllowed(f"{action} is not allowed: a query may only read the trace")


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
