"""Fixtures that open pages from files in a real Chromium without a network."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from browser.pages import unfold
from browser.records import HEADER
from roast_analyze import Trace

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture(scope="module")
def open_page(chromium) -> Iterator[Callable]:
    """Open a file; a request, a console message, an error or a dialog fails the module.

    All sections of a report are unfolded, unless ``folded`` is true.
    """
    contexts, complaints = [], []

    def open_page(
        path: Path, *, script: str = "", state: str = "drawn", folded: bool = False, **options
    ) -> object:
        context = chromium.new_context(offline=True, accept_downloads=True, **options)
        contexts.append(context)
        context.set_default_timeout(30_000)
        if script:
            context.add_init_script(script)
        page = context.new_page()

        def complain(kind: str, text: str) -> None:
            complaints.append(f"{path.name}: {kind}: {text}")

        page.on("console", lambda message: complain(message.type, message.text))
        page.on("pageerror", lambda error: complain("error", str(error)))
        page.on("dialog", lambda dialog: complain("dialog", dialog.message))
        page.on(
            "request",
            lambda request: (
                request.url.startswith(("file:", "blob:")) or complain("request", request.url)
            ),
        )
        page.goto(path.as_uri())
        page.locator(f"html[data-state={state}]").wait_for(state="attached")
        if not folded:
            unfold(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """Return a function that writes the report of a trace file or of records."""
    folder = tmp_path_factory.mktemp("reports")

    def report(trace: Path | list[dict], name: str) -> Path:
        html = folder / f"{name}.html"
        if html.exists():
            return html
        if isinstance(trace, list):
            records = [HEADER, *trace]
            trace = folder / f"{name}.jsonl"
            trace.write_text("".join(json.dumps(record) + "\n" for record in records))
        with Trace(trace) as opened:
            opened.report(html)
        return html

    return report


@pytest.fixture(scope="session")
def coffea_trace() -> Path:
    """The recorded coffea run with failures."""
    return SAMPLES / "coffea_failures.jsonl.zst"


@pytest.fixture(scope="module")
def trace(coffea_trace) -> Iterator[Trace]:
    with Trace(coffea_trace) as opened:
        yield opened
