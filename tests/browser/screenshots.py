"""Renew the pictures of the report in the documentation, from a sample trace.

``make screenshots`` runs this. Every picture is of the recorded coffea run with failures.
"""

import os
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from roast_analyze import Trace

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "sample_traces" / "coffea_failures.jsonl.zst"
#: Picture to width and height of the window, and colours.
PICTURES = {
    ROOT / "analyze" / "report.png": (1280, 1360, "light"),
    ROOT / "analyze" / "report-dark.png": (1280, 1360, "dark"),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        html = Path(folder) / "report.html"
        with Trace(TRACE) as trace:
            trace.report(html)
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("ROAST_CHROMIUM") or None,
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        for path, (width, height, colours) in PICTURES.items():
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=colours
            )
            page.goto(html.as_uri())
            page.locator("html[data-state=drawn]").wait_for(state="attached")
            page.screenshot(path=path)
            print(path.relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
