"""State changes of tasks on workers, and the time from dispatch to computation."""

from nightly.recording import Recording, Row
from nightly.tasks import attempts, task_runs
from nightly.totals import grouped, least

#: Prefix of the stimulus that dispatches a task; the rest is the time.
SENT = "compute-task-"


def worker_transitions(recording: Recording) -> list[Row]:
    """Return the recorded changes."""
    names = ("t", "worker", "key", "start", "finish", "stimulus_id", "server_id")
    return [
        {name: line.get(name) for name in names}
        | {"state": line.get("state") or line["finish"], "seq": seq}
        for seq, line in enumerate(recording.of("worker_transition"))
    ]


def dispatch_latency(recording: Recording) -> list[Row]:
    """Return one row per attempt, if workers reported transitions."""
    if not recording.of("worker_transition"):
        return []
    runs = list(zip(attempts(recording), task_runs(recording), strict=True))
    came = _arrivals(recording, [run for _, run in runs])
    return [
        _latency(attempt, run, came.get((number, run["worker"]), {}))
        for number, (attempt, run) in enumerate(runs)
    ]


def _arrivals(recording: Recording, runs: list[Row]) -> dict[tuple[int, str], Row]:
    """Return the last arrival on each worker within each attempt, by attempt number."""
    found: dict[tuple[int, str], Row] = {}
    for arrival in _each_arrival(recording):
        ends = [
            (float("inf") if run["end_t"] is None else run["end_t"], number)
            for number, run in enumerate(runs)
            if run["key"] == arrival["key"]
        ]
        later = [(end_t, number) for end_t, number in ends if end_t >= arrival["sent_t"]]
        if later:
            place = min(later)[1], arrival["worker"]
            if place not in found or found[place]["sent_t"] < arrival["sent_t"]:
                found[place] = arrival
    return found


def _each_arrival(recording: Recording) -> list[Row]:
    arrivals = []
    whose = ("worker", "server_id", "key")
    for lines in grouped(
        recording.of("worker_transition"), lambda line: tuple(line.get(n) for n in whose)
    ).values():
        here: Row = {}
        for line in lines:
            if line["finish"] == "waiting" and line["stimulus_id"].startswith(SENT):
                here = {name: line.get(name) for name in whose}
                here["sent_t"] = float(line["stimulus_id"].removeprefix(SENT))
                here |= {"stimulus_id": line["stimulus_id"], "arrived_t": line["t"]}
                arrivals.append(here)
            elif line["finish"] in ("ready", "constrained"):
                here.setdefault("ready_t", line["t"])
            elif line["finish"] == "executing":
                here.setdefault("executing_t", line["t"])
    return arrivals


def _latency(attempt, run: Row, here: Row) -> Row:
    sent, start = run["processing_t"], run["compute_start_t"]
    instants = [sent, *(here.get(name) for name in ("arrived_t", "ready_t", "executing_t"))]
    underway, wait, queue = (_since(instants, n) for n in (1, 2, 3))
    rest = _since([*instants, start], 4)
    deserialize = disk = None
    if rest is not None:
        begun = _latest(instants)
        deserialize, disk = (
            sum(
                max(min(part["stop"], start) - max(part["start"], begun), 0.0)
                for part in attempt.phases
                if part["action"] == action
            )
            for action in ("deserialize", "disk-read")
        )
        rest -= deserialize + disk
    shortest = least([underway, wait, queue, rest])
    names = ("key", "prefix", "attempt", "worker", "outcome", "processing_t", "run_id")
    return {name: run[name] for name in names} | {
        "arrived_t": instants[1],
        "ready_t": instants[2],
        "executing_t": instants[3],
        "compute_start_t": start,
        "dispatch_seconds": underway,
        "transfer_wait_seconds": wait,
        "queue_seconds": queue,
        "deserialize_seconds": deserialize,
        "disk_seconds": disk,
        "other_seconds": rest,
        "dispatch_latency_seconds": None if sent is None or start is None else start - sent,
        "is_stolen": sent is not None and here.get("sent_t", sent) > sent,
        "clocks_disagree": shortest is not None and shortest < 0,
        "stimulus_id": None if attempt.was_there else attempt.begin.get("stimulus_id"),
        "worker_stimulus_id": here.get("stimulus_id"),
    }


def _since(instants: list[float | None], number: int) -> float | None:
    """Return the time from the latest known instant before."""
    before, here = _latest(instants[:number]), instants[number]
    return None if before is None or here is None else here - before


def _latest(instants: list[float | None]) -> float | None:
    known = [instant for instant in instants if instant is not None]
    return known[-1] if known else None
