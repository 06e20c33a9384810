"""Concurrent queries of a trace, if memory permits."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from roast_analyze.open.database import OUT_OF_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from roast_analyze.open.session import Session

#: Longer runs are queried one by one: core time and critical path take memory beyond the limit
#: of DuckDB, about 150 bytes per transition.
_MOST_TRANSITIONS: Final = 20_000_000

_Result = TypeVar("_Result")


def run_concurrently(trace: Session, run: Callable[[bool], _Result]) -> _Result:
    """Return the result of a function that queries a trace in several threads.

    Parameters
    ----------
    trace : Session
    run : callable
        Runs one query after the other if its argument is true. It is called with false first,
        and again with true if that exceeds the memory limit.
    """
    [(transitions,)] = trace.rows("SELECT count(*) FROM raw.transition")
    if transitions <= _MOST_TRANSITIONS:
        # Concurrent queries share the memory. Tables filled before an error are kept.
        with suppress(*OUT_OF_MEMORY):
            return run(False)
    return run(True)
