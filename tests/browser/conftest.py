"""Pages opened from a file in a real Chromium with its network cut off."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from roast_analyze import Trace


@dataclass
class Opened:
    """A page that is open, and what it did that it should not have done."""

    page: object
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def open_page(chromium) -> Iterator:
    """Open a file without network; a complaint or a request from it fails the test."""
    opened: list[Opened] = []

    def open_page(path: Path, **context) -> object:
        there = chromium.new_context(offline=True, **context)
        there.set_default_timeout(30_000)
        page = there.new_page()
        seen = Opened(page)
        opened.append(seen)
        page.on("console", lambda m: seen.complaints.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: seen.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: seen.complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith(("file:", "blob:")) else seen.requests.append(r.url)
            ),
        )
        page.goto(path.as_uri())
        page.locator("html[data-state=drawn]").wait_for(state="attached")
        return page

    yield open_page
    for one in opened:
        one.page.context.close()
        assert one.complaints == []
        assert one.requests == []


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The page of a trace: of a file, or of some records written to one."""
    folder = tmp_path_factory.mktemp("reports")

    def report(trace: Path | list[dict], name: str = "trace") -> Path:
        if isinstance(trace, list):
            lines = [json.dumps(record) + "\n" for record in [HEADER, *trace]]
            trace = folder / f"{name}.jsonl"
            trace.write_text("".join(lines))
        html = folder / f"{name}.html"
        if not html.exists():
            with Trace(trace) as opened:
                opened.report(html)
        return html

    return report


@pytest.fixture(scope="session")
def coffea_trace() -> Path:
    """The recorded coffea run with failures."""
    return Path(__file__).parents[2] / "sample_traces" / "coffea_failures.jsonl.zst"


HEADER = {"kind": "header", "t": 0.0, "schema_version": "2.0", "trace_id": "T", "segment": 1}

#: Tries to leave the script element, the attribute, the cell, the JSON and plotly's labels.
HOSTILE = (
    "</script></style></title><img src=x onerror=window.__pwned=1><svg/onload=window.__pwned=1>"
    "\"'`<a href='javascript:window.__pwned=1'>x</a><b>bold</b>{{7*7}}%{y}${7*7}"
    "\u2028\u202e\x00\r\n}]<!--"
)


def task_records(key: str, start: float, stop: float, end: dict, **about: object) -> list[dict]:
    """A task, sent to a worker and ended there."""
    worker = end.get("worker", "w1")
    parts = [{"action": "compute", "start": start, "stop": stop}]
    kind = {"kind": "transition", "key": key}
    return [
        {"kind": "task", "t": 0.0, "key": key, "prefix": key.partition("-")[0], **about},
        {**kind, "t": start, "start": "waiting", "finish": "processing", "worker": worker,
         "stimulus_id": "s", "run_id": 1},
        {**kind, "t": stop, "start": "processing", "finish": "memory", "thread": 1, "nbytes": 8,
         "stimulus_id": "task-finished-1", "worker": worker, "startstops": parts, **end},
    ]  # fmt: skip


@pytest.fixture(scope="session")
def hostile_records() -> list[dict]:
    """A run with a hostile string wherever a string can stand."""
    h, n = HOSTILE, "\N{RIGHT-TO-LEFT OVERRIDE}" + HOSTILE
    failed = {"finish": "erred", "stimulus_id": "task-erred-1", "worker": h, "exception": h,
              "traceback": h * 20}  # fmt: skip
    return [
        {"kind": "environment", "t": 0.0, "section": h, "name": h, "value": {h: [h]}},
        {"kind": "worker_added", "t": 0.0, "worker": h, "name": n, "server_id": h, "host": h,
         "nthreads": 1, "memory_limit": 4096},
        {"kind": "chunk", "t": 0.0, "key": h, "dataset": h, "filename": h, "treename": h,
         "entry_start": 0, "entry_stop": 10, "usermeta": {h: h}, "file_uuid": h},
        {"kind": "worker_sample", "t": 1.0, "worker": h, "server_id": h,
         "metrics": {"cpu": 50.0, "memory": 1024}, "memory_limit": 4096, "nthreads": 1},
        *task_records(h, 1.0, 2.0, failed, prefix=h, group=h, annotations={h: h}),
        *task_records(n, 2.0, 3.0, {"worker": h, "typename": h}, prefix=n),
        {"kind": "worker_removed", "t": 3.0, "worker": h, "server_id": h,
         "stimulus_id": "handle-worker-cleanup-3.0"},
        {"kind": "event", "t": 3.0, "topic": h, "worker": h, "payload": {h: h}},
        {"kind": "loss", "t": 3.0, "reason": h, "detail": h, "records": 1, "record_kind": h},
    ]  # fmt: skip
