"""Exceptions and warnings of the analysis.

The first line of every message names the value that is wrong and what to do; only the message
of a query has further lines, which quote the query. The command line prints the message of a
:class:`TraceError` and exits with 2, or with 1 if the trace is fine but has nothing to export.
"""

# ruff: noqa: N818 - the base class is named Error; the subclasses name the condition

from __future__ import annotations

#: Command that installs or upgrades everything that the analysis needs; no release exists yet.
INSTALL_COMMAND = "pip install -U '.[analyze]' in a clone of roast"


class TraceError(Exception):
    """Base class of all errors that the user can fix.

    Messages name what the user typed, and no URL in them has a user, a password or a query.
    """

    def __init__(self, *arguments: object) -> None:
        # Imported here, because a command that succeeds does not need it.
        from roast_schemas.urls import safe_message

        super().__init__(*(safe_message(a) if isinstance(a, str) else a for a in arguments))


class TraceNotFound(TraceError):
    """The path does not exist."""


class NotATrace(TraceError):
    """The path is not a trace, or cannot be read."""


class SchemaTooNew(TraceError):
    """The trace was recorded with a newer major version of the schema."""


class NoRoom(TraceError):
    """There is not enough memory or disk space."""


class NothingToExport(TraceError):
    """The selected part of the trace is empty. The command line exits with 1."""


class UnknownView(TraceError):
    """No view has this name."""


class QueryError(TraceError):
    """A query was refused, before it ran or by DuckDB."""


class NotAllowed(QueryError):
    """A query tried to do more than read the trace, which the user of a shell can allow.

    Attributes
    ----------
    reason : str
        The message without how to allow it.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"{reason}; use --unsafe, or Trace(…, unsafe=True) in Python, to allow it"
        )


class BrokenView(TraceError):
    """A file of the user's own views is invalid."""


class BrokenKinds(TraceError):
    """The user's file of kinds of work is invalid."""


class NotWritable(TraceError):
    """An output cannot be written."""


class MissingExtra(TraceError):
    """A library that the analysis needs is not installed."""


class NotAStore(TraceError):
    """The path is not a store of runs, or cannot be read."""


class UnknownTrace(TraceError):
    """The store does not have a trace with this identity."""


class NoCluster(TraceError):
    """The Dask cluster cannot be reached."""


class CacheNotUsed(UserWarning):
    """A trace was read without the cache, because the cache could not be used."""


class ViewSkipped(UserWarning):
    """A broken file in the default folder of views was skipped."""


def first_paragraph(error: Exception) -> str:
    """Return the first paragraph of an error as one line: no quoted query, no stack."""
    return " ".join(str(error).partition("\n\n")[0].split())
