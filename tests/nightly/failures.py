"""Failed attempts and lost workers."""

import math
import re

from nightly.chunks import chunk_attempts
from nightly.processes import Process, processes
from nightly.recording import Recording, Row, once
from nightly.tasks import attempts, task_runs

#: Failures by outcome of a task attempt.
WHAT = {"erred": "task erred", "retried": "attempt retried", "lost": "attempt lost"}

#: Failures by outcome of a chunk attempt without a failed task.
CHUNK = {"skipped": "chunk skipped", "retried": "attempt retried", "erred": "chunk erred"}


@once
def failures(recording: Recording) -> list[Row]:
    """Return one row per failed or lost attempt, skipped chunk and lost worker."""
    rows = []
    gone = {
        (process.address, process.removed.get("stimulus_id")): f"its worker was {process.kill}"
        for process in processes(recording)
        if process.kill
    }
    prefixes = {}
    for attempt, run in zip(attempts(recording), task_runs(recording), strict=True):
        prefixes[run["key"]] = run["prefix"]
        if run["outcome"] not in WHAT:
            continue
        stimulus = attempt.end.get("stimulus_id") or ""
        reason = stimulus.rpartition("-")[0]
        kill = gone.get((run["worker"], stimulus))
        detail = None
        if run["outcome"] == "lost":
            detail = kill or f"its worker went away: {reason}"
        elif run["outcome"] == "erred" and not reason.startswith("task-erred"):
            detail = f"given up by Dask: {kill or reason}"
        names = ("key", "worker", "exception", "attempt", "prefix", "traceback")
        row = {name: run[name] for name in names} | {"t": run["end_t"], "detail": detail}
        rows.append(row | {"what": WHAT[run["outcome"]]})
    for chunk in chunk_attempts(recording):
        # No task attempt shows the failure: it was suppressed, or there is no task.
        is_alone = not chunk["has_task"] and chunk["outcome"] in CHUNK
        if chunk["outcome"] == "skipped" or is_alone:
            entries = f"entries {chunk['entry_start']} to {chunk['entry_stop']}"
            names = ("key", "worker", "exception", "attempt")
            rows.append(
                {name: chunk[name] for name in names}
                | {
                    "t": chunk["end_t"],
                    "what": CHUNK[chunk["outcome"]],
                    "prefix": prefixes.get(chunk["key"]) if chunk["has_task"] else None,
                    "traceback": None,
                    "detail": ", ".join([chunk["dataset"], chunk["filename"], entries]),
                }
            )
    last_t = max((math.inf if run["end_t"] is None else run["end_t"]
                  for run in task_runs(recording)), default=math.inf)  # fmt: skip
    rows += [
        _lost_worker(process)
        for process in processes(recording)
        if process.is_lost and not _was_needless(process, last_t)
    ]
    return [
        row | {"cause": text, "exception_type": exception_type(text)}
        for row in rows
        for text in [cause(row["exception"])]
    ]


def cause(text: str | None) -> str | None:
    """Return the error that coffea quotes, or else the exception."""
    beginnings = ("Failed processing file: ", "Failed creating nanoevents: ")
    if text is None or not any(beginning in text for beginning in beginnings):
        return text
    _, quoted, quote = text.partition("The error was: ")
    if not quoted:
        return text
    for ending in (")", '"', "'", "."):
        quote = quote.removesuffix(ending)
    return re.sub(r"\\([\\'])", r"\1", quote)


def exception_type(text: str | None) -> str | None:
    """Return the type that an exception's text begins with, and the module of an ``error``."""
    name, _, message = (text or "").strip().partition("(")
    if name == "error":
        for module, beginnings in (("zlib", "Error "), ("struct", ("pack", "unpack"))):
            if message[1:].startswith(beginnings):
                return f"{module}.error"
    return re.split(r"[^\w.]", name)[0].rstrip(".") or None


def _was_needless(process: Process, last_t: float) -> bool:
    """Return whether a worker left after the last task, and nothing was lost with it."""
    said = process.said or {}
    lost = [
        said.get(f"{name}-tasks") for name in ("processing", "lost-computed", "lost-scattered")
    ]
    return (
        all(keys == [] for keys in lost) and not process.kill and process.removed["t"] > last_t
    )


def _lost_worker(process: Process) -> Row:
    """Return the row of a lost worker, with what was lost."""
    said = process.said or {}
    lost = []
    for name, one, several in (
        ("processing-tasks", "task assigned", "tasks assigned"),
        ("lost-computed-tasks", "result to recompute", "results to recompute"),
        (
            "lost-scattered-tasks",
            "piece of scattered data lost",
            "pieces of scattered data lost",
        ),
    ):
        if n := len(said.get(name) or []):
            lost.append(f"{n} {one if n == 1 else several}")
    nothing = dict.fromkeys(("key", "exception", "attempt", "prefix", "traceback"))
    return nothing | {
        "t": process.removed["t"],
        "what": "worker lost",
        "worker": process.address,
        "detail": ", ".join([process.reason, *lost]),
    }
