"""The metadata map: counts of each cell, from lines and other views."""

import re
from importlib.resources import files

from nightly import graphs, io, setup, tasks, trace, transfers, workers
from nightly.recording import Recording, Row

STEPS = {
    1: "configure and launch",
    2: "create and submit",
    3: "populate the scheduler",
    4: "receive on the worker",
    5: "execute and profile",
}
_TEXT = r"(?:'((?:[^']|'')*)'|NULL)"
_CELL = re.compile(rf"^\s*\((\d), {_TEXT}, {_TEXT}, {_TEXT}, {_TEXT}, {_TEXT}\)", re.MULTILINE)


def metadata_map(recording: Recording) -> list[Row]:
    """Return one row per cell; the texts are those of the view."""
    path = files("roast_analyze").joinpath("sql", "setup", "metadata_map.sql")
    found = _counts(recording)
    rows = []
    for step, *texts in _CELL.findall(path.read_text(encoding="utf-8")):
        level, what, cell, view, how = (text.replace("''", "'") or None for text in texts)
        records = None if cell is None else found[cell]
        # Darshan's logs can be partial.
        traced = {"io segments": True, "io files": False}.get(cell)
        partial = sum(
            any(name.startswith("DXT_") is traced for name in job["partial_modules"])
            for job in io.io_jobs(recording)
        )
        incomplete = (
            f"Incomplete: Darshan reached its limit of records or memory (partial logs: "
            f"{partial}). DARSHAN_CONFIG_PATH names a file with higher limits "
            "(docs: how-to/darshan)."
        )
        rows.append(
            {
                "step": int(step),
                "step_name": STEPS[int(step)],
                "level": level,
                "metadata": what,
                "is_recorded": bool(records),
                "records": records,
                "view": view,
                "hint": how if not records else incomplete if partial else None,
            }
        )
    return rows


def _counts(recording: Recording) -> dict[str, int]:
    def lines(kind: str, **fields: object) -> list[dict]:
        return [
            line
            for line in recording.of(kind)
            if all(line.get(name) == value for name, value in fields.items())
        ]

    facts = trace.environment(recording)
    layers = graphs.graph_layers(recording)
    reported = recording.of("task")
    transitions = recording.of("transition")
    return {
        "jobs": len(setup.jobs(recording)),
        "cluster": sum(fact["section"] == "cluster" for fact in facts),
        "program": sum(fact["section"] == "client" for fact in facts),
        "plugins": sum(
            "plugins" in (fact["name"] or "")
            for fact in facts
            if fact["section"] not in ("cluster", "client")
        ),
        "configuration": len(setup.config(recording)),
        "machines": len(setup.machines(recording)),
        "packages": len(setup.packages(recording)),
        "clients": len(lines("client_added")),
        "code": sum(row["code"] is not None for row in graphs.computations(recording)),
        "layers sent": sum(layer["stage"] == "sent" for layer in layers),
        "layers": sum(layer["stage"] != "sent" for layer in layers),
        "graph updates": len(graphs.graph_updates(recording)),
        "tasks": len(reported),
        "annotations": sum(line.get("annotations") is not None for line in reported),
        "dependencies": sum(len(line.get("dependencies") or ()) for line in reported),
        "priorities": sum(line.get("priority") is not None for line in reported),
        "restrictions": len(graphs.restrictions(recording)),
        "groups": len(tasks.task_groups(recording)),
        "spans": len(lines("span")),
        "transitions": len(transitions),
        "queueing": len(lines("transition", finish="queued")),
        "threads": sum(line.get("thread") is not None for line in transitions),
        "attempts": len(lines("transition", finish="processing")),
        "events": len(lines("event")),
        "steals": len(lines("event", topic="stealing")),
        "wanted keys": len(lines("wanted_keys")),
        "workers": len(lines("worker_added")),
        "samples": len(lines("worker_sample")),
        "worker transitions": len(lines("worker_transition")),
        "transfers": len(transfers.transfers(recording)),
        "spills": len(lines("spill")),
        "pauses": len(workers.pauses(recording)),
        "fine metrics": len(lines("fine_metric")),
        "chunks": len(lines("chunk")),
        "sections": len(lines("section")),
        "profiles": sum(line.get("worker") is not None for line in lines("profile")),
        "scheduler's profile": len(lines("profile", worker=None)),
        "yappi": len(lines("function")),
        "code flags": sum(
            line["value"].get("code_flags") is not None for line in lines("function")
        ),
        "darshan": len(io.io_jobs(recording)),
        "io files": len(lines("io_file")),
        "io segments": len(lines("io_segment")),
    }
