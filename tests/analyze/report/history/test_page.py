"""The page of a store."""

import re
from dataclasses import replace

import polars as pl
import pytest

from analyze.report.reading import plain
from roast_analyze.report.history import sentences
from roast_analyze.report.history.page import build
from roast_analyze.report.history.reports import find_reports
from roast_analyze.report.shell import render


@pytest.fixture
def section(planted):
    sections = {section.name: section for section in build(planted(seed=1)).sections}
    return sections.__getitem__


def table(section, name):
    """Return the rows of a table as texts by column."""
    [found] = [table for table in section.tables if table.name == name]
    names = [column.name for column in found.columns]
    return [dict(zip(names, [cell.text for cell in row], strict=True)) for row in found.rows]


def test_changes_are_described_and_listed(section):
    sentence = section("changes").sentences[0].replace("\N{NO-BREAK SPACE}", " ")
    assert sentence.startswith("p0.py became worse at run 61 of 120")
    assert re.search(r"wall time \+1\d %", sentence)
    assert sentence.endswith("Changed at this point: commit aaaaaaaaa → bbbbbbbbb.")

    rows = table(section("changes"), "changes")
    assert {(row["program"], row["run_number"], row["trace_id"]) for row in rows} == {
        ("p0.py", "61", "0-60")
    }


def test_runs_without_a_program_files_or_hosts(planted):
    history = planted(seed=1, programs=1, runs=3)
    none = replace(history.files, total=0)
    untested = {"files": none, "hosts": none, "tested_files": 0, "tested_hosts": 0}
    runs = history.runs.with_columns(program=pl.lit(None, dtype=pl.String))

    assert plain(sentences.totals(replace(history, runs=runs))).startswith("3 runs from 2026")
    assert sentences.verdict(replace(history, **untested)) == (
        "No program has the 10 runs that finding a change requires."
    )


def test_slow_files_and_hosts_are_listed(section):
    [file] = table(section("slow"), "files")
    [host] = table(section("slow"), "hosts")
    assert (file["filename"], file["runs"], file["slow_share"]) == ("f0.root", "1,320", "100")
    # A third of its time in all runs, because it took 50 % longer.
    assert float(file["excess_hours"]) == pytest.approx(1320 * 1.5 / 60 / 3, rel=0.05)
    assert host["host"] == "n0"


def test_users_and_runs(section):
    users = table(section("users"), "users")
    assert [(user["owner"], user["runs"]) for user in users] == [
        ("user0", "480"),
        ("user1", "480"),
        ("user2", "360"),
    ]
    newest = table(section("runs"), "runs")[0]
    assert (newest["start"], newest["trace_id"]) == ("2026-01-05 23:00", "10-119")
    assert newest["commit"] == 9 * "b"


def test_reports_of_runs_are_found_beside_the_page_and_beside_the_traces(tmp_path):
    (tmp_path / "traces").mkdir()
    for name in ("s-1.html", "traces/x.html", "traces/y.html"):
        (tmp_path / name).touch()
    paths = {"1": ["x.jsonl"], "2": ["x.jsonl", "y.jsonl"], "3": ["z.jsonl"], "4": None}
    runs = [
        {"trace_id": trace_id, "paths": some and [f"{tmp_path}/traces/{name}" for name in some]}
        for trace_id, some in paths.items()
    ]

    found = find_reports("stores/s", runs, tmp_path)

    assert found == {"1": "s-1.html", "2": "traces/x.html"}


def test_ten_thousand_runs_fit_into_the_page(planted):
    html = render(build(planted(seed=1, programs=50, runs=200)))

    assert len(html.encode()) <= 4 * 2**20
