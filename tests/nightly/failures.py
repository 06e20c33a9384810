"""Failed attempts and lost workers."""

from nightly.chunks import chunk_attempts
from nightly.processes import Process, processes
from nightly.recording import Recording, Row
from nightly.tasks import attempts, task_runs

#: Failures by outcome of a task attempt.
WHAT = {"erred": "task erred", "retried": "attempt retried", "lost": "attempt lost"}

#: Failures by outcome of a chunk attempt without a failed task.
CHUNK = {"skipped": "chunk skipped", "retried": "attempt retried", "erred": "chunk erred"}


def failures(recording: Recording) -> list[Row]:
    """Return one row per failed or lost attempt, skipped chunk and lost worker."""
    runs = zip(attempts(recording), task_runs(recording), strict=True)
    rows = [
        *(_run(run, attempt.end, recording) for attempt, run in runs if run["outcome"] in WHAT),
        *(
            _chunk(row, recording)
            for row in chunk_attempts(recording)
            if _has_no_failed_task(row)
        ),
        *(_worker(process) for process in processes(recording) if process.is_lost),
    ]
    return [row | {"cause": cause(row["exception"])} for row in rows]


def cause(text: str | None) -> str | None:
    """Return the error that coffea quotes, or else the exception."""
    if text is None or "Failed processing file: " not in text:
        return text
    _, quoted, quote = text.partition("The error was: ")
    if not quoted:
        return text
    for ending in (")", '"', "'", "."):
        quote = quote.removesuffix(ending)
    return quote.replace(2 * "\\", "\\")


def _run(run: Row, end: dict, recording: Recording) -> Row:
    """Return the row of an attempt, with the cause if it was not its own error."""
    stimulus = end.get("stimulus_id") or ""
    reason = stimulus.rpartition("-")[0]
    kills = [
        f"its worker was {process.kill}"
        for process in processes(recording)
        if process.kill
        and (process.address, process.removed.get("stimulus_id")) == (run["worker"], stimulus)
    ]
    detail = None
    if run["outcome"] == "lost":
        detail = kills[0] if kills else f"its worker went away: {reason}"
    elif run["outcome"] == "erred" and not reason.startswith("task-erred"):
        detail = f"given up by Dask: {kills[0] if kills else reason}"
    names = ("key", "worker", "exception", "attempt", "prefix", "traceback")
    row = {name: run[name] for name in names}
    return row | {"t": run["end_t"], "what": WHAT[run["outcome"]], "detail": detail}


def _has_no_failed_task(row: Row) -> bool:
    """Return whether no task attempt shows the failure: suppressed, or without a task."""
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
    """Return the row of a lost worker, with what was lost."""
    said = process.said or {}
    gone = {
        "tasks assigned": "processing-tasks",
        "results to recompute": "lost-computed-tasks",
        "pieces of scattered data lost": "lost-scattered-tasks",
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
