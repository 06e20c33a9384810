"""File access measured by Darshan."""

import math
from itertools import accumulate, groupby

from nightly.processes import extent
from nightly.recording import Recording, Row, once
from nightly.tasks import task_runs


def io_jobs(recording: Recording) -> list[Row]:
    """Return one row per log."""
    begin_t, end_t = extent(recording)
    return [
        {
            "job_id": job["value"]["job_id"],
            "executable": job["value"].get("executable"),
            "processes": job["value"]["processes"],
            "start_t": job["start_t"],
            "stop_t": job["stop_t"],
            "run_seconds": job["value"]["run_seconds"],
            "within_run": job["start_t"] <= end_t and job["stop_t"] >= begin_t,
            "modules": list(job["value"]["modules"]),
            "partial_modules": partial_modules(job),
            "skipped_modules": job["value"]["left_out"],
            **_processes(recording)[job["source"]],
            "clock_offset_seconds": clock and sum(clock) / 2,
            "clock_offset_error_seconds": clock and (clock[1] - clock[0]) / 2,
            "darshan_version": job["versions"]["darshan"],
            "log": job["filename"],
            "source": job["source"],
        }
        for job in _jobs(recording).values()
        for clock in [clocks(recording).get(job["source"])]
    ]


def io_files(recording: Recording) -> list[Row]:
    """Return one row per file and I/O layer."""
    numbers = (
        "module", "rank", "opens", "reads", "writes", "bytes_read", "bytes_written",
        "read_seconds", "write_seconds", "metadata_seconds",
    )  # fmt: skip
    rows = []
    for line in recording.of("io_file"):
        job = _jobs(recording)[line["source"]]
        process = _processes(recording)[line["source"]]
        rows.append(
            {
                "filename": line["filename"],
                **{name: line["measured"].get(name) for name in numbers},
                "start_t": line.get("start_t"),
                "stop_t": line.get("stop_t"),
                **{name: process[name] for name in ("host", "pid", "worker")},
                "counters": line["value"],
                "log": job["filename"],
                "source": line["source"],
            }
        )
    return rows


def io_segments(recording: Recording) -> list[Row]:
    """Return one row per call, with the attempts that the worker may have been computing."""
    rows = []
    for line in recording.of("io_segment"):
        job = _jobs(recording)[line["source"]]
        process = _processes(recording)[line["source"]]
        shares = _shares(line, recording)
        confidence = (
            max(x for x, _ in shares) / max(sum(x for x, _ in shares), 1) if shares else None
        )
        is_sure = confidence is not None and confidence >= 0.95
        ordered = sorted(shares, key=lambda found: (-found[0], found[1]["n"]))
        rows.append(
            {
                "filename": line["filename"],
                "module": line["measured"]["module"],
                "operation": line["activity"],
                "offset_bytes": line["measured"]["offset_bytes"],
                "bytes": line["nbytes"],
                "start_t": line["start_t"],
                "stop_t": line["stop_t"],
                "host": line["host"],
                "rank": line["measured"]["rank"],
                "pid": process["pid"],
                "worker": process["worker"],
                "key": ordered[0][1]["key"] if is_sure else None,
                "attempt": ordered[0][1]["attempt"] if is_sure else None,
                "candidate_keys": [x["key"] for _, x in ordered] if process["worker"] else None,
                "confidence": confidence,
                "log": job["filename"],
                "source": line["source"],
            }
        )
    return rows


def _shares(line: dict, recording: Recording) -> list[tuple[float, Row]]:
    """Return the attempts that fit a call, with their shares of the plausible offsets."""
    clock = clocks(recording).get(line["source"])
    if clock is None:
        return []
    least, most = clock
    shares = []
    for run in _runs(recording).get(_processes(recording)[line["source"]]["worker"], []):
        low = max(run["from"] - line["start_t"], least)
        high = min(run["until"] - line["stop_t"], most)
        if high > low:
            shares.append(((high - low) / (most - least), run))
    return shares


@once
def _runs(recording: Recording) -> dict[str, list[Row]]:
    """Return the computing attempts of each worker, with times corrected for Dask's delay."""
    workers: dict[str, list[Row]] = {}
    for n, run in enumerate(task_runs(recording)):
        if run["compute_start_t"] is not None:
            workers.setdefault(run["worker"], []).append({**run, "n": n})
    return {worker: _corrected(runs) for worker, runs in workers.items()}


def _corrected(runs: list[Row]) -> list[Row]:
    runs = sorted(runs, key=lambda run: (run["end_t"], run["n"]))
    low = [run["compute_stop_t"] - run["end_t"] for run in runs]
    high = [
        run["compute_start_t"] - run["processing_t"] if run["processing_t"] else None
        for run in runs
    ]
    corrected = []
    for n, run in enumerate(runs):
        near = slice(max(n - 2, 0), n + 3)
        most = min((x for x in high[near] if x is not None), default=0)
        least, own = max(low[near]), high[n] or 0
        if least > min(own, low[n] + 0.02) or most < low[n]:
            least, most = low[n], own
        delay = max(least, min(most, 0))
        times = {"from": run["compute_start_t"] - delay, "until": run["compute_stop_t"] - delay}
        corrected.append({**run, **times})
    return corrected


@once
def clocks(recording: Recording) -> dict[str, tuple[float, float]]:
    """Return the plausible offsets of each log with calls during its worker's tasks."""
    found = {}
    for source, process in _processes(recording).items():
        runs = _runs(recording).get(process["worker"], [])
        calls = [
            line
            for line in recording.of("io_segment")
            if line["source"] == source
            and runs
            and line["start_t"] <= max(run["until"] for run in runs) + 1
            and line["stop_t"] >= min(run["from"] for run in runs) - 1
        ]
        calls = calls[:: max(math.ceil(len(calls) / 300), 1)]
        fits = [
            (n, id(run), max(low, -1.0), min(high, 1.0))
            for n, line in enumerate(calls)
            for run in runs
            for low, high in [(run["from"] - line["start_t"], run["until"] - line["stop_t"])]
            if low <= high and low <= 1 and high >= -1
        ]
        if fits:
            found[source] = _plausible(fits)
    return found


def _plausible(fits: list[tuple[int, int, float, float]]) -> tuple[float, float]:
    """Return the range of offsets whose score is near the best."""
    items: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for call, run, low, high in fits:
        items.setdefault(("call", call), []).append((low, high))
        items.setdefault(("run", run), []).append((low, high))
    changes = []
    for ranges in items.values():
        end = -2.0
        for low, high in sorted(ranges):
            if low > end:
                changes += [(low, -1)] if end == -2 else [(end, 1), (low, -1)]
            end = max(end, high)
        changes.append((end, 1))
    changes.sort()
    scores = list(accumulate(-change for _, change in changes))
    best, islands = max(scores), []
    for is_near, steps in groupby(range(len(scores)), lambda n: scores[n] >= 0.95 * best):
        if is_near:
            span = list(steps)
            low, high = changes[span[0]][0], changes[span[-1] + 1][0]
            score = max(scores[n] for n in span)
            islands.append((-score, max(low, -high, 0), low, high))
    best, near = min(islands), min(islands, key=lambda island: island[1:])
    return min(best[2], near[2]) - 0.002, max(best[3], near[3]) + 0.002


def partial_modules(job: Row) -> list[str]:
    """Return the layers for which Darshan reached a limit."""
    modules = job["value"]["modules"]
    return [name for name, facts in modules.items() if facts.get("partial")]


def _jobs(recording: Recording) -> dict[str, dict]:
    return {
        line["source"]: line for line in recording.of("import") if line["name"] == "darshan"
    }


@once
def _processes(recording: Recording) -> dict[str, Row]:
    """Match jobs to worker processes by process ID, time and, if ambiguous, host."""
    gone = {line["server_id"]: line["t"] for line in recording.of("worker_removed")}
    matched = {}
    for source, job in _jobs(recording).items():
        hosts = [x["host"] for x in recording.of("io_segment") if x["source"] == source]
        host = hosts[0] if hosts else None
        value = job["value"]
        pid = job.get("pid") or (value["job_id"] if value["processes"] == 1 else None)
        found = {
            line["worker"]: line
            for line in recording.of("worker_added")
            if pid is not None
            and line.get("pid") == pid
            and line["t"] <= job["stop_t"] + 1
            and gone.get(line["server_id"], job["stop_t"]) >= job["start_t"] - 1
        }
        there = [worker for worker, line in found.items() if line.get("host") == host]
        only = [*found] if len(found) == 1 else there
        worker = only[0] if len(only) == 1 else None
        about = {"host": host, "pid": pid, "worker": worker}
        matched[source] = {**about, "candidate_workers": len(found)}
    return matched
