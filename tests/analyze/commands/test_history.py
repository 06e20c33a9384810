"""A store in the terminal, its page, and the report of one of its runs."""

import re

import pytest

from roast_analyze import Store


@pytest.fixture
def store(tmp_path, write_trace, worker, task, run):
    """Store two runs of one task each."""
    records = [worker("w1"), task("x-1"), *run("x-1", 1.0, 3.0)]
    store = Store(tmp_path / "runs")
    store.add([write_trace(*records, name=f"{n}.jsonl", trace_id=n) for n in ("A", "B")])
    return store.path


def test_summary_and_page_of_a_store(analyze, store, tmp_path):
    code, text, err = analyze(store)
    assert (code, err) == (0, "")
    assert text.replace("\N{NO-BREAK SPACE}", " ").startswith("2 runs from 1970-")

    assert analyze(store, "--html") == (0, f"report: {tmp_path / 'runs.html'}\n", "")
    assert "2\N{NO-BREAK SPACE}runs" in (tmp_path / "runs.html").read_text()

    for words, message in {
        ("C",): "has no trace 'C': see roast-analyze store list",
        ("A", "B"): "is a store: name at most one trace_id",
        ("--from", "5m"): "is a store, which has no time range: leave out --from, --to",
    }.items():
        code, _, err = analyze(store, *words)
        assert (code, message in err) == (2, True), err


@pytest.mark.exhaustive
def test_a_shared_scheduler_has_the_names_of_its_programs(
    analyze, tmp_path, write_trace, worker, task, run
):
    def program(client: str, name: str, t: float) -> list[dict]:
        about = {"t": t, "client": client}
        reported = {"kind": "client_program", **about, "name": name, "host": "h", "pid": int(t)}
        work = [task(f"{client}-1", t, client=client), *run(f"{client}-1", t, t + 5.0)]
        return [{"kind": "client_added", **about}, {**reported, "value": {}}, *work]

    records = [worker("w1"), *program("c", "hist.py", 10.0), *program("d", "fit.py", 40.0)]
    store = Store(tmp_path / "runs")
    store.add([
        write_trace(*records, name="A.jsonl", trace_id="A"),
        write_trace(*records[:5], name="B.jsonl", trace_id="B"),
    ])  # fmt: skip

    text = analyze(store.path)[1].replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith("2 runs of 2 programs from")
    assert re.search(r"^fit\.py, hist\.py +1 ", text, re.MULTILINE)
    assert re.search(r"^hist\.py +1 ", text, re.MULTILINE)
    assert "fit.py, hist.py" in analyze("store", "list", store.path)[1]
    analyze(store.path, "--html")
    assert "fit.py, hist.py" in (tmp_path / "runs.html").read_text()


@pytest.mark.exhaustive
def test_summary_and_report_of_one_run(analyze, store, tmp_path, own_cache):
    assert analyze(store, "B", "--no-cache")[1].startswith("Trace     B\n")
    assert [folder.name for folder in own_cache.iterdir()] == ["templates"]
    assert analyze(store, "B")[1].startswith("Trace     B\n")
    assert len([*own_cache.iterdir()]) == 2
    assert analyze(store, "B", "--html") == (0, f"report: {tmp_path / 'runs-B.html'}\n", "")

    # The page of the store links to the reports that exist.
    analyze(store, "--html")
    page = (tmp_path / "runs.html").read_text()
    assert re.findall('href="([^#"]+)"', page) == ["runs-B.html"]
