"""The report without a mouse or without sight: keyboard, names, and axe-core."""

from itertools import groupby, pairwise

import pytest

pytestmark = pytest.mark.browser

#: Everything that can be seen and operated, in the order of the page.
STOPS = """() => {
    window.stops = [...document.querySelectorAll(
        'a[href], button, input, select, summary, [tabindex="0"]')]
        .filter(stop => !stop.disabled && stop.checkVisibility({visibilityProperty: true}));
    window.unfocused = stops.map(stop => getComputedStyle(stop).outline);
    return stops.map(stop => `${stop.closest('section')?.id ?? stop.closest('nav, header')
        ?.tagName.toLowerCase() ?? ''} ${stop.tagName.toLowerCase()} ${
        stop.ariaLabel ?? stop.innerText.trim()}`);
}"""

#: The focused stop (-1: the page itself), whether its outline shows that, and whether it is
#: visible and not covered.
FOCUS = """() => {
    const at = document.activeElement;
    const number = stops.indexOf(at);
    if (at === document.body) return { number, isOutlined: true, isVisible: true };
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    const middle = (low, high, most) => (Math.max(low, 0) + Math.min(high, most - 1)) / 2;
    const top = document.elementFromPoint(
        middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
    return {
        number,
        isOutlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
            && style.outline !== unfocused[number],
        isVisible: at.contains(top),
    };
}"""


@pytest.fixture(scope="module")
def page(open_page, report, coffea_trace):
    path = report(coffea_trace, "coffea_failures")
    return open_page(path, reduced_motion="reduce", bypass_csp=True)


def test_tab_visits_everything_in_the_order_of_the_page(page):
    stops = page.evaluate(STOPS)
    visited = []
    for _ in range(len(stops) + 1):
        page.keyboard.press("Tab")
        visited.append(page.evaluate(FOCUS))

    assert [focus["number"] for focus in visited] == [*range(len(stops)), -1]
    assert [stops[f["number"]] for f in visited if not f["isOutlined"]] == []
    assert [stops[f["number"]] for f in visited if not f["isVisible"]] == []
    assert stops[0] == " a Skip to the report"
    sections = page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
    parts = [part for part, _ in groupby(stop.split(" ")[0] for stop in stops)]
    assert parts == ["", "header", "nav", *[one for one in sections if one in parts]]


def test_the_skip_link_leads_to_the_report(page):
    page.locator("a.skip").press("Enter")
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.closest('section').id") == "verdict"


def test_headings_are_nested_and_everything_has_a_name(page):
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = page.locator(
        "button, input, canvas, [role=img], [role=region], table, figure.plot"
    ).evaluate_all(
        """all => all.filter(e => !(e.innerText?.trim() || e.getAttribute('aria-label')
        || e.getAttribute('aria-labelledby') || e.labels?.length)).map(e => e.outerHTML)"""
    )
    assert unnamed == []


def violations(page) -> list[str]:
    """Return what axe finds: rule, impact and element."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, "body").response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}) {node['target']}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


#: Opens tracebacks. 8 rows of each table suffice. Axe cannot compute the color below text in
#: front of the shadows at the sides of tables.
PREPARE = """() => {
    document.querySelectorAll('details.more').forEach(more => { more.open = true });
    document.querySelectorAll('tbody tr:nth-child(n+9)').forEach(row => row.remove());
    document.querySelectorAll('.scroll').forEach(
        table => { table.style.background = 'var(--raised)' });
}"""


def test_axe_finds_no_violation(page):
    page.evaluate(PREPARE)
    for colors in ("light", "dark"):
        page.emulate_media(color_scheme=colors)
        assert violations(page) == []

    # The check itself: axe notices a button without a name and pale text.
    page.locator(".says").first.evaluate("says => { says.style.color = 'var(--idle)' }")
    page.locator("#theme").evaluate("button => { button.ariaLabel = button.textContent = '' }")
    assert {rule.split()[0] for rule in violations(page)} == {"button-name", "color-contrast"}
