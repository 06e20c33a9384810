"""What can go wrong between a trace and its reader.

The first line of every message names the value and says the way out; only that of a query
is followed by others, which show the place. The command line prints it as it is and exits
with 2::

    TraceError
    ├── TraceNotFound      nothing lies at the path
    ├── NotATrace          something lies there, but no trace that can be read
    ├── SchemaTooNew       recorded by a newer roast than this one
    ├── NoRoom             too little memory, or disk, for what is to be done
    ├── UnknownView        no view has the name
    ├── QueryError         a query is refused, by DuckDB or before it
    ├── BrokenView         a file of the user's own views makes none
    ├── NotWritable        an output cannot be written
    └── MissingExtra       a library of the [analyze] extra is not installed

A view of the user's own that nobody asked for is no error, but a warning: ViewLeftOut.
"""

# ruff: noqa: N818 - the names say what is wrong; all of them are errors

from __future__ import annotations

#: The command that installs, or upgrades, everything the analysis needs.
INSTALL_COMMAND = "pip install -U 'roast-trace[analyze]'"


class TraceError(Exception):
    """Anything that a caller did not ask for but has to hear."""


class TraceNotFound(TraceError):
    """Nothing lies at the path."""


class NotATrace(TraceError):
    """What lies at the path is no trace, or cannot be read."""


class SchemaTooNew(TraceError):
    """The trace was recorded with a newer major version of the schema."""


class NoRoom(TraceError):
    """There is too little memory, or too little room on a disk."""


class UnknownView(TraceError):
    """No view has the name."""


class QueryError(TraceError):
    """A query is refused, by DuckDB or before it."""


class BrokenView(TraceError):
    """A file of the user's own views makes none."""


class CacheNotUsed(UserWarning):
    """The tables of a trace could not be kept, or not be found: it was read without."""


class ViewLeftOut(UserWarning):
    """A file in the folder of the user's own views makes none, and is left out."""


class NotWritable(TraceError):
    """An output cannot be written."""


class MissingExtra(TraceError):
    """A library that the analysis needs is not installed."""


def one_line(error: Exception) -> str:
    """Put a message of DuckDB on one line: its hints, but no drawing of the place, no stack."""
    return " ".join(str(error).partition("\n\n")[0].split())
