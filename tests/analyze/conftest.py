"""Small traces written by hand: fixtures that return records, and ones that open them."""

import contextlib
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.cli import main
from roast_analyze.open import database
from roast_schemas import SCHEMA_VERSION
from roast_schemas.records import Measured, Metrics
from sealing import sealed

HEADER = {
    "kind": "header",
    "t": 0.0,
    "schema_version": SCHEMA_VERSION,
    "trace_id": "T",
    "segment": 1,
    "versions": {"dask": "2026.8.0", "python": "3.11.7"},
}


def returned(function: Callable) -> Callable:
    """Register a fixture of the same name that returns the function."""
    fixture = pytest.fixture(scope="session", name=function.__name__)(lambda: function)
    globals()[f"{function.__name__}_fixture"] = fixture
    return function


@returned
def lines(
    *records: dict,
    stop_t=100.0,
    segment: int = 1,
    trace_id: str = "T",
    reason: str = "recording was stopped",
) -> bytes:
    """Return the bytes of a complete trace with some records."""
    body = [{**HEADER, "segment": segment, "trace_id": trace_id}, *records]
    trailer = {
        "kind": "trailer",
        "t": stop_t,
        "segment": segment,
        "reason": reason,
        "records_by_kind": Counter(record["kind"] for record in body),
        "dropped_by_kind": {},
    }
    return sealed(b"".join(json.dumps(line).encode() + b"\n" for line in [*body, trailer]))


@pytest.fixture
def write_trace(tmp_path, lines):
    """Write a complete trace with some records; return its path."""

    def write(*records: dict, name: str = "trace.jsonl", **options) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(*records, **options))
        return path

    return write


@pytest.fixture
def write_traces(write_trace):
    """Write a complete trace for each list of records, T0 and so on; return their paths."""

    def write_traces(*traces: Iterable[dict], **options) -> list[Path]:
        return [
            write_trace(*records, name=f"{n}.jsonl", trace_id=f"T{n}", **options)
            for n, records in enumerate(traces)
        ]

    return write_traces


@pytest.fixture
def open_trace(write_trace):
    """Open a complete trace with some records."""
    with contextlib.ExitStack() as opened:
        yield lambda *records, stop_t=100.0: opened.enter_context(
            Trace(write_trace(*records, stop_t=stop_t))
        )


@pytest.fixture
def rows(ask):
    """Query a complete trace with some records; return the rows."""
    return lambda query, *records, stop_t=100.0: ask(*records, stop_t=stop_t)(query)


@pytest.fixture
def ask(open_trace):
    """Open a trace of some records; return a function that returns the rows of a query."""

    def ask(*records: dict, stop_t: float = 100.0) -> Callable[[str], list[tuple]]:
        trace = open_trace(*records, stop_t=stop_t)
        return trace.rows

    return ask


@pytest.fixture(scope="session")
def templates(temporary_cache, tmp_path_factory, lines) -> Path:
    """Return the folder of the empty databases, which take long to create."""
    path = tmp_path_factory.mktemp("templates") / "trace.jsonl"
    path.write_bytes(lines({"kind": "event", "t": 1.0, "topic": "x"}))
    Trace(path, start=0.5).close()
    return temporary_cache / "templates"


@pytest.fixture
def own_cache(monkeypatch, tmp_path, templates) -> Path:
    """Cache even small traces, in a folder of this test that contains only templates."""
    folder = tmp_path / "cache"
    shutil.copytree(templates, folder / templates.name)
    monkeypatch.setattr(database, "UNCACHED_BYTES", 0)
    monkeypatch.setenv("ROAST_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def analyze(capsys):
    """Run ``roast-analyze``; return the exit code, the output and the errors."""

    def analyze(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return (code, *capsys.readouterr())

    return analyze


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


# -- records ---------------------------------------------------------------------------------


@returned
def task(key: str, t: float = 0.0, **fields) -> dict:
    """Return a task that enters the graph."""
    return {"kind": "task", "t": t, "key": key, "prefix": key.partition("-")[0], **fields}


@returned
def move(
    t: float, key: str, states: str, stimulus_id: str = "x-1.0", phases=None, **fields
) -> dict:
    """Return a transition, as ``move(1.0, "a", "processing>memory", "task-finished-1")``.

    `phases` are its startstops: action, start, stop, and the source of a transfer.
    """
    start, finish = states.split(">")
    moved = {"start": start, "finish": finish, "stimulus_id": stimulus_id, **fields}
    if phases is not None:
        names = ("action", "start", "stop", "source")
        parts = [dict(zip(names, phase, strict=False)) for phase in phases]
        moved.setdefault("startstops", parts)
    return {"kind": "transition", "t": t, "key": key, **moved}


#: How an attempt ends, by its outcome: state, stimulus, and whether its worker reports it.
ENDS = {
    "memory": ("memory", "task-finished-1.0", True),
    "erred": ("erred", "task-erred-1.0", True),
    "retried": ("released", "task-erred-1.0", True),
    "rescheduled": ("released", "reschedule-1.0", True),
    "lost": ("released", "handle-worker-cleanup-1.0", False),
    "cancelled": ("released", "client-releases-keys-1.0", False),
}


@returned
def run(key, start, stop=None, worker="w1", outcome="memory", **fields) -> list[dict]:
    """Return an attempt from `start` to `stop`, or one without an end.

    A successful attempt computes the whole time, unless `phases` are given.
    """
    run_id = fields.get("run_id")
    begin = move(start, key, "waiting>processing", worker=worker, run_id=run_id)
    if stop is None:
        return [begin]
    state, stimulus_id, is_reported = ENDS[outcome]
    end = {"worker": worker} if is_reported else {}
    if outcome == "memory":
        end |= {"phases": [("compute", start, stop)], "thread": 1, "nbytes": 8}
    end |= fields
    return [begin, move(stop, key, f"processing>{state}", stimulus_id, **end)]


@returned
def worker(address: str, t: float = 0.0, **fields) -> dict:
    """Return a worker that joined."""
    added = {"worker": address, "name": address, "server_id": f"id-{address}-{t}"}
    return {"kind": "worker_added", "t": t, "nthreads": 1, **added, **fields}


@returned
def gone(address: str, t: float, stimulus_id: str) -> dict:
    """Return a worker that left."""
    return {"kind": "worker_removed", "t": t, "worker": address, "stimulus_id": stimulus_id}


def grouped(kind: str, t: float, fields: dict) -> dict:
    """Return a record with its fields in the groups of the schema."""
    record = {"kind": kind, "t": t, **fields}
    groups = {"measured": Measured.__annotations__, "metrics": Metrics.__annotations__}
    for group, names in groups.items():
        if within := {name: record.pop(name) for name in names if name in record}:
            record[group] = within
    return record


@returned
def sample(t: float, address: str = "w1", **fields) -> dict:
    """Return a sample of a worker."""
    return grouped("worker_sample", t, {"worker": address, **fields})


@returned
def chunk(key: str, **fields) -> dict:
    """Return a chunk, or with `run_id` an attempt at one."""
    return grouped("chunk", 0.0, {"key": key, **fields})


@returned
def passage(t: float, key: str, name: str, **fields) -> dict:
    """Return one execution of a named section."""
    return grouped("section", t, {"key": key, "name": name, **fields})


@returned
def process_facts(
    role: str,
    configuration=None,
    defaults=None,
    packages=None,
    worker=None,
    config_sources=None,
    **facts,
) -> list[dict]:
    """Return the facts of a process, with its configuration and packages."""
    sheets = {
        "configuration": configuration,
        "defaults": defaults,
        "packages": packages,
        "config_sources": config_sources,
    }
    sheets = {section: value for section, value in sheets.items() if value is not None}
    names = {section: f"sheet of {value}" for section, value in sheets.items()}
    about = {"kind": "environment", "t": 1.0}
    server = {"worker": worker, "server_id": f"id-{worker}"} if worker else {}
    process = {"section": "process", "name": role, "value": {"role": role, **facts, **names}}
    return [
        *(
            {**about, "section": section, "name": names[section], "value": value}
            for section, value in sheets.items()
        ),
        {**about, **process, **server},
    ]
