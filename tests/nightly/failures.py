"""What went wrong."""

from nightly.chunks import chunk_attempts
from nightly.processes import Process, processes
from nightly.recording import Recording, Row
from nightly.tasks import attempts, task_runs

#: What a failed attempt is called, by how it ended.
WHAT = {"erred": "task erred", "retried": "attempt retried", "lost": "attempt lost"}

#: The same of a chunk whose task tells nothing of it, or is not there.
CHUNK = {"skipped": "chunk skipped", "retried": "attempt retried", "erred": "chunk erred"}


def failures(recording: Recording) -> list[Row]:
    """One row per attempt that failed or was lost, chunk skipped, and worker lost."""
    runs = zip(attempts(recording), task_runs(recording), strict=True)
    return [
        *(_run(run, attempt.end) for attempt, run in runs if run["outcome"] in WHAT),
        *(_chunk(row, recording) for row in chunk_attempts(recording) if _is_told_by_none(row)),
        *(_worker(process) for process in processes(recording) if process.is_lost),
    ]


def _run(run: Row, end: dict) -> Row:
    """Tell of an attempt; what made it end is told if that was not its own error."""
    reason = (end.get("stimulus_id") or "").rpartition("-")[0]
    detail = None
    if run["outcome"] == "lost":
        detail = f"its worker went away: {reason}"
    elif run["outcome"] == "erred" and not reason.startswith("task-erred"):
        detail = f"Dask gave it up: {reason}"
    names = ("key", "worker", "exception", "attempt", "prefix", "traceback")
    row = {name: run[name] for name in names}
    return row | {"t": run["end_t"], "what": WHAT[run["outcome"]], "detail": detail}


def _is_told_by_none(row: Row) -> bool:
    """Tell whether no attempt at a task shows the failure: it was swallowed, or is unknown."""
    if row["outcome"] == "skipped":
        return True
    return not row["has_task"] and row["outcome"] in CHUNK


def _chunk(row: Row, recording: Recording) -> Row:
    prefixes = {run["key"]: run["prefix"] for run in task_runs(recording)}
    entries = f"entries {row['entry_start']} to {row['entry_stop']}"
    return {
        "t": row["end_t"],
        "what": CHUNK[row["outcome"]],
        "key": row["key"],
        "worker": row["worker"],
        "exception": row["exception"],
        "attempt": row["attempt"],
        "prefix": prefixes.get(row["key"]) if row["has_task"] else None,
        "traceback": None,
        "detail": ", ".join([row["dataset"], row["filename"], entries]),
    }


def _worker(process: Process) -> Row:
    """Tell of a lost worker, and of what went with it."""
    said = process.said or {}
    gone = {
        "tasks were there": "processing-tasks",
        "results to compute again": "lost-computed-tasks",
        "pieces of data lost for good": "lost-scattered-tasks",
    }
    counted = {words: len(said.get(name) or []) for words, name in gone.items()}
    lost = [f"{n} {words}" for words, n in counted.items() if n]
    nothing = dict.fromkeys(("key", "exception", "attempt", "prefix", "traceback"))
    return nothing | {
        "t": process.removed["t"],
        "what": "worker lost",
        "worker": process.address,
        "detail": ", ".join([process.reason, *lost]),
    }
