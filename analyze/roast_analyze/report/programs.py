"""The programs of a scheduler that several clients used, by name instead of client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report.listing import Listing, list_query

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Maximum number of rows of the table.
ROWS: Final = 200

_QUERY: Final = (
    "SELECT coalesce(program, name, client) AS program, user_name, host, start_t, stop_t, "
    "tasks, task_runs, failures, compute_seconds, core_seconds FROM sessions WHERE tasks > 0"
)


def query(trace: Session) -> Listing | None:
    """Return the clients that submitted tasks; None if there is at most one."""
    # Most traces have one, which takes less time to find than the view.
    [(clients,)] = trace.rows("SELECT count(*) FROM _client_sessions WHERE client IS NOT NULL")
    return (
        list_query(trace, "sessions", _QUERY, "start_t, program", ROWS) if clients > 1 else None
    )
