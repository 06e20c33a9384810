"""Asking: one connection a question, and what a question may do.

A query sees the trace and nothing else. That is held by DuckDB itself: external access is
off and the configuration locked before the first query, and each query runs in a transaction
that is read-only. What is checked here comes before that, for the sake of a clear error.

DuckDB refuses a second call on a connection that is busy, or has a result that nobody has
read to its end. So each question gets a connection of its own to the same database, which
lives as long as what it was answered with. That makes a trace safe to use from any thread.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import duckdb

from roast_analyze.errors import QueryError
from roast_analyze.open.query_errors import explained, forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roast_analyze.open.views import View

    Parameters = Mapping[str, object] | Sequence[object] | None

#: What can stand before the first word of a statement.
BEFORE: Final = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"

_FIRST_WORD: Final = re.compile(rf"{BEFORE}(\w+)", re.DOTALL)

#: Statements that give rows: DESCRIBE, SHOW and the like count as SELECT, PIVOT as MULTI.
_QUERIES: Final = (
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.MULTI,
)

#: Set for the whole database: a connection would not pass them on to those made of it.
_CLOSED: Final = (
    "SET GLOBAL python_enable_replacements = false",  # no variables of the caller
    "SET GLOBAL enable_external_access = false",  # no files, network, extensions
    "SET GLOBAL lock_configuration = true",
)


def close_to_the_outside(connection: duckdb.DuckDBPyConnection) -> None:
    """Let queries see the database and nothing else, for good."""
    for statement in _CLOSED:
        connection.execute(statement)


class Queries:
    """The questions to a database, from any number of threads.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Of the database; it is closed with the questions.
    views : callable
        Gives the views that a query may have meant.
    safe : bool
        Whether queries may only read what is in the database.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        views: Callable[[duckdb.DuckDBPyConnection], list[View]],
        *,
        safe: bool,
    ) -> None:
        self._connection = connection
        self._views = views
        self._safe = safe
        [(self._search_path,)] = connection.execute(
            "SELECT current_setting('search_path')"
        ).fetchall()
        self._open: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()
        self._lock = threading.Lock()

    def ask(self, query: str, parameters: Parameters) -> duckdb.DuckDBPyRelation:
        """Ask a question.

        Raises
        ------
        QueryError
            If it is not one query, a parameter is missing or not used, or DuckDB refuses it.
        """
        connection = self.connect()
        try:
            self._check(connection.extract_statements(query), query, parameters)
            if self._safe:
                connection.execute("BEGIN TRANSACTION READ ONLY")
            relation = connection.sql(query, params=parameters)
        except duckdb.Error as error:
            raise self.explained(error, query) from None
        if relation is None:
            raise QueryError(f"the query gives no rows: {query[:100]!r}")
        return relation

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Give a connection that nobody else uses.

        Raises
        ------
        QueryError
            If the trace is closed.
        """
        with self._lock:
            try:
                connection = self._connection.cursor()
            except duckdb.ConnectionException:
                raise QueryError("the trace is closed; open it again") from None
            self._open.add(connection)
        # Connections do not pass it on to those made of them.
        connection.execute(f"SET search_path = '{self._search_path}'")
        return connection

    def explained(self, error: duckdb.Error, query: str) -> QueryError:
        """Say what was wrong with a query, and where."""
        with self.connect() as connection:
            placed, lines_before = _with_its_place(error, query, connection)
            views = self._views(connection)
            return explained(placed, query, views, safe=self._safe, lines_before=lines_before)

    def close(self) -> None:
        """Close all connections; what runs on them is interrupted."""
        with self._lock:
            for connection in [*self._open, self._connection]:
                _close(connection)

    def _check(
        self, statements: list[duckdb.Statement], query: str, parameters: Parameters
    ) -> None:
        if self._safe:
            _refuse_what_is_no_query(statements)
        if not statements:
            raise QueryError(f"the query gives no rows: {query[:100]!r}")
        used = {name for statement in statements for name in statement.named_parameters}
        _check_parameters(used, parameters)


def is_query(statement: duckdb.Statement) -> bool:
    """Tell whether a statement gives rows and does nothing else."""
    try:
        return statement.type in _QUERIES
    except ValueError:  # DuckDB has types that its Python part does not know
        return False


def _refuse_what_is_no_query(statements: list[duckdb.Statement]) -> None:
    for statement in statements:
        if not is_query(statement):
            first_word = _FIRST_WORD.match(statement.query)
            raise forbidden(first_word[1].upper() if first_word else "such a statement")
    if len(statements) > 1:
        raise QueryError(f"one query at a time, not {len(statements)}")


def _check_parameters(used: set[str], parameters: Parameters) -> None:
    """Refuse a parameter without a value, and a value without a parameter."""
    if isinstance(parameters, Mapping):
        given = list(parameters)
    else:
        given = [str(number) for number, _ in enumerate(parameters or (), start=1)]
        if parameters and not all(name.isdecimal() for name in used):
            raise QueryError(
                f"the query has names for its parameters, {_listed(used)}; give values by name"
            )
    folded = {name.casefold() for name in given}  # as DuckDB does
    if missing := {name for name in used if name.casefold() not in folded}:
        raise QueryError(
            f"no value is given for {_listed(missing)} in the query; "
            f"-p NAME=VALUE gives one, or sql(…, parameters) in Python"
        )
    known = {name.casefold() for name in used}
    if unused := {name for name in given if name.casefold() not in known}:
        has = f"it has {_listed(used)}" if used else "it has no parameters"
        raise QueryError(f"a value is given for {_listed(unused)}, not in the query; {has}")


def _listed(names: set[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names))


def _with_its_place(
    error: duckdb.Error, query: str, connection: duckdb.DuckDBPyConnection
) -> tuple[duckdb.Error, int]:
    """Ask for the place of an error; relations do not tell it, prepared statements do.

    Gives the error that tells it, and how many lines stood before the query there.
    """
    if "\n\nLINE " in str(error):
        return error, 0
    try:
        if len(connection.extract_statements(query)) == 1:
            connection.execute(f"PREPARE placed AS\n{query}")
    except duckdb.Error as placed:
        if str(placed).startswith(str(error)):
            return placed, 1
    return error, 0


def _close(connection: duckdb.DuckDBPyConnection) -> None:
    while True:
        try:
            connection.close()
        except duckdb.ResourceInUseException:
            connection.interrupt()
            time.sleep(0.01)
        else:
            return
