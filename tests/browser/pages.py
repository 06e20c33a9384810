"""Functions that read and operate open pages."""

import csv
import io
from pathlib import Path

#: Counts the distinct colors of a canvas; an empty canvas has one.
COLORS = """canvas => new Set(new Uint32Array(canvas.getContext("2d").getImageData(
    0, 0, canvas.width, canvas.height).data.buffer)).size"""
IS_PAINTED = """all => all.map(one =>
  one.firstElementChild.checkVisibility({ contentVisibilityAuto: true }))"""
#: Opens tracebacks, and keeps 4 rows of each table. Axe cannot compute the background of text
#: above the shadows at the sides of tables.
PREPARE = """() => {
    document.querySelectorAll('details.more').forEach(more => { more.open = true });
    document.querySelectorAll('tbody tr:nth-child(n+5)').forEach(row => row.remove());
    document.querySelectorAll('.scroll').forEach(
        table => { table.style.background = 'var(--raised)' });
}"""


def unfold(page) -> None:
    """Open the sections below "Details" and wait until their figures are drawn."""
    if page.locator("#unfold").count():
        page.locator("#unfold").click()
        page.wait_for_function(
            """() => ![...document.querySelectorAll(".waiting, .flame-shown")].some(
            (text) => text.textContent === "Drawing …")"""
        )
        page.evaluate("scrollTo(0, 0)")


def downloaded(page, block: str) -> list[dict]:
    """Return the rows that the CSV button of a figure or table downloads."""
    with page.expect_download() as download:
        page.locator(f"{block} [data-do=csv]").click()
    text = Path(download.value.path()).read_text()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def drag(page, selector: str, start: float, stop: float) -> None:
    """Drag from one share of the width of an element to another."""
    # This waits until the element no longer moves.
    page.locator(selector).hover()
    box = page.locator(selector).bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + stop) / 2 * box["width"], y)
    page.mouse.move(box["x"] + stop * box["width"], y)
    page.mouse.up()


def violations(page, *rules: str, within: str = "body") -> list[str]:
    """Return the violations found by axe, by default of all rules: rule, impact, element."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = Axe().run(page, within, options).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}) {node['target']}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


def assert_harmless(page) -> None:
    """Check that no hostile string became an element or ran."""
    elements = "main img, [onload], [onerror], a[href^=javascript], .canvas a[href]"
    assert page.locator(elements).count() == 0
    assert page.evaluate("window.__pwned") is None
