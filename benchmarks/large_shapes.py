"""Traces that are large in one dimension: workers, spans, prefixes, branches, ….

Each function yields the records of a trace of a given size. A cost that grows faster than the
number of records, such as a join of all workers with all time buckets, shows only if that
number alone is large.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from roast_schemas import SCHEMA_VERSION

Record = dict[str, Any]
Records = Iterator[Record]

#: Duration of the runs, in seconds.
RUN_SECONDS: Final = 1_000.0


def attempt(
    key: str, start: float, seconds: float, worker: str, run_id: int, **fields: Any
) -> Records:
    """Yield a task and a successful attempt at it."""
    prefix = key.partition("-")[0]
    yield {
        "kind": "task", "t": start, "key": key, "prefix": prefix, "group": prefix,
        "stimulus_id": "update-graph-1", "client": "Client-1", **fields,
    }  # fmt: skip
    yield from computed(key, start, seconds, worker, run_id)


def computed(key: str, start: float, seconds: float, worker: str, run_id: int) -> Records:
    """Yield a successful attempt."""
    about = {"kind": "transition", "key": key, "worker": worker, "run_id": run_id}
    yield about | {
        "t": start, "start": "waiting", "finish": "processing", "stimulus_id": "x-1",
    }  # fmt: skip
    phase = {"action": "compute", "start": start, "stop": start + seconds}
    yield about | {
        "t": start + seconds, "start": "processing", "finish": "memory", "thread": 1,
        "nbytes": 1000, "stimulus_id": "task-finished-1", "startstops": [phase],
    }  # fmt: skip


def added(worker: str, t: float, host: str = "h", **fields: Any) -> Record:
    """Return a worker that joined."""
    return {
        "kind": "worker_added", "t": t, "worker": worker, "server_id": f"id-{worker}-{t}",
        "name": worker, "host": host, "nthreads": 1, "memory_limit": 2**31, **fields,
    }  # fmt: skip


def spread(n: int, size: int) -> float:
    """Return the time of the nth of some records, evenly within the run."""
    return RUN_SECONDS * n / size


def workers(size: int) -> Records:
    """Workers that only join."""
    for n in range(size):
        yield added(f"tcp://10.0.0.1:{n}", spread(n, size))


def busy_workers(size: int) -> Records:
    """Workers on hosts of their own that join, compute a task, are sampled twice and leave."""
    for n in range(size):
        address, t = f"tcp://host{n}:1", spread(n, size) / 2
        yield added(address, t, f"host{n}")
        yield from attempt(f"work-{n}", t, 100.0, address, n)
        for after in (10.0, 90.0):
            yield {
                "kind": "worker_sample", "t": t + after, "worker": address, "nthreads": 1,
                "processing": 1, "executing": 1, "memory_limit": 2**31, "last_seen": t + after,
                "metrics": {"cpu": 90.0, "memory": 10**9, "managed_bytes": 10**8},
            }  # fmt: skip
        yield {"kind": "worker_removed", "t": t + 400, "worker": address, "stimulus_id": "x-1"}


def worker_restarts(size: int) -> Records:
    """Joins and departures of one address."""
    for n in range(size):
        yield added("tcp://10.0.0.1:1", spread(n, size))
        yield {
            "kind": "worker_removed", "t": spread(n, size) + 0.001, "stimulus_id": "x-1",
            "worker": "tcp://10.0.0.1:1",
        }  # fmt: skip


def worker_statuses(size: int) -> Records:
    """Pauses of a worker."""
    yield added("w", 0.0)
    for n in range(size):
        status = "paused" if n % 2 else "running"
        payload = {"action": "worker-status-change", "prev-status": "x", "status": status}
        yield {
            "kind": "event", "t": spread(n, size), "topic": "w", "worker": "w",
            "payload": payload,
        }  # fmt: skip


def batch_jobs(size: int) -> Records:
    """Workers that each describe a batch job of their own."""
    for n in range(size):
        address = f"tcp://host{n}:1"
        yield added(address, 1.0, f"host{n}")
        variables = {"SLURM_JOB_ID": str(n), "SLURM_CPUS_PER_TASK": "2"}
        value = {
            "role": "worker", "pid": n, "machine": {"host": f"host{n}", "cores": 4},
            "variables": variables, "packages": "p",
        }  # fmt: skip
        yield {
            "kind": "environment", "t": 1.0, "section": "process", "name": "worker",
            "value": value, "worker": address, "server_id": f"id-{address}-1.0",
        }  # fmt: skip


def nested_spans(size: int) -> Records:
    """Spans that are each within the one before."""
    return spans(size, lambda n: n - 1)


def flat_spans(size: int) -> Records:
    """Spans within one span."""
    return spans(size, lambda _: 0)


def spans(size: int, parent: Callable[[int], int]) -> Records:
    """Spans with a task each; of the names of the outer ones, only the last are given."""
    yield added("w", 0.0)
    for n in range(size):
        within = {"parent_id": f"s{parent(n)}"} if n else {}
        yield {
            "kind": "span", "t": spread(n, size), "span_id": f"s{n}",
            "span_name": [f"name{n}"], **within,
        }  # fmt: skip
        yield from attempt(
            f"work-{n}", spread(n, size), RUN_SECONDS / size / 2, "w", n, span_id=f"s{n}"
        )


def prefixes(size: int) -> Records:
    """Prefixes and groups with a task each."""
    yield added("w", 0.0)
    for n in range(size):
        yield from attempt(f"work{n}-1", spread(n, size), RUN_SECONDS / size / 2, "w", n)


def datasets(size: int) -> Records:
    """Datasets with a file and a chunk each."""
    yield added("w", 0.0)
    for n in range(size):
        t, seconds = spread(n, size), RUN_SECONDS / size / 2
        chunk = {
            "kind": "chunk", "key": f"chunk-{n}", "dataset": f"set{n}", "filename": f"{n}.root",
            "treename": "Events", "entry_start": 0, "entry_stop": 1000,
        }  # fmt: skip
        yield from attempt(f"chunk-{n}", t, seconds, "w", n)
        yield chunk | {"t": t}
        measured = {
            "events": 1000, "open_seconds": 0.001, "process_seconds": seconds,
            "bytes_read": 1000, "columns": ["a"],
            "branches": [{"branch": "a", "compressed_bytes": 10, "uncompressed_bytes": 20}],
        }  # fmt: skip
        yield chunk | {
            "t": t + seconds, "run_id": n, "worker": "w", "thread": 1, "start_t": t,
            "stop_t": t + seconds, "measured": measured,
        }  # fmt: skip


def branches(size: int) -> Records:
    """Branches of one chunk."""
    yield added("w", 0.0)
    yield from attempt("chunk-1", 1.0, 5.0, "w", 1)
    chunk = {
        "kind": "chunk", "key": "chunk-1", "dataset": "d", "filename": "f.root",
        "treename": "Events", "entry_start": 0, "entry_stop": 1000,
    }  # fmt: skip
    yield chunk | {"t": 1.0}
    names = [f"b{n}" for n in range(size)]
    read = [{"branch": b, "compressed_bytes": 1, "uncompressed_bytes": 2} for b in names]
    yield chunk | {
        "t": 6.0, "run_id": 1, "worker": "w", "thread": 1, "start_t": 1.0, "stop_t": 6.0,
        "measured": {"events": 1000, "columns": names, "branches": read},
    }  # fmt: skip


def clients(size: int) -> Records:
    """Clients that send a graph, want its key and disconnect."""
    yield added("w", 0.0)
    for n in range(size):
        t, name = spread(n, size), f"Client-{n}"
        about = {"client": name, "stimulus_id": f"update-graph-{n}"}
        yield {"kind": "client_added", "t": t, "client": name}
        yield {"kind": "graph", "t": t, "client": name, "key": f"g{n}", "value": {"layers": []}}
        yield {"kind": "graph_update", "t": t, "nbytes": 1000, **about}
        yield {"kind": "computation", "t": t, "name": f"c{n}", **about}
        yield from attempt(f"work-{n}", t, RUN_SECONDS / size / 2, "w", n, **about)
        for action, at in (("desires", t), ("releases", t + 0.0001)):
            yield {
                "kind": "wanted_keys", "t": at, "client": name,
                "changes": [{"t": at, "action": action, "keys": [f"work-{n}"]}],
            }  # fmt: skip
        yield {"kind": "client_removed", "t": t + 0.0001, "client": name}


def topics(size: int) -> Records:
    """Events of topics of their own."""
    for n in range(size):
        payload = {"action": f"action{n}", "n": n}
        yield {"kind": "event", "t": spread(n, size), "topic": f"t{n}", "payload": payload}


def annotations(size: int) -> Records:
    """Tasks with annotations of their own, which restrict them."""
    yield added("w", 0.0, resources={"GPU": 1})
    for n in range(size):
        about = {"resources": {f"R{n}": 1}, "workers": [f"w{n}"], f"name{n}": n}
        yield from attempt(
            f"work-{n}", spread(n, size), RUN_SECONDS / size / 2, "w", n, annotations=about
        )


def chain(size: int) -> Records:
    """Tasks that each depend on the one before."""
    yield added("w", 0.0)
    for n in range(size):
        before = [f"work-{n - 1}"] if n else []
        yield from attempt(
            f"work-{n}", spread(n, size), RUN_SECONDS / size / 2, "w", n, dependencies=before
        )


def fan_in(size: int) -> Records:
    """A task that depends on all others."""
    yield added("w", 0.0)
    for n in range(size):
        yield from attempt(f"work-{n}", spread(n, size), RUN_SECONDS / size / 2, "w", n)
    names = [f"work-{n}" for n in range(size)]
    yield from attempt("sum-1", RUN_SECONDS, 5.0, "w", size, dependencies=names)


def attempts(size: int) -> Records:
    """Attempts at one task."""
    yield added("w", 0.0)
    yield {"kind": "task", "t": 0.0, "key": "work-1", "prefix": "work", "group": "work"}
    for n in range(size):
        yield from computed("work-1", spread(n, size), RUN_SECONDS / size / 2, "w", n)


def overlapping_attempts(size: int) -> Records:
    """Tasks that all run at the same time on one thread."""
    yield added("w", 0.0)
    for n in range(size):
        yield from attempt(f"work-{n}", n / size, RUN_SECONDS - 1, "w", n)


def deep_profile(size: int) -> Records:
    """A profile of a recursion."""
    yield added("w", 0.0)
    frames = [{"name": f"f{n}", "filename": "f.py", "line_number": n} for n in range(size)]
    part = {
        "start_t": 0.0, "stop_t": 1.0, "nodes": list(range(size)),
        "counts": [10] * size, "innermost": [0] * (size - 1) + [10],
    }  # fmt: skip
    tree = {
        "frames": frames, "parents": [None, *range(size - 1)],
        "node_frames": [None, *range(size - 1)], "line_numbers": [None, *range(size - 1)],
        "slices": [part],
    }  # fmt: skip
    yield {
        "kind": "profile", "t": 1.0, "worker": "w", "prefix": "work", "start_t": 0.0,
        "stop_t": 1.0, "interval_seconds": 0.1, "tree": tree,
    }  # fmt: skip


def wide_profile(size: int) -> Records:
    """A profile of many functions."""
    for record in deep_profile(size):
        if record["kind"] == "profile":
            record["tree"]["parents"] = [None] + [0] * (size - 1)
        yield record


def sections(size: int) -> Records:
    """Sections of one task, with names of their own."""
    yield added("w", 0.0)
    yield from attempt("work-1", 0.0, RUN_SECONDS, "w", 1)
    for n in range(size):
        t = spread(n, size)
        yield {
            "kind": "section", "t": t, "key": "work-1", "run_id": 1, "name": f"s{n}",
            "worker": "w", "thread": 1, "start_t": t, "stop_t": t + 0.001,
            "measured": {"cpu_seconds": 0.001},
        }  # fmt: skip


def headers(size: int) -> Records:
    """Traces that were appended to each other."""
    for n in range(size):
        yield {
            "kind": "header", "t": spread(n, size), "schema_version": SCHEMA_VERSION,
            "trace_id": f"T{n}", "segment": n + 1,
        }  # fmt: skip
        yield {
            "kind": "trailer", "t": spread(n, size), "segment": n + 1,
            "records_by_kind": {"header": 1}, "dropped_by_kind": {f"kind{n}": 1},
        }  # fmt: skip


def losses(size: int) -> Records:
    """Losses with reasons of their own."""
    for n in range(size):
        yield {
            "kind": "loss", "t": spread(n, size), "reason": f"reason {n}",
            "record_kind": f"kind{n}", "records": 1,
        }  # fmt: skip


def exceptions(size: int) -> Records:
    """Failed attempts with long texts of their own."""
    yield added("w", 0.0)
    for n in range(size):
        for record in attempt(f"work-{n}", spread(n, size), RUN_SECONDS / size / 2, "w", n):
            if record.get("finish") == "memory":
                text = f"ValueError('{n} {'x' * 10_000}')"
                record |= {"finish": "erred", "exception": text, "traceback": text}
                record["stimulus_id"] = "task-erred-1"
            yield record


def transfers(size: int) -> Records:
    """Transfers between workers of which each pair has one."""
    for n in range(size):
        yield added(f"w{n}", 0.0)
        yield {
            "kind": "transfer", "t": spread(n, size), "worker": f"w{n}", "source": f"w{n // 2}",
            "destination": f"w{n}", "start_t": spread(n, size), "stop_t": spread(n, size) + 10,
            "nbytes": 1000, "keys": {f"k{n}": 1000},
        }  # fmt: skip


def stalls(size: int) -> Records:
    """Overlapping stalls and spills of one worker."""
    yield added("w", 0.0)
    for n in range(size):
        t = spread(n, size)
        yield {"kind": "stall", "t": t + 5, "worker": "w", "start_t": t, "stop_t": t + 5}
        yield {
            "kind": "spill", "t": t, "worker": "w", "key": f"k{n}", "start": "memory",
            "finish": "disk", "nbytes": 1000, "measured": {"disk_bytes": 100},
        }  # fmt: skip


def fine_metrics(size: int) -> Records:
    """Fine metrics with activities of their own."""
    yield added("w", 0.0)
    for n in range(size):
        yield {
            "kind": "fine_metric", "t": spread(n, size), "worker": "w", "context": "execute",
            "span_id": "s", "prefix": f"p{n % 100}", "activity": f"a{n}", "unit": "seconds",
            "delta": 0.001,
        }  # fmt: skip


def client_activities(size: int) -> Records:
    """Activities of the client in functions of their own."""
    for n in range(size):
        t = spread(n, size)
        yield {
            "kind": "client_activity", "t": t, "client": "c", "start_t": t, "stop_t": t + 5,
            "activity": "own", "name": f"f{n}", "filename": "f.py",
        }  # fmt: skip


def functions(size: int) -> Records:
    """Imported functions that each call the next."""
    yield {
        "kind": "import", "t": 1.0, "name": "yappi", "source": "s",
        "records_by_kind": {"function": size},
    }  # fmt: skip
    for n in range(size):
        callee = {
            "index": n + 1, "calls": 1, "actual_calls": 1, "self_seconds": 0.1,
            "total_seconds": 0.1,
        }  # fmt: skip
        value = {
            "index": n, "line_number": 1, "builtin": False, "calls": 1, "actual_calls": 1,
            "self_seconds": 0.1, "total_seconds": 0.1, "callees": [callee],
        }  # fmt: skip
        yield {
            "kind": "function", "t": 1.0, "source": "s", "name": f"f{n}", "filename": "f.py",
            "value": value,
        }  # fmt: skip


def io_files(size: int) -> Records:
    """Imported logs with a file and a segment each."""
    for n in range(size):
        source = f"s{n}"
        about = {"t": 1.0, "source": source, "start_t": 1.0, "stop_t": 5.0}
        counts = {"io_file": 1, "io_segment": 1}
        yield {
            "kind": "import", "name": "darshan", "records_by_kind": counts, "pid": n,
            "value": {"job": {"jobid": n}}, **about,
        }  # fmt: skip
        measured = {"module": "POSIX", "rank": n, "reads": 1, "bytes_read": 5}
        yield {"kind": "io_file", "filename": f"f{n}", "measured": measured, **about}
        yield {
            "kind": "io_segment", "filename": f"f{n}", "host": f"h{n}", "activity": "read",
            "nbytes": 5, "measured": measured, **about,
        }  # fmt: skip


def worker_states(size: int) -> Records:
    """States of tasks on workers."""
    yield added("w", 0.0)
    for n in range(size):
        t, seconds, key = spread(n, size), RUN_SECONDS / size / 2, f"work-{n}"
        yield from attempt(key, t, seconds, "w", n)
        steps = (("released", "waiting"), ("waiting", "ready"), ("ready", "executing"))
        for start, finish in (*steps, ("executing", "memory")):
            yield {
                "kind": "worker_transition", "t": t, "worker": "w", "server_id": "id-w-0.0",
                "key": key, "start": start, "finish": finish, "stimulus_id": f"x-{t}",
            }  # fmt: skip


def processes(size: int) -> Records:
    """Facts and sheets of their own."""
    for n in range(size):
        about = {"kind": "environment", "t": 1.0}
        yield about | {"section": "configuration", "name": f"c{n}", "value": {"a": {"b": n}}}
        yield about | {"section": f"section{n}", "name": f"n{n}", "value": {"x": [n]}}


#: Records of a trace of a given size, and sizes at which it is still small and already large.
SHAPES: Final[dict[str, tuple[Callable[[int], Records], int]]] = {
    "workers": (workers, 200_000),
    "busy_workers": (busy_workers, 200_000),
    "worker_restarts": (worker_restarts, 100_000),
    "worker_statuses": (worker_statuses, 100_000),
    "batch_jobs": (batch_jobs, 100_000),
    "nested_spans": (nested_spans, 100_000),
    "flat_spans": (flat_spans, 100_000),
    "prefixes": (prefixes, 1_000_000),
    "datasets": (datasets, 100_000),
    "branches": (branches, 100_000),
    "clients": (clients, 100_000),
    "topics": (topics, 100_000),
    "annotations": (annotations, 1_000_000),
    "chain": (chain, 1_000_000),
    "fan_in": (fan_in, 1_000_000),
    "attempts": (attempts, 100_000),
    "overlapping_attempts": (overlapping_attempts, 100_000),
    "deep_profile": (deep_profile, 10_000),
    "wide_profile": (wide_profile, 100_000),
    "sections": (sections, 100_000),
    "headers": (headers, 100_000),
    "losses": (losses, 100_000),
    "exceptions": (exceptions, 100_000),
    "transfers": (transfers, 100_000),
    "stalls": (stalls, 100_000),
    "fine_metrics": (fine_metrics, 100_000),
    "client_activities": (client_activities, 100_000),
    "functions": (functions, 100_000),
    "io_files": (io_files, 100_000),
    "worker_states": (worker_states, 100_000),
    "processes": (processes, 100_000),
}


def write_shape(path: Path, name: str, size: int) -> None:
    """Write the trace of a shape."""
    make, _ = SHAPES[name]
    counts = Counter({"header": 1})
    header = {
        "kind": "header", "t": 0.0, "schema_version": SCHEMA_VERSION, "trace_id": "T",
        "segment": 1,
    }  # fmt: skip
    with path.open("w") as file:
        file.write(json.dumps(header) + "\n")
        for record in make(size):
            counts[record["kind"]] += 1
            file.write(json.dumps(record) + "\n")
        trailer = {
            "kind": "trailer", "t": RUN_SECONDS, "segment": 1, "records_by_kind": counts,
            "dropped_by_kind": {},
        }  # fmt: skip
        file.write(json.dumps(trailer) + "\n")
