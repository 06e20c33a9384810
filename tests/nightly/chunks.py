"""Chunk attempts and the branches that they read.

No sample has a task that reads several chunks, or one chunk more than once, as dask-awkward
does. Such recordings raise an error here.
"""

from nightly.processes import process_of
from nightly.recording import Recording, Row, once
from nightly.tasks import attempts, chunk_keys, task_runs
from nightly.totals import grouped, known, lasted, ratio, total

#: Columns that identify a chunk.
IDENTITY = ("dataset", "filename", "treename", "entry_start", "entry_stop")

#: Measured columns by the name of the field.
MEASURED = {
    "bytes_read": "bytes_read",
    "open_seconds": "open_seconds",
    "cpu_seconds": "cpu_seconds",
    "read_seconds": "read_seconds",
    "decompress_seconds": "decompress_seconds",
    "compression": "compression",
    "process_seconds": "process_seconds",
    "requests": "requests",
    "source": "source",
    "columns": "columns",
    "file_branches": "file_branches",
    "file_bytes": "file_bytes",
    "memory_before_bytes": "memory_before",
    "memory_after_bytes": "memory_after",
    "memory_peak_bytes": "memory_peak",
    "measured_until": "until",
}

#: Columns taken from the task attempt.
RUN = (
    "attempt", "compute_seconds", "queued_seconds", "transfer_seconds",
    "processing_t", "end_t",
)  # fmt: skip

#: Outcomes that are failures.
FAILED = ("erred", "retried", "lost", "skipped")

#: Keys of rows that are not columns of the view chunks.
BESIDE = (
    "has_task", "branches", "process", "event_seconds", "is_first_result", "packed_bytes",
    "unpacked_bytes", "begin_t", "is_warming_up",
)  # fmt: skip


def chunks(recording: Recording) -> list[Row]:
    """Return one row per chunk attempt."""
    return [
        {name: value for name, value in row.items() if name not in BESIDE}
        for row in chunk_attempts(recording)
    ]


@once
def chunk_attempts(recording: Recording) -> list[Row]:
    """Return the chunk attempts: those of tasks, and measurements without a task."""
    descriptions, readings = _descriptions(recording), _readings(recording)
    rows: list[Row] = []
    results: set = set()
    for attempt, run in zip(attempts(recording), task_runs(recording), strict=True):
        if run["role"] == "chunk":
            reading = readings.pop((run["key"], run["run_id"]), {})
            row = _with_task(run, reading, descriptions.get(run["key"], {}))
            # Lost results are recomputed; a key that is submitted again is another chunk.
            chunk = (row["key"], id(attempt.task), *(row[name] for name in IDENTITY))
            is_good = row["outcome"] == "memory"
            row["is_first_result"] = is_good and chunk not in results
            results |= {chunk} if is_good else set()
            rows.append(row)
    tried = {run["key"] for run in task_runs(recording)}
    for lines in grouped(readings.values(), lambda line: line["key"]).values():
        rows += _without_tasks(lines, descriptions, lines[0]["key"] in tried)
    rows = [row | _derived_columns(row, recording) for row in rows]
    return [row | {"is_warming_up": _is_warming_up(row, rows)} for row in rows]


def _is_warming_up(row: Row, rows: list[Row]) -> bool:
    """Return whether a chunk is the first of its process, or began during that one."""
    begun = [
        other
        for other in rows
        if other["process"] == row["process"] and other["begin_t"] is not None
    ]
    if None in (row["process"], row["begin_t"]) or not begun:
        return False
    first = min(begun, key=lambda other: other["begin_t"])
    seconds = first["compute_seconds"]
    return seconds is not None and row["begin_t"] + 0.001 < first["begin_t"] + seconds


def _descriptions(recording: Recording) -> dict[str, dict]:
    """Return chunk records by key: the one of the task, or else of any measurement."""
    reported = [line for line in recording.of("chunk") if line.get("entry_start") is not None]
    by_key = {}
    for key, lines in grouped(reported, lambda line: line["key"]).items():
        if len({tuple(line.get(name) for name in IDENTITY) for line in lines}) > 1:
            raise NotImplementedError(f"several chunks in {key!r}")
        by_key[key] = next((line for line in lines if line.get("run_id") is None), lines[0])
    return by_key


def _readings(recording: Recording) -> dict[tuple, dict]:
    """Return the measurements by key and run_id. Of repeated records the later one counts."""
    reported = [
        line
        for line in recording.of("chunk")
        if line.get("run_id") is not None and line["key"] in chunk_keys(recording)
    ]
    by_run = grouped(reported, lambda line: (line["key"], line["run_id"]))
    for run, lines in by_run.items():
        if len({line.get("start_t") for line in lines}) > 1:
            raise NotImplementedError(f"several readings in {run!r}")
    return {run: lines[-1] for run, lines in by_run.items()}


def _with_task(run: Row, reading: dict, description: dict) -> Row:
    """Combine a task attempt with the description and measurement of its chunk."""
    swallowed = run["outcome"] == "memory" and reading.get("exception") is not None
    row = _recorded_columns(reading, description) | {name: run[name] for name in RUN}
    row |= {
        "key": run["key"],
        "run_id": run["run_id"],
        # As measured; the scheduler may have missed a steal.
        "worker": reading.get("worker") or run["worker"],
        "outcome": "skipped" if swallowed else run["outcome"],
        "thread": _first_known("thread", run, reading),
        "exception": _first_known("exception", run, reading),
        "output_bytes": run["nbytes"],
        "has_task": True,
        "kept": run["kept"] and not swallowed,
    }
    if row["measured_until"] == "read" and run["compute_seconds"] is not None:
        row["process_seconds"] = max(run["compute_seconds"] - _seconds(reading), 0)
    return row


def _without_tasks(readings: list[dict], descriptions: dict, is_task_known: bool) -> list[Row]:
    """Return attempts at a key from measurements, in the order in which they began.

    Without a cluster there are only these. An attempt followed by another one was retried. If
    the task was recorded but this attempt is missing, its number is unknown.
    """
    in_order = sorted(readings, key=lambda reading: reading["start_t"])
    rows = []
    for number, reading in enumerate(in_order, 1):
        failed = "erred" if reading is in_order[-1] else "retried"
        row = _recorded_columns(reading, descriptions.get(reading["key"], {})) | {
            "key": reading["key"],
            "run_id": reading["run_id"],
            "attempt": None if is_task_known else number,
            "worker": reading.get("worker"),
            "thread": reading.get("thread"),
            "outcome": "memory" if reading.get("exception") is None else failed,
            "exception": reading.get("exception"),
            "output_bytes": reading.get("nbytes"),
            "compute_seconds": _seconds(reading),
            "queued_seconds": None,
            "transfer_seconds": None,
            "processing_t": reading["start_t"],
            "end_t": reading["stop_t"],
            "has_task": False,
        }
        is_good = row["outcome"] == "memory"
        rows.append(row | {"is_first_result": is_good, "kept": is_good})
    return rows


def _recorded_columns(reading: dict, description: dict) -> Row:
    """Return the columns of the two records of a chunk."""
    measured = reading.get("measured") or {}
    branches = measured.get("branches")
    columns = measured.get("columns")
    return {
        **{name: _first_known(name, reading, description) for name in IDENTITY},
        "file_uuid": _first_known("file_uuid", reading, description),
        "usermeta": _first_known("usermeta", description, reading),
        "start_t": reading.get("start_t"),
        "stop_t": reading.get("stop_t"),
        **{name: measured.get(field) for name, field in MEASURED.items()},
        "columns_read": None if columns is None else len(columns),
        "branches_read": None if branches is None else len(branches),
        "from_checkpoint": bool(measured.get("from_checkpoint")) if reading else None,
        "events": measured.get("events"),
        "branches": branches,
        "chunks_in_task": 1,
    }


def _first_known(name: str, *records: dict) -> object:
    return next(iter(known(record.get(name) for record in records)), None)


def _seconds(reading: dict) -> float:
    return lasted(reading["start_t"], reading["stop_t"])


def _derived_columns(row: Row, recording: Recording) -> Row:
    """Return the derived columns of an attempt."""
    seconds, events = row["compute_seconds"], row["events"]
    # Measured, or else the entries of the chunk.
    if row["outcome"] != "memory" or row["from_checkpoint"]:
        events = None
    elif events is None and None not in (row["entry_start"], row["entry_stop"]):
        events = row["entry_stop"] - row["entry_start"]
    begin_t = row["start_t"]
    if begin_t is None and None not in (row["end_t"], seconds):
        begin_t = row["end_t"] - seconds
    wait_seconds = None
    if None not in (row["cpu_seconds"], row["start_t"]):
        # At least 0, since clocks differ.
        wait_seconds = max(row["stop_t"] - row["start_t"] - row["cpu_seconds"], 0.0)
    sizes = [
        (read.get("compressed_bytes"), read.get("uncompressed_bytes"))
        for read in row["branches"] or []
    ]
    both = [pair for pair in sizes if None not in pair]
    none = None if row["branches"] is None else 0
    packed, unpacked = total(pair[0] for pair in both), total(pair[1] for pair in both)
    return {
        "events": events,
        "events_per_second": ratio(events, seconds),
        "bytes_per_second": ratio(row["bytes_read"], seconds),
        "bytes_per_event": ratio(row["bytes_read"], events),
        "wait_seconds": wait_seconds,
        "branch_share": ratio(row["branches_read"], row["file_branches"]),
        "compressed_bytes": total(pair[0] for pair in sizes) if sizes else none,
        "uncompressed_bytes": total(pair[1] for pair in sizes) if sizes else none,
        "packed_bytes": packed,
        "unpacked_bytes": unpacked,
        "compression_ratio": ratio(unpacked, packed),
        "event_seconds": ratio(seconds, events),
        "begin_t": begin_t,
        "process": process_of(recording, row["worker"], row["processing_t"]),
    }


@once
def chunk_branches(recording: Recording) -> list[Row]:
    """Return one row per chunk attempt and branch."""
    of_attempt = ("key", "attempt", *IDENTITY, "worker", "outcome", "run_id")
    sizes = ("compressed_bytes", "uncompressed_bytes")
    of_branch = ("branch", *sizes, "read_seconds", "decompress_seconds")
    return [
        {name: row[name] for name in of_attempt} | {name: read.get(name) for name in of_branch}
        for row in chunk_attempts(recording)
        for read in row["branches"] or []
    ]
