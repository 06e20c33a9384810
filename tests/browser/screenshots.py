"""Write the screenshots of the report for the documentation: ``make screenshots``."""

import os
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from roast_analyze import Trace

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "sample_traces" / "coffea_failures.jsonl.zst"
FOLDER = ROOT / "analyze"
#: Width and height of the window, and colors. Without a height, the whole page is shown.
PICTURES = {
    FOLDER / "report.png": (1280, 1360, "light"),
    FOLDER / "report-dark.png": (1280, 1360, "dark"),
    FOLDER / "report-whole-1440-light.png": (1440, None, "light"),
    FOLDER / "report-whole-1440-dark.png": (1440, None, "dark"),
    FOLDER / "report-whole-800-light.png": (800, None, "light"),
    FOLDER / "report-whole-800-dark.png": (800, None, "dark"),
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
        for path, (width, height, colors) in PICTURES.items():
            page = browser.new_page(
                viewport={"width": width, "height": height or 1000}, color_scheme=colors
            )
            page.goto(html.as_uri())
            page.locator("html[data-state=drawn]").wait_for(state="attached")
            for drawn in ("timeline", "flame"):
                page.locator(f"figure.{drawn}[data-state=drawn]").wait_for()
            page.screenshot(path=path, full_page=height is None)
            # 256 colors are enough for all but blended edges, and take a third of the size.
            Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
                path, optimize=True
            )
            print(path.relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
