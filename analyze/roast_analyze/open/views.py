"""The named views: SQL files, and what is in them.

The views are the files ``sql/<topic>/<name>.sql``. Each begins with a line
``-- Needs: a, b`` that names the files that must come before it. Names that begin with
``_`` are building blocks that only other files use; the others are public, and their
columns and comments are an interface.

The files of ``sql/excerpt`` say what those relations are of a stretch of the run that would
else look beyond it; the others are worked out from these as ever.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from roast_analyze.errors import UnknownView
from roast_schemas.describe import kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.resources.abc import Traversable

#: Topics, in the order in which views are listed.
TOPICS = ("trace", "setup", "tasks", "workers", "coffea", "spans", "profiles", "io")

#: Topic of the views that come from users' own files, the last in the list.
YOURS = "yours"

#: Folder of what is different in an excerpt, and how its files of tables of records begin.
_EXCERPT = "time_range"
_RAW = "raw."

_NEEDS = "-- Needs: "
_CREATE_TABLE = "CREATE TABLE"
_COMMENT = "COMMENT ON "

#: The modules that make tables of files.
_READERS = ("checksum.py", "decompress.py", "block_reader.py", "load.py")


@dataclass(frozen=True)
class Column:
    """A column of a view: its name, its DuckDB type and what it means."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True)
class View:
    """A public view: its name, topic, what a row of it is, and its columns in order."""

    name: str
    topic: str
    comment: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class _Definition:
    """A file below ``sql/``."""

    name: str
    sql: str
    needs: tuple[str, ...]


@cache
def view_names() -> tuple[str, ...]:
    """Name our public views, in the order in which they are listed."""
    return tuple(_topics())


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views, building blocks included, over the tables of the schema ``raw``."""
    for definition in _definitions():
        connection.execute(definition.sql)


def work_out_tables(
    connection: duckdb.DuckDBPyConnection, report: Callable[[float], None]
) -> None:
    """Make those building blocks anew that are tables: what is worked out once a trace.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where :func:`create_views` was called.
    report : callable
        Is told what share is done.
    """
    tables = [d for d in _definitions() if _CREATE_TABLE in d.sql]
    for i, definition in enumerate(tables):
        report(i / len(tables))
        connection.execute(definition.sql.replace(_CREATE_TABLE, "CREATE OR REPLACE TABLE"))


def excerpt_table() -> str:
    """Give the statement that creates the table of stretches, ``_excerpt``."""
    return _excerpt_definitions()["_excerpt"].sql


def create_excerpt_views(
    connection: duckdb.DuckDBPyConnection, report: Callable[[float], None]
) -> None:
    """Create the views, building blocks included, of a stretch of the run.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        In a database with ``_excerpt`` filled and nothing else, beside that of the trace.
    report : callable
        Is told what share is done.
    """
    cut = _excerpt_definitions()
    connection.execute("CREATE SCHEMA raw")
    for (table,) in connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw' ORDER BY ALL"
    ).fetchall():
        whole = f'CREATE VIEW raw."{table}" AS SELECT rowid, * FROM trace.raw."{table}"'  # noqa: S608 - our own names
        connection.execute(cut[_RAW + table].sql if _RAW + table in cut else whole)
    definitions = {d.name: d for d in _definitions()}
    relations = {name: d for name, d in cut.items() if not name.startswith(_RAW)}
    del relations["_excerpt"]
    ordered = _in_order({**definitions, **relations})
    for i, definition in enumerate(ordered):
        report(i / len(ordered))
        connection.execute(definition.sql)
        if definition.name in cut and definition.name in definitions:
            connection.execute(_comments(definitions[definition.name]))


def view_statements() -> tuple[str, ...]:
    """Give the text of every file below ``sql/``, each after those that it needs."""
    return tuple(definition.sql for definition in _definitions())


def describe_views(
    connection: duckdb.DuckDBPyConnection, own: Sequence[str] = ()
) -> list[View]:
    """List the public views with what they mean, as the database tells it.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where :func:`create_views` was called.
    own : sequence of str, optional
        Names of users' views to list after ours.
    """
    topics = {**_topics(), **dict.fromkeys(own, YOURS)}
    comments = dict(
        connection.execute(
            "SELECT view_name, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    )
    columns: dict[str, list[Column]] = {name: [] for name in comments}
    for view, *column in connection.execute(
        # An excerpt has the same ones as the whole that lies beside it.
        "SELECT DISTINCT ON (table_name, column_index) table_name, column_name, data_type, "
        "coalesce(comment, '') FROM duckdb_columns() "
        "WHERE list_contains($views, table_name) "
        "AND schema_name = 'main' ORDER BY table_name, column_index",
        {"views": list(comments)},
    ).fetchall():
        columns[view].append(Column(*column))
    return [
        View(name, topic, comments[name], tuple(columns[name]))
        for name, topic in topics.items()
    ]


def known_view(view: str, own: Sequence[str] = ()) -> str:
    """Give the name of a public view back.

    Parameters
    ----------
    view : str
    own : sequence of str, optional
        Names of users' views that are there beside ours.

    Raises
    ------
    UnknownView
        If no view has the name.
    """
    names = (*view_names(), *own)
    if view in names:
        return view
    raise UnknownView(f"no view is named {view!r}; {near_miss(view, names)}")


def near_miss(name: str, names: Sequence[str]) -> str:
    """Say which of some names may be meant by one that is none of them."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"


@cache
def _topics() -> dict[str, str]:
    """Give the topic of each of our public views."""
    return {
        Path(file.name).stem: topic
        for topic in TOPICS
        for file in _sql_files(topic)
        if not file.name.startswith("_")
    }


@cache
def definitions_digest() -> str:
    """Digest all that decides how a trace becomes a database, but for the trace."""
    code = (files("roast_analyze.open").joinpath(name).read_text("utf-8") for name in _READERS)
    parts = [duckdb.__version__, repr(kinds()), *code, *(d.sql for d in _definitions())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _definitions() -> tuple[_Definition, ...]:
    """Read the files below ``sql/``, each after those that it needs."""
    files_of_all = (file for topic in TOPICS for file in _sql_files(topic))
    return _in_order({d.name: d for d in map(_read_definition, files_of_all)})


@cache
def _excerpt_definitions() -> dict[str, _Definition]:
    """Read the files that stand for others in an excerpt."""
    return {d.name: d for d in map(_read_definition, _sql_files(_EXCERPT))}


def _in_order(definitions: dict[str, _Definition]) -> tuple[_Definition, ...]:
    graph = {name: definition.needs for name, definition in definitions.items()}
    names = TopologicalSorter(graph).static_order()
    return tuple(definitions[name] for name in names if name in definitions)


def _comments(definition: _Definition) -> str:
    """Give the statements that say what a view and its columns mean."""
    _, comment, rest = definition.sql.partition(_COMMENT)
    return comment + rest


def _sql_files(topic: str) -> list[Traversable]:
    folder = files("roast_analyze").joinpath("sql", topic)
    entries = sorted(folder.iterdir(), key=lambda file: file.name)
    return [file for file in entries if file.name.endswith(".sql")]


def _read_definition(file: Traversable) -> _Definition:
    sql = file.read_text(encoding="utf-8")
    needs = sql.partition("\n")[0].removeprefix(_NEEDS)
    names = () if needs == "nothing" else tuple(needs.split(", "))
    return _Definition(Path(file.name).stem, sql, names)
