"""Update the pictures in ``screens/``: the first screen of the reports of some ill runs.

    python benchmarks/illnesses/screens.py FOLDER

FOLDER contains the recordings that ``record.py`` made.
"""

import os
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from roast_analyze import Trace

NAMES = ("client_gaps", "killed_workers", "large_graph", "slow_file", "slow_worker")
PICTURES = Path(__file__).parent / "screens"


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("ROAST_CHROMIUM") or None,
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        for name in NAMES:
            html = Path(scratch) / f"{name}.html"
            with Trace(folder / f"{name}.jsonl") as trace:
                trace.report(html)
            page.goto(html.as_uri())
            page.locator("html[data-state=drawn]").wait_for(state="attached")
            picture = PICTURES / f"{name}.png"
            page.screenshot(path=picture)
            Image.open(picture).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(
                picture, optimize=True
            )
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
