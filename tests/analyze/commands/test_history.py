"""A store in the terminal, its page, and the report of one of its runs."""

import re

import pytest

from roast_analyze import Store


@pytest.fixture
def store(tmp_path, write_trace, worker, task, run):
    """Store two runs of one task each."""
    for name in ("A", "B"):
        write_trace(
            worker("w1"),
            task("x-1"),
            *run("x-1", 1.0, 3.0),
            name=f"{name}.jsonl",
            trace_id=name,
        )
    store = Store(tmp_path / "runs")
    store.add([tmp_path / "A.jsonl", tmp_path / "B.jsonl"])
    return store.path


def test_summary_and_page_of_a_store(analyze, store, tmp_path):
    code, text, err = analyze(store)
    assert (code, err) == (0, "")
    assert text.replace("\N{NO-BREAK SPACE}", " ").startswith("2 runs of 0 programs from 1970-")

    assert analyze(store, "--html") == (0, f"report: {tmp_path / 'runs.html'}\n", "")
    page = (tmp_path / "runs.html").read_text()
    assert "2 runs" in page.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.exhaustive
def test_summary_and_report_of_one_run(analyze, store, tmp_path):
    code, text, _ = analyze(store, "B")
    assert code == 0
    assert text.startswith("Trace     runs")

    assert analyze(store, "B", "--html") == (0, f"report: {tmp_path / 'runs-B.html'}\n", "")

    # The page of the store links to the reports that exist.
    analyze(store, "--html")
    assert re.findall('href="([^#"]+)"', (tmp_path / "runs.html").read_text()) == [
        "runs-B.html"
    ]


def test_invalid_calls(analyze, store):
    for words, message in {
        ("C",): "has no trace 'C': see roast-analyze store list",
        ("A", "B"): "is a store: name no trace_id, or one",
        ("--from", "5m"): "is a store, which has no time range: leave out --from, --to",
    }.items():
        code, _, err = analyze(store, *words)
        assert code == 2
        assert message in err
