"""Convert the computations and transfers of a trace to Chrome trace events.

This is only the input for tools in benchmarks that read no other format; for viewing a trace,
use ``roast-analyze export --perfetto``.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from analyze_readers import opened

_HEAD = (
    b'{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":0,"world_size":1},'
    b'"traceEvents":[\n'
)


def write_chrome_events(trace: Path, target: Path) -> None:
    """Write a complete event for each part of each attempt at a task.

    Parameters
    ----------
    trace : path
        A file, plain or zstd.
    target : path
    """
    prefixes: dict[str, str] = {}
    processes: dict[str, int] = {}
    with opened(trace) as lines, target.open("wb") as events:
        events.write(_HEAD)
        separator = b""
        begin_t = None
        for line in lines:
            record = orjson.loads(line)
            begin_t = begin_t or record["t"]
            if record["kind"] == "task":
                prefixes[record["key"]] = record["prefix"]
            for part in record.get("startstops", ()):
                event = {
                    "ph": "X",
                    "cat": "cpu_op",
                    "name": f"{prefixes[record['key']]} {part['action']}",
                    "pid": processes.setdefault(record["worker"], len(processes)),
                    "tid": record["thread"],
                    "ts": (part["start"] - begin_t) * 1e6,
                    "dur": (part["stop"] - part["start"]) * 1e6,
                    "args": {"External id": record["run_id"]},
                }
                events.write(separator + orjson.dumps(event))
                separator = b",\n"
        events.write(b"\n]}\n")
