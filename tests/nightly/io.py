"""File access measured by Darshan."""

from nightly.processes import extent
from nightly.recording import Recording, Row
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
            "partial_modules": [
                name for name, facts in job["value"]["modules"].items() if facts["partial"]
            ],
            "skipped_modules": job["value"]["left_out"],
            **_process(recording, job),
            "darshan_version": job["versions"]["darshan"],
            "log": job["filename"],
            "source": job["source"],
        }
        for job in _jobs(recording).values()
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
        process = _process(recording, job)
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
    """Return one row per call, with the attempts that the worker was computing."""
    rows = []
    for line in recording.of("io_segment"):
        job = _jobs(recording)[line["source"]]
        process = _process(recording, job)
        runs = [
            run
            for run in task_runs(recording)
            if run["worker"] == process["worker"]
            and run["compute_start_t"] is not None
            and run["compute_start_t"] <= line["stop_t"]
            and run["compute_stop_t"] >= line["start_t"]
        ]
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
                "key": runs[0]["key"] if len(runs) == 1 else None,
                "attempt": runs[0]["attempt"] if len(runs) == 1 else None,
                "candidate_keys": [run["key"] for run in runs] if process["worker"] else None,
                "log": job["filename"],
                "source": line["source"],
            }
        )
    return rows


def _jobs(recording: Recording) -> dict[str, dict]:
    return {
        line["source"]: line for line in recording.of("import") if line["name"] == "darshan"
    }


def _process(recording: Recording, job: dict) -> Row:
    """Match a job to a worker process by process id, time and, if ambiguous, host."""
    hosts = [x["host"] for x in recording.of("io_segment") if x["source"] == job["source"]]
    host = hosts[0] if hosts else None
    value = job["value"]
    pid = job.get("pid") or (value["job_id"] if value["processes"] == 1 else None)
    gone = {line["server_id"]: line["t"] for line in recording.of("worker_removed")}
    found = {
        line["worker"]: line
        for line in recording.of("worker_added")
        if pid is not None
        and line.get("pid") == pid
        and line["t"] <= job["stop_t"] + 1
        and gone.get(line["server_id"], job["stop_t"]) >= job["start_t"] - 1
    }
    there = [worker for worker, line in found.items() if line.get("host") == host]
    worker = next(iter(found)) if len(found) == 1 else there[0] if len(there) == 1 else None
    return {"host": host, "pid": pid, "worker": worker, "candidate_workers": len(found)}
