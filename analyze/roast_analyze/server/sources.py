"""Places of runs, which are opened in a process that reads traces."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from roast_analyze.errors import NotATrace

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Called with the name of a stage; see :class:`roast_analyze.Trace`.
Progress = Callable[[str], AbstractContextManager[Any]]


class Source(Protocol):
    """A run that can be opened. It is sent to other processes."""

    @property
    def key(self) -> str:
        """Return the identity of the run, apart from its content."""

    @property
    def runs(self) -> str:
        """Return a relation of the session with the columns of ``runs`` of a store."""

    def open(self, progress: Progress) -> Session:
        """Open the run."""


@dataclass(frozen=True)
class TraceSource:
    """A trace in a folder."""

    paths: tuple[Path, ...]
    memory_limit: str | None
    cache: bool

    @property
    def key(self) -> str:
        """Return the paths."""
        return repr([str(path) for path in self.paths])

    @property
    def runs(self) -> str:
        """Return the query of the view ``runs`` of a store."""
        from roast_analyze.store.layout import store_views

        return f"({store_views()[0].query})"

    def open(self, progress: Progress) -> Session:
        """Open the trace, unless one of its files has become a link since it was listed."""
        from roast_analyze.open.session import Session

        for path in self.paths:
            if path.resolve() != path or (
                path.is_dir() and any(file.is_symlink() for file in path.iterdir())
            ):
                raise NotATrace(f"{str(path)!r} contains a link: links are not followed")
        return Session(
            *self.paths,
            cache=self.cache,
            memory_limit=self.memory_limit,
            views=(),
            progress=progress,
        )


@dataclass(frozen=True)
class StoreSource:
    """A trace of a store."""

    store: str
    trace_id: str
    memory_limit: str | None
    cache: bool

    @property
    def key(self) -> str:
        """Return the store and the trace."""
        return repr([self.store, self.trace_id])

    @property
    def runs(self) -> str:
        """Return the table."""
        return "runs"

    def open(self, progress: Progress) -> Session:
        """Open the trace."""
        from roast_analyze.store.store import Store

        store = Store(self.store, memory_limit=self.memory_limit, cache=self.cache)
        with progress("reading"):
            return store.trace(self.trace_id)
