"""The trace itself: segments, environment, events, losses and the summary."""

import zlib
from collections import Counter
from collections.abc import Iterator

from nightly import io, setup
from nightly.chunks import FAILED, chunk_attempts
from nightly.datasets import compression_ratio, events_of, kept_seconds, results
from nightly.failures import failures
from nightly.processes import cluster, extent, processes
from nightly.recording import Recording, Row, content
from nightly.tasks import outcomes, task_runs, tasks
from nightly.totals import column, known, lasted, least, mean, most, ratio, total, whole
from nightly.workers import cluster_samples, worker_samples

#: Reason for records that are not missing, but surplus.
SURPLUS = "more records than were written"


def environment(recording: Recording) -> list[Row]:
    """Return all facts: text as it is, anything else as JSON."""
    facts = [
        {
            "section": line["section"],
            "name": line["name"],
            "value": setup.as_text(line.get("value")),
            "t": line["t"],
        }
        for line in recording.of("environment")
        if line.get("section") not in ("process", *setup.SHEETS)
    ]
    known = {(fact["section"], fact["name"]) for fact in facts}
    return facts + [fact for fact in _best_known(recording) if
                    (fact["section"], fact["name"]) not in known]  # fmt: skip


def _best_known(recording: Recording) -> Iterator[Row]:
    reported = {process["role"]: process for process in setup.processes(recording)}
    for role, process in reported.items():
        if role not in ("scheduler", "client"):
            continue
        facts = [
            (f"{role} versions", package, version)
            for there, package, version, _ in setup.versions(recording)
            if there == role and package in setup.BEST_KNOWN_PACKAGES
        ]
        machine = process.get("machine") or {}
        facts += [
            (f"{role} machine", name, setup.as_text(machine.get(name)))
            for name in ("host", "platform", "cores")
        ]
        if role == "scheduler":
            facts += [
                ("dask configuration", option["name"], option["value"])
                for option, _ in setup.options(recording)
                if option["process"] == role and option["name"] in setup.BEST_KNOWN_OPTIONS
            ]
        for section, name, value in facts:
            yield {"section": section, "name": name, "value": value, "t": process["t"]}


def events(recording: Recording) -> list[Row]:
    """Return the recorded events."""
    return [
        {
            "t": line["t"],
            "topic": line["topic"],
            "worker": line.get("worker"),
            "payload": line.get("payload"),
        }
        for line in recording.of("event")
    ]


def trace_info(recording: Recording) -> list[Row]:
    """Return the row of the segment."""
    header = next(iter(recording.of("header")), {})
    trailer = next(iter(recording.of("trailer")), None)
    versions = header.get("versions") or {}
    start_t, stop_t = extent(recording)
    return [
        {
            "segment": header.get("segment", 1),
            "schema_version": header.get("schema_version"),
            "start_t": start_t,
            "stop_t": stop_t,
            "clean_end": trailer is not None,
            "end_reason": trailer and trailer.get("reason"),
            "dask_version": versions.get("dask"),
            "distributed_version": versions.get("distributed"),
            "python_version": versions.get("python"),
            "recorder_version": versions.get("roast-trace"),
            "scheduler": header.get("scheduler"),
            "utc_offset_seconds": header.get("utc_offset_seconds"),
            "clock_offset_seconds": header.get("clock_offset_seconds"),
            "settings": header.get("settings"),
            "records": len(recording.lines),
            "redacted_values": trailer and trailer.get("redacted_values"),
            "path": str(recording.path),
            "label": (header.get("settings") or {}).get("label"),
        }
    ]


def loss(recording: Recording) -> list[Row]:
    """Return the losses of a trace."""
    trailer = next(iter(recording.of("trailer")), None)
    end_t = extent(recording)[1]
    rows = []
    if not recording.of("header"):
        detail = "the recorder's version and settings are unknown"
        rows.append(_loss("no header", None, detail, end_t))
    if trailer is None:
        unwritten = "the trace could not be written"
        if any((lost["reason"] or "").startswith(unwritten) for lost in recording.of("loss")):
            detail = (
                "the trailer could probably not be written either; later records are unknown"
            )
        else:
            detail = (
                "the recording did not end cleanly: it was killed, the "
                "scheduler died, its plugin was removed, or it is still running; "
                "later records are unknown"
            )
        rows.append(_loss("no trailer", None, detail, end_t))
    else:
        rows += _difference(trailer, recording)
        rows += _change(trailer, recording)
    for job in recording.of("import"):
        if job["name"] == "darshan" and (partial := io.partial_modules(job)):
            detail = (
                f"{job['filename']}: Darshan reached its limit of records or memory in "
                f"{', '.join(partial)}, so files opened later are missing"
            )
            rows.append(_loss("partial Darshan log", None, detail, job["t"]))
    return rows + list(_dropped(trailer or {}, recording))


def _loss(reason: str, records: int | None, detail: str, t: float) -> Row:
    return {"reason": reason, "records": records, "detail": detail, "t": t}


def _dropped(trailer: dict, recording: Recording) -> Iterator[Row]:
    """Return the recorded losses, and further ones counted by the trailer."""
    said = recording.of("loss")
    for line in said:
        of_what = known([line.get("record_kind"), line.get("detail")])
        reason = line.get("reason") or "dropped while recording"
        yield _loss(reason, line.get("records"), ": ".join(of_what), line["t"])
    for kind, records in trailer.get("dropped_by_kind", {}).items():
        explained = total(n["records"] for n in said if n.get("record_kind") == kind) or 0
        if records > explained:
            reason = "dropped while recording"
            yield _loss(reason, records - explained, kind, trailer["t"])


def _difference(trailer: dict, recording: Recording) -> Iterator[Row]:
    """Compare the counts of the trailer with the records."""
    said = Counter({"trailer": 1, **trailer["records_by_kind"]})
    for line in recording.of("import"):
        said.update({"import": 1, **line["records_by_kind"]})
    kinds = sorted({line["kind"] for line in recording.lines if line is not trailer} | {*said})
    held = {kind: len(recording.of(kind)) for kind in kinds}
    less = {kind: said.get(kind, 0) - n for kind, n in held.items() if n < said.get(kind, 0)}
    more = {kind: n - said.get(kind, 0) for kind, n in held.items() if n > said.get(kind, 0)}
    if less:
        detail = f"the trailer counts more records than the file has: {_counts(less)}"
        yield _loss("records missing", sum(less.values()), detail, trailer["t"])
    if more:
        about = "the file has more records than its trailer counts: "
        if "header" in more:
            about = f"the file contains {more['header'] + 1} traces; surplus records: "
        yield _loss(SURPLUS, sum(more.values()), about + _counts(more), extent(recording)[1])


def _change(trailer: dict, recording: Recording) -> Iterator[Row]:
    """Compare the checksum of the trailer with the content."""
    # Imports append further checksums after it.
    before, _, _ = content(recording.path).partition(b',"crc32":')
    headers = recording.of("header")
    if "crc32" not in trailer:
        version = headers[0]["schema_version"] if headers else "1.0"
        if tuple(map(int, version.split("."))) >= (2, 1):
            detail = "the trailer has no checksum: any value may have changed"
            yield _loss("changed content", None, detail, extent(recording)[1])
    elif zlib.crc32(before) != trailer["crc32"]:
        detail = "the checksum in the trailer does not match: any value may have changed"
        yield _loss("changed content", None, detail, extent(recording)[1])


def _counts(records: dict[str, int]) -> str:
    return ", ".join(f"{kind} {n}" for kind, n in records.items())


def run(recording: Recording) -> list[Row]:
    """Return the summary."""
    start_t, stop_t = extent(recording)
    there = cluster(recording)
    runs, chunks = task_runs(recording), chunk_attempts(recording)
    alone = [row for row in chunks if not row["has_task"]]
    merges = [row for row in runs if row["role"] == "merge"]
    done = results(chunks)
    timed = [row for row in done if row["process_seconds"] is not None]
    outcome = [row["outcome"] for row in chunks]
    summed = (
        "bytes_read", "process_seconds", "open_seconds", "read_seconds", "cpu_seconds",
        "wait_seconds", "compressed_bytes", "uncompressed_bytes",
    )  # fmt: skip
    sums = {name: total(column(chunks, name)) for name in summed}
    samples = column(worker_samples(recording), "memory_bytes")
    killed_at = [process.kill_bytes for process in processes(recording)]
    compute_seconds = total(column([*runs, *alone], "compute_seconds"))
    wall_seconds, core_seconds = stop_t - start_t, there["core_seconds"]
    busy_seconds = _stretch([*runs, *alone], start_t)
    chunk_wall_seconds = _stretch(chunks, start_t)
    events = total(column(done, "events"))
    return [
        {
            "start_t": start_t,
            "stop_t": stop_t,
            "wall_seconds": wall_seconds,
            **{name: there[name] for name in there if name != "worker_seconds"},
            "mean_workers": ratio(there["worker_seconds"], wall_seconds),
            "mean_nthreads": ratio(core_seconds, wall_seconds),
            # Of task attempts, and of chunk attempts without a task.
            "tasks": len(tasks(recording)) or (None if runs else 0),
            "task_runs": len(runs),
            **outcomes(runs, "memory", "erred", "retried", "lost", "rescheduled"),
            **outcomes(runs, "cancelled", "unfinished"),
            "busy_seconds": busy_seconds,
            "compute_seconds": compute_seconds,
            "kept_seconds": kept_seconds([*runs, *alone]),
            "core_efficiency": ratio(compute_seconds, core_seconds),
            "speedup": ratio(compute_seconds, busy_seconds),
            "output_bytes": total([*column(runs, "nbytes"), *column(alone, "output_bytes")]),
            "transfer_seconds": total(column(runs, "transfer_seconds")),
            "merge_seconds": total(column(merges, "compute_seconds")),
            "failures": len(failures(recording)),
            # Of chunk attempts; events are of first results.
            **sums,
            "chunks": len(done),
            "chunk_attempts": len(chunks),
            "failed_chunks": sum(name in FAILED for name in outcome),
            "skipped": outcome.count("skipped"),
            "checkpointed_chunks": sum(row["from_checkpoint"] is True for row in done),
            "events": events_of(done),
            "events_per_second": ratio(events, chunk_wall_seconds),
            "events_per_core_second": ratio(events, core_seconds),
            "chunk_wall_seconds": chunk_wall_seconds,
            "chunk_seconds": total(column(chunks, "compute_seconds")),
            "mean_process_seconds": mean(column(done, "process_seconds")),
            "events_per_process_second": ratio(
                total(column(timed, "events")), sums["process_seconds"]
            ),
            "bytes_per_second": ratio(sums["bytes_read"], chunk_wall_seconds),
            "compression_ratio": compression_ratio(chunks),
            # No sample has skipped files.
            "skipped_files": 0,
            # Of all workers at a tick, and of one worker.
            "peak_memory_bytes": most(
                [*column(cluster_samples(recording), "memory_bytes"), *killed_at]
            ),
            "peak_worker_memory_bytes": most(
                [
                    *samples,
                    *column(chunks, "memory_peak_bytes"),
                    *killed_at,
                ]
            ),
            "mean_worker_memory_bytes": whole(mean(samples)),
            "lost_records": total(
                row["records"] for row in loss(recording) if row["reason"] != SURPLUS
            )
            or 0,
        }
    ]


def _stretch(attempts: list[Row], start_t: float) -> float | None:
    """Return the time from the first dispatch, or the start, to the last end."""
    begin, end = least(column(attempts, "processing_t")), most(column(attempts, "end_t"))
    if any(row["processing_t"] is None and row.get("has_task", True) for row in attempts):
        begin = start_t
    return None if begin is None or end is None else lasted(begin, end)
