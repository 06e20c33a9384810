"""Pages of minimal, odd and enormous traces have text everywhere, and no nonsense values."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from browser.pages import PREPARE, violations
from browser.records import FAILED, task, worker
from nightly import odd_traces
from nightly.recording import Recording

pytestmark = pytest.mark.browser

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl.zst"))

YEARS = 3e8


def chunk(start: float, stop: float, **measured) -> dict:
    """Return the record of a chunk attempt."""
    about = {"key": "a-1", "run_id": 1, "worker": "w1", "thread": 1, "dataset": "Z"}
    about |= {"filename": "z.root", "entry_start": 0, "entry_stop": 1000, "measured": measured}
    return {"kind": "chunk", **about, "t": stop, "start_t": start, "stop_t": stop}


def sample(t: float, **metrics) -> dict:
    return {"kind": "worker_sample", "t": t, "worker": "w1", "nthreads": 1, "metrics": metrics}


TRAILER = {"kind": "trailer", "t": 5.0, "segment": 1, "reason": "stopped",
           "records_by_kind": {"header": 1}, "dropped_by_kind": {}}  # fmt: skip
NOTHING_MEASURED = {"cpu_seconds": 0.0, "bytes_read": 0, "open_seconds": 0.0, "branches": []}
#: Records of a task, in order: it enters the graph, it is sent, and it ends.
ONE = task("a-1", 1.0, 2.0)

POOR = {
    "nothing": [],
    "nothing, but whole": [TRAILER],
    "no workers": ONE,
    "no tasks": [worker(), sample(1.0, cpu=2.0, memory=2**20)],
    "one task": [worker(), *ONE],
    "tasks that never ended": [worker(), *ONE[:2]],
    "tasks that were never sent": [worker(), *ONE[:1]],
    "only failures": [worker(), *task("a-1", 1.0, 2.0, **FAILED)],
    "one instant": [
        {**record, "t": 7.0}
        for record in (worker(), *task("a-1", 7.0, 7.0, nbytes=0),
                       chunk(7.0, 7.0, **NOTHING_MEASURED), sample(7.0, cpu=0.0, memory=0))
    ],
    "no events": [
        worker(), *task("a-1", 0.0, 1.0), {**chunk(0.0, 1.0, events=0), "entry_stop": 0},
    ],
    "a clock that was put back": [
        worker(), *task("a-1", 3600.0, 5.0), chunk(3600.0, 5.0, cpu_seconds=3.0),
        sample(3600.0, cpu=9.0, memory=5), sample(6.0, cpu=9.0, memory=5),
    ],
    "a worker whose clock is behind": [
        worker(), *task("a-1", -50.0, -49.0, sent=1.0), *task("a-2", -9.0, 3.0, sent=2.0),
    ],
    "years and petabytes": [
        worker(memory_limit=10**16), *task("a-1", 1.0, YEARS, nbytes=10**15),
        {**chunk(1.0, YEARS, cpu_seconds=YEARS / 3, bytes_read=10**17), "entry_stop": 10**15},
        sample(1.0, cpu=1e6, memory=10**15), sample(YEARS, cpu=1e6, memory=10**16),
    ],
    "chunks without a cluster": [
        chunk(1.0, 2.0, cpu_seconds=0.5), {**chunk(2.0, 4.0), "run_id": 2},
    ],
    "a chunk without a cluster that failed": [{**chunk(1.0, 2.0), "exception": "E()"}],
    "nothing has a name": [
        {"kind": "worker_added", "t": 0.0, "worker": "w1"},
        {"kind": "transition", "t": 1.0, "key": "x", "start": "queued", "finish": "processing"},
        {"kind": "chunk", "t": 2.0, "key": "y", "run_id": 4, "start_t": 1.0, "stop_t": 2.0},
        {"kind": "event", "t": 1.0, "topic": "t"},
        {"kind": "environment", "t": 0.0, "section": "s", "name": "n"},
        {"kind": "loss", "t": 1.0},
    ],
}  # fmt: skip

#: Finds words for missing values, such as NaN, and negative times, shares and sizes. Text of
#: the trace itself is exempt.
NONSENSE = """() => {
    const own = ':is(#table-events, #table-environment, #table-failures) td:not(.n), pre, code';
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const shown = [];
    while (walk.nextNode()) {
        const within = walk.currentNode.parentElement;
        if (within.checkVisibility() && !within.closest(`script, style, ${own}`)) {
            shown.push(walk.currentNode.data.trim());
        }
    }
    for (const named of document.querySelectorAll('[aria-label]')) shown.push(named.ariaLabel);
    const words = '(NaN|nan|undefined|None(?! of the)|null|[Ii]nf|Infinity)';
    const isWord = new RegExp(`(^|[^\\\\w./-])${words}($|[^\\\\w.-])|\\\\[object`);
    const isLess = /(^|\\s)[-−][\\d,.]+(\\s?((µs|ms|s|min|h|d|[KMGTP]?i?B)\\b|%)|$)/;
    return shown.filter(text => isWord.test(text) || isLess.test(text));
}"""

#: Finds headings, labels and sentences without text.
SILENT = """() => [...document.querySelectorAll(
    'h1, h2, h3, th button, dt, dd b, dd span, main p, figcaption, nav a, option, .spent li')]
    .filter(one => one.checkVisibility() && !one.closest('.flame-tip, .flame-crumbs')
        && (one.innerText ?? one.textContent).trim() === '')
    .map(one => one.outerHTML)"""


def assert_sensible(page):
    assert page.evaluate(NONSENSE) == []
    assert page.evaluate(SILENT) == []
    assert page.locator("figure.plot:not([data-state=drawn])").count() == 0
    for section in page.locator("main > section").all():
        text = section.locator(".says, .empty, .lead").first.inner_text()
        assert len(text) > 20, section.get_attribute("id")


@pytest.mark.parametrize("name", POOR)
def test_an_extreme_trace_makes_a_sensible_page(open_page, report, name):
    assert_sensible(open_page(report(POOR[name], name)))


@pytest.mark.parametrize(
    "oddity",
    [
        odd_traces.without_header, odd_traces.recording_killed, odd_traces.lines_missing,
        odd_traces.without_workers,
        odd_traces.without_tasks, odd_traces.unmeasured, odd_traces.without_cluster,
        odd_traces.clock_set_back, odd_traces.worker_clocks_set_back,
        odd_traces.recording_begins_in_the_middle,
    ],
    ids=lambda oddity: oddity.__name__,
)  # fmt: skip
def test_an_odd_trace_makes_a_sensible_page(open_page, report, coffea_trace, tmp_path, oddity):
    lines = odd_traces.make_odd(oddity, Recording.read(coffea_trace).lines)
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert_sensible(open_page(report(path, oddity.__name__)))


def test_nonsense_is_detected(open_page, report):
    page = open_page(report(POOR["one task"], "one task"))
    words = ["NaN", "in None s", "-5.000", "−3 min", "took −5 s", "-100 % of them"]
    words.append("[object Object]")
    fine = ["5-10 s", "finance", "2026-11-21", "worker-1", "a – b", "Nothing", "–"]

    page.locator("main").evaluate(
        "(main, words) => main.replaceChildren(...words.map(word => {"
        "const p = document.createElement('p'); p.textContent = word; return p }))",
        [*words, *fine, ""],
    )

    assert page.evaluate(NONSENSE) == words
    assert page.evaluate(SILENT) == ["<p></p>"]


@pytest.mark.parametrize("width", [1440, 400])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name.split(".")[0])
def test_a_sample_makes_a_sensible_page_without_violations(open_page, report, sample, width):
    path = report(sample, sample.name.split(".")[0])
    page = open_page(path, bypass_csp=True, viewport={"width": width, "height": 900})

    assert_sensible(page)
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    page.evaluate(PREPARE)
    for colors in ("light", "dark"):
        page.emulate_media(color_scheme=colors)
        assert violations(page) == []


def test_violations_are_detected(open_page, report):
    """Axe finds pale text and a button without a name."""
    page = open_page(report(POOR["one task"], "one task"), bypass_csp=True)
    page.locator(".says").first.evaluate("says => { says.style.color = 'var(--idle)' }")
    page.locator("#theme").evaluate("button => { button.ariaLabel = button.textContent = '' }")

    found = [rule for within in (".says", "#theme") for rule in violations(page, within=within)]

    assert {rule.split()[0] for rule in found} == {"button-name", "color-contrast"}
