"""Unusual and damaged recordings, derived from a sample.

Each function changes the lines of a sample. The trailer is corrected afterwards, as a recorder
would have written it.
"""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from nightly.recording import Recording
from sealing import sealed

Lines = list[dict]

#: Names of fields that are instants.
INSTANTS = ("t", "start", "stop", "start_t", "stop_t", "last_seen")


def records_delayed(lines: Lines) -> Lines:
    """Delay each record by up to a second."""
    late = random.Random(6)
    header, *body, trailer = lines
    return [header, *sorted(body, key=lambda line: line["t"] + late.random()), trailer]


def clock_set_back(lines: Lines) -> Lines:
    """Set the scheduler's clock back by an hour in the middle."""
    half = len(lines) // 2
    return lines[:half] + [_shifted(line, -3600.0) for line in lines[half:]]


def worker_clocks_set_back(lines: Lines) -> Lines:
    """Set the worker's clock back during every third measurement."""
    lines = copy.deepcopy(lines)
    for n, line in enumerate(lines):
        for measured in (line, *line.get("startstops", [])) if n % 3 == 0 else ():
            for end in {"stop", "stop_t"} & measured.keys():
                measured[end] -= 100.0
    return lines


def everything_submitted_twice(lines: Lines) -> Lines:
    """Submit and compute everything twice, the second time in another span."""
    later = []
    for line in lines:
        if line["kind"] in ("task", "transition", "chunk", "section"):
            again = _shifted(line, 100.0)
            if "run_id" in again:
                again["run_id"] += 10_000
            if line["kind"] == "task":
                again |= {"span_id": "again", "prefix": "again"}
            later.append(again)
    return [*lines[:-1], *later, lines[-1]]


def recording_begins_in_the_middle(lines: Lines) -> Lines:
    """Begin the recording in the middle, with the state of tasks at that time."""
    half = len(lines) // 2
    begin_t = lines[half]["t"]
    at, last = {}, {}
    for line in lines[:half]:
        if line["kind"] == "transition":
            at[line["key"]] = line["finish"]
            if line["finish"] == "processing":
                last[line["key"]] = {name: line[name] for name in ("worker", "run_id")}
    there = []
    for line in lines[:half]:
        if line["kind"] in ("header", "worker_added", "span", "environment"):
            there.append(line)
        if line["kind"] in ("task", "chunk") and "run_id" not in line:
            there.append(line | {"t": begin_t})
        if line["kind"] == "task" and (state := at.get(line["key"])):
            there[-1] |= {"state": state}
            there[-1] |= last[line["key"]] if state == "processing" else {}
    return there + lines[half:]


def without_cluster(lines: Lines) -> Lines:
    """Compute the chunks without a scheduler."""
    return [
        line
        for line in lines
        if line["kind"] in ("header", "environment", "worker_added", "section", "trailer")
        or (line["kind"] == "chunk" and "run_id" in line)
    ]


def repeated_attempts_without_cluster(lines: Lines) -> Lines:
    """Attempt each chunk three times without a cluster, with two failures."""
    body = without_cluster(lines)
    failed = [
        _shifted(line, -10.0 * n)
        | {"run_id": line["run_id"] - 1000 * n, "exception": "OSError()"}
        for line in body
        for n in (2, 1)
        if line["kind"] == "chunk"
    ]
    return [body[0], *failed, *body[1:]]


def unmeasured(lines: Lines) -> Lines:
    """Remove all measurements of workers."""
    return [
        line
        for line in lines
        if line["kind"] not in ("section", "profile", "fine_metric", "worker_sample")
        and not (line["kind"] == "chunk" and "run_id" in line)
    ]


def skipped_or_from_checkpoint(lines: Lines) -> Lines:
    """Of every five chunks, skip one (skipbadfiles) and read one from a checkpoint."""
    lines = copy.deepcopy(lines)
    measured = [line for line in lines if line["kind"] == "chunk" and "run_id" in line]
    for n, line in enumerate(measured):
        if n % 5 == 0:
            line["exception"] = "OSError('truncated')"
        if n % 5 == 1:
            line["measured"] = {"until": "processed", "from_checkpoint": True}
    return lines


def measurements_repeated(lines: Lines) -> Lines:
    """Repeat the measurements with more bytes."""
    again = copy.deepcopy([ln for ln in lines if ln["kind"] == "chunk" and "run_id" in ln])
    for line in again:
        line["measured"]["bytes_read"] += 1
    return [*lines[:-1], *again, lines[-1]]


def no_innermost_functions(lines: Lines) -> Lines:
    """Remove the innermost functions of profiles."""
    lines = copy.deepcopy(lines)
    for line in lines:
        for part in line.get("tree", {}).get("slices", []):
            part["innermost"] = None
    return lines


def tasks_stolen(lines: Lines) -> Lines:
    """Move many tasks to another worker than the one they were sent to."""
    workers = sorted({line["worker"] for line in lines if line["kind"] == "worker_added"})
    lines = copy.deepcopy(lines)
    sent = [line for line in lines if line.get("finish") == "processing"]
    for n, line in enumerate(sent):
        line["worker"] = workers[n % len(workers)]
    return lines


def without_tasks(lines: Lines) -> Lines:
    """Remove the task records."""
    return [line for line in lines if line["kind"] != "task"]


def without_workers(lines: Lines) -> Lines:
    """Remove the records of workers."""
    return [line for line in lines if line["kind"] not in ("worker_added", "worker_removed")]


def address_reused(lines: Lines) -> Lines:
    """Replace the address of the last worker by that of the first one."""
    workers = [line["worker"] for line in lines if line["kind"] == "worker_added"]
    return json.loads(json.dumps(lines).replace(workers[-1], workers[0]))


def transfers_and_nested_spans(lines: Lines) -> Lines:
    """Add transfers, nested spans and metadata of datasets."""
    lines = copy.deepcopy(lines)
    first = next(line["span_id"] for line in lines if line["kind"] == "span")
    moved = []
    for line in lines:
        if line["kind"] == "span" and line["span_id"] != first:
            line |= {"parent_id": first, "span_name": ["default", "inner"]}
        if line["kind"] == "chunk" and "run_id" not in line:
            line["usermeta"] = {"xsec": 1.5, "name": line["dataset"]}
        moved += [
            {
                "kind": "transfer",
                "t": line["t"],
                "start_t": part["start"],
                "stop_t": part["stop"],
                "source": part["source"],
                "destination": line["worker"],
                "nbytes": 2**40,
                "keys": {line["key"]: 2**40},
            }
            for part in line.get("startstops", [])
            if part["action"] == "transfer"
        ]
    return [*lines[:-1], *moved, lines[-1]]


def phases_reported_again(lines: Lines) -> Lines:
    """Repeat the phases of earlier attempts, as a worker does that still has the key."""
    reported: dict[tuple, list[dict]] = {}
    changed = []
    for line in lines:
        if line["kind"] == "transition" and line.get("startstops"):
            place = line["key"], line.get("worker")
            phases = [*reported.get(place, []), *line["startstops"]]
            line = line | {"startstops": phases}  # noqa: PLW2901
            reported[place] = phases
        changed.append(line)
    return changed


def reports_of_workers(lines: Lines) -> Lines:
    """Add reports of workers: transitions, transfers, pauses, spilling.

    Some are missing, some disagree, some tasks are stolen, and one clock is off.
    """
    sent: dict[str, float] = {}
    reported = []
    for n, line in enumerate(lines):
        if line["kind"] != "transition":
            continue
        if line["finish"] == "processing":
            sent[line["key"]] = line["t"]
        if line["start"] == "processing" and line.get("startstops") and line["key"] in sent:
            reported += _worker_transitions(n, line, sent[line["key"]])
            reported += _transfer_reports(n, line)
    there = next(line["worker"] for line in lines if line["kind"] == "worker_added")
    status = {"kind": "event", "topic": there, "worker": there}
    payload = {"action": "worker-status-change", "prev-status": "running"}
    half = lines[len(lines) // 2]["t"]
    pauses = [
        status | {"t": half + after, "payload": payload | {"status": name}}
        for after, name in ((0.0, "paused"), (0.25, "running"), (0.5, "paused"))
    ]
    spilled = {"kind": "spill", "t": half, "worker": there, "key": "a", "nbytes": 2**40}
    spilled |= {"start": "memory", "finish": "disk", "measured": {"disk_bytes": 2**39}}
    restored = {"kind": "spill", "t": half, "worker": there, "key": "a"}
    restored |= {"start": "disk", "finish": "memory"}
    return [*lines[:-1], *reported, *pauses, spilled, restored, lines[-1]]


def _worker_transitions(n: int, line: dict, sent_t: float) -> Lines:
    """Return the worker transitions of an attempt: some are stolen, some never wait."""
    begin_t = min(part["start"] for part in line["startstops"])
    arrived_t = sent_t + (-0.01 if n % 11 == 0 else 0.0001)
    written_t = sent_t + (0.00005 if n % 7 == 0 else -0.00001)
    stimulus_id = f"compute-task-{written_t!r}"
    steps = [("released", "waiting", arrived_t, stimulus_id)]
    if n % 5:
        ready = "constrained" if n % 4 == 0 else "ready"
        steps.append(("waiting", ready, arrived_t + 0.00002, stimulus_id))
        steps.append((ready, "executing", begin_t - 0.00001, "task-finished-1.5"))
    steps.append(("executing", "memory", line["t"], line["stimulus_id"]))
    return [
        {
            "kind": "worker_transition",
            "t": t,
            "worker": line.get("worker"),
            "server_id": "w",
            "key": line["key"],
            "start": start,
            "finish": finish,
            "stimulus_id": stimulus,
            **({"state": "resumed"} if n % 13 == 0 else {}),
        }
        for start, finish, t, stimulus in steps
    ]


def _transfer_reports(n: int, line: dict) -> Lines:
    """Return the reports of both ends of the transfers; every third has only one."""
    reported = []
    for part in line["startstops"]:
        if part["action"] != "transfer":
            continue
        ends = {"source": part["source"], "destination": line["worker"]}
        for again in (0.0, 3600.0):
            word = {
                "kind": "transfer",
                "t": part["stop"],
                "start_t": part["start"] + again,
                "stop_t": part["stop"] + again,
                "nbytes": 2**40,
                "keys": {line["key"]: 2**40, "b": 0},
                **ends,
            }
            other = copy.deepcopy(word) | {"worker": ends["source"]}
            other |= {"measured": {"sent_bytes": 2**39}, "start_t": word["start_t"] + 0.125}
            if n % 4 == 0:
                other |= {"nbytes": 2**41, "keys": {"b": 0, line["key"]: 2**41}}
            both = [word | {"worker": ends["destination"]}, other]
            reported += both[: 1 + (n % 3 > 0)]
    if reported:
        gathered = reported[-1] | {"worker": reported[-1]["source"]}
        reported.append({name: gathered[name] for name in gathered if name != "destination"})
    return reported


def records_dropped(lines: Lines) -> Lines:
    """Drop samples and events because the disk was full."""
    half = len(lines) // 2
    loss = {"kind": "loss", "t": lines[half]["t"], "reason": "no space left", "records": 5}
    loss |= {"record_kind": "worker_sample", "detail": "in one batch"}
    trailer = lines[-1] | {"dropped_by_kind": {"worker_sample": 5, "event": 3}}
    return [*lines[:half], loss, *lines[half:-1], trailer]


def chunks_of_many_sizes(lines: Lines) -> Lines:
    """Make chunks of seven sizes with one outlier, without opening times.

    The time increases with the size except for QCD; the fixed time is determined for TTbar
    only.
    """

    def seconds(n: int, line: dict, events: int) -> float:
        fixed = 0.05 if line["dataset"] == "TTbar" else 0.03 * (n % 5)
        event = 0.0 if line["dataset"] == "QCD" else 2e-6
        return fixed + event * events + (3.0 if n == 20 else 0.002 * (n % 3))

    return _with_durations(lines, seconds, lambda n: 5000 * (1 + n % 7), opening_is_known=False)


def slow_file_and_worker(lines: Lines) -> Lines:
    """Slow down one file by a factor of three and one worker by a factor of two."""
    slow = max(line["worker"] for line in lines if line["kind"] == "worker_added")

    def seconds(n: int, line: dict, events: int) -> float:
        by_file = 3.0 if line["filename"].endswith("QCD_0.root") else 1.0
        by_worker = 2.0 if line["worker"] == slow else 1.0
        return (0.02 + 1e-5 * events) * by_file * by_worker * (1 + 0.001 * (n % 5))

    return _with_durations(
        lines, seconds, lambda n: 10_000 + 2_000 * (n % 6), opening_is_known=True
    )


def _with_durations(
    lines: Lines,
    seconds: Callable[[int, dict, int], float],
    events: Callable[[int], int],
    *,
    opening_is_known: bool,
) -> Lines:
    """Change the size of measured chunks and the time of their tasks."""
    lines = copy.deepcopy(lines)
    keys = sorted({ln["key"] for ln in lines if ln["kind"] == "chunk" and "run_id" in ln})
    measured = {
        (line["key"], line["run_id"]): line
        for line in lines
        if line["kind"] == "chunk" and "run_id" in line
    }
    for line in measured.values():
        line["measured"]["events"] = events(keys.index(line["key"]))
        if not opening_is_known:
            del line["measured"]["open_seconds"]
    for line in lines:
        if chunk := line.get("startstops") and measured.get((line["key"], line["run_id"])):
            n = keys.index(line["key"])
            for part in line["startstops"]:
                if part["action"] == "compute":
                    took = seconds(n, chunk, events(n))
                    part["stop"] = part["start"] + took
    return lines


#: Changes that the trailer accounts for.
UNUSUAL: tuple[Callable[[Lines], Lines], ...] = (
    records_delayed, clock_set_back, worker_clocks_set_back, everything_submitted_twice,
    recording_begins_in_the_middle, without_cluster, repeated_attempts_without_cluster,
    unmeasured, skipped_or_from_checkpoint, measurements_repeated, no_innermost_functions,
    tasks_stolen, without_tasks, without_workers, address_reused, transfers_and_nested_spans,
    phases_reported_again, reports_of_workers, records_dropped, chunks_of_many_sizes,
    slow_file_and_worker,
)  # fmt: skip


def without_header(lines: Lines) -> Lines:
    """Remove the header."""
    return lines[1:]


def recording_killed(lines: Lines) -> Lines:
    """Remove the last third, as after a kill."""
    return lines[: 2 * len(lines) // 3]


def lines_missing(lines: Lines) -> Lines:
    """Remove every seventh line."""
    header, *body, trailer = lines
    return [header, *(line for n, line in enumerate(body) if n % 7), trailer]


def lines_repeated(lines: Lines) -> Lines:
    """Repeat a hundred lines."""
    return [*lines[:200], *lines[100:]]


#: Damage that the trailer does not account for.
DAMAGED = (without_header, recording_killed, lines_missing, lines_repeated)


def make_odd(oddity: Callable[[Lines], Lines], lines: Lines) -> Lines:
    """Apply a change, and correct the trailer unless it is damage."""
    made = oddity(lines)
    return made if oddity in DAMAGED else with_counts(made)


def reduced(path: Path) -> Lines:
    """Return the lines of a sample with few profiles."""
    lines = Recording.read(path).lines
    profiles = [id(line) for line in lines if line["kind"] == "profile"]
    return with_counts([line for line in lines if id(line) not in profiles[2:]])


def write_odd_traces(folder: Path, lines: Lines) -> dict[str, Path]:
    """Write a trace for each change, sealed again unless it is damaged."""
    paths = {}
    for oddity in (*UNUSUAL, *DAMAGED):
        name = oddity.__name__
        made = make_odd(oddity, lines)
        text = "".join(
            json.dumps(line | {"trace_id": name} if line["kind"] == "header" else line) + "\n"
            for line in made
        ).encode()
        paths[name] = folder / f"{name}.jsonl"
        paths[name].write_bytes(text if oddity in DAMAGED else sealed(text))
    return paths


def with_counts(lines: Lines) -> Lines:
    """Correct the counts of the trailer and remove its checksum."""
    *body, trailer = lines
    without_checksum = {name: value for name, value in trailer.items() if name != "crc32"}
    kinds = Counter(line["kind"] for line in body)
    return [*body, without_checksum | {"records_by_kind": kinds}]


def _shifted(record: dict, seconds: float) -> dict:
    """Shift all instants of a record."""

    def moved(name: str, value: object) -> object:
        if name in INSTANTS and isinstance(value, float):
            return value + seconds
        if isinstance(value, dict):
            return {name: moved(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [moved("", inner) for inner in value]
        return value

    return {name: moved(name, value) for name, value in record.items()}
