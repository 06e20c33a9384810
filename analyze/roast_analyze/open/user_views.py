"""Users' own views: the ``.sql`` files of a folder.

A file ``name.sql`` holds one query, which becomes the view ``name`` with the comment lines
above it as its meaning; or statements ``CREATE VIEW`` and ``COMMENT ON``, as ours do. Names
that begin with ``_`` are building blocks that are not listed. The views can use each other,
in any order. Nothing else can be done in a file, so that it is as safe as a query.
"""

from __future__ import annotations

import os
import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from roast_analyze.errors import BrokenView, ViewLeftOut
from roast_analyze.open.database import BESIDE
from roast_analyze.open.load import quoted
from roast_analyze.open.query_errors import explained, missing_table
from roast_analyze.open.session import BEFORE, is_query
from roast_analyze.open.views import describe_views

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Environment variable with folders, separated as in PATH; if it is empty there are none.
VARIABLE: Final = "ROAST_VIEWS"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VIEW: Final = r'("?)([A-Za-z_]\w*)\1(?![\w."])'
_CREATE: Final = re.compile(rf"{BEFORE}CREATE\s+VIEW\s+{_VIEW}", re.IGNORECASE | re.DOTALL)
_COMMENT: Final = re.compile(
    rf'{BEFORE}COMMENT\s+ON\s+(?:VIEW\s+{_VIEW}|COLUMN\s+("?)([A-Za-z_]\w*)\3\s*\.)',
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class _File:
    """A file of views; it knows its text, and by which name others mean it."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return self.path.stem

    def broken(self, why: object) -> BrokenView:
        return BrokenView(f"{str(self.path)!r}: {why}")


def create(
    connection: duckdb.DuckDBPyConnection,
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
    *,
    safe: bool,
) -> tuple[str, ...]:
    """Create the views of some folders, and name those that are public.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where our views are, closed to the outside if it is to be safe.
    folders : path-like, sequence of path-like, or None
        If None, the user's own: those of the environment variable, or the one below the
        user's configuration. Of these, what is broken is left out with a warning.
    safe : bool
        Whether the database is closed to the outside.

    Raises
    ------
    BrokenView
        If a folder that was named, or a file in it, cannot be used.
    """
    if folders is None:
        places = _default_folders()
    elif isinstance(folders, str | os.PathLike):
        places = [Path(folders)]
    else:
        places = [Path(folder) for folder in folders]
    files, problems = _read(places)
    maker = _Maker(connection, safe=safe)
    if files:
        with _created_beside(connection):
            problems += maker.make(files)
    for problem in problems:
        if folders is not None:
            raise problem
        warnings.warn(f"left out: {problem}", ViewLeftOut, stacklevel=3)
    return tuple(sorted(name for name in maker.made if not name.startswith("_")))


def _default_folders() -> list[Path]:
    if (named := os.environ.get(VARIABLE)) is not None:
        return [Path(folder).expanduser() for folder in named.split(os.pathsep) if folder]
    configured = os.environ.get("XDG_CONFIG_HOME")
    try:
        base = Path(configured) if configured else Path.home() / ".config"
        folder = base / "roast" / "views"
        return [folder] if folder.is_dir() else []
    except (OSError, RuntimeError):  # not to be looked into, or nobody's home
        return []


def _read(folders: list[Path]) -> tuple[list[_File], list[BrokenView]]:
    """Read the files of folders; what cannot be read is a problem."""
    files: list[_File] = []
    problems: list[BrokenView] = []
    for folder in folders:
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix == ".sql")
        except OSError as error:
            why = f"no folder of views ({error.strerror})"
            problems.append(BrokenView(f"{str(folder)!r} is {why}; name one with .sql files"))
            continue
        for path in paths:
            try:
                files.append(_File(path, path.read_text(encoding="utf-8-sig")))
            except OSError as error:
                problems.append(BrokenView(f"{str(path)!r} cannot be read: {error.strerror}"))
            except UnicodeDecodeError:
                problems.append(BrokenView(f"{str(path)!r} is not UTF-8; save it as that"))
    return files, problems


@contextmanager
def _created_beside(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let what is created go into the database beside that of the trace.

    It comes first in the search path then, and lends the other one's tables: a name with a
    schema is looked for nowhere else.
    """
    [(path,)] = connection.execute("SELECT current_setting('search_path')").fetchall()
    # Of the trace, or of the excerpt that is looked at.
    [(first,)] = connection.execute("SELECT current_database()").fetchall()
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw'"
    ).fetchall()
    connection.execute(f"CREATE SCHEMA {BESIDE}.raw")
    for (table,) in tables:
        connection.execute(
            f"CREATE VIEW {BESIDE}.raw.{quoted(table)} AS "  # noqa: S608 - our own names
            f"SELECT rowid, * FROM {first}.raw.{quoted(table)}"
        )
    connection.execute(f"SET search_path = '{BESIDE},{first}'")
    try:
        yield
    finally:
        connection.execute(f"SET search_path = '{path}'")
        connection.execute(f"DROP SCHEMA {BESIDE}.raw CASCADE")


class _Maker:
    """Makes views of files, those first that others need.

    Attributes
    ----------
    made : dict
        The file that each view is from.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, safe: bool) -> None:
        self.made: dict[str, _File] = {}
        self._connection = connection
        self._safe = safe
        found = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' "
            "UNION SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
        ).fetchall()
        self._ours = {name.casefold() for (name,) in found}

    def make(self, files: list[_File]) -> list[BrokenView]:
        """Make what can be made, and tell what cannot, causes before what follows of them.

        Which file needs which is known only when DuckDB has bound it. So all are tried until
        a round makes none.
        """
        while files:
            problems: dict[_File, BrokenView] = {}
            for file in files:
                try:
                    self._make(file)
                except BrokenView as problem:
                    problems[file] = problem
            if len(problems) == len(files):
                names = {file.name for file in files}
                return sorted(problems.values(), key=lambda p: missing_table(str(p)) in names)
            files = list(problems)
        return []

    def _make(self, file: _File) -> None:
        """Make all views of a file, or none."""
        self._connection.begin()
        made: dict[str, _File] = {}
        try:
            for statement, name in self._statements(file):
                self._connection.execute(statement)
                if name:
                    made[name] = file
        except BaseException as error:
            self._connection.rollback()
            if not isinstance(error, duckdb.Error):
                raise
            views = describe_views(self._connection, tuple(self.made))
            raise file.broken(explained(error, file.text, views, safe=self._safe)) from None
        self._connection.commit()
        self.made.update(made)

    def _statements(self, file: _File) -> Iterator[tuple[str, str | None]]:
        """Give the statements to execute, each with the name of the view that it creates."""
        statements = self._connection.extract_statements(file.text)
        if not statements:
            raise file.broken("there is no query in it")
        if len(statements) == 1 and is_query(statements[0]):
            name = self._free_name(file.name, file)
            yield f"CREATE VIEW {quoted(name)} AS\n{file.text}", name
            yield f"COMMENT ON VIEW {quoted(name)} IS {_literal(_meaning(file))}", None
            return
        names: set[str] = set()
        for statement in statements:
            if created := _CREATE.match(statement.query):
                names.add(created[2].casefold())
                yield statement.query, self._free_name(created[2], file)
            elif not (
                (about := _COMMENT.match(statement.query))
                and (about[2] or about[4]).casefold() in names
            ):
                what = " ".join(statement.query.split())[:40]
                raise file.broken(
                    f"{what!r} is neither a query alone, nor CREATE VIEW name AS …, nor a "
                    "COMMENT ON what was created in this file; nothing else can stand in it"
                )
            else:
                yield statement.query, None

    def _free_name(self, name: str, file: _File) -> str:
        if not _NAME.fullmatch(name):
            raise file.broken(
                f"{name!r} is no name for a view; use letters, digits and _ in that of the file"
            )
        if name.casefold() in self._ours:
            raise file.broken(f"roast has a view {name!r} itself; give yours another name")
        others = {other.casefold(): file for other, file in self.made.items()}
        if (other := others.get(name.casefold())) and other is not file:
            raise file.broken(f"{str(other.path)!r} makes a view {name!r} too; rename one")
        return name


def _meaning(file: _File) -> str:
    """Put the comment lines at the beginning of a file together."""
    lines = (line.strip() for line in file.text.splitlines())
    comments = takewhile(lambda line: not line or line.startswith("--"), lines)
    return " ".join(filter(None, (line.lstrip("-").strip() for line in comments)))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
