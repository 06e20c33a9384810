"""The pages of `roast-analyze serve` in Chromium; any request to another server is an error."""

import json
import os
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from browser.pages import assert_harmless, violations
from browser.records import HEADER, HOSTILE, task, worker
from served import serving

pytestmark = pytest.mark.browser


def program(name: str) -> dict:
    return {
        "kind": "environment",
        "t": 0.0,
        "section": "client",
        "name": "program",
        "value": name,
    }


def append(path: Path, *records: dict) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


TRAILER = {"kind": "trailer", "segment": 1, "reason": "recording was stopped"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three runs that have ended."""
    folder = tmp_path_factory.mktemp("runs")
    runs = [("a", "fit.py", 30.0), ("b", "fit.py", 5.0), ("c", HOSTILE, 60.0)]
    for number, (name, text, seconds) in enumerate(runs):
        path, begin = folder / f"{name}.jsonl", 3600.0 * number
        records = [worker(), *task("fit-1", begin + 1.0, begin + seconds), program(text)]
        records = [{**record, "t": max(record["t"], begin)} for record in records]
        append(path, {**HEADER, "trace_id": name, "t": begin}, *records)
        append(path, {**TRAILER, "t": begin + seconds})
        os.utime(path, (time.time() - 3600,) * 2)
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder) as server:
        server.wait_for(lambda rows: [it["state"] for it in rows.values()] == ["ended"] * 3)
        yield server


@contextmanager
def opened(chromium, server, **options):
    """Open the printed address; a request to another server, an error or a dialog fails."""
    context = chromium.new_context(**options)
    context.set_default_timeout(30_000)
    page = context.new_page()
    complaints = []
    page.on("console", lambda it: complaints.append(f"{it.type}: {it.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    own = (f"http://127.0.0.1:{server.port}/", "blob:", "data:")
    page.on("request", lambda it: it.url.startswith(own) or complaints.append(it.url))
    page.goto(server.address)
    page.locator("html[data-state=drawn]").wait_for(state="attached")
    yield page
    context.close()
    assert complaints == []


def names(page) -> list[str]:
    return page.locator("tbody td:first-child small").all_inner_texts()


def test_search_sort_report_and_back(chromium, server):
    with opened(chromium, server) as page:
        # The token has moved into a cookie, which scripts cannot read.
        assert server.token not in page.url
        assert page.evaluate("document.cookie") == ""
        assert names(page) == ["c.jsonl", "b.jsonl", "a.jsonl"]
        assert_harmless(page)
        assert violations(page) == []

        page.locator("#search").fill("FIT.py  jsonl")
        assert names(page) == ["b.jsonl", "a.jsonl"]
        assert page.locator("#amount").inner_text() == "2 of 3 runs"
        page.get_by_role("button", name="Duration").click()
        assert names(page) == ["a.jsonl", "b.jsonl"]
        assert page.locator("th[aria-sort=descending]").inner_text() == "Duration"
        page.get_by_role("button", name="Duration").click()
        assert names(page) == ["b.jsonl", "a.jsonl"]

        page.get_by_role("link", name="fit.py").first.click()
        page.locator("#waiting, #verdict").first.wait_for()
        page.locator("html[data-state=drawn] #verdict").wait_for()
        page.locator("figure.timeline[data-state=drawn]").wait_for()
        assert page.locator("h1").inner_text() == "fit.py"
        page.get_by_role("link", name="roast: all runs").click()
        page.locator("tbody tr").first.wait_for()
        assert names(page) == ["c.jsonl", "b.jsonl", "a.jsonl"]
        page.go_back()
        page.go_back()
        page.locator("tbody tr").first.wait_for()
        assert names(page) == ["b.jsonl", "a.jsonl"]  # the search is part of the address


def test_a_run_that_goes_on(chromium, server, folder):
    path = folder / "live.jsonl"
    first, hostile = task("fit-1", 1.0, 5.0), task(f"{HOSTILE}-2", 1.0, 5.0)
    append(path, {**HEADER, "trace_id": "live"}, worker(), first[0], hostile[0])
    append(path, {"kind": "event", "t": 1.0, "topic": "x"})
    try:
        with opened(chromium, server) as page:
            page.locator("td.live").wait_for()
            assert page.locator("#amount").inner_text() == "4 runs, 1 live"
            page.get_by_role("link", name="live").click()
            page.get_by_text("0 of 2 done").wait_for()
            assert_harmless(page)
            append(path, *first[1:])
            page.get_by_text("1 of 2 done").wait_for()
            assert violations(page) == []
            append(path, {**TRAILER, "t": 6.0})
            page.get_by_text("The recording has ended.").wait_for()
            page.get_by_role("link", name="Report of the run").click()
            page.locator("html[data-state=drawn] #verdict").wait_for()
    finally:
        path.unlink()


def test_a_server_that_was_stopped(chromium, folder):
    with serving(folder) as server:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(server.address)
        page.locator("tbody tr").first.wait_for()
    page.get_by_text("The server does not answer.").wait_for()
    context.close()


@pytest.mark.exhaustive
def test_the_list_does_not_scroll_sideways(chromium, server):
    with opened(chromium, server, viewport={"width": 400, "height": 900}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_another_page_of_this_machine_gets_nothing(chromium, server, tmp_path):
    """The browser sends the cookie to all ports of a host."""
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    address = f"http://127.0.0.1:{server.port}/runs.json"
    with (
        opened(chromium, server) as page,
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as other,
    ):
        Thread(target=other.serve_forever, daemon=True).start()
        (tmp_path / "page.html").write_text("<!doctype html><title>foreign</title>")
        tab = page.context.new_page()
        tab.goto(f"http://127.0.0.1:{other.server_port}/page.html")
        for mode in ("no-cors", "cors"):
            options = json.dumps({"mode": mode, "credentials": "include"})
            asked = f"fetch('{address}', {options}).then(() => 'answered', () => 'refused')"
            assert tab.evaluate(asked) == "refused"
        other.shutdown()
