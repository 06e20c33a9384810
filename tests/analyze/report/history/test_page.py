"""The page of a store."""

import pytest

from roast_analyze.report.history.page import build
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
    assert sentence.startswith("p0.py became worse from run 61 of 120")
    assert sentence.endswith("Changed at that moment: commit aaaaaaaaa → bbbbbbbbb.")

    rows = table(section("changes"), "changes")
    assert {(row["program"], row["run_number"], row["trace_id"]) for row in rows} == {
        ("p0.py", "61", "0-60")
    }


def test_slow_files_and_hosts_are_listed(section):
    [file] = table(section("slow"), "files")
    [host] = table(section("slow"), "hosts")
    assert (file["filename"], file["runs"], file["slow_share"]) == ("f0.root", "1,320", "100")
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


def test_ten_thousand_runs_fit_into_the_page(planted):
    html = render(build(planted(seed=1, programs=50, runs=200)))

    assert len(html.encode()) <= 4 * 2**20
