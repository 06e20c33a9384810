"""Queries in the README run, and links in all documents exist.

``tests/nightly/test_documentation.py`` runs the code of ``docs/``.
"""

import re
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")
from roast_analyze import Trace  # noqa: E402 - needs duckdb

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_traces" / "coffea.jsonl.zst"
README = (ROOT / "README.md").read_text()
FOLDERS = [".", "analyze", "recorder", "schemas", "sample_traces", "examples", "docs/**"]
DOCUMENTS = [path for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.md")]


def blocks(language: str) -> list:
    """Return the code blocks of a language in the README."""
    return re.findall(f"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def trace():
    with Trace(SAMPLE) as trace:
        yield trace


@pytest.mark.parametrize("query", blocks("sql"))
def test_a_query_runs(trace, query):
    assert trace.sql(query).fetchall()


@pytest.mark.parametrize("query", blocks("sql raw"))
def test_a_query_runs_in_plain_duckdb(query):
    query = query.replace("trace.jsonl.zst", str(SAMPLE))

    assert dict(duckdb.sql(query).fetchall())["header"] == 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_exist(document):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text())

    assert [target for target in targets if not document.parent.joinpath(target).exists()] == []


def test_queries_of_results_return_what_the_lines_contain(trace, read_lines):
    """Tasks, chunks and result bytes by worker, and a row for each processor task."""
    totals, chunks = {}, set()
    for line in read_lines(SAMPLE):
        if line.get("start") == "processing" and line.get("finish") == "memory":
            worker, nbytes = line["worker"], line["nbytes"]
            is_chunk = line["key"].startswith("DijetProcessor-")
            found = totals.get(worker, (0, 0, 0))
            totals[worker] = (found[0] + 1, found[1] + is_chunk, found[2] + nbytes)
            if is_chunk:
                chunks.add((line["key"], worker, "memory", nbytes / 1e3))

    [of_workers] = [query for query in blocks("sql") if "total_result_bytes" in query]
    [of_chunks] = [query for query in blocks("sql") if "task_key" in query]
    assert {worker: tuple(n) for worker, *n in trace.sql(of_workers).fetchall()} == totals
    assert {row[:4] for row in trace.sql(of_chunks).fetchall()} == chunks
