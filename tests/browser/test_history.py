"""The page of a store; `open_page` fails on any request, message, error or dialog."""

import json

import pytest

from browser.pages import assert_harmless, downloaded
from browser.records import HEADER
from roast_analyze import Store
from roast_analyze.report import write_history

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=window.__pwned=1>\"'`{{7*7}}%{y}\u202e.py"


@pytest.fixture(scope="module")
def page(open_page, tmp_path_factory):
    """The page of 12 runs of a program; the last six take twice as long."""
    folder = tmp_path_factory.mktemp("history")
    for number in range(12):
        records = [
            {**HEADER, "trace_id": f"{number}", "t": 3600.0 * number},
            {"kind": "environment", "t": 3600.0 * number, "section": "client",
             "name": "program", "value": HOSTILE},
            {"kind": "event", "t": 3600.0 * number + (100 if number < 6 else 200) + number,
             "topic": "done", "msg": "{}"},
        ]  # fmt: skip
        path = folder / f"{number:02}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    store = Store(folder / "store")
    store.add([folder / "*.jsonl"])
    (folder / "store-3.html").touch()
    session = store.session_for("FROM runs")
    return open_page(write_history(store.path, session, folder / "store.html"))


@pytest.mark.exhaustive
def test_every_section_and_figure_is_there(page):
    assert page.locator("main > section").evaluate_all("all => all.map(s => s.id)") == [
        "verdict", "changes", "programs", "slow", "users", "runs",
    ]  # fmt: skip
    assert page.locator("figure.plot").count() == 3
    assert page.locator("figure.plot:not([data-state=drawn])").count() == 0
    assert_harmless(page)


def test_the_change_is_listed_and_runs_link_to_their_reports(page):
    [change] = downloaded(page, "#table-changes")
    assert (change["run_number"], change["trace_id"]) == ("7", "6")
    assert len(downloaded(page, "#figure-changes")) == 12

    links = page.locator("#table-runs td a")
    assert links.evaluate_all("all => all.map(a => a.getAttribute('href'))") == ["store-3.html"]


@pytest.mark.exhaustive
def test_the_page_does_not_scroll_sideways(page):
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
