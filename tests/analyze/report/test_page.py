import dataclasses
import json
import re
from html import unescape

import pytest

from roast_analyze import Trace
from roast_analyze.errors import NoRoom
from roast_analyze.report import data, page, write_report
from roast_analyze.report.listing import Listing

OPEN = ["timeline", "chunks", "workers", "failures"]
#: That of tasks is empty: their processes were not sampled.
FOLDED = [
    "inside-tasks", "core-time", "critical-path", "tasks", "activities", "spans", "inside",
    "memory", "scheduler", "what-if", "events", "environment", "loss",
]  # fmt: skip


@pytest.fixture
def small(worker, task, run, move, sample, chunk):
    """Return records of a run that fill each section."""
    identity = {"dataset": "Z", "filename": "z.root", "entry_start": 0, "entry_stop": 1000}
    measured = {
        "run_id": 1,
        "start_t": 1.0,
        "stop_t": 5.0,
        "cpu_seconds": 3.0,
        "branches": [{"branch": "x", "compressed_bytes": 1, "read_seconds": 0.5}],
    }
    section = {"kind": "section", "t": 5.0, "key": "P-1", "run_id": 1, "name": "jets"}
    return (
        {"kind": "environment", "t": 0.0, "section": "client versions", "name": "dask",
         "value": "2026.8.0"},
        worker("w1", memory_limit=4 * 1024**3),
        task("P-1", span_id="S"),
        chunk("P-1", **identity),
        task("a-2"),
        sample(1.0, server_id="id-w1-0.0", cpu=50.0, memory=1024**3, memory_limit=4 * 1024**3,
               nthreads=1),
        *run("P-1", 1.0, 5.0, run_id=1),
        chunk("P-1", **identity, **measured),
        {"kind": "span", "t": 0.0, "span_id": "S", "span_name": ["histograms"]},
        {"kind": "fine_metric", "t": 6.0, "worker": "w1", "context": "execute", "prefix": "P",
         "span_id": "S", "activity": "thread-cpu", "unit": "seconds", "delta": 3.0},
        {**section, "start_t": 1.0, "stop_t": 2.0},
        move(6.0, "a-2", "waiting>processing", worker="w1"),
        move(
            7.0, "a-2", "processing>erred", "task-erred-1.0", worker="w1",
            exception="ValueError()", traceback="File a.py, line 1",
        ),
        {"kind": "event", "t": 7.0, "topic": "mine", "payload": {"a": 1}},
    )  # fmt: skip


@pytest.mark.exhaustive
def test_topics_are_queried_one_by_one_if_memory_is_insufficient(
    open_trace, small, monkeypatch
):
    calls = []

    def observe(topic, name):
        query = topic.query

        def observed(trace):
            calls.append(name)
            if calls.count(name) == 1 and topic is data.findings:
                raise NoRoom("out of memory")
            return query(trace)

        monkeypatch.setattr(topic, "query", observed)

    observe(data.contexts, "context")
    observe(data.findings, "findings")
    gathered = data.query(open_trace(*small))

    assert gathered.context.run.workers == 1
    assert calls[-2:] == ["findings", "context"]


def test_every_section_is_filled_and_the_query_of_a_table_returns_its_rows(open_trace, small):
    trace = open_trace(*small, stop_t=10.0)
    gathered = data.query(trace)
    html = page.render(page.build(gathered, title="Tuesday & co"))

    assert "<h1><bdi>Tuesday &amp; co</bdi></h1>" in html
    assert "Time range" not in html
    assert "--from" not in html
    assert re.findall(r'<section id="([a-z-]+)"', html) == ["verdict", *OPEN, *FOLDED]
    assert re.findall(r'<section id="([a-z-]+)" [^>]+ class="folded"', html) == FOLDED
    assert re.findall(r'id="figure-([a-z-]+)" ', html) == [
        "timeline", "chunk-seconds", "headcount", "cpu", "core-time", "core-time-workers",
        "critical-path", "prefix-seconds", "durations",
        "activity-prefixes", "activity-workers", "spans", "memory", "scheduler",
        "submissions",
    ]  # fmt: skip
    assert re.findall(r'class="table" id="table-([a-z-]+)"', html) == [
        "datasets", "costs", "files", "branches", "chunks", "workers", "failures", "core-time",
        "critical-path-causes", "critical-path-steps", "roles", "prefixes",
        "activities", "activity-prefixes", "activity-workers", "spans", "sections",
        "topics", "events", "environment",
    ]  # fmt: skip
    assert 'id="snippet-again"' in html
    assert "pip install dask==2026.8.0" in html
    table = re.search(r'id="table-workers".*?</table>', html, re.DOTALL)[0]
    assert re.findall(r'<svg><title>(.*?)</title><path d="(.*?)"/></svg>(.*?)</td>', table) == [
        ("50 to 50\N{NO-BREAK SPACE}%", "M6 1h0", "50"),
        ("25 to 25\N{NO-BREAK SPACE}%", "M6 12h0", "25"),
    ]

    # The SQL that the page shows has public names only, and runs.
    shown = re.findall(r"In SQL .*?<pre>(.*?)</pre>", html, re.DOTALL)
    queries = [query for text in shown for query in unescape(text).split("; ")]
    assert len(queries) > 30
    assert not [query for query in queries if re.search(r"(?<![\w.'])_[a-z]|raw\.", query)]
    for query in queries:
        trace.sql(query)

    topics = (gathered, *(v for v in vars(gathered).values() if dataclasses.is_dataclass(v)))
    listings = [v for topic in topics for v in vars(topic).values() if isinstance(v, Listing)]
    assert len(listings) >= 26
    assert not [
        some.query for some in listings if not trace.sql(some.query).pl().equals(some.rows)
    ]


@pytest.mark.exhaustive
def test_a_trace_without_records(write_trace):
    with Trace(write_trace(name="a b'c.jsonl")) as trace:
        built = page.build(data.query(trace))
    reasons = {
        "core-time": "No worker joined while this was recorded",
        "timeline": "No task ran while this was recorded.",
        "chunks": "No chunks: no coffea work items",
        "inside-tasks": "No task computed while this was recorded.",
        "workers": "No worker joined while this was recorded.",
        "tasks": "No task was recorded.",
        "activities": "No fine performance metrics were recorded:",
        "spans": "The program named no spans,",
        "inside": "This trace contains no profile.",
        "memory": "No worker was sampled:",
        "scheduler": "No transition was recorded:",
        "what-if": "No task ran on a worker, so there is nothing to predict.",
        "events": "No Dask event was recorded:",
        "environment": "No facts about software and machines",
        "loss": "The trace is complete:",
    }
    empty = {section.name: section.empty for section in built.sections if section.empty}

    assert empty.keys() == reasons.keys()
    assert not [name for name, reason in reasons.items() if not empty[name].startswith(reason)]
    assert built.title == "a b'c.jsonl"
    assert built.command == "roast-analyze 'a b'\"'\"'c.jsonl' --html"


@pytest.mark.exhaustive
def test_a_recording_of_one_instant(build, worker, task, run):
    built = build(worker("w1"), task("a-1"), *run("a-1", 0.0, 0.0), stop_t=0.0)

    tiles = {tile.label: (tile.value, tile.hint) for tile in built.verdict.tiles}
    assert tiles["Workers"] == ("1", "at once")
    assert tiles["Core-seconds"] == ("0", "nothing computed")
    empty = {section.name: section.empty for section in built.sections}
    assert empty["scheduler"].startswith("All records have the same time, so there are no")


@pytest.mark.exhaustive
def test_the_report_of_a_truncated_trace_replaces_an_existing_file(
    tmp_path, write_trace, small
):
    whole = write_trace(*small).read_bytes()
    header, rest = whole[: len(whole) * 3 // 4].split(b"\n", 1)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(
        json.dumps({**json.loads(header), "utc_offset_seconds": 7200.0}).encode() + b"\n" + rest
    )
    path = tmp_path / "r.html"
    path.write_text("older")

    with Trace(cut) as trace:
        assert write_report(trace, path, title="New") == path

    assert not list(tmp_path.glob("*.part"))
    html = path.read_text()
    assert "<title>New · roast</title>" in html
    # In the time zone of the cluster.
    assert "Recorded from 1970-01-01 02:00:00 (UTC+02:00)" in html
    verdict = html[html.index('<section id="verdict"') : html.index('<section id="timeline"')]
    assert "The trace is incomplete" in verdict
    assert 'id="table-loss"' in html
