"""Reading of pages that are open."""

import csv
import io
from pathlib import Path


def downloaded(page, block: str) -> list[dict]:
    """Return the rows that the CSV button of a figure or table downloads."""
    with page.expect_download() as download:
        page.locator(f"{block} [data-do=csv]").click()
    text = Path(download.value.path()).read_text()
    return list(csv.DictReader(io.StringIO(text, newline="")))


#: Counts the distinct colors of a canvas: an empty one has one.
COLORS = """canvas => new Set(new Uint32Array(canvas.getContext("2d").getImageData(
    0, 0, canvas.width, canvas.height).data.buffer)).size"""


def assert_harmless(page) -> None:
    """Check that no hostile string became an element or ran."""
    elements = "main img, [onload], [onerror], a[href^=javascript], .canvas a[href]"
    assert page.locator(elements).count() == 0
    assert page.evaluate("window.__pwned") is None
