import re

import pytest

from roast_analyze.report import write_comparison
from roast_analyze.report.comparison import page

HOSTILE = '<img src=x onerror="window.__pwned=1"><!--{{ 7*7 }}\'\u2028\u202e'


@pytest.fixture
def build(compare):
    """Build the page of traces of some records, given by name."""
    return lambda traces, title=None: page.build(compare(**traces), title=title)


@pytest.fixture
def full(worker, task, run, sample, chunk):
    """Records of a run that has something for each section."""

    def full(text: str, seconds: float) -> list[dict]:
        entries = {"filename": text, "treename": "Events", "entry_start": 0, "entry_stop": 100}
        return [
            {
                "kind": "environment",
                "t": 0.0,
                "section": HOSTILE,
                "name": HOSTILE,
                "value": text,
            },
            worker(text),
            task("P-1", prefix=text),
            chunk("P-1", dataset=text, **entries),
            *run("P-1", 1.0, 1.0 + seconds, worker=text),
            sample(1.0, text, cpu=50.0, memory=2**30, memory_limit=2**31, nthreads=1),
        ]

    return full


def test_every_section_is_there_and_filled(build, full):
    html = page.render(build({"a": full("x", 1.0), "b": full("y", 2.0)}))

    assert re.findall(r'<section id="([a-z-]+)"', html) == [
        "verdict", "over-time", "compute", "differences", "traces",
    ]  # fmt: skip
    assert re.findall(r'id="figure-([a-z-]+)" ', html) == [
        "core-time", "computing", "cpu", "memory", "prefix-seconds", "dataset-seconds",
    ]  # fmt: skip
    assert re.findall(r'class="table" id="table-([a-z-]+)"', html) == [
        "time", "work", "prefixes", "datasets", "files", "differences", "traces",
    ]  # fmt: skip
    assert "<h1><bdi>a and b</bdi></h1>" in html


def test_commands_for_the_report_of_each_trace(build):
    built = build({"a b": [], "c": []})

    (traces,) = (section.tables[0] for section in built.sections if section.name == "traces")
    assert [row[-1].text for row in traces.rows] == [
        "roast-analyze 'a b.jsonl' --html",
        "roast-analyze c.jsonl --html",
    ]
    assert built.command == "roast-analyze 'a b.jsonl' c.jsonl --html"


def test_commands_open_all_of_the_traces(build, full, monkeypatch, tmp_path):
    from roast_analyze.cli import main

    built = build({"a": full("x", 1.0), "b": full("y", 2.0)})
    monkeypatch.chdir(tmp_path)

    commands = {
        part.command for section in built.sections for part in (*section.tables, *section.plots)
    }
    assert "roast-analyze view a.jsonl b.jsonl prefixes" in commands
    for command in commands:
        assert main(command.split()[1:]) == 0


def test_empty_traces(build):
    built = build({"a": [], "b": [], "c": []})
    html = page.render(built)

    assert built.title == "a and 2 more"
    assert "None of these traces contains tasks or chunks." in html
    assert "No facts about software, machines and settings" in html
    assert [plot.name for section in built.sections for plot in section.plots] == [
        "computing", "cpu", "memory",
    ]  # fmt: skip


def test_hostile_strings_stay_text(build, full, parsed):
    harmless = parsed(page.render(build({"a": full("x", 1.0), "b": full("y", 2.0)})))
    html = page.render(
        build(
            {HOSTILE: full(HOSTILE, 1.0), f"b{HOSTILE}": full(f"y{HOSTILE}", 2.0)},
            title=HOSTILE,
        )
    )

    attacked = parsed(html)
    assert attacked.names == harmless.names
    assert attacked.handlers == []
    assert "{{ 7*7 }}" in re.search(r"<h1>.*?</h1>", html)[0]


def test_one_unit_for_the_numbers_of_all_traces(build, full):
    built = build({"a": full("x", 0.002), "b": full("x", 5.0)})

    (table,) = (
        table for section in built.sections for table in section.tables
        if table.name == "prefixes"
    )  # fmt: skip
    assert [column.unit for column in table.columns] == ["", "s", "s", "s"]
    assert [(cell.text, cell.beside) for cell in table.rows[0]] == [
        ("x", None), ("<0.01", None), ("5.00", "×2,500"), ("+5.00", None),
    ]  # fmt: skip


def test_the_page_is_written(tmp_path, write_trace, task):
    paths = [write_trace(task("x"), name=f"{n}.jsonl", trace_id=n) for n in "ab"]
    target = tmp_path / "out" / "page.html"
    target.parent.mkdir()

    assert write_comparison([(path,) for path in paths], target, title="T & T") == target

    assert [file.name for file in target.parent.iterdir()] == ["page.html"]
    assert "<title>T &amp; T · roast</title>" in target.read_text()


def test_figures_are_json(build, full, unpack):
    html = page.render(build({"a": full("x", 1.0), "b<b>": full("y", 2.0)}))

    figures = [
        unpack(text)
        for text in re.findall(r'<script type="application/octet-stream">(.*?)</script>', html)
    ]
    assert [len(figure["data"]) for figure in figures] == [2, 4, 4, 4, 2, 2]
    assert figures[0]["layout"]["yaxis"]["ticktext"] == ["a", "b&lt;b&gt;"]


def test_incomplete_traces_are_marked(build):
    built = build({"a": [], "b": [{"kind": "loss", "t": 1.0, "reason": "late", "records": 3}]})

    _, work = built.sections[0].tables
    cells = [row[-1] for row in work.rows]
    assert [(cell.text, cell.tone) for cell in cells] == [
        ("complete", "good"), ("incomplete", "bad"),
    ]  # fmt: skip
