import base64
import gzip
import hashlib
import html as html_lib
import json
import re
from html.parser import HTMLParser

import pytest

from roast_analyze import Trace
from roast_analyze.report import data, page, write_report

HOSTILE = '</script><img src=x onerror="window.__pwned=1"><!--{{ 7*7 }}\'\u2028\u202e\x00'
SECTIONS = [
    "timeline",
    "chunks",
    "workers",
    "tasks",
    "inside",
    "memory",
    "scheduler",
    "failures",
    "environment",
    "loss",
]


class Elements(HTMLParser):
    """Names of the elements of a page, its scripts and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.scripts: list[tuple[dict, str]] = []
        self.handlers: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, text):
        if self.lasttag == "script" and self.scripts and not self.scripts[-1][1]:
            self.scripts[-1] = (self.scripts[-1][0], text)


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
def html(open_trace):
    """The page of a whole trace around some records."""

    def html(*records, title=None, stop_t=10.0):
        built = page.build(data.gather(open_trace(*records, stop_t=stop_t)), title=title)
        return page.render(built)

    return html


def test_every_section_is_there_and_filled(html, small):
    text = html(*small)

    assert re.findall(r'<section id="([a-z]+)"', text) == ["verdict", *SECTIONS]
    assert re.findall(r'id="figure-([a-z-]+)" ', text) == [
        "timeline",
        "chunk-seconds",
        "headcount",
        "cpu",
        "prefix-seconds",
        "durations",
        "memory",
        "scheduler",
        "submissions",
    ]
    assert re.findall(r'class="table" id="table-([a-z-]+)"', text) == [
        "datasets",
        "costs",
        "files",
        "branches",
        "chunks",
        "workers",
        "roles",
        "prefixes",
        "sections",
        "failures",
        "topics",
        "events",
        "environment",
    ]


def test_the_page_allows_nothing_but_its_own_scripts_and_plotly(html, small):
    scripts = Elements(html(*small)).scripts
    first, last = (text.encode() for attrs, text in scripts if not attrs)
    (packed,) = (text for attrs, text in scripts if attrs.get("id") == "plotly-gzip-base64")
    plotly = gzip.decompress(base64.b64decode(packed))

    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html(*small))[1]

    def sha256(script):
        return base64.b64encode(hashlib.sha256(script).digest()).decode()

    assert policy.replace("&#39;", "'") == (
        f"default-src 'none'; script-src 'sha256-{sha256(first)}' 'sha256-{sha256(last)}' "
        f"'sha256-{sha256(plotly)}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_hostile_strings_stay_text(html, small, hostile):
    harmless, attacked = Elements(html(*small)), Elements(html(*hostile, title=HOSTILE))

    assert set(attacked.names) <= set(harmless.names) | {"details", "a"}
    assert attacked.names.count("script") == harmless.names.count("script")
    assert attacked.handlers == []
    assert "49" not in re.findall(r"<h1>.*?</h1>", html(title="{{ 7*7 }}"), re.DOTALL)[0]


def test_figures_read_back_as_they_were(html, hostile):
    _, lanes, *figures = [
        json.loads(gzip.decompress(base64.b64decode(text)))
        for attrs, text in Elements(html(*hostile)).scripts
        if "type" in attrs and attrs.get("id") != "plotly-gzip-base64"
    ]

    # Text on a canvas is text; plotly has a markup of its own.
    name = '</script><img src=x onerror="window.__pwned=1"><!--{{ 7*7 }}\'⟨U+2028⟩⟨U+202E⟩␀'
    assert lanes["marks"]["keys"] == [name]
    points = next(trace for trace in figures[0]["data"] if trace.get("customdata"))
    assert html_lib.escape(name, quote=False) in points["customdata"][0]
    assert len(figures) == 8


def test_the_title_is_the_name_of_the_trace_or_what_one_says(html):
    assert "<h1><bdi>trace.jsonl</bdi></h1>" in html()
    assert "<h1><bdi>Tuesday &amp; co</bdi></h1>" in html(title="Tuesday & co")


def test_commands_quote_the_name_of_the_trace(write_trace, task):
    with Trace(write_trace(task("a-1"), name="a b'c.jsonl")) as trace:
        built = page.build(data.gather(trace))

    assert built.command == "roast-analyze 'a b'\"'\"'c.jsonl' --html"


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("timeline", "No task ran"),
        ("chunks", "No chunks"),
        ("workers", "No worker was seen"),
        ("tasks", "No task was seen"),
        ("inside", "No profile is in this trace"),
        ("memory", "The workers were never sampled"),
        ("scheduler", "No transition was recorded"),
        ("environment", "No facts"),
        ("loss", "The trace is whole"),
    ],
)
def test_an_empty_section_says_why(open_trace, section, says):
    built = page.build(data.gather(open_trace()))

    assert next(s for s in built.sections if s.name == section).empty.startswith(says)


def test_a_recording_of_one_instant_says_that_nothing_has_a_rate(open_trace, worker, task, run):
    records = worker("w1"), task("a-1"), *run("a-1", 0.0, 0.0)

    built = page.build(data.gather(open_trace(*records, stop_t=0.0)))

    scheduler = next(s for s in built.sections if s.name == "scheduler")
    assert scheduler.empty == "All was recorded at one instant, so that nothing has a rate."
    tiles = {tile.label: (tile.value, tile.hint) for tile in built.verdict.tiles}
    assert tiles["Workers"] == ("1", "at once")
    assert tiles["Core-seconds"] == ("0", "nothing computed")


def test_a_run_without_workers(html, task, run):
    assert "No worker was seen" in html(task("a-1"), *run("a-1", 1.0, 2.0))


def test_a_run_without_a_cluster(open_trace, worker, chunk):
    def made(key, run_id, start, **fields):
        about = {"dataset": "DY", "filename": f"{key}.root", "worker": "pid:1", "thread": 1}
        entries = {"entry_start": 0, "entry_stop": 10, "run_id": run_id}
        return chunk(key, **about, **entries, start_t=start, stop_t=start + 2.0, **fields)

    built = page.build(
        data.gather(
            open_trace(
                worker("pid:1"),
                made("a", 1, 1.0, exception="OSError()"),
                made("a", 2, 4.0, events=10),
                made("b", 3, 6.0, events=10),
            )
        )
    )

    told = {section.name: section for section in built.sections}
    text = f"{built.verdict.done} {built.verdict.went}".replace("\N{NO-BREAK SPACE}", " ")
    assert text == (
        "2 chunks, 20 events, in 7 s on 1 worker (1 thread): 2.86 events/s. "
        "The cores computed for 6 % of the time that they were there. 1 failure."
    )
    assert told["timeline"].timeline.query == "SELECT * FROM chunks ORDER BY processing_t"
    assert [table.name for table in told["chunks"].tables] == [
        "datasets", "costs", "files", "chunks",
    ]  # fmt: skip
    assert told["tasks"].empty.endswith("Without a cluster, chunks are no tasks.")
    assert len(told["failures"].tables[0].rows) == 1


def test_a_run_of_nothing_but_failures(html, task, move):
    text = html(
        task("a-1"),
        move(1.0, "a-1", "waiting>processing", worker="w1"),
        move(2.0, "a-1", "processing>erred", "task-erred-1.0", exception="E()"),
    )

    assert "task failed for good" in text
    assert 'id="table-failures"' in text


def test_a_trace_cut_short_says_so_on_top(tmp_path, write_trace, small):
    whole = write_trace(*small).read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[: len(whole) * 3 // 4])

    with Trace(cut) as trace:
        text = write_report(trace, tmp_path / "cut.html").read_text()

    verdict = text[text.index('<section id="verdict"') : text.index('<section id="timeline"')]
    assert "The trace is not whole" in verdict
    assert 'id="table-loss"' in text


def test_the_size_of_the_page_does_not_grow_with_the_run(html, task, run, worker, chunk):
    def of(tasks):
        records = [worker("w1")]
        for i in range(tasks):
            key = f"P-{i:06}-{'long' * 50}"
            identity = {"dataset": f"D{i % 3}", "filename": f"{'folder/' * 30}{i:06}.root"}
            branches = [{"branch": f"{'b' * 50}{i % 5000}", "compressed_bytes": i}]
            records += [task(key), *run(key, i / 100, i / 100 + 0.009, run_id=i)]
            records.append(chunk(key, entry_start=0, entry_stop=i, **identity))
            records.append(chunk(key, run_id=i, branches=branches, **identity))
            name = f"{'s' * 50}{i % 5000}"
            section = {"kind": "section", "t": 0.0, "key": key, "run_id": i, "name": name}
            records.append({**section, "start_t": 0.0, "stop_t": 1.0})
        return len(html(*records, stop_t=tasks / 100))

    few, many = of(6000), of(12_000)

    assert many < 1.02 * few
    assert many < 4_000_000


def test_a_report_replaces_an_older_one_and_leaves_nothing_else(tmp_path, open_trace, task):
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
        built = page.build(data.gather(trace))

    assert built.started == "1970-01-01 02:00:00 (UTC+02:00)"


def test_the_page_says_whose_clock_it_goes_by(html):
    assert "Recorded from 1970-01-01 00:00:00 (UTC) on the cluster's clock" in html()


def test_a_worker_has_small_pictures_that_say_what_they_show(html, small):
    table = re.search(r'id="table-workers".*?</table>', html(*small), re.DOTALL)[0]

    pictures = re.findall(r'<svg><title>(.*?)</title><path d="(.*?)"/></svg>(.*?)</td>', table)
    said = [title.replace("\N{NO-BREAK SPACE}", " ") for title, _, _ in pictures]
    assert said == ["50 to 50 %", "25 to 25 %"]
    assert [(path, text) for _, path, text in pictures] == [("M6 1h0", "50"), ("M6 12h0", "25")]


def test_movement_is_shown_if_something_moved(open_trace, worker, task, move):
    parts = [{"action": "transfer", "start": 1.0, "stop": 1.5, "source": "w2"}]
    fetched = move(
        2.0, "a-1", "processing>memory", "task-finished-1", worker="w1", startstops=parts
    )
    built = page.build(
        data.gather(open_trace(worker("w1"), worker("w2"), task("a-1"), fetched))
    )

    memory = next(section for section in built.sections if section.name == "memory")
    assert [plot.name for plot in memory.plots] == ["movement"]
    assert [[cell.text for cell in row] for row in memory.tables[0].rows] == [
        ["w2", "w1", "1", "0.500"]
    ]
    assert memory.sentences[1].endswith("How many bytes these were was not recorded.")


def test_task_groups_and_stragglers_are_shown_if_they_tell_more(open_trace, task, run):
    attempts = []
    for i in range(12):
        group = f"a-{i % 2}"
        attempts += [
            task(f"a-{i}", group=group),
            *run(f"a-{i}", 0.0, 1.0 + 9 * (i == 7), run_id=i),
        ]

    built = page.build(data.gather(open_trace(*attempts)))

    tasks = next(section for section in built.sections if section.name == "tasks")
    shown = {table.name: [row[0].text for row in table.rows] for table in tasks.tables}
    assert shown == {"prefixes": ["a"], "task-groups": ["a-1", "a-0"], "stragglers": ["a-7"]}


def test_how_to_run_it_again_is_text_to_copy(html):
    fact = {"section": "client versions", "name": "dask", "value": "2026.8.0"}

    text = html({"kind": "environment", "t": 0.0, **fact})

    assert 'id="snippet-again"' in text
    assert "pip install dask==2026.8.0" in text
