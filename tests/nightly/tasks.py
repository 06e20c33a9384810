"""Tasks, their transitions and attempts."""

import math
from collections import defaultdict
from dataclasses import dataclass, field

from nightly.recording import Recording, Row, once
from nightly.totals import grouped, lasted, least, most

#: Prefixes of stimuli that remove a worker.
DEPARTURES = (
    "handle-worker-cleanup", "retire-worker", "remove-worker", "worker-", "close-",
    "check-worker-ttl",
)  # fmt: skip

PARTS = {
    "transfer_seconds": ("transfer",),
    "deserialize_seconds": ("deserialize",),
    "disk_seconds": ("disk-read", "disk-write"),
}


def transitions(recording: Recording) -> list[Row]:
    """Return the recorded transitions."""
    names = (
        "t", "key", "start", "finish", "stimulus_id", "worker", "run_id", "thread", "nbytes",
        "typename", "startstops", "cause", "exception", "traceback",
    )  # fmt: skip
    rows = []
    for seq, line in enumerate(recording.of("transition")):
        row = {name: line.get(name) for name in names} | {"seq": seq}
        if row["startstops"]:
            parts = ("action", "start", "stop", "source")
            row["startstops"] = [{n: part.get(n) for n in parts} for part in row["startstops"]]
        rows.append(row)
    return rows


@once
def tasks(recording: Recording) -> list[Row]:
    """Return one row per key, as first submitted."""
    rows = []
    for key, (first, *again) in _entries(recording).items():
        dependencies = first.get("dependencies")
        submitted = (first.get("value") or {}).get("submitted_span") or {}
        rows.append(
            {
                "key": key,
                "prefix": first.get("prefix"),
                "task_group": first.get("group"),
                "span_id": first.get("span_id"),
                "is_other_span": bool(submitted),
                "submitted_span_path": submitted.get("name"),
                "submitted_span_id": (submitted.get("ids") or [None])[-1],
                "dependencies": dependencies,
                "n_dependencies": None if dependencies is None else len(dependencies),
                "priority": first.get("priority"),
                "annotations": first.get("annotations"),
                "submitted_t": first["t"],
                "client": first.get("client"),
                "submissions": 1 + len(again),
                "role": roles(recording).get(key),
            }
        )
    return rows


def _entries(recording: Recording) -> dict[str, list[dict]]:
    """Return the task records by key."""
    return grouped(recording.of("task"), lambda line: line["key"])


@dataclass
class Attempt:
    """An attempt at a task, with its records.

    It begins with a transition to processing, or with the record of a task that was processing
    when recording began. It ends with the next transition of its key, if that leaves
    processing; if that is another begin, the end was not recorded.
    """

    key: str
    number: int
    begin: dict
    #: Latest transition to waiting.
    waiting_t: float | None
    end: dict | None = None
    #: The submission it belongs to: the latest one before, or else the first.
    task: dict | None = None
    #: Phases that its end reports, without those of earlier attempts.
    phases: list[dict] = field(default_factory=list)

    @property
    def was_there(self) -> bool:
        """Return whether the attempt began before the recording."""
        return self.begin["kind"] == "task"


def _earlier_attempts(recording: Recording) -> list[dict]:
    """Return the records of tasks whose dispatch precedes their recorded transitions."""
    moves = grouped(recording.of("transition"), lambda line: line["key"])
    earlier = []
    for line in recording.of("task"):
        if line.get("state") is None:
            continue
        steps = [
            move
            for move in moves.get(line["key"], [])
            if "processing" in (move["start"], move["finish"])
        ]
        before = [move for move in steps if move["t"] <= line["t"]]
        is_processing = line["state"] == "processing" and line.get("worker") is not None
        is_begun = any(
            move["finish"] == "processing" and move.get("run_id") == line.get("run_id")
            for move in steps
            if line.get("run_id") is not None
        ) or (bool(before) and before[-1]["finish"] == "processing")
        if is_processing and not is_begun:
            earlier.append(line)
        elif steps and steps[0]["finish"] != "processing":
            earlier.append({**line, "worker": None, "run_id": None})
    return earlier


@once
def attempts(recording: Recording) -> list[Attempt]:
    """Return the attempts at all keys, in the order of the trace."""
    found: dict[str, list[Attempt]] = defaultdict(list)
    is_open: dict[str, bool] = defaultdict(bool)
    waiting_t: dict[str, float] = {}
    order = []

    def begin(line: dict) -> None:
        key = line["key"]
        attempt = Attempt(key, len(found[key]) + 1, line, waiting_t.get(key))
        entries = _entries(recording).get(key, [])
        before = [entry for entry in entries[1:] if entry["t"] <= line["t"]]
        attempt.task = (before or entries[:1] or [None])[-1]
        found[key].append(attempt)
        order.append(attempt)
        is_open[key] = True

    for line in _earlier_attempts(recording):
        begin(line)
    reported: dict[tuple, list[tuple]] = defaultdict(list)
    for line in recording.of("transition"):
        key = line["key"]
        if line["start"] == "processing":
            phases = line.get("startstops") or []
            parts = [
                tuple(map(part.get, ("action", "start", "stop", "source"))) for part in phases
            ]
            if is_open[key]:
                # A worker that still has the key also reports phases of its earlier attempts.
                before = reported[key, line.get("worker")]
                own = [
                    phase
                    for phase, part in zip(phases, parts, strict=True)
                    if part not in before
                ]
                found[key][-1].end, found[key][-1].phases = line, own
                is_open[key] = False
            if parts:
                reported[key, line.get("worker")] = parts
        if line["finish"] == "waiting":
            waiting_t[key] = line["t"]
            is_open[key] = False
        if line["finish"] == "processing":
            begin(line)
    return order


@once
def task_runs(recording: Recording) -> list[Row]:
    """Return one row per attempt."""
    files = {line["key"]: line["filename"] for line in recording.of("chunk")}
    rows = []
    first_t = min(line["t"] for line in recording.lines)
    for attempt in attempts(recording):
        begin, end, task = attempt.begin, attempt.end or {}, attempt.task or {}
        outcome = _outcome(attempt, recording)
        queued = attempt.was_there or attempt.waiting_t is None
        start_t = end.get("start_t")
        rows.append(
            {
                "key": attempt.key,
                "prefix": task.get("prefix"),
                "attempt": attempt.number,
                "worker": _either("worker", end, begin),
                "stolen_from": begin.get("worker")
                if None not in (end.get("worker"), begin.get("worker"))
                and end["worker"] != begin["worker"]
                else None,
                "thread": end.get("thread"),
                "outcome": outcome,
                "processing_t": None if attempt.was_there else begin["t"],
                **_times(attempt.phases, first_t if attempt.was_there else -math.inf),
                # From the latest transition to waiting to the dispatch.
                "queued_seconds": None if queued else begin["t"] - attempt.waiting_t,
                "nbytes": end.get("nbytes"),
                "typename": end.get("typename"),
                "span_id": task.get("span_id"),
                "exception": end.get("exception"),
                "traceback": end.get("traceback"),
                "run_id": _either("run_id", end, begin),
                "end_t": end.get("t"),
                "role": roles(recording).get(attempt.key),
                "kept": outcome == "memory" and not _is_discarded(attempt, recording),
                "filename": files.get(attempt.key),
                # Unless the heartbeat was about an earlier attempt.
                "execute_start_t": None if (start_t or -1) < begin["t"] else start_t,
            }
        )
    return rows


def task_phases(recording: Recording) -> list[Row]:
    """Return one row per phase of an attempt."""
    about = ("key", "prefix", "attempt", "worker", "thread", "outcome")
    return [
        {name: run[name] for name in about}
        | {
            "action": part["action"],
            "start_t": part["start"],
            "stop_t": part["stop"],
            "seconds": lasted(part["start"], part["stop"]),
            "source": part.get("source"),
        }
        for attempt, run in zip(attempts(recording), task_runs(recording), strict=True)
        for part in attempt.phases
    ]


def _is_discarded(attempt: Attempt, recording: Recording) -> bool:
    """Return whether a result was recomputed before a kept result had used it."""
    later = [
        other
        for other in _attempts_by_key(recording)[attempt.key]
        if other.task is attempt.task and other.number > attempt.number
    ]
    if not any(_outcome(other, recording) == "memory" for other in later):
        return False
    # Attempts that began before the recording precede all transitions.
    places = {id(line): n for n, line in enumerate(recording.of("transition"))}
    here, until = places[id(attempt.end)], places.get(id(later[0].begin), -1)
    dependents = {
        line["key"]
        for line in recording.of("task")
        if attempt.key in (line.get("dependencies") or ())
    }
    return not any(
        _outcome(use, recording) == "memory"
        and here < places.get(id(use.begin), -1)
        and places[id(use.end)] < until
        and not _is_discarded(use, recording)
        for key in dependents
        for use in _attempts_by_key(recording)[key]
    )


@once
def _attempts_by_key(recording: Recording) -> dict[str, list[Attempt]]:
    return defaultdict(list, grouped(attempts(recording), lambda attempt: attempt.key))


def _either(name: str, end: dict, begin: dict) -> object:
    """Return the value of the end, or else of the begin: stealing has no transition."""
    return begin.get(name) if end.get(name) is None else end[name]


def _times(parts: list[dict], from_t: float) -> Row:
    """Sum up the phases of an attempt by action, computing from a time; None without phases."""
    computed = [part for part in parts if part["action"] == "compute"]

    def seconds(*actions: str) -> float | None:
        if not parts:
            return None
        wanted = [part for part in parts if part["action"] in actions]
        return sum(lasted(part["start"], part["stop"]) for part in wanted)

    return {
        "compute_start_t": least(part["start"] for part in computed),
        "compute_stop_t": most(part["stop"] for part in computed),
        "compute_seconds": sum(
            lasted(max(part["start"], from_t), max(part["stop"], from_t)) for part in computed
        )
        if parts
        else None,
        **{name: seconds(*actions) for name, actions in PARTS.items()},
    }


def _outcome(attempt: Attempt, recording: Recording) -> str:
    """Return the outcome: from the state after the attempt, or else from the stimulus."""
    end = attempt.end
    if end is None:
        return "unfinished"
    if end["finish"] in ("memory", "erred"):
        return end["finish"]
    stimulus = end.get("stimulus_id") or ""
    # After a failure, the client can release other tasks: those have neither of these.
    spoke = end.get("worker") is not None or end.get("exception") is not None
    if stimulus.startswith("task-erred") and spoke:
        return "retried"
    if stimulus.startswith("reschedule"):
        return "rescheduled"
    left = {
        (line.get("worker"), line.get("stimulus_id")) for line in recording.of("worker_removed")
    }
    worker = _either("worker", end, attempt.begin)
    if stimulus.startswith(DEPARTURES) or (worker, stimulus) in left:
        return "lost"
    return "cancelled"


@once
def roles(recording: Recording) -> dict[str, str]:
    """Return the roles of tasks in a coffea run, by key.

    Chunk records name chunks (with entries) and files whose entries are read. Merges are
    `reduce` tasks that depend on these. A broadcast is a dependency of chunks without
    dependencies.
    """
    needed = {line["key"]: line.get("dependencies") or [] for line in recording.of("task")}
    reduces = {line["key"] for line in recording.of("task") if line["prefix"] == "reduce"}
    chunks, questions = chunk_keys(recording), file_keys(recording)
    found = dict.fromkeys(_downstream(needed, questions) & reduces, "file metadata")
    found |= dict.fromkeys(_downstream(needed, chunks) & reduces, "merge")
    sources = {key for chunk in chunks for key in needed.get(chunk, ())}
    alone = {key for key in sources if key in needed and not needed[key]}
    found |= dict.fromkeys(alone, "processor broadcast")
    return found | dict.fromkeys(chunks, "chunk") | dict.fromkeys(questions, "file metadata")


def chunk_keys(recording: Recording) -> set[str]:
    """Return the keys of chunks: with entries, or unknown to the scheduler."""
    by_key = grouped(recording.of("chunk"), lambda line: line["key"])
    return {
        key
        for key, lines in by_key.items()
        if any(line.get("entry_start") is not None for line in lines)
        or all(line.get("run_id") is not None for line in lines)
    }


def file_keys(recording: Recording) -> set[str]:
    """Return the keys of tasks that read the number of entries of files."""
    return {line["key"] for line in recording.of("chunk")} - chunk_keys(recording)


def _downstream(needed: dict[str, list[str]], keys: set[str]) -> set[str]:
    """Return the keys of tasks that depend on these, directly or not."""
    reached: set[str] = set()
    while more := {
        key
        for key, inputs in needed.items()
        if key not in reached | keys and (keys | reached).intersection(inputs)
    }:
        reached |= more
    return reached


def task_states(recording: Recording) -> list[Row]:
    """Return the last state of each key."""
    changes = [(line["t"], 0, n, line) for n, line in enumerate(recording.of("task"))]
    changes += [(line["t"], 1, n, line) for n, line in enumerate(recording.of("transition"))]
    last = {line["key"]: line for *_, line in sorted(changes, key=lambda change: change[:3])}
    prefixes_of = {key: lines[0]["prefix"] for key, lines in _entries(recording).items()}
    return [
        {
            "key": key,
            "prefix": prefixes_of.get(key),
            "state": line["finish"]
            if line["kind"] == "transition"
            else line.get("state") or "released",
            "since_t": line["t"],
        }
        for key, line in last.items()
    ]


def _is_refusal(line: Row) -> bool:
    """Return whether a transition of a task without an attempt is an error of the scheduler."""
    return (
        line["finish"] == "erred"
        and line.get("exception") is not None
        and not line["exception"].startswith("KilledWorker")
        and line.get("traceback") is None
        and line.get("thread") is None
        and line.get("cause") in (None, line["key"])
    )


def unattempted(recording: Recording) -> list[Row]:
    """Return one row per key without an attempt, if attempts were recorded."""
    if not recording.of("transition"):
        return []
    tried = {attempt.key for attempt in attempts(recording)}
    moves = grouped(recording.of("transition"), lambda line: line["key"])
    rows = []
    for key, (first, *_) in _entries(recording).items():
        if key in tried:
            continue
        states = [line["finish"] for line in moves.get(key, [])]
        last = states[-1] if states else None
        if any(_is_refusal(line) for line in moves.get(key, [])):
            reason = "refused by the scheduler"
        elif "erred" in states:
            reason = "a dependency failed"
        elif last in ("waiting", "queued", "no-worker"):
            reason = "waiting at the end"
        elif "memory" in (last, first.get("state")):
            reason = "result known before"
        elif first.get("state") == "erred":
            reason = "failed before the recording"
        else:
            reason = "cancelled" if states else "not needed"
        last_state = last or first.get("state") or "released"
        about = {"key": key, "prefix": first["prefix"]}
        rows.append({**about, "reason": reason, "last_state": last_state})
    return rows


def wanted_keys(recording: Recording) -> list[Row]:
    """Return when each client wanted each key: until a release, or until Dask forgets it."""
    prefixes = {key: lines[0].get("prefix") for key, lines in _entries(recording).items()}
    moves = grouped(recording.of("transition"), lambda line: line["key"])
    changes = defaultdict(set)
    for line in recording.of("wanted_keys"):
        for change in line["changes"]:
            for key in change["keys"]:
                changes[line["client"], key].add((change["t"], change["action"]))
    rows = []
    for (client, key), of_key in changes.items():
        finishes = {"forgotten"}
        if client == "fire-and-forget":
            finishes |= {"memory", "erred"}
        ends = [line["t"] for line in moves.get(key, []) if line["finish"] in finishes]
        ordered = sorted(of_key)
        for n, (start_t, action) in enumerate(ordered):
            if action == "desires":
                later = [t for t, _ in ordered[n + 1 :][:1]] + [t for t in ends if t >= start_t]
                stop_t = min(later, default=None)
                rows.append(
                    {
                        "key": key,
                        "prefix": prefixes.get(key),
                        "client": client,
                        "start_t": start_t,
                        "stop_t": stop_t,
                        "seconds": None if stop_t is None else stop_t - start_t,
                    }
                )
    return rows
