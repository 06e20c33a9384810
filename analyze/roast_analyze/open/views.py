"""The views: SQL files and their descriptions.

The views are the files ``sql/<topic>/<name>.sql``. Each begins with a line
``-- Needs: a, b`` that lists the files that must be executed before it. Names that begin with
``_`` are building blocks for other files; the others are public, and their columns and
comments are an interface.

The files of ``sql/time_range`` replace the files of the same name for a time range of a run;
all other files are the same.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from roast_analyze.errors import UnknownView
from roast_schemas.documentation import docs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.resources.abc import Traversable

    import duckdb

#: Topics, in the order in which views are listed.
TOPICS = ("trace", "setup", "tasks", "workers", "coffea", "spans", "profiles", "io")

#: Topic of the user's own views, which are listed last.
USER_TOPIC = "yours"

#: Folder of the files for a time range, the prefix of those that replace a raw table, and the
#: file of the table of time ranges.
_TIME_RANGE = "time_range"
_RAW = "raw."
_TABLE = "_time_range"

#: Folder of the tables that are computed when they are needed, by Python or by their own query.
_COMPUTED = "computed"

#: Name of the database of a trace within a connection.
NAME: Final = "trace"

#: Name of a second database, in memory, for views of the user and for derived tables, because
#: the first one may be read-only.
VIEWS_NAME: Final = "memory"

#: Schemas of the derived tables: in the database of the trace they are empty, which declares
#: their columns; in the second database are views of those or of the filled ones.
DERIVED: Final = "derived"
FILLED: Final = f"{VIEWS_NAME}.{DERIVED}"

_NEEDS = "-- Needs: "
_RECORDS = re.compile(r"^-- Records: (\w+)$", re.MULTILINE)
_CREATE_TABLE = "CREATE TABLE"
_COMMENT = "COMMENT ON "
_COMMENTED = re.compile(
    r"""^COMMENT ON (?:VIEW|COLUMN) (\w+)(?:\."?(\w+)"?)? IS '((?:[^']|'')*)';$""", re.MULTILINE
)
_MACRO = re.compile(r"^CREATE MACRO (\w+)", re.MULTILINE)

#: Packages and modules on which the content of a database depends. They import no other module
#: of roast (`tests/analyze/open/test_definitions_digest.py`).
DETERMINING: Final = (
    ("roast_analyze", ("errors.py", "safe_text.py", "algorithms", "computed", "open", "sql")),
    ("roast_schemas", (".",)),
)
_LIBRARIES: Final = ("duckdb", "numpy", "polars", "pyarrow")


@dataclass(frozen=True)
class Column:
    """A column of a view; `type` is its DuckDB type."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True)
class View:
    """A public view; `comment` describes its rows."""

    name: str
    topic: str
    comment: str
    columns: tuple[Column, ...]

    @property
    def summary(self) -> str:
        """The first clause of the comment."""
        return re.split(r"[.:;](?=\s|$)", self.comment, maxsplit=1)[0]


class _Definition(NamedTuple):
    """A file below ``sql/``."""

    name: str
    sql: str
    needs: list[str]


def view_names() -> tuple[str, ...]:
    """Return the names of the public views, in the order in which they are listed."""
    return tuple(_topics())


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all views and building blocks on the tables of the schema ``raw``.

    The derived tables stay empty, and in their place are views of the tables that
    :mod:`roast_analyze.open.derived_tables` fills. Both databases change, so the connection
    must have no open transaction.
    """
    connection.execute(f"CREATE SCHEMA {DERIVED}; CREATE SCHEMA IF NOT EXISTS {FILLED}")
    tables = derived_tables()
    needed = set().union(*(definition.needs for definition in _definitions()))
    # Temporary tables are those of one connection.
    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path = '{NAME},{VIEWS_NAME}'")
        for name, sql, _ in _definitions():
            if name not in tables:
                cursor.execute(sql)
            else:
                is_query = f"{_CREATE_TABLE} {name} AS" in sql
                empty = f"{sql.rstrip().rstrip(';')} WITH NO DATA" if is_query else sql
                cursor.execute(create_in(DERIVED, empty))
                cursor.execute(view_of_table(FILLED, name, f"{NAME}.{DERIVED}"))
                cursor.execute(view_of_table("main", name, FILLED))
            if name in needed:
                _hide(cursor, name)


def _hide(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    """Create a temporary table with the name and the columns of a view, unless it is a macro.

    DuckDB plans the query of each new view together with those of all views that it reads. It
    finds temporary tables first, so that it plans each query once, in 60 % of the time.
    """
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = 'main' AND table_name = ?",
        [NAME, view],
    ).fetchall()
    if columns:
        declared = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
        connection.execute(f"CREATE TEMP TABLE {view} ({declared})")


def view_of_table(schema: str, name: str, source: str) -> str:
    """Return the statement for a view of the table or view with its name in another schema."""
    return f"CREATE OR REPLACE VIEW {schema}.{name} AS FROM {source}.{name}"


def create_in(schema: str, sql: str) -> str:
    """Return a statement that creates a table, changed to create it in a schema."""
    return sql.replace(f"{_CREATE_TABLE} ", f"{_CREATE_TABLE} {schema}.", 1)


@cache
def derived_tables() -> dict[str, str]:
    """Return the statements that create the derived tables, in the order of their needs."""
    return {d.name: d.sql for d in _definitions() if _CREATE_TABLE in d.sql}


@cache
def tables_by_records() -> dict[str, set[str]]:
    """Return the derived tables that have no rows without a kind of record, by the kind."""
    found: dict[str, set[str]] = {}
    for definition in _definitions():
        for kind in _RECORDS.findall(definition.sql):
            found.setdefault(kind, set()).add(definition.name)
    return found


@cache
def computed_tables() -> dict[str, str | None]:
    """Return the queries of the tables that are computed when they are needed.

    They read other computed tables, so they cannot be filled together with the derived tables
    of the topics. The query is None for a table that Python computes.
    """
    parts = {name: d.sql.partition(" AS\n") for name, d in _read_topic(_COMPUTED).items()}
    return {name: query or None for name, (_, _, query) in parts.items()}


def definitions() -> dict[str, str]:
    """Return the statement of each file below ``sql/``, by its name, without descriptions."""
    return {d.name: re.sub("--.*", "", d.sql.partition(_COMMENT)[0]) for d in _definitions()}


def comment_statements(view: str) -> str:
    """Return the statements that comment a view and its columns."""
    [sql] = [d.sql for d in _definitions() if d.name == view]
    _, comment, rest = sql.partition(_COMMENT)
    return comment + rest


def comments_in(sql: str) -> dict[str, dict[str, str]]:
    """Return the comments in the text of a file by view and column; ``""`` is the view."""
    comments: dict[str, dict[str, str]] = {}
    for view, column, text in _COMMENTED.findall(sql):
        comments.setdefault(view, {})[column] = text.replace("''", "'")
    return comments


@cache
def view_comments() -> dict[str, dict[str, str]]:
    """Return the comments of all files by view and column: faster than those of a database."""
    return {
        view: comments
        for definition in _definitions()
        for view, comments in comments_in(definition.sql).items()
    }


@cache
def needs() -> dict[str, set[str]]:
    """Return the names that each file below ``sql/``, and each macro in it, needs."""
    found = {name: {d.name} for d in _definitions() for name in _MACRO.findall(d.sql)}
    return found | {d.name: set(d.needs) for d in _definitions()}


def read_by_time_range() -> set[str]:
    """Return the names that the views of a time range read from the whole trace."""
    texts = (definition.sql for definition in _read_topic(_TIME_RANGE).values())
    return {name for sql in texts for name in re.findall(rf"\b{NAME}\.(\w+)", sql)}


def create_time_range_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all views and building blocks of a time range, and the tables without rows."""
    cut = _read_topic(_TIME_RANGE)
    connection.execute(cut[_TABLE].sql)
    connection.execute("CREATE SCHEMA raw")
    for (table,) in connection.execute(
        "SELECT table_name FROM duckdb_tables() "
        "WHERE database_name = ? AND schema_name = 'raw' ORDER BY ALL",
        [NAME],
    ).fetchall():
        # Views have no `rowid`, which is the order of the trace.
        whole = f'CREATE VIEW raw."{table}" AS SELECT rowid, * FROM trace.raw."{table}"'  # noqa: S608 - fixed names
        connection.execute(cut[_RAW + table].sql if _RAW + table in cut else whole)
    for name in computed_tables():
        connection.execute(view_of_table("main", name, FILLED))
    names = {d.name for d in _definitions()}
    for definition in _time_range_definitions():
        connection.execute(definition.sql)
        if definition.name in cut and definition.name in names:
            # A file of `time_range` has no comments: those of the view that it replaces apply.
            connection.execute(comment_statements(definition.name))


def time_range_tables() -> dict[str, str]:
    """Return the statements that create the tables of a time range, in order of their needs."""
    return {d.name: d.sql for d in _time_range_definitions() if _CREATE_TABLE in d.sql}


def _time_range_definitions() -> tuple[_Definition, ...]:
    cut = _read_topic(_TIME_RANGE)
    replaced = {n: d for n, d in cut.items() if not n.startswith(_RAW) and n != _TABLE}
    kept = {d.name: d for d in _definitions() if d.name not in computed_tables()}
    return _in_order(kept | replaced)


def describe_views(
    connection: duckdb.DuckDBPyConnection, user_views: Sequence[str] = ()
) -> list[View]:
    """Return the public views with their descriptions, the user's own views last."""
    topics = {**_topics(), **dict.fromkeys(user_views, USER_TOPIC)}
    comments = dict(
        connection.execute(
            "SELECT view_name, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    )
    columns: dict[str, list[Column]] = {name: [] for name in comments}
    for view, *column in connection.execute(
        # The database of a time range has the same views as the whole trace next to it.
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


def check_view_name(view: str, user_views: Sequence[str] = ()) -> None:
    """Raise UnknownView if neither a public view nor one of the user has this name."""
    names = (*view_names(), *user_views)
    if view not in names:
        hint = f"{suggest(view, names)} {docs('reference/views')}"
        raise UnknownView(f"unknown view {view!r}; {hint}")


def suggest(name: str, names: Sequence[str]) -> str:
    """Return a hint that names the best match for a wrong name, or else all valid names."""
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"choose from {', '.join(names)}"


def nearest(name: str, names: Sequence[str], cutoff: float = 0.5) -> str | None:
    """Return the best match for a wrong name, or None if none is similar."""
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=cutoff)), None)


@cache
def _topics() -> dict[str, str]:
    """Return the topic of each public view."""
    return {n: topic for topic in TOPICS for n in _read_topic(topic) if not n.startswith("_")}


@cache
def definitions_digest() -> str:
    """Return a digest of everything except the trace that determines its database."""
    digest = hashlib.sha256(repr([(name, version(name)) for name in _LIBRARIES]).encode())
    for package, names in DETERMINING:
        for name in names:
            for path, file in _sources(files(package).joinpath(name), f"{package}/{name}"):
                text = file.read_bytes()
                digest.update(f"{path}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def _sources(file: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    """Yield the files with code in a file or folder, with their paths in a fixed order."""
    if path.endswith((".py", ".sql", ".toml")):
        yield path, file
    elif file.is_dir():
        for within in sorted(file.iterdir(), key=lambda it: it.name):
            yield from _sources(within, f"{path}/{within.name}")


@cache
def _definitions() -> tuple[_Definition, ...]:
    """Read the files below ``sql/``, each after those that it needs."""
    folders = (*TOPICS, _COMPUTED)
    return _in_order({name: d for folder in folders for name, d in _read_topic(folder).items()})


def _in_order(definitions: dict[str, _Definition]) -> tuple[_Definition, ...]:
    names = TopologicalSorter({name: d.needs for name, d in definitions.items()}).static_order()
    return tuple(definitions[name] for name in names if name in definitions)


@cache
def _read_topic(topic: str) -> dict[str, _Definition]:
    """Read the files of a folder, in the order of their names."""
    folder = files("roast_analyze").joinpath("sql", topic)
    found = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            name, sql = file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")
            needs = sql.partition("\n")[0].removeprefix(_NEEDS)
            found[name] = _Definition(
                name, sql, [] if needs == "nothing" else needs.split(", ")
            )
    return found
