import html as html_lib
import json
import re

import pytest

from roast_analyze import Trace
from roast_analyze.report import data, page, write_report
from roast_analyze.report.listing import Listing

HOSTILE = '</script><img src=x onerror="window.__pwned=1"><!--{{ 7*7 }}\'\u2028\u202e\x00'
SECTIONS = ["timeline", "chunks", "workers", "tasks", "inside", "memory", "scheduler",
            "failures", "environment", "loss"]  # fmt: skip


@pytest.fixture
def small(worker, task, run, move, sample, chunk):
    """Records of a run that has something for each section."""
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
        {"kind": "environment", "t": 0.0, "section": "scheduler", "name": "host", "value": "h"},
        worker("w1", memory_limit=4 * 1024**3),
        task("P-1"),
        chunk("P-1", **identity),
        task("a-2"),
        sample(1.0, server_id="id-w1-0.0", cpu=50.0, memory=1024**3, memory_limit=4 * 1024**3,
               nthreads=1),
        *run("P-1", 1.0, 5.0, run_id=1),
        chunk("P-1", **identity, **measured),
        {**section, "start_t": 1.0, "stop_t": 2.0},
        move(6.0, "a-2", "waiting>processing", worker="w1"),
        move(
            7.0, "a-2", "processing>erred", "task-erred-1.0", worker="w1",
            exception="ValueError()", traceback="File a.py, line 1",
        ),
        {"kind": "event", "t": 7.0, "topic": "mine", "payload": {"a": 1}},
    )  # fmt: skip


@pytest.fixture
def hostile(worker, task, move, sample, chunk):
    """The same with a hostile string wherever a string can be."""
    parts = [{"action": "compute", "start": 1.0, "stop": 2.0}]
    return (
        {"kind": "environment", "t": 0.0, "section": HOSTILE, "name": HOSTILE,
         "value": HOSTILE},
        worker(HOSTILE, name=HOSTILE, host=HOSTILE, server_id=HOSTILE),
        task(HOSTILE, prefix=HOSTILE, group=HOSTILE),
        chunk(HOSTILE, dataset=HOSTILE, filename=HOSTILE, treename=HOSTILE,
              entry_start=0, entry_stop=10, usermeta={HOSTILE: HOSTILE}),
        sample(1.0, HOSTILE, cpu=50.0, memory=1024, memory_limit=2048, nthreads=1),
        move(1.0, HOSTILE, "waiting>processing", worker=HOSTILE, run_id=1),
        move(2.0, HOSTILE, "processing>erred", "task-erred-1.0", worker=HOSTILE, thread=1,
             startstops=parts, exception=HOSTILE, traceback=HOSTILE),
        chunk(HOSTILE, run_id=1, worker=HOSTILE, dataset=HOSTILE, filename=HOSTILE,
              start_t=1.0, stop_t=2.0, source=HOSTILE, until=HOSTILE,
              columns=[HOSTILE], branches=[{"branch": HOSTILE, "compressed_bytes": 1}],
              exception=HOSTILE),
        {"kind": "section", "t": 2.0, "key": HOSTILE, "run_id": 1, "name": HOSTILE,
         "start_t": 1.0, "stop_t": 2.0, "exception": HOSTILE},
        {"kind": "event", "t": 2.0, "topic": HOSTILE, "worker": HOSTILE,
         "payload": {"x": HOSTILE}},
        {"kind": "loss", "t": 2.0, "reason": HOSTILE, "detail": HOSTILE, "records": 1},
    )  # fmt: skip


@pytest.fixture
def html(build):
    """The page of a trace of some records."""
    return lambda *records, **options: page.render(build(*records, **options))


def test_every_section_is_there_and_filled(html, small):
    text = html(*small)

    assert re.findall(r'<section id="([a-z]+)"', text) == ["verdict", *SECTIONS]
    assert re.findall(r'id="figure-([a-z-]+)" ', text) == [
        "timeline", "chunk-seconds", "headcount", "cpu", "prefix-seconds", "durations",
        "memory", "scheduler", "submissions",
    ]  # fmt: skip
    assert re.findall(r'class="table" id="table-([a-z-]+)"', text) == [
        "datasets", "costs", "files", "branches", "chunks", "workers", "roles", "prefixes",
        "sections", "failures", "topics", "events", "environment",
    ]  # fmt: skip


def test_hostile_strings_stay_text(html, small, hostile, parsed):
    harmless, attacked = parsed(html(*small)), parsed(html(*hostile, title=HOSTILE))

    assert set(attacked.names) <= set(harmless.names) | {"details", "a"}
    assert attacked.names.count("script") == harmless.names.count("script")
    assert attacked.handlers == []
    assert "49" not in re.findall(r"<h1>.*?</h1>", html(title="{{ 7*7 }}"), re.DOTALL)[0]


def test_figures_are_json(html, hostile, unpack, parsed):
    _, lanes, *figures = [
        unpack(text)
        for attrs, text in parsed(html(*hostile)).scripts
        if "type" in attrs and attrs.get("id") != "plotly-gzip-base64"
    ]

    # Canvases show text as it is, but plotly interprets markup.
    name = '</script><img src=x onerror="window.__pwned=1"><!--{{ 7*7 }}\'⟨U+2028⟩⟨U+202E⟩␀'
    assert lanes["marks"]["keys"] == [name]
    points = next(trace for trace in figures[0]["data"] if trace.get("customdata"))
    assert html_lib.escape(name, quote=False) in points["customdata"][0]
    assert len(figures) == 8


def test_the_title(html):
    assert "<h1><bdi>trace.jsonl</bdi></h1>" in html()
    assert "<h1><bdi>Tuesday &amp; co</bdi></h1>" in html(title="Tuesday & co")


def test_commands_quote_the_name_of_the_trace(write_trace, task):
    with Trace(write_trace(task("a-1"), name="a b'c.jsonl")) as trace:
        built = page.build(data.query(trace))

    assert built.command == "roast-analyze 'a b'\"'\"'c.jsonl' --html"


def test_empty_sections_have_a_reason(build):
    reasons = {
        "timeline": "No task ran while this was recorded.",
        "chunks": "No chunks: no coffea work items",
        "workers": "No worker joined while this was recorded.",
        "tasks": "No task was recorded.",
        "inside": "This trace contains no profile.",
        "memory": "No worker was sampled:",
        "scheduler": "No transition was recorded:",
        "environment": "No facts about software and machines",
        "loss": "The trace is complete:",
    }

    empty = {section.name: section.empty for section in build().sections if section.empty}

    assert empty.keys() == reasons.keys()
    assert not [name for name, reason in reasons.items() if not empty[name].startswith(reason)]


def test_a_recording_of_one_instant(build, worker, task, run):
    built = build(worker("w1"), task("a-1"), *run("a-1", 0.0, 0.0), stop_t=0.0)

    tiles = {tile.label: (tile.value, tile.hint) for tile in built.verdict.tiles}
    assert tiles["Workers"] == ("1", "at once")
    assert tiles["Core-seconds"] == ("0", "nothing computed")


def test_the_query_of_a_listing_returns_its_rows(open_trace, worker, task, run):
    trace = open_trace(worker("w1"), task("a-1"), *run("a-1", 1.0, 3.0))
    gathered = data.query(trace)
    topics = (gathered, *vars(gathered).values())
    listings = [v for topic in topics for v in vars(topic).values() if isinstance(v, Listing)]

    assert len(listings) >= 22
    assert not [
        some.query for some in listings if not trace.sql(some.query).pl().equals(some.rows)
    ]
    (view,) = (view for view in trace.views() if view.name == "task_runs")
    comments = {column.name: column.comment for column in view.columns}
    assert gathered.context.comments["task_runs"] == comments


def test_a_truncated_trace_is_incomplete(tmp_path, write_trace, small):
    whole = write_trace(*small).read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[: len(whole) * 3 // 4])

    with Trace(cut) as trace:
        text = write_report(trace, tmp_path / "cut.html").read_text()

    verdict = text[text.index('<section id="verdict"') : text.index('<section id="timeline"')]
    assert "The trace is incomplete" in verdict
    assert 'id="table-loss"' in text


def test_a_report_replaces_an_existing_file(tmp_path, open_trace, task):
    path = tmp_path / "report" / "r.html"
    path.parent.mkdir()
    path.write_text("older")

    assert write_report(open_trace(task("a-1")), path, title="New") == path

    assert [file.name for file in path.parent.iterdir()] == ["r.html"]
    assert "<title>New · roast</title>" in path.read_text()


def test_times_are_in_the_zone_of_the_cluster(tmp_path):
    header = {
        "kind": "header",
        "t": 0.0,
        "schema_version": "2.0",
        "trace_id": "T",
        "segment": 1,
    }
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({**header, "utc_offset_seconds": 7200.0}) + "\n")

    with Trace(path) as trace:
        built = page.build(data.query(trace))

    assert built.started == "1970-01-01 02:00:00 (UTC+02:00)"


def test_sparklines_on_the_page(html, small):
    table = re.search(r'id="table-workers".*?</table>', html(*small), re.DOTALL)[0]

    assert [
        (title.replace("\N{NO-BREAK SPACE}", " "), curve, text)
        for title, curve, text in re.findall(
            r'<svg><title>(.*?)</title><path d="(.*?)"/></svg>(.*?)</td>', table
        )
    ] == [("50 to 50 %", "M6 1h0", "50"), ("25 to 25 %", "M6 12h0", "25")]


def test_the_rerun_script_is_a_snippet(html):
    fact = {"section": "client versions", "name": "dask", "value": "2026.8.0"}

    text = html({"kind": "environment", "t": 0.0, **fact})

    assert 'id="snippet-again"' in text
    assert "pip install dask==2026.8.0" in text
