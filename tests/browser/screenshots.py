"""Write the screenshots of the documentation: ``make screenshots``."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from roast_analyze import Trace

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_traces"
IMAGES = ROOT / "docs" / "images"


@dataclass(frozen=True)
class Picture:
    """A picture of the top of a report; without a height, of the whole page."""

    name: str
    trace: Path
    width: int
    height: int | None


def pictures() -> Iterator[Picture]:
    failures = SAMPLES / "coffea_failures.jsonl.zst"
    yield Picture("report", failures, 1280, 1360)
    yield Picture("report-whole", failures, 1440, None)
    for trace in sorted((SAMPLES / "tutorial").glob("*.jsonl.zst")):
        yield Picture(trace.name.removesuffix(".jsonl.zst"), trace, 1000, 620)


def main() -> None:
    reports: dict[Path, Path] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("ROAST_CHROMIUM") or None,
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        for picture in pictures():
            if picture.trace not in reports:
                reports[picture.trace] = Path(folder) / f"{picture.name}.html"
                with Trace(picture.trace) as trace:
                    trace.report(reports[picture.trace])
            page = browser.new_page(
                viewport={"width": picture.width, "height": picture.height or 1000},
                color_scheme="light",
            )
            page.goto(reports[picture.trace].as_uri())
            page.locator("html[data-state=drawn]").wait_for(state="attached")
            page.locator("figure.timeline[data-state=drawn]").wait_for()
            path = IMAGES / f"{picture.name}.png"
            page.screenshot(path=path, full_page=picture.height is None)
            page.close()
            # 256 colors are enough for all but blended edges, and take a third of the size.
            Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
                path, optimize=True
            )
            print(path.relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
