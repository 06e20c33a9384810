"""Critical path and slack: every attempt, and everything that it waited for."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from nightly.chunks import chunk_attempts
from nightly.processes import extent, presence, process_of, processes
from nightly.recording import Recording, Row, once
from nightly.tasks import Attempt, attempts, task_runs
from nightly.workers import pauses

#: Outcomes after which a task is attempted again, and the cause for each bad outcome.
FAILURES = ("retried", "rescheduled", "lost")
CAUSES = dict.fromkeys(("erred", "retried", "rescheduled"), "retry") | {"lost": "recompute"}

#: Kinds of waits; if two end at the same time, the later one in this order counts.
SUBMISSION, RESULT, LOSS, FAILURE = range(4)


@dataclass(eq=False)
class Node:
    """An attempt at a task, or at a chunk without one, with limited instants."""

    row: Row
    number: int
    process: int | None
    submission: dict | None
    phases: list[dict]
    processing_t: float
    begin_t: float
    stop_t: float
    end_t: float
    waiting_t: float | None = None
    attempt: Attempt | None = None
    is_running: bool = False
    is_recomputed: bool = False
    #: (t, kind, node or None)
    waits: list[tuple] = field(default_factory=list)
    #: The previous attempt on the thread, when it stopped, and whether that was waited for.
    thread: "Node | None" = None
    free_t: float = -math.inf
    ready_t: float = -math.inf
    is_held: bool = False
    slack: float = math.inf

    @property
    def place(self) -> tuple[float, int]:
        return self.begin_t, self.number

    @property
    def latest(self) -> tuple:
        return max(
            self.waits,
            key=lambda wait: (*wait[:2], wait[2].number if wait[2] else -1),
            default=(-math.inf, None, None),
        )


@once
def nodes(recording: Recording) -> list[Node]:
    """Return all attempts with what they waited for."""
    found = [*_tasks(recording), *_chunks(recording)]
    _add_waits(found, recording)
    _add_threads(found)
    return found


def _node(recording: Recording, row: Row, number: int, **facts) -> Node:
    start_t, stop_t = extent(recording)
    known = row["processing_t"] is not None
    sent = row["processing_t"] if known else -math.inf
    end_t = max(stop_t if row["end_t"] is None else row["end_t"], sent)
    begin_t = row["compute_start_t"]
    if begin_t is None:
        begin_t = sent if known else start_t
    begin_t = min(max(begin_t, sent), end_t)
    stop_t = end_t if row["compute_stop_t"] is None else row["compute_stop_t"]
    stop_t = min(max(stop_t, begin_t), end_t)
    return Node(
        row=row, number=number, processing_t=sent, begin_t=begin_t, stop_t=stop_t, end_t=end_t,
        **facts,
    )  # fmt: skip


def _tasks(recording: Recording) -> list[Node]:
    found = []
    lines = recording.of("transition")
    last = {line["key"]: n for n, line in enumerate(lines)}
    places = {id(line): n for n, line in enumerate(lines)}
    for attempt, run in zip(attempts(recording), task_runs(recording), strict=True):
        place = places.get(id(attempt.begin), -1)
        found.append(
            _node(
                recording,
                run,
                len(found),
                attempt=attempt,
                process=process_of(recording, run["worker"], run["processing_t"]),
                submission=attempt.task,
                phases=[part for part in attempt.phases if part["start"] < part["stop"]],
                waiting_t=attempt.waiting_t,
                is_running=attempt.end is None and last.get(run["key"], -1) <= place,
            )
        )
    return found


def _chunks(recording: Recording) -> list[Node]:
    found = []
    for chunk in chunk_attempts(recording):
        if not chunk["has_task"] and chunk["begin_t"] is not None:
            times = {"compute_start_t": chunk["start_t"], "compute_stop_t": chunk["stop_t"]}
            row = chunk | times | {"processing_t": None, "prefix": None}
            part = {"action": "compute", "start": chunk["start_t"], "stop": chunk["stop_t"]}
            process = chunk["process"]
            found.append(
                _node(
                    recording, row, 10**9 + len(found), submission=None, phases=[part],
                    process=-1 if process is None else process,
                )
            )  # fmt: skip
    return found


def _add_waits(found: list[Node], recording: Recording) -> None:
    """Add what each attempt waited for, without threads."""
    places = {id(line): n for n, line in enumerate(recording.of("transition"))}
    results = defaultdict(list)
    for node in found:
        if node.attempt and node.row["outcome"] == "memory":
            results[node.row["key"]].append((places[id(node.attempt.end)], node))
    awaited = _awaited(found, recording)
    latest: dict[tuple, Node] = {}
    for node in found:
        if node.attempt is None:
            continue
        before = latest.get((node.row["key"], id(node.submission)))
        latest[node.row["key"], id(node.submission)] = node
        outcome = before.row["outcome"] if before else None
        if outcome == "memory" and before.process is not None:
            # The removal of the worker with the result is recorded up to 1 s late.
            gone = processes(recording)[before.process].removed
            node.is_recomputed = (
                gone is not None and before.end_t <= gone["t"] <= node.begin_t + 1.0
            )
        if outcome in FAILURES:
            _wait(node, before.end_t, FAILURE, before)
        if node.is_recomputed:
            # It waited for the loss: for an attempt lost there, or else for the last one.
            t = node.begin_t if node.waiting_t is None else min(node.waiting_t, node.begin_t)
            there = [
                other
                for other in found
                if other.row["outcome"] == "lost"
                and other.process == before.process
                and t - 1.0 <= other.end_t <= t + 1.0
            ] or [other for other in found if other.end_t <= t]
            if there:
                last = max(there, key=lambda other: (other.end_t, other.number))
                _wait(node, t, LOSS, last)
        # A dependency: its last result before the attempt was dispatched.
        dispatched = places.get(id(node.attempt.begin), -1)
        for key in (node.submission or {}).get("dependencies") or ():
            there = [pair for pair in results[key] if pair[0] < dispatched]
            if there:
                result = max(there, key=lambda pair: pair[0])[1]
                _wait(node, result.end_t, RESULT, result)
        if node.submission is not None:
            t = node.submission["t"]
            if before and outcome not in FAILURES and not node.is_recomputed:
                t = max(t, node.waiting_t if node.waiting_t is not None else t)
            t = min(t, node.begin_t)
            had = [result for result in awaited if result.end_t <= t]
            last = had[-1] if had and had[-1].place < node.place else None
            node.waits.append((t, SUBMISSION, last))


def _wait(node: Node, t: float, kind: int, before: Node) -> None:
    """Add a wait, unless damaged clocks contradict it."""
    if before.place < node.place:
        node.waits.append((t, kind, before))


def _results(found: list[Node]) -> list[Node]:
    bad = (*FAILURES, "cancelled", "unfinished")
    return [node for node in found if node.row["outcome"] not in bad]


def _wanted(found: list[Node], recording: Recording) -> list[Node]:
    """Return the results that a client wanted."""
    keys = {
        key
        for line in recording.of("wanted_keys")
        for change in line["changes"]
        if change["action"] == "desires"
        for key in change["keys"]
    }
    return [node for node in _results(found) if node.attempt and node.row["key"] in keys]


def _awaited(found: list[Node], recording: Recording) -> list[Node]:
    """Return the results that a client waited for, in the order of their ends."""
    some = _wanted(found, recording) or _results(found)
    return sorted(some, key=lambda node: (node.end_t, node.number))


def _add_threads(found: list[Node]) -> None:
    """Find the previous attempt on each thread, or on the worker if the thread is unknown."""
    lanes = defaultdict(list)
    for node in sorted(found, key=lambda node: node.place):
        computes = node.row["compute_start_t"] is not None
        if node.process is None:
            continue
        if computes and node.row["thread"] is not None:
            lane = lanes[node.process, node.row["thread"]]
            node.thread = lane[-1] if lane else None
            lane.append(node)
    for node in found:
        computes = node.row["compute_start_t"] is not None
        if node.process is not None and not (computes and node.row["thread"] is not None):
            before = [
                other
                for other in found
                if other.process == node.process
                and other.row["compute_start_t"] is not None
                and other.stop_t <= node.begin_t
            ]
            last = max(before, key=lambda other: (other.stop_t, other.number), default=None)
            node.thread = last if last and last.place < node.place else None
    for node in found:
        transfers = [part["stop"] for part in node.phases if part["action"] == "transfer"]
        node.ready_t = min(max(node.processing_t, *transfers, -math.inf), node.begin_t)
        if node.thread:
            node.free_t = min(node.thread.stop_t, node.begin_t)
            t = node.latest[0]
            on_worker = node.free_t > node.processing_t
            node.is_held = (
                node.free_t >= node.ready_t if on_worker else node.free_t > t
            ) or t == -math.inf


def _last(found: list[Node], recording: Recording) -> Node:
    """Return the attempt with which the path ends."""
    if running := [node for node in found if node.is_running]:
        return max(running, key=lambda node: node.place)
    used = {wait[2] for node in found for wait in node.waits if wait[1] == RESULT}
    ended = [node for node in found if node.row["end_t"] is not None]
    some = (
        _wanted(found, recording)
        or [node for node in _results(ended) if node not in used]
        or ended
        or found
    )
    return max(some, key=lambda node: (node.end_t, node.number))


@once
def _path(recording: Recording) -> list[tuple[Node, float]]:
    """Return the attempts of the path, the last one first, and until when each was needed."""
    found = nodes(recording)
    path = []
    node, until = (_last(found, recording), math.inf) if found else (None, 0)
    while node is not None:
        path.append((node, min(until, node.end_t)))
        if node.is_held:
            node, until = node.thread, node.free_t
        else:
            node, until = node.latest[2], math.inf
    return path


def critical_path(recording: Recording) -> list[Row]:
    """Return one row per step."""
    start_t, stop_t = extent(recording)
    pieces: list[list] = []
    at = start_t
    for n, (node, needed_t) in enumerate(reversed(_path(recording))):
        until = min(max(needed_t, at), stop_t)
        layers = _layers(node, n == 0, recording)
        cuts = {t for layer in layers for t in layer[:2] if at < t < until}
        for begin, end in pairwise(sorted({at, until, *cuts})):
            cause, detail = next(
                (layer[2:] for layer in layers if layer[0] <= begin and end <= layer[1]),
                ("unknown", None),
            )
            what = (cause, detail, None if cause == "client" else node)
            if pieces and pieces[-1][1:] == [*what]:
                pieces.pop()
            pieces.append([end, *what])
        at = until
    if at < stop_t:
        detail = "after the last result" if pieces else "nothing was computed"
        pieces.append([stop_t, "client", detail, None])
    pieces = [part for piece in _dated(pieces, start_t) for part in _absent(piece, recording)]
    begins = [start_t, *(piece[0] for piece in pieces)]
    return [
        {
            "step": n,
            "start_t": begin,
            "stop_t": piece[0],
            "seconds": piece[0] - begin,
            "share": (piece[0] - begin) / (stop_t - start_t),
            "cause": piece[1],
            **_about(piece[3], recording),
            "detail": piece[2],
        }
        for n, (begin, piece) in enumerate(zip(begins, pieces, strict=False), 1)
    ]


def _about(node: Node | None, recording: Recording) -> Row:
    names = ("key", "prefix", "attempt", "worker")
    if node is None:
        return dict.fromkeys((*names, "name", "dataset"))
    name = None
    if node.process is not None and node.process >= 0:
        name = processes(recording)[node.process].added.get("name")
    datasets = [
        chunk["dataset"]
        for chunk in chunk_attempts(recording)
        if (chunk["key"], chunk["run_id"]) == (node.row["key"], node.row["run_id"])
    ]
    row = {column: node.row[column] for column in names}
    return row | {"name": name, "dataset": datasets[0] if datasets else None}


def _dated(pieces: list[list], start_t: float) -> Iterator[tuple]:
    """Return the start of each piece, and the piece."""
    for piece in pieces:
        yield start_t, piece
        start_t = piece[0]


def _absent(dated: tuple[float, list], recording: Recording) -> list[list]:
    """Return the parts of a piece, of which times without any worker are not the client's."""
    begin, (end, cause, *what) = dated
    there = sorted((come, go) for come, go, _ in presence(recording))
    if cause != "client" or not there:
        return [dated[1]]
    start_t, stop_t = extent(recording)
    parts, latest = [], start_t
    for come, go in [*there, (stop_t, stop_t)]:
        gone, back = max(latest, begin), min(come, end)
        if come - latest >= 0.1 and gone < back:
            if gone > begin:
                parts.append([gone, cause, *what])
            parts.append([back, "worker", "no worker", None])
            begin = back
        latest = max(latest, go)
    if begin < end:
        parts.append([end, cause, *what])
    return parts


def _layers(node: Node, is_first: bool, recording: Recording) -> list[tuple]:
    """Return causes by precedence: begin, end, cause, detail; the first that covers a time."""
    sent, outcome, always = node.processing_t, node.row["outcome"], math.inf
    layers = []
    if outcome in CAUSES:
        layers.append((sent, always, CAUSES[outcome], outcome))
    if node.is_recomputed:
        layers.append((sent, always, "recompute", "result was lost"))
    detail = None if outcome == "memory" else outcome
    done = [part["stop"] for part in node.phases if part["action"] != "transfer"]
    ended = always if node.row["end_t"] is None else node.row["end_t"]
    ahead = max(max(done) - ended, 0.0) if done else 0.0
    for action in ("compute", "deserialize", "disk", "transfer"):
        layers += [
            (
                max(part["start"] - ahead, sent), part["stop"] - ahead, action,
                detail if action == "compute" else None,
            )
            for part in node.phases
            if part["action"].partition("-")[0] == action
        ]  # fmt: skip
    layers = _joined(layers)
    if done:
        layers.append((max(done) - ahead, always, "scheduler", "result"))
    else:
        layers.append((sent, always, "compute", detail))
    for pause in pauses(recording):
        if process_of(recording, pause["worker"], pause["start_t"]) == node.process:
            stop = always if pause["stop_t"] is None else pause["stop_t"]
            layers.append((max(pause["start_t"], sent), stop, "worker", "paused"))
    is_known = sent > -math.inf
    if is_known:
        if node.attempt and node.row["stolen_from"] is not None:
            first = min((part["start"] - ahead for part in node.phases), default=always)
            layers.append((sent, first, "dispatch", "until it was stolen"))
        layers.append((sent, always, "dispatch", None))
    layers += _before(node, is_first, recording)
    if not is_known:
        return [*layers, (-always, always, "dispatch", None)]
    added = {} if node.process is None else processes(recording)[node.process].added
    if added:
        layers.append((-always, min(added["t"], sent), "worker", "joined late"))
    return [*layers, (-always, sent, "scheduler", "assignment")]


def _joined(layers: list[tuple]) -> list[tuple]:
    """Join overlapping layers of the same kind, as of transfers."""
    joined: list[tuple] = []
    for layer in layers:
        touching = [
            other
            for other in joined
            if other[2:] == layer[2:] and other[0] <= layer[1] and layer[0] <= other[1]
        ]
        if layer[0] < layer[1]:
            joined = [other for other in joined if other not in touching]
            some = [layer, *touching]
            joined.append((min(p[0] for p in some), max(p[1] for p in some), *layer[2:]))
    order = ("retry", "recompute", "compute", "deserialize", "disk", "transfer")
    return sorted(joined, key=lambda layer: order.index(layer[2]))


def _before(node: Node, is_first: bool, recording: Recording) -> list[tuple]:
    """Return the possible causes of the time before the attempt was dispatched."""
    if node.is_held:
        return []
    t, kind, _ = node.latest
    if kind == SUBMISSION:
        graph = [
            line["payload"]["metrics"]["start_timestamp_seconds"]
            for line in recording.of("event")
            if isinstance(line.get("payload"), dict)
            and line["payload"].get("action") == "update-graph"
            and line["payload"].get("stimulus_id") == node.submission.get("stimulus_id")
        ]
        begin = max(graph) if graph and node.submission["t"] >= t else t
        detail = "before the first graph" if is_first else "between graphs"
        return [
            (-math.inf, min(begin, t), "client", detail),
            (begin, t, "scheduler", "graph"),
        ]
    if kind == LOSS:
        return [(-math.inf, t, "unknown", "until the result was lost")]
    if kind is None and node.processing_t == -math.inf:
        return [(-math.inf, math.inf, "client", "before the first graph")]
    if kind is None:
        return [(-math.inf, node.processing_t, "unknown", "no submission was recorded")]
    return []


def task_slack(recording: Recording) -> list[Row]:
    """Return one row per attempt: how much later it could have ended."""
    found = nodes(recording)
    if not found:
        return []
    awaited = _awaited(found, recording)
    last = _last(found, recording)
    _, stop_t = extent(recording)
    for node in found:
        node.slack = (last.end_t if node.end_t <= last.end_t else stop_t) - node.end_t
    last.slack = 0.0
    for node in sorted(found, key=lambda node: node.place, reverse=True):
        for before, margin in _margins(node, awaited):
            before.slack = min(before.slack, node.slack + max(margin, 0.0))
    known = {id(node) for node, _ in _path(recording)}
    names = ("key", "attempt", "worker", "prefix", "end_t")
    return [
        {name: node.row[name] for name in names}
        | {
            "slack_seconds": max(node.slack, 0.0)
            if node.row["end_t"] is not None or id(node) in known
            else None
        }
        for node in found
        if node.attempt
    ]


def _margins(node: Node, awaited: list[Node]) -> list[tuple[Node, float]]:
    """Return how much later each attempt may end until it delays this one."""
    latest = node.latest[0]
    waited = 0.0
    if node.is_held:
        on_worker = node.free_t > node.processing_t
        waited = node.free_t - (node.ready_t if on_worker else latest)
    margins = []
    if node.thread:
        margin = 0.0 if node.is_held else node.ready_t - node.free_t
        margins.append((node.thread, margin))
    for t, kind, before in node.waits:
        margin = waited + latest - t
        if before is None:
            continue
        if kind == SUBMISSION:
            # The client also waited for all results before the last one.
            earlier = awaited[: awaited.index(before) + 1]
            margins += [(result, margin + before.end_t - result.end_t) for result in earlier]
        else:
            margins.append((before, margin))
    return margins
