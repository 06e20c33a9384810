"""What axe-core, the engine of most checkers of accessibility, finds on the pages: nothing."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl.zst"))

#: Tracebacks are open. Rows are alike, so that 25 of each table will do. The shadows at the
#: sides of tables, where no text is, would keep axe from telling the colour below the text.
PREPARE = """() => {
    document.querySelectorAll('details.more').forEach(more => { more.open = true });
    document.querySelectorAll('tbody tr:nth-child(n+26)').forEach(row => row.remove());
    document.querySelectorAll('.scroll').forEach(
        table => { table.style.background = 'var(--raised)' });
}"""


@pytest.fixture
def open_for_axe(open_page):
    """Open a page whose policy lets axe in."""

    def open_for_axe(path: Path, width: int):
        page = open_page(path, bypass_csp=True, viewport={"width": width, "height": 900})
        page.evaluate(PREPARE)
        return page

    return open_for_axe


def found(page, within: str = "body") -> list[str]:
    """Say what axe finds: rule, how bad it is, and where."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page, within).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}) {node['target']}: {node['failureSummary']}"
        for rule in violations
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("width", [1440, 400])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name.split(".")[0])
def test_axe_finds_nothing(open_for_axe, report, sample, width):
    page = open_for_axe(report(sample, sample.name.split(".")[0]), width)

    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours)
        assert found(page) == []
        # An open box covers what lies below it: only itself can be judged.
        page.locator("#table-events .tools summary").click()
        assert found(page, "#table-events .tools") == []
        page.keyboard.press("Escape")


def test_axe_finds_what_is_wrong(open_for_axe, report):
    page = open_for_axe(report([], "nothing"), 1440)
    page.locator(".says").first.evaluate("says => { says.style.color = 'var(--idle)' }")
    page.locator("#theme").evaluate("button => { button.ariaLabel = button.textContent = '' }")

    assert {told.split()[0] for told in found(page)} == {"button-name", "color-contrast"}
