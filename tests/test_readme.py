"""Queries, commands and links of the documentation work."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")
from roast_analyze import Trace  # noqa: E402 - needs duckdb

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_traces" / "coffea.jsonl.zst"
DOCUMENTS = [
    "README.md", "analyze/README.md", "recorder/README.md", "sample_traces/README.md",
    "schemas/README.md",
]  # fmt: skip


def blocks(language: str) -> list:
    """Return the code blocks of a language."""
    fence = re.compile(f"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [
        pytest.param(block, id=f"{document}-{number}")
        for document in DOCUMENTS
        for number, block in enumerate(fence.findall((ROOT / document).read_text()))
    ]


@pytest.fixture(scope="module")
def trace():
    with Trace(SAMPLE) as trace:
        yield trace


@pytest.mark.parametrize("query", blocks("sql"))
def test_a_query_runs(trace, query):
    rows = trace.sql(query).fetchall()

    # The sample has no failures, no loss and no imports.
    assert rows or any(view in query for view in ("failures", "loss", "io_"))


@pytest.mark.parametrize("query", blocks("sql raw"))
def test_a_query_runs_in_plain_duckdb(query):
    query = query.replace("trace.jsonl.zst", str(SAMPLE))

    assert dict(duckdb.sql(query).fetchall())["header"] == 1


@pytest.mark.parametrize("command", blocks("sh duckdb"))
def test_a_command_of_the_duckdb_shell_runs(command):
    shell = Path(find_spec("duckdb_cli").origin).parent
    command = ["sh", "-ec", command.replace("trace.jsonl.zst", str(SAMPLE))]
    environment = {"PATH": f"{shell}:/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)

    assert (done.returncode, done.stderr) == (0, "")
    assert "DijetProcessor" in done.stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_exist(document):
    path = ROOT / document
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())

    assert [target for target in targets if not path.parent.joinpath(target).exists()] == []


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

    queries = [parameter.values[0] for parameter in blocks("sql")]
    [of_workers] = [query for query in queries if "total_result_bytes" in query]
    [of_chunks] = [query for query in queries if "task_key" in query]
    assert {worker: tuple(n) for worker, *n in trace.sql(of_workers).fetchall()} == totals
    assert {row[:4] for row in trace.sql(of_chunks).fetchall()} == chunks
