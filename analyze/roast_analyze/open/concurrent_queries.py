"""Concurrent queries of a trace, if memory permits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

from roast_analyze.open.database import OUT_OF_MEMORY

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Longer runs are queried one by one: core time and critical path take memory beyond the limit
#: of DuckDB, about 150 bytes per transition.
_MOST_TRANSITIONS: Final = 20_000_000

_Result = TypeVar("_Result")

#: Calls a function with arguments in a second thread, as ``Executor.submit``.
Submit = Callable[..., Future[Any]]


def run_concurrently(trace: Session, run: Callable[[Submit], _Result]) -> _Result:
    """Return the result of a function that queries a trace in two threads.

    Parameters
    ----------
    trace : Session
    run : callable
        Takes the function that queries in the second thread. If that exceeds the memory limit,
        it is called again, and queries run one by one.
    """
    [(transitions,)] = trace.rows("SELECT count(*) FROM raw.transition")
    if transitions <= _MOST_TRANSITIONS:
        # Concurrent queries share the memory. Tables filled before an error are kept.
        with suppress(*OUT_OF_MEMORY):
            return _run(run, one_by_one=False)
    return _run(run, one_by_one=True)


def _run(run: Callable[[Submit], _Result], *, one_by_one: bool) -> _Result:
    with ThreadPoolExecutor(max_workers=1) as executor:

        def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
            # The context names the tables that are being filled.
            future = executor.submit(copy_context().run, function, *arguments)
            if one_by_one:
                wait([future])
            return future

        try:
            return run(submit)
        except BaseException:
            # An interrupt must not wait for queries that have not begun.
            executor.shutdown(wait=False, cancel_futures=True)
            raise
