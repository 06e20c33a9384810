"""The programs of a scheduler that several clients used, by name instead of client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.listing import Listing, list_query

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Maximum number of rows of the table, and of programs that a text names.
ROWS: Final = 200
NAMED: Final = 4

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


def describe(found: Listing) -> str:
    """Return the first programs with their users and amounts."""
    texts = []
    for row in found.rows.head(NAMED).to_dicts():
        user = f" of {row['user_name']}" if row["user_name"] else ""
        computed = q.seconds(row["compute_seconds"] or 0.0)
        tasks = q.counted(row["tasks"], "task")
        texts.append(f"{row['program']}{user}: {tasks}, {computed} computed")
    more = found.total - len(texts)
    return "; ".join(texts) + (f"; and {q.count(more)} more: the view sessions" if more else "")
