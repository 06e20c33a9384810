"""Odd recordings, made of a sample: what a recorder may meet, or damage may leave.

Each function takes the lines of a sample and gives others. The trailer is put right at the
end, so that it counts what the recorder would have written.
"""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable

Lines = list[dict]

#: Fields that are instants, wherever they are.
INSTANTS = ("t", "start", "stop", "start_t", "stop_t", "last_seen")


def shuffled(lines: Lines) -> Lines:
    """Every record came up to a second late."""
    late = random.Random(6)
    header, *body, trailer = lines
    return [header, *sorted(body, key=lambda line: line["t"] + late.random()), trailer]


def clock_went_back(lines: Lines) -> Lines:
    """In the middle of it the scheduler's clock was put back by an hour."""
    half = len(lines) // 2
    return lines[:half] + [_moved(line, -3600.0) for line in lines[half:]]


def clocks_went_back_in_tasks(lines: Lines) -> Lines:
    """Every third time that a worker measured, its clock was put back meanwhile."""
    lines = copy.deepcopy(lines)
    for n, line in enumerate(lines):
        for measured in (line, *line.get("startstops", [])) if n % 3 == 0 else ():
            for end in {"stop", "stop_t"} & measured.keys():
                measured[end] -= 100.0
    return lines


def submitted_again(lines: Lines) -> Lines:
    """All of it was computed twice, by the same workers, in another span."""
    later = []
    for line in lines:
        if line["kind"] in ("task", "transition", "chunk", "section"):
            again = _moved(line, 100.0)
            if "run_id" in again:
                again["run_id"] += 10_000
            if line["kind"] == "task":
                again |= {"span_id": "again", "prefix": "again"}
            later.append(again)
    return [*lines[:-1], *later, lines[-1]]


def begun_in_the_middle(lines: Lines) -> Lines:
    """Recording began when half of it was done: what was there is told as it was then."""
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
    """The chunks were computed by an executor of coffea that has no scheduler."""
    return [
        line
        for line in lines
        if line["kind"] in ("header", "environment", "section", "trailer")
        or (line["kind"] == "chunk" and "run_id" in line)
    ]


def attempts_followed_one_another(lines: Lines) -> Lines:
    """Without a cluster, each chunk was tried three times, and two failed."""
    body = without_cluster(lines)
    failed = [
        _moved(line, -10.0 * n)
        | {"run_id": line["run_id"] - 1000 * n, "exception": "OSError()"}
        for line in body
        for n in (2, 1)
        if line["kind"] == "chunk"
    ]
    return [body[0], *failed, *body[1:]]


def unmeasured(lines: Lines) -> Lines:
    """Nothing was measured on the workers."""
    return [
        line
        for line in lines
        if line["kind"] not in ("section", "profile", "fine_metric", "worker_sample")
        and not (line["kind"] == "chunk" and "run_id" in line)
    ]


def swallowed_or_saved(lines: Lines) -> Lines:
    """Of five chunks one was skipped (skipbadfiles) and one came from a checkpoint."""
    lines = copy.deepcopy(lines)
    measured = [line for line in lines if line["kind"] == "chunk" and "run_id" in line]
    for n, line in enumerate(measured):
        if n % 5 == 0:
            line["exception"] = "OSError('truncated')"
        if n % 5 == 1:
            line["measured"] = {"until": "processed", "from_checkpoint": True}
    return lines


def told_twice(lines: Lines) -> Lines:
    """Workers told what they had measured twice, and the second time it was more."""
    again = copy.deepcopy([ln for ln in lines if ln["kind"] == "chunk" and "run_id" in ln])
    for line in again:
        line["measured"]["bytes_read"] += 1
    return [*lines[:-1], *again, lines[-1]]


def not_noted_where_samples_ended(lines: Lines) -> Lines:
    """The profiles are those of a recorder that cannot see the innermost function."""
    lines = copy.deepcopy(lines)
    for line in lines:
        for part in line.get("tree", {}).get("slices", []):
            part["innermost"] = None
    return lines


def stolen(lines: Lines) -> Lines:
    """Many tasks ran on another worker than the one that they were sent to."""
    workers = sorted({line["worker"] for line in lines if line["kind"] == "worker_added"})
    lines = copy.deepcopy(lines)
    sent = [line for line in lines if line.get("finish") == "processing"]
    for n, line in enumerate(sent):
        line["worker"] = workers[n % len(workers)]
    return lines


def without_tasks(lines: Lines) -> Lines:
    """No task was recorded as it entered the graph."""
    return [line for line in lines if line["kind"] != "task"]


def without_workers(lines: Lines) -> Lines:
    """No worker was recorded as it came or went."""
    return [line for line in lines if line["kind"] not in ("worker_added", "worker_removed")]


def address_used_again(lines: Lines) -> Lines:
    """The worker that came last has the address of the first one."""
    workers = [line["worker"] for line in lines if line["kind"] == "worker_added"]
    return json.loads(json.dumps(lines).replace(workers[-1], workers[0]))


def everything_recorded(lines: Lines) -> Lines:
    """Transfers were asked for, spans lie in each other, and datasets have metadata."""
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


def told_by_workers(lines: Lines) -> Lines:
    """Workers told what they did: who had sent what, and how tasks came to be computed.

    Some words are missing, some ends disagree, some tasks were stolen, and one clock is off.
    """
    sent: dict[str, float] = {}
    told = []
    for n, line in enumerate(lines):
        if line["kind"] != "transition":
            continue
        if line["finish"] == "processing":
            sent[line["key"]] = line["t"]
        if line["start"] == "processing" and line.get("startstops") and line["key"] in sent:
            told += _on_its_worker(n, line, sent[line["key"]])
            told += _moved_for_it(n, line)
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
    return [*lines[:-1], *told, *pauses, spilled, restored, lines[-1]]


def _on_its_worker(n: int, line: dict, sent_t: float) -> Lines:
    """Make what a worker told of an attempt: every 7th was stolen, every 5th never waited."""
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


def _moved_for_it(n: int, line: dict) -> Lines:
    """Make the words of both ends of its transfers; every 3rd comes from one of them only."""
    told = []
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
            told += both[: 1 + (n % 3 > 0)]
    if told:
        gathered = told[-1] | {"worker": told[-1]["source"]}
        told.append({name: gathered[name] for name in gathered if name != "destination"})
    return told


def some_was_dropped(lines: Lines) -> Lines:
    """The disk was full for a while: the recorder says so of samples, the trailer of events."""
    half = len(lines) // 2
    loss = {"kind": "loss", "t": lines[half]["t"], "reason": "no space left", "records": 5}
    loss |= {"record_kind": "worker_sample", "detail": "in one batch"}
    trailer = lines[-1] | {"dropped_by_kind": {"worker_sample": 5, "event": 3}}
    return [*lines[:half], loss, *lines[half:-1], trailer]


def of_many_sizes(lines: Lines) -> Lines:
    """Chunks are of seven sizes; their time grows with it but for QCD, and one is far off.

    The fixed time is sure of TTbar only, and opening was not measured.
    """

    def seconds(n: int, line: dict, events: int) -> float:
        fixed = 0.05 if line["dataset"] == "TTbar" else 0.03 * (n % 5)
        event = 0.0 if line["dataset"] == "QCD" else 2e-6
        return fixed + event * events + (3.0 if n == 20 else 0.002 * (n % 3))

    return _computed(lines, seconds, lambda n: 5000 * (1 + n % 7), opening_is_known=False)


def slow_in_part(lines: Lines) -> Lines:
    """One file is read three times as slowly as others, and one worker is half as fast."""
    slow = max(line["worker"] for line in lines if line["kind"] == "worker_added")

    def seconds(n: int, line: dict, events: int) -> float:
        by_file = 3.0 if line["filename"].endswith("QCD_0.root") else 1.0
        by_worker = 2.0 if line["worker"] == slow else 1.0
        return (0.02 + 1e-5 * events) * by_file * by_worker * (1 + 0.001 * (n % 5))

    return _computed(lines, seconds, lambda n: 10_000 + 2_000 * (n % 6), opening_is_known=True)


def _computed(
    lines: Lines,
    seconds: Callable[[int, dict, int], float],
    events: Callable[[int], int],
    *,
    opening_is_known: bool,
) -> Lines:
    """Give chunks that were measured another size, and their tasks another time."""
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


#: What the recorder may meet: its trailer counts it.
MET: tuple[Callable[[Lines], Lines], ...] = (
    shuffled, clock_went_back, clocks_went_back_in_tasks, submitted_again,
    begun_in_the_middle, without_cluster,
    attempts_followed_one_another, unmeasured, swallowed_or_saved, told_twice,
    not_noted_where_samples_ended, stolen, without_tasks, without_workers, address_used_again,
    everything_recorded, told_by_workers, some_was_dropped, of_many_sizes, slow_in_part,
)  # fmt: skip


def without_header(lines: Lines) -> Lines:
    """The first line is gone."""
    return lines[1:]


def cut(lines: Lines) -> Lines:
    """The recording was killed: nothing came after two thirds of it."""
    return lines[: 2 * len(lines) // 3]


def lines_lost(lines: Lines) -> Lines:
    """Every seventh line is gone."""
    header, *body, trailer = lines
    return [header, *(line for n, line in enumerate(body) if n % 7), trailer]


def joined(lines: Lines) -> Lines:
    """A hundred lines are there twice."""
    return [*lines[:200], *lines[100:]]


#: What damage leaves: the trailer knows better.
DAMAGED = (without_header, cut, lines_lost, joined)


def odd(oddity: Callable[[Lines], Lines], lines: Lines) -> Lines:
    """Make a recording odd; put its trailer right if the recorder would have."""
    made = oddity(lines)
    return made if oddity in DAMAGED else counted(made)


def counted(lines: Lines) -> Lines:
    """Let the trailer, which comes last, count what is there, and tell no checksum."""
    *body, trailer = lines
    without_checksum = {name: value for name, value in trailer.items() if name != "crc32"}
    kinds = Counter(line["kind"] for line in body)
    return [*body, without_checksum | {"records_by_kind": kinds}]


def _moved(record: dict, seconds: float) -> dict:
    """Move a record, and all that it says of times."""

    def moved(name: str, value: object) -> object:
        if name in INSTANTS and isinstance(value, float):
            return value + seconds
        if isinstance(value, dict):
            return {name: moved(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [moved("", inner) for inner in value]
        return value

    return {name: moved(name, value) for name, value in record.items()}
