"""Small traces written by hand: fixtures that return records, and ones that open them."""

import contextlib
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_schemas import SCHEMA_VERSION
from roast_schemas.records import Measured, WorkerMetrics
from sealing import sealed

HEADER = {
    "kind": "header",
    "t": 0.0,
    "schema_version": SCHEMA_VERSION,
    "trace_id": "T",
    "segment": 1,
    "versions": {"dask": "2026.8.0", "python": "3.11.7"},
}


def with_header_and_trailer(
    records: list[dict], stop_t: float, segment: int = 1, trace_id: str = "T"
) -> list[dict]:
    """Return a complete segment with some records."""
    body = [{**HEADER, "segment": segment, "trace_id": trace_id}, *records]
    trailer = {
        "kind": "trailer",
        "t": stop_t,
        "segment": segment,
        "reason": "recording was stopped",
        "records_by_kind": Counter(record["kind"] for record in body),
        "dropped_by_kind": {},
    }
    return [*body, trailer]


def grouped(record: dict) -> dict:
    """Move fields into the groups of the schema."""
    groups = {"measured": Measured.__annotations__, "metrics": WorkerMetrics.__annotations__}
    for group, names in groups.items():
        if within := {name: record.pop(name) for name in names if name in record}:
            record[group] = within
    return record


def as_lines(records: list[dict]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.fixture
def lines():
    """Return the bytes of a complete trace with some records."""

    def lines(*records: dict, stop_t: float = 100.0, **identity) -> bytes:
        return sealed(as_lines(with_header_and_trailer(list(records), stop_t, **identity)))

    return lines


@pytest.fixture
def write_trace(tmp_path, lines):
    """Write a complete trace with some records; return its path."""

    def write(
        *records: dict, stop_t: float = 100.0, name: str = "trace.jsonl", **identity
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(*records, stop_t=stop_t, **identity))
        return path

    return write


@pytest.fixture
def open_trace(write_trace):
    """Open a complete trace with some records."""
    opened: list[Trace] = []

    def open_(*records: dict, stop_t: float = 100.0) -> Trace:
        opened.append(Trace(write_trace(*records, stop_t=stop_t)))
        return opened[-1]

    yield open_
    for trace in opened:
        trace.close()


@pytest.fixture
def rows(open_trace):
    """Query a complete trace with some records; return the rows."""

    def rows(query: str, *records: dict, stop_t: float = 100.0) -> list[tuple]:
        return open_trace(*records, stop_t=stop_t).sql(query).fetchall()

    return rows


@pytest.fixture
def task():
    """Return a task that enters the graph."""

    def task(key: str, t: float = 0.0, **fields) -> dict:
        return {
            "kind": "task",
            "t": t,
            "key": key,
            "prefix": key.split("-", maxsplit=1)[0],
            **fields,
        }

    return task


@pytest.fixture
def move():
    """Return transitions, as ``move(1.0, "a", "processing>memory", "task-finished-1")``."""

    def move(t: float, key: str, states: str, stimulus_id: str = "x-1.0", **fields) -> dict:
        start, finish = states.split(">")
        moved = {"start": start, "finish": finish, "stimulus_id": stimulus_id}
        return {"kind": "transition", "t": t, "key": key, **moved, **fields}

    return move


@pytest.fixture
def run(move):
    """Return an attempt that computed from `start` to `stop` and succeeded."""

    def run(key: str, start: float, stop: float, worker: str = "w1", **fields) -> list[dict]:
        parts = [{"action": "compute", "start": start, "stop": stop}]
        end = {"worker": worker, "startstops": parts, "thread": 1, "nbytes": 8, **fields}
        return [
            move(start, key, "waiting>processing", worker=worker, run_id=fields.get("run_id")),
            move(stop, key, "processing>memory", "task-finished-1.0", **end),
        ]

    return run


@pytest.fixture
def worker():
    """Return a worker that joined."""

    def worker(address: str, t: float = 0.0, **fields) -> dict:
        added = {"worker": address, "name": address, "server_id": f"id-{address}-{t}"}
        return {"kind": "worker_added", "t": t, "nthreads": 1, **added, **fields}

    return worker


@pytest.fixture
def gone():
    """Return a worker that left."""

    def gone(address: str, t: float, stimulus_id: str) -> dict:
        return {"kind": "worker_removed", "t": t, "worker": address, "stimulus_id": stimulus_id}

    return gone


@pytest.fixture
def sample():
    """Return a sample of a worker."""

    def sample(t: float, address: str = "w1", **fields) -> dict:
        return grouped({"kind": "worker_sample", "t": t, "worker": address, **fields})

    return sample


@pytest.fixture
def chunk():
    """Return a chunk (without `run_id`), or an attempt at one."""

    def chunk(key: str, **fields) -> dict:
        return grouped({"kind": "chunk", "t": 0.0, "key": key, **fields})

    return chunk


@pytest.fixture
def passage():
    """Return one execution of a named section."""

    def passage(t: float, key: str, name: str, **fields) -> dict:
        return grouped({"kind": "section", "t": t, "key": key, "name": name, **fields})

    return passage


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Callable[[int], Path]]:
    """Mount a file system of a given size in bytes."""
    with contextlib.ExitStack() as stack:

        def small_disk(nbytes: int) -> Path:
            disk = tmp_path / f"disk-{nbytes}"
            disk.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", f"size={nbytes}", "none", str(disk)]
            if subprocess.run(mount, capture_output=True).returncode:
                pytest.skip("needs the right to mount a file system")
            stack.callback(subprocess.run, ["umount", str(disk)], check=True)
            return disk

        yield small_disk


@pytest.fixture
def told():
    """Return the facts of a process, with its configuration and packages."""

    def told(
        role: str,
        configuration: dict | None = None,
        defaults: dict | None = None,
        packages: list | None = None,
        worker: str | None = None,
        **facts,
    ) -> list[dict]:
        sheets = {"configuration": configuration, "defaults": defaults, "packages": packages}
        named = {name: (f"sheet of {value}", value) for name, value in sheets.items()}
        known = {name: pair for name, pair in named.items() if pair[1] is not None}
        value = {"role": role, **facts, **{name: sheet for name, (sheet, _) in known.items()}}
        about = {"kind": "environment", "t": 1.0}
        server = {"worker": worker, "server_id": f"id-{worker}"} if worker else {}
        return [
            *(
                {**about, "section": section, "name": name, "value": content}
                for section, (name, content) in known.items()
            ),
            {**about, "section": "process", "name": role, "value": value, **server},
        ]

    return told
