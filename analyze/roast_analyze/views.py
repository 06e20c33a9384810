"""The named views: SQL files, and what is in them.

The views are the files ``sql/<topic>/<name>.sql``. Each begins with a line
``-- Needs: a, b`` that names the files that must come before it. Names that begin with
``_`` are building blocks that only other files use; the others are public, and their
columns and comments are an interface.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from roast_analyze.errors import UnknownView

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import duckdb

#: Topics, in the order in which views are listed.
TOPICS = ("trace", "tasks", "workers", "coffea", "spans", "profiles")

_NEEDS = "-- Needs: "


@dataclass(frozen=True)
class Column:
    """A column of a view: its name, its DuckDB type and what it means."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True)
class View:
    """A public view: its name, what a row of it is, and its columns in order."""

    name: str
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
    """Name the public views, in the order in which they are listed."""
    return tuple(Path(file.name).stem for file in _sql_files() if not file.name.startswith("_"))


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views, building blocks included, over the tables of the schema ``raw``."""
    for statements in view_statements():
        connection.execute(statements)


def view_statements() -> tuple[str, ...]:
    """Give the text of every file below ``sql/``, each after those that it needs."""
    return tuple(definition.sql for definition in _definitions())


def describe_views(connection: duckdb.DuckDBPyConnection) -> list[View]:
    """List the public views with what they mean, as the database tells it."""
    comments = dict(
        connection.execute(
            "SELECT view_name, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    )
    columns: dict[str, list[Column]] = {name: [] for name in comments}
    for view, *column in connection.execute(
        "SELECT table_name, column_name, data_type, coalesce(comment, '') "
        "FROM duckdb_columns() WHERE list_contains($views, table_name) "
        "AND schema_name = 'main' ORDER BY table_name, column_index",
        {"views": list(comments)},
    ).fetchall():
        columns[view].append(Column(*column))
    return [View(name, comments[name], tuple(columns[name])) for name in view_names()]


def known_view(view: str) -> str:
    """Give the name of a public view back.

    Raises
    ------
    UnknownView
        If no view has the name.
    """
    if view in view_names():
        return view
    near = difflib.get_close_matches(view, view_names(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(view_names())}"
    raise UnknownView(f"no view is named {view!r}; {hint}")


@cache
def _definitions() -> tuple[_Definition, ...]:
    """Read the files below ``sql/``, each after those that it needs."""
    definitions = {d.name: d for d in map(_read_definition, _sql_files())}
    graph = {name: definition.needs for name, definition in definitions.items()}
    return tuple(definitions[name] for name in TopologicalSorter(graph).static_order())


def _sql_files() -> list[Traversable]:
    folder = files("roast_analyze").joinpath("sql")
    return [
        file
        for topic in TOPICS
        for file in sorted(folder.joinpath(topic).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    ]


def _read_definition(file: Traversable) -> _Definition:
    sql = file.read_text(encoding="utf-8")
    needs = sql.partition("\n")[0].removeprefix(_NEEDS)
    names = () if needs == "nothing" else tuple(needs.split(", "))
    return _Definition(Path(file.name).stem, sql, names)
