"""Records of small traces for the tests of pages."""

HEADER = {"kind": "header", "t": 0.0, "schema_version": "2.0", "trace_id": "T", "segment": 1}

#: Tries to break out of script elements, attributes, cells, JSON and plotly's labels.
HOSTILE = (
    "</script></style></title><img src=x onerror=window.__pwned=1><svg/onload=window.__pwned=1>"
    "\"'`<a href='javascript:window.__pwned=1'>x</a><b>bold</b>{{7*7}}%{y}${7*7}"
    "\u2028\u202e\x00\r\n}]<!--"
)


def worker(address: str = "w1", **fields) -> dict:
    return {"kind": "worker_added", "t": 0.0, "worker": address,
            "server_id": address, "name": address, "nthreads": 1, **fields}  # fmt: skip


def task(key: str, start: float, stop: float, **end) -> list[dict]:
    """Return the records of a task that a worker computed from start to stop.

    It was sent at the start, unless ``sent`` is given.
    """
    sent = end.pop("sent", start)
    known = {"prefix": end.pop("prefix", key.partition("-")[0])}
    known |= {"span_id": end.pop("span_id")} if "span_id" in end else {}
    moved = {"kind": "transition", "key": key, "worker": end.get("worker", "w1"), "run_id": 1}
    parts = [{"action": "compute", "start": start, "stop": stop}]
    return [
        {"kind": "task", "t": 0.0, "key": key, **known},
        {**moved, "t": sent, "start": "waiting", "finish": "processing", "stimulus_id": "s"},
        {**moved, "t": stop, "start": "processing", "finish": "memory", "thread": 1,
         "nbytes": 8, "stimulus_id": "task-finished-1", "startstops": parts, **end},
    ]  # fmt: skip


FAILED = {"finish": "erred", "stimulus_id": "task-erred-1", "exception": "E()"}


def hostile_records() -> list[dict]:
    """Return a run with a hostile string wherever a string can be."""
    h, n = HOSTILE, "\N{RIGHT-TO-LEFT OVERRIDE}" + HOSTILE
    failed = {**FAILED, "worker": h, "exception": h, "traceback": h * 20}
    chunk = {"kind": "chunk", "key": h, "dataset": h, "filename": h, "treename": h,
             "entry_start": 0, "entry_stop": 10}  # fmt: skip
    passed = {"t": 2.0, "run_id": 1, "start_t": 1.0, "stop_t": 2.0, "exception": h}
    branches = [{"branch": h, "compressed_bytes": 1}]
    return [
        {"kind": "environment", "t": 0.0, "section": h, "name": h, "value": {h: [h]}},
        worker(h, name=n, host=h, memory_limit=4096),
        {**chunk, "t": 0.0, "usermeta": {h: h}, "file_uuid": h},
        {"kind": "worker_sample", "t": 1.0, "worker": h, "server_id": h,
         "metrics": {"cpu": 50.0, "memory": 1024}, "memory_limit": 4096, "nthreads": 1},
        *task(h, 1.0, 2.0, prefix=h, span_id=h, **failed),
        {**chunk, **passed, "worker": h,
         "measured": {"source": h, "until": h, "columns": [h], "branches": branches}},
        {"kind": "section", "key": h, "name": h, **passed},
        *task(n, 2.0, 3.0, prefix=n, worker=h, typename=h),
        {"kind": "worker_removed", "t": 3.0, "worker": h, "server_id": h,
         "stimulus_id": "handle-worker-cleanup-3.0"},
        {"kind": "span", "t": 0.0, "span_id": h, "span_name": [h]},
        {"kind": "fine_metric", "t": 3.0, "worker": h, "context": h, "span_id": h,
         "prefix": h, "activity": h, "unit": "seconds", "delta": 1.0},
        {"kind": "fine_metric", "t": 3.0, "worker": h, "context": "execute", "span_id": h,
         "prefix": h, "activity": h, "unit": "seconds", "delta": 1.0},
        {"kind": "event", "t": 3.0, "topic": h, "worker": h, "payload": {h: h}},
        {"kind": "loss", "t": 3.0, "reason": h, "detail": h, "records": 1, "record_kind": h},
        {"kind": "profile", "t": 3.0, "start_t": 0.0, "stop_t": 3.0, "interval_seconds": 0.01,
         "server_id": h, "worker": h, "prefix": h, "tree": {
             "frames": [{"name": f"{h}()", "filename": h, "line_number": 1}],
             "parents": [None, 0], "node_frames": [0, 0],
             "slices": [{"start_t": 0.0, "stop_t": 3.0, "nodes": [0, 1], "counts": [5, 5]}]}},
    ]  # fmt: skip
