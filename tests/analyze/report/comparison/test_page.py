import re
from html.parser import HTMLParser

import pytest

from analyze.report.reading import plain, unpack
from roast_analyze import Trace
from roast_analyze.cli import main
from roast_analyze.open.database import documented_views
from roast_analyze.open.discover import group_by_trace
from roast_analyze.report import write_comparison
from roast_analyze.report.comparison import page
from roast_analyze.report.comparison.data import query
from roast_analyze.report.shell import render

HOSTILE = '<img src=x onerror="window.__pwned=1"><!--{{ 7*7 }}\'\u2028\u202e'


@pytest.fixture
def build(compare):
    """Build the page of traces of some records, given by name."""
    return lambda traces, title=None: page.build(compare(**traces), title=title)


class Page(HTMLParser):
    """Names of the elements of a page, and of the attributes that run code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names, self.handlers = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


@pytest.fixture
def full(worker, task, run, sample, chunk, fact):
    """Return records of a run that fill each section."""

    def full(text: str, seconds: float) -> list[dict]:
        entries = {"filename": text, "treename": "Events", "entry_start": 0, "entry_stop": 100}
        return [
            fact(HOSTILE, HOSTILE, text),
            worker(text),
            task("P-1", prefix=text),
            chunk("P-1", dataset=text, **entries),
            *run("P-1", 1.0, 1.0 + seconds, worker=text),
            sample(1.0, text, cpu=50.0, memory=2**30, memory_limit=2**31, nthreads=1),
        ]

    return full


@pytest.mark.exhaustive
def test_every_section_is_there_and_hostile_strings_stay_text(build, full):
    html = render(build({"a": full("x", 1.0), "b": full("y", 2.0)}))

    assert re.findall(r'<section id="([a-z-]+)"', html) == [
        "verdict", "reasons", "over-time", "compute", "differences", "traces",
    ]  # fmt: skip
    assert re.findall(r'id="figure-([a-z-]+)" ', html) == [
        "core-time", "computing", "cpu", "memory", "prefix-seconds", "dataset-seconds",
    ]  # fmt: skip
    assert re.findall(r'class="table" id="table-([a-z-]+)"', html) == [
        "time", "work", "reasons", "path", "prefixes", "datasets", "files", "differences",
        "traces",
    ]  # fmt: skip
    assert "<h1><bdi>a and b</bdi></h1>" in html
    headings = re.findall(
        r'data-column="(trace|completeness)".*?<button type="button">(.*?)<', html
    )
    assert {*headings} == {("trace", "trace"), ("completeness", "completeness")}

    traces = {HOSTILE: full(HOSTILE, 1.0), f"b{HOSTILE}": full(f"y{HOSTILE}", 2.0)}
    hostile = render(build(traces, title=HOSTILE))

    assert Page(hostile).names == Page(html).names
    assert Page(hostile).handlers == []
    assert "{{ 7*7 }}" in re.search(r"<h1>.*?</h1>", hostile)[0]
    figures = [
        unpack(text)
        for text in re.findall(
            r'<script type="application/octet-stream">(.*?)</script>', hostile
        )
    ]
    assert [len(figure["data"]) for figure in figures] == [2, 4, 4, 4, 2, 2]
    assert "<img" not in "".join(figures[0]["layout"]["yaxis"]["ticktext"])


@pytest.mark.exhaustive
def test_commands_and_units_of_tables(build, full, monkeypatch, tmp_path):
    built = build({"a b": full("x", 0.002), "c": full("x", 5.0)})
    monkeypatch.chdir(tmp_path)

    parts = [
        part
        for section in built.sections
        for part in (*section.tables, *section.plots)
        if section.name != "reasons"
    ]
    tables = {table.name: table for section in built.sections for table in section.tables}
    assert [row[-1].text for row in tables["traces"].rows] == [
        "roast-analyze 'a b.jsonl' --html",
        "roast-analyze c.jsonl --html",
    ]
    assert built.command == "roast-analyze 'a b.jsonl' c.jsonl --html"
    assert tables["reasons"].command == "roast-analyze why 'a b.jsonl' c.jsonl"
    opening = "roast-analyze view 'a b.jsonl' c.jsonl "
    assert main(["view", "a b.jsonl", "c.jsonl", "prefixes"]) == 0
    assert {part.command.removeprefix(opening) for part in parts} <= {
        view.name for view in documented_views()
    }
    # The numbers of all traces have one unit.
    prefixes = tables["prefixes"]
    assert [column.unit for column in prefixes.columns] == ["", "s", "s", "s"]
    assert [(cell.text, cell.beside) for cell in prefixes.rows[0]] == [
        ("x", None), ("<0.01", None), ("5.00", "×2,500"), ("+5.00", None),
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_a_time_range(write_trace, full):
    paths = [
        write_trace(*full("x", 5.0), name=f"{name}.jsonl", trace_id=name, stop_t=stop_t)
        for name, stop_t in {"a": 10.0, "b": 20.0}.items()
    ]
    found = query(group_by_trace(paths), lambda names: Trace(*names, start=2, stop=15))
    built = page.build(found)

    assert plain(built.sections[0].sentences[-1]) == (
        "Only a part of the runs is compared: time range 2 s to 10 s of a run of 10 s in a and "
        "time range 2 s to 15 s of a run of 20 s in b."
    )
    assert built.command == "roast-analyze a.jsonl b.jsonl --html --from 2 --to 15"
    tables = {table.name: table for section in built.sections for table in section.tables}
    assert tables["reasons"].command == "roast-analyze why a.jsonl b.jsonl --from 2 --to 15"
    assert tables["prefixes"].command == (
        "roast-analyze view a.jsonl b.jsonl prefixes --from 2 --to 15"
    )
    assert [row[-1].text for row in tables["traces"].rows] == [
        "roast-analyze a.jsonl --html --from 2",
        "roast-analyze b.jsonl --html --from 2 --to 15",
    ]


@pytest.mark.exhaustive
def test_empty_and_incomplete_traces(build):
    loss = {"kind": "loss", "t": 1.0, "reason": "late", "records": 3}
    built = build({"a": [], "b": [loss], "c": []})

    verdict, reasons, over_time, compute, differences, _ = built.sections
    assert built.title == "a and 2 more"
    assert [column.title for column in reasons.tables[0].columns] == ["term", "b", "c"]
    assert compute.empty == "None of these traces contains tasks or chunks."
    assert differences.empty.startswith("No facts about software, machines and settings")
    assert not verdict.plots
    assert [plot.name for plot in over_time.plots] == ["computing", "cpu", "memory"]
    _, work = verdict.tables
    assert [(row[-1].text, row[-1].tone) for row in work.rows] == [
        ("complete", "good"), ("incomplete", "bad"), ("complete", "good"),
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_the_page_is_written(tmp_path, write_trace, task):
    paths = [write_trace(task("x"), name=f"{n}.jsonl", trace_id=n) for n in "ab"]
    target = tmp_path / "page.html"

    assert write_comparison([(path,) for path in paths], target, title="T & T") == target

    assert not list(tmp_path.glob("*.part"))
    assert "<title>T &amp; T · roast</title>" in target.read_text()
