"""The user's own views: the ``.sql`` files of a folder.

A file ``name.sql`` contains either one query, which becomes the view ``name`` with the comment
lines above it as its description, or ``CREATE VIEW`` and ``COMMENT ON`` statements. Views whose
names begin with ``_`` are building blocks that are not listed. The views can use each other in
any order. A file cannot contain anything else, which makes it as safe as a query.
"""

from __future__ import annotations

import os
import re
import warnings
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import duckdb

from roast_analyze.errors import BrokenView, ViewSkipped
from roast_analyze.open.queries import (
    BEFORE,
    effect_of,
    explain_error,
    inner_effect,
    missing_table,
)
from roast_analyze.open.tables import literal, quoted
from roast_analyze.open.views import VIEWS_NAME, describe_views

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Environment variable with folders, separated as in PATH; no folder if it is empty.
VARIABLE: Final = "ROAST_VIEWS"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VIEW: Final = r'("?)([A-Za-z_]\w*)\1(?![\w."])'
_CREATE: Final = re.compile(rf"{BEFORE}CREATE\s+VIEW\s+{_VIEW}", re.IGNORECASE | re.DOTALL)
_COMMENT: Final = re.compile(
    rf'{BEFORE}COMMENT\s+ON\s+(?:VIEW\s+{_VIEW}|COLUMN\s+("?)([A-Za-z_]\w*)\3\s*\.)',
    re.IGNORECASE | re.DOTALL,
)


class _File(NamedTuple):
    path: Path
    text: str

    def broken(self, reason: object) -> BrokenView:
        return BrokenView(f"{str(self.path)!r}: {reason}")


def create(
    connection: duckdb.DuckDBPyConnection,
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
    *,
    safe: bool,
) -> tuple[str, ...]:
    """Create the views of some folders and return their names.

    The default folders are those of :data:`VARIABLE`, or ``roast/views`` in the user's
    configuration folder; broken files in them are skipped with a warning. In a folder that was
    passed they raise BrokenView. The database is already restricted if `safe`.
    """
    paths: list[Path] = []
    if folders is not None:
        named = [folders] if isinstance(folders, str | os.PathLike) else folders
        paths = [Path(folder) for folder in named]
    elif (value := os.environ.get(VARIABLE)) is not None:
        paths = [Path(folder).expanduser() for folder in value.split(os.pathsep) if folder]
    else:
        configured = os.environ.get("XDG_CONFIG_HOME")
        with suppress(OSError, RuntimeError):  # an unreadable folder, or a user without a home
            base = Path(configured) if configured else Path.home() / ".config"
            folder = base / "roast" / "views"
            paths = [folder] if folder.is_dir() else []
    files, problems = _read(paths)
    created: Iterable[str] = ()
    if files:
        creator = _Creator(connection, safe=safe)
        with _created_separately(connection):
            problems += creator.create(files)
        created = creator.created
    for problem in problems:
        if folders is not None:
            raise problem
        warnings.warn(f"skipped: {problem}", ViewSkipped, stacklevel=3)
    return tuple(sorted(created))


def _read(folders: list[Path]) -> tuple[list[_File], list[BrokenView]]:
    """Read the files of folders; return them and the errors of unreadable ones."""
    files: list[_File] = []
    problems: list[BrokenView] = []
    for folder in folders:
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix == ".sql")
        except OSError as error:
            problems.append(
                BrokenView(
                    f"cannot read the folder of views {str(folder)!r} ({error.strerror}): "
                    "name a folder of .sql files"
                )
            )
            continue
        for path in paths:
            try:
                # Some editors begin a UTF-8 file with a byte order mark.
                files.append(_File(path, path.read_text(encoding="utf-8-sig")))
            except OSError as error:
                problems.append(BrokenView(f"cannot read {str(path)!r}: {error.strerror}"))
            except UnicodeDecodeError:
                problems.append(BrokenView(f"{str(path)!r} is not UTF-8: save it as UTF-8"))
    return files, problems


@contextmanager
def _created_separately(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Create what the block creates in a database next to that of the trace.

    The database of a trace may be read-only. The other database comes first in the search path
    and has views of the raw tables, because DuckDB looks up a name with a schema only there.
    """
    [(path,)] = connection.execute("SELECT current_setting('search_path')").fetchall()
    # The database of the trace, or that of a time range.
    [(first,)] = connection.execute("SELECT current_database()").fetchall()
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw'"
    ).fetchall()
    connection.execute(f"CREATE SCHEMA {VIEWS_NAME}.raw")
    for (table,) in tables:
        connection.execute(
            f"CREATE VIEW {VIEWS_NAME}.raw.{quoted(table)} AS "  # noqa: S608 - fixed names
            f"SELECT rowid, * FROM {first}.raw.{quoted(table)}"
        )
    connection.execute(f"SET search_path = '{VIEWS_NAME},{first}'")
    try:
        yield
    finally:
        connection.execute(f"SET search_path = '{path}'")
        connection.execute(f"DROP SCHEMA {VIEWS_NAME}.raw CASCADE")


class _Creator:
    """Creates the views of files, in the order of their dependencies."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, safe: bool) -> None:
        self.created: dict[str, _File] = {}  # file of each view
        self._connection = connection
        self._safe = safe
        found = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' "
            "UNION SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
        ).fetchall()
        self._reserved = {name.casefold() for (name,) in found}

    def create(self, files: list[_File]) -> list[BrokenView]:
        """Create the views of all valid files; return the errors of others, causes first.

        Dependencies are known only once DuckDB has bound a query, so all files are tried
        until a round creates nothing.
        """
        while files:
            problems: dict[_File, BrokenView] = {}
            for file in files:
                try:
                    self._create_file(file)
                except BrokenView as problem:
                    problems[file] = problem
            if len(problems) == len(files):
                names = {file.path.stem for file in files}
                # A missing view of another broken file is a consequence, not a cause.
                return sorted(problems.values(), key=lambda p: missing_table(str(p)) in names)
            files = list(problems)
        return []

    def _create_file(self, file: _File) -> None:
        """Create all views of a file, or none."""
        # DuckDB's transactions include CREATE VIEW, so a broken file leaves none of its views.
        self._connection.begin()
        created: dict[str, _File] = {}
        try:
            for statement, name in self._statements(file):
                self._connection.execute(statement)
                if name:
                    created[name] = file
        except BaseException as error:
            self._connection.rollback()
            if not isinstance(error, duckdb.Error):
                raise
            views = describe_views(self._connection, tuple(self.created))
            reason = explain_error(error, file.text, views, safe=self._safe)
            raise file.broken(reason) from None
        self._connection.commit()
        self.created.update(created)

    def _statements(self, file: _File) -> Iterator[tuple[str, str | None]]:
        """Yield the statements to execute, each with the name of the view that it creates."""
        statements = self._connection.extract_statements(file.text)
        if not statements:
            raise file.broken("the file contains no query")
        if len(statements) == 1 and effect_of(statements[0]) is None:
            name = self._checked_name(file.path.stem, file)
            lines = (line.strip() for line in file.text.splitlines())
            header = takewhile(lambda line: not line or line.startswith("--"), lines)
            comment = " ".join(filter(None, (line.lstrip("-").strip() for line in header)))
            # On a separate line, because a query can begin with a comment.
            yield f"CREATE VIEW {quoted(name)} AS\n{file.text}", name
            yield f"COMMENT ON VIEW {quoted(name)} IS {literal(comment)}", None
            return
        names: set[str] = set()
        for statement in statements:
            if (created := _CREATE.match(statement.query)) and not inner_effect(
                statement.query
            ):
                names.add(created[2].casefold())
                yield statement.query, self._checked_name(created[2], file)
            elif (target := _COMMENT.match(statement.query)) and (
                target[2] or target[4]
            ).casefold() in names:
                yield statement.query, None
            else:
                start = " ".join(statement.query.split())[:40]
                raise file.broken(
                    f"{start!r} is not allowed: use one query, or CREATE VIEW name AS … and "
                    "COMMENT ON the views created in this file"
                )

    def _checked_name(self, name: str, file: _File) -> str:
        if not _NAME.fullmatch(name):
            raise file.broken(f"invalid view name {name!r}: use letters, digits and _")
        if name.casefold() in self._reserved:
            raise file.broken(f"{name!r} is a view of roast: choose another name")
        others = {other.casefold(): file for other, file in self.created.items()}
        if (other := others.get(name.casefold())) and other is not file:
            raise file.broken(f"{str(other.path)!r} also creates {name!r}: rename one of them")
        return name
